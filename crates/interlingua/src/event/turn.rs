//! A turn: one prompt and all that the agent does about it.

use super::failure::ErrorClass;
use super::open::open_enum;
use super::payload::{owned, payload};
use super::usage::{Cost, Usage};
use crate::json::{Json, Text};

payload! {
    /// The agent began to work.
    pub struct TurnStarted<'a> {
        /// The agent's own id for the turn.
        pub id: Option<Text<'a>>,
        /// The turn is of the past, told again: nothing of it happens now.
        pub replay: bool,
    }
}

payload! {
    /// The agent is done, one way or another.
    pub struct TurnEnded<'a> {
        /// How it ended.
        pub outcome: Outcome,
        /// Why, for a turn that did not complete: for a person to read.
        pub cause: Option<Text<'a>>,
        /// What kind of thing went wrong, where that is known.
        pub class: Option<ErrorClass>,
        /// What the agent calls the end, in its own word.
        pub reason: Option<Text<'a>>,
        /// Why the model stopped, in its own word.
        pub stop_reason: Option<Text<'a>>,
        /// What went wrong on the way; of a turn that failed also what was tried again.
        pub errors: Vec<Text<'a>>,
        /// The HTTP status of the request that failed.
        pub http_status: Option<u64>,
        /// The agent's last word.
        pub final_text: Option<Text<'a>>,
        /// An answer in a shape that was asked for.
        pub structured: Option<Json<'a>>,
        /// The tokens of this turn; of one that the grammar ends, those that its requests told.
        pub usage: Option<Usage<'a>>,
        /// The tokens of this turn for each model, where the agent says so; those of other agents
        /// that it started may be among them, and not in `usage`.
        pub by_model: Vec<Usage<'a>>,
        /// What this turn cost.
        pub cost: Option<Cost<'a>>,
        /// How long it took.
        pub duration_ms: Option<u64>,
        /// How long the model took.
        pub api_duration_ms: Option<u64>,
        /// How many steps the turn had, as the agent counts them.
        pub steps: Option<u64>,
        /// The tool calls that were refused, as the agent lists them.
        pub denials: Option<Json<'a>>,
        /// The turn is of the past, told again; the grammar repeats it.
        pub replay: bool,
    }
}

payload! {
    /// Something in the user's name.
    pub struct UserMessage<'a> {
        /// What was said.
        pub text: Text<'a>,
        /// The agent said it itself, to keep the model going.
        pub injected: bool,
        /// The agent repeats what it was given.
        pub replay: bool,
    }
}

payload! {
    /// Somebody stopped the turn.
    pub struct Interrupted<'a> {
        /// What the agent says of it.
        pub text: Option<Text<'a>>,
    }
}

payload! {
    /// The conversation was made shorter.
    pub struct Compacted<'a> {
        /// What led to it.
        pub trigger: Option<Text<'a>>,
        /// The tokens before.
        pub tokens_before: Option<u64>,
        /// The tokens after.
        pub tokens_after: Option<u64>,
        /// All that the agent says of it.
        pub details: Option<Json<'a>>,
    }
}

open_enum! {
    /// How a turn ended.
    #[derive(Default)]
    pub enum Outcome {
        /// The agent finished.
        Completed = "completed",
        /// It failed.
        #[default]
        Failed = "failed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// It took too long.
        TimedOut = "timed_out",
        /// The model would not.
        Refused = "refused",
        /// A limit on tokens, turns or money was reached.
        LimitReached = "limit_reached",
        /// The client has to run a tool before the agent goes on.
        WaitingForClient = "waiting_for_client",
    }
}

owned!(Outcome);
