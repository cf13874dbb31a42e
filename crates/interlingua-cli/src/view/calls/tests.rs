use super::*;
use crate::view::style::Palette;

const DETAIL: Detail<'_> =
    Detail { columns: 60, everything: false, compact: false, folder: "/srv/project" };

fn call(kind: ToolKind, input: &str) -> Call {
    let name = Text::plain("tool");
    let mut call = Call::new(&name, &name, &kind, Instant::now());
    call.set_input(&Json::from_text(input.to_owned()).unwrap(), DETAIL);
    call
}

fn answered(call: Call, ended: ToolEnded<'_>, output: &str, detail: Detail<'_>) -> Vec<String> {
    let now = call.started + Duration::from_millis(2_300);
    let output = Some(Json::from(&Text::from(output.to_owned())));
    let lines = call.ended(&ToolEnded { output, ..ended }, now, detail);
    lines.iter().map(|line| line.to_terminal(Palette::None)).collect()
}

#[test]
fn a_call_that_succeeded_shows_the_beginning_of_its_output() {
    let output = "1\n2\n3\n4\n5\n";
    let run = || call(ToolKind::Execute, r#"{"command":"/bin/bash -lc 'ls -l'"}"#);
    assert_eq!(
        answered(run(), ToolEnded::default(), output, DETAIL),
        ["✓ Run ls -l · 2 s", "  1", "  2", "  3", "  … +2 lines"]
    );
    let everything = Detail { everything: true, ..DETAIL };
    assert_eq!(answered(run(), ToolEnded::default(), output, everything).len(), 6);
    let compact = Detail { compact: true, ..DETAIL };
    assert_eq!(answered(run(), ToolEnded::default(), output, compact).len(), 1);
}

#[test]
fn a_call_that_failed_shows_the_end_of_its_output() {
    let output: String = (0..30).map(|line| format!("{line}\n")).collect();
    let failed =
        ToolEnded { status: ToolStatus::Failed, exit_code: Some(2), ..ToolEnded::default() };
    let run = call(ToolKind::Execute, r#"{"command":"make"}"#);
    let lines = answered(run, failed, &output, DETAIL);
    assert_eq!(lines[..2], ["✗ Run make · exit code 2 · 2 s", "  … +22 lines"]);
    assert_eq!((lines.len(), &*lines[9]), (10, "  29"));
}

#[test]
fn a_denial_is_one_line_with_its_reason() {
    let mut run = call(ToolKind::Execute, r#"{"command":"rm x"}"#);
    run.deny(Some(&Text::plain("not\nhere")));
    let denied = ToolEnded { status: ToolStatus::Failed, ..ToolEnded::default() };
    assert_eq!(
        answered(run, denied, "text for the model", DETAIL),
        ["⊘ Run rm x · denied: not here · 2 s"]
    );
}

#[test]
fn paths_are_relative_to_the_working_folder() {
    let read = call(ToolKind::Read, r#"{"file_path":"/srv/project/src/a.rs"}"#);
    let lines = answered(read, ToolEnded::default(), "a\nb", DETAIL);
    assert_eq!(lines, ["✓ Read src/a.rs · 2 lines · 2 s"]);
    assert_eq!(relative("/srv/projects/a", "/srv/project"), "/srv/projects/a");
    assert_eq!(relative("/a", ""), "/a");
}

#[test]
fn only_a_whole_quoted_command_is_taken_out_of_its_shell() {
    assert_eq!(without_shell("/bin/bash -lc ls"), "ls");
    assert_eq!(without_shell("bash -lc 'a b'"), "a b");
    for command in ["bash -lc 'a' 'b'", "bash -lc a$b", "bash -lc \"a b\"", "ls 'a'"] {
        assert_eq!(without_shell(command), command);
    }
}

#[test]
fn a_hidden_character_of_a_command_is_seen() {
    let run = call(ToolKind::Execute, "{\"command\":\"ls\u{202e}\\nrm x\"}");
    let lines = answered(run, ToolEnded::default(), "", DETAIL);
    assert_eq!(lines, ["✓ Run ls\\u{202e} ⏎ rm x · 2 s"]);
}
