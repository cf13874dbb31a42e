//! Encodes the chunks of a UI message.

use crate::dialect::ai_parts::{self, Facts, Shape, Turns, block_id, is_failure};
use crate::dialect::held_errors::HeldErrors;
use crate::dialect::steps::{Next, Steps};
use crate::dialect::{EncodeOptions, Encoder, Identity, Output, sse};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Event, Outcome, SessionEnded,
    TurnEnded, Usage,
};
use crate::json::Text;
use crate::json::write::Object;

/// The encoder of `ui-message`.
#[derive(Debug, Clone, Default)]
pub struct UiMessageEncoder {
    /// Generates the ids of messages, if the caller gave a seed.
    identity: Option<Identity>,
    message_each_turn: bool,
    started: bool,
    pub(super) steps: Steps,
    /// The open blocks.
    open: Vec<(u64, Shape)>,
    /// The calls whose input is being streamed.
    pub(super) inputs: Vec<Text<'static>>,
    /// The calls that the client must answer.
    pub(super) client_calls: Vec<Text<'static>>,
    pub(super) errors: HeldErrors,
    pub(super) session: Session,
    turns: Turns,
    exit_code: Option<i64>,
    signal: Option<i64>,
}

/// The facts of the session that every message contains.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<Text<'static>>,
    agent: Option<Text<'static>>,
    version: Option<Text<'static>>,
    model: Option<Text<'static>>,
}

impl UiMessageEncoder {
    /// An encoder that writes one message, for any number of turns, or one for each turn.
    ///
    /// The message has an id only if the caller gave a seed. Without a seed, all streams would have
    /// the same id; clients generate one themselves.
    pub fn new(options: &EncodeOptions) -> Self {
        let identity = options.id_seed.map(|_| Identity::default());
        Self { identity, message_each_turn: options.stream_each_turn, ..Self::default() }
    }

    /// Writes a message for each turn, from `start` to `[DONE]`, for a server that answers each
    /// prompt with a stream of its own. Events between turns are lost.
    #[must_use]
    pub fn with_a_message_each_turn(mut self) -> Self {
        self.message_each_turn = true;
        self
    }

    pub(super) fn start(&mut self, out: &mut Output) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let Self { identity, session, .. } = self;
        sse::event(out, "start", |chunk| {
            if let Some(identity) = identity {
                identity.uuid().write(chunk.name("messageId"));
            }
            if session.is_known() {
                chunk.object("messageMetadata", |metadata| session.write(metadata));
            }
        });
    }

    fn finish_message(&mut self, out: &mut Output) {
        self.start(out);
        let turns = std::mem::take(&mut self.turns);
        let (code, signal) = (self.exit_code.filter(|code| *code != 0), self.signal);
        let client_must_answer = !self.client_calls.is_empty();
        sse::event(out, "finish", |chunk| {
            chunk.string("finishReason", turns.finish_reason(client_must_answer));
            chunk.object("messageMetadata", |metadata| {
                turns.facts(metadata);
                turns.write_outcome(metadata);
                if let Some(usage) = &turns.usage {
                    metadata.object("usage", |counts| write_usage(counts, usage));
                }
                if let Some(code) = code {
                    metadata.raw("exitCode", &code.to_string());
                }
                if let Some(signal) = signal {
                    metadata.raw("signal", &signal.to_string());
                }
            });
        });
        sse::done(out);
        self.client_calls.clear();
        self.started = false;
    }
}

impl Encoder for UiMessageEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        if let Some(identity) = &mut self.identity {
            identity.follow(out);
        }
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
            Data::SessionStarted(session) => {
                let facts = [&session.id, &session.agent, &session.version, &session.model];
                self.session_learned(event, facts, out);
            }
            Data::SessionUpdated(session) => {
                let facts = [&session.id, &session.agent, &session.version, &session.model];
                self.session_learned(event, facts, out);
            }
            Data::SessionEnded(ended) => self.session_ended(ended, out),
            Data::TurnStarted(_) => self.start(out),
            Data::TurnEnded(ended) => self.turn_ended(ended, out),
            _ if self.message_each_turn && !self.started => out.lost("events between turns"),
            _ => self.other(event, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if !self.message_each_turn {
            self.write_unreported_errors(None, out);
            self.finish_message(out);
        }
    }

    fn suspends_turns(&self) -> bool {
        true
    }
}

/// Text and reasoning.
impl UiMessageEncoder {
    fn block_started(
        &mut self,
        started: &BlockStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let shape = Shape::of(&started.kind, out);
        self.open.push((started.block, shape));
        if shape != Shape::Unsupported {
            self.step(started.message.as_ref(), parent, out);
            block_start(shape, started.block, parent, out);
        }
        self.steps.block_opened();
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
        self.steps.block_closed();
        if shape != Shape::Unsupported {
            self.block_end(shape, ended.block, parent, ended.signature.as_ref(), out);
        }
    }

    fn block(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        if block.kind == BlockKind::Image {
            self.step(block.message.as_ref(), parent, out);
            super::data::picture(block, parent, out);
            return;
        }
        let shape = Shape::of(&block.kind, out);
        let is_empty = block.text.is_empty() && block.signature.is_none();
        if shape == Shape::Unsupported || is_empty {
            return;
        }
        self.step(block.message.as_ref(), parent, out);
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
        // The client sends the id back with the next prompt, so a server can resume the session.
        let session = self.session.id.as_ref().filter(|_| shape == Shape::Text);
        sse::event(out, shape.end(), |chunk| {
            block_id(chunk, block);
            Facts { session, parent, signature, ..Facts::default() }.write(chunk);
        });
    }

    /// Begins another step, if the message belongs to one. A step never ends while a block or a
    /// call is open, since clients would forget it.
    pub(super) fn step(
        &mut self,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.write_survived_errors(out);
        let next = self.steps.advance(message, parent);
        if next == Next::Another {
            sse::event_of_text(out, "finish-step", |_| {});
        }
        if next != Next::Same {
            sse::event_of_text(out, "start-step", |_| {});
        }
    }
}

fn block_start(shape: Shape, block: u64, parent: Option<&Text<'_>>, out: &mut Output) {
    sse::event_of_text(out, shape.start(), |chunk| {
        block_id(chunk, block);
        Facts { parent, ..Facts::default() }.write(chunk);
    });
}

#[inline]
fn block_delta(shape: Shape, block: u64, text: &Text<'_>, out: &mut Output) {
    sse::event_of_text(out, shape.delta(), |chunk| {
        block_id(chunk, block);
        chunk.text("delta", text);
    });
}

/// Sessions and turns.
impl UiMessageEncoder {
    /// Writes new facts of the session: with the start of the message, or in a chunk of their own.
    fn session_learned(
        &mut self,
        event: &Event<'_>,
        facts: [&Option<Text<'_>>; 4],
        out: &mut Output,
    ) {
        let learned = Session::of(facts);
        self.session.learn(facts);
        if self.message_each_turn && !self.started {
            return;
        }
        if self.started && learned.is_known() {
            sse::event(out, "message-metadata", |chunk| {
                chunk.object("messageMetadata", |metadata| learned.write(metadata));
            });
        }
        self.start(out);
        self.session_facts(event, out);
    }

    fn session_ended(&mut self, ended: &SessionEnded<'_>, out: &mut Output) {
        if ended.stderr.is_some() {
            out.lost("standard error");
        }
        self.exit_code = ended.exit_code;
        self.signal = ended.signal;
    }

    fn turn_ended(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        self.start(out);
        self.write_unreported_errors(ended.cause.as_ref(), out);
        if let Some(answer) = &ended.structured {
            sse::event(out, "data-structured", |chunk| {
                ai_parts::harmless_json(chunk, "data", answer);
            });
        }
        if self.steps.end() {
            sse::event_of_text(out, "finish-step", |_| {});
        }
        let stopped_short = matches!(ended.outcome, Outcome::LimitReached | Outcome::Refused);
        if is_failure(&ended.outcome) || (stopped_short && ended.cause.is_some()) {
            sse::event(out, "error", |chunk| {
                chunk.text("errorText", &ai_parts::failure(ended));
            });
        } else if ended.outcome == Outcome::Cancelled {
            sse::event(out, "abort", |chunk| {
                chunk.text_if("reason", ended.cause.as_ref());
            });
        }
        // Clients show an `error` once and an `abort` never, so the message states the cause too.
        self.turns.add(ended, ended.cause.as_ref(), out);
        if self.message_each_turn {
            self.finish_message(out);
        }
    }
}

impl Session {
    fn of([id, agent, version, model]: [&Option<Text<'_>>; 4]) -> Self {
        let own = |fact: &Option<Text<'_>>| fact.clone().map(Text::into_owned);
        Self { id: own(id), agent: own(agent), version: own(version), model: own(model) }
    }

    fn learn(&mut self, facts: [&Option<Text<'_>>; 4]) {
        let Self { id, agent, version, model } = Self::of(facts);
        let before = std::mem::take(self);
        self.id = id.or(before.id);
        self.agent = agent.or(before.agent);
        self.version = version.or(before.version);
        self.model = model.or(before.model);
    }

    fn is_known(&self) -> bool {
        let facts = [&self.id, &self.agent, &self.version, &self.model];
        facts.iter().any(|fact| fact.is_some())
    }

    fn write(&self, metadata: &mut Object<'_>) {
        metadata.text_if("sessionId", self.id.as_ref()).text_if("agent", self.agent.as_ref());
        metadata.text_if("agentVersion", self.version.as_ref());
        metadata.text_if("model", self.model.as_ref());
    }
}

/// Writes tokens under the names of the AI SDK.
fn write_usage(counts: &mut Object<'_>, usage: &Usage<'_>) {
    let (input, output) = (ai_parts::input_tokens(usage), usage.output);
    let total = input.zip(output).map(|(input, output)| input.saturating_add(output));
    counts.number_if("inputTokens", input);
    counts.object("inputTokenDetails", |details| {
        details.number_if("noCacheTokens", usage.input);
        details.number_if("cacheReadTokens", usage.cache_read);
        details.number_if("cacheWriteTokens", usage.cache_write);
    });
    counts.number_if("outputTokens", output);
    counts.object("outputTokenDetails", |details| {
        details.number_if("textTokens", ai_parts::text_tokens(usage));
        details.number_if("reasoningTokens", usage.reasoning);
    });
    counts.number_if("totalTokens", total.or(usage.total));
    if usage.estimated {
        counts.flag("estimated", true);
    }
}
