//! Files in TOML, the settings of `--config` and the description of an agent: an error shows the
//! place that has to be corrected.

use crate::support::{file, run};

/// Seen in practice: the excerpt was printed on one line, where its marks point at nothing.
#[test]
fn an_error_in_a_settings_file_shows_its_line() {
    let path = file("wrong-settings.toml", b"[permissions]\nmode = \"deny\"\nanswer-within = 3\n");
    let ran = run(&["run", "codex", "do it", "--config", &path], b"");
    let expected = "TOML parse error at line 3, column 1
  |
3 | answer-within = 3
  | ^^^^^^^^^^^^^
unknown field `answer-within`, expected one of `mode`, `answer-within-seconds`, `rules`
Correct the file: ";
    assert_eq!(ran.code, Some(2));
    let expected = format!("interlingua: {path}: {expected}");
    assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
}

#[test]
fn an_error_in_a_description_shows_its_line() {
    let path = file("wrong-agent.toml", b"command = \"sh\"\ndialect = \"claud\"\n");
    let ran = run(&["run", &path, "do it"], b"");
    let expected = "TOML parse error at line 2, column 11
  |
2 | dialect = \"claud\"
  |           ^^^^^^^
the dialect `claud` cannot be read; the dialects that can are claude, codex, ";
    assert_eq!(ran.code, Some(2));
    let expected = format!("interlingua: {path}: {expected}");
    assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
    let path = file("misspelt-key.toml", b"command = \"sh\"\npromt = \"stdin\"\n");
    let ran = run(&["run", &path, "do it"], b"");
    assert!(ran.stderr.contains("\n2 | promt = \"stdin\"\n  | ^^^^^\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("unknown field `promt`"), "{}", ran.stderr);
}
