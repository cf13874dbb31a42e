//! Decodes Interlingua's own events.

use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::entry::form::{Envelope, FormError};
use crate::event::{Event, TextFlaw, Unparsed};
use crate::framing::FrameText;
use crate::json::Text;

/// The decoder of `events`.
#[derive(Debug, Default)]
pub struct EventsDecoder;

impl Decoder for EventsDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |envelope: &mut Envelope<'_>, own, sink| {
            match envelope.event(own.0) {
                Ok(event) => sink.event(event),
                Err(FormError::UnknownKind) => {
                    sink.event(Event::new(unknown(envelope.kind.take(), own)));
                }
                Err(error) => sink.unreadable(Unparsed {
                    flaw: TextFlaw::NotAnObject,
                    message: Text::from(error.to_string()),
                    text: Some(Text::plain(own.0)),
                }),
            }
        });
    }
}
