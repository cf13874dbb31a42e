//! Maps the output of Gemini to the unified AgentEvents of a team's chat.
//!
//! The contract is that of the document: an event for each record, as soon as its line is complete,
//! and no event without a record. To have every turn ended and every call answered, translate from
//! `gemini` to `agent-event`.

use std::convert::Infallible;

use super::lines;
use crate::dialect::agent_event::AgentEventEncoder;
use crate::dialect::{EncodeOptions, Probe, Team, gemini};
use crate::entry::{EntryRef, Flow, Sink};
use crate::event::{Block, Data, Event, SessionStarted};
use crate::fingerprint::{of_name, of_words};
use crate::framing::Limits;
use crate::json::Text;
use crate::reader::{RawRecords, ReadOptions, Reader, StreamEnd};
use crate::writer::Writer;

/// Parses Gemini's stream into AgentEvents, one JSON object each.
///
/// A call to `write_todos` becomes a `todo_list` only; every other tool is started and completed.
/// The caller gives the times, in milliseconds since 1970.
///
/// ```
/// use interlingua::dialect::Team;
/// use interlingua::mapper::GeminiParser;
///
/// let mut parser = GeminiParser::new(Team::default());
/// let events = parser.parse_chunk(
///     br#"{"type":"tool_use","tool_name":"write_todos","tool_id":"call_1","parameters":{"todos":[]}}
/// "#,
///     1_700_000_000_000,
/// );
/// assert_eq!(events.len(), 1);
/// assert!(events[0].contains(r#""type":"todo_list""#));
/// assert!(parser.flush(1_700_000_000_000).is_empty());
/// ```
#[derive(Debug)]
pub struct GeminiParser {
    team: Team,
    reader: Option<Reader>,
    mapping: Mapping,
    /// The bytes of the incomplete line.
    rest: Vec<u8>,
    /// The number of streams that the parser has read, by which their ids differ.
    streams: u64,
}

impl GeminiParser {
    /// A parser for one member of a team. Parsers of different agents never generate the same ids.
    pub fn new(team: Team) -> Self {
        let (reader, mapping) = begin(&team, 0);
        Self { team, reader, mapping, rest: Vec::new(), streams: 0 }
    }

    /// Takes a chunk, and returns the events of the lines that are now complete.
    pub fn parse_chunk(&mut self, chunk: &[u8], now_ms: u64) -> Vec<String> {
        match chunk.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                self.rest.clear();
                self.rest.extend(chunk.iter().skip(end + 1));
            }
            None => self.rest.extend_from_slice(chunk),
        }
        // The reader also skips a line that is too long.
        if self.rest.len() > Limits::default().frame {
            self.rest.clear();
        }
        self.push(chunk, now_ms);
        self.mapping.take()
    }

    /// Completes the last line, and returns its event or, if it is not a record, its text. Returns
    /// nothing if the last line was already complete.
    pub fn flush(&mut self, now_ms: u64) -> Vec<String> {
        let rest = std::mem::take(&mut self.rest);
        let text = String::from_utf8_lossy(&rest);
        if text.trim().is_empty() {
            return Vec::new();
        }
        if Probe::of(text.trim()).is_some() {
            self.push(b"\n", now_ms);
        } else if let Some(reader) = &mut self.reader {
            let mut forget = |_: EntryRef<'_>| {};
            let Ok(_) = reader.end_stream(StreamEnd::TurnGoesOn, None, &mut forget);
            if reader.next_stream((&gemini::DIALECT).into()).is_ok() {
                self.mapping.writes_added = true;
                let block = Event::new(Block { text: Text::plain(&text), ..Block::default() });
                let Ok(_) = reader.emit(block, Some(now_ms), &mut self.mapping);
                self.mapping.writes_added = false;
            }
        }
        self.mapping.take()
    }

    /// Resets the parser, except for the team. Ids are not reused.
    pub fn reset(&mut self) {
        self.streams += 1;
        (self.reader, self.mapping) = begin(&self.team, self.streams);
        self.rest.clear();
    }

    fn push(&mut self, bytes: &[u8], now_ms: u64) {
        if let Some(reader) = &mut self.reader {
            let Ok(_) = reader.push(bytes, Some(now_ms), &mut self.mapping);
        }
    }
}

fn begin(team: &Team, stream: u64) -> (Option<Reader>, Mapping) {
    let seed = of_words([of_name(team.agent_id.as_bytes()), stream]);
    let read = ReadOptions {
        id_seed: Some(seed),
        // Another parser may have read the earlier runs.
        resumed: true,
        raw_records: RawRecords::Keep,
        ..ReadOptions::default()
    };
    let encode =
        EncodeOptions { team: team.clone(), id_seed: Some(seed), ..EncodeOptions::default() };
    let encoder = AgentEventEncoder::new(&encode).at_the_callers_time();
    let writer = Writer::with_encoder(encoder, &encode);
    let mapping = Mapping { writer, bytes: Vec::new(), writes_added: false };
    (Reader::new((&gemini::DIALECT).into(), read).ok(), mapping)
}

/// Writes the events of records, and not those that the grammar adds.
#[derive(Debug)]
struct Mapping {
    writer: Writer<AgentEventEncoder>,
    bytes: Vec<u8>,
    /// The parser itself emits the current event.
    writes_added: bool,
}

impl Mapping {
    fn take(&mut self) -> Vec<String> {
        let events = lines(&self.bytes).into_iter();
        let events = events.map(|line| line.trim_end_matches('\n').to_owned()).collect();
        self.bytes.clear();
        events
    }
}

impl Sink for Mapping {
    type Error = Infallible;

    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        let starts = entry.raw.and_then(|raw| Probe::of(raw.record)).map(|it| it.kind());
        let is_said = !entry.origin.added;
        let is_start = matches!(entry.event.data, Data::SessionStarted(_)) && is_said;
        // Every `init` is a start, even if the session is already known.
        if starts.as_deref() == Some("init") && !is_start {
            let event = Event::new(SessionStarted::default());
            self.writer.write(EntryRef { event: &event, ..entry }, &mut self.bytes);
        }
        let own = self.writes_added && matches!(entry.event.data, Data::Block(_));
        if is_said || own {
            self.writer.write(entry, &mut self.bytes);
        } else {
            self.writer.advance(entry);
        }
        Ok(Flow::Continue)
    }
}
