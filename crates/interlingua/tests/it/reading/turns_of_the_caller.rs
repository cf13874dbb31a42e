//! A host that runs the tools of a model API begins and ends the turns itself, and each response is
//! a stream of its own.

use interlingua::event::{
    Data, Event, Outcome, SessionStarted, ToolEnded, TurnEnded, TurnStarted, Withdrawn,
};
use interlingua::json::Text;
use interlingua::{Entry, EntryRef, Exit, ReadOptions, Reader, Source, StreamEnd, TurnOwner};
use serde_json::{Value, json};

/// A host, with the entries of its session.
struct Host {
    reader: Reader,
    entries: Vec<Entry>,
    dialect: &'static str,
}

impl Host {
    fn new(dialect: &'static str) -> Self {
        let options = ReadOptions { turns: TurnOwner::Caller, ..ReadOptions::default() };
        let reader = Reader::new(Source::named(dialect).unwrap(), options).unwrap();
        let mut host = Self { reader, entries: Vec::new(), dialect };
        host.emit(SessionStarted { id: Some(Text::plain("s")), ..SessionStarted::default() });
        host.emit(TurnStarted::default());
        host
    }

    fn emit<'a>(&mut self, data: impl Into<Data<'a>>) {
        let mut sink = |entry: EntryRef<'_>| self.entries.push(entry.to_owned());
        let Ok(_) = self.reader.emit(Event::new(data), None, &mut sink);
    }

    fn read(&mut self, response: &str) {
        let mut sink = |entry: EntryRef<'_>| self.entries.push(entry.to_owned());
        let Ok(_) = self.reader.push(response.as_bytes(), None, &mut sink);
    }

    fn end(&mut self) {
        let mut sink = |entry: EntryRef<'_>| self.entries.push(entry.to_owned());
        let Ok(_) = self.reader.end_stream(StreamEnd::TurnGoesOn, None, &mut sink);
    }

    /// Ends the response; the next one follows.
    fn next(&mut self) {
        self.end();
        self.reader.next_stream(Source::named(self.dialect).unwrap()).unwrap();
    }

    fn finish(mut self) -> Vec<Value> {
        self.emit(TurnEnded { outcome: Outcome::Completed, ..TurnEnded::default() });
        let mut sink = |entry: EntryRef<'_>| self.entries.push(entry.to_owned());
        let Ok(report) = self.reader.finish(&Exit::default(), None, &mut sink);
        let events = report.account.events;
        assert!(events.add_up(), "{events:?}");
        let entries = self.entries.iter();
        entries.map(|entry| serde_json::to_value(entry).unwrap()).collect()
    }
}

fn kinds(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["type"].as_str().unwrap()).collect()
}

fn of_kind<'e>(entries: &'e [Value], kind: &str) -> Vec<&'e Value> {
    entries.iter().filter(|entry| entry["type"] == kind).collect()
}

/// The beginning of a response with a text and a call whose input has not ended.
fn beginning(message: &str, call: &str, text: &str, tool: &str) -> String {
    sse(&[
        json!({"type": "message_start", "message": {"id": message, "model": "m", "usage": {"input_tokens": 5}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": call, "name": tool, "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"x\":"}}),
    ])
}

fn rest() -> String {
    sse(&[
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "1}"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ])
}

fn sse(records: &[Value]) -> String {
    let event =
        |record: &Value| format!("event: {}\ndata: {record}\n\n", record["type"].as_str().unwrap());
    records.iter().map(event).collect()
}

#[test]
fn a_turn_has_several_responses() {
    let mut host = Host::new("anthropic-api");
    host.read(&(beginning("m1", "c1", "I look.", "Read") + &rest()));
    let end = host.reader.take_response_end().unwrap();
    assert_eq!(end.outcome, Outcome::WaitingForClient);
    assert_eq!(host.reader.take_response_end(), None);
    host.emit(ToolEnded { call: Text::plain("c1"), ..ToolEnded::default() });
    host.next();
    let text = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Done."}});
    host.read(&sse(&[
        json!({"type": "message_start", "message": {"id": "m2", "model": "m"}}),
        text,
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ]));
    assert_eq!(host.reader.take_response_end().unwrap().outcome, Outcome::Completed);
    let entries = host.finish();
    let first = ["session_started", "turn_started", "session_updated", "message_started"];
    let call = ["tool_started", "tool_input_delta", "tool_input_delta", "native", "message_ended"];
    let expected = [
        &first[..],
        &["block_started", "block_delta", "block_ended"],
        &call,
        &["tool_input", "tool_ended", "message_started", "block_started", "block_delta"],
        &["block_ended", "native", "message_ended", "turn_ended", "session_ended"],
    ];
    assert_eq!(kinds(&entries), expected.concat());
    let started = of_kind(&entries, "tool_started")[0];
    assert_eq!((&started["executor"], &started["name"]), (&json!("agent"), &json!("Read")));
    assert_eq!(of_kind(&entries, "session_updated")[0]["model"], "m");
    assert_eq!(of_kind(&entries, "tool_input")[0]["input"], json!({"x": 1}));
}

/// A call that is not complete must not look like one that will run.
#[test]
fn the_input_of_a_call_is_emitted_when_its_response_has_ended() {
    let mut host = Host::new("anthropic-api");
    let response = beginning("m1", "c1", "I look.", "Read") + &rest();
    let (before, end) = response.split_at(response.rfind("event: message_stop").unwrap());
    host.read(before);
    assert!(!host.entries.iter().any(|entry| matches!(entry.event.data, Data::ToolInput(_))));
    host.read(end);
    assert!(host.entries.iter().any(|entry| matches!(entry.event.data, Data::ToolInput(_))));
}

#[test]
fn a_call_that_is_generated_again_keeps_its_id() {
    let mut host = Host::new("anthropic-api");
    host.read(&beginning("m1", "c1", "I lo", "Read"));
    host.end();
    assert_eq!(host.reader.take_response_end(), None);
    host.emit(Withdrawn::default());
    host.next();
    host.read(&(beginning("m2", "c9", "I look.", "Read") + &rest()));
    host.emit(ToolEnded { call: Text::plain("c1"), ..ToolEnded::default() });
    let entries = host.finish();
    assert_eq!(of_kind(&entries, "withdrawn")[0]["blocks"][0]["text"], "I lo");
    let about_calls: Vec<_> = entries
        .iter()
        .filter(|entry| entry["type"].as_str().unwrap().starts_with("tool_"))
        .map(|entry| (entry["type"].as_str().unwrap(), entry["call"].as_str().unwrap()))
        .collect();
    let expected = [
        ("tool_started", "c1"),
        ("tool_input_delta", "c1"),
        ("tool_input", "c1"),
        ("tool_ended", "c1"),
    ];
    assert_eq!(about_calls, expected);
    assert_eq!(of_kind(&entries, "tool_ended")[0]["status"], "completed");
}

#[test]
fn a_call_that_is_not_generated_again_is_abandoned() {
    let mut host = Host::new("anthropic-api");
    host.read(&beginning("m1", "c1", "I lo", "Read"));
    host.next();
    // Another tool, under the same id.
    host.read(&(beginning("m2", "c1", "I look.", "Bash") + &rest()));
    host.emit(ToolEnded { call: Text::plain("c1-2"), ..ToolEnded::default() });
    let entries = host.finish();
    let ended = of_kind(&entries, "tool_ended");
    let (abandoned, answered) = (ended[0], ended[1]);
    assert_eq!((&abandoned["call"], &abandoned["status"]), (&json!("c1"), &json!("abandoned")));
    assert_eq!((&answered["call"], &answered["name"]), (&json!("c1-2"), &json!("Bash")));
}

#[test]
fn an_error_in_a_response_is_left_to_the_host() {
    let mut host = Host::new("anthropic-api");
    host.read(&beginning("m1", "c1", "I lo", "Read"));
    host.read("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n");
    let end = host.reader.take_response_end().unwrap();
    assert_eq!((end.outcome, end.cause), (Outcome::Failed, Some(Text::plain("Overloaded"))));
    host.next();
    host.read(&(beginning("m2", "c2", "I look.", "Read") + &rest()));
    host.emit(ToolEnded { call: Text::plain("c1"), ..ToolEnded::default() });
    let entries = host.finish();
    assert!(of_kind(&entries, "error").is_empty());
    assert_eq!(of_kind(&entries, "tool_ended").len(), 1);
}

#[test]
fn calls_without_ids_are_numbered_in_the_session() {
    let mut host = Host::new("gemini-api");
    let call =
        |name: &str| json!({"functionCall": {"name": name, "args": {"todos": [{"content": "A"}]}}});
    let chunk = |parts: &[Value], end: Value| {
        let candidate = json!({"content": {"parts": parts, "role": "model"}, "finishReason": end});
        format!("data: {}\n\n", json!({"candidates": [candidate]}))
    };
    host.read(&chunk(&[call("Read"), call("TodoWrite")], Value::Null));
    host.next();
    host.read(&chunk(&[call("Read"), call("TodoWrite")], json!("STOP")));
    for id in ["call_gemini_1", "call_gemini_2"] {
        host.emit(ToolEnded { call: Text::plain(id), ..ToolEnded::default() });
    }
    host.next();
    host.read(&chunk(&[call("LS")], json!("STOP")));
    host.emit(ToolEnded { call: Text::plain("call_gemini_3"), ..ToolEnded::default() });
    let entries = host.finish();
    let ids = |kind| -> Vec<_> {
        of_kind(&entries, kind).into_iter().map(|entry| entry["call"].as_str().unwrap()).collect()
    };
    let all = ["call_gemini_1", "call_gemini_2", "call_gemini_3"];
    assert_eq!(
        (ids("tool_started"), ids("tool_input"), ids("tool_ended")),
        (all.into(), all.into(), all.into())
    );
    assert_eq!(ids("plan_updated"), ["call_gemini_2"]);
}

#[test]
fn an_answer_that_was_not_streamed_is_emitted_in_pieces() {
    let mut host = Host::new("openai-chat");
    let text = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. ".repeat(20);
    let message = json!({"role": "assistant", "content": text});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    host.read(&json!({"id": "c", "object": "chat.completion", "choices": [choice]}).to_string());
    host.end();
    assert_eq!(host.reader.take_response_end().unwrap().outcome, Outcome::Completed);
    let entries = host.finish();
    let deltas = of_kind(&entries, "block_delta");
    assert!(deltas.len() > 5 && deltas.iter().all(|it| it["text"].as_str().unwrap().len() <= 200));
    let joined: String = deltas.iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(joined, text);
}
