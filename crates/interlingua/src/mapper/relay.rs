//! Converts a tool's result to the relay's response, and back.

use crate::dialect::giselle::{EXECUTE_TOOL, SNAPSHOT_TOOL};
use crate::json::read;
use crate::json::write::Object;
use crate::json::{Json, Text, record};

/// A relay's response as the result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayAnswer {
    /// The tool that was run; `None` if the response does not contain it.
    pub tool: Option<&'static str>,
    /// The id of the call that it answers.
    pub call: String,
    /// The tool's result, or why it failed.
    pub result: Result<Json<'static>, String>,
}

record! {
    /// A result, in one of the forms that consumers wrap it in.
    struct Wrapped<'a> {
        kind: text "type",
        value: json "value",
        text: text "text",
        reason: text "reason",
        fields: json "fields",
        report: json "report",
    }
}

/// The response that the relay expects for the result of a client's tool, as JSON.
///
/// The result may be the bare value, a value that is wrapped as in the AI SDK
/// (`{"type":"json","value":…}`), or a list of text blocks that contain JSON. A call that failed,
/// was denied, or has a tool that the relay does not know gives an `error_response` with the cause.
///
/// ```
/// use interlingua::json::Json;
/// use interlingua::mapper::tool_result_to_relay_response;
///
/// let result = Json::from_text(r#"{"fields":[]}"#.into()).unwrap();
/// assert_eq!(
///     tool_result_to_relay_response("getFormSnapshot", "req-1", &result),
///     r#"{"type":"snapshot_response","requestId":"req-1","fields":[]}"#
/// );
/// ```
pub fn tool_result_to_relay_response(tool: &str, call: &str, result: &Json<'_>) -> String {
    let (kind, field) = match tool {
        SNAPSHOT_TOOL => ("snapshot_response", "fields"),
        EXECUTE_TOOL => ("execute_response", "report"),
        _ => return error_response(call, &format!("Unknown tool: {tool}")),
    };
    match unwrap(result, field, 0) {
        Ok(Some(value)) => respond(call, kind, |record| {
            record.json(field, &value);
        }),
        Ok(None) => error_response(call, &format!("The result of {tool} has no `{field}`")),
        Err(message) => error_response(call, &message),
    }
}

/// The result in a relay's response; `None` if the value is not a response.
pub fn relay_response_to_tool_result(response: &Json<'_>) -> Option<RelayAnswer> {
    record! {
        struct Response<'a> {
            kind: text "type",
            call: text "requestId",
            fields: json "fields",
            report: json "report",
            message: text "message",
        }
    }
    let response = read::record_of::<Response<'_>>(response)?;
    let call = response.call?.to_string();
    let wrap = |field: &str, value: Option<Json<'_>>| {
        Ok(Json::object(|result| {
            result.json_if(field, value.as_ref());
        }))
    };
    let (tool, result) = match response.kind?.body() {
        "snapshot_response" => (Some(SNAPSHOT_TOOL), wrap("fields", response.fields)),
        "execute_response" => (Some(EXECUTE_TOOL), wrap("report", response.report)),
        "error_response" => (None, Err(response.message.unwrap_or_default().to_string())),
        _ => return None,
    };
    Some(RelayAnswer { tool, call, result })
}

/// The maximum depth to which a result may be wrapped.
const MAX_DEPTH: u32 = 8;

/// Finds the value of a field in a result, however it is wrapped. An error is that of the tool.
fn unwrap(result: &Json<'_>, field: &str, depth: u32) -> Result<Option<Json<'static>>, String> {
    if depth > MAX_DEPTH {
        return Ok(None);
    }
    if let Some(text) = result.as_text() {
        let inner = Json::from_text(text.to_string());
        return inner.map_or(Ok(None), |inner| unwrap(&inner, field, depth + 1));
    }
    if let Some(blocks) = read::records_of::<Wrapped<'_>>(result) {
        let text = blocks.into_iter().find_map(|block| block.text);
        let inner = text.and_then(|text| Json::from_text(text.to_string()));
        return inner.map_or(Ok(None), |inner| unwrap(&inner, field, depth + 1));
    }
    let Some(wrapped) = read::record_of::<Wrapped<'_>>(result) else { return Ok(None) };
    let own = if field == "fields" { wrapped.fields } else { wrapped.report };
    if let Some(value) = own {
        return Ok(Some(value.into_owned()));
    }
    let error_text = |value: Option<Json<'_>>| match value {
        Some(value) => {
            value.as_text().map_or_else(|| value.get().to_owned(), |text| text.to_string())
        }
        None => "The tool failed".to_owned(),
    };
    match wrapped.kind.as_ref().map_or("", Text::body) {
        "error-text" | "error-json" => Err(error_text(wrapped.value)),
        "execution-denied" => Err(wrapped
            .reason
            .map_or_else(|| "The user denied the tool call".to_owned(), |why| why.to_string())),
        _ => wrapped.value.map_or(Ok(None), |value| unwrap(&value, field, depth + 1)),
    }
}

fn error_response(call: &str, message: &str) -> String {
    respond(call, "error_response", |record| {
        record.string("message", message);
    })
}

fn respond(call: &str, kind: &str, fields: impl FnOnce(&mut Object<'_>)) -> String {
    let mut bytes = Vec::new();
    let mut record = Object::record(&mut bytes, kind);
    record.string("requestId", call);
    fields(&mut record);
    record.close();
    String::from_utf8(bytes).unwrap_or_default()
}
