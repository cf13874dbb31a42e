//! The errors of a turn that may be what ends it, until that is known.

use crate::event::Error;
use crate::json::{Json, Text};

/// How many are kept.
const KEPT: usize = 100;

/// Errors of the turn at hand that nobody was told of yet.
#[derive(Debug, Default)]
pub(crate) struct HeldErrors(Vec<(Text<'static>, Json<'static>)>);

impl HeldErrors {
    /// Keeps an error that may be the cause; `false` where it is to be told at once.
    pub(crate) fn hold(&mut self, error: &Error<'_>, payload: &Json<'_>) -> bool {
        let hold = error.fatal && self.0.len() < KEPT;
        if hold {
            self.0.push((error.message.clone().into_owned(), payload.clone().into_owned()));
        }
        hold
    }

    /// The errors that the cause of the turn's end does not tell.
    pub(crate) fn besides(&mut self, cause: Option<&Text<'_>>) -> Vec<Json<'static>> {
        let cause = cause.map(Text::to_plain).unwrap_or_default();
        let others = self.0.drain(..).filter(|(message, _)| !cause.contains(&*message.to_plain()));
        others.map(|(_, payload)| payload).collect()
    }
}
