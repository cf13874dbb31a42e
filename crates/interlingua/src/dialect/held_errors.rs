//! Holds back the errors that may be the cause of a turn's end.
//!
//! If an agent reports an error and then ends the turn because of it, the two are one report, and
//! the end contains it. If the agent continues, the error is written on its own.

use crate::event::Error;
use crate::json::{Json, Text};

/// The number of errors that are held back.
const MAX_HELD: usize = 100;

/// The errors of the current turn that were not written yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldErrors(Vec<Held>);

#[derive(Debug, Clone)]
struct Held {
    message: Text<'static>,
    payload: Json<'static>,
    /// The agent reports that the turn cannot continue, so only its end follows.
    fatal: bool,
}

impl HeldErrors {
    /// Holds back an error that may be the cause; `false` if it has to be written at once.
    pub(crate) fn hold(&mut self, error: &Error<'_>, payload: &Json<'_>) -> bool {
        let hold = self.0.len() < MAX_HELD;
        if hold {
            let message = error.message.clone().into_owned();
            let payload = payload.clone().into_owned();
            self.0.push(Held { message, payload, fatal: error.fatal });
        }
        hold
    }

    /// Removes the errors that did not end the turn, since the agent continues.
    pub(crate) fn take_survived(&mut self) -> Vec<Json<'static>> {
        self.0.extract_if(.., |held| !held.fatal).map(|held| held.payload).collect()
    }

    /// Removes the errors that the cause of the turn's end does not contain.
    pub(crate) fn take_unreported(&mut self, cause: Option<&Text<'_>>) -> Vec<Json<'static>> {
        let cause = cause.map(Text::to_plain).unwrap_or_default();
        let others = self.0.drain(..).filter(|held| !cause.contains(&*held.message.to_plain()));
        others.map(|held| held.payload).collect()
    }
}
