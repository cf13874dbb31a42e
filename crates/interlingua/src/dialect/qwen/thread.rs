//! The state of one thread of messages: that of the main agent, or of a sub-agent.
//!
//! A streamed response is one message with several blocks. Its complete records are several
//! messages, of which only the first has the id of the streamed message, and the deltas count the
//! blocks of each record from zero. Here both get the same name: the id of the streamed message,
//! and the index of the block in that message.

use super::wire::{Content, StreamEvent};
use super::{failure, tools};
use crate::dialect::Emitter;
use crate::event::{BlockDelta, BlockKind, BlockStarted, ToolInputDelta, ToolStarted, Usage};
use crate::json::Text;

/// One thread of messages.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) parent: Option<Text<'static>>,
    /// The message that is being streamed.
    pub(super) message: Option<Text<'static>>,
    /// The message was started by a record, and another record will end it.
    pub(super) has_bounds: bool,
    /// The number of complete blocks of the message.
    pub(super) complete_blocks: u64,
    /// The block that is being streamed.
    open: Option<StreamedBlock>,
    pub(super) usage: Option<Usage<'static>>,
    pub(super) stop_reason: Option<Text<'static>>,
    /// The number of retries of the current request.
    pub(super) retries: u64,
    /// The unanswered calls.
    pub(super) calls: Vec<Text<'static>>,
}

#[derive(Debug)]
struct StreamedBlock {
    kind: BlockKind,
    /// The call whose input is streamed.
    call: Option<Text<'static>>,
    /// The start of the block was emitted.
    started: bool,
}

/// A text that may be a failed request, which the program wrote in place of the model's text.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) text: Text<'static>,
    pub(super) message: Option<Text<'static>>,
    pub(super) index: u64,
}

impl Thread {
    pub(super) fn of(parent: Option<Text<'static>>) -> Self {
        Self { parent, ..Self::default() }
    }

    /// Starts a streamed message.
    pub(super) fn enter(&mut self, message: Option<Text<'static>>, has_bounds: bool) {
        self.message = message;
        self.has_bounds = has_bounds;
        self.complete_blocks = 0;
        self.open = None;
    }

    /// Closes the streamed block that a complete record repeats.
    pub(super) fn complete_record(&mut self, blocks: u64) {
        self.open = None;
        self.complete_blocks += blocks;
        // Without bounds, a message is one record.
        if !self.has_bounds {
            self.enter(None, false);
        }
    }

    pub(super) fn start_block<'a>(
        &mut self,
        event: &mut StreamEvent<'a>,
        uuid: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        if self.message.is_none() {
            self.enter(uuid.map(Text::into_owned), false);
        }
        let mut content = event.block.take().unwrap_or_default();
        let kind = match content.kind.as_ref().map_or("", Text::body) {
            "tool_use" => {
                self.start_call(&mut content, out);
                return;
            }
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Reasoning,
            other => BlockKind::from(other),
        };
        self.open = Some(StreamedBlock { kind, call: None, started: false });
        out.sink.deferred();
    }

    fn start_call<'a>(&mut self, content: &mut Content<'a>, out: &mut Emitter<'_, 'a>) {
        let started = ToolStarted { input: None, ..tools::started(content, self.message.clone()) };
        let call = Some(started.call.clone().into_owned());
        self.open = Some(StreamedBlock { kind: BlockKind::Text, call, started: true });
        self.note_call(&started.call);
        out.emit(started);
    }

    /// Emits a delta of a block, or returns it if it may be a failed request.
    pub(super) fn add_delta<'a>(
        &mut self,
        event: &mut StreamEvent<'a>,
        out: &mut Emitter<'_, 'a>,
    ) -> Option<Suspect> {
        let delta = event.delta.as_mut()?;
        let text = match delta.kind.as_ref().map_or("", Text::body) {
            "input_json_delta" => {
                let call = self.open.as_ref().and_then(|open| open.call.as_ref());
                if let Some(call) = call {
                    let text = delta.partial_json.take().unwrap_or_default();
                    out.emit(ToolInputDelta { call: call.borrowed(), text });
                }
                return None;
            }
            "thinking_delta" => delta.thinking.take().unwrap_or_default(),
            _ => delta.text.take().unwrap_or_default(),
        };
        let index = self.complete_blocks + event.index.unwrap_or(0);
        if out.parent.is_none() && failure::looks_like_failure(&text) {
            let message = self.message.clone();
            return Some(Suspect { text: text.into_owned(), message, index });
        }
        let message = || self.message.as_ref().map(Text::borrowed);
        let kind = self.open.as_ref().map(|open| open.kind.clone()).unwrap_or_default();
        let started = self.open.as_ref().is_none_or(|open| open.started);
        if !started {
            let kind = kind.clone();
            out.emit(BlockStarted { message: message(), index, kind, ..BlockStarted::default() });
        }
        out.emit(BlockDelta { block: 0, message: message(), index, kind, text });
        if let Some(open) = self.open.as_mut().filter(|_| !started) {
            open.started = true;
        }
        None
    }

    /// Remembers a call until it is answered.
    pub(super) fn note_call(&mut self, call: &Text<'_>) {
        if !self.calls.contains(call) {
            self.calls.push(call.clone().into_owned());
        }
    }

    /// Forgets a call that was answered.
    pub(super) fn note_answer(&mut self, call: &Text<'_>) {
        self.calls.retain(|known| known != call);
    }
}
