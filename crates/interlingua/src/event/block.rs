//! The output of the model: messages, and the blocks that they consist of.

use super::open::open_enum;
use super::payload::{owned, payload};
use super::usage::Usage;
use crate::json::{Json, Text};

payload! {
    /// The model started a message.
    pub struct MessageStarted<'a> {
        /// The message's id.
        pub message: Option<Text<'a>>,
        /// The model.
        pub model: Option<Text<'a>>,
        /// The tokens that the request has used so far.
        pub usage: Option<Usage<'a>>,
    }
}

payload! {
    /// The model ended a message.
    pub struct MessageEnded<'a> {
        /// The message's id.
        pub message: Option<Text<'a>>,
        /// The stop reason, as the provider names it.
        pub stop_reason: Option<Text<'a>>,
        /// The tokens of the request.
        pub usage: Option<Usage<'a>>,
    }
}

payload! {
    /// A block started.
    pub struct BlockStarted<'a> {
        /// The block's number in the stream, assigned by the grammar.
        pub block: u64,
        /// The id of the message that it belongs to.
        pub message: Option<Text<'a>>,
        /// Its index in that message.
        pub index: u64,
        /// The kind of block.
        pub kind: BlockKind,
    }
}

payload! {
    /// The next piece of a streamed block.
    pub struct BlockDelta<'a> {
        /// The block's number in the stream, assigned by the grammar.
        pub block: u64,
        /// The id of the message that it belongs to.
        pub message: Option<Text<'a>>,
        /// Its index in that message.
        pub index: u64,
        /// The kind of block.
        pub kind: BlockKind,
        /// The text of the piece.
        pub text: Text<'a>,
    }
}

payload! {
    /// A block ended.
    pub struct BlockEnded<'a> {
        /// The block's number in the stream, assigned by the grammar.
        pub block: u64,
        /// The id of the message that it belongs to.
        pub message: Option<Text<'a>>,
        /// Its index in that message.
        pub index: u64,
        /// The kind of block.
        pub kind: BlockKind,
        /// The provider's signature.
        pub signature: Option<Text<'a>>,
    }
}

payload! {
    /// A whole block.
    pub struct Block<'a> {
        /// The block's number in the stream, assigned by the grammar.
        pub block: u64,
        /// The id of the message that it belongs to.
        pub message: Option<Text<'a>>,
        /// Its index in that message.
        pub index: u64,
        /// The kind of block.
        pub kind: BlockKind,
        /// Its text.
        pub text: Text<'a>,
        /// The provider's signature.
        pub signature: Option<Text<'a>>,
        /// The content of a block that is not text, as the agent wrote it.
        pub content: Option<Json<'a>>,
    }
}

payload! {
    /// Blocks that were emitted before are retracted. The agent may stream them again. Blocks that
    /// are open end with it.
    pub struct Withdrawn<'a> {
        /// The message whose blocks are retracted.
        pub message: Option<Text<'a>>,
        /// The index of the first block of the message that is retracted.
        pub index: u64,
        /// The retracted blocks, listed by the grammar.
        pub blocks: Vec<WithdrawnBlock<'a>>,
        /// The cause, for a person to read.
        pub reason: Option<Text<'a>>,
    }
}

payload! {
    /// A retracted block.
    pub struct WithdrawnBlock<'a> {
        /// The block's number in the stream.
        pub block: u64,
        /// The kind of block.
        pub kind: BlockKind,
        /// The block had not ended.
        pub open: bool,
        /// Its text; absent if it was too long to keep.
        pub text: Option<Text<'a>>,
    }
}

open_enum! {
    /// A kind of block.
    #[derive(Default)]
    pub enum BlockKind {
        /// Text for the user.
        #[default]
        Text = "text",
        /// Reasoning of the model.
        Reasoning = "reasoning",
        /// Reasoning that is encrypted by the provider.
        HiddenReasoning = "hidden_reasoning",
        /// An image.
        Image = "image",
    }
}

owned!(BlockKind);
