//! `check`: findings with their line and their rule.

use crate::support::{TURN, file, run, unended};

#[test]
fn a_valid_stream_has_no_findings() {
    let ran = run(&["check", "--as", "codex"], TURN.as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert_eq!(ran.stderr, "<stdin> follows all rules of `codex`\n");
}

#[test]
fn a_finding_names_its_line_and_its_rule() {
    let (first, rest) = TURN.split_at(TURN.find('\n').unwrap() + 1);
    let path = file("one_finding.jsonl", format!("{first}\u{1b}oops\n{rest}").as_bytes());
    let ran = run(&["check", "--as", "codex", &path], b"");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains(&format!("{path}:2: only-records: ")), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    assert!(ran.stderr.contains("finding"), "{}", ran.stderr);
}

#[test]
fn a_turn_without_an_end_is_a_finding() {
    let ran = run(&["check", "--as", "codex", "--exit-status", "1"], unended().as_bytes());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.starts_with("<stdin>:3: turn-not-ended: "), "{}", ran.stdout);
}

#[test]
fn a_dialect_must_be_named() {
    assert_eq!(run(&["check"], b"").code, Some(2));
    let ran = run(&["check", "--as", "text"], b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`text` has no rules to check"), "{}", ran.stderr);
}

#[test]
fn check_accepts_the_output_of_translate() {
    for dialect in interlingua::dialect::ALL {
        if dialect.encoder.is_none() || dialect.rules.is_none() {
            continue;
        }
        let written = run(&["translate", "--to", dialect.name], TURN.as_bytes());
        assert_eq!((written.code, written.stderr.as_str()), (Some(0), ""), "{}", dialect.name);
        assert!(!written.stdout.is_empty(), "{}", dialect.name);
        let checked = run(&["check", "--as", dialect.name], written.stdout.as_bytes());
        assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), ""), "{}", dialect.name);
    }
}
