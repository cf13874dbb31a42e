//! What the model says: messages, and the blocks they are made of.

use super::open::open_enum;
use super::payload::{owned, payload};
use super::usage::Usage;
use crate::json::{Json, Text};

payload! {
    /// The model began a message.
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
        /// Why the model stopped, in its own word.
        pub stop_reason: Option<Text<'a>>,
        /// The tokens of the request.
        pub usage: Option<Usage<'a>>,
    }
}

payload! {
    /// A block began.
    pub struct BlockStarted<'a> {
        /// The block's number in the stream; the grammar gives it.
        pub block: u64,
        /// The id of the message it belongs to.
        pub message: Option<Text<'a>>,
        /// Its place in that message.
        pub index: u64,
        /// What it is.
        pub kind: BlockKind,
    }
}

payload! {
    /// The next piece of a block.
    pub struct BlockDelta<'a> {
        /// The block's number in the stream; the grammar gives it.
        pub block: u64,
        /// The id of the message it belongs to.
        pub message: Option<Text<'a>>,
        /// Its place in that message.
        pub index: u64,
        /// What it is.
        pub kind: BlockKind,
        /// The piece.
        pub text: Text<'a>,
    }
}

payload! {
    /// A block is whole.
    pub struct BlockEnded<'a> {
        /// The block's number in the stream; the grammar gives it.
        pub block: u64,
        /// The id of the message it belongs to.
        pub message: Option<Text<'a>>,
        /// Its place in that message.
        pub index: u64,
        /// What it is.
        pub kind: BlockKind,
        /// What the provider signed it with.
        pub signature: Option<Text<'a>>,
    }
}

payload! {
    /// A block said at once.
    pub struct Block<'a> {
        /// The block's number in the stream; the grammar gives it.
        pub block: u64,
        /// The id of the message it belongs to.
        pub message: Option<Text<'a>>,
        /// Its place in that message.
        pub index: u64,
        /// What it is.
        pub kind: BlockKind,
        /// Its text.
        pub text: Text<'a>,
        /// What the provider signed it with.
        pub signature: Option<Text<'a>>,
        /// A block that is no text: as the agent wrote it.
        pub content: Option<Json<'a>>,
    }
}

payload! {
    /// What the agent said is taken back: it is said again, or not at all. Blocks that are open end
    /// with it.
    pub struct Withdrawn<'a> {
        /// The message that is taken back.
        pub message: Option<Text<'a>>,
        /// The first of its blocks that is, by its place in the message.
        pub index: u64,
        /// These blocks; the grammar finds them.
        pub blocks: Vec<WithdrawnBlock<'a>>,
        /// Why, for a person to read.
        pub reason: Option<Text<'a>>,
    }
}

payload! {
    /// One block that is taken back.
    pub struct WithdrawnBlock<'a> {
        /// The block's number in the stream.
        pub block: u64,
        /// What it is.
        pub kind: BlockKind,
        /// It had not ended.
        pub open: bool,
        /// What it said; absent where it was too long to keep.
        pub text: Option<Text<'a>>,
    }
}

open_enum! {
    /// What a block is.
    #[derive(Default)]
    pub enum BlockKind {
        /// What the model says to the user.
        #[default]
        Text = "text",
        /// What it says to itself.
        Reasoning = "reasoning",
        /// What it says to itself, and only its provider can read.
        HiddenReasoning = "hidden_reasoning",
        /// A picture.
        Image = "image",
    }
}

owned!(BlockKind);
