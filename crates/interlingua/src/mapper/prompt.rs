//! Extracts the user's message and the results of the client's tools from a prompt of the AI SDK.
//!
//! It reads the prompts that `doStream` receives in versions 3 and 4 of the language model
//! specification, and the older form with the result in `result`.

use crate::json::read;
use crate::json::{Json, Text, record};

/// The result of a tool that the client ran.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The tool.
    pub tool_name: String,
    /// The id of the call; for a tool of the relay, that of its request.
    pub tool_call_id: String,
    /// The tool's result, or why it failed or was denied.
    pub result: Result<Json<'static>, String>,
}

record! {
    struct Message<'a> {
        role: text "role",
        content: json "content",
    }
}

record! {
    struct Part<'a> {
        kind: text "type",
        text: text "text",
        tool_name: text "toolName",
        tool_call_id: text "toolCallId",
        output: json "output",
        result: json "result",
        is_error: flag "isError",
    }
}

record! {
    struct Output<'a> {
        kind: text "type",
        value: json "value",
        reason: text "reason",
    }
}

/// The text of the user's last message: its text parts, concatenated. `None` if there is no such
/// message, or none of its parts is text.
///
/// ```
/// use interlingua::json::Json;
/// use interlingua::mapper::extract_user_message;
///
/// let prompt = r#"[{"role":"user","content":[{"type":"text","text":"Fill the form"}]}]"#;
/// let prompt = Json::from_text(prompt.into()).unwrap();
/// assert_eq!(extract_user_message(&prompt).as_deref(), Some("Fill the form"));
/// ```
pub fn extract_user_message(prompt: &Json<'_>) -> Option<String> {
    let messages = read::records_of::<Message<'_>>(prompt)?;
    let is_users = |message: &&Message<'_>| message.role.as_ref().is_some_and(|it| *it == "user");
    let content = messages.iter().rfind(is_users)?.content.as_ref()?;
    if let Some(text) = content.as_text() {
        return Some(text.to_string()).filter(|text| !text.is_empty());
    }
    let parts = read::records_of::<Part<'_>>(content)?;
    let texts = parts.iter().filter(|part| part.is("text")).filter_map(|part| part.text.as_ref());
    let text = texts.map(Text::to_plain).collect::<String>();
    Some(text).filter(|text| !text.is_empty())
}

/// The results of the client's tools at the end of the prompt. Those before the assistant's last
/// message were sent with an earlier prompt.
///
/// ```
/// use interlingua::json::Json;
/// use interlingua::mapper::extract_tool_results;
///
/// let prompt = r#"[{"role":"tool","content":[{"type":"tool-result","toolCallId":"req-1",
///     "toolName":"getFormSnapshot","output":{"type":"json","value":{"fields":[]}}}]}]"#;
/// let results = extract_tool_results(&Json::from_text(prompt.into()).unwrap());
/// assert_eq!(results[0].tool_call_id, "req-1");
/// assert_eq!(results[0].result.as_ref().unwrap().get(), r#"{"fields":[]}"#);
/// ```
pub fn extract_tool_results(prompt: &Json<'_>) -> Vec<ToolResult> {
    let messages = read::records_of::<Message<'_>>(prompt).unwrap_or_default();
    let is_assistants =
        |message: &Message<'_>| message.role.as_ref().is_some_and(|it| *it == "assistant");
    let start = messages.iter().rposition(is_assistants).map_or(0, |at| at + 1);
    let of_tools = messages
        .iter()
        .skip(start)
        .filter(|message| message.role.as_ref().is_some_and(|it| *it == "tool"));
    let contents = of_tools.filter_map(|message| message.content.as_ref());
    let parts = contents.flat_map(|it| read::records_of::<Part<'_>>(it).unwrap_or_default());
    parts.filter(|part| part.is("tool-result")).filter_map(tool_result).collect()
}

fn tool_result(part: Part<'_>) -> Option<ToolResult> {
    let failed = part.is_error == Some(true);
    let result = match (part.output, part.result) {
        (Some(output), _) => result_of(&output),
        (None, Some(result)) if failed => Err(in_words(&result)),
        (None, result) => Ok(result.map_or_else(null, Json::into_owned)),
    };
    Some(ToolResult {
        tool_name: part.tool_name?.to_string(),
        tool_call_id: part.tool_call_id?.to_string(),
        result,
    })
}

/// The result in an output, which has a type and a value.
fn result_of(output: &Json<'_>) -> Result<Json<'static>, String> {
    let Some(Output { kind: Some(kind), value, reason }) = read::record_of::<Output<'_>>(output)
    else {
        return Ok(output.clone().into_owned());
    };
    match kind.body() {
        "error-text" | "error-json" => {
            Err(value.map_or_else(|| "The tool failed".to_owned(), |value| in_words(&value)))
        }
        "execution-denied" => Err(reason.map_or_else(
            || "The user denied the tool call".to_owned(),
            |reason| reason.to_string(),
        )),
        _ => Ok(value.map_or_else(null, Json::into_owned)),
    }
}

fn in_words(value: &Json<'_>) -> String {
    value.as_text().map_or_else(|| value.get().to_owned(), |text| text.to_string())
}

fn null() -> Json<'static> {
    Json::NULL
}

impl Part<'_> {
    fn is(&self, kind: &str) -> bool {
        self.kind.as_ref().is_some_and(|own| *own == *kind)
    }
}
