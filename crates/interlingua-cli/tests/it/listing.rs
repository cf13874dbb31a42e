//! What there is to know before one starts.

use crate::support::run;

#[test]
fn all_dialects_are_listed() {
    let ran = run(&["dialects"], b"");
    assert_eq!(ran.code, Some(0));
    let names: Vec<&str> =
        ran.out.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    let all: Vec<&str> = interlingua::dialect::ALL.iter().map(|dialect| dialect.name).collect();
    assert_eq!(names, all);
}

#[test]
fn a_dialect_is_told_by_any_of_its_names() {
    let ran = run(&["dialects", "claude-code"], b"");
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("name         claude\n"), "{}", ran.out);
    assert!(ran.out.contains("also called  claude-code"), "{}", ran.out);
    assert!(ran.out.contains("framing      lines"), "{}", ran.out);
}

#[test]
fn shells_are_told_the_names_of_dialects() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&["completions", shell], b"");
        assert_eq!(ran.code, Some(0));
        assert!(ran.out.contains("interlingua") && ran.out.contains("gemini"), "{shell}");
    }
}

#[test]
fn help_has_examples() {
    for arguments in [&["--help"][..], &["translate", "--help"], &["check", "--help"]] {
        let ran = run(arguments, b"");
        assert_eq!(ran.code, Some(0));
        assert!(ran.out.contains("Example"), "{arguments:?}");
    }
    assert!(run(&["--version"], b"").out.starts_with("interlingua "));
}
