//! An action becomes a call of the tool that the agent offers for it.

use fake_model::{Action, Reply};
use serde_json::{Value, json};

use crate::support::{Entry, Wire, found, model, parsed_answer, post, request};

/// The tools of an agent that an action could use: name and fields.
type Tools = &'static [(&'static str, &'static [&'static str])];

const CODEX: Tools = &[("exec_command", &["cmd", "workdir", "yield_time_ms"])];
const CLAUDE: Tools = &[
    ("Bash", &["command", "description", "timeout"]),
    ("Read", &["file_path", "limit"]),
    ("Write", &["content", "file_path"]),
];
const GEMINI: Tools = &[
    ("read_file", &["file_path", "start_line"]),
    ("write_file", &["content", "file_path"]),
    ("run_shell_command", &["command", "description", "dir_path", "is_background"]),
];
const COPILOT: Tools = &[
    ("bash", &["command", "description", "shellId"]),
    ("view", &["path", "view_range"]),
    ("create", &["file_text", "path"]),
];
const OPENCODE: Tools = &[
    ("bash", &["command", "timeout", "workdir"]),
    ("read", &["filePath", "limit"]),
    ("write", &["content", "filePath"]),
];

fn offered(tools: Tools) -> Value {
    let tool = |(name, fields): &(&str, &[&str])| {
        let properties: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
        let parameters = json!({"type": "object", "properties": properties});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    };
    tools.iter().map(tool).collect()
}

/// The calls that are sent for the actions shell, write and read.
fn calls(tools: Tools) -> Vec<(String, Value)> {
    let model = model([Reply::shell("echo hi")
        .then_action(Action::Write { path: "/w/it's".to_owned(), content: "a\nb".to_owned() })
        .then_action(Action::Read { path: "/w/it's".to_owned() })]);
    let (path, mut body) = request(Wire::Chat, &[Entry::User("Hello")]);
    body["tools"] = offered(tools);
    let parsed_answer = parsed_answer(Wire::Chat, &post(&model, &path, &body));
    assert_eq!(found(&model), Vec::<&str>::new());
    parsed_answer.calls.into_iter().map(|(_, name, input)| (name, input)).collect()
}

fn expect(tools: Tools, expected: [(&str, Value); 3]) {
    assert_eq!(calls(tools), expected.map(|(name, input)| (name.to_owned(), input)));
}

#[test]
fn codex_has_only_a_shell_for_reading() {
    let write = r"printf %s 'a
b' > '/w/it'\''s'";
    expect(
        CODEX,
        [
            ("exec_command", json!({"cmd": "echo hi"})),
            ("exec_command", json!({"cmd": write})),
            ("exec_command", json!({"cmd": r"cat -- '/w/it'\''s'"})),
        ],
    );
}

#[test]
fn claude_has_a_tool_for_each() {
    expect(
        CLAUDE,
        [
            ("Bash", json!({"command": "echo hi", "description": "A scripted step"})),
            ("Write", json!({"file_path": "/w/it's", "content": "a\nb"})),
            ("Read", json!({"file_path": "/w/it's"})),
        ],
    );
}

#[test]
fn gemini_has_a_tool_for_each() {
    let shell =
        json!({"command": "echo hi", "description": "A scripted step", "is_background": false});
    expect(
        GEMINI,
        [
            ("run_shell_command", shell),
            ("write_file", json!({"file_path": "/w/it's", "content": "a\nb"})),
            ("read_file", json!({"file_path": "/w/it's"})),
        ],
    );
}

#[test]
fn copilot_has_a_tool_for_each() {
    expect(
        COPILOT,
        [
            ("bash", json!({"command": "echo hi", "description": "A scripted step"})),
            ("create", json!({"path": "/w/it's", "file_text": "a\nb"})),
            ("view", json!({"path": "/w/it's"})),
        ],
    );
}

#[test]
fn opencode_has_a_tool_for_each() {
    expect(
        OPENCODE,
        [
            ("bash", json!({"command": "echo hi"})),
            ("write", json!({"filePath": "/w/it's", "content": "a\nb"})),
            ("read", json!({"filePath": "/w/it's"})),
        ],
    );
}

#[test]
fn an_action_without_a_tool_is_found_and_named() {
    let model = model([Reply::shell("echo hi")]);
    let (path, mut body) = request(Wire::Chat, &[Entry::User("Hello")]);
    body["tools"] = offered(&[("Bash", &["other"])]);
    let parsed_answer = parsed_answer(Wire::Chat, &post(&model, &path, &body));
    assert_eq!(parsed_answer.text, "(no tool for the scripted action)");
    assert_eq!(found(&model), ["action-without-tool"]);
}

/// Codex offers the tools of MCP servers in namespaces, and does not know them by one name.
#[test]
fn a_tool_of_a_namespace_is_named_by_both() {
    let model = model([Reply::call("mcp__form/ask", json!({}))]);
    let (path, body) = request(Wire::Responses, &[Entry::User("Hello")]);
    let text = post(&model, &path, &body).body;
    assert!(
        text.contains(r#""name":"ask""#) && text.contains(r#""namespace":"mcp__form""#),
        "{text}"
    );
}
