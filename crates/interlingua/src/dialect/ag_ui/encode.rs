//! Encodes the events of a run, except calls and the run's bounds.

use super::runs::Run;
use crate::dialect::ai_parts::is_redundant;
use crate::dialect::encode::Uuid;
use crate::dialect::held_errors::HeldErrors;
use crate::dialect::steps::{Next, Steps};
use crate::dialect::{EncodeOptions, Encoder, Identity, Output, sse};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Event, PlanUpdated,
    SessionStarted, ToolProgress, own_session,
};
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

/// The number of agents whose plans and messages are remembered.
const REMEMBERED: usize = 64;

/// The maximum size of the events that are held back between runs, in bytes.
const HELD: usize = 1 << 20;

/// The name under which a native record is counted as lost.
pub(super) const RECORD: &str = "record of the agent's own";

/// The encoder of `ag-ui`.
#[derive(Debug, Clone)]
pub struct AgUiEncoder {
    pub(super) identity: Identity,
    pub(super) steps: Steps,
    /// The open blocks.
    open: Vec<OpenBlock>,
    /// The last message of each agent.
    messages: Vec<LastMessage>,
    /// The id of the activity that shows the plan of each agent.
    plans: Vec<(Option<Text<'static>>, Uuid)>,
    /// The calls whose input is being streamed, and whether it has deltas.
    pub(super) inputs: Vec<(Text<'static>, bool)>,
    /// The open calls of the client, and whether their run has ended. After that, the client's
    /// answer is not written, since the client knows it.
    pub(super) of_client: Vec<(Text<'static>, bool)>,
    pub(super) errors: HeldErrors,
    pub(super) session: SessionStarted<'static>,
    /// All known facts of the session were written.
    pub(super) session_written: bool,
    pub(super) run: Option<Run>,
    /// The end of a turn that ended with the input. It is held back, since the end of the process
    /// is written in the same run.
    pub(super) ending: Option<Event<'static>>,
    /// The agent reports the usage of each model.
    pub(super) counts_models: bool,
    /// The id of the conversation, if the agent states none.
    pub(super) thread: Option<Uuid>,
    /// The events that occurred outside a run, and their names.
    pub(super) held: (Vec<u8>, Vec<&'static str>),
}

#[derive(Debug, Clone)]
struct OpenBlock {
    number: u64,
    shape: Shape,
    id: Uuid,
}

/// The last message of an agent, to which its calls refer.
#[derive(Debug, Clone)]
struct LastMessage {
    parent: Option<Text<'static>>,
    message: String,
    id: Uuid,
}

/// The form of a block in this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Reasoning,
    Unsupported,
}

impl Shape {
    fn of(kind: &BlockKind, out: &mut Output) -> Self {
        match kind {
            BlockKind::Text => Self::Text,
            BlockKind::Reasoning | BlockKind::HiddenReasoning => Self::Reasoning,
            _ => {
                out.lost("blocks of an unknown kind");
                Self::Unsupported
            }
        }
    }
}

impl AgUiEncoder {
    /// An encoder at the beginning of a stream. A client keeps the messages of all runs of a
    /// thread, so each process of a session needs an id seed of its own.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self {
            identity: Identity::default(),
            steps: Steps::default(),
            open: Vec::new(),
            messages: Vec::new(),
            plans: Vec::new(),
            inputs: Vec::new(),
            of_client: Vec::new(),
            errors: HeldErrors::default(),
            session: SessionStarted::default(),
            session_written: true,
            run: None,
            ending: None,
            counts_models: false,
            thread: None,
            held: Default::default(),
        }
    }
}

impl Encoder for AgUiEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.identity.follow(out);
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockDelta(delta) => self.block_delta(delta, parent, out),
            Data::BlockStarted(started) => self.block_started(started, parent, out),
            Data::BlockEnded(ended) => self.block_ended(ended, parent, out),
            Data::Block(block) => self.block(event, block, out),
            Data::ToolStarted(started) => self.tool_started(started, parent, out),
            Data::ToolInputDelta(delta) => self.tool_input_delta(delta, parent, out),
            Data::ToolInput(input) => self.tool_input(input, parent, out),
            Data::ToolEnded(ended) => self.tool_ended(ended, parent, out),
            Data::PlanUpdated(plan) => self.plan(event, plan, out),
            Data::TurnStarted(started) => self.run_started(started, out),
            Data::TurnEnded(ended) => self.turn_ended(event, ended, out),
            Data::SessionStarted(started) => {
                self.session = own_session((**started).clone());
                self.session_written = false;
            }
            Data::SessionUpdated(update) => self.session_updated(event, update, out),
            Data::SessionEnded(ended) => {
                let failed = ended.exit_code.is_some_and(|code| code != 0);
                if failed || ended.signal.is_some() || ended.stderr.is_some() {
                    self.custom(event, out);
                }
            }
            Data::SubagentStarted(started) => self.subagent_started(event, started, out),
            Data::SubagentEnded(ended) => self.subagent_ended(event, ended, out),
            // An error of a sub-agent does not end the run.
            Data::Error(error) if parent.is_none() => {
                let hold = payload(event).is_some_and(|payload| self.errors.hold(error, &payload));
                if !hold {
                    self.custom(event, out);
                }
            }
            Data::Native(native) => self.raw(native.raw.as_ref(), parent, out),
            Data::Unknown(unknown) => self.raw(unknown.raw.as_ref(), parent, out),
            // Blocks contain the content of messages.
            Data::MessageStarted(_) | Data::MessageEnded(_) => {}
            data if is_redundant(data, parent) => {}
            Data::ToolProgress(progress) => self.progress(event, progress, out),
            _ => self.custom(event, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        self.end_run(out);
        self.write_after_last_run(out);
        for what in self.held.1.drain(..) {
            out.lost(what);
        }
    }

    fn suspends_turns(&self) -> bool {
        true
    }
}

/// Text, reasoning and plans.
impl AgUiEncoder {
    fn block_started(
        &mut self,
        started: &BlockStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let shape = Shape::of(&started.kind, out);
        let id = self.identity.uuid();
        if shape != Shape::Unsupported {
            self.step(started.message.as_ref(), parent, out);
            self.start_block(shape, id, started.message.as_ref(), parent, out);
        }
        self.open.push(OpenBlock { number: started.block, shape, id });
        self.steps.block_opened();
    }

    #[inline]
    fn block_delta(&mut self, delta: &BlockDelta<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let block = self.open.iter().rev().find(|block| block.number == delta.block);
        let Some(block) = block.filter(|block| block.shape != Shape::Unsupported) else { return };
        if !delta.text.is_empty() {
            block_content(block.shape, block.id, &delta.text, parent, out);
        }
    }

    fn block_ended(&mut self, ended: &BlockEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let Some(at) = self.open.iter().rposition(|block| block.number == ended.block) else {
            return;
        };
        let block = self.open.remove(at);
        self.steps.block_closed();
        if block.shape != Shape::Unsupported {
            block_end(block.shape, block.id, ended.signature.as_ref(), parent, out);
        }
    }

    fn block(&mut self, event: &Event<'_>, block: &Block<'_>, out: &mut Output) {
        let parent = event.parent.as_ref();
        if !matches!(
            block.kind,
            BlockKind::Text | BlockKind::Reasoning | BlockKind::HiddenReasoning
        ) {
            self.step(block.message.as_ref(), parent, out);
            self.custom(event, out);
            return;
        }
        if block.text.is_empty() && block.signature.is_none() {
            return;
        }
        let (shape, id) = (Shape::of(&block.kind, out), self.identity.uuid());
        self.step(block.message.as_ref(), parent, out);
        self.start_block(shape, id, block.message.as_ref(), parent, out);
        if !block.text.is_empty() {
            block_content(shape, id, &block.text, parent, out);
        }
        block_end(shape, id, block.signature.as_ref(), parent, out);
    }

    fn start_block(
        &mut self,
        shape: Shape,
        id: Uuid,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if shape == Shape::Text {
            if let Some(message) = message {
                self.remember_message(message, parent, id);
            }
            sse::event_of_text(out, "TEXT_MESSAGE_START", |event| {
                message_id(event, id);
                event.fixed(r#""role":"assistant""#);
                of_subagent(event, parent);
            });
            return;
        }
        sse::event_of_text(out, "REASONING_START", |event| {
            message_id(event, id);
            of_subagent(event, parent);
        });
        sse::event_of_text(out, "REASONING_MESSAGE_START", |event| {
            message_id(event, id);
            event.fixed(r#""role":"reasoning""#);
            of_subagent(event, parent);
        });
    }

    /// The id of the message that made a call, if the agent states it.
    pub(super) fn message_of_call(
        &mut self,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
    ) -> Option<Uuid> {
        let message = message?;
        let of_agent = |last: &&LastMessage| last.parent.as_ref() == parent;
        let last = self.messages.iter().find(of_agent);
        if let Some(last) = last.filter(|last| *message == *last.message) {
            return Some(last.id);
        }
        let id = self.identity.uuid();
        self.remember_message(message, parent, id);
        Some(id)
    }

    fn remember_message(&mut self, message: &Text<'_>, parent: Option<&Text<'_>>, id: Uuid) {
        if let Some(last) = self.messages.iter_mut().find(|last| last.parent.as_ref() == parent) {
            last.id = id;
            if *message != *last.message {
                last.message.clear();
                last.message.push_str(&message.to_plain());
            }
            return;
        }
        if self.messages.len() == REMEMBERED {
            self.messages.remove(0);
        }
        let parent = parent.map(|parent| parent.clone().into_owned());
        self.messages.push(LastMessage { parent, message: message.to_plain().into_owned(), id });
    }

    /// Begins another step, if the message belongs to one.
    pub(super) fn step(
        &mut self,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.write_survived_errors(out);
        let before = self.steps.number();
        let next = self.steps.advance(message, parent);
        if next == Next::Another {
            step_event("STEP_FINISHED", before, out);
        }
        if next != Next::Same {
            step_event("STEP_STARTED", self.steps.number(), out);
        }
    }

    /// Writes the plan as an activity, which the next plan of the same agent replaces.
    fn plan(&mut self, event: &Event<'_>, plan: &PlanUpdated<'_>, out: &mut Output) {
        let parent = event.parent.as_ref();
        let known = self.plans.iter().find(|(agent, _)| agent.as_ref() == parent);
        let id = match known {
            Some((_, id)) => *id,
            None => {
                let id = self.identity.uuid();
                if self.plans.len() == REMEMBERED {
                    self.plans.remove(0);
                }
                self.plans.push((parent.map(|parent| parent.clone().into_owned()), id));
                id
            }
        };
        sse::event(out, "ACTIVITY_SNAPSHOT", |event| {
            message_id(event, id);
            event.fixed(r#""activityType":"PLAN""#);
            event.object("content", |content| {
                content.text_if("plan", plan.plan.as_ref());
                content.objects("items", &plan.items, |step, item| {
                    step.text_if("id", item.id.as_ref()).text("text", &item.text);
                    step.string("status", item.status.as_str());
                    step.text_if("activeForm", item.active_form.as_ref());
                });
            });
            event.flag("replace", true);
            of_subagent(event, parent);
        });
    }
}

fn block_content(
    shape: Shape,
    id: Uuid,
    text: &Text<'_>,
    parent: Option<&Text<'_>>,
    out: &mut Output,
) {
    let kind = match shape {
        Shape::Text => "TEXT_MESSAGE_CONTENT",
        _ => "REASONING_MESSAGE_CONTENT",
    };
    sse::event_of_text(out, kind, |event| {
        message_id(event, id);
        event.text("delta", text);
        of_subagent(event, parent);
    });
}

fn block_end(
    shape: Shape,
    id: Uuid,
    signature: Option<&Text<'_>>,
    parent: Option<&Text<'_>>,
    out: &mut Output,
) {
    let mut end = |kind: &str| {
        sse::event_of_text(out, kind, |event| {
            message_id(event, id);
            of_subagent(event, parent);
        });
    };
    end(if shape == Shape::Text { "TEXT_MESSAGE_END" } else { "REASONING_MESSAGE_END" });
    if let Some(signature) = signature {
        sse::event_of_text(out, "REASONING_ENCRYPTED_VALUE", |event| {
            event.fixed(r#""subtype":"message""#);
            id.write(event.name("entityId"));
            event.text("encryptedValue", signature);
            of_subagent(event, parent);
        });
    }
    if shape == Shape::Reasoning {
        sse::event_of_text(out, "REASONING_END", |event| {
            message_id(event, id);
            of_subagent(event, parent);
        });
    }
}

/// Events that the protocol does not have.
impl AgUiEncoder {
    /// Writes an event as `CUSTOM`, with its own name and payload.
    pub(super) fn custom(&mut self, event: &Event<'_>, out: &mut Output) {
        match payload(event) {
            Some(payload) => {
                self.custom_of(event.data.kind(), &payload, event.parent.as_ref(), out)
            }
            None => out.lost(event.data.kind()),
        }
    }

    pub(super) fn custom_of(
        &mut self,
        name: &'static str,
        value: &Json<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.write_in_run(name, out, |out| {
            sse::event(out, "CUSTOM", |event| {
                event.string("name", name).json("value", value);
                of_subagent(event, parent);
            });
        });
    }

    /// As [`AgUiEncoder::custom_of`], for a value that is written field by field.
    pub(super) fn custom_with(
        &mut self,
        name: &'static str,
        parent: Option<&Text<'_>>,
        out: &mut Output,
        value: impl FnOnce(&mut Object<'_>),
    ) {
        self.write_in_run(name, out, |out| {
            sse::event(out, "CUSTOM", |event| {
                event.string("name", name).object("value", value);
                of_subagent(event, parent);
            });
        });
    }

    /// Writes the progress of a call. It is frequent and long, so its payload is not serialized
    /// first.
    fn progress(&mut self, event: &Event<'_>, progress: &ToolProgress<'_>, out: &mut Output) {
        self.custom_with("tool_progress", event.parent.as_ref(), out, |value| {
            value.text("call", &progress.call).text_if("output", progress.output.as_ref());
            value.number_if("elapsed_ms", progress.elapsed_ms);
        });
    }

    /// Writes the held errors that did not end the run, since the agent continues.
    pub(super) fn write_survived_errors(&mut self, out: &mut Output) {
        for error in self.errors.take_survived() {
            self.custom_of("error", &error, None, out);
        }
    }

    /// Writes a native record. Without its text, the name alone would be of no use.
    fn raw(&mut self, record: Option<&Json<'_>>, parent: Option<&Text<'_>>, out: &mut Output) {
        let Some(record) = record else {
            out.lost(RECORD);
            return;
        };
        let source = self.session.agent.clone();
        self.write_in_run(RECORD, out, |out| {
            sse::event(out, "RAW", |raw| {
                raw.json("event", record).text_if("source", source.as_ref());
                of_subagent(raw, parent);
            });
        });
    }

    /// Writes in the current run, or holds the output back for the next one.
    fn write_in_run(
        &mut self,
        what: &'static str,
        out: &mut Output,
        write: impl FnOnce(&mut Output),
    ) {
        let start = out.bytes().len();
        write(out);
        if self.run.is_some() {
            return;
        }
        let (bytes, names) = &mut self.held;
        let written = out.bytes().split_off(start);
        if bytes.len() + written.len() > HELD {
            out.lost(what);
            return;
        }
        bytes.extend_from_slice(&written);
        names.push(what);
    }
}

/// The payload of an event, as in the dialect `events`.
pub(super) fn payload(event: &Event<'_>) -> Option<Json<'static>> {
    Json::from_text(event.data.serialize_payload().ok()?)
}

pub(super) fn message_id(event: &mut Object<'_>, id: Uuid) {
    id.write(event.name("messageId"));
}

/// Writes the sub-agent that an event belongs to, as the id of the call that started it.
#[inline]
pub(super) fn of_subagent(event: &mut Object<'_>, parent: Option<&Text<'_>>) {
    event.text_if("subagentRunId", parent);
}

pub(super) fn step_event(kind: &str, number: u64, out: &mut Output) {
    sse::event_of_text(out, kind, |event| {
        let out = event.name("stepName");
        out.extend_from_slice(b"\"step-");
        write::number(out, number);
        out.push(b'"');
    });
}
