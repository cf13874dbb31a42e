//! The stream that is written for clients of the Giselle API.

use interlingua::dialect::giselle::GiselleEncoder;
use interlingua::dialect::{EncodeOptions, Encoder, Output};
use interlingua::event::{Data, Event, Relay, Secret, SessionUpdated};
use interlingua::json::Text;
use serde_json::{Value, json};

use crate::support::records::{translate_checked, types};
use crate::support::rules::violations;
use crate::support::{Written, translate_lines};

/// Translates a stream into `giselle`, and checks it.
fn written(from: &str, lines: &[&str]) -> Written {
    translate_checked(from, "giselle", lines)
}

/// The broken rule of every violation in a stream of `giselle`.
fn broken(lines: &[&str]) -> Vec<&'static str> {
    violations("giselle", &(lines.join("\n") + "\n"))
}

fn lost(written: &Written) -> Vec<String> {
    written.losses().iter().map(|(kind, _)| kind.to_owned()).collect()
}

const RELAY: &str = r#"{"type":"relay.session","relayUrl":"u","sessionId":"s","token":"t"}"#;
const SANDBOX: &str = r#"{"type":"sandbox","sandbox_id":"sbx"}"#;
const INIT: &str = r#"{"type":"init","session_id":"i","modelId":"m"}"#;
const MESSAGE: &str = r#"{"type":"message","role":"assistant","content":"Hi","delta":true}"#;
const REQUEST: &str = r#"{"type":"snapshot_request","requestId":"r1","instruction":"snapshot"}"#;
const RESULT: &str = r#"{"type":"result","status":"success"}"#;
const ARTIFACT: &str = r#"{"type":"artifact","path":"./artifacts/a"}"#;
const SNAPSHOT: &str = r#"{"type":"snapshot","snapshot_id":"snap"}"#;

#[test]
fn the_relay_is_first_in_every_run() {
    let run = [RELAY, SANDBOX, INIT, MESSAGE, RESULT, ARTIFACT, SNAPSHOT];
    assert_eq!(broken(&[run, run].concat()), [""; 0]);
    assert_eq!(broken(&[SANDBOX, INIT, RELAY, MESSAGE, REQUEST, RELAY, MESSAGE]), [""; 0]);
    assert_eq!(broken(&[MESSAGE, RESULT, ARTIFACT, RELAY, MESSAGE]), [""; 0]);
    assert_eq!(broken(&[SANDBOX, MESSAGE, RELAY]), ["relay-first"]);
    assert_eq!(broken(&[RELAY, MESSAGE, REQUEST, MESSAGE, RELAY]), ["relay-first"]);
}

#[test]
fn the_snapshot_request_is_last_in_its_run() {
    assert_eq!(broken(&[MESSAGE, SNAPSHOT, SANDBOX, MESSAGE, SNAPSHOT]), [""; 0]);
    assert_eq!(broken(&[MESSAGE, SNAPSHOT, REQUEST]), ["snapshot-last"]);
    assert_eq!(broken(&[MESSAGE, SNAPSHOT, RESULT]), ["snapshot-last"]);
}

/// The records written for successive updates of a session and at the end, and the losses.
fn written_for_updates(updates: Vec<SessionUpdated<'_>>) -> (Vec<Value>, Vec<String>) {
    let mut encoder = GiselleEncoder::new(&EncodeOptions::default());
    let mut out = Output::default();
    for update in updates {
        encoder.encode(&Event::new(Data::from(update)), &mut out);
    }
    encoder.finish(&mut out);
    let text = String::from_utf8(out.bytes().clone()).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (records, out.losses().iter().map(|(kind, _)| kind.to_owned()).collect())
}

#[test]
fn updates_of_a_session_are_written_in_the_order_of_a_run() {
    let relay = |token: Option<Text<'static>>| Relay {
        session: Some(Text::plain("s")),
        token: Secret::new(token),
        url: Some(Text::plain("u")),
        ..Relay::default()
    };
    let update = SessionUpdated {
        id: Some(Text::plain("i")),
        sandbox: Some(Text::plain("sbx")),
        snapshot: Some(Text::plain("snap")),
        relay: Some(relay(Some(Text::plain("t")))),
        ..SessionUpdated::default()
    };
    let (records, losses) = written_for_updates(vec![update.clone(), update]);
    let run = ["relay.session", "sandbox", "init", "snapshot"];
    assert_eq!(types(&records), [run, run].concat());
    assert_eq!(losses, [""; 0]);

    let untold = SessionUpdated { relay: Some(relay(None)), ..SessionUpdated::default() };
    let (records, losses) = written_for_updates(vec![untold]);
    assert_eq!(records, [Value::Null; 0]);
    assert_eq!(losses, ["relay without its token"]);
}

#[test]
fn answers_of_the_client_are_not_written() {
    let call = r#"{"type":"tool_use","id":"r1","name":"getFormSnapshot","input":{"instruction":"look"},"executor":"client"}"#;
    let waits = r#"{"type":"result","subtype":"waiting_for_client","is_error":false,"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let answer = r#"{"type":"tool_result","tool_use_id":"r1","content":"seen"}"#;
    let text = r#"{"type":"text","content":"Done."}"#;
    let stream = written(
        "yume",
        &[call, waits, answer, text, r#"{"type":"result","is_error":false,"subtype":"success"}"#],
    );
    assert_eq!(types(&stream.records()), ["snapshot_request", "message", "result"]);
    let losses = lost(&stream);
    assert!(losses.contains(&"answers of the client".to_owned()), "{losses:?}");
    assert!(losses.contains(&"usage of a suspended turn".to_owned()), "{losses:?}");
}

#[test]
fn an_agent_that_continues_after_a_request_breaks_no_rule() {
    assert_eq!(broken(&[REQUEST, MESSAGE, RESULT]), [""; 0]);
    assert_eq!(broken(&[REQUEST, MESSAGE]), [""; 0]);
    assert_eq!(broken(&[REQUEST, RESULT]), [""; 0]);
    assert_eq!(broken(&[REQUEST]), [""; 0]);
    let answer = r#"{"type":"tool_result","tool_id":"r1","status":"success","output":"seen"}"#;
    assert_eq!(broken(&[REQUEST, answer, RESULT]), [""; 0]);
    assert_eq!(broken(&[REQUEST, MESSAGE, REQUEST]), ["call-unique"]);
    let records = translate_lines("giselle", "events", &[REQUEST, MESSAGE, RESULT]).records();
    let ended = records.iter().find(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(ended["error"], "the client's answer is no part of this stream");
    let records = translate_lines("giselle", "events", &[REQUEST, answer, RESULT]).records();
    let ended = records.iter().find(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(ended["output"], "seen");
}

#[test]
fn a_turn_that_waits_for_another_client_tool_has_a_result() {
    let call =
        r#"{"type":"tool_use","id":"c1","name":"pickColour","input":{},"executor":"client"}"#;
    let waits = r#"{"type":"result","subtype":"waiting_for_client","is_error":false,"usage":{"input_tokens":5,"output_tokens":2}}"#;
    let answer = r#"{"type":"tool_result","tool_use_id":"c1","content":"red"}"#;
    let stream = written("yume", &[call, waits, answer]);
    let records = stream.records();
    assert_eq!(types(&records)[..3], ["tool_use", "tool_result", "result"]);
    assert_eq!(records[1]["error"]["message"], "the client has to run this tool");
    assert_eq!(
        (&records[2]["status"], &records[2]["stats"]["input"]),
        (&json!("success"), &json!(5))
    );
    assert!(lost(&stream).contains(&"answers of the client".to_owned()));
}

#[test]
fn the_request_to_the_client_follows_the_answers_of_the_agents_calls() {
    let of_agent = r#"{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}"#;
    let of_client = r#"{"type":"tool_use","id":"r1","name":"getFormSnapshot","input":{"instruction":"look"},"executor":"client"}"#;
    let answer = r#"{"type":"tool_result","tool_use_id":"c1","content":"a"}"#;
    let waits = r#"{"type":"result","subtype":"waiting_for_client","is_error":false}"#;
    for lines in [&[of_agent, of_client, answer, waits][..], &[of_agent, of_client, waits]] {
        let records = {
            let events = events_of("yume", lines);
            written("events", &events.iter().map(String::as_str).collect::<Vec<_>>()).records()
        };
        assert_eq!(types(&records), ["tool_use", "tool_result", "snapshot_request"]);
    }
}

/// A stream in our own events, which keep the order of calls and answers.
fn events_of(from: &str, lines: &[&str]) -> Vec<String> {
    translate_lines(from, "events", lines).text().lines().map(str::to_owned).collect()
}

#[test]
fn the_text_of_sub_agents_is_left_out() {
    let message = |id: &str, parent: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":{parent},"session_id":"s","uuid":"{id}"}}"#
        )
    };
    let (one, two) = (message("m1", "null", "mine"), message("m2", "\"task\"", "aside"));
    let stream = written("claude", &[&one, &two]);
    let records = stream.records();
    let texts: Vec<_> = records
        .iter()
        .filter(|record| record["type"] == "message")
        .map(|record| record["content"].clone())
        .collect();
    assert_eq!(texts, ["mine"]);
    assert!(lost(&stream).contains(&"text of sub-agents".to_owned()));
}

#[test]
fn a_refused_plan_is_not_restored_by_a_call() {
    let lines = [
        r#"{"type":"tool_use","timestamp":"t","tool_name":"write_todos","tool_id":"a","parameters":{"todos":[{"description":"x","status":"odd"}]}}"#,
        r#"{"type":"tool_result","timestamp":"t","tool_id":"a","status":"error"}"#,
    ];
    let records = written("gemini", &lines).records();
    assert_eq!(types(&records), ["tool_use", "tool_result", "result"]);
}

#[test]
fn a_failed_call_has_its_error_once() {
    let command = |id: &str, output: &str, code: u8| {
        format!(
            r#"{{"type":"item.completed","item":{{"id":"{id}","type":"command_execution","command":"c","aggregated_output":"{output}","exit_code":{code},"status":"failed"}}}}"#
        )
    };
    let long = "x".repeat(1000);
    let (silent, loud) = (command("a", "", 4), command("b", &long, 3));
    let stream = written("codex", &[r#"{"type":"turn.started"}"#, &silent, &loud]);
    let records = stream.records();
    assert_eq!(records[1]["error"], json!({"type":"failed","message":"Exit code 4"}));
    assert_eq!(
        (&records[3]["output"], &records[3]["error"]["message"]),
        (&json!(long), &json!("Exit code 3"))
    );
    let denied = r#"{"type":"tool_result","tool_use_id":"z","content":"no","is_error":true}"#;
    let call = r#"{"type":"tool_use","id":"z","name":"Bash","input":{}}"#;
    let records = written("yume", &[call, denied]).records();
    assert_eq!(
        (&records[1]["output"], &records[1]["error"]),
        (&json!("no"), &json!({"type":"failed"}))
    );
}

#[test]
fn the_tokens_of_each_model_and_the_number_of_calls_are_written() {
    let lines = [
        r#"{"type":"tool_use","timestamp":"t","tool_name":"glob","tool_id":"a","parameters":{}}"#,
        r#"{"type":"tool_result","timestamp":"t","tool_id":"a","status":"success"}"#,
        r#"{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":9,"input_tokens":5,"output_tokens":4,"cached":0,"input":5,"duration_ms":7,"tool_calls":1,"models":{"m-1":{"total_tokens":9,"input_tokens":5,"output_tokens":4,"cached":0,"input":5}}}}"#,
    ];
    let records = written("gemini", &lines).records();
    let stats: Value = serde_json::from_str::<Value>(lines[2]).unwrap()["stats"].clone();
    assert_eq!(records[2]["stats"], stats);
}

#[test]
fn a_retry_is_written_as_stderr() {
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"retry_delay_ms":500,"error_status":429,"error":"rate_limit","session_id":"s","uuid":"u1"}"#;
    let records = written("claude", &[retry]).records();
    let words =
        "a request failed (rate_limit, HTTP status 429); attempt 1 of 2 follows after 500 ms";
    assert_eq!(records[0], json!({"type":"stderr","content":words}));
}

#[test]
fn consecutive_blocks_are_separate_messages() {
    let event = |fields: &str| {
        format!(
            r#"{{"interlingua":1,"sequence":0,"line":1,"bytes":[0,1],"message":"m","kind":"text",{fields}}}"#
        )
    };
    let lines = [
        event(r#""type":"block_started","index":0"#),
        event(r#""type":"block_delta","index":0,"text":"First.""#),
        event(r#""type":"block_delta","index":0,"text":"""#),
        event(r#""type":"block_ended","index":0"#),
        event(r#""type":"block_started","index":1"#),
        event(r#""type":"block_delta","index":1,"text":"Second.""#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let records = written("events", &lines).records();
    let messages: Vec<_> = records
        .iter()
        .filter(|record| record["type"] == "message")
        .map(|record| (record["content"].clone(), record["delta"].clone()))
        .collect();
    assert_eq!(
        messages,
        [
            (json!("First."), json!(true)),
            (json!(""), json!(false)),
            (json!("Second."), json!(true))
        ]
    );
}

/// Clients reject a request without an instruction, with which agents need not call the tool.
#[test]
fn a_snapshot_request_has_an_instruction() {
    for input in ["{}", r#"{"instruction":""}"#, r#"{"instruction":5}"#] {
        let call = format!(
            r#"{{"type":"tool_use","id":"r1","name":"getFormSnapshot","input":{input},"executor":"client"}}"#
        );
        let waits = r#"{"type":"result","subtype":"waiting_for_client","is_error":false}"#;
        let events = events_of("yume", &[&call, waits]);
        let lines: Vec<_> = events.iter().map(String::as_str).collect();
        let records = written("events", &lines).records();
        assert_eq!(records, [serde_json::from_str::<Value>(REQUEST).unwrap()], "{input}");
    }
}
