//! The sessions that a server tells of: the one that is read, and those of its sub-agents.

use crate::json::Text;

/// Whose record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Of the session that is read, or of a sub-agent: its place among the speakers.
    Speaker(usize),
    /// Of another session of the same server.
    Other,
}

/// Those who speak. The first is the session that is read.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    speakers: Vec<Speaker>,
}

/// A session, and the message at hand.
#[derive(Debug, Default)]
pub(super) struct Speaker {
    pub(super) session: String,
    /// The call that started it.
    pub(super) call: Option<Text<'static>>,
    /// The last message of the user.
    pub(super) user: String,
    /// The last message of the model.
    pub(super) message: String,
    /// Its message is not over.
    pub(super) speaking: bool,
    /// Its message is the summary that replaces the conversation.
    pub(super) summary: bool,
    /// A request was made, and has not finished.
    pub(super) stepping: bool,
    /// How often it was made again.
    pub(super) retries: u64,
    /// The place of the next block in the message.
    pub(super) next: u64,
    pub(super) model: String,
}

impl Sessions {
    /// Whose record this is; the first session that is told of is the one that is read. A record that
    /// names none is taken for one of that.
    pub(super) fn whose(&mut self, session: Option<&Text<'_>>) -> Whose {
        let Some(session) = session else {
            return if self.speakers.is_empty() { Whose::Other } else { Whose::Speaker(0) };
        };
        let at = self.speakers.iter().position(|speaker| *session == *speaker.session);
        match at {
            Some(at) => Whose::Speaker(at),
            None if self.speakers.is_empty() => {
                self.add(session, None);
                Whose::Speaker(0)
            }
            None => Whose::Other,
        }
    }

    /// Whether no session was told of yet.
    pub(super) fn none(&self) -> bool {
        self.speakers.is_empty()
    }

    /// Makes the session of a sub-agent known, or corrects which call started it.
    pub(super) fn child(&mut self, session: &Text<'_>, call: &str) {
        let call = Text::from(call.to_owned());
        match self.speakers.iter_mut().find(|speaker| *session == *speaker.session) {
            Some(speaker) => speaker.call = Some(call),
            None => self.add(session, Some(call)),
        }
    }

    fn add(&mut self, session: &Text<'_>, call: Option<Text<'static>>) {
        let session = session.to_plain().into_owned();
        self.speakers.push(Speaker { session, call, ..Speaker::default() });
    }

    pub(super) fn get(&self, at: usize) -> Option<&Speaker> {
        self.speakers.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Speaker> {
        self.speakers.get_mut(at)
    }

    /// The call that started the agent whose session this is.
    pub(super) fn parent(&self, at: usize) -> Option<Text<'static>> {
        self.get(at).and_then(|speaker| speaker.call.clone())
    }
}

impl Speaker {
    /// The model begins a message.
    pub(super) fn begin(&mut self, message: &Text<'_>) {
        self.message.clear();
        self.message.push_str(&message.to_plain());
        self.next = 0;
    }
}
