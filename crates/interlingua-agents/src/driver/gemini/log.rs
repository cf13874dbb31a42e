//! The records of Gemini's log, as far as they say what the stream does not.
//!
//! A message is written when the model has said it, and written again, with the same id, when its
//! calls were answered.

use interlingua::event::{FileChange, FileChangeKind, Scope, Usage};
use interlingua::json::{Json, Text};
use serde::Deserialize;
use serde_json::Value;

/// A message of the model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) timestamp: String,
    #[serde(rename = "type")]
    kind: String,
    pub(super) thoughts: Vec<Thought>,
    tokens: Option<Tokens>,
    model: Option<String>,
    #[serde(rename = "toolCalls")]
    pub(super) calls: Vec<Call>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Thought {
    subject: String,
    description: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: u64,
    total: u64,
}

/// A call, and how it was answered.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call {
    pub(super) id: String,
    name: String,
    result: Value,
    #[serde(rename = "resultDisplay")]
    display: Value,
}

impl Entry {
    /// What a record says; nothing, where it is no message of the model.
    pub(super) fn of(record: &str) -> Option<Self> {
        let entry: Self = serde_json::from_str(record).ok()?;
        Some(entry).filter(|entry| entry.kind == "gemini" && !entry.id.is_empty())
    }

    pub(super) fn usage(&self) -> Option<Usage<'static>> {
        let tokens = self.tokens.as_ref()?;
        Some(Usage {
            scope: Scope::Request,
            model: self.model.clone().map(Text::from),
            input: Some(tokens.input.saturating_sub(tokens.cached)),
            cache_read: Some(tokens.cached),
            output: Some(tokens.output.saturating_add(tokens.thoughts)),
            reasoning: Some(tokens.thoughts).filter(|thoughts| *thoughts > 0),
            total: Some(tokens.total),
            ..Usage::default()
        })
    }
}

impl Thought {
    /// The thought as Gemini's other protocol writes it.
    pub(super) fn text(&self) -> String {
        if self.subject.is_empty() {
            return self.description.clone();
        }
        format!("**{}**\n{}", self.subject, self.description)
    }
}

impl Call {
    /// What it gave back, as the model was told it; of a command only what it printed.
    pub(super) fn output(&self) -> Option<String> {
        let told = self.told_the_model()?;
        Some(if self.is_shell() { printed_and_facts(&told).0.to_owned() } else { told })
    }

    fn is_shell(&self) -> bool {
        self.name == "run_shell_command"
    }

    fn told_the_model(&self) -> Option<String> {
        let text = self.result.pointer("/0/functionResponse/response/output")?;
        text.as_str().map(str::to_owned)
    }

    /// The exit code of a command, where it is not 0.
    pub(super) fn exit_code(&self) -> Option<i64> {
        let told = self.told_the_model().filter(|_| self.is_shell())?;
        let (_, facts) = printed_and_facts(&told);
        facts.lines().find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
    }

    /// The file that it changed.
    pub(super) fn change(&self) -> Option<FileChange<'static>> {
        let text = |name: &str| self.display.get(name).and_then(Value::as_str);
        let diff = text("fileDiff")?;
        let is_new = self.display.get("isNewFile") == Some(&Value::Bool(true));
        Some(FileChange {
            path: Text::from(text("filePath").or_else(|| text("fileName"))?.to_owned()),
            old_path: None,
            kind: if is_new { FileChangeKind::Add } else { FileChangeKind::Update },
            diff: Json::from_serialize(diff),
        })
    }
}

/// What a command printed, and what is said about it, out of what the model was told. After `Output:` come
/// the facts, each in a line of its own; the command's own lines may look like them, and come first.
fn printed_and_facts(told: &str) -> (&str, &str) {
    const FACTS: [&str; 5] =
        ["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];
    let told = told.strip_prefix("<untrusted_context>\n").unwrap_or(told);
    let told = told.strip_suffix("</untrusted_context>").unwrap_or(told).trim_end_matches('\n');
    let Some(all) = told.strip_prefix("Output: ") else { return (told, "") };
    let mut output = all;
    while let Some((before, last)) = output.rsplit_once('\n')
        && FACTS.iter().any(|fact| last.starts_with(fact))
    {
        output = before;
    }
    let facts = all.get(output.len()..).unwrap_or_default();
    (if output == "(empty)" { "" } else { output }, facts)
}

#[cfg(test)]
mod tests {
    use super::printed_and_facts;

    #[test]
    fn what_a_command_printed_is_told_without_what_is_said_about_it() {
        let told = "<untrusted_context>\nOutput: one\nExit Code: 7 it says\ntwo\nExit Code: 3\nProcess Group PGID: 5\n</untrusted_context>";
        let printed = "one\nExit Code: 7 it says\ntwo";
        assert_eq!(printed_and_facts(told), (printed, "\nExit Code: 3\nProcess Group PGID: 5"));
        assert_eq!(printed_and_facts("Output: (empty)\nExit Code: 1"), ("", "\nExit Code: 1"));
        assert_eq!(printed_and_facts("Command moved on"), ("Command moved on", ""));
    }
}
