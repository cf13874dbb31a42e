//! The records of Gemini's log, as far as they contain more than the stream.
//!
//! A message is written when the model has finished it, and written again, with the same id, when
//! its calls were answered.

use interlingua::event::{FileChange, FileChangeKind, Scope, Usage};
use interlingua::json::{Json, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

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

/// A tool call and its answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call {
    pub(super) id: String,
    name: String,
    /// What was sent to the model, as a list of parts.
    result: Option<Box<RawValue>>,
    /// What its own screen shows. That of a command has an object for every piece of text with the
    /// same colour, so it is parsed only if it is needed.
    #[serde(rename = "resultDisplay")]
    display: Option<Box<RawValue>>,
}

/// A part of what was sent to the model.
#[derive(Debug, Deserialize)]
struct ResultPart {
    #[serde(rename = "functionResponse")]
    answer: FunctionResponse,
}

#[derive(Debug, Deserialize)]
struct FunctionResponse {
    response: ResponseOutput,
}

#[derive(Debug, Deserialize)]
struct ResponseOutput {
    output: String,
}

/// The display of a call that changed a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ChangeDisplay {
    file_diff: Option<String>,
    file_path: Option<String>,
    file_name: Option<String>,
    is_new_file: bool,
}

impl Entry {
    /// Parses a record; `None` if it is not a message of the model.
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
    /// The thought in the form that Gemini uses over ACP.
    pub(super) fn text(&self) -> String {
        if self.subject.is_empty() {
            return self.description.clone();
        }
        format!("**{}**\n{}", self.subject, self.description)
    }
}

impl Call {
    /// The output, as it was sent to the model; for a command, only what it printed.
    pub(super) fn output(&self) -> Option<String> {
        let text = self.model_output()?;
        Some(if self.is_shell() { printed_and_facts(&text).0.to_owned() } else { text })
    }

    fn is_shell(&self) -> bool {
        self.name == "run_shell_command"
    }

    fn model_output(&self) -> Option<String> {
        let parts: Vec<&RawValue> = serde_json::from_str(self.result.as_ref()?.get()).ok()?;
        let first: ResultPart = serde_json::from_str(parts.first()?.get()).ok()?;
        Some(first.answer.response.output)
    }

    /// The exit code of a command, if it is not 0.
    pub(super) fn exit_code(&self) -> Option<i64> {
        let text = self.model_output().filter(|_| self.is_shell())?;
        let (_, facts) = printed_and_facts(&text);
        facts.lines().find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
    }

    /// The file that the call changed.
    pub(super) fn change(&self) -> Option<FileChange<'static>> {
        let display = self.display.as_ref()?.get();
        // The display of a command is a list.
        let display = Some(display).filter(|display| display.starts_with('{'))?;
        let change: ChangeDisplay = serde_json::from_str(display).ok()?;
        Some(FileChange {
            path: Text::from(change.file_path.or(change.file_name)?),
            old_path: None,
            kind: if change.is_new_file { FileChangeKind::Add } else { FileChangeKind::Update },
            diff: Json::from_serialize(&change.file_diff?),
        })
    }
}

/// Splits the text sent to the model into what a command printed and the facts about it. The facts
/// follow `Output:`, each on a line of its own; lines of the command may look like facts, but
/// precede them.
fn printed_and_facts(text: &str) -> (&str, &str) {
    const FACTS: [&str; 5] =
        ["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];
    let text = text.strip_prefix("<untrusted_context>\n").unwrap_or(text);
    let text = text.strip_suffix("</untrusted_context>").unwrap_or(text).trim_end_matches('\n');
    let Some(all) = text.strip_prefix("Output: ") else { return (text, "") };
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
    fn the_output_of_a_command_is_separated_from_the_facts_about_it() {
        let text = "<untrusted_context>\nOutput: one\nExit Code: 7 it says\ntwo\nExit Code: 3\nProcess Group PGID: 5\n</untrusted_context>";
        let printed = "one\nExit Code: 7 it says\ntwo";
        assert_eq!(printed_and_facts(text), (printed, "\nExit Code: 3\nProcess Group PGID: 5"));
        assert_eq!(printed_and_facts("Output: (empty)\nExit Code: 1"), ("", "\nExit Code: 1"));
        assert_eq!(printed_and_facts("Command moved on"), ("Command moved on", ""));
    }
}
