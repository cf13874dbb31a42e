//! Reading the flat contract: the seed's own example, the names that Yume's programs use, and
//! streams that are passed through unchanged.

use interlingua::check::Checker;
use interlingua::event::{Data, Event, Outcome, ToolStatus};
use interlingua::framing::Limits;
use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source, dialect};

use crate::support::{self, translate_chunks};

/// The example of the seed, byte by byte.
const SEED: &str = r#"{"type":"system","subtype":"init","session_id":"sess_123","model":"gemini-1.5-pro","cwd":"/repo","permissionMode":"default","tools":["Read","Write","Edit","MultiEdit","Glob","Grep","LS","Bash"]}
{"type":"text","content":"Sure, I can help with that."}
{"type":"tool_use","id":"call_1","name":"Edit","input":{"file_path":"src/app.tsx","old_string":"foo","new_string":"bar"}}
{"type":"tool_result","tool_use_id":"call_1","content":"ok"}
{"type":"usage","input_tokens":120,"output_tokens":310}
{"type":"result","is_error":false,"subtype":"success","usage":{"input_tokens":120,"output_tokens":310}}
{"type":"message_stop"}
"#;

/// The well-formed events of a stream.
fn events(input: &str) -> Vec<Event<'static>> {
    let source = Source::named("yume").unwrap();
    let mut reader = Reader::new(source, ReadOptions::default()).unwrap();
    let mut events = Vec::new();
    let mut keep = |entry: EntryRef<'_>| events.push(entry.event.clone().into_owned());
    reader.push(input.as_bytes(), None, &mut keep).unwrap();
    reader.finish(&Exit::default(), None, &mut keep).unwrap();
    events
}

fn kinds(events: &[Event<'_>]) -> Vec<&'static str> {
    events.iter().map(|event| event.data.kind()).collect()
}

fn translate_to_yume(from: Option<&str>, input: &str) -> (String, Option<&'static str>) {
    let (from, to) = (from.map(support::dialect), support::dialect("yume"));
    let written = translate_chunks(from, to, [input.as_bytes()], &Exit::default());
    (written.text(), written.from().map(|dialect| dialect.name))
}

#[test]
fn the_example_of_the_seed_is_read() {
    let events = events(SEED);
    assert_eq!(
        kinds(&events),
        [
            "session_started",
            "turn_started",
            "block_started",
            "block_delta",
            "block_ended",
            "tool_started",
            "tool_ended",
            "usage",
            "turn_ended",
            "native",
            "session_ended",
        ]
    );
    let Data::TurnEnded(ended) = &events[8].data else { panic!("no end") };
    assert_eq!(ended.outcome, Outcome::Completed);
    let usage = ended.usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (Some(120), Some(310), None));
}

#[test]
fn the_example_of_the_seed_keeps_the_rules() {
    let mut checker = Checker::new(dialect::find("yume").unwrap(), Limits::default());
    checker.push(SEED.as_bytes());
    assert_eq!(checker.finish(&Exit::default()), []);
}

#[test]
fn the_same_protocol_is_passed_through_unchanged() {
    assert_eq!(translate_to_yume(Some("yume"), SEED), (SEED.to_owned(), Some("yume")));
    assert_eq!(translate_to_yume(None, SEED), (SEED.to_owned(), Some("yume")));
    let with_nested = SEED.replace(
        "{\"type\":\"usage\"",
        "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}}\n$\n{\"type\":\"usage\"",
    );
    assert_eq!(translate_to_yume(Some("yume"), &with_nested).0, with_nested);
}

#[test]
fn a_truncated_stream_is_ended_and_nothing_is_written_twice() {
    let cut: String = SEED.lines().take(3).map(|line| format!("{line}\n")).collect();
    let parallel = r#"{"type":"tool_use","id":"call_2","name":"Bash","input":{"command":"ls"}}"#;
    let input = format!("{cut}{parallel}\n{{\"type\":\"text\",\"content\":\"more\"}}\n");
    let (output, _) = translate_to_yume(Some("yume"), &input);
    assert!(output.starts_with(&input));
    let added: Vec<serde_json::Value> =
        output[input.len()..].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = added.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["tool_result", "tool_result", "error", "result", "message_stop"]);
    assert_eq!(added[0]["tool_use_id"], "call_1");
    assert_eq!(added[1]["tool_use_id"], "call_2");
}

#[test]
fn consecutive_deltas_are_one_block() {
    let events = events(concat!(
        r#"{"type":"thinking","is_thinking":true,"thought":"a"}"#,
        "\n",
        r#"{"type":"thinking","thinking":"b"}"#,
        "\n",
        r#"{"type":"text","content":"c"}"#,
        "\n",
        r#"{"type":"text","text":"d"}"#,
        "\n",
        r#"{"type":"result","is_error":false}"#,
    ));
    let mut blocks: Vec<String> = Vec::new();
    for event in &events {
        match &event.data {
            Data::BlockStarted(_) => blocks.push(String::new()),
            Data::BlockDelta(delta) => {
                blocks.last_mut().unwrap().push_str(&delta.text.to_plain());
            }
            _ => {}
        }
    }
    assert_eq!(blocks, ["ab", "cd"]);
}

/// The output of the only tool call of a stream, and its status.
fn answered(results: &str) -> (String, ToolStatus) {
    let call =
        r#"{"type":"tool_use","tool_id":"t","tool_name":"Bash","parameters":{"command":"x"}}"#;
    let events = events(&format!("{call}\n{results}\n{{\"type\":\"result\",\"is_error\":false}}"));
    let ended = events.iter().find_map(|event| match &event.data {
        Data::ToolEnded(ended) => Some(ended),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!((&*ended.call.to_plain(), &*ended.name.to_plain()), ("t", "Bash"));
    (ended.output.as_ref().unwrap().get().to_owned(), ended.status.clone())
}

#[test]
fn an_answer_has_many_forms() {
    let completed = |output: &str| (output.to_owned(), ToolStatus::Completed);
    assert_eq!(
        answered(r#"{"type":"tool_result","tool_use_id":"t","content":"a"}"#),
        completed(r#""a""#)
    );
    assert_eq!(
        answered(r#"{"type":"tool_result","tool_use_id":"t","content":{"output":"b"}}"#),
        completed(r#""b""#)
    );
    assert_eq!(
        answered(r#"{"type":"tool_result","tool_use_id":"t","content":{"content":"c"}}"#),
        completed(r#""c""#)
    );
    let blocks = r#"[{"type":"text","text":"d"}]"#;
    assert_eq!(
        answered(&format!(r#"{{"type":"tool_result","tool_id":"t","content":{blocks}}}"#)),
        completed(blocks)
    );
    assert_eq!(
        answered(r#"{"type":"tool_result","tool_use_id":"t","content":"e","is_error":true}"#),
        (r#""e""#.to_owned(), ToolStatus::Failed)
    );
}

#[test]
fn the_parts_of_an_answer_are_joined() {
    let part =
        r#"{"type":"tool_result","tool_use_id":"t","content":"one ","partial":true,"part":1}"#;
    let last = r#"{"type":"tool_result","tool_use_id":"t","content":"two"}"#;
    let joined = (r#""one two""#.to_owned(), ToolStatus::Completed);
    assert_eq!(answered(&format!("{part}\n{last}")), joined);
    assert_eq!(answered(part), (r#""one ""#.to_owned(), ToolStatus::Abandoned));
}

/// The outcome of the turn of a stream.
fn outcome(lines: &str) -> Outcome {
    let ended = events(lines).into_iter().find_map(|event| match event.data {
        Data::TurnEnded(ended) => Some(ended.outcome),
        _ => None,
    });
    ended.unwrap()
}

#[test]
fn a_turn_may_end_in_many_ways() {
    let ends = [
        (r#"{"type":"result","is_error":false}"#, Outcome::Completed),
        (r#"{"type":"result","is_error":true,"subtype":"cancelled"}"#, Outcome::Cancelled),
        (r#"{"type":"result","is_error":true,"subtype":"error_max_turns"}"#, Outcome::LimitReached),
        (r#"{"type":"result","is_error":true}"#, Outcome::Failed),
        (r#"{"type":"result"}"#, Outcome::Failed),
        (
            r#"{"type":"result","is_error":false,"subtype":"waiting_for_client"}"#,
            Outcome::WaitingForClient,
        ),
        ("{\"type\":\"interrupt\"}\n{\"type\":\"result\",\"is_error\":true}", Outcome::Cancelled),
        (r#"{"type":"message_stop"}"#, Outcome::Failed),
    ];
    for (lines, expected) in ends {
        assert_eq!(outcome(lines), expected, "{lines}");
    }
}

#[test]
fn usage_is_that_of_the_record_before_a_result_without_usage() {
    for usage in [
        r#"{"type":"usage","input_tokens":3,"output_tokens":4,"estimated":true}"#,
        r#"{"type":"usage","usage":{"input_tokens":3,"output_tokens":4,"estimated":true}}"#,
    ] {
        let events = events(&format!("{usage}\n{{\"type\":\"result\",\"is_error\":false}}"));
        let usage = events.iter().find_map(|event| match &event.data {
            Data::TurnEnded(ended) => ended.usage.clone(),
            _ => None,
        });
        let usage = usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.estimated), (Some(3), Some(4), true));
    }
}

#[test]
fn nested_records_are_read_as_claude_writes_them() {
    let events = events(concat!(
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#,
        "\n",
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#,
        "\n",
        r#"{"type":"result","is_error":false}"#,
    ));
    assert_eq!(
        kinds(&events),
        [
            "session_started",
            "turn_started",
            "block",
            "tool_started",
            "tool_ended",
            "turn_ended",
            "session_ended",
        ]
    );
}

#[test]
fn an_unknown_record_is_kept() {
    let events = events(concat!(
        r#"{"type":"telepathy","x":1}"#,
        "\n",
        r#"{"type":"system","subtype":"mood"}"#,
        "\n$\n",
        r#"{"type":"error","error":{"message":"bad"},"code":429}"#,
        "\n",
        r#"{"type":"system","subtype":"error","message":"no model is set"}"#,
    ));
    assert_eq!(
        kinds(&events)[..6],
        ["unknown", "unknown", "native", "error", "error", "session_started"]
    );
    let Data::Error(error) = &events[3].data else { panic!("no error") };
    assert_eq!((error.http_status, &*error.message.to_plain()), (Some(429), "bad"));
}

#[test]
fn claude_and_gemini_are_not_mistaken_for_it() {
    let claude = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/","permissionMode":"default","tools":[],"uuid":"u"}"#;
    assert_eq!(translate_to_yume(None, claude).1, Some("claude"));
    let gemini =
        r#"{"type":"tool_use","timestamp":"t","tool_name":"x","tool_id":"y","parameters":{}}"#;
    assert_eq!(translate_to_yume(None, gemini).1, Some("gemini"));
}
