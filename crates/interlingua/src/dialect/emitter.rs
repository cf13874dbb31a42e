//! Emits the events of one record, with what they have in common.

use super::EventSink;
use super::decode::{Own, unknown};
use crate::event::{Data, Event, Native};
use crate::json::{Json, Text};

/// Emits the events of one record: all of them get its parent call and its time.
pub(crate) struct Emitter<'s, 'a> {
    pub(crate) sink: &'s mut dyn EventSink,
    own: Own<'a>,
    /// The call whose sub-agent the record comes from.
    pub(crate) parent: Option<Text<'a>>,
    /// The time that the record states.
    pub(crate) time: Option<Json<'a>>,
    /// An event was emitted.
    pub(crate) emitted: bool,
}

impl<'s, 'a> Emitter<'s, 'a> {
    pub(crate) fn new(own: Own<'a>, sink: &'s mut dyn EventSink) -> Self {
        Self { sink, own, parent: None, time: None, emitted: false }
    }

    /// An emitter for events that no record causes, such as those at the end of the input.
    pub(crate) fn without_record(sink: &'s mut dyn EventSink) -> Self {
        Self::new(Own("null"), sink)
    }

    /// The record that causes the events.
    pub(crate) fn own(&self) -> Own<'a> {
        self.own
    }

    #[must_use]
    pub(crate) fn within(mut self, parent: Option<Text<'a>>) -> Self {
        self.parent = parent;
        self
    }

    #[must_use]
    pub(crate) fn at(mut self, time: Option<Json<'a>>) -> Self {
        self.time = time;
        self
    }

    pub(crate) fn emit<'e>(&mut self, data: impl Into<Data<'e>>) {
        self.emitted = true;
        let parent = self.parent.as_ref().map(Text::borrowed);
        let time = self.time.as_ref().map(Json::borrowed);
        self.sink.event(Event::new(data.into()).within(parent).at(time));
    }

    /// Emits the record as one that is understood and has no event of its own.
    pub(crate) fn native(&mut self, name: impl Into<Text<'a>>) {
        let raw = self.own.json();
        self.emit(Native { name: name.into(), raw });
    }

    /// As [`Emitter::native`], for a record that holds a secret.
    pub(crate) fn native_without_text(&mut self, name: &'static str) {
        self.emit(Native { name: Text::plain(name), raw: None });
    }

    /// Emits the record as one of an unknown type.
    pub(crate) fn unknown(&mut self, name: impl Into<Option<Text<'a>>>) {
        let data = unknown(name.into(), self.own);
        self.emit(data);
    }

    pub(crate) fn is_nested(&self) -> bool {
        self.parent.is_some()
    }
}
