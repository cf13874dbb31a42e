//! The state of one thread of messages: the block that is being streamed, and the index of the next
//! complete block. It knows no record other than those of partial messages.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use super::wire::{Content, StreamEvent};
use crate::dialect::Emitter;
use crate::dialect::tools;
use crate::event::{
    BlockDelta, BlockEnded, BlockKind, BlockStarted, Executor, ToolEnded, ToolInput,
    ToolInputDelta, ToolStarted, ToolStatus, Usage, Withdrawn,
};
use crate::json::Text;

/// The number of earlier messages in each generation of [`EarlierMessages`].
const MAX_EARLIER: usize = 256;

/// The state of one thread of messages.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) parent: Option<Text<'static>>,
    pub(super) message: Option<Text<'static>>,
    /// The number of complete blocks of the message.
    complete_blocks: u64,
    /// The earlier messages, since some streams return to one.
    earlier: EarlierMessages,
    /// The block that is being streamed.
    open: Option<StreamedBlock>,
    pub(super) usage: Option<Usage<'static>>,
    pub(super) stop_reason: Option<Text<'static>>,
}

/// The numbers of complete blocks of earlier messages, by the hash of the message id. There are two
/// generations: when the newer one is full, it replaces the older one, which is forgotten.
#[derive(Debug, Default)]
struct EarlierMessages {
    newer: HashMap<u64, u64, BuildHasherDefault<DefaultHasher>>,
    older: HashMap<u64, u64, BuildHasherDefault<DefaultHasher>>,
}

impl EarlierMessages {
    fn take(&mut self, message: u64) -> Option<u64> {
        self.newer.remove(&message).or_else(|| self.older.remove(&message))
    }

    fn keep(&mut self, message: u64, complete_blocks: u64) {
        if self.newer.len() == MAX_EARLIER {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(message, complete_blocks);
    }
}

#[derive(Debug)]
struct StreamedBlock {
    index: u64,
    kind: BlockKind,
    /// The call whose input is streamed.
    call: Option<Text<'static>>,
    /// The complete block was read, so nothing of it is missing.
    complete: bool,
    signature: Option<Text<'static>>,
}

impl Thread {
    /// The thread of the main agent, or of the sub-agent of a call.
    pub(super) fn of(parent: Option<Text<'static>>) -> Self {
        Self { parent, ..Self::default() }
    }

    /// Enters a message. If another one is still being streamed, its connection was lost and the
    /// request was repeated, so the new message supersedes what was streamed.
    pub(super) fn supersede<'a>(&mut self, message: Option<&Text<'a>>, out: &mut Emitter<'_, 'a>) {
        if self.message.as_ref() != message
            && let Some(open) = self.open.take_if(|open| !open.complete)
        {
            let (message, index) = (self.message.clone(), open.index);
            out.emit(Withdrawn { message, index, ..Withdrawn::default() });
            open.abandon_call(out);
        }
        self.enter(message);
    }

    /// Abandons the call whose input is being streamed, since its message was retracted.
    pub(super) fn abandon_call(&mut self, out: &mut Emitter<'_, '_>) {
        if let Some(open) = self.open.take_if(|open| !open.complete) {
            open.abandon_call(out);
        }
    }

    /// Enters a message, if it is not the current one.
    pub(super) fn enter(&mut self, message: Option<&Text<'_>>) {
        if self.message.as_ref() == message {
            return;
        }
        let complete_blocks = self.earlier.take(hash_of(message)).unwrap_or(0);
        let left = std::mem::replace(&mut self.complete_blocks, complete_blocks);
        // A message without blocks has nothing to remember.
        if left > 0 {
            self.earlier.keep(hash_of(self.message.as_ref()), left);
        }
        self.message = message.map(|id| id.clone().into_owned());
        self.open = None;
    }

    /// The index of the next complete block: that of the streamed block that it repeats, or a new
    /// one.
    pub(super) fn next_complete_index(&mut self) -> u64 {
        let index = self.open.as_mut().map_or(self.complete_blocks, |open| {
            open.complete = true;
            open.index
        });
        self.complete_blocks = index + 1;
        index
    }

    pub(super) fn start_block<'a>(
        &mut self,
        event: &mut StreamEvent<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let index = event.index.unwrap_or(self.complete_blocks);
        let content = event.block.take().unwrap_or_default();
        let mut open = StreamedBlock {
            index,
            kind: BlockKind::Text,
            call: None,
            complete: false,
            signature: None,
        };
        match content.kind.as_ref().map_or("", Text::body) {
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                open.call = content.id.clone().map(Text::into_owned);
                self.open = Some(open);
                let message = self.message.clone();
                out.emit(ToolStarted { input: None, ..tool_started(content, message) });
                return;
            }
            "text" => {}
            "thinking" => open.kind = BlockKind::Reasoning,
            "redacted_thinking" => {
                open.kind = BlockKind::HiddenReasoning;
                open.signature = content.data.map(Text::into_owned);
            }
            other => open.kind = BlockKind::from(other),
        }
        let kind = open.kind.clone();
        self.open = Some(open);
        let message = self.message.clone();
        out.emit(BlockStarted { block: 0, message, index, kind });
    }

    pub(super) fn add_delta<'a>(&mut self, event: &mut StreamEvent<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(delta) = &mut event.delta else {
            out.sink.ignored("a delta without content");
            return;
        };
        let index = event.index.unwrap_or(0);
        let open = self.open.as_mut();
        let text = match delta.kind.as_ref().map_or("", Text::body) {
            "input_json_delta" => {
                if let Some(call) = open.and_then(|open| open.call.clone()) {
                    let text = delta.partial_json.take().unwrap_or_default();
                    out.emit(ToolInputDelta { call, text });
                } else {
                    out.sink.ignored("an input delta without a call");
                }
                return;
            }
            "signature_delta" => {
                if let Some(open) = open {
                    open.signature = delta.signature.take().map(Text::into_owned);
                }
                out.sink.deferred();
                return;
            }
            "thinking_delta" => delta.thinking.take().unwrap_or_default(),
            _ => delta.text.take().unwrap_or_default(),
        };
        let kind = open.map(|open| open.kind.clone()).unwrap_or_default();
        let message = self.message.as_ref().map(Text::borrowed);
        let delta = BlockDelta { block: 0, message, index, kind, text };
        out.emit(delta);
    }

    pub(super) fn end_block(&mut self, out: &mut Emitter<'_, '_>) {
        let Some(open) = self.open.take() else {
            out.sink.ignored("the end of a block that is not open");
            return;
        };
        if open.call.is_some() {
            out.sink.ignored("the end of a call's block; the complete call follows");
            return;
        }
        out.emit(BlockEnded {
            block: 0,
            message: self.message.clone(),
            index: open.index,
            kind: open.kind,
            signature: open.signature,
        });
    }
}

impl StreamedBlock {
    fn abandon_call(self, out: &mut Emitter<'_, '_>) {
        let Some(call) = self.call else { return };
        out.emit(ToolInput { call: call.clone(), ..ToolInput::default() });
        out.emit(ToolEnded {
            call,
            status: ToolStatus::Abandoned,
            error: Some(Text::plain("a retry superseded this call")),
            ..ToolEnded::default()
        });
    }
}

fn hash_of(message: Option<&Text<'_>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.map(Text::to_plain).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn tool_started<'a>(content: Content<'a>, message: Option<Text<'a>>) -> ToolStarted<'a> {
    let provider = content.kind.as_ref().is_some_and(|kind| *kind == "server_tool_use");
    let name = content.name.unwrap_or_default();
    ToolStarted {
        native_call: None,
        call: content.id.unwrap_or_default(),
        kind: tools::kind_of(&name),
        name,
        executor: if provider { Executor::Provider } else { Executor::Agent },
        message,
        input: content.input,
    }
}
