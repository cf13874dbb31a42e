//! Which model said a message, where it is another than that of the session: sub-agents have models
//! of their own, and some agents change theirs in the middle of a turn.

use std::collections::VecDeque;

use super::session;
use crate::event::{MessageStarted, SessionStarted};
use crate::json::Text;

/// How many messages are remembered: a few sub-agents may speak at the same time.
const REMEMBERED: usize = 16;

/// The messages that another model said, the last one first.
#[derive(Debug, Clone, Default)]
pub(super) struct Models(VecDeque<(Text<'static>, Text<'static>)>);

impl Models {
    /// Notes which model says a message.
    pub(super) fn begin(&mut self, started: &MessageStarted<'_>, facts: &SessionStarted<'static>) {
        let (Some(message), Some(model)) = (&started.message, &started.model) else { return };
        if *model != *session::model(facts) {
            self.0.truncate(REMEMBERED - 1);
            self.0.push_front((message.clone().into_owned(), model.clone().into_owned()));
        }
    }

    /// The model that said a message.
    #[inline]
    pub(super) fn of<'m>(
        &'m self,
        message: Option<&Text<'_>>,
        facts: &'m SessionStarted<'static>,
    ) -> &'m Text<'static> {
        let other = self.0.iter().find(|(id, _)| message == Some(id));
        other.map_or_else(|| session::model(facts), |(_, model)| model)
    }

    /// Forgets them all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
