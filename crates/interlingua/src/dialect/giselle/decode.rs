//! Reads the NDJSON of the Giselle API.

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

/// The reader of `giselle`: Gemini's, and the host's records.
#[derive(Debug)]
pub struct GiselleDecoder {
    agent: GeminiDecoder,
    /// What the client was asked for, and whether the agent has gone on since.
    asked: Vec<Text<'static>>,
    went_on: bool,
}

impl Default for GiselleDecoder {
    fn default() -> Self {
        Self { agent: GeminiDecoder::new("giselle"), asked: Vec::new(), went_on: false }
    }
}

impl Decoder for GiselleDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(std::mem::take(line), own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        // By this protocol the end of the stream is an end like any other.
        self.agent.end_block(None, sink);
        self.settle(sink);
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
                    self.asked.extend(line.request_id.clone().map(Text::into_owned));
                    self.went_on = false;
                    ask_client(line, sink);
                }
                return;
            }
            _ => {
                self.agent_goes_on(&line, sink);
                self.agent.line(&mut line, own, sink);
                return;
            }
        };
        sink.event(Event::new(data));
    }

    /// Before a record of the agent's own.
    fn agent_goes_on(&mut self, line: &Line<'_>, sink: &mut dyn EventSink) {
        if self.asked.is_empty() {
            return;
        }
        match line.kind.as_ref().map_or("", Text::body) {
            "result" => {
                self.agent.end_block(None, sink);
                self.went_on = true;
                self.settle(sink);
            }
            "tool_result" => {
                self.went_on = true;
                self.asked.retain(|call| line.tool_id.as_ref() != Some(call));
            }
            // Another run begins with `init`.
            "init" | "message" | "tool_use" => self.went_on = true,
            _ => {}
        }
    }

    /// Ends the calls without whose answer the agent cannot have gone on: it was given to the relay,
    /// and nobody here knows what it was.
    fn settle(&mut self, sink: &mut dyn EventSink) {
        if !std::mem::replace(&mut self.went_on, false) {
            return;
        }
        for call in self.asked.drain(..) {
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

/// The client has to run a tool; until it has, the turn rests.
fn ask_client(line: Line<'_>, sink: &mut dyn EventSink) {
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
