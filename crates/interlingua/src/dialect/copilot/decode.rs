//! Decodes Copilot's stream.

use std::collections::VecDeque;

use super::calls;
use super::ended::{self, TurnState};
use super::ignored::IGNORED;
use super::questions;
use super::thread::{InputDelta, REASONING, TEXT, Thread};
use super::tools;
use super::wire::{Details, Line, McpServer};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, Emitter, EventSink, each_record};
use crate::event::{
    Block, BlockKind, Compacted, Decision, Interrupted, MessageEnded, MessageStarted, Notice,
    SessionStarted, Severity, SubagentEnded, SubagentStarted, ToolEnded, ToolInputDelta,
    ToolProgress, ToolStarted, ToolStatus, TurnEnded, TurnStarted, Usage, UserMessage,
};
use crate::framing::FrameText;
use crate::json::read::Shaped;
use crate::json::{Json, Text};

/// The number of calls that have ended and are remembered.
const MAX_ENDED: usize = 64;

/// The decoder of `copilot`.
#[derive(Debug, Default)]
pub struct CopilotDecoder {
    /// The main agent, and every sub-agent.
    threads: Vec<Thread>,
    /// The calls that started sub-agents, by the id of the agent.
    agents: Vec<(Text<'static>, Text<'static>)>,
    /// The calls that were running when the turn was stopped. Copilot never answers them.
    stopped_calls: Vec<String>,
    /// The calls whose denial was emitted when it was decided.
    denied_calls: Vec<Text<'static>>,
    /// The calls that ended last. A command that was moved to the background goes on printing.
    ended_calls: VecDeque<Text<'static>>,
    turn: TurnState,
}

impl Decoder for CopilotDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }

    /// Ends a turn that was stopped, even if `result` is missing.
    fn finish(&mut self, sink: &mut dyn EventSink) {
        let mut out = Emitter::without_record(sink);
        self.end_stopped_calls(&mut out);
        if self.turn.open && self.turn.stopped.is_some() {
            out.emit(self.turn.ended(None, None));
        }
    }
}

impl CopilotDecoder {
    /// Reads one event of the program.
    pub(in crate::dialect) fn line<'a>(
        &mut self,
        line: &mut Line<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let kind = line.kind.take();
        let mut none = Details::default();
        let details = line.data.as_mut().unwrap_or(&mut none);
        let parent = match (details.parent_call.take(), &line.agent) {
            (None, Some(agent)) => Some(self.call_of(agent)),
            (call, _) => call,
        };
        let mut out = Emitter::new(own, sink).within(parent).at(line.timestamp.take());
        match kind.as_ref().map_or("", Text::body) {
            "assistant.message_delta" => self.text_delta(details, &mut out),
            "assistant.reasoning_delta" => self.reasoning_delta(details, &mut out),
            "assistant.tool_call_delta" => self.call_input_delta(details, &mut out),
            "tool.shell_output" if self.has_ended(details.call.as_ref()) => {
                out.native(kind.unwrap_or_default());
            }
            "tool.shell_output" => out.emit(ToolProgress {
                call: details.call.take().unwrap_or_default(),
                output: details.text.take(),
                ..ToolProgress::default()
            }),
            "assistant.message_start" => self.message_started(details, &mut out),
            "assistant.message" => self.message(details, &mut out),
            "assistant.reasoning" => self.reasoning(details, &mut out),
            "tool.execution_start" => {
                let started = calls::started(details);
                self.thread(&out.parent).call_made(&started.call);
                out.emit(started);
                out.native(kind.unwrap_or_default());
            }
            "tool.execution_complete" => {
                let denied = &mut self.denied_calls;
                let decided = denied.iter().position(|call| details.call.as_ref() == Some(call));
                let decided = decided.map(|at| denied.swap_remove(at)).is_some();
                self.note_ended(details.call.as_ref());
                calls::ended(details, decided, &mut out);
            }
            "tool.execution_progress" => out.emit(ToolProgress {
                call: details.call.take().unwrap_or_default(),
                ..ToolProgress::default()
            }),
            "result" => self.result(line, &mut out),
            _ => {
                let agent = line.agent.take();
                self.infrequent_record(kind.unwrap_or_default(), details, agent, &mut out);
            }
        }
    }

    /// Decodes records that are not part of streaming.
    fn infrequent_record<'a>(
        &mut self,
        kind: Text<'a>,
        details: &mut Details<'a>,
        agent: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        match kind.body() {
            "user.message" => self.user_message(details, out),
            "assistant.turn_retry" => self.retry(details, out),
            "session.error" => {
                let mut error = ended::error(details);
                // When a sub-agent fails, the main agent continues.
                error.fatal = out.parent.is_none();
                if error.fatal {
                    self.turn.failed = true;
                    self.turn.http_status = error.http_status;
                }
                out.emit(error);
            }
            "abort" if out.parent.is_none() => self.turn_stopped(details.reason.take(), out),
            "session.tools_updated"
            | "session.start"
            | "session.resume"
            | "session.model_change"
                if out.parent.is_none() =>
            {
                out.emit(session(details));
            }
            "session.mcp_servers_loaded" => {
                let unusable = details.servers.drain(..).filter_map(unusable_server);
                for text in unusable.collect::<Vec<_>>() {
                    out.emit(Notice { severity: Severity::Warning, text });
                }
                out.native(kind);
            }
            "session.info" if !is_redundant(details) => {
                let text = details.message_text.take().unwrap_or_default();
                out.emit(Notice { severity: Severity::Info, text });
            }
            "session.warning" => {
                let text = details.message_text.take().unwrap_or_default();
                out.emit(Notice { severity: Severity::Warning, text });
            }
            "session.compaction_complete" => out.emit(Compacted {
                tokens_before: details.tokens_before,
                tokens_after: details.tokens_after,
                ..Compacted::default()
            }),
            "subagent.started" | "subagent.completed" | "subagent.failed" => {
                self.subagent(&kind, details, agent, out);
            }
            "permission.requested" if details.resolved_by_hook != Some(true) => {
                out.emit(calls::permission_requested(details));
            }
            "permission.completed" => {
                let resolved = calls::permission_resolved(details);
                let denied =
                    resolved.call.as_ref().filter(|_| resolved.decision == Decision::Denied);
                self.denied_calls.extend(denied.map(|call| call.clone().into_owned()));
                out.emit(resolved);
            }
            "user_input.requested" => out.emit(questions::asked(details)),
            "user_input.completed" => out.emit(questions::answered(details)),
            _ => self.native_record(kind, details, out),
        }
    }

    /// Decodes records that have no event of their own, but may change the state of the decoder.
    fn native_record<'a>(
        &mut self,
        kind: Text<'a>,
        details: &mut Details<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        match kind.body() {
            "assistant.turn_start" if out.parent.is_none() => self.turn.steps += 1,
            "assistant.turn_end" => self.thread(&out.parent).end_step(out),
            "model.call_start" => {
                self.thread(&out.parent).model = details.model.take().map(Text::into_owned);
            }
            "model.call_finished" => self.turn.add_request(details),
            "model.call_failure" => {
                self.thread(&out.parent).failure = Some(ended::request_failure(details));
            }
            "session.info"
                if details.info_type.as_ref().is_some_and(|it| *it == "cancellation") =>
            {
                self.turn.stopped_text = details.message_text.take().map(Text::into_owned);
            }
            "agent.interrupted" => {
                let calls = details.stopped_calls.as_ref();
                let calls: Option<Vec<String>> = calls.and_then(Json::read);
                self.stopped_calls.extend(calls.into_iter().flatten());
            }
            "assistant.idle" if details.aborted == Some(true) && out.parent.is_none() => {
                self.turn_stopped(None, out);
                self.end_stopped_calls(out);
            }
            _ => {}
        }
        if IGNORED.iter().any(|ignored| ignored.covers(kind.body())) {
            out.native(kind);
        } else {
            out.unknown(kind);
        }
    }

    /// Whether a turn has begun, or failed before it had.
    pub(in crate::dialect) fn has_turn(&self) -> bool {
        self.turn.open || self.turn.failed || self.turn.stopped.is_some()
    }

    /// Ends the turn, because the agent waits for the next prompt.
    pub(in crate::dialect) fn became_idle(
        &mut self,
        aborted: bool,
        usage: Option<Usage<'static>>,
        out: &mut Emitter<'_, '_>,
    ) {
        if aborted && self.turn.open && self.turn.stopped.is_none() {
            self.turn_stopped(None, out);
        }
        self.end_stopped_calls(out);
        self.denied_calls.clear();
        self.ended_calls.clear();
        let ended = self.turn.ended(Some(0), out.time.as_ref());
        out.emit(TurnEnded { usage, ..ended });
    }

    fn has_ended(&self, call: Option<&Text<'_>>) -> bool {
        call.is_some_and(|call| self.ended_calls.iter().any(|ended| ended == call))
    }

    fn note_ended(&mut self, call: Option<&Text<'_>>) {
        if self.ended_calls.len() == MAX_ENDED {
            self.ended_calls.pop_front();
        }
        self.ended_calls.extend(call.map(|call| call.clone().into_owned()));
    }

    fn text_delta<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let text = details.delta.take().unwrap_or_default();
        let id = details.message.take().unwrap_or_default();
        self.thread(&out.parent).delta(id, BlockKind::Text, text, out);
    }

    fn reasoning_delta<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let text = details.delta.take().unwrap_or_default();
        let id = details.reasoning_id.take().unwrap_or_default();
        let thread = self.thread(&out.parent);
        thread.note_reasoning(&id);
        thread.delta(id, BlockKind::Reasoning, text, out);
    }

    fn message_started<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let message = details.message.take();
        self.turn.note_progress(&out.parent);
        let thread = self.thread(&out.parent);
        thread.end_reasoning(out);
        if let Some(id) = &message {
            thread.begin_message(id);
        }
        let model = thread.model.clone();
        out.emit(MessageStarted { message, model, usage: None });
    }

    /// A complete message. It repeats its deltas, and contains its calls.
    fn message<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let message = details.message.take();
        self.turn.note_progress(&out.parent);
        let thread = self.thread(&out.parent);
        thread.end_reasoning(out);
        let begun = message.as_ref().and_then(|id| thread.finish_message(id));
        if begun.is_none() {
            let model = details.model.take().or_else(|| thread.model.clone());
            let message = message.clone();
            out.emit(MessageStarted { message, model, usage: None });
        }
        if let Some(text) = details.reasoning_text.take().filter(|_| !thread.has_reasoning()) {
            thread.reasoning_of_message = Some(text.clone().into_owned());
            let (message, kind) = (message.clone(), BlockKind::Reasoning);
            out.emit(Block { message, index: REASONING, kind, text, ..Block::default() });
        }
        let text = details.content.take().unwrap_or_default();
        if begun == Some(true) || !text.is_empty() {
            out.emit(Block { message: message.clone(), index: TEXT, text, ..Block::default() });
        }
        for request in details.tool_requests.drain(..) {
            let started = calls::requested(request, message.clone());
            thread.call_made(&started.call);
            out.emit(started);
        }
        thread.drop_stale(out);
        out.emit(MessageEnded { message, ..MessageEnded::default() });
    }

    /// A complete reasoning block. It follows its message, which contains the same reasoning if no
    /// deltas were streamed.
    fn reasoning<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let id = details.reasoning_id.take().unwrap_or_default();
        let text = details.content.take().unwrap_or_default();
        let thread = self.thread(&out.parent);
        if thread.note_reasoning(&id) && thread.reasoning_of_message.as_ref() != Some(&text) {
            let (message, kind) = (Some(id), BlockKind::Reasoning);
            out.emit(Block { message, index: REASONING, kind, text, ..Block::default() });
        } else {
            out.native("assistant.reasoning");
        }
    }

    fn call_input_delta<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let call = details.call.take().unwrap_or_default();
        let thread = self.thread(&out.parent);
        let delta = thread.begin_call(&call);
        if delta == InputDelta::Repeated {
            return;
        }
        if delta == InputDelta::First {
            thread.end_reasoning(out);
            let name = details.tool.take().unwrap_or_default();
            let kind = tools::kind_of(&name, details.mcp_server.as_ref());
            let call = call.clone();
            out.emit(ToolStarted { call, name, kind, ..ToolStarted::default() });
        }
        let text = details.input_delta.take().unwrap_or_default();
        out.emit(ToolInputDelta { call, text });
    }

    fn user_message<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        if out.parent.is_none() && self.turn.begin(out.time.as_ref()) {
            out.emit(TurnStarted::default());
        }
        let text = details.content.take().unwrap_or_default();
        // Messages that the program injects have a source; those of the user have none.
        let injected = out.parent.is_some() || details.source.is_some();
        out.emit(UserMessage { text, injected, replay: false });
    }

    fn retry<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let reason = details.reason.take();
        let thread = self.thread(&out.parent);
        thread.retract(reason.as_ref(), out);
        out.emit(ended::retry(reason, thread.failure.take()));
    }

    /// Notes that the turn was stopped, which several records report. Everything that is open ends
    /// before the interruption is emitted.
    fn turn_stopped<'a>(&mut self, reason: Option<Text<'a>>, out: &mut Emitter<'_, 'a>) {
        if self.turn.stopped.is_some() {
            out.sink.deferred();
            return;
        }
        let word = reason.unwrap_or_else(|| Text::plain("aborted"));
        self.turn.stopped = Some(word.into_owned());
        for thread in &mut self.threads {
            let (parent, time) = (thread.parent.clone(), out.time.clone());
            thread.end_step(&mut Emitter::without_record(out.sink).within(parent).at(time));
        }
        self.end_stopped_calls(out);
        out.emit(Interrupted { text: self.turn.stopped_text.clone() });
    }

    fn end_stopped_calls(&mut self, out: &mut Emitter<'_, '_>) {
        for call in self.stopped_calls.drain(..) {
            out.emit(ToolEnded {
                call: Text::from(call),
                status: ToolStatus::Cancelled,
                error: Some(Text::plain("the turn was stopped while this call ran")),
                ..ToolEnded::default()
            });
        }
    }

    fn subagent<'a>(
        &mut self,
        kind: &Text<'a>,
        details: &mut Details<'a>,
        agent: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let call = details.call.take();
        // The record is about the sub-agent, but belongs to the agent that started it.
        if out.parent == call || out.parent == agent {
            out.parent = None;
        }
        if *kind == "subagent.started" {
            if let (Some(agent), Some(call)) = (&agent, &call) {
                self.agents.push((agent.clone().into_owned(), call.clone().into_owned()));
            }
            out.emit(SubagentStarted {
                id: agent,
                call,
                kind: details.agent_name.take(),
                description: details.agent_description.take(),
                prompt: None,
            });
            return;
        }
        let status = kind.body().rsplit('.').next().map(|word| Text::from(word.to_owned()));
        let summary = match std::mem::take(&mut details.error) {
            Shaped::Text(text) => Some(text),
            Shaped::Record(error) => error.message,
            _ => None,
        };
        out.emit(SubagentEnded { id: agent, call, status, summary });
    }

    fn result<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        self.end_stopped_calls(out);
        out.emit(SessionStarted {
            id: line.session_id.take(),
            agent: Some(Text::plain("copilot")),
            ..SessionStarted::default()
        });
        let ended = self.turn.ended(line.exit_code, out.time.as_ref());
        out.emit(ended);
    }

    /// The call that started an agent, or the id of the agent if the call is unknown.
    fn call_of<'a>(&self, agent: &Text<'a>) -> Text<'a> {
        let known = self.agents.iter().rfind(|(id, _)| id == agent);
        known.map_or_else(|| agent.clone(), |(_, call)| call.clone())
    }

    fn thread(&mut self, parent: &Option<Text<'_>>) -> &mut Thread {
        let at = self.threads.iter().position(|thread| thread.parent == *parent);
        let at = at.unwrap_or_else(|| {
            self.threads.push(Thread::of(parent.clone().map(Text::into_owned)));
            self.threads.len() - 1
        });
        // The index was found or added above.
        #[allow(clippy::indexing_slicing)]
        &mut self.threads[at]
    }
}

/// The facts that a record states about the session.
fn session<'a>(details: &mut Details<'a>) -> SessionStarted<'a> {
    SessionStarted {
        id: details.session_id.take(),
        agent: Some(Text::plain("copilot")),
        version: details.version.take(),
        model: details.model.take(),
        cwd: details.context.take().and_then(|context| context.cwd),
        ..SessionStarted::default()
    }
}

/// Whether other records report the same as a notice.
fn is_redundant(details: &Details<'_>) -> bool {
    let kind = details.info_type.as_ref().map_or("", Text::body);
    matches!(kind, "model_retry" | "cancellation" | "file_created")
}

/// The notice that an MCP server cannot be used, if it cannot.
fn unusable_server(server: McpServer<'_>) -> Option<Text<'static>> {
    let status = server.status?;
    let known = matches!(status.body(), "failed" | "needs-auth" | "disabled");
    let name = server.name.unwrap_or_default();
    let why = server.error.unwrap_or(status);
    known.then(|| Text::from(format!("the MCP server {name} cannot be used: {why}")))
}
