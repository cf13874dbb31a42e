//! A call of a client's tool is one call, whether the agent's stream or the server of these tools
//! reports it first, and whether or not the server knows the agent's id of it.

use interlingua::dialect::{self, EncodeOptions};
use interlingua::event::{
    Data, Event, Outcome, ToolEnded, ToolStarted, ToolStatus, TurnEnded, TurnStarted,
};
use interlingua::json::{Json, Text};
use interlingua::{
    ClientCall, ClientTools, Continuation, Entry, EntryRef, Exit, ReadOptions, Reader, Source,
    Stopped, StreamEnd, Writer,
};
use serde_json::{Value, json};

use crate::support;

/// A session with Claude Code, whose stream and whose calls a test plays.
struct Session {
    reader: Reader,
    log: Vec<Entry>,
}

impl Session {
    fn new() -> Self {
        let options = ReadOptions { id_seed: Some(7), ..ReadOptions::default() };
        let mut reader = Reader::new(Source::named("claude").unwrap(), options).unwrap();
        let names = ["getFormSnapshot", "executeFormActions"].map(str::to_owned).to_vec();
        let server = "interlingua".to_owned();
        reader.set_client_tools(ClientTools { server, names, ..ClientTools::default() });
        Self { reader, log: Vec::new() }
    }

    fn print(&mut self, record: &Value) {
        let log = &mut self.log;
        let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
        self.reader.push(format!("{record}\n").as_bytes(), None, &mut keep).unwrap();
    }

    /// The stream reports calls of `getFormSnapshot`, with their ids and inputs.
    fn report(&mut self, calls: &[(&str, Value)]) {
        for (id, input) in calls {
            let name = "mcp__interlingua__getFormSnapshot";
            let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            let message = json!({"id": "m1", "role": "assistant", "content": [call]});
            self.print(&json!({"type": "assistant", "message": message}));
        }
    }

    /// The server of the tools receives a call, and the turn waits for it.
    fn receive(&mut self, native: Option<&str>, input: &Value) -> String {
        let input = input.to_string();
        let log = &mut self.log;
        let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
        let call = ClientCall { native, tool: "getFormSnapshot", input: &input };
        let id = self.reader.client_call(&call, None, &mut keep).unwrap().unwrap();
        assert!(self.reader.suspend(None, &mut keep).unwrap());
        id
    }

    /// The client answers a call.
    fn answer(&mut self, call: &str, output: &str) {
        let log = &mut self.log;
        let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
        let output = Some(Json::from(&Text::plain(output)));
        let ended = ToolEnded { call: Text::plain(call), output, ..ToolEnded::default() };
        self.reader.emit(Event::new(ended), None, &mut keep).unwrap();
    }

    /// The stream reports the result of a call, in the words of the agent.
    fn report_result(&mut self, id: &str) {
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "(wrapped)"});
        let message = json!({"role": "user", "content": [result]});
        self.print(&json!({"type": "user", "message": message}));
    }

    fn end(self) -> Vec<Entry> {
        let (log, repairs) = self.finish();
        assert_eq!(repairs, [""; 0]);
        log
    }

    /// Ends the session; returns its log, and what was repaired.
    fn finish(mut self) -> (Vec<Entry>, Vec<String>) {
        self.print(&json!({"type": "result", "subtype": "success", "result": "Done."}));
        let mut log = self.log;
        let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
        let report = self.reader.finish(&Exit::default(), None, &mut keep).unwrap();
        (log, report.repairs.listed().iter().map(|repair| repair.what.clone()).collect())
    }
}

/// The calls of a log, as `started ID`, `suspended ID...` and `ended ID OUTPUT`.
fn calls(log: &[Entry]) -> Vec<String> {
    let story = log.iter().filter_map(|entry| match &entry.event.data {
        Data::ToolStarted(started) => {
            let Some(input) = &started.input else {
                return Some(format!("began {}", started.call));
            };
            let executor = started.executor.as_str();
            let (call, name) = (&started.call, &started.name);
            Some(format!("started {call} {name} {executor} {}", input.get()))
        }
        Data::Suspended(suspended) => {
            let calls: Vec<_> = suspended.calls.iter().map(ToString::to_string).collect();
            Some(format!("suspended {}", calls.join(" ")))
        }
        Data::ToolEnded(ended) => {
            let output = ended.output.as_ref().map_or("none", |output| output.get());
            Some(format!("ended {} {output}", ended.call))
        }
        _ => None,
    });
    story.collect()
}

fn story(id: &str) -> Vec<String> {
    vec![
        format!("started {id} getFormSnapshot client {{\"instruction\":\"all\"}}"),
        format!("suspended {id}"),
        format!("ended {id} \"fields\""),
    ]
}

fn input() -> Value {
    json!({"instruction": "all"})
}

#[test]
fn the_stream_reports_the_call_first() {
    for native in [Some("toolu_1"), None] {
        let mut session = Session::new();
        session.report(&[("toolu_1", input())]);
        assert_eq!(session.receive(native, &input()), "toolu_1");
        session.answer("toolu_1", "fields");
        session.report_result("toolu_1");
        assert_eq!(calls(&session.end()), story("toolu_1"), "{native:?}");
    }
}

#[test]
fn the_server_receives_the_call_first() {
    for native in [Some("toolu_1"), None] {
        let mut session = Session::new();
        let id = session.receive(native, &input());
        session.report(&[("toolu_1", input())]);
        session.answer(&id, "fields");
        session.report_result("toolu_1");
        assert_eq!(calls(&session.end()), story(&id), "{native:?}");
        assert_eq!(id == "toolu_1", native.is_some());
    }
}

/// OpenCode's stream contains a call only when it has ended.
#[test]
fn the_stream_reports_a_call_that_was_answered() {
    for native in [Some("toolu_1"), None] {
        let mut session = Session::new();
        let id = session.receive(native, &input());
        session.answer(&id, "fields");
        session.report(&[("toolu_1", input())]);
        session.report_result("toolu_1");
        assert_eq!(calls(&session.end()), story(&id), "{native:?}");
    }
}

/// Copilot runs parallel calls in reverse order, and its servers receive no ids.
#[test]
fn parallel_calls_are_told_apart_by_their_input() {
    let mut session = Session::new();
    let (one, two) = (json!({"instruction": "one"}), json!({"instruction": "two"}));
    session.report(&[("toolu_1", one.clone()), ("toolu_2", two.clone())]);
    assert_eq!(session.receive(None, &two), "toolu_2");
    assert_eq!(session.receive(None, &one), "toolu_1");
    session.answer("toolu_2", "2");
    session.answer("toolu_1", "1");
    session.report_result("toolu_1");
    session.report_result("toolu_2");
    let told = calls(&session.end());
    assert_eq!(told[2..4], ["suspended toolu_1 toolu_2", "suspended toolu_1 toolu_2"]);
    assert_eq!(told[4..], ["ended toolu_2 \"2\"", "ended toolu_1 \"1\""]);
}

/// The server may receive a call before the stream has reported that its input is complete.
#[test]
fn parallel_calls_are_told_apart_by_what_was_streamed_of_their_input() {
    let mut session = Session::new();
    let event = |event: Value| json!({"type": "stream_event", "event": event});
    session.print(&event(json!({"type": "message_start", "message": {"id": "m1"}})));
    for (index, word) in ["one", "two"].into_iter().enumerate() {
        let call = json!({"type": "tool_use", "id": format!("toolu_{word}"), "input": {},
            "name": "mcp__interlingua__getFormSnapshot"});
        let start = json!({"type": "content_block_start", "index": index, "content_block": call});
        session.print(&event(start));
        for piece in ["{\"instruction\": ", &format!("\"{word}\"}}")] {
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            session.print(&event(delta));
        }
    }
    assert_eq!(session.receive(None, &json!({"instruction": "two"})), "toolu_two");
    assert_eq!(session.receive(None, &json!({"instruction": "one"})), "toolu_one");
}

#[test]
fn equal_calls_are_two_calls() {
    let mut session = Session::new();
    let first = session.receive(None, &input());
    let second = session.receive(None, &input());
    assert_ne!(first, second);
    session.report(&[("toolu_1", input()), ("toolu_2", input())]);
    session.answer(&first, "1");
    session.answer(&second, "2");
    session.report_result("toolu_1");
    session.report_result("toolu_2");
    assert_eq!(calls(&session.end()).iter().filter(|it| it.starts_with("started")).count(), 2);
}

/// What the stream reports later is another call, although it has the same input.
#[test]
fn a_call_that_the_stream_never_reported_is_not_matched_in_a_later_turn() {
    let mut session = Session::new();
    let first = session.receive(None, &input());
    session.answer(&first, "fields");
    session.print(&json!({"type": "result", "subtype": "success", "result": "Done."}));
    session.report(&[("toolu_9", input())]);
    assert_eq!(session.receive(None, &input()), "toolu_9");
    session.answer("toolu_9", "fields");
    session.report_result("toolu_9");
    let log = session.end();
    assert_eq!(calls(&log), [story(&first), story("toolu_9")].concat());
}

/// An answer of the client would become the result of a command.
#[test]
fn a_call_with_the_id_of_another_tool_is_none() {
    let mut session = Session::new();
    let command = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}});
    let message = json!({"id": "m1", "role": "assistant", "content": [command]});
    session.print(&json!({"type": "assistant", "message": message}));
    let log = &mut session.log;
    let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
    let call = ClientCall { native: Some("toolu_1"), tool: "getFormSnapshot", input: "{}" };
    assert_eq!(session.reader.client_call(&call, None, &mut keep).unwrap(), None);
    session.report_result("toolu_1");
    let ended = json!("(wrapped)").to_string();
    assert_eq!(calls(&session.end()).last(), Some(&format!("ended toolu_1 {ended}")));
}

/// Agents count calls from the start in every process.
#[test]
fn a_call_of_another_process_is_another_call() {
    let mut session = Session::new();
    assert_eq!(session.receive(Some("call_0"), &input()), "call_0");
    session.answer("call_0", "fields");
    session.print(&json!({"type": "result", "subtype": "success", "result": "Done."}));
    let log = &mut session.log;
    let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
    session.reader.end_stream(StreamEnd::Exit(&Exit::default()), None, &mut keep).unwrap();
    session.reader.next_stream(Source::named("claude").unwrap()).unwrap();
    assert_eq!(session.receive(Some("call_0"), &input()), "call_0-2");
    session.report(&[("call_0", input())]);
    session.answer("call_0-2", "fields");
    session.report_result("call_0");
    let told = calls(&session.log);
    assert_eq!(told, [story("call_0"), story("call_0-2")].concat());
}

/// What a consumer that runs tools only between two turns reads of a log.
fn written(to: &str, log: &[Entry]) -> Vec<Value> {
    let text = text(to, true, log);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn text(to: &str, stream_each_turn: bool, log: &[Entry]) -> String {
    let options = EncodeOptions { id_seed: Some(7), stream_each_turn, ..EncodeOptions::default() };
    let mut writer = Writer::new(dialect::named(to).unwrap(), &options).unwrap();
    let mut bytes = Vec::new();
    log.iter().for_each(|entry| writer.write(entry.borrowed(), &mut bytes));
    writer.finish(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn paused() -> Vec<Entry> {
    let mut session = Session::new();
    session.report(&[("toolu_1", input())]);
    session.receive(Some("toolu_1"), &input());
    session.answer("toolu_1", "fields");
    session.report_result("toolu_1");
    let content = json!([{"type": "text", "text": "Done."}]);
    let message = json!({"id": "m2", "role": "assistant", "content": content});
    session.print(&json!({"type": "assistant", "message": message}));
    session.end()
}

#[test]
fn a_turn_that_waits_for_the_client_is_two_for_the_ai_sdk() {
    let parts = written("ai-sdk", &paused());
    let of = |kind: &'static str| parts.iter().filter(move |part| part["type"] == kind);
    let calls: Vec<_> = of("tool-call").collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["toolName"], "getFormSnapshot");
    assert_eq!(calls[0].get("providerExecuted"), None);
    let reasons: Vec<_> = of("finish").map(|part| &part["finishReason"]["unified"]).collect();
    assert_eq!(reasons, ["tool-calls", "stop"]);
}

#[test]
fn a_turn_that_waits_for_the_client_is_a_request_of_giselle() {
    let records = written("giselle", &paused());
    let kinds: Vec<_> = records.iter().filter_map(|record| record["type"].as_str()).collect();
    let request = kinds.iter().position(|kind| *kind == "snapshot_request").unwrap();
    assert_eq!(records[request]["requestId"], "toolu_1");
    assert!(!kinds[..request].contains(&"result"), "{kinds:?}");
    assert_eq!(kinds[request + 1..], ["message", "result"]);
}

#[test]
fn a_turn_that_waits_for_the_client_keeps_the_rules_of_every_dialect() {
    for to in support::written().filter(|to| to.name != "text") {
        let text = text(to.name, false, &paused());
        assert_eq!(support::rules::violations(to.name, &text), [""; 0], "{}:\n{text}", to.name);
    }
}

/// The log itself has one turn, whose end the agent reports.
#[test]
fn a_turn_that_waits_for_the_client_has_one_end() {
    let log = paused();
    let ends = log.iter().filter(|entry| matches!(entry.event.data, Data::TurnEnded(_)));
    assert_eq!(ends.count(), 1);
}

/// A session whose process is killed while a call waits. Another reader continues its log, and another
/// process receives the answer with its first prompt.
fn answered_after_a_kill(replays: bool) -> Vec<Entry> {
    let mut session = Session::new();
    session.report(&[("toolu_1", input())]);
    session.receive(Some("toolu_1"), &input());
    let Session { reader, mut log } = session;
    drop(reader);
    let options = ReadOptions { id_seed: Some(7), ..ReadOptions::default() };
    let mut continuation = Continuation::new(options).unwrap();
    log.iter().for_each(|entry| continuation.push(entry.borrowed()));
    let mut reader = continuation.into_reader();
    let stopped = Stopped { outcome: Outcome::WaitingForClient, cause: "lost".to_owned() };
    let exit = Exit { stopped: Some(stopped), ..Exit::default() };
    let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
    reader.end_stream(StreamEnd::Exit(&exit), None, &mut keep).unwrap();
    reader.next_stream(Source::named("claude").unwrap()).unwrap();
    let output = Some(Json::from(&Text::plain("fields")));
    let ended = ToolEnded { call: Text::plain("toolu_1"), output, ..ToolEnded::default() };
    reader.answer_with_next_turn(vec![Event::new(ended).into_owned()]);
    let mut session = Session { reader, log };
    let content = json!([{"type": "text", "text": "Done."}]);
    // The next process replays what it knows of the turn that was lost.
    let mut replay = |event: Event<'_>| {
        let log = &mut session.log;
        let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
        session.reader.emit(event, None, &mut keep).unwrap();
    };
    if replays {
        let (call, name) = (Text::plain("toolu_1"), Text::plain("getFormSnapshot"));
        let ended =
            ToolEnded { call: call.clone(), status: ToolStatus::Failed, ..ToolEnded::default() };
        replay(Event::new(TurnStarted { replay: true, ..TurnStarted::default() }));
        replay(Event::new(ToolStarted { call, name, ..ToolStarted::default() }));
        replay(Event::new(ended));
        replay(Event::new(TurnEnded { replay: true, ..TurnEnded::default() }));
    }
    session.print(&json!({"type": "system", "subtype": "init", "session_id": "s"}));
    let message = json!({"id": "m2", "role": "assistant", "content": content});
    session.print(&json!({"type": "assistant", "message": message}));
    let (log, repairs) = session.finish();
    assert_eq!(repairs, ["lost"]);
    log
}

#[test]
fn a_call_of_a_lost_process_is_answered_in_the_next_turn() {
    let log = answered_after_a_kill(false);
    assert_eq!(calls(&log), story("toolu_1"));
    let kinds: Vec<_> = log.iter().map(|entry| entry.event.data.kind()).collect();
    let answer = kinds.iter().position(|kind| *kind == "tool_ended").unwrap();
    let turns = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
    assert_eq!((turns("turn_started"), turns("turn_ended")), (2, 2), "{kinds:?}");
    assert_eq!(kinds[answer - 1], "turn_started", "{kinds:?}");
    let outcomes = log.iter().filter_map(|entry| match &entry.event.data {
        Data::TurnEnded(ended) => Some(ended.outcome.as_str().to_owned()),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), ["waiting_for_client", "completed"]);
}

#[test]
fn a_turn_that_waited_in_a_lost_process_keeps_the_rules_of_every_dialect() {
    for to in support::written().filter(|to| to.name != "text") {
        let text = text(to.name, false, &answered_after_a_kill(false));
        assert_eq!(support::rules::violations(to.name, &text), [""; 0], "{}:\n{text}", to.name);
    }
}

/// Agents that load a session replay it, with an error of their own in the place of the result.
#[test]
fn what_an_agent_replays_of_a_call_does_not_end_it() {
    let log = answered_after_a_kill(true);
    assert_eq!(calls(&log), story("toolu_1"));
    let answer = log.iter().position(|it| matches!(it.event.data, Data::ToolEnded(_))).unwrap();
    assert_eq!(log[answer - 1].event.data.kind(), "turn_started");
    // A stored log is read again as one stream.
    let mut reader = Reader::new(Source::named("events").unwrap(), ReadOptions::default()).unwrap();
    let mut again = Vec::new();
    let mut keep = |entry: EntryRef<'_>| again.push(entry.to_owned());
    reader.push(text("events", false, &log).as_bytes(), None, &mut keep).unwrap();
    assert_eq!(calls(&again), story("toolu_1"));
}

/// Writers end a record stream where a turn waits for the client, and rely on no other call being open.
#[test]
fn a_turn_waits_for_the_client_when_the_agents_own_calls_have_ended() {
    let mut session = Session::new();
    let call =
        json!({"type": "tool_use", "id": "toolu_0", "name": "Bash", "input": {"command": "ls"}});
    let message = json!({"id": "m1", "role": "assistant", "content": [call]});
    session.print(&json!({"type": "assistant", "message": message}));
    session.report(&[("toolu_1", input())]);
    let log = &mut session.log;
    let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
    let text = input().to_string();
    let call = ClientCall { native: Some("toolu_1"), tool: "getFormSnapshot", input: &text };
    session.reader.client_call(&call, None, &mut keep).unwrap();
    assert!(!session.reader.suspend(None, &mut keep).unwrap());
    session.report_result("toolu_0");
    session.answer("toolu_1", "fields");
    let log = session.end();
    let kinds: Vec<_> = log.iter().map(|entry| entry.event.data.kind()).collect();
    let suspended = kinds.iter().position(|kind| *kind == "suspended").unwrap();
    assert_eq!(kinds.iter().filter(|kind| **kind == "suspended").count(), 1, "{kinds:?}");
    assert_eq!(
        kinds.iter().position(|kind| *kind == "tool_ended").unwrap() + 1,
        suspended,
        "{kinds:?}"
    );
    for to in support::written().filter(|to| to.name != "text") {
        let written = self::text(to.name, false, &log);
        assert_eq!(
            support::rules::violations(to.name, &written),
            [""; 0],
            "{}:\n{written}",
            to.name
        );
    }
}
