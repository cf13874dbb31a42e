//! The tools of opencode: their kinds, their status, and the files that they change.

use super::wire::{Input, Metadata};
use crate::event::{FileChange, FileChangeKind, ToolKind, ToolStatus};
use crate::json::Text;

/// The kind of a tool. Only its own tools are listed: the tool `search` of an MCP server `grep` is named
/// `grep_search`, as a tool of another agent.
pub(super) fn kind_of(name: &Text<'_>) -> ToolKind {
    match name.body() {
        "bash" => ToolKind::Execute,
        "grep" => ToolKind::Search,
        "glob" => ToolKind::Glob,
        "read" => ToolKind::Read,
        "write" => ToolKind::Write,
        "edit" | "multiedit" | "patch" | "apply_patch" => ToolKind::Edit,
        "list" => ToolKind::List,
        "webfetch" => ToolKind::Fetch,
        "websearch" | "codesearch" => ToolKind::WebSearch,
        "todowrite" | "todoread" => ToolKind::Plan,
        "task" => ToolKind::Task,
        "StructuredOutput" => ToolKind::Answer,
        _ => ToolKind::Unspecified,
    }
}

/// Whether the fields of the input of a tool are read. Other inputs are passed on without parsing,
/// unless the call spawns a sub-agent.
pub(super) fn input_is_read(tool: &str) -> bool {
    matches!(tool, "bash" | "invalid" | "todowrite" | "write" | "edit" | "multiedit")
}

/// The prefix of the error of a call that a rule forbids.
const FORBIDDEN: &str = "The user has specified a rule which prevents you";

/// The error of a question that the user did not answer.
const DISMISSED: &str = "The user dismissed this question";

/// Whether a rule forbids a call. The turn continues, since the model receives the error.
pub(super) fn is_forbidden(error: &Text<'_>) -> bool {
    without_prefix(error.body()).starts_with(FORBIDDEN)
}

/// An error without the prefix that older versions add.
fn without_prefix(error: &str) -> &str {
    error.strip_prefix("Error: ").unwrap_or(error)
}

/// The status of a call that opencode reports as ended.
pub(super) fn status_of(
    reported: &str,
    tool: &str,
    denied: bool,
    metadata: &Metadata<'_>,
    message: &str,
) -> ToolStatus {
    let message = without_prefix(message);
    let is_denied = message.starts_with("The user rejected permission")
        || message == DISMISSED
        || message.starts_with(FORBIDDEN);
    if denied || reported == "error" && is_denied {
        return ToolStatus::Denied;
    }
    // The text is compared in the form that is escaped in JSON.
    let aborted = message.ends_with(r"User aborted the command\n</shell_metadata>")
        || message.starts_with("Tool execution aborted")
        // A sub-agent was aborted with its parent.
        || message == "Task cancelled";
    if aborted {
        return ToolStatus::Cancelled;
    }
    let failed = metadata.exit.is_some_and(|code| code != 0);
    match reported {
        "error" => ToolStatus::Failed,
        // A tool was called that does not exist, or with invalid arguments.
        _ if tool == "invalid" || failed => ToolStatus::Failed,
        _ => ToolStatus::Completed,
    }
}

/// The files that a call changed.
pub(super) fn files_changed<'a>(
    tool: &str,
    input: &Input<'a>,
    metadata: &Metadata<'a>,
) -> Vec<FileChange<'a>> {
    let (kind, path) = match tool {
        "write" if metadata.exists == Some(false) => (FileChangeKind::Add, &metadata.path),
        "write" => (FileChangeKind::Update, &metadata.path),
        "edit" | "multiedit" => {
            (FileChangeKind::Update, metadata.filediff.as_ref().map_or(&None, |diff| &diff.file))
        }
        "patch" | "apply_patch" => {
            return metadata.files.iter().cloned().filter_map(patched).collect();
        }
        _ => return Vec::new(),
    };
    let Some(path) = path.as_ref().or(input.path.as_ref()) else { return Vec::new() };
    let (path, diff) = (path.clone(), metadata.diff.clone());
    vec![FileChange { path, kind, diff, old_path: None }]
}

fn patched(file: super::wire::PatchedFile<'_>) -> Option<FileChange<'_>> {
    let kind = file.kind.as_ref().map(|kind| kind.body().into()).unwrap_or_default();
    let (path, old_path) = match file.to {
        Some(to) => (to, file.path),
        None => (file.path?, None),
    };
    Some(FileChange { path, old_path, kind, diff: file.diff })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tool `search` of an MCP server `grep` looked like a search, for which no permission is needed.
    #[test]
    fn only_its_own_tools_have_kinds() {
        assert_eq!(kind_of(&Text::plain("grep")), ToolKind::Search);
        for name in ["grep_search", "read_file", "run_shell_command", "Read", "LS"] {
            assert_eq!(kind_of(&Text::plain(name)), ToolKind::Unspecified, "{name}");
        }
    }
}
