//! The tools of pi: their kinds, and the status, exit codes and file changes in their answers.

use super::wire::{Details, FileInput, Outcome};
use crate::dialect::content::output_text;
use crate::dialect::tools;
use crate::event::{FileChange, FilesChanged, ToolEnded, ToolKind, ToolStatus};
use crate::json::read;
use crate::json::{Json, Text};

/// The kind of a tool.
pub(super) fn kind_of(name: &Text<'_>) -> ToolKind {
    match name.body() {
        "read" => ToolKind::Read,
        "write" => ToolKind::Write,
        "edit" => ToolKind::Edit,
        "find" => ToolKind::Glob,
        _ => tools::kind_of(name),
    }
}

/// The answer of a call.
pub(super) fn answer<'a>(
    call: Text<'a>,
    tool: &Text<'_>,
    outcome: Outcome<'a>,
    failed: bool,
) -> ToolEnded<'a> {
    let (mut status, mut exit_code) = (ToolStatus::Completed, None);
    if failed {
        let text = outcome.content.as_ref().map(|content| output_text(content).0);
        let text = text.as_ref().map(Text::to_plain).unwrap_or_default();
        (status, exit_code) = failure(tool, text.lines().last().unwrap_or_default());
    }
    let details = outcome.details.filter(|details| !matches!(details.get(), "{}" | "null"));
    ToolEnded {
        call,
        status,
        output: outcome.content,
        structured: details,
        exit_code,
        ..ToolEnded::default()
    }
}

/// The status and exit code in the last line of a failed call. Only commands state them.
fn failure(tool: &Text<'_>, last: &str) -> (ToolStatus, Option<i64>) {
    if *tool != "bash" {
        return (ToolStatus::Failed, None);
    }
    if last == "Command aborted" {
        return (ToolStatus::Cancelled, None);
    }
    if last.starts_with("Command timed out after ") {
        return (ToolStatus::TimedOut, None);
    }
    let code = last.strip_prefix("Command exited with code ");
    (ToolStatus::Failed, code.and_then(|code| code.parse().ok()))
}

/// The file that a call changed. pi does not report whether `write` created or replaced it.
pub(super) fn files_changed<'a>(
    call: &Text<'a>,
    tool: &Text<'_>,
    input: Option<&'a Json<'_>>,
    details: Option<&'a Json<'_>>,
) -> Option<FilesChanged<'a>> {
    if !matches!(tool.body(), "write" | "edit") {
        return None;
    }
    let path = read::record_of::<FileInput<'_>>(input?)?.path?;
    let details = details.and_then(read::record_of::<Details<'_>>).unwrap_or_default();
    let diff = details.patch.or(details.diff);
    let change = FileChange { path, diff, ..FileChange::default() };
    Some(FilesChanged { call: Some(call.clone()), changes: vec![change] })
}
