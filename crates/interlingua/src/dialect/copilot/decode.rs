//! Reads Copilot's stream.

use super::calls;
use super::ended::{self, Course};
use super::ignored::IGNORED;
use super::thread::{CallPiece, REASONING, TEXT, Thread};
use super::tools;
use super::wire::{Details, Line, McpServer};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, Emitter, EventSink, each_record};
use crate::event::{
    Block, BlockKind, Compacted, Interrupted, MessageEnded, MessageStarted, Notice,
    QuestionAnswered, QuestionAsked, SessionStarted, Severity, SubagentEnded, SubagentStarted,
    ToolEnded, ToolInputDelta, ToolProgress, ToolStarted, ToolStatus, TurnStarted, UserMessage,
};
use crate::framing::FrameText;
use crate::json::read::Shaped;
use crate::json::{Json, Text};

/// The reader of `copilot`.
#[derive(Debug, Default)]
pub struct CopilotDecoder {
    /// The main agent, and each one that a call started.
    threads: Vec<Thread>,
    /// The calls that started other agents, by the agent's id.
    agents: Vec<(Text<'static>, Text<'static>)>,
    /// The calls that were running when the turn was stopped: they are never answered.
    stopped_calls: Vec<String>,
    turn: Course,
}

impl Decoder for CopilotDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }

    /// A turn that was stopped has said so, also where the `result` got lost on the way out.
    fn finish(&mut self, sink: &mut dyn EventSink) {
        let mut out = Emitter::without_record(sink);
        self.end_stopped_calls(&mut out);
        if self.turn.open && self.turn.stopped.is_some() {
            out.emit(self.turn.ended(None, None));
        }
    }
}

impl CopilotDecoder {
    fn line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let kind = line.kind.take();
        let mut none = Details::default();
        let details = line.data.as_mut().unwrap_or(&mut none);
        let parent = match (details.parent_call.take(), &line.agent) {
            (None, Some(agent)) => Some(self.call_of(agent)),
            (call, _) => call,
        };
        let mut out = Emitter::new(own, sink).within(parent).at(line.timestamp.take());
        match kind.as_ref().map_or("", Text::body) {
            "assistant.message_delta" => self.text_piece(details, &mut out),
            "assistant.reasoning_delta" => self.thought_piece(details, &mut out),
            "assistant.tool_call_delta" => self.call_piece(details, &mut out),
            "tool.shell_output" => out.emit(ToolProgress {
                call: details.call.take().unwrap_or_default(),
                output: details.text.take(),
                ..ToolProgress::default()
            }),
            "assistant.message_start" => self.message_started(details, &mut out),
            "assistant.message" => self.message(details, &mut out),
            "assistant.reasoning" => self.thought(details, &mut out),
            "tool.execution_start" => {
                let started = calls::started(details);
                self.thread(&out.parent).made(&started.call);
                out.emit(started);
                out.native(kind.unwrap_or_default());
            }
            "tool.execution_complete" => calls::ended(details, &mut out),
            "tool.execution_progress" => out.emit(ToolProgress {
                call: details.call.take().unwrap_or_default(),
                ..ToolProgress::default()
            }),
            "result" => self.result(line, &mut out),
            _ => {
                let agent = line.agent.take();
                self.rarely(kind.unwrap_or_default(), details, agent, &mut out);
            }
        }
    }

    /// Records that come a few times in a turn.
    fn rarely<'a>(
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
                // Where another agent failed, the one that started it goes on.
                error.fatal = out.parent.is_none();
                if error.fatal {
                    self.turn.failed = true;
                    self.turn.http_status = error.http_status;
                }
                out.emit(error);
            }
            "abort" if out.parent.is_none() => self.stopped(details.reason.take(), out),
            "session.tools_updated"
            | "session.start"
            | "session.resume"
            | "session.model_change" => out.emit(session(details)),
            "session.mcp_servers_loaded" => {
                let unusable = details.servers.drain(..).filter_map(cannot_be_used);
                for text in unusable.collect::<Vec<_>>() {
                    out.emit(Notice { severity: Severity::Warning, text });
                }
                out.native(kind);
            }
            "session.info" if !is_told_otherwise(details) => {
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
            "permission.requested" => out.emit(calls::permission_requested(details)),
            "permission.completed" => out.emit(calls::permission_resolved(details)),
            "user_input.requested" => out.emit(question(details)),
            "user_input.completed" => out.emit(QuestionAnswered {
                request: details.request.take().unwrap_or_default(),
                answers: details.answer.take(),
            }),
            _ => self.of_its_own(kind, details, out),
        }
    }

    /// Records that mean nothing outside the protocol, but for what later ones must know of them.
    fn of_its_own<'a>(
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
            "model.call_finished" => self.turn.requested(details),
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
                self.stopped(None, out);
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

    fn text_piece<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let text = details.piece.take().unwrap_or_default();
        let id = details.message.take().unwrap_or_default();
        self.thread(&out.parent).piece(id, BlockKind::Text, text, out);
    }

    fn thought_piece<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let text = details.piece.take().unwrap_or_default();
        let id = details.thought.take().unwrap_or_default();
        let thread = self.thread(&out.parent);
        thread.thought(&id);
        thread.piece(id, BlockKind::Reasoning, text, out);
    }

    fn message_started<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let message = details.message.take();
        self.turn.goes_on(&out.parent);
        let thread = self.thread(&out.parent);
        thread.end_thoughts(out);
        if let Some(id) = &message {
            thread.begin(id);
        }
        let model = thread.model.clone();
        out.emit(MessageStarted { message, model, usage: None });
    }

    /// A whole message: it repeats its pieces, and makes its calls.
    fn message<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let message = details.message.take();
        self.turn.goes_on(&out.parent);
        let thread = self.thread(&out.parent);
        thread.end_thoughts(out);
        let begun = message.as_ref().and_then(|id| thread.finish(id));
        if begun.is_none() {
            let model = details.model.take().or_else(|| thread.model.clone());
            let message = message.clone();
            out.emit(MessageStarted { message, model, usage: None });
        }
        if let Some(text) = details.reasoning.take().filter(|_| !thread.has_thought()) {
            thread.told_by_message = Some(text.clone().into_owned());
            let (message, kind) = (message.clone(), BlockKind::Reasoning);
            out.emit(Block { message, index: REASONING, kind, text, ..Block::default() });
        }
        let text = details.content.take().unwrap_or_default();
        if begun == Some(true) || !text.is_empty() {
            out.emit(Block { message: message.clone(), index: TEXT, text, ..Block::default() });
        }
        for request in details.tool_requests.drain(..) {
            let started = calls::requested(request, message.clone());
            thread.made(&started.call);
            out.emit(started);
        }
        thread.drop_stale(out);
        out.emit(MessageEnded { message, ..MessageEnded::default() });
    }

    /// A whole thought. It comes after its message, which has said it too where there were no pieces.
    fn thought<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let id = details.thought.take().unwrap_or_default();
        let text = details.content.take().unwrap_or_default();
        let thread = self.thread(&out.parent);
        if thread.thought(&id) && thread.told_by_message.as_ref() != Some(&text) {
            let (message, kind) = (Some(id), BlockKind::Reasoning);
            out.emit(Block { message, index: REASONING, kind, text, ..Block::default() });
        } else {
            out.native("assistant.reasoning");
        }
    }

    fn call_piece<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let call = details.call.take().unwrap_or_default();
        let thread = self.thread(&out.parent);
        let piece = thread.begin_call(&call);
        if piece == CallPiece::Repeated {
            return;
        }
        if piece == CallPiece::First {
            thread.end_thoughts(out);
            let name = details.tool.take().unwrap_or_default();
            let kind = tools::kind_of(&name, details.mcp_server.as_ref());
            let call = call.clone();
            out.emit(ToolStarted { call, name, kind, ..ToolStarted::default() });
        }
        let text = details.input_piece.take().unwrap_or_default();
        out.emit(ToolInputDelta { call, text });
    }

    fn user_message<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        if out.parent.is_none() && self.turn.begin(out.time.as_ref()) {
            out.emit(TurnStarted::default());
        }
        let text = details.content.take().unwrap_or_default();
        // What the program says in the user's name, it says who said it.
        let injected = out.parent.is_some() || details.source.is_some();
        out.emit(UserMessage { text, injected, replay: false });
    }

    fn retry<'a>(&mut self, details: &mut Details<'a>, out: &mut Emitter<'_, 'a>) {
        let reason = details.reason.take();
        let thread = self.thread(&out.parent);
        thread.take_back(reason.as_ref(), out);
        out.emit(ended::retry(reason, thread.failure.take()));
    }

    /// Notes that somebody stopped the turn, which several records tell. All that was going on
    /// ends before that is told.
    fn stopped<'a>(&mut self, reason: Option<Text<'a>>, out: &mut Emitter<'_, 'a>) {
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
        // The record is about the agent, and said by the one that started it.
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

    /// The call that started an agent; the agent's own id where that is not known.
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
        // The index was just found or made.
        #[allow(clippy::indexing_slicing)]
        &mut self.threads[at]
    }
}

/// What is told of the session; the model as a rule.
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

/// Whether other records tell what a notice says.
fn is_told_otherwise(details: &Details<'_>) -> bool {
    let kind = details.info_type.as_ref().map_or("", Text::body);
    matches!(kind, "model_retry" | "cancellation" | "file_created")
}

/// That an MCP server cannot be used, if so.
fn cannot_be_used(server: McpServer<'_>) -> Option<Text<'static>> {
    let status = server.status?;
    let known = matches!(status.body(), "failed" | "needs-auth" | "disabled");
    let name = server.name.unwrap_or_default();
    let why = server.error.unwrap_or(status);
    known.then(|| Text::from(format!("the MCP server {name} cannot be used: {why}")))
}

fn question<'a>(details: &mut Details<'a>) -> QuestionAsked<'a> {
    let questions = Json::object(|fields| {
        fields.text_if("question", details.question.as_ref());
        fields.json_if("choices", details.choices.as_ref());
    });
    QuestionAsked {
        native_call: None,
        request: details.request.take().unwrap_or_default(),
        call: details.call.take(),
        questions: Some(questions),
    }
}
