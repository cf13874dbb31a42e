//! Decodes the records about the program itself: its start, its retries, and its requests to the
//! host. It knows no messages and blocks.

use super::wire::{Line, McpServer, SystemData};
use crate::dialect::Emitter;
use crate::event::{
    Decision, Error, ErrorClass, Notice, PermissionRequested, PermissionResolved, Retry,
    SessionStarted, SessionUpdated, Severity, TurnStarted,
};
use crate::json::Text;

/// Emits the events of a record of type `system`.
pub(super) fn decode_system<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
    let subtype = line.subtype.take().unwrap_or_default();
    let data = line.data.take().unwrap_or_default();
    match subtype.body() {
        "init" => emit_session_start(line, out),
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

fn emit_session_start<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
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
        if let Some(text) = unavailable_message(server) {
            out.emit(Notice { severity: Severity::Warning, text });
        }
    }
}

/// The message for an MCP server that cannot be used.
fn unavailable_message(server: McpServer<'_>) -> Option<Text<'static>> {
    let status = server.status?;
    let name = server.name.unwrap_or_default();
    let unavailable =
        matches!(status.body(), "failed" | "disconnected" | "needs-auth" | "disabled");
    unavailable.then(|| Text::from(format!("the MCP server {name} cannot be used: {status}")))
}

/// The retry of a request.
pub(super) fn retry_of(data: SystemData<'_>) -> Retry<'_> {
    Retry {
        class: data.status_code.map(ErrorClass::of_http_status).unwrap_or_default(),
        http_status: data.status_code,
        // Mostly the stated reason is only `retry`.
        message: data.reason.filter(|reason| *reason != "retry"),
        ..Retry::default()
    }
}

/// Emits a request of the program to its host.
pub(super) fn emit_control_request<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
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

/// Emits the response to a request, in either direction between the program and its host.
pub(super) fn emit_control_response<'a>(line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
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
