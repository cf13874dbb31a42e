//! A host that answers the calls of the client while the stream is read: the turn is suspended, and goes on
//! in the same stream or in the next one.

use interlingua::event::{Event, ToolEnded};
use interlingua::json::{Json, Text};
use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source, StreamEnd};
use serde_json::{Value, json};

/// A session whose stream a test plays.
struct Played {
    reader: Reader,
    events: Vec<Value>,
}

impl Played {
    fn new() -> Self {
        let options = ReadOptions { id_seed: Some(7), ..ReadOptions::default() };
        let mut reader = Reader::new(Source::named("giselle").unwrap(), options).unwrap();
        reader.suspend_turns();
        Self { reader, events: Vec::new() }
    }

    fn print(&mut self, records: &[Value]) {
        let Self { reader, events } = self;
        let mut keep =
            |entry: EntryRef<'_>| events.push(serde_json::to_value(entry.event).unwrap());
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        reader.push(lines.as_bytes(), None, &mut keep).unwrap();
    }

    fn answer(&mut self, call: &str) {
        let Self { reader, events } = self;
        let mut keep =
            |entry: EntryRef<'_>| events.push(serde_json::to_value(entry.event).unwrap());
        let output = Json::from_text(r#"{"fields":[]}"#.to_owned());
        let call = Text::from(call.to_owned());
        let ended = Event::new(ToolEnded { call, output, ..ToolEnded::default() });
        reader.emit(ended, None, &mut keep).unwrap();
    }

    /// The stream ends, and the turn goes on in the next one.
    fn reconnect(&mut self) {
        let Self { reader, events } = self;
        let mut keep =
            |entry: EntryRef<'_>| events.push(serde_json::to_value(entry.event).unwrap());
        reader.end_stream(StreamEnd::TurnGoesOn, None, &mut keep).unwrap();
        reader.next_stream(Source::named("giselle").unwrap()).unwrap();
    }

    /// The kinds of all events.
    fn finish(self) -> Vec<(String, Value)> {
        let Self { reader, mut events } = self;
        let mut keep =
            |entry: EntryRef<'_>| events.push(serde_json::to_value(entry.event).unwrap());
        reader.finish(&Exit::default(), None, &mut keep).unwrap();
        let of = |event: Value| (event["type"].as_str().unwrap().to_owned(), event);
        events.into_iter().map(of).collect()
    }
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text, "delta": true})
}

fn asked() -> Value {
    json!({"type": "snapshot_request", "requestId": "r1", "instruction": "all"})
}

fn kinds(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn a_turn_goes_on_in_the_same_stream() {
    let mut played = Played::new();
    played.print(&[json!({"type": "init", "session_id": "s"}), said("I"), asked()]);
    played.answer("r1");
    played.print(&[said("Done."), json!({"type": "result", "status": "success"})]);
    let events = played.finish();
    let expected = [
        "session_started",
        "turn_started",
        "block_started",
        "block_delta",
        "block_ended",
        "tool_started",
        "suspended",
        "tool_ended",
        "block_started",
        "block_delta",
        "block_ended",
        "native",
        "turn_ended",
        "session_ended",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[7].1["status"], "completed", "the decoder abandons it");
}

#[test]
fn a_turn_goes_on_in_the_next_stream() {
    let mut played = Played::new();
    played.print(&[asked()]);
    played.reconnect();
    played.answer("r1");
    played.print(&[json!({"type": "init", "session_id": "s"}), said("Done.")]);
    let events = played.finish();
    let kinds = kinds(&events);
    for once in ["turn_started", "tool_started", "suspended", "tool_ended", "turn_ended"] {
        assert_eq!(kinds.iter().filter(|kind| **kind == once).count(), 1, "{once}: {kinds:?}");
    }
    let ended = &events[events.len() - 2].1;
    assert_eq!((&ended["type"], &ended["outcome"]), (&json!("turn_ended"), &json!("completed")));
}

/// Gemini CLI calls the tool of an MCP server, which asks the client. Writers rely on no other calls being
/// open while a turn waits.
#[test]
fn a_call_of_the_agent_does_not_keep_the_turn_from_being_suspended() {
    let mut played = Played::new();
    let call = json!({"type": "tool_use", "tool_name": "getFormSnapshot", "tool_id": "t1", "parameters": {}});
    played.print(&[call, asked()]);
    played.answer("r1");
    let answered =
        json!({"type": "tool_result", "tool_id": "t1", "status": "success", "output": "{}"});
    played.print(&[answered, said("Done.")]);
    let events = played.finish();
    let suspended = kinds(&events).iter().filter(|kind| **kind == "suspended").count();
    let ended = |id: &str| {
        let ended =
            events.iter().filter(|(kind, event)| kind == "tool_ended" && event["call"] == id);
        ended.map(|(_, event)| event["status"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (suspended, ended("t1"), ended("r1")),
        (1, vec![json!("abandoned")], vec![json!("completed")])
    );
}

/// The agent makes a call of its own beside one of the client, and the stream ends while the client's waits.
#[test]
fn a_call_that_waits_is_not_abandoned_by_what_follows_it() {
    let mut played = Played::new();
    let call =
        json!({"type": "tool_use", "tool_name": "read_file", "tool_id": "t1", "parameters": {}});
    let result = json!({"type": "tool_result", "tool_id": "t1", "status": "success", "output": ""});
    played.print(&[asked(), call, result]);
    played.reconnect();
    played.answer("r1");
    played.print(&[said("Done.")]);
    let events = played.finish();
    let of_client =
        |(kind, event): &&(String, Value)| kind == "tool_ended" && event["call"] == "r1";
    let statuses: Vec<_> =
        events.iter().filter(of_client).map(|it| it.1["status"].clone()).collect();
    assert_eq!(statuses, ["completed"], "{events:?}");
    assert!(!events.iter().any(|(_, event)| event["name"] == "late_answer"), "{events:?}");
}
