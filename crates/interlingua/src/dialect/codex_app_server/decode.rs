//! Reads `codex app-server`: the agent's side alone, or both sides in one stream.

use std::collections::BTreeSet;

use super::asked::{Asked, request_id};
use super::calls::Calls;
use super::counts::Counter;
use super::diffs::ToldFiles;
use super::ignored::IGNORED;
use super::items::RAW_THOUGHTS;
use super::said::Said;
use super::threads::{Speaker, Threads};
use super::wire::{Message, Params};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, Emitter, EventSink, each_record};
use crate::event::{
    BlockDelta, BlockKind, Decision, Event, Notice, PermissionResolved, PlanItem, PlanStatus,
    PlanUpdated, SessionUpdated, Severity, ToolProgress,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The reader of `codex-app-server`.
#[derive(Debug, Default)]
pub struct CodexAppServerDecoder {
    pub(super) threads: Threads,
    pub(super) turn: TurnAtHand,
    pub(super) counter: Counter,
    pub(super) said: Said,
    pub(super) calls: Calls,
    pub(super) asked: Asked,
    pub(super) files: ToldFiles,
    /// The client is in the stream too.
    pub(super) client_heard: bool,
    /// What it asked and was not yet answered.
    pub(super) requests: Vec<(Text<'static>, Request)>,
    /// The turns of this stream, by their ids: a resume tells them again.
    pub(super) told_turns: BTreeSet<Box<str>>,
    /// The record at hand replays the history of a resumed thread.
    pub(super) replaying: bool,
    /// Why the last request of the client was refused, while there was no turn at all.
    pub(super) refused: Option<crate::event::Error<'static>>,
    /// How the account stood when it was told last.
    pub(super) limits: String,
}

/// The turn of the session, and what of it later records must know.
#[derive(Debug, Default)]
pub(super) struct TurnAtHand {
    pub(super) open: bool,
    pub(super) id: Option<Text<'static>>,
    /// What the client asked for, which the agent repeats.
    pub(super) prompt: Option<Text<'static>>,
    pub(super) last_user_item: Option<Text<'static>>,
    /// The client asked that it be stopped.
    pub(super) interrupted: bool,
    pub(super) compacted: bool,
}

/// A request of the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Turn,
    Other,
}

impl Decoder for CodexAppServerDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |message: &mut Message<'_>, own, sink| {
            self.message(message, own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        self.end_of_input(&mut Emitter::without_record(sink));
    }
}

impl CodexAppServerDecoder {
    fn message<'a>(&mut self, message: &mut Message<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let time = message.time.take();
        let Some(method) = message.method.take() else {
            return self.response(message, &mut Emitter::new(own, sink).at(time));
        };
        let mut nothing = Params::default();
        let params = message.params.as_mut().unwrap_or(&mut nothing);
        let name = method.to_plain();
        let speaks = name.starts_with("item/") || name.starts_with("turn/") || name == "error";
        if message.id.is_none() {
            self.meet(params, speaks, sink);
            if !self.turn.open && name.starts_with("item/") {
                self.join(params);
            }
        }
        let (kind, first) = match &*name {
            "item/agentMessage/delta" | "item/plan/delta" => (BlockKind::Text, 0),
            "item/reasoning/summaryTextDelta" => (BlockKind::Reasoning, 0),
            "item/reasoning/textDelta" => (BlockKind::Reasoning, RAW_THOUGHTS),
            _ => {
                let mut out = Emitter::new(own, sink).at(time);
                out.parent = self.parent(params.thread_id.as_ref());
                return match message.id.take() {
                    Some(id) => self.request(&name, &id, params, &mut out),
                    None => self.notification(method.clone(), &name, params, &mut out),
                };
            }
        };
        let index = first + params.part.unwrap_or(0);
        let (message, text) = (params.item_id.take(), params.delta.take().unwrap_or_default());
        let delta = BlockDelta { block: 0, message, index, kind, text };
        let parent = match self.threads.speaker(params.thread_id.as_ref()) {
            Speaker::Agent(call) => Some(call.borrowed()),
            _ => None,
        };
        sink.event(Event::new(delta).within(parent).at(time));
    }

    fn parent(&self, thread: Option<&Text<'_>>) -> Option<Text<'static>> {
        match self.threads.speaker(thread) {
            Speaker::Agent(call) => Some(call.clone()),
            _ => None,
        }
    }

    fn notification<'a>(
        &mut self,
        method: Text<'a>,
        name: &str,
        params: &mut Params<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        match name {
            "item/started" => self.item_started(params, method, out),
            "item/completed" => match &mut params.item {
                Some(item) => self.item_completed(item, out),
                None => out.unknown(method),
            },
            "item/reasoning/summaryPartAdded" => self.part_began(params, out),
            "item/commandExecution/outputDelta"
            | "item/fileChange/outputDelta"
            | "item/mcpToolCall/progress" => self.progress(params, out),
            "item/autoApprovalReview/completed" => reviewed(params, out),
            "turn/started" => self.turn_started(params, method, out),
            "turn/completed" => self.turn_completed(params, method, out),
            "turn/plan/updated" => plan(params, out),
            "turn/diff/updated" => match params.diff.take() {
                Some(diff) if !out.is_nested() => self.files.compare(&diff, out),
                _ => out.native("turn/diff/updated that says nothing new"),
            },
            "thread/started" => self.thread_started(params, method, out),
            "thread/tokenUsage/updated" => self.usage(params, out),
            "thread/compacted" => self.compacted(out),
            "account/rateLimits/updated" => self.limits(params, out),
            "error" => self.problem(params, method, out),
            "serverRequest/resolved" => match params.request.take() {
                Some(id) => self.asked.settled(&id, out),
                None => out.unknown(method),
            },
            "warning"
            | "guardianWarning"
            | "configWarning"
            | "deprecationNotice"
            | "windows/worldWritableWarning" => notice(params, method, out),
            "model/rerouted" => {
                let model = params.model.take();
                out.emit(SessionUpdated { model, ..SessionUpdated::default() });
                if let Some(text) = params.reason.take() {
                    out.emit(Notice { severity: Severity::Info, text });
                }
            }
            "mcpServer/startupStatus/updated" => server_status(params, out),
            _ if is_left_out(name) => out.native(method),
            _ => out.unknown(method),
        }
    }

    /// A request: of the agent, who wants to be answered, or of the client.
    fn request<'a>(
        &mut self,
        name: &str,
        id: &Json<'a>,
        params: &mut Params<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        if !self.asked.ask(name, id, params, out) {
            self.client_asks(name, &request_id(id), params, out);
        }
    }

    fn progress<'a>(&mut self, params: &mut Params<'a>, out: &mut Emitter<'_, 'a>) {
        let call = params.item_id.take().unwrap_or_default();
        self.asked.call_shows(&call, None, out);
        let output = params.delta.take().or_else(|| params.message.take());
        out.emit(ToolProgress { call, output, elapsed_ms: None });
    }
}

/// Whether a type of messages is left out on purpose.
pub(super) fn is_left_out(name: &str) -> bool {
    IGNORED.iter().any(|ignored| ignored.covers(name))
}

fn plan(params: &Params<'_>, out: &mut Emitter<'_, '_>) {
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

fn notice<'a>(params: &mut Params<'a>, method: Text<'a>, out: &mut Emitter<'_, 'a>) {
    let text = match (params.message.take().or_else(|| params.summary.take()), &params.details) {
        (Some(text), Some(details)) => Text::from(format!("{text} ({details})")),
        (Some(text), None) => text,
        (None, _) => return out.unknown(method),
    };
    out.emit(Notice { severity: Severity::Warning, text });
}

/// How a server of tools came up; only that it did not is worth telling.
fn server_status(params: &Params<'_>, out: &mut Emitter<'_, '_>) {
    if !params.status.as_ref().is_some_and(|status| *status == "failed") {
        return out.native("mcpServer/startupStatus/updated that is well");
    }
    let name = params.name.clone().unwrap_or_default();
    let text = Text::from(format!("the MCP server {name} did not start"));
    out.emit(Notice { severity: Severity::Warning, text });
}

/// The agent's own reviewer decided about a call in the place of the user.
fn reviewed(params: &mut Params<'_>, out: &mut Emitter<'_, '_>) {
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
