//! The lines of the bridge, and what is read of them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A line of the bridge.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    pub(super) status: Option<u16>,
    #[serde(borrow)]
    pub(super) body: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) stream: Option<Cow<'a, str>>,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) properties: Option<&'a RawValue>,
}

/// The properties of an event that are read here.
#[derive(Deserialize)]
pub(super) struct Properties<'a> {
    #[serde(rename = "sessionID", borrow)]
    pub(super) session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(rename = "requestID", borrow)]
    pub(super) request: Option<Cow<'a, str>>,
    pub(super) questions: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(super) status: Option<Status<'a>>,
    #[serde(borrow)]
    pub(super) tool: Option<ToolReference<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ToolReference<'a> {
    #[serde(rename = "callID", borrow)]
    pub(super) call: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct Status<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
}

/// The id of a session, as its description has it.
pub(super) fn session_id(body: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Session {
        id: String,
    }
    serde_json::from_str::<Session>(body).ok().map(|session| session.id)
}

/// The reason for which a request failed.
pub(super) fn problem(line: &Line<'_>) -> String {
    let body: Value =
        line.body.and_then(|body| serde_json::from_str(body.get()).ok()).unwrap_or_default();
    let message = body.pointer("/data/message").or(body.get("message")).and_then(Value::as_str);
    match (message, &line.error, line.status) {
        (Some(message), ..) => message.to_owned(),
        (None, Some(error), _) => format!("a request to OpenCode failed: {error}"),
        (None, None, status) => {
            format!("OpenCode rejected a request with status {}", status.unwrap_or_default())
        }
    }
}
