//! A turn that failed because the agent is not signed in: the user learns how to sign in at a shell.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{Ran, run};

/// What Claude Code 2.1.325 printed without a sign-in, as a program that plays it.
fn unauthenticated_claude(name: &str) -> String {
    let transcript = concat!(env!("CARGO_MANIFEST_DIR"), "/../../transcripts/claude/auth-missing");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let script = format!("#!/bin/sh\nread prompt\ncat {transcript}/input.jsonl\ncat > /dev/null\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    program.display().to_string()
}

const ADVICE: &str = "interlingua: Claude Code is not signed in, or its key was not accepted: run `claude auth login`, or set ANTHROPIC_API_KEY\n";

/// Seen in practice: "Please run /login", which works only on Claude's own screen.
#[test]
fn a_failed_sign_in_is_followed_by_advice_that_works_at_a_shell() {
    let program = unauthenticated_claude("claude-without-sign-in");
    for dialect in ["text", "events"] {
        let Ran { code, stdout, stderr } =
            run(&["run", "claude", "do it", "--program", &program, "--to", dialect], b"");
        assert_eq!((code, stderr.as_str()), (Some(1), ADVICE), "{dialect}");
        assert!(stdout.contains("/login"), "the words of the agent are kept: {stdout}");
    }
    let chat = ["chat", "claude", "--program", &program, "--to", "text"];
    let ran = run(&chat, b"{\"prompt\":\"do it\"}\n");
    assert_eq!(ran.stderr, ADVICE);
}
