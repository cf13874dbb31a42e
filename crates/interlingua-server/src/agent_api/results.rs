//! What a client answers to a call of one of its tools, in the forms that clients send.

use interlingua::json::Json;
use interlingua::mapper::tool_result_to_relay_response;
use interlingua_sessions::host::Command;
use serde::Deserialize;
use serde_json::Value;

/// The result of a call, as the request of a run contains it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult {
    #[serde(alias = "tool_call_id")]
    pub(super) tool_call_id: String,
    #[serde(alias = "tool_name")]
    tool_name: String,
    /// `output-error` in clients that report errors so.
    state: Option<String>,
    #[serde(default)]
    output: Value,
    #[serde(alias = "error_text")]
    error_text: Option<String>,
}

/// What an agent gets.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    Output(Value),
    Error(String),
}

/// The tools of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormTool {
    Snapshot,
    Execute,
}

impl FormTool {
    pub(super) fn find(name: &str) -> Option<Self> {
        match name {
            "getFormSnapshot" => Some(Self::Snapshot),
            "executeFormActions" => Some(Self::Execute),
            _ => None,
        }
    }

    /// The type of its requests.
    pub(super) fn request(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot_request",
            Self::Execute => "execute_request",
        }
    }

    /// The type of its responses.
    pub(super) fn response(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot_response",
            Self::Execute => "execute_response",
        }
    }

    /// The field of a response in which the result is.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Snapshot => "fields",
            Self::Execute => "report",
        }
    }

    /// What the agent gets of a result: the fields in an object, or the report itself.
    pub(super) fn output(self, result: Value) -> Value {
        match self {
            Self::Snapshot => serde_json::json!({ "fields": result }),
            Self::Execute => result,
        }
    }
}

impl ToolResult {
    /// What the agent gets for a call of a tool.
    pub(super) fn given(&self, called: FormTool) -> Given {
        if FormTool::find(&self.tool_name) != Some(called) {
            return Given::Error(format!("Unknown tool: {}", self.tool_name));
        }
        if self.state.as_deref() == Some("output-error") {
            let text = self.error_text.clone().filter(|text| !text.is_empty());
            return Given::Error(text.unwrap_or_else(|| "the tool has failed".to_owned()));
        }
        unwrapped(called, self)
    }
}

/// The result within an output, which clients wrap in several ways.
fn unwrapped(tool: FormTool, result: &ToolResult) -> Given {
    let missing = || Given::Error(format!("the client's result has no valid `{}`", tool.field()));
    let Some(output) = Json::from_serialize(&result.output) else { return missing() };
    let response = tool_result_to_relay_response(&result.tool_name, &result.tool_call_id, &output);
    let response: Value = serde_json::from_str(&response).unwrap_or_default();
    if let Some(message) = response.get("message").and_then(Value::as_str) {
        return Given::Error(message.to_owned());
    }
    let has_form = |value: &&Value| match tool {
        FormTool::Snapshot => value.is_array(),
        FormTool::Execute => value.is_object(),
    };
    match response.get(tool.field()).filter(has_form) {
        Some(value) => Given::Output(tool.output(value.clone())),
        None => missing(),
    }
}

/// Whether the result in a response of the relay has the form of its tool.
pub(super) fn fits(tool: FormTool, result: &Value) -> bool {
    match tool {
        FormTool::Snapshot => result.as_array().is_some_and(|it| it.iter().all(Value::is_object)),
        FormTool::Execute => {
            let count = |name: &str| result.get(name).is_some_and(Value::is_u64);
            let warnings = result.get("warnings").and_then(Value::as_array);
            let has_texts = warnings.is_some_and(|warnings| warnings.iter().all(Value::is_string));
            count("applied") && count("skipped") && has_texts
        }
    }
}

impl Given {
    /// The command that answers a call.
    pub(super) fn command(self, request: &str) -> Command {
        let (answer, decline) = match self {
            Self::Output(output) => (Some(output), None),
            Self::Error(why) => (None, Some(why)),
        };
        Command::Answer { request: request.to_owned(), answer, decline }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(tool: &str, output: Value) -> Given {
        let result = json!({"toolCallId": "r", "toolName": tool, "output": output});
        let result: ToolResult = serde_json::from_value(result).unwrap();
        result.given(FormTool::find(tool).unwrap_or(FormTool::Snapshot))
    }

    /// Scenario 40, and rule 8.
    #[test]
    fn a_result_is_unwrapped() {
        let fields = json!({"fields": [{"fieldId": "a"}]});
        for output in [
            fields.clone(),
            json!({"type": "json", "value": fields}),
            json!({"value": {"value": fields}}),
            json!([{"type": "text", "text": fields.to_string()}]),
            Value::String(fields.to_string()),
        ] {
            assert_eq!(
                given("getFormSnapshot", output.clone()),
                Given::Output(fields.clone()),
                "{output}"
            );
        }
        let report = json!({"applied": 1, "skipped": 0, "warnings": []});
        let output = given("executeFormActions", json!({"report": report}));
        assert_eq!(output, Given::Output(report), "the report is not wrapped");
    }

    /// B6: an error became a snapshot whose fields were the text of the error.
    #[test]
    fn an_error_stays_an_error() {
        let error = |output: Value| match given("getFormSnapshot", output) {
            Given::Error(why) => why,
            Given::Output(output) => panic!("{output}"),
        };
        assert_eq!(error(json!({"type": "error-text", "value": "boom"})), "boom");
        assert_eq!(error(json!({"type": "error-json", "value": {"a": 1}})), "{\"a\":1}");
        assert!(error(json!("boom")).contains("`fields`"));
        assert_eq!(error(json!({"type": "execution-denied", "reason": "no"})), "no");
        assert!(error(json!({"fields": "boom"})).contains("`fields`"));
        assert!(error(Value::Null).contains("`fields`"));
        assert_eq!(given("fly", json!({})), Given::Error("Unknown tool: fly".to_owned()));
        let failed: ToolResult = serde_json::from_value(json!({
            "tool_call_id": "r", "tool_name": "getFormSnapshot", "state": "output-error", "error_text": "boom",
        }))
        .unwrap();
        assert_eq!(failed.given(FormTool::Snapshot), Given::Error("boom".to_owned()));
    }
}
