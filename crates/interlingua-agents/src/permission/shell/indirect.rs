//! Commands whose arguments are, or name, other commands. A pattern such as `env *` would allow
//! anything, so they are never allowed by a pattern.
//!
//! The lists are repeated for users in `docs/permissions.md`. They are not complete, and cannot be:
//! `make` and `npm run` run whatever the project defines. They contain the programs whose *arguments*
//! choose what runs.

use super::script::SimpleCommand;
use crate::permission::names::Names;

/// Programs that run the command in their arguments, or commands that they read.
const RUNNERS: Names = Names(
    "\
    at batch busybox bwrap catchsegv cgexec chroot chrt crontab daemonize dbus-run-session \
    direnv distrobox doas entr env expect faketime fakechroot fakeroot firejail flock gdb \
    gtimeout i386 ionice lldb linux32 linux64 ltrace mosh newgrp nice nohup nsenter numactl \
    parallel perf pkexec prlimit proot proxychains proxychains4 rlwrap rsh runcon runuser screen script \
    setarch setpriv setsid sg ssh sshpass start-stop-daemon stdbuf strace su sudo \
    systemd-run taskset time timeout tmux toybox torsocks unbuffer unshare uvx valgrind \
    watch watchexec x86_64 xargs xvfb-run bunx npx pipx pnpx",
);

/// Shells. `bash -c SCRIPT` as the whole command is unwrapped before it gets here.
const SHELLS: Names = Names(
    "\
    ash bash cmd cmd.exe csh dash elvish fish ksh mksh nu osh powershell powershell.exe pwsh \
    rbash sh tcsh xonsh yash zsh",
);

/// Builtins that evaluate their arguments, change what later commands mean, or run a command; and
/// reserved words of other shells that do.
const BUILTINS: Names = Names(
    "\
    ! - . [ [[ alias bind builtin command compgen complete compopt coproc declare enable \
    eval exec export fc foreach function getopts hash jobs let local mapfile nocorrect \
    noglob read readarray readonly repeat select set shopt source test trap typeset unalias \
    unset wait",
);

/// Programs with a language of their own, in which their arguments can run commands.
const LANGUAGES: Names = Names(
    "\
    awk dc ed emacs emacsclient ex ftp gawk less lftp m4 man mawk more mysql nano nawk nvim pico psql sftp \
    sqlite3 telnet vi view vim",
);

/// Interpreters, with or without a version in their name. They run the script that their first
/// argument names; everything else (`-c`, `-e`, `-m`, a script on standard input) is program text.
const INTERPRETERS: Names = Names(
    "\
    bun deno elixir erl ghci groovy guile iex irb jruby jshell julia lua luajit node nodejs \
    octave osascript perl php pypy python r racket rscript ruby runghc scala swift tclsh \
    ts-node tsx wish",
);

/// Options and subcommands that make a program run others, or write where a reader would not expect
/// it. Long options may be abbreviated, as most programs accept that.
const OPTIONS: &[(&str, Names)] = &[
    ("bundle", Names("exec")),
    ("cargo", Names("--config -Z --manifest-path -C")),
    ("cmake", Names("-E -P")),
    ("conda", Names("run")),
    ("docker", CONTAINERS),
    ("fd", Names("-x -X --exec --exec-batch")),
    ("fdfind", Names("-x -X --exec --exec-batch")),
    ("find", Names("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")),
    ("ghc", Names("-e -pgm")),
    ("go", Names("-exec --exec -toolexec --toolexec -vettool --vettool")),
    ("install", Names("--strip-program")),
    ("make", MAKE),
    ("gmake", MAKE),
    ("nix", Names("run shell develop --command -c")),
    ("nix-shell", Names("--run --command")),
    ("nerdctl", CONTAINERS),
    (
        "npm",
        Names(
            "exec x explore --script-shell --node-options --prefix -C --userconfig --globalconfig",
        ),
    ),
    ("pdm", Names("run")),
    ("pip", Names("--python")),
    ("pipenv", Names("run")),
    ("pnpm", Names("exec dlx --script-shell --node-options --prefix --dir -C")),
    ("podman", CONTAINERS),
    ("poetry", Names("run")),
    ("rg", Names("--pre --hostname-bin")),
    ("rsync", Names("-e --rsh --rsync-path")),
    ("rustup", Names("run")),
    ("scp", Names("-S -o -F -D")),
    ("sort", Names("--compress-program")),
    ("split", Names("--filter")),
    (
        "tar",
        Names(
            "\
        -I -F --use-compress-program --to-command --checkpoint-action --info-script \
        --new-volume-script --rsh-command --rmt-command",
        ),
    ),
    ("uv", Names("run tool")),
    ("wget", Names("--use-askpass -e --execute")),
    ("yarn", Names("exec dlx --cwd")),
    ("zip", Names("-T --unzip-command")),
];

const MAKE: Names = Names("-f --file --makefile -C --directory --eval -E -I");

/// What starts a command in a container, which may see any folder of the host.
const CONTAINERS: Names = Names("run exec create container compose unshare");

/// Options of compilers that run programs, or load them.
const COMPILER: Names = Names(
    "\
    -wrapper --wrapper -B -specs --specs -fplugin -fpass-plugin -load -Xclang -cc1 --config \
    -fuse-ld --ld-path -Xlinker",
);

/// Why no pattern allows a command, although all its words are literal.
pub(crate) fn indirection(command: &SimpleCommand) -> Option<String> {
    if command.assigns {
        return Some("it assigns a variable".to_owned());
    }
    let words = command.literal_words()?;
    let (first, arguments) = words.split_first()?;
    if is_odd_name(first) {
        return Some("its name is unusual".to_owned());
    }
    // Some file systems ignore case, and a path does not change what a program does.
    let name = base_name(first).to_ascii_lowercase();
    let runs = match &*name {
        _ if is_listed(&name) => true,
        _ if is_interpreter(&name) => !names_script(arguments),
        "git" => git(arguments),
        "sed" | "gsed" => !is_harmless_sed(arguments),
        "printf" => arguments.first().is_some_and(|first| first.starts_with("-v")),
        name => has_running_option(name, arguments),
    };
    runs.then(|| format!("`{name}` can run other commands, or evaluates its arguments"))
}

/// Whether a command some of whose words are not literal may run others: its name, or an argument
/// that is not known, could make it do so.
pub(crate) fn may_run_others(command: &SimpleCommand) -> bool {
    let Some(first) = command.name() else { return true };
    let name = base_name(first).to_ascii_lowercase();
    let by_option = options_of(&name).is_some();
    let by_argument =
        by_option || is_interpreter(&name) || matches!(&*name, "git" | "sed" | "gsed");
    // `printf -v` evaluates an index; a format does not.
    let format_is_known = command.words.get(1).and_then(|word| word.literal()).is_some();
    is_listed(&name) || by_argument || is_odd_name(first) || (name == "printf" && !format_is_known)
}

/// Whether a program runs others, whatever its arguments are.
fn is_listed(name: &str) -> bool {
    let lists = [RUNNERS, SHELLS, BUILTINS, LANGUAGES];
    lists.iter().any(|list| list.contains(name)) || is_loader(name)
}

/// The name of a program without its folder.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A name that a pattern could mistake for a name and arguments, or for another path.
fn is_odd_name(name: &str) -> bool {
    let mut parts = name.split('/').skip_while(|part| *part == "..");
    name.is_empty() || name.contains(char::is_whitespace) || parts.any(|part| part == "..")
}

/// The dynamic loader runs the program in its arguments.
fn is_loader(name: &str) -> bool {
    ["ld.so", "ld-linux", "ld-musl", "ld64"].iter().any(|prefix| name.starts_with(prefix))
}

fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(name.trim_end_matches(".exe").trim_end_matches(is_version))
}

/// Whether a character may be a part of the version in a name.
fn is_version(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '.' | '-' | '_')
}

/// Whether an interpreter is given a script file, or is only asked for its version.
fn names_script(arguments: &[&str]) -> bool {
    match arguments {
        ["--version" | "-V"] => true,
        // A task of deno, which this option defines.
        ["task", options @ ..] => !options.iter().any(|option| is_option(option, "--eval")),
        [script, ..] => {
            !script.starts_with(['-', '+'])
                && !["/dev/", "/proc/"].iter().any(|folder| script.contains(folder))
                // Subcommands of deno and bun.
                && !["eval", "exec", "repl", "run", "x"].contains(script)
        }
        [] => false,
    }
}

fn has_running_option(name: &str, arguments: &[&str]) -> bool {
    let Some(options) = options_of(name) else { return false };
    arguments.iter().enumerate().any(|(index, argument)| {
        let listed = options.iter().any(|option| {
            is_option(argument, option)
                && (option.starts_with('-') || may_be_subcommand(arguments, index))
        });
        listed
            || (name == "tar" && index == 0 && is_tar_bundle(argument))
            // A variable of make may be a command, or contain one: `CC`, `SHELL`, or `A=$(shell …)`.
            || (options == MAKE && defines_variable(argument))
            // More options are in a file, or are for the linker.
            || (options == COMPILER && (argument.starts_with('@') || argument.starts_with("-Wl,")))
    })
}

/// Whether an argument of make is a variable, or refers to one.
fn defines_variable(argument: &str) -> bool {
    argument.contains('$') || (argument.contains('=') && !argument.starts_with('-'))
}

/// The options of a program that make it run others.
fn options_of(name: &str) -> Option<Names> {
    let listed = OPTIONS.iter().find(|(program, _)| *program == name);
    listed.map(|(_, options)| *options).or_else(|| is_compiler(name).then_some(COMPILER))
}

/// Compilers, whose names may have a target and a version: `x86_64-linux-gnu-gcc-12`.
fn is_compiler(name: &str) -> bool {
    let name = name.trim_end_matches(".exe").trim_end_matches(is_version);
    let name = name.rsplit('-').next().unwrap_or(name);
    matches!(name, "c++" | "cc" | "clang" | "clang++" | "cpp" | "g++" | "gcc")
}

/// Whether an argument may be the subcommand: only options, and what may be their values, precede
/// it.
fn may_be_subcommand(arguments: &[&str], index: usize) -> bool {
    let before = arguments.get(..index).unwrap_or_default();
    let mut after_option = false;
    before.iter().all(|argument| {
        let skipped = argument.starts_with('-') || after_option;
        after_option = argument.starts_with('-');
        skipped
    })
}

/// Whether an argument is an option: exactly, abbreviated, or with its value attached.
fn is_option(argument: &str, option: &str) -> bool {
    let name = argument.split('=').next().unwrap_or(argument);
    if option.starts_with("--") {
        return name.len() > 2 && option.starts_with(name);
    }
    let short = option.len() == 2 && option.starts_with('-');
    // Short options may be bundled: `-ae ssh`.
    let bundled = || {
        let letters = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| option.ends_with(|c| letters.contains(c)))
    };
    name == option || (short && bundled())
}

/// The first argument of `tar` may be options without a dash.
fn is_tar_bundle(argument: &str) -> bool {
    !argument.starts_with('-') && argument.contains(['I', 'F'])
}

/// Options of `git` before the subcommand that change nothing but the output.
const GIT_OPTIONS: Names =
    Names("--no-pager --version --help --no-optional-locks --literal-pathspecs -v");

/// Subcommands of `git` that run commands, or that configure such.
const GIT_SUBCOMMANDS: Names = Names(
    "\
    bisect config credential daemon difftool filter-branch gui hook instaweb merge-index mergetool \
    send-email shell submodule svn",
);

/// Whether a subcommand of `git` is one that only `git` itself runs: a protocol of a remote, which may
/// be a command, or a part of another subcommand.
fn is_internal(subcommand: &str) -> bool {
    subcommand.starts_with("remote-") || subcommand.contains("--")
}

/// Options of subcommands that run commands, set configuration, or write a file.
const GIT_SUBCOMMAND_OPTIONS: Names = Names(
    "\
    --exec --upload-pack --receive-pack --config --template --ext-diff --textconv --output \
    --open-files-in-pager --extcmd --tool --command --filters --show-signature",
);

/// Whether `git` may run other commands.
fn git(arguments: &[&str]) -> bool {
    let mut rest = arguments.iter().skip_while(|argument| GIT_OPTIONS.contains(argument));
    let Some(subcommand) = rest.next() else { return false };
    let runs = GIT_SUBCOMMANDS.contains(subcommand) || is_internal(subcommand);
    if subcommand.starts_with('-') || runs {
        return true;
    }
    rest.any(|argument| {
        GIT_SUBCOMMAND_OPTIONS.iter().any(|option| is_option(argument, option))
            // A remote that is a command.
            || argument.contains("ext::")
            || match *subcommand {
                "clone" | "init" => is_option(argument, "-c") || is_option(argument, "-u"),
                "rebase" => is_option(argument, "-x"),
                "grep" => is_option(argument, "-O"),
                "archive" => is_option(argument, "-o"),
                _ => false,
            }
    })
}

/// `sed -n 5p` and `sed -n 1,20p` only print lines; other scripts can run commands (`e`) and write
/// files (`w`).
pub(super) fn is_harmless_sed(arguments: &[&str]) -> bool {
    match arguments {
        ["-n", script, files @ ..] => {
            prints_lines(script) && !files.iter().any(|file| file.starts_with('-'))
        }
        _ => false,
    }
}

/// Whether a script of `sed` is a line, or a range of lines, with the command `p`.
fn prints_lines(script: &str) -> bool {
    let Some(range) = script.strip_suffix('p') else { return false };
    let number = |text: &str| text == "$" || (!text.is_empty() && is_digits(text));
    match range.split_once(',') {
        Some((from, to)) => number(from) && number(to),
        None => number(range),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
