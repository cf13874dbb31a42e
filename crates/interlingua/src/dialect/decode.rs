//! What all decoders share: reading the records of a frame, and the events for text that is not a
//! record.

use crate::event::{
    Data, Event, Log, LogStream, TextFlaw, ToolEnded, ToolStarted, Unknown, Unparsed,
};
use crate::framing::FrameText;
use crate::json::read::{self, Flaw, Record};
use crate::json::{Json, Text};

/// The decoder of one protocol.
///
/// It keeps the state that a record needs from earlier ones, but no order: it may emit an event
/// again, and the grammar drops the repeat.
pub trait Decoder: Send {
    /// Reads one frame.
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink);

    /// Sets the tag that the decoder's generated ids contain, before the first frame. It
    /// distinguishes them from those of other streams.
    fn set_id_tag(&mut self, _tag: &str) {}

    /// Takes the `[DONE]` with which some servers end a stream of events.
    fn done(&mut self, _sink: &mut dyn EventSink) {}

    /// Emits what is still held back when the input ends.
    fn finish(&mut self, _sink: &mut dyn EventSink) {}
}

/// Receives what a decoder reads.
pub trait EventSink {
    /// Takes the next event.
    fn event(&mut self, event: Event<'_>);

    /// Takes text that could not be read.
    fn unreadable(&mut self, unparsed: Unparsed<'_>) {
        self.event(Event::new(unparsed));
    }

    /// Takes the text of the record that the next events come from.
    fn record(&mut self, _text: &str) {}

    /// Notes that the current record is left out on purpose, by the named rule.
    fn ignored(&mut self, _rule: &'static str) {}

    /// Notes that the decoder keeps the content of the current record for an event that a later
    /// record completes.
    fn deferred(&mut self) {}

    /// Whether a record that both starts and answers a call repeats an earlier one. If it does, the
    /// decoder must emit nothing for it.
    fn repeats(&mut self, _started: &ToolStarted<'_>, _ended: &ToolEnded<'_>) -> bool {
        false
    }

    /// Whether a call that was read has no answer yet.
    fn has_unanswered_call(&self) -> bool {
        false
    }
}

impl<F: FnMut(Event<'_>)> EventSink for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Reads each record of a frame, which usually has one. Text that is not a record becomes an event
/// too.
pub(crate) fn each_record<'a, R: Record<'a>>(
    frame: &FrameText<'a>,
    sink: &mut dyn EventSink,
    mut take: impl FnMut(&mut R, Own<'a>, &mut dyn EventSink),
) {
    let mut rest = frame.text;
    loop {
        let mut record = R::default();
        match read::record(rest, &mut record) {
            Ok((own, after)) => {
                sink.record(own);
                take(&mut record, Own(own), sink);
                rest = after.trim_ascii();
            }
            Err(flaw) => {
                sink.unreadable(unparsed(frame, rest, flaw));
                return;
            }
        }
        if rest.is_empty() {
            return;
        }
        if !rest.starts_with('{') {
            sink.event(Event::new(Log { stream: LogStream::Output, text: Text::plain(rest) }));
            return;
        }
    }
}

/// The text of one record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own<'a>(pub(crate) &'a str);

impl<'a> Own<'a> {
    /// The record as a JSON value.
    pub(crate) fn json(self) -> Option<Json<'a>> {
        Some(Json::read_from(self.0))
    }
}

/// A record of an unknown type.
pub(crate) fn unknown<'a>(name: Option<Text<'a>>, own: Own<'a>) -> Data<'a> {
    Data::from(Unknown { name: name.unwrap_or_default(), raw: own.json() })
}

fn unparsed<'a>(frame: &FrameText<'a>, text: &'a str, flaw: Flaw) -> Unparsed<'a> {
    let (flaw, message) = match flaw {
        Flaw::Incomplete if frame.unterminated => {
            (TextFlaw::Truncated, Text::plain("the input ends in the middle of this record"))
        }
        Flaw::Incomplete => {
            (TextFlaw::NotJson, Text::plain("the line ends in the middle of this record"))
        }
        Flaw::NotAnObject => {
            (TextFlaw::NotAnObject, Text::plain("this is JSON, but a record must be an object"))
        }
        Flaw::OutOfRange { column } => {
            let message =
                format!("the number at column {column} is larger than readers of JSON can hold");
            (TextFlaw::NotJson, Text::from(message))
        }
        Flaw::NotJson { column } => {
            let message = format!("this is not JSON: unexpected character at column {column}");
            (TextFlaw::NotJson, Text::from(message))
        }
    };
    Unparsed { flaw, message, text: Some(Text::plain(text)) }
}
