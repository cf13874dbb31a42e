//! Every transcript is translated by every writer: the output is as reviewed, and `check` finds no
//! faults.
//!
//! Each folder of an agent is two tests, and each test reports all failing cases of its folder. The
//! events of every case are reviewed; the output of the other writers is reviewed for the cases
//! that `transcripts/reviewed` lists. They are chosen so that every kind of record is reviewed.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use interlingua::check::Checker;
use interlingua::framing::Limits;

use crate::support::kinds::kinds;
use crate::support::{Case, translate, written};

macro_rules! agents {
    ($($module:ident = $folder:literal,)*) => {
        $(
            mod $module {
                #[test]
                fn as_reviewed() {
                    super::in_every_case($folder, super::as_reviewed);
                }

                #[test]
                fn check_finds_nothing() {
                    super::in_every_case($folder, super::check_finds_nothing);
                }
            }
        )*

        #[test]
        fn no_agent_is_left_out() {
            assert_eq!(Case::agents(), [$($folder),*]);
        }
    };
}

agents! {
    acp = "acp",
    agent_event = "agent-event",
    anthropic_api = "anthropic-api",
    claude = "claude",
    claude_2_1_197 = "claude-2.1.197",
    codex = "codex",
    codex_app_server = "codex-app-server",
    copilot = "copilot",
    copilot_headless = "copilot-headless",
    gemini = "gemini",
    gemini_api = "gemini-api",
    giselle = "giselle",
    goose = "goose",
    openai_chat = "openai-chat",
    openai_responses = "openai-responses",
    opencode = "opencode",
    pi = "pi",
    qwen = "qwen",
    yume = "yume",
}

/// The length up to which a line of a snapshot is kept completely.
const LONGEST: usize = 2000;

/// Runs a check on every case of an agent, and fails with all its findings.
fn in_every_case(agent: &str, check: fn(&Case) -> Vec<String>) {
    let mut failures = Vec::new();
    for case in Case::of(agent) {
        let checked = catch_unwind(AssertUnwindSafe(|| check(&case)));
        failures.extend(checked.unwrap_or_else(|_| vec![format!("{}: it panicked", case.name)]));
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn as_reviewed(case: &Case) -> Vec<String> {
    let mut failures = Vec::new();
    let mut stray = snapshots(case);
    for to in written().filter(|to| case.reviewed || to.name == "events") {
        let name = format!("to-{}", to.name);
        let path = case.folder.join(&name);
        stray.remove(&name);
        let now = abridged(&translate(to.name, &case.input, &case.exit).bytes);
        if updating() {
            std::fs::write(&path, &now).unwrap();
            continue;
        }
        let name = format!("{}/{name}", case.name);
        match std::fs::read_to_string(&path) {
            Ok(reviewed) => failures.extend(difference(&name, &reviewed, &now)),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    for name in stray {
        if updating() {
            std::fs::remove_file(case.folder.join(name)).unwrap();
        } else {
            failures.push(format!("{}/{name}: transcripts/reviewed does not list it", case.name));
        }
    }
    failures
}

/// Whether snapshots are to be written instead of compared.
fn updating() -> bool {
    std::env::var_os("UPDATE_TRANSCRIPTS").is_some()
}

/// The names of the snapshots that a case has.
fn snapshots(case: &Case) -> BTreeSet<String> {
    let entries = std::fs::read_dir(&case.folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("to-")).collect()
}

/// The first line that differs from the reviewed output.
fn difference(name: &str, reviewed: &str, now: &str) -> Option<String> {
    if reviewed == now {
        return None;
    }
    let at = reviewed.lines().zip(now.lines()).take_while(|(one, two)| one == two).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
    let (one, two) = (line(reviewed), line(now));
    Some(format!("{name} line {}\n  reviewed: {one}\n  now:      {two}", at + 1))
}

fn check_finds_nothing(case: &Case) -> Vec<String> {
    let mut failures = Vec::new();
    for to in written().filter(|to| to.rules.is_some()) {
        let mut checker = Checker::new(to, Limits::default());
        checker.push(&translate(to.name, &case.input, &case.exit).bytes);
        let findings = checker.finish(&case.exit);
        if !findings.is_empty() {
            failures.push(format!("{} -> {}: {findings:#?}", case.name, to.name));
        }
    }
    failures
}

#[test]
fn every_reviewed_case_exists() {
    let existing: Vec<String> = Case::all().into_iter().map(|case| case.name).collect();
    let reviewed = Case::reviewed();
    let missing: Vec<_> = reviewed.iter().filter(|name| !existing.contains(name)).collect();
    assert!(missing.is_empty(), "transcripts/reviewed lists missing cases: {missing:?}");
}

/// A stream that is written in its own dialect does not count: its records are the agent's.
#[test]
fn every_kind_of_record_is_reviewed() {
    let mut seen = BTreeSet::new();
    let mut found = BTreeMap::new();
    for case in Case::all() {
        for to in written() {
            let now = translate(to.name, &case.input, &case.exit);
            if now.from().is_some_and(|from| from.name == to.name) {
                continue;
            }
            if case.reviewed {
                let path = case.folder.join(format!("to-{}", to.name));
                // Another test may be about to write the file.
                let reviewed = if updating() {
                    abridged(&now.bytes)
                } else {
                    std::fs::read_to_string(path).unwrap()
                };
                seen.extend(kinds(to.name, &reviewed).into_iter().map(|kind| (to.name, kind)));
            }
            for kind in kinds(to.name, &now.text()) {
                found.entry((to.name, kind)).or_insert_with(|| case.name.clone());
            }
        }
    }
    let missing = found.iter().filter(|(kind, _)| !seen.contains(kind));
    let missing: Vec<String> =
        missing.map(|((to, kind), case)| format!("{to}: {kind}, as in {case}")).collect();
    assert!(missing.is_empty(), "no reviewed snapshot has\n{}", missing.join("\n"));
}

/// The output with its longest lines shortened.
fn abridged(output: &[u8]) -> String {
    let text = String::from_utf8(output.to_vec()).unwrap();
    let mut short = String::new();
    for line in text.lines() {
        if line.len() <= LONGEST {
            short += line;
        } else {
            let start: String = line.chars().take(300).collect();
            let bits = line.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |bits, byte| {
                (bits ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            short += &format!("{start}… ({} bytes, fingerprint {bits:016x})", line.len());
        }
        short.push('\n');
    }
    short
}
