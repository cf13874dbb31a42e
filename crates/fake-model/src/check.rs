//! The rules that a request must keep to be accepted by the real API.
//!
//! Each breach has a name. The checks use the conversation and the key, never the script. A breach
//! that depends on earlier replies (a call that vanished) is found in the state.

use std::collections::HashSet;

use crate::conversation::{Conversation, Entry, Role};
use crate::keys::Key;
use crate::protocol::Protocol;

/// An error of a request, or of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The number of the request.
    pub request: usize,
    /// The broken rule.
    pub breach: Breach,
    /// A description of where and how it was broken.
    pub detail: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "request {}: {}: {}", self.request, self.breach.name(), self.detail)
    }
}

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Breach {
    /// The request has no key.
    KeyMissing,
    /// The key is not the one of the script.
    KeyWrong,
    /// The body cannot be decoded or is not JSON.
    BodyUnreadable,
    /// No model is named.
    ModelMissing,
    /// A stream was expected and not requested, or the reverse.
    StreamUnexpected,
    /// There is no message.
    MessagesEmpty,
    /// A role that the API does not know.
    RoleUnknown,
    /// The conversation does not start with the person.
    FirstRole,
    /// The conversation ends with a message or calls of the model.
    LastRole,
    /// A message is empty where the API does not allow it.
    ContentEmpty,
    /// A call is not answered, or not before the next message.
    CallUnanswered,
    /// Two calls have the same id.
    CallTwice,
    /// A call that was sent is not in the next request of its conversation.
    CallLost,
    /// A call is answered twice.
    AnswerTwice,
    /// An answer without a call.
    AnswerWithoutCall,
    /// The schema of a tool is not an object.
    SchemaNotObject,
    /// A tool has no name, or the name of another.
    ToolName,
    /// The header `anthropic-version` is missing, or names a version that is not accepted.
    VersionWrong,
    /// A field that the API refuses, or one that is missing (strict).
    FieldRefused,
    /// Something other than a call follows a call in a message (strict).
    TextAfterCall,
    /// Answers are not all directly after their calls, in one message where the API wants that, in
    /// order, and without other content (strict).
    AnswersMisplaced,
    /// An answer lacks the id that its call had (strict).
    AnswerIdMissing,
    /// A reasoning item is not followed by the item that it led to (strict).
    ReasoningAlone,
    /// The system prompt changed within a conversation (strict).
    SystemChanged,
    /// The offered tools changed within a conversation (strict).
    ToolsChanged,
    /// An earlier message changed within a conversation (strict).
    HistoryChanged,
    /// An answer came back with another text, or other calls, than it was sent with (strict).
    ReplyChanged,
    /// A signature, or reasoning that must come back, is missing (strict).
    SignatureMissing,
    /// A signature, or what it signs, was changed (strict).
    SignatureChanged,
    /// A signature is not where it was sent (strict).
    SignatureMisplaced,
    /// The script has an action that no offered tool can do.
    ActionWithoutTool,
    /// The script has no replies left.
    ScriptExhausted,
}

impl Breach {
    /// The name of the rule.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyWrong => "key-wrong",
            Self::BodyUnreadable => "body-unreadable",
            Self::ModelMissing => "model-missing",
            Self::StreamUnexpected => "stream-unexpected",
            Self::MessagesEmpty => "messages-empty",
            Self::RoleUnknown => "role-unknown",
            Self::FirstRole => "first-role",
            Self::LastRole => "last-role",
            Self::ContentEmpty => "content-empty",
            Self::CallUnanswered => "call-unanswered",
            Self::CallTwice => "call-twice",
            Self::CallLost => "call-lost",
            Self::AnswerTwice => "answer-twice",
            Self::AnswerWithoutCall => "answer-without-call",
            Self::SchemaNotObject => "schema-not-object",
            Self::ToolName => "tool-name",
            Self::VersionWrong => "version-wrong",
            Self::FieldRefused => "field-refused",
            Self::TextAfterCall => "text-after-call",
            Self::AnswersMisplaced => "answers-misplaced",
            Self::AnswerIdMissing => "answer-id-missing",
            Self::ReasoningAlone => "reasoning-alone",
            Self::SystemChanged => "system-changed",
            Self::ToolsChanged => "tools-changed",
            Self::HistoryChanged => "history-changed",
            Self::ReplyChanged => "reply-changed",
            Self::SignatureMissing => "signature-missing",
            Self::SignatureChanged => "signature-changed",
            Self::SignatureMisplaced => "signature-misplaced",
            Self::ActionWithoutTool => "action-without-tool",
            Self::ScriptExhausted => "script-exhausted",
        }
    }
}

/// The breaches of one request, with their details.
pub(crate) type Breaches = Vec<(Breach, String)>;

/// Checks the key.
pub(crate) fn key(key: Key) -> Breaches {
    match key {
        Key::Right => Vec::new(),
        Key::Missing => vec![(Breach::KeyMissing, "no header or query has a key".to_owned())],
        Key::Wrong => vec![(Breach::KeyWrong, "the key is not the one of the script".to_owned())],
    }
}

/// Checks the content of a request.
pub(crate) fn conversation(protocol: Protocol, conversation: &Conversation) -> Breaches {
    let mut breaches = Vec::new();
    if conversation.model.as_deref().unwrap_or_default().is_empty() {
        breaches.push((Breach::ModelMissing, "the request names no model".to_owned()));
    }
    tools(conversation, &mut breaches);
    if conversation.entries.is_empty() {
        breaches.push((Breach::MessagesEmpty, "the request has no messages".to_owned()));
        return breaches;
    }
    roles(protocol, &conversation.entries, &mut breaches);
    Pairing { strict: protocol != Protocol::Responses, ..Pairing::default() }
        .check(&conversation.entries, &mut breaches);
    breaches
}

/// Checks whether a stream is requested.
pub(crate) fn stream(expected: Option<bool>, conversation: &Conversation) -> Breaches {
    match expected {
        Some(expected) if expected != conversation.stream => {
            let detail = format!("stream is {}, expected {expected}", conversation.stream);
            vec![(Breach::StreamUnexpected, detail)]
        }
        _ => Vec::new(),
    }
}

fn tools(conversation: &Conversation, breaches: &mut Breaches) {
    let mut names = HashSet::new();
    for tool in &conversation.tools {
        if tool.name.is_empty() || !names.insert(tool.name.as_str()) {
            breaches.push((Breach::ToolName, format!("the tool {:?}", tool.name)));
        }
        let kind = tool.schema.as_ref().map(|schema| schema.get("type"));
        let object = kind.is_none_or(|kind| {
            kind.and_then(|kind| kind.as_str())
                .is_some_and(|kind| kind.eq_ignore_ascii_case("object"))
        });
        if !object {
            breaches.push((Breach::SchemaNotObject, format!("the tool {:?}", tool.name)));
        }
    }
}

fn roles(protocol: Protocol, entries: &[Entry], breaches: &mut Breaches) {
    for (place, entry) in entries.iter().enumerate() {
        if let Entry::Message { role, text } = entry {
            if let Role::Unknown(role) = role {
                breaches.push((Breach::RoleUnknown, format!("entry {place} has role {role:?}")));
            }
            let counts = match protocol {
                Protocol::Messages => true,
                Protocol::Gemini => *role == Role::User,
                Protocol::Responses | Protocol::Chat => false,
            };
            if counts && text.is_empty() {
                breaches.push((Breach::ContentEmpty, format!("entry {place} is empty")));
            }
        }
    }
    let is_spoken = |entry: &&Entry| !matches!(entry, Entry::Message { role: Role::System, .. });
    let by_model = |entry: &Entry| {
        matches!(entry, Entry::Call { .. } | Entry::Message { role: Role::Model, .. })
    };
    let starts_with_person = matches!(protocol, Protocol::Messages | Protocol::Gemini);
    if starts_with_person && entries.iter().find(is_spoken).is_some_and(by_model) {
        breaches.push((Breach::FirstRole, "the model speaks first".to_owned()));
    }
    if entries.last().is_some_and(by_model) {
        breaches.push((Breach::LastRole, "the model spoke last".to_owned()));
    }
}

/// Pairs calls and answers.
#[derive(Default)]
struct Pairing<'a> {
    /// Whether answers must precede any other message.
    strict: bool,
    open: Vec<&'a str>,
    answered: HashSet<&'a str>,
    /// The call was already reported, so a late answer is no second finding.
    late: HashSet<&'a str>,
}

impl<'a> Pairing<'a> {
    fn check(mut self, entries: &'a [Entry], breaches: &mut Breaches) {
        for (place, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Call { id, .. } => {
                    if self.open.contains(&id.as_str()) || self.answered.contains(id.as_str()) {
                        breaches.push((Breach::CallTwice, format!("entry {place}, call {id:?}")));
                    } else {
                        self.open.push(id);
                    }
                }
                Entry::Answer { id, .. } => self.answer(id, place, breaches),
                Entry::Message { role, .. } if self.strict && *role != Role::Model => {
                    self.close(&format!("before entry {place}"), breaches);
                }
                Entry::Message { .. } | Entry::Other => {}
            }
        }
        self.close("in the request", breaches);
    }

    fn answer(&mut self, id: &'a str, place: usize, breaches: &mut Breaches) {
        if let Some(found) = self.open.iter().position(|open| *open == id) {
            self.open.remove(found);
            self.answered.insert(id);
        } else if self.answered.contains(id) {
            breaches.push((Breach::AnswerTwice, format!("entry {place} answers {id:?} again")));
        } else if !self.late.remove(id) {
            breaches.push((Breach::AnswerWithoutCall, format!("entry {place} answers {id:?}")));
        }
    }

    fn close(&mut self, place: &str, breaches: &mut Breaches) {
        for id in std::mem::take(&mut self.open) {
            breaches.push((Breach::CallUnanswered, format!("call {id:?} has no answer {place}")));
            self.late.insert(id);
        }
    }
}
