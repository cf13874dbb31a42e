//! A turn: one prompt, and the agent's work on it.

use super::failure::ErrorClass;
use super::open::open_enum;
use super::payload::{owned, payload};
use super::usage::{Cost, Usage};
use crate::json::{Json, Text};

payload! {
    /// The agent began to work on a prompt.
    pub struct TurnStarted<'a> {
        /// The agent's own id for the turn.
        pub id: Option<Text<'a>>,
        /// The turn is replayed history: it does not happen now.
        pub replay: bool,
    }
}

payload! {
    /// The agent ended its work on a prompt, successfully or not.
    pub struct TurnEnded<'a> {
        /// The outcome.
        pub outcome: Outcome,
        /// Why the turn did not complete, for a person to read.
        pub cause: Option<Text<'a>>,
        /// The class of the error, if it is known.
        pub class: Option<ErrorClass>,
        /// The outcome, as the agent names it.
        pub reason: Option<Text<'a>>,
        /// The stop reason, as the provider names it.
        pub stop_reason: Option<Text<'a>>,
        /// The errors of the turn. Errors whose request was retried are included only if the turn
        /// failed.
        pub errors: Vec<Text<'a>>,
        /// The HTTP status of the request that failed.
        pub http_status: Option<u64>,
        /// The agent's final text.
        pub final_text: Option<Text<'a>>,
        /// The structured output that was requested.
        pub structured: Option<Json<'a>>,
        /// The tokens of this turn. If the grammar adds the end, it is the sum of the reported
        /// requests.
        pub usage: Option<Usage<'a>>,
        /// The tokens of this turn for each model, if the agent reports them. Those of sub-agents
        /// may be included here and not in `usage`.
        pub by_model: Vec<Usage<'a>>,
        /// The cost of this turn.
        pub cost: Option<Cost<'a>>,
        /// The duration of the turn.
        pub duration_ms: Option<u64>,
        /// The agent did not report the duration: it is the time between the arrival of the start and
        /// of the end of the turn; completed by the grammar.
        pub duration_measured: bool,
        /// The duration of the requests to the model.
        pub api_duration_ms: Option<u64>,
        /// The number of steps, as the agent counts them.
        pub steps: Option<u64>,
        /// The tool calls that were denied, as the agent lists them.
        pub denials: Option<Json<'a>>,
        /// The turn is replayed history; completed by the grammar.
        pub replay: bool,
        /// The response is only the beginning of one that the client has to continue with another
        /// request. Until then, nothing of it is final.
        pub to_be_continued: bool,
    }
}

impl TurnEnded<'_> {
    /// The [`reason`](Self::reason) of a response whose calls all have arguments that are no JSON
    /// object, so that none of them can be run.
    pub const MALFORMED_CALLS: &'static str = "malformed_calls";

    /// Whether the response ended properly, and none of its calls can be run.
    pub fn has_only_malformed_calls(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| *reason == *Self::MALFORMED_CALLS)
    }
}

payload! {
    /// A message of the user, or one that the agent added in the user's name.
    pub struct UserMessage<'a> {
        /// The content of the message.
        pub text: Text<'a>,
        /// The agent added the message itself, so that the model continues.
        pub injected: bool,
        /// The agent echoes its input.
        pub replay: bool,
    }
}

payload! {
    /// The turn waits until the client has run tools. It goes on when the client has answered.
    pub struct Suspended<'a> {
        /// The ids of the calls that the client has not answered.
        pub calls: Vec<Text<'a>>,
    }
}

payload! {
    /// The turn was interrupted.
    pub struct Interrupted<'a> {
        /// The agent's message.
        pub text: Option<Text<'a>>,
    }
}

payload! {
    /// The conversation was compacted.
    pub struct Compacted<'a> {
        /// The trigger.
        pub trigger: Option<Text<'a>>,
        /// The number of tokens before.
        pub tokens_before: Option<u64>,
        /// The number of tokens after.
        pub tokens_after: Option<u64>,
        /// The agent's whole report.
        pub details: Option<Json<'a>>,
    }
}

open_enum! {
    /// The outcome of a turn.
    #[derive(Default)]
    pub enum Outcome {
        /// It completed.
        Completed = "completed",
        /// It failed.
        #[default]
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It timed out.
        TimedOut = "timed_out",
        /// The model refused.
        Refused = "refused",
        /// A limit on tokens, turns or cost was reached.
        LimitReached = "limit_reached",
        /// The client has to run a tool before the agent can continue.
        WaitingForClient = "waiting_for_client",
    }
}

owned!(Outcome);
