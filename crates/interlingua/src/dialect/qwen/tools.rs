//! The tools of Qwen Code: what kind of work each does, and how a call went.

use super::wire::Content;
use crate::dialect::tools;
use crate::event::{ToolEnded, ToolKind, ToolStarted, ToolStatus};
use crate::json::{Json, Text};

/// What kind of work a tool does; most have the names of Gemini's.
pub(super) fn kind_of(name: &Text<'_>) -> ToolKind {
    match name.body() {
        "edit" | "notebook_edit" => ToolKind::Edit,
        "agent" | "task" => ToolKind::Task,
        _ => tools::kind_of(name),
    }
}

/// A call that the model makes.
pub(super) fn started<'a>(content: &mut Content<'a>, message: Option<Text<'a>>) -> ToolStarted<'a> {
    let name = content.name.take().unwrap_or_default();
    ToolStarted {
        call: content.id.take().unwrap_or_default(),
        kind: kind_of(&name),
        name,
        message,
        input: Some(content.input.take().unwrap_or_else(|| Json::object(|_| {}))),
        ..ToolStarted::default()
    }
}

/// The answer to a call. That it was denied or stopped, and how a command exited, its text tells.
pub(super) fn ended<'a>(content: &mut Content<'a>) -> ToolEnded<'a> {
    let output = content.content.take();
    let said = output.as_ref().and_then(Json::as_text).unwrap_or_default();
    let failed = content.is_error.unwrap_or(false);
    let status = match said.body() {
        _ if !failed => ToolStatus::Completed,
        text if text.starts_with("[Operation Cancelled]") => ToolStatus::Cancelled,
        text if text.starts_with("Qwen Code requires permission to use") => ToolStatus::Denied,
        _ => ToolStatus::Failed,
    };
    let exit_code = if failed { exit_code(&said) } else { None };
    ToolEnded {
        call: content.tool_use_id.take().unwrap_or_default(),
        status,
        exit_code,
        output,
        ..ToolEnded::default()
    }
}

/// The exit code of a command that failed: one of the lines that describe it.
fn exit_code(said: &Text<'_>) -> Option<i64> {
    if !said.body().starts_with("Command: ") {
        return None;
    }
    let said = said.to_plain();
    // What the command itself printed comes before.
    said.lines().rev().find_map(|line| line.strip_prefix("Exit Code: ")?.parse().ok())
}
