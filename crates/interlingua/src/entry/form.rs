//! The JSON form of events and entries: one flat object, in which the fields of the event follow
//! those of the entry.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Entry, EntryRef, Origin, Raw};
use crate::dialect;
use crate::event::{Data, Event, HostState, Reason};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text, read, record};

/// The version of the form. It changes when a reader of the old form would misread the new one; new
/// kinds of events and new fields do not change it.
pub(crate) const VERSION: u64 = 1;

/// Why text is not the JSON form of an entry or an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormError {
    #[error("this is not a JSON object")]
    NotAnObject,
    #[error("`type` is missing, or names no kind of event")]
    UnknownKind,
    #[error("this is not an event of its kind: {0}")]
    WrongFields(String),
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`raw_record` is not a record of a known dialect")]
    WrongRaw,
}

record! {
    /// The fields that all entries have. Those of the event's kind are read from the same object.
    pub(crate) struct Envelope<'a> {
        kind: text "type",
        sequence: number "sequence",
        received_at: number "received_at",
        epoch: number "epoch",
        line: number "line",
        bytes: json "bytes",
        synthetic: text "synthetic",
        parent: text "parent",
        added: flag "added",
        time: json "time",
        raw: json "raw_record",
    }
}

record! {
    /// The agent's own record, and the name of its dialect.
    struct RawForm<'a> {
        dialect: text "dialect",
        record: json "record",
    }
}

/// Appends the form of an entry, without a line feed.
pub(crate) fn write_entry(out: &mut Bytes, entry: EntryRef<'_>) -> Result<(), serde_json::Error> {
    let mut object = Object::open(out);
    object.number("interlingua", VERSION).string("type", entry.event.data.kind());
    object.number("sequence", entry.sequence);
    if let Some(received_at) = entry.received_at {
        object.number("received_at", received_at);
    }
    if entry.epoch > 0 {
        object.number("epoch", entry.epoch);
    }
    object.number("line", entry.origin.line);
    let bytes = object.name("bytes");
    bytes.push(b'[');
    write::number(bytes, entry.origin.bytes.start);
    bytes.push(b',');
    write::number(bytes, entry.origin.bytes.end);
    bytes.push(b']');
    if entry.origin.added != is_usually_added(entry.event) {
        object.flag("added", entry.origin.added);
    }
    write_event(&mut object, entry.event)?;
    if let Some(raw) = entry.raw {
        object.object("raw_record", |fields| {
            fields.string("dialect", raw.dialect.name).raw("record", raw.record);
        });
    }
    object.close();
    Ok(())
}

/// Whether an event counts as added unless its form states otherwise, as a synthetic one does. The
/// form states only the exceptions: Interlingua's own events that were read from a file, and events
/// that a caller emitted.
fn is_usually_added(event: &Event<'_>) -> bool {
    event.synthetic.is_some()
}

fn write_event(object: &mut Object<'_>, event: &Event<'_>) -> Result<(), serde_json::Error> {
    if let Some(reason) = &event.synthetic {
        object.string("synthetic", reason.as_str());
    }
    object.text_if("parent", event.parent.as_ref()).json_if("time", event.time.as_ref());
    match &event.data {
        // The history of a conversation may have megabytes. It is copied once, and not validated.
        Data::HostState(HostState { name, raw }) => {
            object.raw("name", &serde_json::to_string(name)?).json_if("raw", raw.as_ref());
        }
        data => {
            object.fields_by(|out| data.write_payload(out))?;
        }
    }
    Ok(())
}

impl<'a> Envelope<'a> {
    /// The event of an object, from whose text the fields of its kind are read.
    pub(crate) fn event(&mut self, text: &'a str) -> Result<Event<'a>, FormError> {
        let kind = self.kind.as_ref().map_or("", Text::body);
        let data = match Data::read_payload(kind, text) {
            Some(Ok(data)) => data,
            Some(Err(error)) => return Err(FormError::WrongFields(error.to_string())),
            None => return Err(FormError::UnknownKind),
        };
        let reason = self.synthetic.take().map(|reason| Reason::from(&*reason.to_plain()));
        Ok(Event::new(data).within(self.parent.take()).at(self.time.take()).because(reason))
    }

    fn entry(mut self, text: &'a str) -> Result<Entry, FormError> {
        let [start, end] = self.bytes.take().and_then(|bytes| bytes.read()).unwrap_or_default();
        let event = self.event(text)?.into_owned();
        let added = self.added.unwrap_or_else(|| is_usually_added(&event));
        Ok(Entry {
            sequence: self.sequence.ok_or(FormError::Missing("sequence"))?,
            received_at: self.received_at,
            epoch: self.epoch.unwrap_or(0),
            origin: Origin { line: self.line.unwrap_or(0), bytes: start..end, added },
            raw: self.raw.take().map(|raw| read_raw(&raw)).transpose()?,
            event,
        })
    }
}

fn read_raw(raw: &Json<'_>) -> Result<Raw<'static>, FormError> {
    let form = read::record_of::<RawForm<'_>>(raw).ok_or(FormError::WrongRaw)?;
    let dialect = form.dialect.and_then(|name| dialect::find(&name.to_plain()));
    let record = form.record.filter(Json::is_object);
    match (dialect, record) {
        (Some(dialect), Some(record)) => {
            Ok(Raw { dialect, record: Cow::Owned(record.get().to_owned()) })
        }
        _ => Err(FormError::WrongRaw),
    }
}

fn envelope(text: &str) -> Result<Envelope<'_>, FormError> {
    let mut envelope = Envelope::default();
    match read::record(text, &mut envelope) {
        Ok(_) => Ok(envelope),
        Err(_) => Err(FormError::NotAnObject),
    }
}

/// Serializes JSON text unchanged.
fn serialize_json<S: Serializer>(bytes: Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    let text = String::from_utf8(bytes).map_err(serde::ser::Error::custom)?;
    RawValue::from_string(text).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

impl EntryRef<'_> {
    /// Appends its JSON form to `out`, without a line feed: the bytes that serde_json writes, in one pass.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        write_entry(out, *self)
    }
}

impl Serialize for EntryRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Bytes::new();
        write_entry(&mut bytes, *self).map_err(serde::ser::Error::custom)?;
        serialize_json(bytes, serializer)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.borrowed().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let entry = envelope(json.get()).and_then(|envelope| envelope.entry(json.get()));
        entry.map_err(serde::de::Error::custom)
    }
}

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Bytes::new();
        let mut object = Object::open(&mut bytes);
        object.string("type", self.data.kind());
        write_event(&mut object, self).map_err(serde::ser::Error::custom)?;
        object.close();
        serialize_json(bytes, serializer)
    }
}

impl<'de> Deserialize<'de> for Event<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let event = envelope(json.get()).and_then(|mut envelope| envelope.event(json.get()));
        event.map(Event::into_owned).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{BlockDelta, TurnStarted};

    #[test]
    fn an_entry_is_written_as_it_is_serialized() {
        let event = |data: Data<'static>| Event::new(data);
        let escaped = Text::from("a \"quote\",\u{8} \u{e9}\n".to_owned());
        for event in [
            event(Data::BlockDelta(BlockDelta { text: escaped, ..BlockDelta::default() })),
            event(Data::BlockDelta(BlockDelta {
                text: Text::of_literal(r#""a\u00e9""#, true),
                ..BlockDelta::default()
            }))
            .within(Some(Text::plain("call"))),
            // Its payload is empty.
            event(Data::TurnStarted(TurnStarted::default())),
        ] {
            let entry = Entry {
                sequence: 7,
                received_at: Some(1),
                epoch: 1,
                origin: Origin::default(),
                event,
                raw: None,
            };
            let mut written = b"before".to_vec();
            entry.borrowed().write_json(&mut written).unwrap();
            let serialized = serde_json::to_string(&entry).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), format!("before{serialized}"));
            let payload = entry.event.data.serialize_payload().unwrap();
            let fields = payload.trim_start_matches('{').trim_end_matches('}');
            assert!(serialized.contains(fields), "{serialized} has {fields}");
            assert_eq!(serde_json::from_str::<Entry>(&serialized).unwrap(), entry);
        }
    }

    #[test]
    fn what_a_host_stores_is_written_as_its_derived_form() {
        for raw in [None, Json::from_text(r#"{"a":[1.0,"\u00e9"]}"#.to_owned())] {
            let name = Text::plain("a \"name\"\u{8}");
            let event = Event::new(HostState { name, raw });
            let mut bytes = Bytes::new();
            let mut object = Object::open(&mut bytes);
            write_event(&mut object, &event).unwrap();
            object.close();
            assert_eq!(String::from_utf8(bytes).unwrap(), event.data.serialize_payload().unwrap());
        }
    }
}
