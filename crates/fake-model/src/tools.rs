//! The tools that perform an action, for each agent.
//!
//! The table lists what the agents really offered when they were run, with their versions. A row
//! applies only if the request offers that tool with those fields; if none does, reading and
//! writing fall back to the shell.

use serde_json::{Map, Value};

use crate::conversation::Tool;
use crate::script::Action;

/// A tool that performs an action.
#[derive(Debug)]
pub struct Row {
    /// The agent and the version that was run.
    pub agent: &'static str,
    /// The action that the tool performs.
    pub job: Job,
    /// The name of the tool.
    pub tool: &'static str,
    /// The fields of its input; no fields mean free text.
    pub fields: &'static [(&'static str, Fill)],
}

/// The kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Runs a command.
    Shell,
    /// Writes a file.
    Write,
    /// Reads a file.
    Read,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The command as one text.
    Command,
    /// The command as a list for a shell.
    CommandList,
    /// The path of the file.
    Path,
    /// The content of the file.
    Content,
    /// A few words for a person.
    Words,
    /// The value `false`.
    No,
}

use Fill::{Command, CommandList, Content, No, Path, Words};

/// All rows. The first one that a request offers is used. Other versions of an agent often keep the
/// names, so the version states only where a row was observed.
pub const TABLE: &[Row] = &[
    row("codex 0.166.0", Job::Shell, "exec_command", &[("cmd", Command)]),
    row("codex 0.166.0", Job::Write, "apply_patch", &[]),
    row("claude 2.1.325", Job::Shell, "Bash", &[("command", Command), ("description", Words)]),
    row("claude 2.1.325", Job::Write, "Write", &[("file_path", Path), ("content", Content)]),
    row("claude 2.1.325", Job::Read, "Read", &[("file_path", Path)]),
    row(
        "gemini 0.61.0",
        Job::Shell,
        "run_shell_command",
        &[("command", Command), ("description", Words), ("is_background", No)],
    ),
    row("gemini 0.61.0", Job::Write, "write_file", &[("file_path", Path), ("content", Content)]),
    row("gemini 0.61.0", Job::Read, "read_file", &[("file_path", Path)]),
    row("copilot 1.0.102", Job::Shell, "bash", &[("command", Command), ("description", Words)]),
    row("copilot 1.0.102", Job::Write, "create", &[("path", Path), ("file_text", Content)]),
    row("copilot 1.0.102", Job::Read, "view", &[("path", Path)]),
    row("opencode 1.18.33", Job::Shell, "bash", &[("command", Command)]),
    row("opencode 1.18.33", Job::Write, "write", &[("filePath", Path), ("content", Content)]),
    row("opencode 1.18.33", Job::Read, "read", &[("filePath", Path)]),
    // Not observed in a run: names of older versions, and of a fork of gemini.
    row("codex, older", Job::Shell, "shell_command", &[("command", Command)]),
    row("codex, older", Job::Shell, "shell", &[("command", CommandList)]),
    row("qwen", Job::Shell, "run_shell_command", &[("command", Command), ("is_background", No)]),
    row("qwen, older", Job::Read, "read_file", &[("absolute_path", Path)]),
];

/// A call that performs an action.
#[derive(Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) name: String,
    pub(crate) input: Value,
}

/// Chooses a tool for an action from those that a request offers. An action that waits at a gate
/// must have been turned into a shell command before.
pub(crate) fn choose(action: &Action, offered: &[Tool]) -> Option<Chosen> {
    let job = match action {
        Action::Shell { .. } => Job::Shell,
        Action::Write { .. } => Job::Write,
        Action::Read { .. } => Job::Read,
        Action::WaitAtGate { .. } => return None,
    };
    let fits = |row: &&Row| {
        row.job == job
            && offered.iter().any(|tool| {
                tool.name == row.tool
                    && tool.schema.is_some() != row.fields.is_empty()
                    && row.fields.iter().all(|(field, _)| tool.has_field(field))
            })
    };
    match TABLE.iter().find(fits) {
        Some(row) => Some(Chosen { name: row.tool.to_owned(), input: fill(row, action) }),
        None => choose(&by_shell(action)?, offered),
    }
}

const fn row(
    agent: &'static str,
    job: Job,
    tool: &'static str,
    fields: &'static [(&'static str, Fill)],
) -> Row {
    Row { agent, job, tool, fields }
}

fn fill(row: &Row, action: &Action) -> Value {
    let (command, path, content) = match action {
        Action::Shell { command } => (command.as_str(), "", ""),
        Action::Write { path, content } => ("", path.as_str(), content.as_str()),
        Action::Read { path } => ("", path.as_str(), ""),
        Action::WaitAtGate { .. } => ("", "", ""),
    };
    if row.fields.is_empty() {
        return Value::from(patch(path, content));
    }
    let value = |fill: Fill| match fill {
        Command => Value::from(command),
        CommandList => Value::from(vec!["bash", "-lc", command]),
        Path => Value::from(path),
        Content => Value::from(content),
        Words => Value::from("A scripted step"),
        No => Value::from(false),
    };
    let fields: Map<String, Value> =
        row.fields.iter().map(|(field, fill)| ((*field).to_owned(), value(*fill))).collect();
    Value::Object(fields)
}

/// The patch that adds a file, in the free text that codex takes.
fn patch(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

/// The shell command for an action without a tool of its own.
fn by_shell(action: &Action) -> Option<Action> {
    let command = match action {
        Action::Shell { .. } | Action::WaitAtGate { .. } => return None,
        Action::Read { path } => format!("cat -- {}", quoted(path)),
        Action::Write { path, content } => {
            format!("printf %s {} > {}", quoted(content), quoted(path))
        }
    };
    Some(Action::Shell { command })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
