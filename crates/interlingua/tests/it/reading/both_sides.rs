//! A caller that runs an agent knows more than the agent's stream: what was sent to the agent, what
//! the caller observed, and why it stopped the agent.

use interlingua::event::{Event, Notice, Outcome};
use interlingua::json::Text;
use interlingua::{Exit, Options, Stopped, Translator};
use serde_json::Value;

use crate::support::dialect;

const REQUEST: &str = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}"#;
const ALLOWED: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow","updatedInput":{"command":"ls"}}}}"#;
const DENIED: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"deny","message":"not now"}}}"#;
const ANSWER: &str = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]},"session_id":"s"}"#;

fn translator(from: &str, to: &str) -> Translator {
    Translator::new(dialect(from).into(), dialect(to), Options::default()).unwrap()
}

fn records(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn a_decision_of_the_host_is_emitted_once() {
    for (response, decision) in [(ALLOWED, "allowed"), (DENIED, "denied")] {
        let mut translator = translator("claude", "events");
        translator.push(format!("{REQUEST}\n").as_bytes(), None);
        let events = records(translator.push_sent(response, None));
        assert_eq!((events.len(), &events[0]["type"]), (1, &"permission_resolved".into()));
        assert_eq!((&events[0]["decision"], &events[0]["call"]), (&decision.into(), &"t1".into()));
        let after = records(translator.push(format!("{ANSWER}\n").as_bytes(), None));
        assert!(after.iter().all(|event| event["type"] != "permission_resolved"), "{after:?}");
    }
}

/// With `--replay-user-messages`, Claude repeats the prompts of its host; alone, they are the prompts.
#[test]
fn a_prompt_that_the_agent_repeats_is_emitted_once() {
    let sent = r#"{"type":"user","message":{"role":"user","content":"go"},"priority":"later"}"#;
    let repeated = r#"{"type":"user","message":{"role":"user","content":"go"},"session_id":"s","uuid":"u","isReplay":true}"#;
    let prompts = |events: &[Value]| {
        let prompts = events.iter().filter(|event| event["type"] == "user_message");
        prompts.map(|event| event["text"].clone()).collect::<Vec<_>>()
    };
    let mut live = translator("claude", "events");
    // The same prompt twice is two prompts.
    for _ in 0..2 {
        let mut events = records(live.push_sent(sent, None));
        events.extend(records(live.push(format!("{repeated}\n").as_bytes(), None)));
        assert_eq!(prompts(&events), ["go"]);
    }
    let recorded =
        translator("claude", "events").push(format!("{repeated}\n").as_bytes(), None).to_vec();
    assert_eq!(prompts(&records(&recorded)), ["go"]);
}

#[test]
fn a_sent_record_does_not_split_the_line_that_the_agent_is_printing() {
    let mut translator = translator("claude", "events");
    let (start, rest) = REQUEST.split_at(30);
    translator.push(start.as_bytes(), None);
    translator.push_sent(r#"{"type":"user","message":{"role":"user","content":"go"}}"#, None);
    let events = records(translator.push(format!("{rest}\n").as_bytes(), None));
    assert!(events.iter().any(|event| event["type"] == "permission_requested"), "{events:?}");
}

#[test]
fn a_sent_record_is_never_passed_through() {
    let mut translator = translator("claude", "claude");
    assert_eq!(records(translator.push(format!("{REQUEST}\n").as_bytes(), None)).len(), 1);
    assert_eq!(translator.push_sent(ALLOWED, None), b"");
    let after = records(translator.push(format!("{ANSWER}\n").as_bytes(), None));
    assert!(after.iter().any(|record| record["type"] == "user"), "{after:?}");
    assert!(after.iter().all(|record| record["type"] != "control_response"), "{after:?}");
}

#[test]
fn an_event_of_the_caller_is_emitted_in_order() {
    let mut translator = translator("codex", "events");
    translator.push(b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n", None);
    let notice = Notice { text: Text::plain("seen"), ..Notice::default() };
    let events = records(translator.emit(Event::new(notice), None));
    assert_eq!((&events[0]["type"], &events[0]["text"]), (&"notice".into(), &"seen".into()));
}

#[test]
fn a_turn_that_the_caller_stopped_has_the_callers_outcome() {
    let mut translator = translator("codex", "events");
    translator.push(b"{\"type\":\"turn.started\"}\n", None);
    let stopped = Stopped { outcome: Outcome::TimedOut, cause: "too long".to_owned() };
    let exit = Exit { signal: Some(15), stopped: Some(stopped), ..Exit::default() };
    let events = records(&translator.finish(&exit, None).bytes);
    let end = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
    assert_eq!((&end["outcome"], &end["cause"]), (&"timed_out".into(), &"too long".into()));
    assert_eq!(end["synthetic"], "stopped");
}

#[test]
fn a_turn_that_the_agent_ended_is_not_ended_again() {
    let mut translator = translator("codex", "events");
    translator.push(b"{\"type\":\"turn.started\"}\n{\"type\":\"turn.completed\"}\n", None);
    let stopped = Stopped { outcome: Outcome::Cancelled, cause: "late".to_owned() };
    let events = records(
        &translator.finish(&Exit { stopped: Some(stopped), ..Exit::default() }, None).bytes,
    );
    assert!(events.iter().all(|event| event["type"] != "turn_ended"), "{events:?}");
}
