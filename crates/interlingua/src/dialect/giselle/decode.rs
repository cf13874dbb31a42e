//! Decodes the NDJSON of the Giselle API.

use super::{EXECUTE_TOOL, SNAPSHOT_TOOL};
use crate::dialect::decode::Own;
use crate::dialect::gemini::{GeminiDecoder, Line};
use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::event::{
    Artifact, Data, Event, Executor, Log, LogStream, Outcome, Relay, Secret, SessionUpdated,
    ToolEnded, ToolStarted, ToolStatus, TurnEnded,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The decoder of `giselle`: that of Gemini, and the records of the host.
#[derive(Debug)]
pub struct GiselleDecoder {
    agent: GeminiDecoder,
    /// The calls that the client must answer.
    client_calls: Vec<Text<'static>>,
    /// The agent has continued since the last of these calls.
    continued: bool,
}

impl Default for GiselleDecoder {
    fn default() -> Self {
        Self { agent: GeminiDecoder::new("giselle"), client_calls: Vec::new(), continued: false }
    }
}

impl Decoder for GiselleDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(std::mem::take(line), own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        // In this protocol, the end of the stream is a regular end of the turn.
        self.agent.end_block(None, sink);
        self.abandon_client_calls(sink);
    }
}

impl GiselleDecoder {
    fn line<'a>(&mut self, mut line: Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
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
                if line.request_id.is_none() {
                    let name = line.kind.clone();
                    sink.event(Event::new(unknown(name, own)));
                } else {
                    self.client_calls.extend(line.request_id.clone().map(Text::into_owned));
                    self.continued = false;
                    emit_client_call(line, sink);
                }
                return;
            }
            _ => {
                self.note_progress(&line, sink);
                self.agent.line(&mut line, own, sink);
                return;
            }
        };
        sink.event(Event::new(data));
    }

    /// Notes whether the agent has continued, before one of its own records is decoded.
    fn note_progress(&mut self, line: &Line<'_>, sink: &mut dyn EventSink) {
        if self.client_calls.is_empty() {
            return;
        }
        match line.kind.as_ref().map_or("", Text::body) {
            "result" => {
                self.agent.end_block(None, sink);
                self.continued = true;
                self.abandon_client_calls(sink);
            }
            "tool_result" => {
                self.continued = true;
                self.client_calls.retain(|call| line.tool_id.as_ref() != Some(call));
            }
            // `init` begins another run.
            "init" | "message" | "tool_use" => self.continued = true,
            _ => {}
        }
    }

    /// Abandons the client's calls if the agent has continued. It must have received the answers
    /// through the relay, so their content is unknown.
    fn abandon_client_calls(&mut self, sink: &mut dyn EventSink) {
        if !std::mem::replace(&mut self.continued, false) {
            return;
        }
        for call in self.client_calls.drain(..) {
            sink.event(Event::new(ToolEnded {
                call,
                status: ToolStatus::Abandoned,
                error: Some(Text::plain("the client's answer is no part of this stream")),
                ..ToolEnded::default()
            }));
        }
    }
}

fn relay(line: Line<'_>) -> SessionUpdated<'_> {
    let relay = Relay {
        session: line.relay_session,
        token: Secret::new(line.relay_token),
        url: line.relay_url,
        expires_at: line.relay_expires,
    };
    SessionUpdated { relay: Some(relay), ..SessionUpdated::default() }
}

/// Emits a call for the client, and suspends the turn until the client has answered.
fn emit_client_call(line: Line<'_>, sink: &mut dyn EventSink) {
    let call = line.request_id.clone().unwrap_or_default();
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
