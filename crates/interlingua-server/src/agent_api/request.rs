//! The request of a run, in the versions 1 and 3 of the contract.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::problem::Problem;
use super::results::ToolResult;

/// The longest name of a sandbox.
const LONGEST_SANDBOX: usize = 64;

/// A request as it is sent. Fields that are not known are ignored, as in the original.
#[derive(Debug, Deserialize)]
struct Body {
    #[serde(rename = "type")]
    kind: Option<String>,
    chat_id: Option<String>,
    session_id: Option<String>,
    sandbox_id: Option<String>,
    message: Option<String>,
    document: Option<String>,
    agent_type: Option<String>,
    #[serde(default)]
    tool_results: Vec<ToolResult>,
    env: Option<Map<String, Value>>,
    files: Option<Vec<Value>>,
}

/// What is asked of a session.
#[derive(Debug, PartialEq)]
pub(super) struct RunRequest {
    pub(super) subject: Subject,
    /// The agent, if the request names one.
    pub(super) agent: Option<String>,
    /// The prompt, with the document if there is one.
    pub(super) message: String,
    pub(super) results: Vec<ToolResult>,
    /// The name of the working folder.
    pub(super) sandbox: Option<String>,
}

/// Which session is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Version 3: the session of a chat, which is created if there is none.
    Chat(String),
    /// Version 1: a session that an earlier run reported.
    Session(String),
    /// Version 1: a new session.
    New,
}

impl RunRequest {
    /// The result of a call; the last one, if there are several.
    pub(super) fn result(&self, call: &str) -> Option<&ToolResult> {
        self.results.iter().rev().find(|result| result.tool_call_id == call)
    }

    /// Whether its client has no results, but answers at the relay and sends its message again.
    pub(super) fn is_of_version_1(&self) -> bool {
        matches!(self.subject, Subject::Session(_)) && self.results.is_empty()
    }

    /// Checks a request.
    pub(super) fn parse(body: Value) -> Result<Self, Problem> {
        let body: Body = serde_json::from_value(body)
            .map_err(|problem| Problem::invalid(format!("Invalid request payload: {problem}.")))?;
        let given = |name: &str, value: Option<String>| match value {
            Some(value) if value.is_empty() => {
                Err(Problem::invalid(format!("Invalid request payload: `{name}` is empty.")))
            }
            value => Ok(value),
        };
        if body.kind.as_deref().is_some_and(|kind| kind != "agent.run") {
            return Err(Problem::invalid("Invalid request payload: `type` is not `agent.run`."));
        }
        if body.env.is_some_and(|env| !env.is_empty()) {
            return Err(Problem::invalid(
                "`env` is not supported: agents get the environment of the server, so set the variables there",
            ));
        }
        if body.files.is_some_and(|files| !files.is_empty()) {
            return Err(Problem::invalid(
                "`files` is not supported: this server downloads nothing, so put the content into `document`",
            ));
        }
        let chat = given("chat_id", body.chat_id)?;
        let session = given("session_id", body.session_id)?;
        let agent = given("agent_type", body.agent_type)?;
        let message = body.message.filter(|message| !message.trim().is_empty());
        let message = message.ok_or_else(|| {
            Problem::invalid("Invalid request payload: `message` is missing or blank.")
        })?;
        let subject = match (chat, session) {
            (Some(chat), _) if agent.is_none() => {
                drop(chat);
                return Err(Problem::invalid("Invalid request payload: `agent_type` is missing."));
            }
            (Some(chat), _) => Subject::Chat(chat),
            (None, Some(session)) => Subject::Session(session),
            (None, None) => Subject::New,
        };
        let document = given("document", body.document)?;
        let sandbox = given("sandbox_id", body.sandbox_id)?;
        if sandbox.as_deref().is_some_and(|name| !is_sandbox(name)) {
            return Err(Problem::invalid(
                "`sandbox_id` is a name of at most 64 letters, digits, `-` and `_`",
            ));
        }
        let results = body.tool_results;
        let message = with_document(message, document.as_deref());
        Ok(Self { subject, agent, message, results, sandbox })
    }
}

/// Whether this can be the name of a folder, and nothing else.
pub(super) fn is_sandbox(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.len() <= LONGEST_SANDBOX && name.bytes().all(is_plain)
}

fn with_document(message: String, document: Option<&str>) -> String {
    match document.map(str::trim).filter(|document| !document.is_empty()) {
        Some(document) => format!("{}\n\nDocument:\n{document}", message.trim()),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_are_read() {
        let v1 = json!({"type": "agent.run", "message": " Fill ", "document": " D\n", "session_id": "s",
                        "sandbox_id": "sbx_1"});
        let request = RunRequest::parse(v1).unwrap();
        assert_eq!(request.subject, Subject::Session("s".to_owned()));
        assert_eq!(request.message, "Fill\n\nDocument:\nD");
        assert_eq!(request.sandbox.as_deref(), Some("sbx_1"));
        let v3 = json!({"type": "agent.run", "chat_id": "c", "message": "go", "agent_type": "codex",
                        "snapshot_id": "ignored", "tool_results": []});
        let request = RunRequest::parse(v3).unwrap();
        assert_eq!(request.subject, Subject::Chat("c".to_owned()));
        assert_eq!((request.agent.as_deref(), &*request.message), (Some("codex"), "go"));
        assert_eq!(RunRequest::parse(json!({"message": "go"})).unwrap().subject, Subject::New);
    }

    #[test]
    fn what_the_contract_does_not_allow_is_rejected() {
        for body in [
            json!([]),
            json!({}),
            json!({"message": " "}),
            json!({"message": 5}),
            json!({"message": "go", "type": "agent.stop"}),
            json!({"message": "go", "chat_id": ""}),
            json!({"message": "go", "chat_id": "c"}),
            json!({"message": "go", "session_id": ""}),
            json!({"message": "go", "document": ""}),
            json!({"message": "go", "env": {"A": "b"}}),
            json!({"message": "go", "files": [{"name": "a"}]}),
            json!({"message": "go", "sandbox_id": "../x"}),
            json!({"message": "go", "sandbox_id": "a/b"}),
            json!({"message": "go", "sandbox_id": "x".repeat(65)}),
            json!({"message": "go", "chat_id": "c", "agent_type": "codex", "tool_results": [{}]}),
        ] {
            let problem = RunRequest::parse(body.clone()).unwrap_err();
            assert_eq!((problem.status.as_u16(), problem.code), (400, "INVALID_REQUEST"), "{body}");
        }
    }
}
