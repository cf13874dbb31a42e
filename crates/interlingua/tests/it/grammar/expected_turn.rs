//! A live agent owes a turn for every prompt, and none while it waits for one.

use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};

/// The kinds of the events of a session.
fn kinds(
    dialect: &str,
    session: impl FnOnce(&mut Reader, &mut dyn FnMut(&mut Reader, &str)),
) -> Vec<&'static str> {
    let mut reader = Reader::new(Source::named(dialect).unwrap(), ReadOptions::default()).unwrap();
    let mut kinds = Vec::new();
    let mut push = |reader: &mut Reader, line: &str| {
        let mut keep = |entry: EntryRef<'_>| kinds.push(entry.event.data.kind());
        reader.push(format!("{line}\n").as_bytes(), None, &mut keep).unwrap();
    };
    session(&mut reader, &mut push);
    let exit = Exit { code: Some(0), ..Exit::default() };
    let mut keep = |entry: EntryRef<'_>| kinds.push(entry.event.data.kind());
    reader.finish(&exit, None, &mut keep).unwrap();
    kinds
}

const STARTED: &str = r#"{"type":"thread.started","thread_id":"t1"}"#;
const TURN: [&str; 2] = [r#"{"type":"turn.started"}"#, r#"{"type":"turn.completed"}"#];

#[test]
fn an_agent_without_a_prompt_owes_no_turn() {
    let kinds = kinds("codex", |reader, push| {
        reader.expect_turn(false);
        push(reader, STARTED);
    });
    assert_eq!(kinds, ["session_started", "session_ended"]);
}

/// An agent that dies between a prompt and the start of its turn has not completed it.
#[test]
fn a_second_prompt_is_owed_a_turn_of_its_own() {
    let kinds = kinds("codex", |reader, push| {
        push(reader, STARTED);
        TURN.iter().for_each(|line| push(reader, line));
        reader.expect_turn(true);
    });
    let turn = ["turn_started", "turn_ended"];
    assert_eq!(kinds, [&["session_started"], &turn[..], &turn, &["session_ended"]].concat());
}

/// Claude Code 2.1.325 reports a change of the model between two turns in the user's place. It
/// once began a turn that never ended, and every later prompt waited for it.
#[test]
fn a_change_of_the_model_between_turns_begins_no_turn() {
    let kinds = kinds("claude", |reader, push| {
        reader.expect_turn(false);
        push(
            reader,
            r#"{"type":"user","message":{"role":"user","content":"<local-command-stdout>Set model to `m`</local-command-stdout>"},"isReplay":true}"#,
        );
    });
    assert_eq!(kinds, ["session_started", "notice", "session_ended"]);
}
