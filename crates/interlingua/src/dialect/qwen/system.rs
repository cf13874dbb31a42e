//! The records of Qwen Code's stream that are about the program: its start, its retries, and what it
//! asks of its host.

use super::wire::{Line, McpServer, SystemData};
use crate::dialect::Emitter;
use crate::event::{
    Decision, Error, ErrorClass, Notice, PermissionRequested, PermissionResolved, Retry,
    SessionStarted, SessionUpdated, Severity, TurnStarted,
};
use crate::json::Text;

/// Tells a record of the type `system`.
pub(super) fn system<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
    let subtype = line.subtype.take().unwrap_or_default();
    let data = line.data.take().unwrap_or_default();
    match subtype.body() {
        "init" => started(line, out),
        "session_start" => out.emit(SessionStarted {
            cwd: data.cwd,
            version: data.version,
            ..session(data.session_id.or(line.session_id.take()))
        }),
        "model_fallback" => {
            let from = data.from_model.unwrap_or_default();
            let to = data.to_model.unwrap_or_default();
            let text = Text::from(format!("the model {from} could not be used; {to} goes on"));
            out.emit(Notice { severity: Severity::Warning, text });
            out.emit(SessionUpdated { model: Some(to), ..SessionUpdated::default() });
        }
        "continue_turn_failed" => {
            let message = data.error.unwrap_or_default();
            out.emit(Error { message, ..Error::default() });
        }
        "ui_log" => {
            let text = data.text.unwrap_or_default();
            out.emit(Notice { severity: Severity::Info, text });
        }
        known @ ("task_notification" | "compaction") => {
            let name = Text::from(format!("system/{known}"));
            out.native(name);
        }
        other => {
            let name = Text::from(format!("system/{other}"));
            out.unknown(name);
        }
    }
}

/// A session of which only the id is known.
pub(super) fn session(id: Option<Text<'_>>) -> SessionStarted<'_> {
    SessionStarted { id, agent: Some(Text::plain("qwen")), ..SessionStarted::default() }
}

fn started<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
    out.emit(SessionStarted {
        version: line.version.take(),
        model: line.model.take(),
        cwd: line.cwd.take(),
        permission_mode: line.permission_mode.take(),
        tools: line.tools.take(),
        ..session(line.session_id.take())
    });
    out.emit(TurnStarted::default());
    for server in line.mcp_servers.drain(..) {
        if let Some(text) = cannot_be_used(server) {
            out.emit(Notice { severity: Severity::Warning, text });
        }
    }
}

/// That an MCP server cannot be used, if so.
fn cannot_be_used(server: McpServer<'_>) -> Option<Text<'static>> {
    let status = server.status?;
    let name = server.name.unwrap_or_default();
    let known = matches!(status.body(), "failed" | "disconnected" | "needs-auth" | "disabled");
    known.then(|| Text::from(format!("the MCP server {name} cannot be used: {status}")))
}

/// A request that is tried again.
pub(super) fn retry(data: SystemData<'_>) -> Retry<'_> {
    Retry {
        class: data.status_code.map(ErrorClass::of_http_status).unwrap_or_default(),
        http_status: data.status_code,
        // Mostly the reason for a retry is that it is one.
        message: data.reason.filter(|reason| *reason != "retry"),
        ..Retry::default()
    }
}

/// What the program asks of its host.
pub(super) fn control_request<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
    let request = line.request.take().unwrap_or_default();
    if request.subtype.as_ref().is_some_and(|subtype| *subtype == "can_use_tool") {
        out.emit(PermissionRequested {
            native_call: None,
            request: line.request_id.take().unwrap_or_default(),
            call: request.tool_use_id,
            tool: request.tool_name,
            description: None,
            input: request.input,
            options: request.suggestions,
        });
    } else {
        out.native("control_request");
    }
}

/// What was answered, to either of them.
pub(super) fn control_response<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
    let response = line.response.take().unwrap_or_default();
    match response.response.and_then(|verdict| verdict.allowed) {
        Some(allowed) => out.emit(PermissionResolved {
            request: response.request_id,
            decision: if allowed { Decision::Allowed } else { Decision::Denied },
            ..PermissionResolved::default()
        }),
        None => out.native("control_response"),
    }
}
