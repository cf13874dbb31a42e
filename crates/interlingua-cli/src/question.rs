//! What an agent wants, as a user sees it: everything that would be allowed, line by line, and the
//! options of a question.
//!
//! The text comes from a model. It is shown with every hidden character escaped, and nothing of it
//! is left out without saying so.

use interlingua_agents::permission::{PermissionRequest, visible};
use interlingua_agents::{Question as AgentQuestion, QuestionRequest};
use serde_json::Value;

/// The number of lines that are shown before the user asks for the rest.
const SHORT: usize = 20;

/// The names under which tools have the command that they run.
const COMMANDS: [&str; 2] = ["command", "cmd"];

/// The lines that describe a request.
#[derive(Debug)]
pub(crate) struct Question {
    lines: Vec<String>,
}

impl Question {
    pub(crate) fn new(request: &PermissionRequest) -> Self {
        let tool = match &*request.tool {
            "" => "a tool".to_owned(),
            tool => one_line(tool),
        };
        let folder = one_line(&request.folder.to_string_lossy());
        let mut lines = vec![format!("The agent requests permission to use {tool} in {folder}:")];
        match request.input.as_deref().map(serde_json::from_str) {
            Some(Ok(Value::Object(mut fields))) => {
                // The command first: it is what would run.
                for name in COMMANDS {
                    if let Some(command) = fields.remove(name) {
                        push_command(&command, &mut lines);
                    }
                }
                for (name, value) in &fields {
                    push_field(name, value, &mut lines);
                }
            }
            Some(Ok(value)) => push_text("  ", &text_of(&value), &mut lines),
            Some(Err(_)) => push_text("  ", request.input.as_deref().unwrap_or(""), &mut lines),
            None => lines.push("  The request does not state its input.".to_owned()),
        }
        // Claude repeats a field of the input as the description.
        let is_new = |text: &&str| {
            let repeated = format!("  description: {}", visible(text));
            !text.is_empty() && !lines.contains(&repeated)
        };
        if let Some(description) = request.description.as_deref().filter(is_new) {
            lines.push("  The agent's own description:".to_owned());
            push_text("    ", description, &mut lines);
        }
        Self { lines }
    }

    /// The first lines, and a note about the others.
    pub(crate) fn short(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.lines.iter().take(SHORT).cloned().collect();
        let hidden = self.lines.len() - lines.len();
        if hidden > 0 {
            lines.push(format!("  … {hidden} more lines would be allowed too; [e] shows them"));
        }
        lines
    }

    /// All lines.
    pub(crate) fn complete(&self) -> &[String] {
        &self.lines
    }
}

/// A command, with a mark before each of its lines.
fn push_command(command: &Value, lines: &mut Vec<String>) {
    match command {
        Value::String(text) => {
            for (number, line) in text.split('\n').enumerate() {
                let mark = if number == 0 { "  $ " } else { "  > " };
                lines.push(format!("{mark}{}", visible(line)));
            }
        }
        // The boundaries of the words are part of the command.
        Value::Array(words) => {
            for (number, word) in words.iter().enumerate() {
                push_text(&format!("  word {}: ", number + 1), &text_of(word), lines);
            }
        }
        other => push_text("  $ ", &other.to_string(), lines),
    }
}

/// The lines that introduce questions of the agent.
pub(crate) fn introduction(request: &QuestionRequest) -> Vec<String> {
    let mut lines = vec![match &request.server {
        Some(server) => format!("The MCP server {} asks:", one_line(server)),
        None => "The agent asks:".to_owned(),
    }];
    if let Some(message) = &request.message {
        push_text("  ", message, &mut lines);
    }
    if let Some(url) = &request.url {
        push_text("  open ", url, &mut lines);
    }
    if let Some(schema) = &request.schema {
        lines.push("  The answer has this form:".to_owned());
        push_text("    ", &text_of(schema), &mut lines);
    }
    lines
}

/// The lines of one question: its text, and its numbered options.
pub(crate) fn lines(question: &AgentQuestion) -> Vec<String> {
    let mut lines = Vec::new();
    push_text("  ", &question.text, &mut lines);
    for (number, (label, description)) in question.options.iter().enumerate() {
        let description = description.as_ref().map(|text| format!(" – {}", one_line(text)));
        let label = one_line(label);
        lines.push(format!("    {}. {label}{}", number + 1, description.unwrap_or_default()));
    }
    lines
}

/// Text that must not draw lines of its own.
fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

fn push_field(name: &str, value: &Value, lines: &mut Vec<String>) {
    let name = one_line(name);
    let text = text_of(value);
    if text.contains('\n') {
        lines.push(format!("  {name}:"));
        push_text("    | ", &text, lines);
    } else {
        push_text(&format!("  {name}: "), &text, lines);
    }
}

fn push_text(before: &str, text: &str, lines: &mut Vec<String>) {
    lines.extend(text.split('\n').map(|line| format!("{before}{}", visible(line))));
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) | Value::Array(_) => {
            serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use interlingua::event::ToolKind;

    use super::*;

    fn question(tool: &str, input: &Value) -> Question {
        Question::new(&PermissionRequest {
            id: "1".to_owned(),
            call: Vec::new(),
            tool: tool.to_owned(),
            kind: ToolKind::default(),
            input: Some(input.to_string()),
            description: None,
            folder: "/w".into(),
        })
    }

    #[test]
    fn every_line_of_a_command_is_shown() {
        let command = format!("git status --short {}; \\\nrm b.txt\u{202e}\r", "x".repeat(500));
        let question =
            question("Bash", &serde_json::json!({"command": command, "timeout": 5, "cwd": "/w"}));
        let expected = [
            "The agent requests permission to use Bash in /w:".to_owned(),
            format!("  $ git status --short {}; \\", "x".repeat(500)),
            "  > rm b.txt\\u{202e}\\r".to_owned(),
            "  cwd: /w".to_owned(),
            "  timeout: 5".to_owned(),
        ];
        assert_eq!(question.complete(), expected);
        assert_eq!(question.short(), expected);
    }

    #[test]
    fn a_long_request_states_how_much_is_not_shown() {
        let content = (0..100).map(|line| format!("line {line}\n")).collect::<String>();
        let question =
            question("Write", &serde_json::json!({"file_path": "a.txt", "content": content}));
        let (short, complete) = (question.short(), question.complete());
        assert_eq!(short.len(), SHORT + 1);
        let hidden = complete.len() - SHORT;
        assert!(short.last().unwrap().contains(&format!("{hidden} more lines")), "{short:?}");
        assert!(complete.iter().any(|line| line == "    | line 99"));
        assert!(complete.iter().any(|line| line == "  file_path: a.txt"));
    }

    #[test]
    fn the_words_of_a_command_are_shown_apart() {
        let question =
            question("shell", &serde_json::json!({"command": ["sh", "-c", "echo a; rm b"]}));
        assert_eq!(
            question.complete()[1..],
            ["  word 1: sh", "  word 2: -c", "  word 3: echo a; rm b"]
        );
    }

    #[test]
    fn names_cannot_draw_lines_of_their_own() {
        let question =
            question("Read\n  $ ls", &serde_json::json!({"a\nb": "c", "d": {"e": "f\u{1b}[2J"}}));
        let shown = question.complete();
        assert_eq!(shown[0], "The agent requests permission to use Read\\n  $ ls in /w:");
        assert!(shown.contains(&"  a\\nb: c".to_owned()), "{shown:?}");
        assert!(shown.iter().all(|line| !line.contains('\u{1b}')));
    }
}
