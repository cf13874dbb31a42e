//! Side requests: requests outside the main conversation, and their answers.
//!
//! A request shows that it is one: it offers no tools of the agent's own, it forces one tool or a
//! form of answer, or its last message starts with text that an agent uses only for such requests.
//! Side requests never take a reply from the script.

use serde_json::{Map, Value, json};

use crate::conversation::Conversation;

/// A side request that offers tools, recognised by the start of its last message.
struct Opening {
    reason: &'static str,
    words: &'static str,
    /// What the agent expects around the answer.
    around: (&'static str, &'static str),
}

const OPENINGS: &[Opening] = &[
    // Observed with claude 2.1.325. It repeats the request if there is no summary.
    Opening {
        reason: "claude: compaction",
        words: "CRITICAL: Respond with TEXT ONLY",
        around: ("<analysis>None.</analysis>\n<summary>", "</summary>"),
    },
    // Contained in claude 2.1.325, which sends it only from its terminal UI; observed with qwen
    // 0.24.4.
    Opening { reason: "suggestion", words: "[SUGGESTION MODE", around: ("", "") },
];

fn opening(conversation: &Conversation) -> Option<&'static Opening> {
    let last = conversation.last_user_text();
    OPENINGS.iter().find(|opening| last.starts_with(opening.words))
}

/// Why a request is outside the main conversation, if it is.
pub(crate) fn reason(conversation: &Conversation) -> Option<&'static str> {
    if conversation.tools.is_empty() {
        return Some("no tools");
    }
    if conversation.forced_tool.is_some() {
        return Some("one tool is forced");
    }
    opening(conversation).map(|opening| opening.reason)
}

/// The answer to a side request.
#[derive(Debug, PartialEq)]
pub(crate) enum SideAnswer {
    Text(String),
    Call { name: String, input: Value },
}

/// A short answer in the form that the request requires.
pub(crate) fn answer(conversation: &Conversation, text: &str) -> SideAnswer {
    if let Some(name) = &conversation.forced_tool {
        let schema = conversation.tools.iter().find(|tool| &tool.name == name);
        let schema = schema.and_then(|tool| tool.schema.as_ref());
        let input = schema.map_or(json!({}), |schema| smallest(schema, text, 0));
        return SideAnswer::Call { name: name.clone(), input };
    }
    match &conversation.answer_schema {
        Some(schema) => SideAnswer::Text(smallest(schema, text, 0).to_string()),
        None if conversation.answer_json => SideAnswer::Text("{}".to_owned()),
        None => {
            let (before, after) = opening(conversation).map_or(("", ""), |opening| opening.around);
            SideAnswer::Text(format!("{before}{text}{after}"))
        }
    }
}

/// The smallest value that fits a schema, for the features of schemas that agents use.
fn smallest(schema: &Value, text: &str, depth: usize) -> Value {
    if depth > 16 {
        return Value::Null;
    }
    if let Some(value) = schema.get("const").or_else(|| schema.pointer("/enum/0")) {
        return value.clone();
    }
    for choice in ["/anyOf/0", "/oneOf/0", "/allOf/0"] {
        if let Some(schema) = schema.pointer(choice) {
            return smallest(schema, text, depth + 1);
        }
    }
    match kind(schema).as_str() {
        "object" => Value::Object(smallest_object(schema, text, depth)),
        "array" => json!([]),
        // Gemini CLI requires a score of at least 1, and states it only in prose.
        "number" | "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!(text),
    }
}

fn smallest_object(schema: &Value, text: &str, depth: usize) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten();
    fields.map(|(name, schema)| (name.clone(), smallest(schema, text, depth + 1))).collect()
}

/// The type of a schema, in lower case (Gemini writes it in capitals).
fn kind(schema: &Value) -> String {
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    kind.unwrap_or_default().to_ascii_lowercase()
}
