//! Requests that an agent leaves open, answers twice, or answers only by what it does next.

use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};
use serde_json::{Value, json};

use crate::support::records::of_type;

/// The events that the grammar emits for some events, up to the end of the input.
fn events(given: &[Value]) -> Vec<Value> {
    let source = Source::named("events").unwrap();
    let mut reader = Reader::new(source, ReadOptions::default()).unwrap();
    let mut events = Vec::new();
    let mut keep = |entry: EntryRef<'_>| events.push(serde_json::to_value(entry).unwrap());
    for event in given {
        reader.push(format!("{event}\n").as_bytes(), None, &mut keep).unwrap();
    }
    reader.finish(&Exit::default(), None, &mut keep).unwrap();
    events
}

fn call(id: &str) -> Value {
    json!({"type": "tool_started", "call": id, "name": "bash", "input": {"command": "ls"}})
}

fn requested(id: &str, call: &str) -> Value {
    json!({"type": "permission_requested", "request": id, "call": call})
}

fn asked(id: &str, call: &str) -> Value {
    let questions =
        json!([{"id": "a", "text": "A?"}, {"id": "key", "text": "Key?", "secret": true}]);
    json!({"type": "question_asked", "request": id, "call": call, "questions": questions})
}

fn ended(call: &str, status: &str) -> Value {
    json!({"type": "tool_ended", "call": call, "status": status})
}

/// The fields that a resolution consists of, without its place.
fn without_place(event: &Value) -> Value {
    let mut event = event.clone();
    let fields = event.as_object_mut().unwrap();
    for name in ["interlingua", "sequence", "line", "bytes"] {
        fields.remove(name);
    }
    event
}

#[test]
fn the_end_of_the_turn_withdraws_what_is_open() {
    let turn = json!({"type": "turn_ended", "outcome": "completed"});
    let events = events(&[call("c"), requested("1", "c"), asked("2", "d"), turn]);
    let why = "the turn ended before the request was answered";
    let withdrawn = json!({
        "type": "permission_resolved", "synthetic": "turn_ended", "request": "1", "call": "c",
        "tool": "bash", "decision": "withdrawn", "reason": why,
    });
    let declined = json!({
        "type": "question_answered", "synthetic": "turn_ended", "request": "2", "call": "d",
        "declined": true, "reason": why,
    });
    let resolved = of_type(&events, "permission_resolved");
    assert_eq!(resolved.into_iter().map(without_place).collect::<Vec<_>>(), [withdrawn]);
    let answered = of_type(&events, "question_answered");
    assert_eq!(answered.into_iter().map(without_place).collect::<Vec<_>>(), [declined]);
}

#[test]
fn the_answer_of_a_call_shows_the_decision() {
    for (status, decision) in [
        ("completed", "allowed"),
        ("failed", "allowed"),
        ("denied", "denied"),
        ("cancelled", "withdrawn"),
    ] {
        let given = [call("c"), requested("1", "c"), ended("c", status)];
        let events = events(&given);
        let resolved = of_type(&events, "permission_resolved");
        let resolved: Vec<_> =
            resolved.iter().map(|it| (&it["decision"], &it["synthetic"])).collect();
        assert_eq!(resolved, [(&json!(decision), &json!("implied"))], "{status}");
        let given = [call("c"), asked("1", "c"), ended("c", status)];
        let events = self::events(&given);
        let answered = of_type(&events, "question_answered");
        let declined: Vec<_> = answered.iter().map(|it| it["declined"] == true).collect();
        assert_eq!(declined, [decision != "allowed"], "{status}");
    }
}

#[test]
fn a_second_resolution_is_dropped() {
    let allowed = json!({"type": "permission_resolved", "request": "1", "decision": "allowed"});
    let by_call = json!({"type": "permission_resolved", "call": "c", "decision": "allowed"});
    let answered = json!({"type": "question_answered", "request": "2"});
    let given = [
        call("c"),
        requested("1", "c"),
        asked("2", "d"),
        allowed.clone(),
        allowed,
        by_call,
        answered.clone(),
        ended("c", "completed"),
        answered,
    ];
    let events = events(&given);
    let resolved = of_type(&events, "permission_resolved");
    let resolved: Vec<_> = resolved.iter().map(|it| (&it["request"], &it["call"])).collect();
    assert_eq!(resolved, [(&json!("1"), &json!("c"))]);
    assert_eq!(of_type(&events, "question_answered").len(), 1);
}

#[test]
fn a_repeated_request_is_dropped_and_a_reused_id_is_not() {
    let given =
        [call("c"), requested("1", "c"), requested("1", "c"), call("d"), requested("1", "d")];
    let events = events(&given);
    let calls: Vec<_> =
        of_type(&events, "permission_requested").iter().map(|it| it["call"].clone()).collect();
    assert_eq!(calls, ["c", "d"]);
    let resolved = of_type(&events, "permission_resolved");
    let calls: Vec<_> = resolved.iter().map(|it| it["call"].clone()).collect();
    assert_eq!(calls, ["c", "d"]);
}

#[test]
fn answers_have_the_order_of_the_questions_and_no_secrets() {
    let answers = json!([
        {"question": "other", "values": ["o"]},
        {"question": "key", "values": ["s3cret"]},
        {"question": "a", "values": ["yes"]},
    ]);
    let answered = json!({"type": "question_answered", "request": "1", "answers": answers});
    let events = events(&[asked("1", "c"), answered]);
    let expected = json!([
        {"question": "a", "values": ["yes"]},
        {"question": "key"},
        {"question": "other", "values": ["o"]},
    ]);
    let [answered] = &*of_type(&events, "question_answered") else { panic!() };
    assert_eq!((&answered["answers"], &answered["call"]), (&expected, &json!("c")));
}

/// MCP servers ask for passwords in forms.
#[test]
fn the_content_of_a_form_has_no_secrets() {
    let secret = [
        json!({"type": "string", "format": "password"}),
        json!({"type": "string", "writeOnly": true}),
        json!({"type": "string", "isSecret": true}),
    ];
    for field in secret {
        let name = json!({"type": "string", "format": "email", "writeOnly": false});
        let schema = json!({"type": "object", "properties": {"name": name, "a \"key\"": field}});
        let asked = json!({"type": "question_asked", "request": "1", "schema": schema});
        let form = json!({"name": "a@b", "a \"key\"": "s3cret", "more": [1]});
        let answered = json!({"type": "question_answered", "request": "1", "form": form});
        let events = events(&[asked, answered]);
        let [answered] = &*of_type(&events, "question_answered") else { panic!() };
        assert_eq!(answered["form"], json!({"name": "a@b", "more": [1]}), "{field}");
        assert!(!format!("{events:?}").contains("s3cret"));
    }
}
