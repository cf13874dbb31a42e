//! Maps the NDJSON of the Giselle API to stream parts of the AI SDK, with the state of the session
//! that the caller has to store.

use std::convert::Infallible;

use super::lines;
use crate::Exit;
use crate::dialect::ai_sdk::AiSdkEncoder;
use crate::dialect::{EncodeOptions, giselle};
use crate::entry::{EntryRef, Flow, Sink};
use crate::event::{Data, Event, Executor, TurnStarted};
use crate::reader::{RawRecords, ReadOptions, Reader};
use crate::writer::Writer;

/// The result of one event of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Stream parts, one JSON object each.
    pub parts: Vec<String>,
    /// What the caller has to store for the session.
    pub session: SessionChange,
    /// The unchanged record of a request that the client has to answer before the agent continues.
    pub relay_request: Option<String>,
}

/// The fields of a session that became known; the others are unchanged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SessionChange {
    /// The agent's own id for the session.
    pub agent_session_id: Option<String>,
    /// The sandbox.
    pub sandbox_id: Option<String>,
    /// The relay's id for the session.
    pub relay_session_id: Option<String>,
    /// The relay's token, which is a secret.
    pub relay_token: Option<String>,
    /// The relay's address.
    pub relay_url: Option<String>,
    /// The pending request to the client.
    pub pending_request_id: Option<String>,
}

impl std::fmt::Debug for SessionChange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SessionChange")
            .field("agent_session_id", &self.agent_session_id)
            .field("sandbox_id", &self.sandbox_id)
            .field("relay_session_id", &self.relay_session_id)
            .field("relay_token", &self.relay_token.as_ref().map(|_| "[secret]"))
            .field("relay_url", &self.relay_url)
            .field("pending_request_id", &self.pending_request_id)
            .finish()
    }
}

/// Maps the NDJSON of the Giselle API to stream parts.
///
/// The agent's own tools are hidden, as the consumers of this mapper expect. A request for one of
/// the client's tools becomes a `tool-call`, and the stream is finished with `tool-calls` until it
/// continues. A stream that ends is finished with `stop`, even if it was empty. A pause and an end
/// each have one `finish`, never both.
///
/// ```
/// use interlingua::mapper::NdjsonMapper;
///
/// let mut mapper = NdjsonMapper::new();
/// let mapped = mapper.push(br#"{"type":"init","session_id":"s1"}"#);
/// assert_eq!(mapped[0].session.agent_session_id.as_deref(), Some("s1"));
/// assert!(mapped[0].parts[0].contains("response-metadata"));
/// ```
#[derive(Debug)]
pub struct NdjsonMapper {
    reader: Option<Reader>,
    mapping: Mapping,
}

impl NdjsonMapper {
    /// A mapper at the beginning of a stream.
    pub fn new() -> Self {
        let read = ReadOptions { raw_records: RawRecords::Keep, ..ReadOptions::default() };
        let options = EncodeOptions::default();
        let encoder = AiSdkEncoder::new(&options).finishing_each_turn().hiding_agent_tools();
        Self {
            reader: Reader::new((&giselle::DIALECT).into(), read).ok(),
            mapping: Mapping {
                writer: Writer::with_encoder(encoder, &options),
                mapped: Vec::new(),
                record: String::new(),
                has_turn: false,
            },
        }
    }

    /// Takes the next bytes, and returns the result of each event that is now complete, in order,
    /// so that the caller knows at which of them the stream pauses.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Mapped> {
        if let Some(reader) = &mut self.reader {
            let Ok(_) = reader.push(chunk, None, &mut self.mapping);
        }
        std::mem::take(&mut self.mapping.mapped)
    }

    /// Ends the stream, returns the last parts, and resets the mapper.
    pub fn finish(&mut self) -> Mapped {
        let Self { reader, mut mapping } = std::mem::take(self);
        if let Some(mut reader) = reader {
            if !mapping.has_turn {
                let started = Event::new(TurnStarted::default());
                let Ok(_) = reader.emit(started, None, &mut mapping);
            }
            let Ok(_) = reader.finish(&Exit::default(), None, &mut mapping);
        }
        let mut bytes = Vec::new();
        let Mapping { writer, mapped, .. } = mapping;
        writer.finish(&mut bytes);
        let mut last = Mapped::default();
        for mapped in mapped {
            last.parts.extend(mapped.parts);
            last.session.take(mapped.session);
        }
        last.parts.extend(parts(&bytes));
        last
    }

    /// Resets the mapper to the beginning of a stream.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

impl Default for NdjsonMapper {
    fn default() -> Self {
        Self::new()
    }
}

/// Turns entries into stream parts, and collects the changes of the session.
struct Mapping {
    writer: Writer<AiSdkEncoder>,
    mapped: Vec<Mapped>,
    /// The record that the entries come from.
    record: String,
    has_turn: bool,
}

impl std::fmt::Debug for Mapping {
    /// Leaves out the current record, since it may hold the relay's token.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Mapping").field("mapped", &self.mapped).finish_non_exhaustive()
    }
}

impl Sink for Mapping {
    type Error = Infallible;

    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        if let Some(raw) = entry.raw {
            self.record = raw.record.to_owned();
            self.mapped.push(Mapped::default());
        } else if self.mapped.is_empty() {
            self.mapped.push(Mapped::default());
        }
        self.has_turn |= matches!(entry.event.data, Data::TurnStarted(_));
        let mut bytes = Vec::new();
        self.writer.write(entry, &mut bytes);
        if let Some(mapped) = self.mapped.last_mut() {
            mapped.collect(&entry.event.data, &self.record);
            mapped.parts.extend(parts(&bytes));
        }
        Ok(Flow::Continue)
    }
}

/// The stream parts of an output, without `stream-start`, because the consumer has already started
/// its own stream.
fn parts(bytes: &[u8]) -> impl Iterator<Item = String> {
    let lines = lines(bytes).into_iter().map(|line| line.trim_end_matches('\n').to_owned());
    lines.filter(|part| !part.starts_with(r#"{"type":"stream-start""#))
}

impl Mapped {
    /// Collects what the caller has to store for the session.
    fn collect(&mut self, data: &Data<'_>, record: &str) {
        match data {
            Data::SessionStarted(started) => {
                remember(&mut self.session.agent_session_id, started.id.as_ref());
            }
            Data::SessionUpdated(update) => {
                remember(&mut self.session.agent_session_id, update.id.as_ref());
                remember(&mut self.session.sandbox_id, update.sandbox.as_ref());
                if let Some(relay) = &update.relay {
                    remember(&mut self.session.relay_session_id, relay.session.as_ref());
                    let token = relay.token.reveal();
                    remember(&mut self.session.relay_token, token);
                    remember(&mut self.session.relay_url, relay.url.as_ref());
                }
                if update.sandbox.is_some() {
                    self.parts.push(r#"{"type":"response-metadata"}"#.to_owned());
                }
            }
            Data::ToolStarted(started) if started.executor == Executor::Client => {
                remember(&mut self.session.pending_request_id, Some(&started.call));
                self.relay_request = Some(record.to_owned());
            }
            _ => {}
        }
    }
}

impl SessionChange {
    /// Merges a later change into this one.
    fn take(&mut self, later: Self) {
        let update = |fact: &mut Option<String>, news: Option<String>| {
            *fact = news.or(fact.take());
        };
        update(&mut self.agent_session_id, later.agent_session_id);
        update(&mut self.sandbox_id, later.sandbox_id);
        update(&mut self.relay_session_id, later.relay_session_id);
        update(&mut self.relay_token, later.relay_token);
        update(&mut self.relay_url, later.relay_url);
        update(&mut self.pending_request_id, later.pending_request_id);
    }
}

fn remember(kept: &mut Option<String>, value: Option<&crate::json::Text<'_>>) {
    if let Some(value) = value {
        *kept = Some(value.to_string());
    }
}
