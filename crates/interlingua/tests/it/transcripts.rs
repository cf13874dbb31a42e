//! Every transcript, through every writer: as reviewed, with nothing for `check` to find.
//!
//! Each folder of an agent is two tests, and each test reports all cases of its folder that fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use interlingua::check::Checker;
use interlingua::framing::Limits;

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
    claude = "claude",
    claude_2_1_197 = "claude-2.1.197",
    codex = "codex",
    codex_app_server = "codex-app-server",
    copilot = "copilot",
    gemini = "gemini",
    giselle = "giselle",
    goose = "goose",
    opencode = "opencode",
    pi = "pi",
    qwen = "qwen",
    yume = "yume",
}

/// How long a line of a snapshot may be.
const LONGEST: usize = 2000;

/// Runs a check on every case of an agent, and fails with what it found in all of them.
fn in_every_case(agent: &str, check: fn(&Case) -> Vec<String>) {
    let mut failures = Vec::new();
    for case in Case::of(agent) {
        let checked = catch_unwind(AssertUnwindSafe(|| check(&case)));
        failures.extend(checked.unwrap_or_else(|_| vec![format!("{}: it panicked", case.name)]));
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn as_reviewed(case: &Case) -> Vec<String> {
    let update = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    let mut failures = Vec::new();
    for to in written() {
        let path = case.folder.join(format!("to-{}", to.name));
        let now = abridged(&translate(to.name, &case.input, &case.exit).bytes);
        if update {
            std::fs::write(&path, &now).unwrap();
            continue;
        }
        let name = format!("{}/to-{}", case.name, to.name);
        match std::fs::read_to_string(&path) {
            Ok(reviewed) => failures.extend(difference(&name, &reviewed, &now)),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    failures
}

/// The first line that is not as it was reviewed.
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

/// The output with its longest lines cut.
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
