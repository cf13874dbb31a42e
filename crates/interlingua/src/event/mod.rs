//! The event model, which covers what any agent can express.
//!
//! An [`Event`] states what happened; its [entry](crate::Entry) states where in the session. An
//! event borrows from its frame, and [`Event::into_owned`] makes a copy that outlives the frame.
//! Events know nothing of any protocol: a protocol's own names are known only to its
//! [dialect](crate::dialect).

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

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// The tool call whose sub-agent emitted it.
    pub parent: Option<Text<'a>>,
    /// The agent's own time, as the agent wrote it.
    pub time: Option<Json<'a>>,
    /// The reason for which the event was added, if the agent's stream does not contain it.
    pub synthetic: Option<Reason>,
    /// The kind of event, and its payload.
    pub data: Data<'a>,
}

impl<'a> Event<'a> {
    /// An event of the main agent.
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

    /// A copy of a borrowed event that does not borrow from the frame.
    pub(crate) fn copy(&self) -> Event<'static> {
        let data = match &self.data {
            // Most events are deltas, and a delta is smaller than the largest kind of event.
            Data::BlockDelta(delta) => Data::BlockDelta(delta.clone().own()),
            data => data.clone().into_owned(),
        };
        Event {
            parent: self.parent.as_ref().map(|parent| parent.clone().into_owned()),
            time: self.time.as_ref().map(|time| time.clone().into_owned()),
            synthetic: self.synthetic.clone(),
            data,
        }
    }
}

open::open_enum! {
    /// The reason for which an event was added that the agent did not emit.
    pub enum Reason {
        /// The rest of the stream implies it.
        Implied = "implied",
        /// The turn ended while this was still open.
        TurnEnded = "turn_ended",
        /// The input ended while this was still open.
        InputEnded = "input_ended",
        /// The agent's process ended, with the exit code or signal that the same event reports.
        ProcessEnded = "process_ended",
        /// By the protocol's contract, the end of the stream implies it.
        StreamEnded = "stream_ended",
        /// The caller ended the agent, for the cause that the same event reports.
        Stopped = "stopped",
        /// A tool call was refused, which undoes what it had announced.
        Refused = "refused",
        /// The agent wrote it elsewhere: to a log or another file of its own, or to its screen.
        Elsewhere = "elsewhere",
    }
}

impl Reason {
    /// Whether it was added because the input ended: the stream broke off, or the process ended.
    pub fn is_end_of_input(&self) -> bool {
        matches!(self, Self::InputEnded | Self::ProcessEnded | Self::Stopped)
    }
}

macro_rules! data {
    ($($(#[$doc:meta])* $variant:ident($payload:ident) = $word:literal $($boxed:ident)?,)+) => {
        /// The kind of an event, and its payload.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Data<'a> {
            $($(#[$doc])* $variant(data!(@type $payload $($boxed)?)),)+
        }

        impl<'a> Data<'a> {
            /// The name of this kind of event.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $word,)+ }
            }

            /// A copy that does not borrow from the frame.
            pub fn into_owned(self) -> Data<'static> {
                match self { $(Self::$variant(payload) => Data::$variant(payload.own()),)+ }
            }

            /// Appends the payload as a JSON object.
            pub(crate) fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
                match self { $(Self::$variant(payload) => serde_json::to_writer(out, payload),)+ }
            }

            /// The payload as JSON.
            pub(crate) fn serialize_payload(&self) -> Result<String, serde_json::Error> {
                match self { $(Self::$variant(payload) => serde_json::to_string(payload),)+ }
            }

            /// Reads the payload of an event of some kind; `None` for an unknown kind.
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

            /// The names of all kinds of events.
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
    /// The agent started, and reported what it is.
    SessionStarted(SessionStarted) = "session_started" boxed,
    /// Something about the session changed or became known.
    SessionUpdated(SessionUpdated) = "session_updated" boxed,
    /// The agent's process or stream ended.
    SessionEnded(SessionEnded) = "session_ended" boxed,
    /// The agent began to work on a prompt.
    TurnStarted(TurnStarted) = "turn_started",
    /// The agent ended its work on a prompt, successfully or not.
    TurnEnded(TurnEnded) = "turn_ended" boxed,
    /// A message of the user, or one that the agent added in the user's name.
    UserMessage(UserMessage) = "user_message",
    /// The model started a message.
    MessageStarted(MessageStarted) = "message_started",
    /// The model ended a message.
    MessageEnded(MessageEnded) = "message_ended" boxed,
    /// A block of a message started.
    BlockStarted(BlockStarted) = "block_started",
    /// The next piece of a streamed block.
    BlockDelta(BlockDelta) = "block_delta",
    /// A block ended.
    BlockEnded(BlockEnded) = "block_ended",
    /// A whole block, equivalent to its start, one delta and its end.
    Block(Block) = "block",
    /// Blocks that were emitted before are retracted.
    Withdrawn(Withdrawn) = "withdrawn",
    /// A tool was called.
    ToolStarted(ToolStarted) = "tool_started",
    /// The next piece of a call's input, as JSON text.
    ToolInputDelta(ToolInputDelta) = "tool_input_delta",
    /// The whole input of a call, if it was not known when the call started.
    ToolInput(ToolInput) = "tool_input",
    /// A running call reported progress.
    ToolProgress(ToolProgress) = "tool_progress",
    /// A call was answered.
    ToolEnded(ToolEnded) = "tool_ended",
    /// The turn waits until the client has run tools.
    Suspended(Suspended) = "suspended",
    /// The plan changed.
    PlanUpdated(PlanUpdated) = "plan_updated",
    /// Files changed.
    FilesChanged(FilesChanged) = "files_changed",
    /// The agent requests permission for a call or another action.
    PermissionRequested(PermissionRequested) = "permission_requested" boxed,
    /// A permission request was allowed or denied.
    PermissionResolved(PermissionResolved) = "permission_resolved" boxed,
    /// The agent asks the user one or several questions, or to fill in a form.
    QuestionAsked(QuestionAsked) = "question_asked" boxed,
    /// The user answered questions, or declined to.
    QuestionAnswered(QuestionAnswered) = "question_answered" boxed,
    /// Tokens were used.
    Usage(Usage) = "usage" boxed,
    /// The agent reported a limit of the account.
    Limit(Limit) = "limit",
    /// A request failed and is retried.
    Retry(Retry) = "retry" boxed,
    /// An error occurred.
    Error(Error) = "error" boxed,
    /// A notice for the user.
    Notice(Notice) = "notice",
    /// The turn was interrupted.
    Interrupted(Interrupted) = "interrupted",
    /// The conversation was compacted.
    Compacted(Compacted) = "compacted",
    /// A sub-agent started.
    SubagentStarted(SubagentStarted) = "subagent_started" boxed,
    /// A sub-agent ended.
    SubagentEnded(SubagentEnded) = "subagent_ended" boxed,
    /// A file was created for the user.
    Artifact(Artifact) = "artifact" boxed,
    /// A known record that has no meaning outside its own protocol.
    Native(Native) = "native",
    /// What the host of the agent stores for itself.
    HostState(HostState) = "host_state",
    /// A record of an unknown type.
    Unknown(Unknown) = "unknown",
    /// A record that adds nothing to what was emitted before.
    Silent(Silent) = "silent",
    /// Text that could not be read as a record.
    Unparsed(Unparsed) = "unparsed",
    /// A line that is not part of the protocol.
    Log(Log) = "log",
}

/// A copy of the counts that does not borrow from the frame.
pub(crate) fn own_usage(usage: Usage<'_>) -> Usage<'static> {
    usage.own()
}

/// A copy of the end of a turn that does not borrow from the frame.
pub(crate) fn own_turn_ended(ended: TurnEnded<'_>) -> TurnEnded<'static> {
    ended.own()
}

/// A copy of the plan that does not borrow from the frame.
pub(crate) fn own_plan(plan: PlanUpdated<'_>) -> PlanUpdated<'static> {
    plan.own()
}

/// A copy of the questions that does not borrow from the frame.
pub(crate) fn own_questions(questions: Vec<Question<'_>>) -> Vec<Question<'static>> {
    questions.own()
}

/// A copy of what is known of a session that does not borrow from the frame.
pub(crate) fn own_session(session: SessionStarted<'_>) -> SessionStarted<'static> {
    session.own()
}
