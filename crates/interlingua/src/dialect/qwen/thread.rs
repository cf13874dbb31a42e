//! Where one thread of messages is: the main agent's, or that of an agent that a call started.
//!
//! What the model says in one answer is one message with several blocks in pieces, and several
//! messages as whole records, of which only the first has the id that the pieces have. The pieces
//! count the blocks of each whole record from zero. Here both have one name: the message of the
//! pieces, and the block's place in all of it.

use super::wire::{Content, StreamEvent};
use super::{failure, tools};
use crate::dialect::Emitter;
use crate::event::{BlockDelta, BlockKind, BlockStarted, ToolInputDelta, ToolStarted, Usage};
use crate::json::Text;

/// One thread of messages.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) parent: Option<Text<'static>>,
    /// The message that is being said in pieces, if one is.
    pub(super) message: Option<Text<'static>>,
    /// The record that starts a message was printed: another one will end it.
    pub(super) has_bounds: bool,
    /// How many blocks of the message came whole.
    pub(super) whole: u64,
    /// The block that is being said in pieces.
    open: Option<OpenPieces>,
    pub(super) usage: Option<Usage<'static>>,
    pub(super) stop_reason: Option<Text<'static>>,
    /// How often the request at hand was tried again.
    pub(super) retries: u64,
    /// Calls that were made and not yet answered.
    pub(super) calls: Vec<Text<'static>>,
}

#[derive(Debug)]
struct OpenPieces {
    kind: BlockKind,
    /// The call whose input the pieces are.
    call: Option<Text<'static>>,
    /// The block's start was told.
    told: bool,
}

/// Something that the program may have said in the model's place.
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

    /// Begins a message in pieces.
    pub(super) fn enter(&mut self, message: Option<Text<'static>>, has_bounds: bool) {
        self.message = message;
        self.has_bounds = has_bounds;
        self.whole = 0;
        self.open = None;
    }

    /// A whole record has come: what it repeats is over.
    pub(super) fn came_whole(&mut self, blocks: u64) {
        self.open = None;
        self.whole += blocks;
        // Without bounds, a message is one record.
        if !self.has_bounds {
            self.enter(None, false);
        }
    }

    pub(super) fn piece_started<'a>(
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
                self.call_started(&mut content, out);
                return;
            }
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Reasoning,
            other => BlockKind::from(other),
        };
        self.open = Some(OpenPieces { kind, call: None, told: false });
        out.sink.deferred();
    }

    fn call_started<'a>(&mut self, content: &mut Content<'a>, out: &mut Emitter<'_, 'a>) {
        let started = ToolStarted { input: None, ..tools::started(content, self.message.clone()) };
        let call = Some(started.call.clone().into_owned());
        self.open = Some(OpenPieces { kind: BlockKind::Text, call, told: true });
        self.made(&started.call);
        out.emit(started);
    }

    /// The next piece of a block; or what the program says in the model's place.
    pub(super) fn piece<'a>(
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
        let index = self.whole + event.index.unwrap_or(0);
        if out.parent.is_none() && failure::may_be(&text) {
            let message = self.message.clone();
            return Some(Suspect { text: text.into_owned(), message, index });
        }
        let message = || self.message.as_ref().map(Text::borrowed);
        let kind = self.open.as_ref().map(|open| open.kind.clone()).unwrap_or_default();
        let told = self.open.as_ref().is_none_or(|open| open.told);
        if !told {
            let kind = kind.clone();
            out.emit(BlockStarted { message: message(), index, kind, ..BlockStarted::default() });
        }
        out.emit(BlockDelta { block: 0, message: message(), index, kind, text });
        if let Some(open) = self.open.as_mut().filter(|_| !told) {
            open.told = true;
        }
        None
    }

    /// Remembers a call until it is answered.
    pub(super) fn made(&mut self, call: &Text<'_>) {
        if !self.calls.contains(call) {
            self.calls.push(call.clone().into_owned());
        }
    }

    /// Forgets a call that was answered.
    pub(super) fn answered(&mut self, call: &Text<'_>) {
        self.calls.retain(|known| known != call);
    }
}
