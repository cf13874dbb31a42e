//! The decoder of `codex app-server`, for the agent's side alone or both sides in one stream.

use std::collections::BTreeSet;

use super::agent_requests::{AgentRequests, request_id};
use super::calls::Calls;
use super::counts::Counter;
use super::diffs::ReportedFiles;
use super::ignored::IGNORED;
use super::items::FIRST_RAW_THOUGHT;
use super::messages::RequestMessages;
use super::threads::{ThreadOwner, Threads};
use super::wire::{Message, Params};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, Emitter, EventSink, each_record};
use crate::event::{
    BlockDelta, BlockKind, Decision, Event, Notice, PermissionResolved, PlanItem, PlanStatus,
    PlanUpdated, SessionUpdated, Severity, ToolProgress,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The decoder of `codex-app-server`.
#[derive(Debug, Default)]
pub struct CodexAppServerDecoder {
    pub(super) threads: Threads,
    pub(super) turn: CurrentTurn,
    pub(super) counter: Counter,
    pub(super) messages: RequestMessages,
    pub(super) calls: Calls,
    pub(super) agent_requests: AgentRequests,
    pub(super) files: ReportedFiles,
    /// The stream contains messages of the client.
    pub(super) client_seen: bool,
    /// The client's requests that have no response yet.
    pub(super) client_requests: Vec<(Text<'static>, ClientRequest)>,
    /// The ids of the turns of this stream, which a resume repeats.
    pub(super) seen_turns: BTreeSet<Box<str>>,
    /// The current record replays the history of a resumed thread.
    pub(super) replaying: bool,
    /// The error response to the last request of the client, if there was no turn.
    pub(super) last_refusal: Option<crate::event::Error<'static>>,
    /// The limits of the account that were emitted last.
    pub(super) last_limits: String,
}

/// The state of the current turn of the session.
#[derive(Debug, Default)]
pub(super) struct CurrentTurn {
    pub(super) open: bool,
    pub(super) id: Option<Text<'static>>,
    /// The prompt of the client, which the agent repeats.
    pub(super) prompt: Option<Text<'static>>,
    pub(super) last_user_item: Option<Text<'static>>,
    /// The client has asked the agent to interrupt the turn.
    pub(super) interrupted: bool,
    pub(super) compacted: bool,
}

/// A request of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientRequest {
    Turn,
    Other,
}

impl Decoder for CodexAppServerDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |message: &mut Message<'_>, own, sink| {
            self.read_message(message, own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        self.finish_turn(&mut Emitter::without_record(sink));
    }
}

impl CodexAppServerDecoder {
    fn read_message<'a>(
        &mut self,
        message: &mut Message<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let time = message.time.take();
        let Some(method) = message.method.take() else {
            return self.read_response(message, &mut Emitter::new(own, sink).at(time));
        };
        let mut no_params = Params::default();
        let params = message.params.as_mut().unwrap_or(&mut no_params);
        let name = method.to_plain();
        let is_output = name.starts_with("item/") || name.starts_with("turn/") || name == "error";
        if message.id.is_none() {
            self.identify_thread(params, is_output, sink);
            if !self.turn.open && name.starts_with("item/") {
                self.join_turn(params);
            }
        }
        let (kind, first_index) = match &*name {
            "item/agentMessage/delta" | "item/plan/delta" => (BlockKind::Text, 0),
            "item/reasoning/summaryTextDelta" => (BlockKind::Reasoning, 0),
            "item/reasoning/textDelta" => (BlockKind::Reasoning, FIRST_RAW_THOUGHT),
            _ => {
                let mut out = Emitter::new(own, sink).at(time);
                out.parent = self.parent_of(params.thread_id.as_ref());
                return match message.id.take() {
                    Some(id) => self.read_request(&name, &id, params, &mut out),
                    None => self.read_notification(method.clone(), &name, params, &mut out),
                };
            }
        };
        let index = first_index + params.part.unwrap_or(0);
        let (message, text) = (params.item_id.take(), params.delta.take().unwrap_or_default());
        let delta = BlockDelta { block: 0, message, index, kind, text };
        let parent = match self.threads.owner(params.thread_id.as_ref()) {
            ThreadOwner::Agent(call) => Some(call.borrowed()),
            _ => None,
        };
        sink.event(Event::new(delta).within(parent).at(time));
    }

    fn parent_of(&self, thread: Option<&Text<'_>>) -> Option<Text<'static>> {
        match self.threads.owner(thread) {
            ThreadOwner::Agent(call) => Some(call.clone()),
            _ => None,
        }
    }

    fn read_notification<'a>(
        &mut self,
        method: Text<'a>,
        name: &str,
        params: &mut Params<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        match name {
            "item/started" => self.read_item_started(params, method, out),
            "item/completed" => match &mut params.item {
                Some(item) => self.read_item_completed(item, out),
                None => out.unknown(method),
            },
            "item/reasoning/summaryPartAdded" => self.start_summary_part(params, out),
            "item/commandExecution/outputDelta"
            | "item/fileChange/outputDelta"
            | "item/mcpToolCall/progress" => self.read_progress(params, out),
            "item/autoApprovalReview/completed" => emit_review(params, out),
            "turn/started" => self.read_turn_started(params, method, out),
            "turn/completed" => self.read_turn_completed(params, method, out),
            "turn/plan/updated" => emit_plan(params, out),
            "turn/diff/updated" => match params.diff.take() {
                Some(diff) if !out.is_nested() => self.files.emit_new_changes(&diff, out),
                _ => out.native("turn/diff/updated without changes"),
            },
            "thread/started" => self.read_thread_started(params, method, out),
            "thread/tokenUsage/updated" => self.read_usage(params, out),
            "thread/compacted" => self.emit_compaction(out),
            "account/rateLimits/updated" => self.read_limits(params, out),
            "error" => self.read_error(params, method, out),
            "serverRequest/resolved" => match params.request.take() {
                Some(id) => self.agent_requests.emit_resolved(&id, out),
                None => out.unknown(method),
            },
            "warning"
            | "guardianWarning"
            | "configWarning"
            | "deprecationNotice"
            | "windows/worldWritableWarning" => emit_notice(params, method, out),
            "model/rerouted" => {
                let model = params.model.take();
                out.emit(SessionUpdated { model, ..SessionUpdated::default() });
                if let Some(text) = params.reason.take() {
                    out.emit(Notice { severity: Severity::Info, text });
                }
            }
            "mcpServer/startupStatus/updated" => emit_server_status(params, out),
            _ if is_ignored(name) => out.native(method),
            _ => out.unknown(method),
        }
    }

    /// Reads a request of either side.
    fn read_request<'a>(
        &mut self,
        name: &str,
        id: &Json<'a>,
        params: &mut Params<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        if !self.agent_requests.emit_request(name, id, params, &self.calls, out) {
            self.read_client_request(name, &request_id(id), params, out);
        }
    }

    fn read_progress<'a>(&mut self, params: &mut Params<'a>, out: &mut Emitter<'_, 'a>) {
        let call = params.item_id.take().unwrap_or_default();
        self.agent_requests.resolve_by_call(&call, None, out);
        let output = params.delta.take().or_else(|| params.message.take());
        out.emit(ToolProgress { call, output, elapsed_ms: None });
    }
}

/// Whether records of a type are left out on purpose.
pub(super) fn is_ignored(name: &str) -> bool {
    IGNORED.iter().any(|ignored| ignored.covers(name))
}

fn emit_plan(params: &Params<'_>, out: &mut Emitter<'_, '_>) {
    if let Some(text) = params.explanation.as_ref().filter(|text| !text.is_empty()) {
        let text = Text::from(format!("plan: {text}"));
        out.emit(Notice { severity: Severity::Info, text });
    }
    let items = params.plan.iter().map(|step| PlanItem {
        text: step.text.clone().unwrap_or_default(),
        status: match step.status.as_ref().map_or("pending", Text::body) {
            "inProgress" => PlanStatus::InProgress,
            other => PlanStatus::from(other),
        },
        raw_status: step.status.as_ref().map(Json::from),
        ..PlanItem::default()
    });
    out.emit(PlanUpdated { items: items.collect(), ..PlanUpdated::default() });
}

fn emit_notice<'a>(params: &mut Params<'a>, method: Text<'a>, out: &mut Emitter<'_, 'a>) {
    let text = match (params.message.take().or_else(|| params.summary.take()), &params.details) {
        (Some(text), Some(details)) => Text::from(format!("{text} ({details})")),
        (Some(text), None) => text,
        (None, _) => return out.unknown(method),
    };
    out.emit(Notice { severity: Severity::Warning, text });
}

/// Emits a notice if an MCP server failed to start.
fn emit_server_status(params: &Params<'_>, out: &mut Emitter<'_, '_>) {
    if !params.status.as_ref().is_some_and(|status| *status == "failed") {
        return out.native("mcpServer/startupStatus/updated that is well");
    }
    let name = params.name.clone().unwrap_or_default();
    let text = Text::from(format!("the MCP server {name} did not start"));
    out.emit(Notice { severity: Severity::Warning, text });
}

/// Emits the decision of the agent's own reviewer, who decides in place of the user.
fn emit_review(params: &mut Params<'_>, out: &mut Emitter<'_, '_>) {
    let review = params.review.take().unwrap_or_default();
    let decision = match review.status.as_ref().map_or("", Text::body) {
        "approved" => Decision::Allowed,
        "aborted" => Decision::Withdrawn,
        _ => Decision::Denied,
    };
    out.emit(PermissionResolved {
        call: params.item_id.take(),
        decision,
        by: Some(Text::plain("reviewer")),
        reason: review.rationale,
        ..PermissionResolved::default()
    });
}
