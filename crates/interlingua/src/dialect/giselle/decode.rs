//! Reads the NDJSON of the Giselle API.

use super::{EXECUTE_TOOL, SNAPSHOT_TOOL};
use crate::dialect::decode::Own;
use crate::dialect::gemini::{GeminiDecoder, Line};
use crate::dialect::{Decoder, each_record};
use crate::event::{
    Artifact, Data, Event, Executor, Log, LogStream, Outcome, Relay, Secret, SessionUpdated, Sink,
    ToolStarted, TurnEnded,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The reader of `giselle`: Gemini's, and the host's records.
#[derive(Debug)]
pub struct GiselleDecoder {
    agent: GeminiDecoder,
}

impl Default for GiselleDecoder {
    fn default() -> Self {
        Self { agent: GeminiDecoder::new("giselle") }
    }
}

impl Decoder for GiselleDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn Sink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(std::mem::take(line), own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        // By this protocol the end of the stream is an end like any other.
        self.agent.end_block(None, sink);
    }
}

impl GiselleDecoder {
    fn line<'a>(&mut self, mut line: Line<'a>, own: Own<'a>, sink: &mut dyn Sink) {
        let kind = line.kind.as_ref().map_or("", Text::body);
        let data = match kind {
            "sandbox" => {
                Data::from(SessionUpdated { sandbox: line.sandbox_id, ..SessionUpdated::default() })
            }
            "snapshot" => Data::from(SessionUpdated {
                snapshot: line.snapshot_id,
                ..SessionUpdated::default()
            }),
            "relay.session" => Data::from(relay(line)),
            "stderr" => {
                Data::from(Log { stream: LogStream::Error, text: line.content.unwrap_or_default() })
            }
            "artifact" => Data::from(Artifact {
                path: line.path.unwrap_or_default(),
                label: line.label,
                media_type: line.mime_type,
                size: line.size_bytes,
            }),
            "snapshot_request" | "execute_request" => {
                self.agent.end_block(None, sink);
                ask_client(line, sink);
                return;
            }
            _ => {
                self.agent.line(&mut line, own, sink);
                return;
            }
        };
        sink.event(Event::new(data));
    }
}

fn relay(line: Line<'_>) -> SessionUpdated<'_> {
    let relay = Relay {
        session: line.relay_session,
        token: line.relay_token.map(Secret::new),
        url: line.relay_url,
        expires_at: line.relay_expires,
    };
    SessionUpdated { relay: Some(relay), ..SessionUpdated::default() }
}

/// The client has to run a tool; until it has, the turn rests.
fn ask_client(line: Line<'_>, sink: &mut dyn Sink) {
    let Some(call) = line.request_id.clone() else { return };
    let snapshot = line.kind.as_ref().is_some_and(|kind| *kind == "snapshot_request");
    let input = Json::object(|fields| {
        if snapshot {
            fields.json_if("instruction", line.instruction.as_ref());
            fields.json_if("document", line.document.as_ref());
        } else {
            fields.json_if("actions", line.actions.as_ref());
            fields.json_if("fields", line.fields.as_ref());
        }
    });
    let started = ToolStarted {
        call,
        name: Text::plain(if snapshot { SNAPSHOT_TOOL } else { EXECUTE_TOOL }),
        executor: Executor::Client,
        input: Some(input),
        ..ToolStarted::default()
    };
    sink.event(Event::new(started));
    let ended = TurnEnded { outcome: Outcome::WaitingForClient, ..TurnEnded::default() };
    sink.event(Event::new(ended));
}
