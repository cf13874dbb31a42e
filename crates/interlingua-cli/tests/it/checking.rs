//! `check`: findings with their line and their rule.

use crate::support::{TURN, file, run, unended};

#[test]
fn a_good_stream_has_no_findings() {
    let ran = run(&["check", "--as", "codex"], TURN.as_bytes());
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    assert_eq!(ran.told, "<stdin> keeps all rules of `codex`\n");
}

#[test]
fn a_finding_names_its_line_and_its_rule() {
    let (first, rest) = TURN.split_at(TURN.find('\n').unwrap() + 1);
    let path = file("one_finding.jsonl", format!("{first}\u{1b}oops\n{rest}").as_bytes());
    let ran = run(&["check", "--as", "codex", &path], b"");
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(&format!("{path}:2: only-records: ")), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "{}", ran.out);
    assert!(ran.told.contains("finding"), "{}", ran.told);
}

#[test]
fn a_turn_without_an_end_is_a_finding() {
    let ran = run(&["check", "--as", "codex", "--exit-status", "1"], unended().as_bytes());
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.starts_with("<stdin>:3: turn-not-ended: "), "{}", ran.out);
}

#[test]
fn a_dialect_must_be_named() {
    assert_eq!(run(&["check"], b"").code, Some(2));
    let ran = run(&["check", "--as", "text"], b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.told.contains("`text` has no rules to check"), "{}", ran.told);
}

#[test]
fn what_translate_writes_check_accepts() {
    for dialect in interlingua::dialect::ALL {
        if dialect.encoder.is_none() || dialect.rules.is_none() {
            continue;
        }
        let written = run(&["translate", "--to", dialect.name], TURN.as_bytes());
        assert_eq!((written.code, written.told.as_str()), (Some(0), ""), "{}", dialect.name);
        assert!(!written.out.is_empty(), "{}", dialect.name);
        let checked = run(&["check", "--as", dialect.name], written.out.as_bytes());
        assert_eq!((checked.code, checked.out.as_str()), (Some(0), ""), "{}", dialect.name);
    }
}
