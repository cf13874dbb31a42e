//! The lines of Gemini that matter to its driver, from its stream and over ACP.

use serde::Deserialize;

/// The meaning of a line.
#[derive(Debug)]
pub(super) enum Line {
    /// The session has an id, and, in the stream, a start time.
    Session {
        id: String,
        time: String,
    },
    /// Text of the model.
    Text,
    /// The result of a tool call.
    Result(CallResult),
    /// The turn has ended.
    End,
    Other,
}

/// The printed part of a result.
#[derive(Debug, Default)]
pub(super) struct CallResult {
    pub(super) call: String,
    pub(super) succeeded: bool,
    pub(super) printed: Option<String>,
    /// More than text is printed: a diff, over ACP.
    pub(super) has_more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wire {
    #[serde(rename = "type")]
    kind: String,
    timestamp: String,
    session_id: String,
    role: String,
    tool_id: String,
    status: String,
    output: Option<String>,
    result: Option<Opened>,
    params: Option<Params>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Opened {
    #[serde(rename = "sessionId")]
    session: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Params {
    update: Update,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Update {
    session_update: String,
    tool_call_id: String,
    status: String,
    content: serde_json::Value,
}

impl Line {
    pub(super) fn of(bytes: &[u8]) -> Self {
        if let Some(line) = Self::classify(bytes) {
            return line;
        }
        // A line that cannot be parsed, or has a field of an unexpected type, waits for nothing.
        let wire: Wire = serde_json::from_slice(bytes).unwrap_or_default();
        match wire.kind.as_str() {
            "init" => Self::Session { id: wire.session_id, time: wire.timestamp },
            "message" if wire.role == "assistant" => Self::Text,
            "tool_result" => Self::Result(CallResult {
                call: wire.tool_id,
                succeeded: wire.status == "success",
                printed: wire.output,
                has_more: false,
            }),
            "result" => Self::End,
            "" => Self::from_acp(wire),
            _ => Self::Other,
        }
    }

    /// Classifies the most frequent lines, pieces of text, without parsing them.
    fn classify(bytes: &[u8]) -> Option<Self> {
        let has = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
        if bytes.starts_with(br#"{"type":"message""#) {
            let spoken = has(br#""role":"assistant""#);
            return Some(if spoken { Self::Text } else { Self::Other });
        }
        let update = bytes.starts_with(br#"{"jsonrpc":"2.0","method":"session/update""#);
        (update && !has(b"tool_call_update")).then_some(Self::Other)
    }

    fn from_acp(wire: Wire) -> Self {
        if let Some(id) = wire.result.and_then(|result| result.session) {
            return Self::Session { id, time: String::new() };
        }
        let Some(Params { update, .. }) = wire.params else { return Self::Other };
        let closed = ["completed", "failed"].contains(&update.status.as_str());
        if update.session_update != "tool_call_update" || !closed {
            return Self::Other;
        }
        let content = update.content.as_array();
        Self::Result(CallResult {
            call: update.tool_call_id,
            succeeded: update.status == "completed",
            printed: None,
            has_more: content.is_some_and(|content| !content.is_empty()),
        })
    }
}
