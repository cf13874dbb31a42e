//! The models of messages that are not from the session's model: sub-agents have other models, and
//! some agents change theirs within a turn.

use std::collections::VecDeque;

use super::session;
use crate::event::{MessageStarted, SessionStarted};
use crate::json::Text;

/// The number of remembered messages: a few sub-agents may stream at the same time.
const MAX_MESSAGES: usize = 16;

/// The ids of messages from another model, with that model; the newest is first.
#[derive(Debug, Clone, Default)]
pub(super) struct Models(VecDeque<(Text<'static>, Text<'static>)>);

impl Models {
    /// Remembers the model of a message.
    pub(super) fn begin(&mut self, started: &MessageStarted<'_>, facts: &SessionStarted<'static>) {
        let (Some(message), Some(model)) = (&started.message, &started.model) else { return };
        if *model != *session::model(facts) {
            self.0.truncate(MAX_MESSAGES - 1);
            self.0.push_front((message.clone().into_owned(), model.clone().into_owned()));
        }
    }

    /// The model of a message.
    #[inline]
    pub(super) fn of<'m>(
        &'m self,
        message: Option<&Text<'_>>,
        facts: &'m SessionStarted<'static>,
    ) -> &'m Text<'static> {
        let other = self.0.iter().find(|(id, _)| message == Some(id));
        other.map_or_else(|| session::model(facts), |(_, model)| model)
    }

    /// Forgets all messages.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
