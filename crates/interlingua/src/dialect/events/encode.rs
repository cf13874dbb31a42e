//! Encodes Interlingua's own events.

use crate::dialect::{EncodeOptions, Encoder, Output, Withdraws};
use crate::event::{Data, Event};

/// The encoder of `events`.
#[derive(Debug, Clone)]
pub struct EventsEncoder;

impl EventsEncoder {
    /// An encoder with the caller's options.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self
    }
}

impl Encoder for EventsEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        if let Data::SessionUpdated(update) = &event.data
            && update.relay.as_ref().is_some_and(|relay| relay.token.reveal().is_some())
        {
            out.lost("secrets");
        }
        out.write_entry(event);
    }

    fn withdraws(&self) -> Withdraws {
        Withdraws::AnyBlock
    }

    fn writes_replays(&self) -> bool {
        true
    }

    fn writes_host_state(&self) -> bool {
        true
    }

    fn writes_silent_records(&self) -> bool {
        true
    }
}
