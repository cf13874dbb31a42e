//! What every reader shares: records out of a frame, and what is said of the rest.

use crate::event::{
    Data, Event, Log, LogStream, TextFlaw, ToolEnded, ToolStarted, Unknown, Unparsed,
};
use crate::framing::FrameText;
use crate::json::read::{self, Flaw, Record};
use crate::json::{Json, Text};

/// A reader of one protocol.
///
/// It keeps what one record must know of the ones before it, and nothing of order: it may say a
/// thing again, and the grammar will drop it.
pub trait Decoder: Send {
    /// Reads one frame.
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink);

    /// Sets what the ids that the decoder makes have to contain, before the first frame: so they are
    /// those of no other stream.
    fn set_id_tag(&mut self, _tag: &str) {}

    /// Says what is still to be said when the input ends.
    fn finish(&mut self, _sink: &mut dyn EventSink) {}
}

/// Where a decoder puts what it reads.
pub trait EventSink {
    /// Takes the next event.
    fn event(&mut self, event: Event<'_>);

    /// Takes what could not be read.
    fn unreadable(&mut self, unparsed: Unparsed<'_>) {
        self.event(Event::new(unparsed));
    }

    /// Takes the text of the record that the next events come from.
    fn record(&mut self, _text: &str) {}

    /// Notes that the current record is left out on purpose, by the rule that is named.
    fn ignored(&mut self, _rule: &'static str) {}

    /// Notes that the decoder keeps what the current record says, for an event that a later one completes.
    fn deferred(&mut self) {}

    /// Whether a record that both makes and answers a call repeats one that was read before. If it
    /// does, nothing of it is to be emitted.
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

/// Reads each record of a frame; there is one as a rule. What is no record becomes an event too.
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
    /// The record as a value that is carried.
    pub(crate) fn json(self) -> Option<Json<'a>> {
        Some(Json::read_from(self.0))
    }
}

/// A record of a kind that nobody knows.
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
