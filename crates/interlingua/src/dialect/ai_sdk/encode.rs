//! Writes stream parts.

use super::ending::{Finish, is_failure};
use crate::dialect::{EncodeOptions, Encoder, Output};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Error, ErrorClass, Event,
    Outcome, SessionEnded, SessionStarted, SessionUpdated, TurnEnded,
};
use crate::json::Text;
use crate::json::write::{self, Object};

/// How many errors of a turn are kept to find its cause among them.
const ERRORS_KEPT: usize = 100;

/// The writer of `ai-sdk`.
#[derive(Debug, Default)]
pub struct AiSdkEncoder {
    finishes_each_turn: bool,
    pub(super) hides_agent_tools: bool,
    started: bool,
    /// The blocks that are being said.
    open: Vec<(u64, Shape)>,
    /// The calls whose input is being said.
    pub(super) inputs: Vec<Text<'static>>,
    /// The calls that the client must answer.
    pub(super) client_calls: Vec<Text<'static>>,
    /// How many calls were made up to say what has no part of its own.
    pub(super) pairs: u64,
    errors: Errors,
    finish: Finish,
}

/// The errors of the turn at hand, until it is known which of them ended it.
#[derive(Debug, Default)]
struct Errors(Vec<(Text<'static>, ErrorClass)>);

/// What a block is in this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Reasoning,
    Unsayable,
}

impl Shape {
    fn of(kind: &BlockKind, out: &mut Output) -> Self {
        match kind {
            BlockKind::Text => return Self::Text,
            BlockKind::Reasoning => return Self::Reasoning,
            BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
            BlockKind::Image => out.lost("picture"),
            BlockKind::Other(_) => out.lost("block of an unknown kind"),
        }
        Self::Unsayable
    }

    fn start(self) -> &'static str {
        if self == Self::Text { "text-start" } else { "reasoning-start" }
    }

    fn delta(self) -> &'static str {
        if self == Self::Text { "text-delta" } else { "reasoning-delta" }
    }

    fn end(self) -> &'static str {
        if self == Self::Text { "text-end" } else { "reasoning-end" }
    }
}

impl AiSdkEncoder {
    /// A writer of one stream with one `finish` at its end, however many turns it has.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self::default()
    }

    /// The same writer, with a `finish` at the end of each turn and none at the end of the stream:
    /// for a caller that pauses there and calls the model anew.
    #[must_use]
    pub fn finishing_each_turn(mut self) -> Self {
        self.finish_at_turn_end();
        self
    }

    /// From here on, each turn has its own `finish`.
    pub fn finish_at_turn_end(&mut self) {
        self.finishes_each_turn = true;
    }

    /// The same writer, without the tools that the agent runs itself: only calls that the client
    /// must answer are parts.
    #[must_use]
    pub fn hiding_agent_tools(mut self) -> Self {
        self.hides_agent_tools = true;
        self
    }

    fn start(&mut self, out: &mut Output) {
        if !std::mem::replace(&mut self.started, true) {
            let mut part = out.record("stream-start");
            part.raw("warnings", "[]");
            part.end();
        }
    }
}

impl Encoder for AiSdkEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.start(out);
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockDelta(delta) => self.block_delta(delta, out),
            Data::BlockStarted(started) => self.block_started(started, parent, out),
            Data::BlockEnded(ended) => self.block_ended(ended, parent, out),
            Data::Block(block) => self.block(block, parent, out),
            Data::ToolStarted(started) => self.tool_started(started, parent, out),
            Data::ToolInputDelta(delta) => self.tool_input_delta(delta, out),
            Data::ToolInput(input) => self.tool_input(input, parent, out),
            Data::ToolEnded(ended) => self.tool_ended(ended, parent, out),
            Data::PlanUpdated(plan) => self.plan(plan, parent, out),
            Data::FilesChanged(files) => self.files(files, parent, out),
            Data::Compacted(compacted) => self.compacted(compacted, parent, out),
            Data::Artifact(artifact) => self.artifact(artifact, parent, out),
            Data::SessionStarted(started) => self.session_started(started, out),
            Data::SessionUpdated(update) => self.session_updated(update, out),
            Data::SessionEnded(ended) => session_ended(ended, out),
            Data::Error(error) => self.errors.add(error, out),
            Data::TurnEnded(ended) => self.turn_ended(ended, out),
            other => unsayable(other, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        self.start(out);
        self.errors.forget(None, out);
        if !self.finishes_each_turn {
            self.finish.write(!self.client_calls.is_empty(), out);
        }
    }
}

/// What the model says.
impl AiSdkEncoder {
    fn block_started(
        &mut self,
        started: &BlockStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let shape = Shape::of(&started.kind, out);
        self.open.push((started.block, shape));
        if shape != Shape::Unsayable {
            block_start(shape, started.block, parent, out);
        }
    }

    #[inline]
    fn block_delta(&mut self, delta: &BlockDelta<'_>, out: &mut Output) {
        let shape = self.open.iter().rev().find(|(block, _)| *block == delta.block);
        let Some(&(_, shape)) = shape.filter(|(_, shape)| *shape != Shape::Unsayable) else {
            return;
        };
        if !delta.text.is_empty() {
            block_delta(shape, delta.block, &delta.text, out);
        }
    }

    fn block_ended(&mut self, ended: &BlockEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let Some(at) = self.open.iter().rposition(|(block, _)| *block == ended.block) else {
            return;
        };
        let (_, shape) = self.open.remove(at);
        if shape != Shape::Unsayable {
            block_end(shape, ended.block, parent, ended.signature.as_ref(), out);
        }
    }

    fn block(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let shape = Shape::of(&block.kind, out);
        let says_nothing = block.text.is_empty() && block.signature.is_none();
        if shape == Shape::Unsayable || says_nothing {
            return;
        }
        block_start(shape, block.block, parent, out);
        if !block.text.is_empty() {
            block_delta(shape, block.block, &block.text, out);
        }
        block_end(shape, block.block, parent, block.signature.as_ref(), out);
    }
}

fn block_start(shape: Shape, block: u64, parent: Option<&Text<'_>>, out: &mut Output) {
    let mut part = out.record(shape.start());
    block_id(&mut part, block);
    metadata(&mut part, parent, |_| {}, false);
    part.end();
}

#[inline]
fn block_delta(shape: Shape, block: u64, text: &Text<'_>, out: &mut Output) {
    let mut part = out.record(shape.delta());
    block_id(&mut part, block);
    part.text("delta", text);
    part.end();
}

fn block_end(
    shape: Shape,
    block: u64,
    parent: Option<&Text<'_>>,
    signature: Option<&Text<'_>>,
    out: &mut Output,
) {
    let mut part = out.record(shape.end());
    block_id(&mut part, block);
    let sign = |facts: &mut Object<'_>| {
        facts.text_if("signature", signature);
    };
    metadata(&mut part, parent, sign, signature.is_some());
    part.end();
}

#[inline]
fn block_id(part: &mut Object<'_>, block: u64) {
    let out = part.name("id");
    out.extend_from_slice(b"\"b");
    write::number(out, block);
    out.push(b'"');
}

/// What a part says beyond its own fields; nothing is written where there is nothing to say.
///
/// The pieces of a block do not repeat it: consumers keep what its start or its end says.
pub(super) fn metadata(
    part: &mut Object<'_>,
    parent: Option<&Text<'_>>,
    more: impl FnOnce(&mut Object<'_>),
    has_more: bool,
) {
    if parent.is_none() && !has_more {
        return;
    }
    part.object("providerMetadata", |metadata| {
        metadata.object("interlingua", |facts| {
            facts.text_if("parentToolCallId", parent);
            more(facts);
        });
    });
}

/// Sessions and turns.
impl AiSdkEncoder {
    fn session_started(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        self.response_metadata(started.id.as_ref(), started.model.as_ref(), out);
        let more = started.version.is_some()
            || started.cwd.is_some()
            || started.permission_mode.is_some()
            || started.tools.is_some();
        if more {
            out.lost("session facts");
        }
    }

    fn session_updated(&mut self, update: &SessionUpdated<'_>, out: &mut Output) {
        self.response_metadata(update.id.as_ref(), update.model.as_ref(), out);
        let more = update.version.is_some()
            || update.cwd.is_some()
            || update.permission_mode.is_some()
            || update.tools.is_some();
        if more {
            out.lost("session facts");
        }
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            out.lost("host facts");
        }
    }

    /// Says who answers. The agent's time is left out: it would have to be a date, not a string.
    fn response_metadata(
        &mut self,
        id: Option<&Text<'_>>,
        model: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.finish.of_session(id);
        if id.is_some() || model.is_some() {
            let mut part = out.record("response-metadata");
            part.text_if("id", id).text_if("modelId", model);
            part.end();
        }
    }

    fn turn_ended(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        if ended.structured.is_some() {
            out.lost("structured answer");
        }
        if is_failure(&ended.outcome) {
            let class = self.errors.class_of(ended);
            error_part(ended, class, out);
        }
        let told = ended.cause.as_ref().filter(|_| is_failure(&ended.outcome));
        self.errors.forget(told, out);
        self.finish.add(ended);
        if self.finishes_each_turn {
            self.finish.write(!self.client_calls.is_empty(), out);
            self.client_calls.clear();
        }
    }
}

impl Errors {
    /// Keeps an error until it is known whether the turn failed of it.
    fn add(&mut self, error: &Error<'_>, out: &mut Output) {
        if self.0.len() < ERRORS_KEPT {
            self.0.push((error.message.clone().into_owned(), error.class.clone()));
        } else {
            out.lost("error that did not end the turn");
        }
    }

    fn class_of(&self, ended: &TurnEnded<'_>) -> ErrorClass {
        let cause = ended.cause.as_ref();
        let told = self.0.iter().rev().find(|(message, _)| Some(message) == cause);
        match (told, ended.http_status) {
            (Some((_, class)), _) if *class != ErrorClass::Unspecified => class.clone(),
            (_, Some(status)) => ErrorClass::of_http_status(status),
            _ => ErrorClass::Unspecified,
        }
    }

    /// Counts the errors that no part told.
    fn forget(&mut self, told: Option<&Text<'_>>, out: &mut Output) {
        for (message, _) in self.0.drain(..) {
            if Some(&message) != told {
                out.lost("error that did not end the turn");
            }
        }
    }
}

fn error_part(ended: &TurnEnded<'_>, class: ErrorClass, out: &mut Output) {
    let mut part = out.record("error");
    part.object("error", |error| {
        match &ended.cause {
            Some(cause) => error.text("message", cause),
            None if ended.outcome == Outcome::TimedOut => {
                error.string("message", "the turn took too long")
            }
            None => error.string("message", "the turn failed, and the agent does not say why"),
        };
        error.number_if("statusCode", ended.http_status);
        if class != ErrorClass::Unspecified {
            error.flag("isRetryable", class.may_be_retried());
        }
    });
    part.end();
}

fn session_ended(ended: &SessionEnded<'_>, out: &mut Output) {
    let failed = ended.exit_code.is_some_and(|code| code != 0);
    if failed || ended.signal.is_some() || ended.stderr.is_some() {
        out.lost("how the process ended");
    }
}

/// Counts what has no part; what only frames other events has nothing to lose.
fn unsayable(data: &Data<'_>, out: &mut Output) {
    let what = match data {
        Data::TurnStarted(_) | Data::MessageStarted(_) | Data::MessageEnded(_) => return,
        Data::UserMessage(_) => "user message",
        Data::ToolProgress(_) => "tool progress",
        Data::PermissionRequested(_) => "permission request",
        Data::PermissionResolved(_) => "permission decision",
        Data::QuestionAsked(_) => "question",
        Data::QuestionAnswered(_) => "answer to a question",
        Data::Usage(_) => "usage within a turn",
        Data::Limit(_) => "limit",
        Data::Retry(_) => "retry",
        Data::Notice(_) => "notice",
        Data::Interrupted(_) => "interruption",
        Data::SubagentStarted(_) => "sub-agent start",
        Data::SubagentEnded(_) => "sub-agent end",
        Data::Native(_) => "record of the agent's own",
        Data::Unknown(_) => "unknown record",
        Data::Unparsed(_) => "unreadable line",
        Data::Log(_) => "log line",
        other => other.kind(),
    };
    out.lost(what);
}
