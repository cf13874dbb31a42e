//! The tools of opencode, and what their metadata says about files.

use super::wire::{Input, Metadata};
use crate::dialect::tools;
use crate::event::{FileChange, FileChangeKind, ToolKind, ToolStatus};
use crate::json::Text;

/// What kind of work a tool does.
pub(super) fn kind_of(name: &Text<'_>) -> ToolKind {
    match name.body() {
        "read" => ToolKind::Read,
        "write" => ToolKind::Write,
        "edit" | "multiedit" | "patch" | "apply_patch" => ToolKind::Edit,
        "list" => ToolKind::List,
        "webfetch" => ToolKind::Fetch,
        "websearch" | "codesearch" => ToolKind::WebSearch,
        "todowrite" | "todoread" => ToolKind::Plan,
        "task" => ToolKind::Task,
        _ => tools::kind_of(name),
    }
}

/// Whether what a tool is given says more than what it is to do. The input of others is passed on
/// unread, unless it starts a sub-agent.
pub(super) fn input_is_read(tool: &str) -> bool {
    matches!(tool, "invalid" | "todowrite" | "write" | "edit" | "multiedit")
}

/// How the error of a call begins that a rule forbids.
const FORBIDDEN: &str = "The user has specified a rule which prevents you";

/// Whether a rule forbids a call. The model is told so, and the turn goes on.
pub(super) fn is_forbidden(error: &Text<'_>) -> bool {
    without_class(error.body()).starts_with(FORBIDDEN)
}

/// What an error says, without the name of its class, which older versions put in front.
fn without_class(error: &str) -> &str {
    error.strip_prefix("Error: ").unwrap_or(error)
}

/// How a call went that opencode says is over.
pub(super) fn status_of(
    word: &str,
    tool: &str,
    denied: bool,
    metadata: &Metadata<'_>,
    said: &str,
) -> ToolStatus {
    let said = without_class(said);
    let refused = said.starts_with("The user rejected permission") || said.starts_with(FORBIDDEN);
    if denied || word == "error" && refused {
        return ToolStatus::Denied;
    }
    // The text is looked at as it is escaped on the wire.
    let aborted = said.ends_with(r"User aborted the command\n</shell_metadata>")
        || said.starts_with("Tool execution aborted");
    if aborted {
        return ToolStatus::Cancelled;
    }
    let failed = metadata.exit.is_some_and(|code| code != 0);
    match word {
        "error" => ToolStatus::Failed,
        // A tool that does not exist was called, or with arguments that it does not take.
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
