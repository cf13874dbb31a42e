//! Decodes the records about the program itself: its start, its retries, its sub-agents, its
//! limits, and its requests to the host. It knows no messages and blocks.

use std::collections::BTreeSet;

use super::wire::{Line, McpServer, Message};
use crate::dialect::Emitter;
use crate::event::{
    Compacted, Decision, Error, ErrorClass, Limit, Notice, PermissionResolved, Retry,
    SessionStarted, SessionUpdated, Severity, SubagentEnded, SubagentStarted, TurnStarted,
};
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text, record};

/// The sub-agents that the program started.
#[derive(Debug, Default)]
pub(super) struct Subagents {
    ids: BTreeSet<String>,
}

impl Subagents {
    /// Emits the events of a record of type `system`.
    pub(super) fn decode_system<'a>(&mut self, line: Line<'a>, out: &mut Emitter<'_, 'a>) {
        let subtype = line.subtype.clone().unwrap_or_default();
        match subtype.body() {
            "init" => emit_session_start(line, out),
            "api_retry" => out.emit(Retry {
                attempt: line.attempt,
                of: line.max_retries,
                delay_ms: line.retry_delay_ms.map(|ms| ms.round() as u64),
                class: class_of(line.error.as_ref().map_or("", Text::body), line.error_status),
                http_status: line.error_status,
                // Claude Code does not write this field; Interlingua's own encoder does.
                message: text_of(line.message),
            }),
            "permission_denied" => out.emit(PermissionResolved {
                call: line.tool_use_id,
                tool: line.tool_name,
                decision: Decision::Denied,
                reason: text_of(line.message).or(line.decision_reason),
                ..PermissionResolved::default()
            }),
            "compact_boundary" => out.emit(compacted(line.compact_metadata)),
            "informational" | "notification" => out.emit(Notice {
                severity: line.level.map(|level| level.body().into()).unwrap_or_default(),
                text: line.content.or_else(|| text_of(line.message)).unwrap_or_default(),
            }),
            "task_started" if line.task_type.as_ref().is_none_or(|kind| *kind == "local_agent") => {
                self.ids.extend(line.task_id.as_ref().map(ToString::to_string));
                out.emit(SubagentStarted {
                    id: line.task_id,
                    call: line.tool_use_id,
                    kind: line.subagent_type,
                    description: line.description,
                    prompt: line.prompt,
                });
            }
            "task_notification" if self.is_subagent(line.task_id.as_ref()) => {
                out.emit(SubagentEnded {
                    id: line.task_id,
                    call: line.tool_use_id,
                    status: line.status,
                    summary: line.summary,
                })
            }
            "status" if line.permission_mode.is_some() => out.emit(SessionUpdated {
                permission_mode: line.permission_mode,
                ..SessionUpdated::default()
            }),
            known if NATIVE_SUBTYPES.contains(&known) => {
                let name = Text::from(format!("system/{known}"));
                out.native(name);
            }
            other => {
                let name = Text::from(format!("system/{other}"));
                out.unknown(name);
            }
        }
    }

    /// Whether a task is a sub-agent: background commands are tasks too.
    fn is_subagent(&self, task: Option<&Text<'_>>) -> bool {
        task.is_some_and(|task| self.ids.contains(&*task.to_plain()))
    }
}

/// The subtypes of `system` that are understood and have no event of their own.
const NATIVE_SUBTYPES: &[&str] = &[
    "status",
    "thinking_tokens",
    "hook_started",
    "hook_progress",
    "hook_response",
    "task_started",
    "task_progress",
    "task_updated",
    "task_notification",
    "background_tasks_changed",
    "commands_changed",
    "control_request_progress",
    "elicitation_complete",
    "files_persisted",
    "local_command_output",
    "memory_recall",
    "mirror_error",
    "model_refusal_fallback",
    "model_refusal_no_fallback",
    "plugin_install",
    "session_state_changed",
    "session_writes_lost",
    "worker_shutting_down",
];

/// The list of tools with the names that calls have: `Task` is called `Agent`.
fn as_called(tools: Json<'_>) -> Json<'_> {
    if !tools.get().contains("\"Task\"") {
        return tools;
    }
    Json::from_text(tools.get().replace("\"Task\"", "\"Agent\"")).unwrap_or(tools)
}

fn emit_session_start<'a>(line: Line<'a>, out: &mut Emitter<'_, 'a>) {
    out.emit(SessionStarted {
        id: line.session_id,
        agent: Some(Text::plain("claude")),
        version: line.version,
        model: line.model,
        cwd: line.cwd,
        permission_mode: line.permission_mode,
        tools: line.tools.map(as_called),
        host_fields: Vec::new(),
    });
    out.emit(TurnStarted::default());
    for server in line.mcp_servers {
        if let Some(text) = unavailable_message(server) {
            out.emit(Notice { severity: Severity::Warning, text });
        }
    }
}

/// The message for an MCP server that cannot be used.
fn unavailable_message(server: McpServer<'_>) -> Option<Text<'static>> {
    let status = server.status?;
    let known = matches!(status.body(), "failed" | "needs-auth" | "disabled");
    let name = server.name.unwrap_or_default();
    known.then(|| Text::from(format!("the MCP server {name} cannot be used: {status}")))
}

record! {
    struct RateLimit<'a> {
        name: text "rateLimitType",
        status: text "status",
        resets_at: json "resetsAt",
    }
}

/// A limit of the account.
pub(super) fn limit(details: Option<Json<'_>>) -> Limit<'static> {
    let limit = details.as_ref().and_then(read::record_of::<RateLimit<'_>>).unwrap_or_default();
    Limit {
        name: limit.name.map(Text::into_owned),
        status: limit.status.map(Text::into_owned),
        resets_at: limit.resets_at.map(Json::into_owned),
        details: details.map(Json::into_owned),
    }
}

/// The error in an `assistant` record that the program writes in place of the model's message when
/// a request has failed finally.
pub(super) fn failure<'a>(code: Text<'a>, status: Option<u64>, message: &Message<'a>) -> Error<'a> {
    let text = match &message.content {
        Shaped::List(list) => list.first().and_then(|content| content.text.clone()),
        Shaped::Text(text) => Some(text.clone()),
        _ => None,
    };
    let too_long = text.as_ref().is_some_and(|text| text.body().starts_with("Prompt is too long"));
    let class = if too_long { ErrorClass::ContextOverflow } else { class_of(code.body(), status) };
    let message = text.unwrap_or_else(|| code.clone());
    Error { class, message, code: Some(code), http_status: status, fatal: true, ..Error::default() }
}

fn class_of(code: &str, status: Option<u64>) -> ErrorClass {
    match (code, status) {
        ("authentication_failed", _) => ErrorClass::Authentication,
        ("billing_error", _) => ErrorClass::Quota,
        (_, Some(status)) => ErrorClass::of_http_status(status),
        ("rate_limit", _) => ErrorClass::RateLimit,
        ("overloaded", _) => ErrorClass::Overloaded,
        ("invalid_request", _) => ErrorClass::BadRequest,
        ("server_error", _) => ErrorClass::Internal,
        _ => ErrorClass::Unspecified,
    }
}

record! {
    struct CompactMetadata<'a> {
        trigger: text "trigger",
        before: number "pre_tokens",
        after: number "post_tokens",
    }
}

fn compacted(details: Option<Json<'_>>) -> Compacted<'static> {
    let metadata = details.as_ref().and_then(read::record_of::<CompactMetadata<'_>>);
    let metadata = metadata.unwrap_or_default();
    Compacted {
        trigger: metadata.trigger.map(Text::into_owned),
        tokens_before: metadata.before,
        tokens_after: metadata.after,
        details: details.map(Json::into_owned),
    }
}

fn text_of<'a>(shape: Shaped<'a, Message<'a>>) -> Option<Text<'a>> {
    match shape {
        Shaped::Text(text) => Some(text),
        _ => None,
    }
}
