//! Writes our own events.

use super::VERSION;
use crate::dialect::{EncodeOptions, Encoder, Output, Withdraws};
use crate::event::{Data, Event};
use crate::json::write;

/// The writer of `events`.
#[derive(Debug)]
pub struct EventsEncoder;

impl EventsEncoder {
    /// A writer as the caller wants it.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self
    }
}

impl Encoder for EventsEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        let Ok(payload) = event.data.serialize_payload() else {
            out.lost("events that cannot be written");
            return;
        };
        if let Data::SessionUpdated(update) = &event.data
            && update.relay.as_ref().is_some_and(|relay| relay.token.reveal().is_some())
        {
            out.lost("secrets");
        }
        let mut record = write::Object::open(out.bytes());
        record.number("interlingua", VERSION).string("type", event.data.kind());
        record.number("sequence", event.sequence).number("line", event.source.line);
        let bytes = record.name("bytes");
        bytes.push(b'[');
        write::number(bytes, event.source.bytes.start);
        bytes.push(b',');
        write::number(bytes, event.source.bytes.end);
        bytes.push(b']');
        if let Some(reason) = &event.source.synthetic {
            record.string("synthetic", reason.as_str());
        }
        record.text_if("parent", event.parent.as_ref()).json_if("time", event.time.as_ref());
        record.fields_of(&payload);
        record.end();
    }

    fn withdraws(&self) -> Withdraws {
        Withdraws::AnyBlock
    }

    fn tells_the_past(&self) -> bool {
        true
    }
}
