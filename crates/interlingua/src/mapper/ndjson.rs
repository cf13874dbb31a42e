//! The NDJSON of the Giselle API, as stream parts of the AI SDK, with what a session must remember.

use super::lines;
use crate::Exit;
use crate::dialect::ai_sdk::AiSdkEncoder;
use crate::dialect::{EncodeOptions, Encoder, Output, giselle};
use crate::event::{Data, Event, Executor};
use crate::translate::{Options, Translator};

/// What a chunk turned out to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Stream parts, one JSON object each.
    pub parts: Vec<String>,
    /// What the session must remember from now on.
    pub session: SessionChange,
    /// A request that the client must answer before the agent goes on: its record.
    pub relay_request: Option<String>,
}

/// What became known of a session; the rest stays as it was.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SessionChange {
    /// The agent's own id for the session.
    pub agent_session_id: Option<String>,
    /// The sandbox.
    pub sandbox_id: Option<String>,
    /// The relay's id for the session.
    pub relay_session_id: Option<String>,
    /// What the relay wants to see; a secret.
    pub relay_token: Option<String>,
    /// The relay's address.
    pub relay_url: Option<String>,
    /// The request that waits for the client.
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
/// The agent's own tools are hidden, as the consumers of this mapper expect; a request for one of the
/// client's tools is a `tool-call`, and the stream is finished with `tool-calls` until it goes on.
/// There is one `finish` for each of the two, never both.
///
/// ```
/// use interlingua::mapper::NdjsonMapper;
///
/// let mut mapper = NdjsonMapper::new();
/// let mapped = mapper.push(br#"{"type":"init","session_id":"s1"}"#);
/// assert_eq!(mapped.session.agent_session_id.as_deref(), Some("s1"));
/// assert!(mapped.parts[0].contains("response-metadata"));
/// ```
#[derive(Debug)]
pub struct NdjsonMapper {
    translator: Option<Translator<Parts>>,
}

impl NdjsonMapper {
    /// A mapper at the beginning of a stream.
    pub fn new() -> Self {
        let encoder =
            AiSdkEncoder::new(&EncodeOptions::default()).finishing_each_turn().hiding_agent_tools();
        let parts = Parts { encoder, session: SessionChange::default(), request: None };
        let options = Options::default();
        let translator =
            Translator::with_encoder(Some(&giselle::DIALECT), "ai-sdk", parts, &options);
        Self { translator: translator.ok() }
    }

    /// Takes the next bytes; gives what is now known.
    pub fn push(&mut self, chunk: &[u8]) -> Mapped {
        self.map(|translator| lines(translator.push(chunk)))
    }

    /// Says that the stream is over; gives the last parts.
    pub fn finish(&mut self) -> Mapped {
        self.map(|translator| lines(translator.finish(&Exit::default())))
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    fn map(&mut self, work: impl FnOnce(&mut Translator<Parts>) -> Vec<String>) -> Mapped {
        let Some(translator) = &mut self.translator else { return Mapped::default() };
        let mut parts = work(translator);
        // The consumer's own stream has started when this mapper is asked.
        parts.retain(|part| !part.starts_with(r#"{"type":"stream-start""#));
        for part in &mut parts {
            part.truncate(part.trim_end_matches('\n').len());
        }
        let side = translator.encoder();
        Mapped {
            parts,
            session: std::mem::take(&mut side.session),
            relay_request: side.request.take(),
        }
    }
}

impl Default for NdjsonMapper {
    fn default() -> Self {
        Self::new()
    }
}

/// Stream parts, and beside them what the session must remember.
#[derive(Debug)]
struct Parts {
    encoder: AiSdkEncoder,
    session: SessionChange,
    request: Option<String>,
}

impl Encoder for Parts {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        match &event.data {
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
                    out.record("response-metadata").end();
                }
            }
            Data::ToolStarted(started) if started.executor == Executor::Client => {
                remember(&mut self.session.pending_request_id, Some(&started.call));
                self.request = Some(request_record(event));
            }
            _ => {}
        }
        self.encoder.encode(event, out);
    }

    fn finish(&mut self, out: &mut Output) {
        self.encoder.finish(out);
    }
}

fn remember(kept: &mut Option<String>, told: Option<&crate::json::Text<'_>>) {
    if let Some(told) = told {
        *kept = Some(told.to_string());
    }
}

/// The request as the relay sent it.
fn request_record(event: &Event<'_>) -> String {
    let mut out = Output::default();
    giselle::GiselleEncoder::new(&EncodeOptions::default()).encode(event, &mut out);
    String::from_utf8_lossy(out.bytes()).trim_end().to_owned()
}
