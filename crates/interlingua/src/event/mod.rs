//! The one language: what any agent can say, in words of our own.
//!
//! An [`Event`] says what happened; its place in a session is in the [entry](crate::Entry). It borrows from the frame it came from;
//! [`Event::into_owned`] makes one that outlives it. Events know nothing of any protocol: what a
//! protocol calls a thing is the business of its [dialect](crate::dialect).

mod block;
mod failure;
mod open;
mod payload;
mod permission;
mod plan;
pub(crate) mod schema;
mod session;
mod tool;
mod turn;
mod usage;

use crate::json::{Json, Text};
use payload::Own;

pub use block::*;
pub use failure::*;
pub use permission::*;
pub use plan::*;
pub use session::*;
pub use tool::*;
pub use turn::*;
pub use usage::*;

/// One thing that was said or that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// The tool call whose sub-agent emitted it.
    pub parent: Option<Text<'a>>,
    /// The agent's own time, as the agent wrote it.
    pub time: Option<Json<'a>>,
    /// Why the event was added, where the agent's stream does not contain it.
    pub synthetic: Option<Reason>,
    /// What it is.
    pub data: Data<'a>,
}

impl<'a> Event<'a> {
    /// An event of the current frame.
    #[inline(always)]
    pub fn new(data: impl Into<Data<'a>>) -> Self {
        Self { parent: None, time: None, synthetic: None, data: data.into() }
    }

    /// The same event, emitted by the sub-agent of a tool call.
    #[must_use]
    #[inline(always)]
    pub fn within(mut self, parent: Option<Text<'a>>) -> Self {
        self.parent = parent;
        self
    }

    /// The same event, with the time that the agent gave it.
    #[must_use]
    #[inline(always)]
    pub fn at(mut self, time: Option<Json<'a>>) -> Self {
        self.time = time;
        self
    }

    /// The same event, marked as added for a reason.
    #[must_use]
    #[inline(always)]
    pub fn because(mut self, reason: Option<Reason>) -> Self {
        self.synthetic = reason;
        self
    }

    /// A copy that does not borrow from the frame.
    pub fn into_owned(self) -> Event<'static> {
        Event {
            parent: self.parent.map(Text::into_owned),
            time: self.time.map(Json::into_owned),
            synthetic: self.synthetic,
            data: self.data.into_owned(),
        }
    }
}

open::open_enum! {
    /// Why an event was added that the agent did not say.
    pub enum Reason {
        /// The stream went on as if it had been said.
        Implied = "implied",
        /// The turn ended while this was still open.
        TurnEnded = "turn_ended",
        /// The input ended while this was still open.
        InputEnded = "input_ended",
        /// The agent's process ended, with the exit code or signal that is told beside it.
        ProcessEnded = "process_ended",
        /// By the protocol's own contract the end of the stream says it.
        StreamEnded = "stream_ended",
        /// Whoever ran the agent ended it, for the cause that is told beside it.
        Stopped = "stopped",
        /// A tool call that was refused took back what it had announced.
        Refused = "refused",
        /// The agent wrote it elsewhere: into a log or a file of its own, or onto its screen.
        Elsewhere = "elsewhere",
    }
}

impl Reason {
    /// Whether it was added because nothing more comes: the stream broke off, or its program ended.
    pub fn is_end_of_input(&self) -> bool {
        matches!(self, Self::InputEnded | Self::ProcessEnded | Self::Stopped)
    }
}

macro_rules! data {
    ($($(#[$doc:meta])* $variant:ident($payload:ident) = $word:literal $($boxed:ident)?,)+) => {
        /// What an event is.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Data<'a> {
            $($(#[$doc])* $variant(data!(@type $payload $($boxed)?)),)+
        }

        impl<'a> Data<'a> {
            /// The word for this kind of event.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $word,)+ }
            }

            /// A copy that does not borrow from the frame.
            pub fn into_owned(self) -> Data<'static> {
                match self { $(Self::$variant(payload) => Data::$variant(payload.own()),)+ }
            }

            /// The payload as JSON.
            pub(crate) fn serialize_payload(&self) -> Result<String, serde_json::Error> {
                match self { $(Self::$variant(payload) => serde_json::to_string(payload),)+ }
            }

            /// Reads the payload of an event of some kind; `None` for a kind nobody knows.
            pub(crate) fn read_payload(kind: &str, json: &'a str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($word => Some(serde_json::from_str::<$payload<'a>>(json).map(Data::from)),)+
                    _ => None,
                }
            }

            /// The schema of the payload of every kind.
            pub(crate) fn schemas() -> Vec<(&'static str, serde_json::Value)> {
                vec![$(($word, <$payload<'static> as schema::Described>::schema()),)+]
            }

            /// The words for all kinds of events.
            pub const KINDS: &'static [&'static str] = &[$($word),+];
        }

        $(impl<'a> From<$payload<'a>> for Data<'a> {
            #[inline(always)]
            fn from(payload: $payload<'a>) -> Self {
                Self::$variant(data!(@make payload $($boxed)?))
            }
        })+
    };
    (@type $payload:ident) => { $payload<'a> };
    (@type $payload:ident boxed) => { Box<$payload<'a>> };
    (@make $payload:ident) => { $payload };
    (@make $payload:ident boxed) => { Box::new($payload) };
}

data! {
    /// The agent is there, and says what it is.
    SessionStarted(SessionStarted) = "session_started" boxed,
    /// Something about the session changed or became known.
    SessionUpdated(SessionUpdated) = "session_updated" boxed,
    /// The agent's process or stream is over.
    SessionEnded(SessionEnded) = "session_ended" boxed,
    /// The agent began to work on a prompt.
    TurnStarted(TurnStarted) = "turn_started",
    /// The agent is done with a prompt, one way or another.
    TurnEnded(TurnEnded) = "turn_ended" boxed,
    /// The user said something, or the agent said it in the user's name.
    UserMessage(UserMessage) = "user_message",
    /// The model began a message.
    MessageStarted(MessageStarted) = "message_started",
    /// The model ended a message.
    MessageEnded(MessageEnded) = "message_ended" boxed,
    /// A block of a message began.
    BlockStarted(BlockStarted) = "block_started",
    /// The next piece of a block.
    BlockDelta(BlockDelta) = "block_delta",
    /// A block is whole.
    BlockEnded(BlockEnded) = "block_ended",
    /// A block said at once: the same as started, one piece, ended.
    Block(Block) = "block",
    /// What was said is taken back.
    Withdrawn(Withdrawn) = "withdrawn",
    /// A tool was called.
    ToolStarted(ToolStarted) = "tool_started",
    /// The next piece of a call's input, as JSON text.
    ToolInputDelta(ToolInputDelta) = "tool_input_delta",
    /// The whole input of a call that was not known when it started.
    ToolInput(ToolInput) = "tool_input",
    /// A running call showed a sign of life.
    ToolProgress(ToolProgress) = "tool_progress",
    /// A call was answered.
    ToolEnded(ToolEnded) = "tool_ended",
    /// The plan is now this.
    PlanUpdated(PlanUpdated) = "plan_updated",
    /// Files changed.
    FilesChanged(FilesChanged) = "files_changed",
    /// The agent asks whether it may.
    PermissionRequested(PermissionRequested) = "permission_requested" boxed,
    /// It may, or may not.
    PermissionResolved(PermissionResolved) = "permission_resolved" boxed,
    /// The agent asks the user something.
    QuestionAsked(QuestionAsked) = "question_asked",
    /// The user answered.
    QuestionAnswered(QuestionAnswered) = "question_answered",
    /// Tokens were used.
    Usage(Usage) = "usage" boxed,
    /// A limit of the account was told.
    Limit(Limit) = "limit",
    /// A request failed and is tried again.
    Retry(Retry) = "retry" boxed,
    /// Something went wrong.
    Error(Error) = "error" boxed,
    /// Something worth telling a person.
    Notice(Notice) = "notice",
    /// Somebody stopped the turn.
    Interrupted(Interrupted) = "interrupted",
    /// The conversation was made shorter.
    Compacted(Compacted) = "compacted",
    /// An agent started another one.
    SubagentStarted(SubagentStarted) = "subagent_started" boxed,
    /// The other agent is done.
    SubagentEnded(SubagentEnded) = "subagent_ended" boxed,
    /// A file was made for the user.
    Artifact(Artifact) = "artifact" boxed,
    /// A record that is understood and means nothing outside its own protocol.
    Native(Native) = "native",
    /// A record of a kind that nobody knows.
    Unknown(Unknown) = "unknown",
    /// A record that adds nothing to what was emitted before.
    Silent(Silent) = "silent",
    /// Text that is no record.
    Unparsed(Unparsed) = "unparsed",
    /// A line that is no part of the protocol.
    Log(Log) = "log",
}

/// The counts without anything borrowed.
pub(crate) fn own_usage(usage: Usage<'_>) -> Usage<'static> {
    usage.own()
}

/// The plan without anything borrowed.
pub(crate) fn own_plan(plan: PlanUpdated<'_>) -> PlanUpdated<'static> {
    plan.own()
}

/// What is known of a session without anything borrowed.
pub(crate) fn own_session(session: SessionStarted<'_>) -> SessionStarted<'static> {
    session.own()
}
