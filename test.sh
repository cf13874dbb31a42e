#!/usr/bin/env bash
# The one test command: formatting, lints, other targets, documentation, all tests, doc tests, packages,
# published clients that read what we write, the types of the providers' SDKs for what we request, requests that the
# description of the server's routes permits or forbids, and real agents that we run and serve. With --quick, all but other targets and the real agents.
#
# It needs Rust and nothing else. Missing components of Rust are installed with rustup, npm and tmux with apt, and
# the clients (with a newer Node, if need be) with npm, and the types and Schemathesis with pip. What cannot be installed is named, and
# the checks that need it are reported as skipped.
set -euo pipefail
cd "$(dirname "$0")"

skipped=()
target=${CARGO_TARGET_DIR:-target}

quick=
case ${1:-} in
  --quick) quick=yes ;;
  "") ;;
  *) echo "usage: ./test.sh [--quick]"; exit 2 ;;
esac

step() {
  printf '\n== %s\n' "$1"
}

have_component() {
  cargo "$1" --version >/dev/null 2>&1 && return
  rustup component add "$2" >/dev/null 2>&1 && cargo "$1" --version >/dev/null 2>&1
}

have_target() {
  command -v rustup >/dev/null && timeout 300 rustup target add "$1" >/dev/null 2>&1
}

# Whether a program is here, or can be installed from the Debian package of the same name.
have_program() {
  command -v "$1" >/dev/null && return
  [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1"; } >/dev/null 2>&1 &&
    command -v "$1" >/dev/null
}

have_npm() {
  have_program npm
}

command -v cargo >/dev/null || { echo "cargo is not here: install Rust 1.95 or newer from rustup.rs"; exit 1; }

step "formatting"
if have_component fmt rustfmt; then
  cargo fmt --all --check
else
  skipped+=("formatting: rustfmt is not here and cannot be installed")
fi

step "lints"
if have_component clippy clippy; then
  cargo clippy --workspace --all-targets --locked -- -D warnings
else
  skipped+=("lints: clippy is not here and cannot be installed")
fi

step "other targets"
# They are only compiled. The core needs no operating system, so it also compiles to WebAssembly.
for triple in x86_64-pc-windows-gnu aarch64-apple-darwin wasm32-unknown-unknown; do
  if [[ $quick ]]; then
    skipped+=("$triple: --quick leaves it out")
  elif ! have_target "$triple"; then
    skipped+=("$triple: rustup is not here or cannot add it")
  elif [[ $triple == wasm32-* ]]; then
    cargo check --package interlingua --lib --target "$triple" --locked --quiet
  else
    # SQLite would need a C compiler for the target.
    cargo check --package interlingua-cli --no-default-features --target "$triple" --locked --quiet
    cargo check --package interlingua-agents --all-targets --target "$triple" --locked --quiet
  fi
done

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

step "tests"
have_program tmux || skipped+=("what a terminal shows: tmux is not here and cannot be installed")
# What an earlier run recorded is not what the API agent sends now.
rm -rf "$target/api-requests"
# Each crate has one test program, `it`, with a module for each behaviour. The real agents are skipped here.
cargo test --workspace --lib --bins --tests --locked

step "doc tests"
cargo test --workspace --doc --locked

step "packages"
# Every published crate is packaged, and built from its package. What the steps above downloaded is enough,
# unless cargo never read the registry's index on this machine.
# Cargo keeps a copy of every package of the same version, although these are not published yet.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/interlingua-*
if [[ -d $target/package ]]; then
  rm -rf "$target/package" "$target"/debug/.fingerprint/interlingua-*
fi
package() {
  cargo package --workspace --exclude fake-model --exclude agent-home --locked --allow-dirty --quiet "$@"
}
package --offline 2>/dev/null || package

step "published clients"
code=0
if have_npm; then
  cargo build --package interlingua-cli --package fake-model --locked --quiet
  cargo build --package interlingua-server --example server-adapter --locked --quiet
  tests/clients/run "$target/debug/interlingua" "$target/debug/fake-model" \
    "$target/debug/examples/server-adapter" || code=$?
else
  code=77
fi
case $code in
  0) ;;
  77) skipped+=("published clients: npm or its registry is not here and cannot be had") ;;
  *) exit "$code" ;;
esac

step "requests"
# The tests of the API agent record what it sends to the providers.
code=0
tests/clients/requests/run "$target/api-requests" || code=$?
case $code in
  0) ;;
  77) skipped+=("requests: none are recorded, or Python or its packages cannot be had") ;;
  *) exit "$code" ;;
esac

step "openapi"
cargo build --package interlingua-cli --locked --quiet
code=0
tests/clients/openapi/run "$target/debug/interlingua" || code=$?
case $code in
  0) ;;
  77) skipped+=("openapi: Python or its packages cannot be had") ;;
  *) exit "$code" ;;
esac

step "real agents"
code=0
if [[ $quick ]]; then
  skipped+=("real agents: --quick leaves them out")
elif ! have_npm; then
  code=77
else
  agents=$(scripts/agents "$target/agents") || code=$?
  if ((code == 0)); then
    INTERLINGUA_AGENTS=$agents cargo test --package interlingua-agents --test real_agents --locked
    INTERLINGUA_AGENTS=$agents cargo test --package interlingua-cli --test served_agents --locked
  fi
fi
case $code in
  0) ;;
  77) skipped+=("real agents: npm or its registry is not here and cannot be had") ;;
  *) exit "$code" ;;
esac

for what in "${skipped[@]+"${skipped[@]}"}"; do
  echo "SKIPPED $what"
done
step "all passed"
