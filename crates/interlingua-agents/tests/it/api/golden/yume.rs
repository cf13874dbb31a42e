//! The output for Yume: what the contract requires of every session, and the reviewed sessions.

use std::path::Path;

use interlingua::dialect;
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::laws::{records, write};
use super::scenarios::{Scenario, Session};
use crate::api::APIS;

/// How the error of a lost connection begins.
const LOST: &str = "the connection was lost";

/// The records for Yume. What the session reports about the machine is left out.
fn output(session: &Session) -> Vec<Value> {
    let mut log = session.log();
    log.retain(|entry| !matches!(entry.event.data, interlingua::event::Data::Notice(_)));
    let written = records(&write(dialect::find("yume").unwrap(), &log, false));
    written.iter().map(|record| fixed(session.without_folder(record), session)).collect()
}

/// A value without what differs between two runs or machines: generated ids, times, and the
/// estimated size of a request, which names the folder.
pub(super) fn fixed(value: Value, session: &Session) -> Value {
    match value {
        Value::String(text) if session.events[0]["id"] == *text => "SESSION".into(),
        Value::String(text) if text.starts_with("chunk-") => "CHUNK".into(),
        // The system decides which error a lost connection is.
        Value::String(text) if text.starts_with(LOST) => LOST.into(),
        Value::Array(values) => values.into_iter().map(|it| fixed(it, session)).collect(),
        Value::Object(fields) => {
            // Other APIs report the input when a response begins.
            let is_estimated = matches!(session.api, ApiKind::Chat | ApiKind::Responses)
                && fields.get("estimated") == Some(&json!(true));
            let fields = fields.into_iter().map(|(name, value)| {
                let value = match &*name {
                    "uuid" => json!("UUID"),
                    "duration_ms" | "duration_api_ms" | "timestamp" => json!(0),
                    "input_tokens" | "inputTokens" if is_estimated => json!("ESTIMATED"),
                    _ => fixed(value, session),
                };
                (name, value)
            });
            fields.collect::<serde_json::Map<_, _>>().into()
        }
        other => other,
    }
}

#[tokio::test]
async fn the_golden_sessions_are_as_reviewed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/api/golden/sessions");
    for (scenario, api) in Scenario::ALL.iter().flat_map(|it| APIS.map(|api| (it, api))) {
        let (name, session) = (scenario.name, scenario.run(api).await);
        let now: String = output(&session).iter().map(|record| format!("{record}\n")).collect();
        let path = folder.join(format!("{name}.{}.yume.jsonl", api.dialect_name()));
        is_as_reviewed(&session, &path, &now);
    }
}

/// Compares the records of a session with the reviewed ones, or replaces them.
pub(super) fn is_as_reviewed(session: &Session, path: &Path, now: &str) {
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        return std::fs::write(path, now).unwrap();
    }
    let reviewed = std::fs::read_to_string(path).unwrap();
    // The order of fields depends on features that other crates may enable.
    let values = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(values(now), values(&reviewed), "{}", session.name);
}

#[tokio::test]
async fn every_session_keeps_the_order_of_the_contract() {
    for scenario in Scenario::ALL {
        for api in APIS {
            let session = scenario.run(api).await;
            let records = output(&session);
            keeps_order(&session, &records);
            calls_wait_for_their_results(&session, &records);
        }
    }
}

/// The first record is `init`, the last ones are `result` and `message_stop`, and there is one each.
fn keeps_order(session: &Session, records: &[Value]) {
    let kinds: Vec<_> = records.iter().map(kind).collect();
    let count = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
    let name = &session.name;
    assert_eq!(kinds[0], "system init", "{name}: {kinds:?}");
    assert_eq!(kinds[kinds.len() - 2..], ["result", "message_stop"], "{name}");
    for kind in ["system init", "result", "message_stop"] {
        assert_eq!(count(kind), 1, "{name}: {kinds:?}");
    }
}

/// A call is followed by its result, and nothing stands between them.
fn calls_wait_for_their_results(session: &Session, records: &[Value]) {
    for (at, call) in records.iter().enumerate().filter(|(_, it)| it["type"] == "tool_use") {
        let next = &records[at + 1];
        assert_eq!(
            (&next["type"], &next["tool_use_id"]),
            (&json!("tool_result"), &call["id"]),
            "{}: {call}",
            session.name
        );
    }
}

fn kind(record: &Value) -> String {
    let kind = record["type"].as_str().unwrap();
    match record["subtype"].as_str() {
        Some(subtype) if kind == "system" => format!("{kind} {subtype}"),
        _ => kind.to_owned(),
    }
}

#[tokio::test]
async fn an_interrupt_is_followed_by_a_cancelled_result() {
    for api in APIS {
        let records = output(&Scenario::named("interrupt").run(api).await);
        let kinds: Vec<_> = records.iter().map(kind).collect();
        let interrupt = kinds.iter().position(|kind| kind == "interrupt").unwrap();
        let result = records.iter().find(|it| it["type"] == "result").unwrap();
        assert!(interrupt < kinds.iter().position(|kind| kind == "result").unwrap());
        assert_eq!(result["subtype"], "cancelled", "{api:?}");
    }
}

#[tokio::test]
async fn a_failed_sign_in_is_an_error_of_the_system() {
    for api in APIS {
        let records = output(&Scenario::named("sign-in").run(api).await);
        let error = records.iter().find(|it| kind(it) == "system error");
        assert!(error.is_some(), "{api:?}: {records:#?}");
        let result = records.iter().find(|it| it["type"] == "result").unwrap();
        assert_eq!(result["is_error"], true, "{api:?}");
    }
}

#[tokio::test]
async fn retries_are_listed_in_the_result() {
    for api in APIS {
        // The same error is listed once, however often it occurred.
        for name in ["rate-limit", "cut-in-text", "cut-in-arguments"] {
            let records = output(&Scenario::named(name).run(api).await);
            let result = records.iter().find(|it| it["type"] == "result").unwrap();
            assert_eq!(result["errors"].as_array().map(Vec::len), Some(1), "{api:?} {result}");
            assert_eq!(result["is_error"], false, "{api:?}");
        }
    }
}
