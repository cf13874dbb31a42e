//! Where the events of one message go, with what they have in common.

use crate::dialect::EventSink;
use crate::dialect::decode::Own;
use crate::dialect::unknown;
use crate::event::{Data, Event, Native};
use crate::json::{Json, Text};

pub(super) struct Teller<'s, 'a> {
    sink: &'s mut dyn EventSink,
    own: Own<'a>,
    time: Option<Json<'a>>,
    /// The call whose sub-agent speaks.
    pub(super) parent: Option<Text<'static>>,
    /// What is told is of the past.
    pub(super) replay: bool,
}

impl<'s, 'a> Teller<'s, 'a> {
    pub(super) fn new(sink: &'s mut dyn EventSink, own: Own<'a>, time: Option<Json<'a>>) -> Self {
        Self { sink, own, time, parent: None, replay: false }
    }

    pub(super) fn tell<'e>(&mut self, data: impl Into<Data<'e>>) {
        let parent = self.parent.as_ref().map(Text::borrowed);
        let time = self.time.as_ref().map(Json::borrowed);
        self.sink.event(Event::new(data.into()).within(parent).at(time));
    }

    /// A message that is understood and tells nothing, or nothing new.
    pub(super) fn native(&mut self, name: impl Into<Text<'a>>) {
        let raw = self.own.json();
        self.tell(Native { name: name.into(), raw });
    }

    /// As [`Teller::native`], for a message that holds a secret.
    pub(super) fn native_without_text(&mut self, name: &'static str) {
        self.tell(Native { name: Text::plain(name), raw: None });
    }

    /// A message that nobody knows.
    pub(super) fn unknown(&mut self, name: Text<'a>) {
        let data = unknown(Some(name), self.own);
        self.tell(data);
    }

    pub(super) fn is_nested(&self) -> bool {
        self.parent.is_some()
    }
}
