//! What the host of an agent knows completes what the agent reports, and is marked. Only the mode of the
//! host takes precedence, because the host decides about permissions.

use interlingua::{EntryRef, Exit, HostFacts, ReadOptions, Reader, Source};
use serde_json::{Value, json};

/// The events of a session whose records arrive at some times.
fn events(dialect: &str, records: &[(u64, &str)]) -> Vec<Value> {
    let host = HostFacts {
        cwd: Some("/work".to_owned()),
        model: Some("m".to_owned()),
        permission_mode: Some("default".to_owned()),
        ..HostFacts::default()
    };
    let options = ReadOptions { host, ..ReadOptions::default() };
    let mut reader = Reader::new(Source::named(dialect).unwrap(), options).unwrap();
    let mut events = Vec::new();
    let mut keep =
        |entry: EntryRef<'_>| events.push(serde_json::to_value(entry.to_owned()).unwrap());
    let mut now = 0;
    for (time, record) in records {
        now = *time;
        reader.push(format!("{record}\n").as_bytes(), Some(now), &mut keep).unwrap();
    }
    reader.finish(&Exit::default(), Some(now + 1), &mut keep).unwrap();
    events
}

fn one<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    let mut found = events.iter().filter(|event| event["type"] == kind);
    let event = found.next().unwrap();
    assert!(found.next().is_none(), "{events:?}");
    event
}

const STARTED: &str = r#"{"type":"thread.started","thread_id":"t1"}"#;
const TURN: &str = r#"{"type":"turn.started"}"#;
const COMPLETED: &str = r#"{"type":"turn.completed"}"#;

#[test]
fn the_start_has_what_the_agent_left_out() {
    for records in [&[(1, STARTED), (2, TURN)][..], &[(2, TURN)]] {
        let events = events("codex", records);
        let started = one(&events, "session_started");
        assert_eq!(
            (&started["cwd"], &started["model"], &started["permission_mode"]),
            (&json!("/work"), &json!("m"), &json!("default"))
        );
        assert_eq!(started["host_fields"], json!(["cwd", "model", "permission_mode"]));
    }
}

#[test]
fn the_agent_has_precedence_but_for_the_mode() {
    let init = r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/own","model":"own","permissionMode":"plan","tools":[]}"#;
    let events = events("claude", &[(1, init)]);
    let started = one(&events, "session_started");
    assert_eq!((&started["cwd"], &started["model"]), (&json!("/own"), &json!("own")));
    assert_eq!(started["permission_mode"], "default");
    assert_eq!(started["host_fields"], json!(["permission_mode"]));
}

/// Claude is started in its mode `default` whatever the mode of the session is, and reports it with
/// every turn.
#[test]
fn the_agent_does_not_change_the_mode_of_the_host() {
    let init = r#"{"type":"system","subtype":"init","session_id":"s","model":"MODEL","permissionMode":"plan"}"#;
    let records = [(1, &*init.replace("MODEL", "one")), (2, &*init.replace("MODEL", "two"))];
    let events = events("claude", &records);
    let updated = one(&events, "session_updated");
    assert_eq!((&updated["model"], updated.get("permission_mode")), (&json!("two"), None));
}

#[test]
fn a_duration_that_is_not_reported_is_measured() {
    let measured = events("codex", &[(1000, STARTED), (2000, TURN), (3500, COMPLETED)]);
    let ended = one(&measured, "turn_ended");
    assert_eq!((&ended["duration_ms"], &ended["duration_measured"]), (&json!(1500), &json!(true)));
    // So is that of a turn that was cut off.
    let cut_off = events("codex", &[(1000, STARTED), (2000, TURN)]);
    assert_eq!(one(&cut_off, "turn_ended")["duration_ms"], 1);
    let result = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":7,"result":"","session_id":"s"}"#;
    let init = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
    let reported = events("claude", &[(1000, init), (3000, result)]);
    let ended = one(&reported, "turn_ended");
    assert_eq!((&ended["duration_ms"], ended.get("duration_measured")), (&json!(7), None));
}

/// Claude's stream needs these fields.
#[test]
fn an_encoder_writes_the_facts_of_the_host() {
    use interlingua::{Options, Translator, dialect};
    let host = HostFacts { cwd: Some("/work".to_owned()), ..HostFacts::default() };
    let read = ReadOptions { host, ..ReadOptions::default() };
    let options = Options { read, ..Options::default() };
    let claude = dialect::named("claude").unwrap();
    let source = Source::named("codex").unwrap();
    let mut translator = Translator::new(source, claude, options).unwrap();
    let mut written =
        translator.push(format!("{STARTED}\n{TURN}\n").as_bytes(), Some(1000)).to_vec();
    written.extend_from_slice(translator.push(format!("{COMPLETED}\n").as_bytes(), Some(3000)));
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains(r#""cwd":"/work""#), "{written}");
    assert!(written.contains(r#""duration_ms":2000"#), "{written}");
}

/// A service numbers the runs of a chat, and the chat is what is continued.
#[test]
fn the_id_of_the_host_takes_precedence() {
    let host = HostFacts { id: Some("chat".to_owned()), ..HostFacts::default() };
    let options = ReadOptions { host, ..ReadOptions::default() };
    let mut reader = Reader::new(Source::named("giselle").unwrap(), options).unwrap();
    let mut ids = Vec::new();
    let mut keep = |entry: EntryRef<'_>| {
        let event = serde_json::to_value(entry.event).unwrap();
        if event.get("id").is_some() {
            ids.push((event["id"].clone(), event["host_fields"].clone()));
        }
    };
    for id in ["one", "two"] {
        let init = json!({"type": "init", "session_id": id});
        reader.push(format!("{init}\n").as_bytes(), None, &mut keep).unwrap();
    }
    assert_eq!(ids, [(json!("chat"), json!(["id"]))]);
}
