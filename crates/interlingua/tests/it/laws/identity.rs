//! Law 12: translation into the same protocol is the identity for every record that is understood.

use serde_json::Value;

use crate::support::{Case, translate, translate_lines};

fn records(input: &[u8]) -> Vec<Value> {
    let lines = input.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[test]
fn every_record_of_every_transcript_is_passed_on() {
    for case in Case::all() {
        let from = translate("events", &case.input, &case.exit).from().unwrap();
        if from.encoder.is_none() {
            continue;
        }
        let written = translate(from.name, &case.input, &case.exit).records();
        let mut rest = written.iter();
        for record in records(&case.input) {
            assert!(rest.any(|other| *other == record), "{}: {record}", case.name);
        }
        if written.len() != records(&case.input).len() {
            let added = written.len() - records(&case.input).len();
            let events = translate("events", &case.input, &case.exit);
            // A call for whose answer a turn rests is closed there, which repairs nothing.
            let rests = |event: &Value| event["outcome"] == "waiting_for_client";
            let explained = !events.repairs().is_empty() || events.records().iter().any(rests);
            assert!(explained, "{}: {added} added", case.name);
        }
    }
}

#[test]
fn our_own_events_are_passed_on() {
    for case in Case::all() {
        let events = translate("events", &case.input, &case.exit).bytes;
        let again = translate("events", &events, &case.exit).bytes;
        assert!(events == again, "{}", case.name);
    }
}

#[test]
fn records_that_the_grammar_adds_are_written_too() {
    let lines = [
        r#"{"type":"system","subtype":"init","cwd":"/","session_id":"s","tools":[],"model":"m","permissionMode":"default","uuid":"00000000-0000-4000-8000-000000000001"}"#,
        r#"{"type":"assistant","message":{"id":"m1","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},"parent_tool_use_id":null,"session_id":"s","uuid":"00000000-0000-4000-8000-000000000002"}"#,
    ];
    let written = translate_lines("claude", "claude", &lines).records();
    assert_eq!(written.len(), 4);
    assert_eq!(written[2]["message"]["content"][0]["tool_use_id"], "t1");
    assert_eq!(written[3]["type"], "result");
    assert_eq!(written[3]["is_error"], true);
}
