//! Inputs and names that cannot be used, and their error messages.

use std::io::Write;

use crate::support::{TURN, command, file, ran, run};

#[test]
fn an_unknown_dialect_is_answered_with_similar_names() {
    let ran = run(&["translate", "--from", "claud", "--to", "text"], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr.contains("no dialect is called `claud`; did you mean `claude`?"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("`interlingua dialects` lists all"), "{}", ran.stderr);
    for command in [&["translate"][..], &["run", "codex", "do it"], &["chat", "codex"]] {
        let ran = run(&[command, &["--to", "ai_sdk"]].concat(), b"");
        assert!(ran.stderr.contains("did you mean `ai-sdk`?"), "{command:?}: {}", ran.stderr);
    }
    let ran = run(&["check", "--as", "codx"], b"");
    assert!(ran.stderr.contains("did you mean `codex`?"), "{}", ran.stderr);
}

#[test]
fn an_unknown_agent_is_answered_with_a_similar_name() {
    for command in ["run", "chat"] {
        let ran = run(&[command, "cladue", "do it"], b"");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command}");
        let expected = "no agent is called `cladue`; did you mean `claude`?";
        assert!(ran.stderr.contains(expected), "{command}: {}", ran.stderr);
    }
}

#[test]
fn a_dialect_that_is_only_written_is_not_read() {
    let ran = run(&["translate", "--from", "text", "--to", "text"], b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`text` can be written, but not read"), "{}", ran.stderr);
}

#[test]
fn a_dialect_that_is_only_read_is_not_written() {
    let ran = run(&["translate", "--to", "gemini"], b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`gemini` can be read, but not written"), "{}", ran.stderr);
}

#[test]
fn a_missing_file_is_named() {
    let ran = run(&["translate", "--to", "text", "/no/such/file.jsonl"], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("/no/such/file.jsonl does not exist"), "{}", ran.stderr);
}

#[test]
fn a_directory_is_not_read() {
    let ran = run(&["check", "--as", "codex", env!("CARGO_TARGET_TMPDIR")], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("is a directory"), "{}", ran.stderr);
}

#[test]
fn an_empty_input_is_a_failed_turn() {
    let ran = run(&["translate", "--to", "text"], b"");
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stdout, "— failed: the output ended without reporting how the turn ended\n");
    assert_eq!(ran.stderr, "interlingua: warning: the input is empty (<stdin>)\n");
}

#[test]
fn a_binary_file_is_rejected() {
    let bytes: Vec<u8> = (0..=255u8).cycle().take(100_000).collect();
    let path = file("binary", &bytes);
    for from in ["auto", "claude", "codex"] {
        let ran = run(&["translate", "--from", from, "--to", "text", &path], b"");
        assert_eq!(ran.code, Some(2), "{from}");
        assert!(ran.stderr.contains("is a binary file"), "{from}: {}", ran.stderr);
    }
}

#[test]
fn an_unrecognised_stream_needs_a_dialect_name() {
    let lines = "{\"some\":\"thing\"}\n".repeat(5000);
    let ran = run(&["translate", "--to", "text"], lines.as_bytes());
    assert_eq!(ran.code, Some(2));
    assert!(ran.stdout.starts_with("? line 1: "), "{}", ran.stdout);
    assert!(ran.stderr.contains("the dialect of <stdin> was not recognised"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--from NAME"), "{}", ran.stderr);
}

#[test]
fn a_stream_without_readable_lines_is_an_error() {
    let ran = run(&["translate", "--from", "codex", "--to", "text"], b"hello\n\nworld");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("nothing in <stdin> could be read as `codex`"), "{}", ran.stderr);
}

#[test]
fn one_bad_line_is_skipped() {
    let input = format!("hello\n{TURN}");
    let path = file("one_bad_line.jsonl", input.as_bytes());
    let ran = run(&["translate", "--to", "text", &path], b"");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("\nHello.\n"), "{}", ran.stdout);
    assert!(ran.stderr.starts_with(&format!("interlingua: warning: {path}:1: ")), "{}", ran.stderr);
}

#[test]
fn an_invalid_size_is_explained() {
    let ran = run(&["translate", "--to", "text", "--max-line", "12q"], b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("this unit is unknown"), "{}", ran.stderr);
}

#[test]
fn a_line_of_200_mb_is_reported_and_not_held_in_memory() {
    let arguments = ["translate", "--from", "codex", "--to", "text", "--max-line", "1MiB"];
    let mut child = command(&arguments).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (first, rest) = TURN.split_at(TURN.find('\n').unwrap() + 1);
    stdin.write_all(first.as_bytes()).unwrap();
    let chunk = vec![b'x'; 1_000_000];
    for _ in 0..200 {
        stdin.write_all(&chunk).unwrap();
    }
    // It has read everything but the contents of the pipe, and waits for more.
    if let Some(kilobytes) = peak_memory(child.id()) {
        assert!(kilobytes < 40_000, "{kilobytes} kB");
    }
    stdin.write_all(b"\n").unwrap();
    stdin.write_all(rest.as_bytes()).unwrap();
    drop(stdin);
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0));
    let too_long = "this line has 200000000 bytes, which is over the limit of 1048576";
    assert!(ran.stdout.contains(&format!("? line 2: {too_long}")), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nHello.\n"), "{}", ran.stdout);
    let advice = format!("<stdin>:2: {too_long}; raise it with --max-line");
    assert!(ran.stderr.contains(&advice), "{}", ran.stderr);
}

/// The peak memory of a process in kilobytes, if the system reports it.
pub(crate) fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
