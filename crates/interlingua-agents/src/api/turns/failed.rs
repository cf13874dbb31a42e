//! What follows a failed request: the same one in another form or after a delay, a request for a
//! summary, or the end of the turn.

use interlingua::event::ErrorClass;

use super::{AgentLoop, Next, NextAttempt};
use crate::api::compaction::LONGEST;
use crate::api::failure::Failure;
use crate::api::history::Record;

const REASONING_REJECTED: &str =
    "the provider does not accept the reasoning of earlier answers any more, so it is dropped";

/// What is added to the error of an overflow.
const NOTHING_OLDER: &str = " (there is nothing older that --compact could summarise)";

impl AgentLoop {
    /// A request failed, or its response was cut off. `jitter` is a random number below 1.
    pub(crate) fn failed(
        &mut self,
        failure: Failure,
        continuation: Option<String>,
        jitter: f64,
    ) -> Next {
        match self.after_failure(failure, continuation, jitter) {
            Next::Fail(failure) => Next::Fail(failure),
            again => self.unless_limited(again),
        }
    }

    fn after_failure(
        &mut self,
        mut failure: Failure,
        continuation: Option<String>,
        jitter: f64,
    ) -> Next {
        // A request that has another form or another history begins another response.
        self.turn.continuation = None;
        if failure.class == ErrorClass::BadRequest
            && let Some(field) = self.api.rejected_field(&failure.message)
            && !self.rejected.contains(&field)
        {
            self.rejected.push(field);
            return self.adapted(failure, field.notice());
        }
        if failure.class == ErrorClass::BadRequest
            && self.api.rejects_reasoning(&failure.message)
            && self.history.native_answers().next().is_some()
        {
            self.history.record(Record::ReasoningDropped);
            self.forget_messages();
            return self.adapted(failure, Some(REASONING_REJECTED));
        }
        if failure.class == ErrorClass::ContextOverflow && self.settings.compacts {
            if self.history.to_summarise(LONGEST).is_some() {
                self.turn.attempt = 1;
                self.forget_shortenings();
                return Next::Compact(failure);
            }
            failure.message.push_str(NOTHING_OLDER);
        }
        match self.next_attempt(&failure, jitter) {
            Some(retry) => {
                let continues = continuation.is_some();
                if !continues {
                    self.turn.idle_continuations = 0;
                }
                self.turn.continuation = continuation;
                Next::Retry(NextAttempt { continues, ..retry })
            }
            None => Next::Fail(failure),
        }
    }

    pub(super) fn adapted(&mut self, failure: Failure, notice: Option<&'static str>) -> Next {
        self.turn.attempt += 1;
        let of = self.settings.retries.attempts;
        Next::Adapted { failure, notice, attempt: self.turn.attempt, of }
    }

    /// When a failed request is sent again; `None` if it is not.
    pub(super) fn next_attempt(&mut self, failure: &Failure, jitter: f64) -> Option<NextAttempt> {
        let delay = self.settings.retries.delay(failure, self.turn.attempt, jitter)?;
        self.turn.attempt += 1;
        Some(NextAttempt {
            failure: failure.clone(),
            delay,
            attempt: self.turn.attempt,
            of: self.settings.retries.attempts,
            continues: false,
        })
    }
}
