//! Our ACP output conforms to the published schema: its types can read it, and lose nothing of it.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, Error, PromptResponse, RequestPermissionRequest, SessionNotification,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::support::{Case, translate};

#[test]
fn every_line_that_we_write_conforms_to_the_schema() {
    for case in Case::all() {
        let written = translate("acp", &case.input, &case.exit);
        // The records of real agents are passed through unchanged.
        if written.from().is_some_and(|from| from.name == "acp") {
            continue;
        }
        for message in written.records() {
            let context = format!("{}: {message}", case.name);
            assert_eq!(message["jsonrpc"], "2.0", "{context}");
            match message["method"].as_str() {
                Some("session/update") => {
                    assert!(message.get("id").is_none(), "{context}");
                    assert_kept::<SessionNotification>(&message["params"], &context);
                }
                Some("session/request_permission") => {
                    assert!(message["id"].is_u64(), "{context}");
                    assert_kept::<RequestPermissionRequest>(&message["params"], &context);
                }
                Some("elicitation/create") => {
                    assert!(message["id"].is_u64(), "{context}");
                    assert_kept::<CreateElicitationRequest>(&message["params"], &context);
                }
                Some(other) => panic!("{other}: {context}"),
                None if message.get("error").is_some() => {
                    assert_kept::<Error>(&message["error"], &context);
                }
                None => assert_kept::<PromptResponse>(&message["result"], &context),
            }
        }
    }
}

/// Reads a value with a type of the schema, and compares what the type kept: the types skip what
/// they cannot read, and leave out defaults.
fn assert_kept<T: DeserializeOwned + Serialize>(value: &Value, context: &str) {
    let read: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {context}"));
    let kept = serde_json::to_value(read).unwrap();
    let lost = lost(value, &kept, "");
    assert!(lost.is_empty(), "{lost:?}: {context}");
}

/// The fields that a value has and the other does not.
fn lost(value: &Value, kept: &Value, path: &str) -> Vec<String> {
    match (value, kept) {
        (Value::Object(fields), Value::Object(_)) => fields
            .iter()
            .filter(|(name, value)| kept.get(name).is_some() || !is_default(name, value))
            .flat_map(|(name, value)| lost(value, &kept[name], &format!("{path}.{name}")))
            .collect(),
        (Value::Array(list), Value::Array(other)) if list.len() == other.len() => {
            list.iter().zip(other).flat_map(|(one, two)| lost(one, two, path)).collect()
        }
        _ if value == kept => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

fn is_default(name: &str, value: &Value) -> bool {
    let default = [("kind", "other"), ("status", "pending")];
    value.as_array().is_some_and(Vec::is_empty)
        || default.iter().any(|(field, word)| name == *field && value == *word)
}
