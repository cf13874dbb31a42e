//! The errors of a turn that may be what ends it, until that is known.
//!
//! An agent that says what went wrong and then ends the turn of it says one thing, not two: the end
//! tells it. Where the agent goes on, the error was something else.

use crate::event::Error;
use crate::json::{Json, Text};

/// How many are kept.
const KEPT: usize = 100;

/// Errors of the turn at hand that nobody was told of yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldErrors(Vec<Held>);

#[derive(Debug, Clone)]
struct Held {
    message: Text<'static>,
    payload: Json<'static>,
    /// The agent says that the turn cannot go on, so that what follows is only its end.
    fatal: bool,
}

impl HeldErrors {
    /// Keeps an error that may be the cause; `false` where it is to be told at once.
    pub(crate) fn hold(&mut self, error: &Error<'_>, payload: &Json<'_>) -> bool {
        let hold = self.0.len() < KEPT;
        if hold {
            let message = error.message.clone().into_owned();
            let payload = payload.clone().into_owned();
            self.0.push(Held { message, payload, fatal: error.fatal });
        }
        hold
    }

    /// The errors that did not end the turn, now that the agent goes on.
    pub(crate) fn outlived(&mut self) -> Vec<Json<'static>> {
        self.0.extract_if(.., |held| !held.fatal).map(|held| held.payload).collect()
    }

    /// The errors that the cause of the turn's end does not tell.
    pub(crate) fn besides(&mut self, cause: Option<&Text<'_>>) -> Vec<Json<'static>> {
        let cause = cause.map(Text::to_plain).unwrap_or_default();
        let others = self.0.drain(..).filter(|held| !cause.contains(&*held.message.to_plain()));
        others.map(|held| held.payload).collect()
    }
}
