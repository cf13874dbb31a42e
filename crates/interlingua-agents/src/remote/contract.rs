//! The requests of the contract, and its errors. It has no I/O.

use interlingua::event::ErrorClass;
use interlingua::json::Json;
use interlingua::mapper::tool_result_to_relay_response;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{RelayAccess, RemoteSettings};
use crate::api::failure::{Failure, Headers};
use crate::session::CallOutcome;

/// A version of the contract.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contract {
    /// Version 1 (`session_id`, `sandbox_id`): results are sent to the relay, and the response goes on.
    #[default]
    Relay,
    /// Version 3 (`chat_id`): results are sent with another run.
    Results,
}

/// The path of a run, behind the address of the service.
pub(super) const RUN: &str = "/run";

/// The result of a call of the client.
#[derive(Debug, Clone)]
pub(super) struct GivenResult {
    /// The id of the call at the service.
    pub(super) request: String,
    pub(super) tool: String,
    pub(super) outcome: CallOutcome,
}

/// The body of a run.
pub(super) fn run(
    settings: &RemoteSettings,
    session: Option<&str>,
    sandbox: Option<&str>,
    message: &str,
    results: &[GivenResult],
) -> String {
    let mut body = Map::new();
    let mut put = |name: &str, value: Option<&str>| {
        body.extend(value.map(|value| (name.to_owned(), Value::from(value))));
    };
    put("type", Some("agent.run"));
    put("message", Some(message));
    put("agent_type", settings.agent_type.as_deref());
    put("snapshot_id", settings.snapshot.as_deref());
    match settings.contract {
        Contract::Relay => {
            put("session_id", session);
            put("sandbox_id", sandbox);
        }
        Contract::Results => {
            put("chat_id", session);
            let results = results.iter().map(GivenResult::to_value).collect();
            body.insert("tool_results".to_owned(), Value::Array(results));
        }
    }
    Value::Object(body).to_string()
}

impl GivenResult {
    /// The result as version 3 takes it. A failure has no field of its own in every service, so it is also
    /// the output.
    fn to_value(&self) -> Value {
        let Self { request, tool, outcome } = self;
        let mut value = json!({"toolCallId": request, "toolName": tool});
        let fields = match outcome {
            CallOutcome::Output(output) => json!({"output": output}),
            failed => {
                let why = failed.text().0;
                json!({"output": {"error": why}, "state": "output-error", "errorText": why})
            }
        };
        if let (Some(all), Value::Object(fields)) = (value.as_object_mut(), fields) {
            all.extend(fields);
        }
        value
    }

    /// The request that gives the result to the relay.
    pub(super) fn to_relay(&self, relay: &RelayAccess) -> String {
        let Self { request, tool, outcome } = self;
        let response = match outcome {
            CallOutcome::Output(output) => match Json::from_serialize(output) {
                Some(output) => tool_result_to_relay_response(tool, request, &output),
                None => error_response(request, "the result is no JSON"),
            },
            failed => error_response(request, &failed.text().0),
        };
        let response = RawValue::from_string(response).unwrap_or_default();
        let RelayAccess { session, token, .. } = relay;
        // A raw value always has a JSON form.
        let response = serde_json::to_value(&response).unwrap_or_default();
        json!({"type": "relay.respond", "sessionId": session, "token": token, "response": response})
            .to_string()
    }
}

fn error_response(request: &str, why: &str) -> String {
    // The contract wants a message.
    let message = if why.trim().is_empty() { "the tool has failed" } else { why };
    json!({"type": "error_response", "requestId": request, "message": message}).to_string()
}

/// The body of an error. Some services write only a text.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ErrorBody {
    error_code: Option<String>,
    message: Option<String>,
}

/// The longest text of a service that is quoted, in bytes.
const LONGEST_QUOTE: usize = 500;

/// A response that is an error.
pub(super) fn failure(status: u16, headers: &Headers, body: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(body);
    let read = serde_json::from_str::<ErrorBody>(&text).unwrap_or_default();
    let text = read.message.unwrap_or_else(|| text.trim().to_owned());
    let quoted = text.get(..text.floor_char_boundary(LONGEST_QUOTE)).unwrap_or_default();
    let message = match quoted {
        "" => format!("the service answered with the status {status}"),
        quoted => format!("the service answered with the status {status}: {quoted}"),
    };
    let mut failure = Failure::new(ErrorClass::of_http_status(u64::from(status)), message);
    failure.code = read.error_code;
    failure.http_status = Some(u64::from(status));
    failure.hint = headers.retry_after();
    // Of any other response it is not known whether the agent has begun.
    failure.is_unsent = matches!(status, 429 | 503);
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(contract: Contract) -> RemoteSettings {
        let agent_type = Some("codex".to_owned());
        RemoteSettings {
            contract,
            agent_type,
            ..super::super::session::testing::settings("http://h")
        }
    }

    fn given(outcome: CallOutcome) -> GivenResult {
        GivenResult { request: "r1".to_owned(), tool: "getFormSnapshot".to_owned(), outcome }
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_run_has_the_fields_of_its_version() {
        let first = run(&settings(Contract::Relay), Some("s1"), Some("box"), "do it", &[]);
        let expected = json!({"type": "agent.run", "message": "do it", "agent_type": "codex", "session_id": "s1", "sandbox_id": "box"});
        assert_eq!(value(&first), expected);
        let results = [given(CallOutcome::Output(json!({"fields": []})))];
        let third = run(&settings(Contract::Results), Some("c1"), Some("box"), "do it", &results);
        let result =
            json!({"toolCallId": "r1", "toolName": "getFormSnapshot", "output": {"fields": []}});
        let expected = json!({"type": "agent.run", "message": "do it", "agent_type": "codex", "chat_id": "c1", "tool_results": [result]});
        assert_eq!(value(&third), expected);
    }

    #[test]
    fn a_result_is_what_the_relay_expects() {
        let relay = RelayAccess { session: "s".into(), token: "t".into(), url: String::new() };
        let sent = value(&given(CallOutcome::Output(json!({"fields": [1]}))).to_relay(&relay));
        assert_eq!(
            (&sent["type"], &sent["sessionId"], &sent["token"]),
            (&json!("relay.respond"), &json!("s"), &json!("t"))
        );
        assert_eq!(
            sent["response"],
            json!({"type": "snapshot_response", "requestId": "r1", "fields": [1]})
        );
        for outcome in [CallOutcome::Failed("boom".into()), CallOutcome::Denied("boom".into())] {
            let sent = value(&given(outcome.clone()).to_relay(&relay));
            assert_eq!(
                sent["response"],
                json!({"type": "error_response", "requestId": "r1", "message": "boom"})
            );
            let result = given(outcome).to_value();
            assert_eq!(
                (&result["state"], &result["errorText"]),
                (&json!("output-error"), &json!("boom"))
            );
        }
        let empty = value(&given(CallOutcome::Failed(String::new())).to_relay(&relay));
        assert_eq!(empty["response"]["message"], "the tool has failed");
    }

    #[test]
    fn an_error_names_what_the_service_says() {
        let of = |status, body: &str| failure(status, &Headers::default(), body.as_bytes());
        let refused =
            of(401, r#"{"ok":false,"errorCode":"UNAUTHORIZED","message":"Unauthorized."}"#);
        assert_eq!(refused.message, "the service answered with the status 401: Unauthorized.");
        assert_eq!(
            (refused.class, refused.code.as_deref()),
            (ErrorClass::Authentication, Some("UNAUTHORIZED"))
        );
        let plain = of(429, "Rate limit exceeded");
        assert_eq!((plain.class, plain.is_unsent), (ErrorClass::RateLimit, true));
        assert!(!of(502, "").is_unsent && of(500, &"ä".repeat(1000)).message.len() < 600);
    }
}
