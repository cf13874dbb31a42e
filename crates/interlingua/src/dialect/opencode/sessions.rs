//! The sessions of a server: the one that is read, and those of its sub-agents.

use crate::json::Text;

/// The session that a record belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The session that is read, or that of a sub-agent, by its position in [`Sessions`].
    Session(usize),
    /// Another session of the same server.
    Other,
}

/// The sessions whose records are read. The first is the main one.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    states: Vec<SessionState>,
}

/// A session, and its current message.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    pub(super) session: String,
    /// The call that spawned it.
    pub(super) call: Option<Text<'static>>,
    /// The id of the last message of the user.
    pub(super) user_message: String,
    /// The id of the last message of the model.
    pub(super) message: String,
    /// The message is not complete.
    pub(super) message_open: bool,
    /// The message is the summary that replaces the conversation.
    pub(super) is_summary: bool,
    /// A request has started and not finished.
    pub(super) step_open: bool,
    /// The number of retries of the request.
    pub(super) retries: u64,
    /// The index of the next block in the message.
    pub(super) next_index: u64,
    pub(super) model: String,
}

impl Sessions {
    /// The session that a record belongs to. The first session of the stream is the main one, and
    /// records without a session belong to it.
    pub(super) fn owner_of(&mut self, session: Option<&Text<'_>>) -> Owner {
        let Some(session) = session else {
            return if self.states.is_empty() { Owner::Other } else { Owner::Session(0) };
        };
        let at = self.states.iter().position(|session_state| *session == *session_state.session);
        match at {
            Some(at) => Owner::Session(at),
            None if self.states.is_empty() => {
                self.add(session, None);
                Owner::Session(0)
            }
            None => Owner::Other,
        }
    }

    /// Whether no session is known yet.
    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Adds the session of a sub-agent, or corrects the call that spawned it.
    pub(super) fn set_child(&mut self, session: &Text<'_>, call: &str) {
        let call = Text::from(call.to_owned());
        match self.states.iter_mut().find(|session_state| *session == *session_state.session) {
            Some(session_state) => session_state.call = Some(call),
            None => self.add(session, Some(call)),
        }
    }

    fn add(&mut self, session: &Text<'_>, call: Option<Text<'static>>) {
        let session = session.to_plain().into_owned();
        self.states.push(SessionState { session, call, ..SessionState::default() });
    }

    pub(super) fn get(&self, at: usize) -> Option<&SessionState> {
        self.states.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut SessionState> {
        self.states.get_mut(at)
    }

    /// The call that spawned the agent of this session.
    pub(super) fn parent(&self, at: usize) -> Option<Text<'static>> {
        self.get(at).and_then(|session_state| session_state.call.clone())
    }
}

impl SessionState {
    /// Begins a message of the model.
    pub(super) fn begin_message(&mut self, message: &Text<'_>) {
        self.message.clear();
        self.message.push_str(&message.to_plain());
        self.next_index = 0;
    }
}
