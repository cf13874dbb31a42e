//! Encodes stream parts.

use super::Specification;
use super::ending::{Errors, Finish, error_part};
use crate::dialect::ai_parts::{Facts, Shape, block_id, is_failure};
use crate::dialect::{EncodeOptions, Encoder, Identity, Output};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockStarted, Data, Event, Notice, SessionEnded, SessionStarted,
    SessionUpdated, TurnEnded,
};
use crate::json::Text;
use crate::json::write;

/// The encoder of `ai-sdk` and `ai-sdk-v4`.
#[derive(Debug, Clone, Default)]
pub struct AiSdkEncoder {
    specification: Specification,
    finishes_each_turn: bool,
    starts_each_turn: bool,
    pub(super) hides_agent_tools: bool,
    started: bool,
    /// The open blocks.
    open: Vec<(u64, Shape)>,
    /// The calls whose input is being streamed.
    pub(super) inputs: Vec<Text<'static>>,
    /// The calls that the client must answer.
    pub(super) client_calls: Vec<Text<'static>>,
    /// The id of the session.
    pub(super) session: Option<Text<'static>>,
    /// The ids of the calls that stand for events without a part.
    generated_ids: Identity,
    errors: Errors,
    finish: Finish,
}

impl AiSdkEncoder {
    /// An encoder that writes one `finish` at the end of the stream, for any number of turns, or
    /// each turn from `stream-start` to `finish`.
    pub fn new(options: &EncodeOptions) -> Self {
        let each_turn = options.stream_each_turn;
        Self { finishes_each_turn: each_turn, starts_each_turn: each_turn, ..Self::default() }
    }

    /// Writes another version of the parts.
    #[must_use]
    pub fn in_version(mut self, specification: Specification) -> Self {
        self.specification = specification;
        self
    }

    /// Writes a `finish` at the end of each turn and none at the end of the stream, for a caller
    /// that pauses there and calls the model again.
    #[must_use]
    pub fn finishing_each_turn(mut self) -> Self {
        self.finish_at_turn_end();
        self
    }

    /// From here on, each turn has its own `finish`.
    pub fn finish_at_turn_end(&mut self) {
        self.finishes_each_turn = true;
    }

    /// Leaves out the tools that the agent runs itself, and writes only calls that the client must
    /// answer.
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

    /// An id for a call that stands for another event.
    pub(super) fn generated_id(&mut self, kind: &str) -> Text<'static> {
        let mut id = write::Bytes::new();
        self.generated_ids.uuid().write(&mut id);
        let id = String::from_utf8(id).unwrap_or_default();
        Text::from(format!("{kind}-{}", id.trim_matches('"')))
    }
}

impl Encoder for AiSdkEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.generated_ids.follow(out);
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
            Data::PlanUpdated(plan) => self.plan(plan, event, out),
            Data::FilesChanged(files) => self.files(files, parent, out),
            Data::Compacted(compacted) => self.compacted(compacted, parent, out),
            Data::Artifact(artifact) => self.artifact(artifact, parent, out),
            Data::SessionStarted(started) => self.session_started(started, out),
            Data::SessionUpdated(update) => self.session_updated(update, out),
            Data::SessionEnded(ended) => session_ended(ended, out),
            Data::Error(error) => self.errors.add(error, out),
            Data::Notice(notice) => self.notice(notice, parent, out),
            Data::TurnEnded(ended) => self.turn_ended(ended, event, out),
            other => count_losses(other, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if self.starts_each_turn && !self.started {
            return;
        }
        self.start(out);
        self.errors.forget(None, out);
        if !self.finishes_each_turn {
            self.write_finish(out);
        }
    }

    fn suspends_turns(&self) -> bool {
        true
    }
}

/// Text, reasoning and notices.
impl AiSdkEncoder {
    fn block_started(
        &mut self,
        started: &BlockStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let shape = Shape::of(&started.kind, out);
        self.open.push((started.block, shape));
        if shape != Shape::Unsupported {
            block_start(shape, started.block, parent, out);
        }
    }

    #[inline]
    fn block_delta(&mut self, delta: &BlockDelta<'_>, out: &mut Output) {
        let shape = self.open.iter().rev().find(|(block, _)| *block == delta.block);
        let Some(&(_, shape)) = shape.filter(|(_, shape)| *shape != Shape::Unsupported) else {
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
        if shape != Shape::Unsupported {
            self.block_end(shape, ended.block, parent, ended.signature.as_ref(), out);
        }
    }

    fn block(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let shape = Shape::of(&block.kind, out);
        let is_empty = block.text.is_empty() && block.signature.is_none();
        if shape == Shape::Unsupported || is_empty {
            return;
        }
        block_start(shape, block.block, parent, out);
        if !block.text.is_empty() {
            block_delta(shape, block.block, &block.text, out);
        }
        self.block_end(shape, block.block, parent, block.signature.as_ref(), out);
    }

    fn block_end(
        &self,
        shape: Shape,
        block: u64,
        parent: Option<&Text<'_>>,
        signature: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let session = self.session.as_ref().filter(|_| shape == Shape::Text);
        let mut part = out.record(shape.end());
        block_id(&mut part, block);
        Facts { session, parent, signature, ..Facts::default() }.write(&mut part);
        part.end();
    }

    /// Writes a notice as a `custom` part, which only version 4 has.
    fn notice(&mut self, notice: &Notice<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        if self.specification == Specification::V3 {
            out.lost("notices");
            return;
        }
        let mut part = out.record("custom");
        part.string("kind", "interlingua.notice");
        let notice = Some((&notice.severity, &notice.text));
        Facts { parent, notice, ..Facts::default() }.write(&mut part);
        part.end();
    }
}

fn block_start(shape: Shape, block: u64, parent: Option<&Text<'_>>, out: &mut Output) {
    let mut part = out.record(shape.start());
    block_id(&mut part, block);
    Facts { parent, ..Facts::default() }.write(&mut part);
    part.end();
}

#[inline]
fn block_delta(shape: Shape, block: u64, text: &Text<'_>, out: &mut Output) {
    let mut part = out.record(shape.delta());
    block_id(&mut part, block);
    part.text("delta", text);
    part.end();
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
            out.lost("host facts (sandbox, relay)");
        }
    }

    /// Writes the session and the model. The time is left out, since consumers expect a date
    /// object.
    fn response_metadata(
        &mut self,
        id: Option<&Text<'_>>,
        model: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if let Some(id) = id {
            self.session = Some(id.clone().into_owned());
        }
        if id.is_some() || model.is_some() {
            let mut part = out.record("response-metadata");
            part.text_if("id", id).text_if("modelId", model);
            part.end();
        }
    }

    fn turn_ended(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        if is_failure(&ended.outcome) {
            error_part(ended, out);
        }
        self.errors.forget(ended.cause.as_ref(), out);
        self.finish.add(ended, event, out);
        if self.finishes_each_turn {
            self.write_finish(out);
            self.client_calls.clear();
            self.started = !self.starts_each_turn;
        }
    }

    fn write_finish(&mut self, out: &mut Output) {
        let client_must_answer = !self.client_calls.is_empty();
        self.finish.write(self.specification, self.session.as_ref(), client_must_answer, out);
    }
}

fn session_ended(ended: &SessionEnded<'_>, out: &mut Output) {
    let failed = ended.exit_code.is_some_and(|code| code != 0);
    if failed || ended.signal.is_some() || ended.stderr.is_some() {
        out.lost("how the process ended");
    }
}

/// Counts events that have no part. Events that only delimit others lose nothing.
fn count_losses(data: &Data<'_>, out: &mut Output) {
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
