//! Decodes the Responses API: selects the meaning of an event by its type, and begins and ends
//! responses.

use std::collections::BTreeSet;

use super::calls::Calls;
use super::ended::{Counts, counts, incomplete};
use super::texts::{Place, Texts};
use super::wire::{Item, Line, Response};
use crate::dialect::decode::Own;
use crate::dialect::openai_error::{ErrorFields, Failure};
use crate::dialect::{Decoder, Emitter, EventSink, arguments, each_record};
use crate::event::{
    BlockKind, Compacted, ErrorClass, MessageEnded, MessageStarted, Native, Outcome,
    SessionStarted, ToolEnded, ToolStatus, TurnEnded, TurnStarted,
};
use crate::framing::FrameText;
use crate::json::read::{self, Whole};
use crate::json::{Json, Text};

/// The decoder of `openai-responses`.
#[derive(Debug, Default)]
pub struct OpenAiResponsesDecoder {
    id_tag: String,
    /// The number of responses so far.
    responses: u64,
    state: State,
    /// The provider's id of the response.
    id: Option<String>,
    texts: Texts,
    calls: Calls,
    /// The items that are complete, by their place in the output.
    complete: BTreeSet<u64>,
    /// The calls of earlier responses that the client has to answer.
    client_calls: Vec<Text<'static>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    None,
    Open,
    Ended,
}

impl Decoder for OpenAiResponsesDecoder {
    fn set_id_tag(&mut self, tag: &str) {
        self.id_tag = tag.to_owned();
    }

    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        if frame.text.trim_ascii().is_empty() {
            sink.ignored("an event without data keeps the connection alive");
            return;
        }
        // Some servers state the type only as the name of the event.
        let name = (!frame.event.is_empty()).then(|| frame.event.to_owned());
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            let kind = line.kind.take().or_else(|| name.clone().map(Text::from));
            let kind = kind.unwrap_or_default();
            self.event(&kind, line, own, &mut Emitter::new(own, sink));
        });
    }

    fn done(&mut self, sink: &mut dyn EventSink) {
        // Only the last event of a response ends it.
        let done = Native { name: Text::plain("[DONE]"), raw: None };
        Emitter::without_record(sink).emit(done);
    }
}

impl OpenAiResponsesDecoder {
    fn event<'a>(
        &mut self,
        kind: &Text<'a>,
        line: &mut Line<'a>,
        own: Own<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let name = kind.body();
        let Some(name) = name.strip_prefix("response.") else {
            self.other_record(kind, line, own, out);
            return;
        };
        let begins = matches!(name, "created" | "queued" | "in_progress");
        if !self.enter(begins, line.response.as_ref(), out) {
            out.native("response/late");
            return;
        }
        match name {
            "output_text.delta" => self.delta(Place::content(line), BlockKind::Text, line, out),
            "function_call_arguments.delta"
            | "custom_tool_call_input.delta"
            | "mcp_call_arguments.delta"
            | "code_interpreter_call_code.delta" => {
                let piece = line.delta.take().unwrap_or_default();
                self.calls.add(line.output_index.unwrap_or(0), &piece, out);
            }
            "reasoning_summary_text.delta" => {
                self.delta(Place::summary(line), BlockKind::Reasoning, line, out);
            }
            "reasoning_text.delta" => {
                self.delta(Place::content(line), BlockKind::Reasoning, line, out);
            }
            "refusal.delta" => {
                self.texts.refused = true;
                self.delta(Place::content(line), BlockKind::Text, line, out);
            }
            "output_text.done" => {
                let text = line.whole.take().unwrap_or_default();
                self.texts.complete(Place::content(line), BlockKind::Text, text, None, out);
            }
            "refusal.done" => {
                self.texts.refused = true;
                let text = line.whole.take().unwrap_or_default();
                self.texts.complete(Place::content(line), BlockKind::Text, text, None, out);
            }
            // The item repeats the text, and has its signature.
            "reasoning_summary_text.done" | "reasoning_text.done" => {}
            "function_call_arguments.done"
            | "custom_tool_call_input.done"
            | "mcp_call_arguments.done"
            | "code_interpreter_call_code.done" => {
                if let Some(whole) = line.whole.take() {
                    self.calls.add_whole(line.output_index.unwrap_or(0), &whole, out);
                }
            }
            "output_item.added" => {
                if let Some(Whole { record: item, .. }) = line.item.take() {
                    self.calls.begin(line.output_index.unwrap_or(0), item, out);
                }
            }
            "output_item.done" => {
                if let Some(Whole { json, record: item }) = line.item.take() {
                    self.item(line.output_index.unwrap_or(0), item, Some(json), out);
                }
            }
            "completed" | "incomplete" | "failed" | "cancelled" => {
                let response = line.response.take().unwrap_or_default();
                self.end(name, response, out);
            }
            "created"
            | "queued"
            | "in_progress"
            | "content_part.added"
            | "content_part.done"
            | "reasoning_summary_part.added"
            | "reasoning_summary_part.done"
            | "output_text.annotation.added" => {}
            _ if is_progress(name) => {}
            _ => out.unknown(kind.clone()),
        }
        if !out.emitted {
            let raw = own.json().filter(|_| !is_repeat(name));
            out.emit(Native { name: kind.borrowed(), raw });
        }
    }

    /// Reads a record that is no event of a response: an error, or a whole response.
    fn other_record<'a>(
        &mut self,
        kind: &Text<'a>,
        line: &mut Line<'a>,
        own: Own<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        if *kind == "error" || kind.is_empty() {
            if line.object.as_ref().is_some_and(|object| *object == "response") {
                let mut response = Response::default();
                // The record was read before, so it can be read again.
                let _ = read::record(own.0, &mut response);
                self.whole(response, out);
                return;
            }
            let nested = Failure::of_shape(std::mem::take(&mut line.error));
            let flat = || (*kind == "error").then(|| flat_failure(own)).flatten();
            let detail = || line.detail.as_ref().map(Failure::of_detail);
            if let Some(failure) = nested.or_else(flat).or_else(detail) {
                // Some servers report the failure of a response twice.
                if *kind == "error" && self.state == State::Ended {
                    out.native("response/late");
                } else {
                    self.fail(&failure, None, out);
                }
                return;
            }
        }
        match kind.body() {
            "ping" | "keepalive" => out.native(kind.clone()),
            _ => out.unknown(kind.clone()),
        }
    }

    /// Begins a response, if the event does not belong to the current one. Returns `false` for an
    /// event after the end.
    fn enter<'a>(
        &mut self,
        begins: bool,
        response: Option<&Response<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) -> bool {
        let id = response.and_then(|it| it.id.as_ref()).filter(|id| !id.is_empty());
        let other = matches!((id, &self.id), (Some(id), Some(own)) if *id != **own);
        match self.state {
            State::Open if !(begins && other) => return true,
            State::Ended if !begins => return false,
            _ => {}
        }
        self.leave(out);
        self.begin(id, response.and_then(|response| response.model.as_ref()), out);
        true
    }

    /// Ends the current response, because another one follows it.
    fn leave(&mut self, out: &mut Emitter<'_, '_>) {
        if self.state != State::Open {
            return;
        }
        self.calls.abandon("the response was cut off", out);
        self.end_message(None, &Counts::default(), out);
        out.emit(TurnEnded {
            cause: Some(Text::plain("the response was cut off, and another one follows it")),
            class: Some(ErrorClass::Network),
            ..TurnEnded::default()
        });
    }

    fn begin<'a>(
        &mut self,
        id: Option<&Text<'a>>,
        model: Option<&Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        self.begin_turn(model, out);
        let before = self.id.take();
        self.id = id.map(Text::to_string);
        // A server may give every response the same id; those are different messages.
        let message = match &self.id {
            Some(id) if self.id != before => id.clone(),
            Some(id) => format!("{id}-{}", self.responses),
            None => format!("message_{}_{}", self.id_tag, self.responses),
        };
        let message = Text::from(message);
        out.emit(MessageStarted {
            message: Some(message.borrowed()),
            model: model.cloned(),
            usage: None,
        });
        let prefix = format!("call_{}_{}_", self.id_tag, self.responses);
        self.texts = Texts::of(message.clone());
        self.calls = Calls::of(message, prefix);
        self.complete.clear();
        self.state = State::Open;
    }

    fn begin_turn<'a>(&mut self, model: Option<&Text<'a>>, out: &mut Emitter<'_, 'a>) {
        self.responses += 1;
        out.emit(SessionStarted {
            agent: Some(Text::plain(super::DIALECT.name)),
            model: model.filter(|model| !model.is_empty()).cloned(),
            ..SessionStarted::default()
        });
        out.emit(TurnStarted::default());
        // The client has answered them in its next request.
        for call in self.client_calls.drain(..) {
            out.emit(ToolEnded {
                call,
                status: ToolStatus::Abandoned,
                error: Some(Text::plain("the client's answer is no part of this stream")),
                ..ToolEnded::default()
            });
        }
    }

    #[inline]
    fn delta<'a>(
        &mut self,
        place: Place,
        kind: BlockKind,
        line: &mut Line<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let text = line.delta.take().unwrap_or_default();
        self.texts.add(place, kind, text, out);
    }

    /// Reads an item that is complete.
    fn item(
        &mut self,
        index: u64,
        item: Item<'_>,
        json: Option<Json<'_>>,
        out: &mut Emitter<'_, '_>,
    ) {
        self.complete.insert(index);
        match item.kind.as_ref().map_or("", Text::body) {
            "message" => self.texts.message(index, item, out),
            "reasoning" => self.texts.reasoning(index, item, out),
            "compaction" => out.emit(Compacted { details: json, ..Compacted::default() }),
            kind if Calls::is_call(kind) => self.calls.complete(index, item, out),
            kind if kind.ends_with("_output") => self.calls.answer(item, out),
            kind => out.unknown(Text::from(format!("output_item/{kind}"))),
        }
    }

    /// Reads a whole response, which was not streamed.
    fn whole<'a>(&mut self, mut response: Response<'a>, out: &mut Emitter<'_, 'a>) {
        let status = response.status.take().unwrap_or_else(|| Text::plain("completed"));
        self.leave(out);
        self.begin(response.id.clone().as_ref(), response.model.clone().as_ref(), out);
        match status.body() {
            "completed" | "incomplete" | "failed" | "cancelled" => {
                self.end(&status.to_plain(), response, out);
            }
            // It runs in the background, and its end is no part of this stream.
            _ => self.missing_items(response.output.as_ref(), out),
        }
    }

    /// Reads the items of a response that were not streamed.
    fn missing_items(&mut self, output: Option<&Json<'_>>, out: &mut Emitter<'_, '_>) {
        let Some(output) = output.filter(|output| output.is_array()) else { return };
        let items = read::records_of::<Item<'_>>(output).unwrap_or_default();
        for (index, item) in items.into_iter().enumerate() {
            let index = index as u64;
            if !self.complete.contains(&index) {
                self.item(index, item, None, out);
            }
        }
    }

    /// Ends a response that reports its end.
    fn end<'a>(&mut self, name: &str, mut response: Response<'a>, out: &mut Emitter<'_, 'a>) {
        let counts = counts(response.usage.take());
        self.missing_items(response.output.as_ref(), out);
        if name == "failed" {
            let failure = Failure::of_shape(std::mem::take(&mut response.error));
            let failure = failure.unwrap_or_else(|| Failure::of(ErrorFields::default()));
            self.fail(&failure, Some(&counts), out);
            return;
        }
        let reason = response.incomplete.and_then(|incomplete| incomplete.reason);
        let mut ended = match name {
            "completed" => TurnEnded { outcome: Outcome::Completed, ..TurnEnded::default() },
            "cancelled" => TurnEnded {
                outcome: Outcome::Cancelled,
                cause: Some(Text::plain("the response was cancelled")),
                ..TurnEnded::default()
            },
            _ => incomplete(reason.as_ref()),
        };
        if ended.outcome == Outcome::Completed {
            let calls = self.calls.settle(out);
            if self.texts.refused {
                ended.outcome = Outcome::Refused;
                ended.class = Some(ErrorClass::Refusal);
                ended.reason = Some(Text::plain("refusal"));
                ended.cause = Some(Text::plain("the model refused to answer"));
            } else if !calls.is_empty() {
                ended.outcome = Outcome::WaitingForClient;
                self.client_calls = calls;
            } else if self.calls.has_unusable {
                arguments::end_with_malformed_calls(&mut ended);
            }
        } else {
            self.calls.abandon("the response stopped before it was complete", out);
        }
        let reason = reason.unwrap_or_else(|| Text::from(name.to_owned()));
        self.end_message(Some(&reason), &counts, out);
        ended.stop_reason = Some(reason);
        ended.usage = counts.turn;
        out.emit(ended);
    }

    /// Ends the response with an error, which may be all there is.
    fn fail<'a>(
        &mut self,
        failure: &Failure<'a>,
        counts: Option<&Counts>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let is_open = self.state == State::Open;
        if is_open {
            self.calls.abandon("the response failed", out);
            self.texts.end(out);
        } else {
            self.begin_turn(None, out);
        }
        out.emit(failure.to_error());
        let unknown = Counts::default();
        let counts = counts.unwrap_or(&unknown);
        if is_open {
            self.end_message(None, counts, out);
        }
        self.state = State::Ended;
        out.emit(TurnEnded { usage: counts.turn.clone(), ..failure.to_turn_ended() });
    }

    fn end_message(
        &mut self,
        reason: Option<&Text<'_>>,
        counts: &Counts,
        out: &mut Emitter<'_, '_>,
    ) {
        self.texts.end(out);
        self.state = State::Ended;
        out.emit(MessageEnded {
            message: Some(self.texts.message.borrowed()),
            stop_reason: reason.map(Text::borrowed),
            usage: counts.request.clone(),
        });
    }
}

/// The error of an event whose fields are not in an object of their own.
fn flat_failure<'a>(own: Own<'a>) -> Option<Failure<'a>> {
    let mut fields = ErrorFields::default();
    read::record(own.0, &mut fields).ok()?;
    fields.kind = None;
    Some(Failure::of(fields))
}

/// Whether an event only repeats what others state.
fn is_repeat(name: &str) -> bool {
    name == "in_progress"
        || name.starts_with("content_part.")
        || name.starts_with("reasoning_summary_part.")
        || (name.ends_with(".done") && name != "output_item.done")
}

/// Whether an event only reports that a tool of the provider is running.
fn is_progress(name: &str) -> bool {
    let tool = name.split('.').next().unwrap_or_default();
    tool.ends_with("_call")
        || matches!(tool, "mcp_list_tools" | "compaction" | "audio")
        || tool.starts_with("shell_call_")
}
