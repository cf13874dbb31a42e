//! Ensures that every message that starts also ends.

use super::stream::{Emit, Stream};
use crate::event::{Data, Event, MessageEnded, Reason};
use crate::json::Text;

/// The number of messages that can be open at once. Usually one is; above the limit, the oldest is
/// ended.
const MAX_OPEN: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Messages {
    open: Vec<OpenMessage>,
}

/// A message that has started, and the call of the sub-agent that it comes from.
#[derive(Debug)]
struct OpenMessage {
    parent: Option<Text<'static>>,
    message: Option<Text<'static>>,
}

impl Messages {
    pub(super) fn push(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        match &event.data {
            Data::MessageStarted(started)
                if self.find(&event.parent, &started.message).is_none() =>
            {
                if self.open.len() == MAX_OPEN {
                    self.open.remove(0).end(Reason::Implied, stream, emit);
                }
                self.open.push(OpenMessage {
                    parent: event.parent.clone().map(Text::into_owned),
                    message: started.message.clone().map(Text::into_owned),
                });
            }
            Data::MessageEnded(ended) => {
                if let Some(at) = self.find(&event.parent, &ended.message) {
                    self.open.remove(at);
                }
            }
            _ => {}
        }
        stream.emit_decoded(event, emit);
    }

    /// Whether the main agent is in the middle of a message.
    pub(super) fn is_open(&self) -> bool {
        self.open.iter().any(|open| open.parent.is_none())
    }

    /// Ends what is still open.
    pub(super) fn end_turn(&mut self, reason: &Reason, stream: &mut Stream, emit: Emit<'_>) {
        for open in self.open.drain(..) {
            open.end(reason.clone(), stream, emit);
        }
    }

    fn find(&self, parent: &Option<Text<'_>>, message: &Option<Text<'_>>) -> Option<usize> {
        self.open.iter().rposition(|open| open.parent == *parent && open.message == *message)
    }
}

impl OpenMessage {
    fn end(self, reason: Reason, stream: &mut Stream, emit: Emit<'_>) {
        let ended = MessageEnded { message: self.message, ..MessageEnded::default() };
        stream.emit_added(&mut Event::new(ended).within(self.parent), reason, emit);
    }
}
