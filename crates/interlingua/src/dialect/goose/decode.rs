//! Decodes goose's stream.

use super::banner::{Banner, Prose};
use super::failure;
use super::tools;
use super::wire::{Call, Content, Line, Message, ToolOutput};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, Data, Error, ErrorClass, Event, Interrupted, Log,
    LogStream, Native, Notice, Outcome, PermissionRequested, PlanUpdated, Scope, SessionStarted,
    SessionUpdated, Severity, ToolEnded, ToolStarted, ToolStatus, TurnEnded, TurnStarted, Usage,
    UserMessage,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The question that goose asks after an interrupt. In a pipe, it precedes `complete`.
const QUESTION_AFTER_INTERRUPT: &str = "what would you like me to do?";

/// The decoder of `goose`.
#[derive(Debug, Default)]
pub struct GooseDecoder {
    banner: Banner,
    started: bool,
    turn: bool,
    /// The id of the current message.
    message: String,
    /// The index of the current block, and its kind while it is open.
    block: u64,
    open: Option<BlockKind>,
    /// Calls without an answer.
    calls: Vec<String>,
    /// A record was read. Lines before the first record are prose.
    has_record: bool,
    interrupted: bool,
    failure: Option<Error<'static>>,
    /// The message that the limit of turns was reached.
    limit: Option<Text<'static>>,
}

impl Decoder for GooseDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        let prose = if frame.text.starts_with('{') { frame.noise } else { frame.text };
        if self.turn && !prose.is_empty() {
            self.interrupted |= prose.contains(QUESTION_AFTER_INTERRUPT);
        }
        if !frame.text.starts_with('{') && self.read_prose(frame.text, sink) {
            return;
        }
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }
}

impl GooseDecoder {
    /// Reads a line of the banner, or another line before the records; returns whether it was one.
    fn read_prose(&mut self, line: &str, sink: &mut dyn EventSink) -> bool {
        match self.banner.line(line) {
            Prose::Session(session) if !std::mem::replace(&mut self.started, true) => {
                sink.event(Event::new(session));
            }
            Prose::Session(_) | Prose::Banner => {
                sink.event(Event::new(Native { name: Text::plain("banner"), raw: None }));
            }
            Prose::Other if self.has_record => return false,
            Prose::Other => {
                let log = Log { stream: LogStream::Output, text: Text::plain(line) };
                sink.event(Event::new(log));
            }
        }
        true
    }

    fn line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        self.has_record = true;
        if !std::mem::replace(&mut self.started, true) {
            let agent = Some(Text::plain("goose"));
            sink.event(Event::new(SessionStarted { agent, ..SessionStarted::default() }));
        }
        let kind = line.kind.take();
        match (kind.as_ref().map_or("", Text::body), &mut line.message) {
            ("message", Some(message)) => self.message(message, own, sink),
            ("complete", _) => self.complete(line, sink),
            ("error", _) => {
                let message = line.error.take().unwrap_or_default();
                let error = Error { message, fatal: true, ..Error::default() };
                self.fail(error.clone());
                sink.event(Event::new(error));
            }
            ("model_change", _) => {
                let model = line.model.take();
                sink.event(Event::new(SessionUpdated { model, ..SessionUpdated::default() }));
            }
            ("notification", _) => {
                let name = Text::plain("notification");
                sink.event(Event::new(Native { name, raw: own.json() }));
            }
            _ => sink.event(Event::new(unknown(kind.clone(), own))),
        }
    }

    fn message<'a>(&mut self, message: &mut Message<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        if !std::mem::replace(&mut self.turn, true) {
            sink.event(Event::new(TurnStarted::default()));
        }
        let user = message.role.as_ref().is_some_and(|role| *role == "user");
        let same = message.id.as_ref().map_or(self.message.is_empty(), |id| *id == *self.message);
        if !same {
            self.end_block(sink);
            self.block = 0;
            self.message.clear();
            self.message.push_str(&message.id.as_ref().map(Text::to_plain).unwrap_or_default());
        }
        let named = message.id.is_some();
        if message.content.is_empty() {
            sink.event(Event::new(Native { name: Text::plain("message/empty"), raw: own.json() }));
        }
        for content in &mut message.content {
            self.content(content, user, named, own, sink);
        }
    }

    fn content<'a>(
        &mut self,
        content: &mut Content<'a>,
        user: bool,
        named: bool,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let text = content.text.take().unwrap_or_default();
        match content.kind.as_ref().map_or("", Text::body) {
            "text" if user => {
                let event = UserMessage { text, injected: true, ..UserMessage::default() };
                sink.event(Event::new(event));
            }
            "text" => {
                if named || !self.emit_ending(&text, sink) {
                    self.block_delta(BlockKind::Text, text, sink);
                }
            }
            "thinking" | "reasoning" => self.block_delta(BlockKind::Reasoning, text, sink),
            "redactedThinking" => self.complete_block(BlockKind::HiddenReasoning, content, sink),
            "image" => self.complete_block(BlockKind::Image, content, sink),
            "toolRequest" | "frontendToolRequest" => self.call(content, sink),
            "toolResponse" => self.answer(content, sink),
            "toolConfirmationRequest" => sink.event(Event::new(PermissionRequested {
                native_call: None,
                request: content.id.clone().unwrap_or_default(),
                call: content.id.take(),
                tool: content.name.take(),
                description: content.prompt.take(),
                input: content.arguments.take(),
                options: None,
            })),
            "systemNotification" | "contextLengthExceeded" | "summarizationRequested" => {
                let severity = Severity::Info;
                sink.event(Event::new(Notice { severity, text }));
            }
            "actionRequired" => {
                let name = Text::plain("message/actionRequired");
                sink.event(Event::new(Native { name, raw: own.json() }));
            }
            other => {
                let name = Text::from(format!("message/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    /// Emits the report that the turn does not complete, which goose writes in a message without an
    /// id; returns whether the text was such a report.
    fn emit_ending(&mut self, text: &Text<'_>, sink: &mut dyn EventSink) -> bool {
        if failure::is_limit(text) {
            self.end_block(sink);
            self.limit = Some(text.clone().into_owned());
            let severity = Severity::Warning;
            sink.event(Event::new(Notice { severity, text: text.borrowed() }));
            return true;
        }
        let Some(error) = failure::of_prose(text) else { return false };
        self.end_block(sink);
        self.fail(error.clone());
        sink.event(Event::new(error));
        true
    }

    /// Emits the next delta. Consecutive deltas of one kind are one block.
    fn block_delta(&mut self, kind: BlockKind, text: Text<'_>, sink: &mut dyn EventSink) {
        if self.open.as_ref().is_some_and(|open| *open != kind) {
            self.end_block(sink);
        }
        let (message, index) = (self.message_id(), self.block);
        let delta =
            BlockDelta { message, index, kind: kind.clone(), text, ..BlockDelta::default() };
        sink.event(Event::new(delta));
        self.open = Some(kind);
    }

    fn complete_block(&mut self, kind: BlockKind, content: &Content<'_>, sink: &mut dyn EventSink) {
        self.end_block(sink);
        let (message, index) = (self.message_id(), self.block);
        let block = Block {
            message,
            index,
            kind,
            content: Some(Json::object(|fields| {
                fields.text_if("type", content.kind.as_ref());
                fields.json_if("data", content.data.as_ref());
                fields.text_if("mimeType", content.media_type.as_ref());
            })),
            ..Block::default()
        };
        sink.event(Event::new(block));
        self.block += 1;
    }

    fn end_block(&mut self, sink: &mut dyn EventSink) {
        if let Some(kind) = self.open.take() {
            let (message, index) = (self.message_id(), self.block);
            sink.event(Event::new(BlockEnded { message, index, kind, ..BlockEnded::default() }));
            self.block += 1;
        }
    }

    fn message_id(&self) -> Option<Text<'_>> {
        Some(Text::plain(&self.message)).filter(|id| !id.is_empty())
    }

    fn call(&mut self, content: &mut Content<'_>, sink: &mut dyn EventSink) {
        self.end_block(sink);
        let call = content.id.take().unwrap_or_default();
        let Call { value, error, .. } = content.call.take().unwrap_or_default();
        let request = value.unwrap_or_default();
        // The call is invalid, and goose answers it with the error.
        let invalid = error.map(|error| {
            Json::object(|fields| {
                fields.text("error", &error);
            })
        });
        let name = request.name.unwrap_or_default();
        let input = request.arguments.or(invalid).unwrap_or_else(|| Json::object(|_| {}));
        let plan = tools::plan_written(&name, &input);
        let input = plan.as_ref().map_or(input, |plan| plan.input.clone());
        self.calls.push(call.to_plain().into_owned());
        sink.event(Event::new(ToolStarted {
            call: call.clone(),
            kind: tools::kind_of(&name),
            name,
            message: self.message_id(),
            input: Some(input),
            ..ToolStarted::default()
        }));
        if let Some(tools::Plan { items, .. }) = plan {
            sink.event(Event::new(PlanUpdated { plan: None, call: Some(call), items }));
        }
    }

    fn answer(&mut self, content: &mut Content<'_>, sink: &mut dyn EventSink) {
        let call = content.id.take().unwrap_or_default();
        self.calls.retain(|open| call != **open);
        let answer = content.answer.take().unwrap_or_default();
        let failed = answer.status.is_some_and(|status| status == "error");
        let ToolOutput { content, structured, is_error } = answer.value.unwrap_or_default();
        let exit_code = structured.as_ref().and_then(|structured| structured.record.exit_code);
        let failed = failed || answer.error.is_some() || is_error == Some(true);
        sink.event(Event::new(ToolEnded {
            call,
            status: if failed { ToolStatus::Failed } else { ToolStatus::Completed },
            output: content,
            structured: structured.map(|structured| structured.json),
            exit_code,
            error: answer.error,
            ..ToolEnded::default()
        }));
    }

    fn fail(&mut self, error: Error<'_>) {
        let Data::Error(error) = Data::from(error).into_owned() else { return };
        self.failure = Some(*error);
    }

    fn complete(&mut self, line: &Line<'_>, sink: &mut dyn EventSink) {
        self.end_block(sink);
        self.turn = false;
        let failure = self.failure.take();
        let limit = self.limit.take();
        let calls = std::mem::take(&mut self.calls);
        let unanswered = !calls.is_empty();
        let interrupted = std::mem::take(&mut self.interrupted);
        // Missing token counts do not imply an interrupt, since some providers never count.
        let stopped = interrupted || unanswered;
        if stopped && failure.is_none() {
            sink.event(Event::new(Interrupted { text: None }));
            // goose stops its running tools when the turn ends.
            for call in calls {
                let (call, status) = (Text::from(call), ToolStatus::Cancelled);
                sink.event(Event::new(ToolEnded { call, status, ..ToolEnded::default() }));
            }
        }
        let mut ended = TurnEnded { usage: counts(line), ..TurnEnded::default() };
        match failure {
            Some(failure) => {
                ended.outcome = Outcome::Failed;
                ended.cause = Some(failure.message);
                ended.class = Some(failure.class).filter(|it| *it != ErrorClass::Unspecified);
                ended.http_status = failure.http_status;
            }
            None if stopped => {
                ended.outcome = Outcome::Cancelled;
                let cause = if interrupted {
                    "goose was interrupted"
                } else {
                    "goose ended its turn before a tool had answered, as it does when interrupted"
                };
                ended.cause = Some(Text::plain(cause));
            }
            None if limit.is_some() => {
                ended.outcome = Outcome::LimitReached;
                ended.reason = Some(Text::plain("max_turns"));
                ended.cause = limit;
            }
            None => ended.outcome = Outcome::Completed,
        }
        sink.event(Event::new(ended));
    }
}

/// The tokens of all requests of the session so far. The number of cached tokens is unknown.
fn counts(line: &Line<'_>) -> Option<Usage<'static>> {
    let usage = Usage {
        scope: Scope::Session,
        input: line.input,
        output: line.output,
        total: line.total,
        ..Usage::default()
    };
    Some(usage).filter(|usage| usage.all() > 0)
}
