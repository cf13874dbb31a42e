//! What a driver has to know of a line that Gemini prints, in its stream and by ACP.

use serde::Deserialize;

/// What a line says.
#[derive(Debug)]
pub(super) enum Line {
    /// The session has a name, and began at a time, where that is told.
    Session {
        id: String,
        time: String,
    },
    /// The model says something.
    Text,
    /// A call was answered.
    Answer(Answer),
    /// The turn is over.
    End,
    Other,
}

/// What is printed of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) call: String,
    pub(super) went_well: bool,
    pub(super) shown: Option<String>,
    /// More than text is printed: a difference, by ACP.
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
        if let Some(line) = Self::at_a_glance(bytes) {
            return line;
        }
        // A line that cannot be read, or of which a field is of another type, waits for nothing.
        let wire: Wire = serde_json::from_slice(bytes).unwrap_or_default();
        match wire.kind.as_str() {
            "init" => Self::Session { id: wire.session_id, time: wire.timestamp },
            "message" if wire.role == "assistant" => Self::Text,
            "tool_result" => Self::Answer(Answer {
                call: wire.tool_id,
                went_well: wire.status == "success",
                shown: wire.output,
                has_more: false,
            }),
            "result" => Self::End,
            "" => Self::by_acp(wire),
            _ => Self::Other,
        }
    }

    /// What most lines are, pieces of text, without reading them.
    fn at_a_glance(bytes: &[u8]) -> Option<Self> {
        let has = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
        if bytes.starts_with(br#"{"type":"message""#) {
            let spoken = has(br#""role":"assistant""#);
            return Some(if spoken { Self::Text } else { Self::Other });
        }
        let update = bytes.starts_with(br#"{"jsonrpc":"2.0","method":"session/update""#);
        (update && !has(b"tool_call_update")).then_some(Self::Other)
    }

    fn by_acp(wire: Wire) -> Self {
        if let Some(id) = wire.result.and_then(|result| result.session) {
            return Self::Session { id, time: String::new() };
        }
        let Some(Params { update, .. }) = wire.params else { return Self::Other };
        let over = ["completed", "failed"].contains(&update.status.as_str());
        if update.session_update != "tool_call_update" || !over {
            return Self::Other;
        }
        let content = update.content.as_array();
        Self::Answer(Answer {
            call: update.tool_call_id,
            went_well: update.status == "completed",
            shown: None,
            has_more: content.is_some_and(|content| !content.is_empty()),
        })
    }
}
