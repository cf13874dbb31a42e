//! `dialects`, `completions` and `--help`.

use crate::support::run;

#[test]
fn all_dialects_are_listed() {
    let ran = run(&["dialects"], b"");
    assert_eq!(ran.code, Some(0));
    let list = ran.stdout.lines().skip(1).take_while(|line| !line.is_empty());
    let rows = list.filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    let all: Vec<&str> = interlingua::dialect::ALL.iter().map(|dialect| dialect.name).collect();
    assert_eq!(names, all);
}

#[test]
fn a_dialect_is_shown_by_any_of_its_names() {
    let ran = run(&["dialects", "claude-code"], b"");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("name            claude\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("also called     claude-code"), "{}", ran.stdout);
    assert!(ran.stdout.contains("framing         lines"), "{}", ran.stdout);
}

#[test]
fn completion_scripts_contain_dialect_names() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&["completions", shell], b"");
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("interlingua") && ran.stdout.contains("gemini"), "{shell}");
    }
}

#[test]
fn help_has_examples() {
    for arguments in [&["--help"][..], &["translate", "--help"], &["check", "--help"]] {
        let ran = run(arguments, b"");
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("Example"), "{arguments:?}");
    }
    assert!(run(&["--version"], b"").stdout.starts_with("interlingua "));
}

#[test]
fn the_list_of_dialects_fits_a_terminal() {
    let ran = run(&["dialects"], b"");
    let longest = ran.stdout.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest <= 80), "{}", ran.stdout);
}
