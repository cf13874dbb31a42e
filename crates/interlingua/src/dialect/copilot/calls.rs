//! Decodes Copilot's tool calls: their starts, answers, file changes and permission requests.

use super::tools;
use super::wire::{Details, Permission, ToolRequest, ToolResult};
use crate::dialect::Emitter;
use crate::event::{
    Decision, FileChange, FileChangeKind, FilesChanged, PermissionRequested, PermissionResolved,
    ToolEnded, ToolStarted, ToolStatus,
};
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// A call in a message.
pub(super) fn requested<'a>(
    request: ToolRequest<'a>,
    message: Option<Text<'a>>,
) -> ToolStarted<'a> {
    let name = request.name.unwrap_or_default();
    ToolStarted {
        call: request.call.unwrap_or_default(),
        kind: tools::kind_of(&name, request.mcp_server.as_ref()),
        name,
        message,
        input: Some(request.arguments.unwrap_or_else(|| Json::object(|_| {}))),
        ..ToolStarted::default()
    }
}

/// A call that starts to run. Its message contained it already, unless the user requested it.
pub(super) fn started<'a>(details: &mut Details<'a>) -> ToolStarted<'a> {
    let request = ToolRequest {
        call: details.call.take(),
        name: details.tool.take(),
        arguments: details.arguments.take(),
        mcp_server: details.mcp_server.take(),
    };
    requested(request, None)
}

/// Emits the answer of a call, with its file changes, and with a denial unless that was decided in
/// a record of its own.
pub(super) fn ended<'a>(details: &mut Details<'a>, decided: bool, out: &mut Emitter<'_, 'a>) {
    let call = details.call.take().unwrap_or_default();
    let result = details.result.take().unwrap_or_default();
    let error = match std::mem::take(&mut details.error) {
        Shaped::Record(error) => error,
        _ => Default::default(),
    };
    let exit_code = details.shell.as_ref().and_then(|shell| shell.exit_code);
    let status = match error.code.as_ref().map(Text::body) {
        Some("denied" | "rejected") => ToolStatus::Denied,
        Some("cancelled" | "aborted") => ToolStatus::Cancelled,
        Some("timeout") => ToolStatus::TimedOut,
        Some(_) => ToolStatus::Failed,
        None if details.success == Some(false) => ToolStatus::Failed,
        // Copilot reports success for every command that it could run.
        None if exit_code.is_some_and(|code| code != 0) => ToolStatus::Failed,
        None => ToolStatus::Completed,
    };
    if status == ToolStatus::Denied && !decided {
        out.emit(PermissionResolved {
            call: Some(call.clone()),
            decision: Decision::Denied,
            reason: error.message.clone(),
            ..PermissionResolved::default()
        });
    }
    if let Some(changed) = files_changed(details, &call, &result) {
        out.emit(changed);
    }
    out.emit(ToolEnded {
        call,
        status,
        output: result.content.map(|content| without_exit_line(content, exit_code)),
        exit_code,
        error: error.message,
        ..ToolEnded::default()
    });
}

/// The output of a command, without the line with the exit code that Copilot appends.
fn without_exit_line(content: Json<'_>, exit_code: Option<i64>) -> Json<'_> {
    let printed = exit_code.zip(content.as_text()).and_then(|(code, text)| {
        let plain = text.to_plain();
        let (printed, line) = plain.rsplit_once("<shellId: ")?;
        let end = format!(" completed with exit code {code}>");
        let at_line_start = printed.is_empty() || printed.ends_with('\n');
        let is_it = at_line_start && line.strip_suffix(&*end).is_some_and(|id| !id.contains('\n'));
        is_it.then(|| Json::from(&Text::plain(printed)).into_owned())
    });
    printed.unwrap_or(content)
}

/// The files that a call changed. The detailed content of a change to one file is its diff.
fn files_changed<'a>(
    details: &mut Details<'a>,
    call: &Text<'a>,
    result: &ToolResult<'a>,
) -> Option<FilesChanged<'a>> {
    let edits = std::mem::take(&mut details.file_edits);
    if edits.is_empty() {
        return None;
    }
    let is_diff = |shown: &&Json<'_>| shown.as_text().is_some_and(|text| is_diff(&text));
    let diff = result.shown.as_ref().filter(|_| edits.len() == 1).filter(is_diff).cloned();
    let changes = edits.into_iter().map(|edit| FileChange {
        path: edit.path.unwrap_or_default(),
        old_path: None,
        kind: edit.kind.as_ref().map(|kind| change_kind(kind.body())).unwrap_or_default(),
        diff: diff.clone(),
    });
    Some(FilesChanged { call: Some(call.clone()), changes: changes.collect() })
}

fn is_diff(text: &Text<'_>) -> bool {
    let text = text.to_plain();
    text.trim_start().starts_with("diff --git ")
}

fn change_kind(word: &str) -> FileChangeKind {
    match word {
        "create" | "created" | "add" => FileChangeKind::Add,
        "edit" | "edited" | "update" | "updated" | "modified" => FileChangeKind::Update,
        "delete" | "deleted" | "remove" => FileChangeKind::Delete,
        "rename" | "renamed" | "move" => FileChangeKind::Move,
        other => FileChangeKind::from(other),
    }
}

/// A permission request.
pub(super) fn permission_requested<'a>(details: &mut Details<'a>) -> PermissionRequested<'a> {
    let raw = details.permission.take();
    let permission = raw.as_ref().and_then(read::record_of::<Permission<'_>>).unwrap_or_default();
    let owned = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
    let input = subject(&permission);
    PermissionRequested {
        native_call: None,
        request: details.request.take().unwrap_or_default(),
        call: owned(&permission.call),
        // The call has the name of the tool; the kind of the request is less precise.
        tool: owned(&permission.tool).or_else(|| match permission.call {
            Some(_) => None,
            None => owned(&permission.kind),
        }),
        description: owned(&permission.intention),
        options: None,
        input: input.or(raw),
    }
}

/// What a permission is requested for, with the names that the tools of most agents have for it. The
/// file of a change is only the first of those that it changes.
fn subject(permission: &Permission<'_>) -> Option<Json<'static>> {
    let kind = permission.kind.as_ref().map_or("", Text::body);
    if !matches!(kind, "shell" | "read" | "write" | "url") {
        return None;
    }
    Some(Json::object(|fields| {
        fields.text_if("command", permission.command.as_ref());
        fields.text_if("cwd", permission.folder.as_ref());
        fields.text_if("path", permission.path.as_ref());
        fields.text_if("url", permission.url.as_ref());
        if kind == "write" {
            fields.objects("changes", changed_paths(permission), |change, path| {
                change.text("path", path);
            });
            fields.text_if("diff", permission.diff.as_ref());
        }
    }))
}

fn changed_paths<'p, 'a>(permission: &'p Permission<'a>) -> Vec<&'p Text<'a>> {
    let versions = permission.edits.iter().flat_map(|edit| [&edit.before, &edit.after]);
    let mut paths: Vec<&Text<'_>> = Vec::new();
    for path in versions.flatten().filter_map(|version| version.path.as_ref()) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The decision about a permission request.
pub(super) fn permission_resolved<'a>(details: &mut Details<'a>) -> PermissionResolved<'a> {
    let result = details.result.take().unwrap_or_default();
    let kind = result.kind.as_ref().map_or("", Text::body);
    let decision = match kind {
        "cancelled" => Decision::Withdrawn,
        kind if kind.starts_with("approved") => Decision::Allowed,
        _ => Decision::Denied,
    };
    PermissionResolved {
        request: details.request.take(),
        call: details.call.take(),
        decision,
        by: result.kind,
        reason: result.feedback,
        ..PermissionResolved::default()
    }
}
