//! The tools of Qwen Code: their kinds, and the status of a call.

use super::wire::Content;
use crate::dialect::tools;
use crate::event::{ToolEnded, ToolKind, ToolStarted, ToolStatus};
use crate::json::{Json, Text};

/// The kind of a tool; most tools have the names of Gemini's.
pub(super) fn kind_of(name: &Text<'_>) -> ToolKind {
    match name.body() {
        "edit" | "notebook_edit" => ToolKind::Edit,
        "agent" | "task" => ToolKind::Task,
        _ => tools::kind_of(name),
    }
}

/// The start of a call.
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

/// The answer to a call. Only its text states that the call was denied or cancelled, and the exit
/// code of a command.
pub(super) fn ended<'a>(content: &mut Content<'a>) -> ToolEnded<'a> {
    let output = content.content.take();
    let text = output.as_ref().and_then(Json::as_text).unwrap_or_default();
    let failed = content.is_error.unwrap_or(false);
    let status = match text.body() {
        _ if !failed => ToolStatus::Completed,
        text if text.starts_with("[Operation Cancelled]") => ToolStatus::Cancelled,
        text if text.starts_with("Qwen Code requires permission to use") => ToolStatus::Denied,
        _ => ToolStatus::Failed,
    };
    let exit_code = if failed { exit_code(&text) } else { None };
    ToolEnded {
        call: content.tool_use_id.take().unwrap_or_default(),
        status,
        exit_code,
        output,
        ..ToolEnded::default()
    }
}

/// The exit code of a failed command, which is one of the lines of its description.
fn exit_code(text: &Text<'_>) -> Option<i64> {
    if !text.body().starts_with("Command: ") {
        return None;
    }
    let text = text.to_plain();
    // The output of the command itself precedes these lines.
    text.lines().rev().find_map(|line| line.strip_prefix("Exit Code: ")?.parse().ok())
}
