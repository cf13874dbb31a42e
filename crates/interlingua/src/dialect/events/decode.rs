//! Reads our own events.

use crate::dialect::{Decoder, each_record, unknown};
use crate::event::{Data, Event, Reason, Sink, TextFlaw, Unparsed};
use crate::framing::FrameText;
use crate::json::Text;
use crate::json::record;

/// The reader of `events`.
#[derive(Debug, Default)]
pub struct EventsDecoder;

record! {
    /// What all events have; the fields of a kind are read from the same record.
    struct Envelope<'a> {
        kind: text "type",
        parent: text "parent",
        time: json "time",
        synthetic: text "synthetic",
    }
}

impl Decoder for EventsDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn Sink) {
        each_record(frame, sink, |envelope: &mut Envelope<'_>, own, sink| {
            let Envelope { kind, parent, time, synthetic } = std::mem::take(envelope);
            let data = match Data::read_payload(kind.as_ref().map_or("", Text::body), own.0) {
                Some(Ok(data)) => data,
                None => unknown(kind, own),
                Some(Err(error)) => {
                    sink.unreadable(Unparsed {
                        flaw: TextFlaw::NotAnObject,
                        message: Text::from(format!("this is not an event of its kind: {error}")),
                        text: Some(Text::plain(own.0)),
                    });
                    return;
                }
            };
            let mut event = Event::new(data).within(parent).at(time);
            event.source.synthetic = synthetic.map(|reason| Reason::from(reason.body()));
            sink.event(event);
        });
    }
}
