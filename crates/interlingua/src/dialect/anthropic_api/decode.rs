//! Decodes a response of the Messages API: selects the meaning of a record by its type, and keeps
//! what belongs to the response as a whole.

use super::blocks::{Blocks, abandoned};
use super::ended::Ending;
use super::failure;
use super::wire::{ApiRecord, Content, Failure};
use crate::dialect::decode::Own;
use crate::dialect::messages_api::counts;
use crate::dialect::{Decoder, Emitter, EventSink, arguments, each_record};
use crate::event::{
    BlockKind, ErrorClass, Event, MessageEnded, MessageStarted, Native, Outcome, Reason, Scope,
    SessionStarted, TurnEnded, TurnStarted, Usage,
};
use crate::framing::FrameText;
use crate::json::read::{self, Whole};
use crate::json::{Json, RepeatedRecord, Text};

/// The decoder of `anthropic-api`.
#[derive(Debug, Default)]
pub struct AnthropicApiDecoder {
    /// A response has begun and not ended.
    open: bool,
    blocks: Blocks,
    ending: Ending,
    /// The calls that earlier responses left to the client.
    left_to_client: Vec<Text<'static>>,
    /// The last delta of text or reasoning, with the index and the kind of its block.
    repeated: RepeatedRecord<(u64, BlockKind)>,
}

impl Decoder for AnthropicApiDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        // A delta that differs from an earlier one only in its text.
        if let Some((text, (index, kind))) = self.repeated.read(frame.text) {
            self.open = true;
            sink.record(frame.text);
            let mut out = Emitter::new(Own(frame.text), sink);
            self.blocks.emit_delta(*index, kind.clone(), text, &mut out);
            return;
        }
        each_record(frame, sink, |record: &mut ApiRecord<'_>, own, sink| {
            // The name of the event and the type of its data are the same.
            let named = Some(Text::plain(frame.event)).filter(|name| !name.is_empty());
            let kind = record.kind.clone().or(named);
            self.decode_record(kind, record, &mut Emitter::new(own, sink));
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        // A response that was cut off at its very end has counts, though no outcome.
        if self.open && self.ending.is_counted() {
            self.emit_message_ended(&mut Emitter::without_record(sink));
        }
    }
}

impl AnthropicApiDecoder {
    fn decode_record<'a>(
        &mut self,
        kind: Option<Text<'a>>,
        record: &mut ApiRecord<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        match kind.as_ref().map_or("", Text::body) {
            "content_block_delta" => {
                self.open = true;
                let delta = record.delta.take().unwrap_or_default();
                if record.kind.is_some()
                    && let Some((text, kind)) = delta.only_text()
                    && let Some(index) = record.index
                {
                    self.repeated.learn(out.own().0, text.body(), (index, kind));
                }
                self.blocks.add_delta(record.index, delta, out);
            }
            "content_block_start" => {
                self.open = true;
                match record.block.take() {
                    Some(block) => self.blocks.start(record.index, block, out),
                    None => out.unknown(kind),
                }
            }
            "content_block_stop" => self.blocks.end(record.index, out),
            "message_start" => self.start(record, out),
            "message_delta" => {
                self.ending.count(record.usage.take());
                let delta = record.delta.take().unwrap_or_default();
                self.ending.stop(delta.stop_reason, delta.stop_details);
                out.native("message_delta");
            }
            "message_stop" if self.open => self.end(out),
            "message_stop" => out.native("message_stop"),
            "message" => self.decode_whole(record, out),
            "ping" => out.native("ping"),
            "error" | "" => match record.error.take() {
                Some(error) => self.fail(error, out),
                None => out.unknown(kind),
            },
            _ => out.unknown(kind),
        }
    }

    fn start<'a>(&mut self, record: &mut ApiRecord<'a>, out: &mut Emitter<'_, 'a>) {
        let message = record.message.take().unwrap_or_default();
        self.begin_turn(message.model.clone(), out);
        let usage = message.usage.map(|usage| counts(usage, Scope::Request));
        self.blocks = Blocks::of(message.id.clone().map(Text::into_owned));
        self.ending = Ending::start(usage.as_ref());
        out.emit(MessageStarted { message: message.id, model: message.model, usage });
        emit_transformations(message.input_transformations, out);
    }

    /// Decodes a response that was not streamed.
    fn decode_whole<'a>(&mut self, record: &mut ApiRecord<'a>, out: &mut Emitter<'_, 'a>) {
        self.begin_turn(record.model.clone(), out);
        self.blocks = Blocks::of(record.id.clone().map(Text::into_owned));
        self.ending = Ending::default();
        self.ending.count(record.usage.take());
        self.ending.stop(record.stop_reason.take(), record.stop_details.take());
        let (message, model) = (record.id.take(), record.model.take());
        out.emit(MessageStarted { message, model, usage: None });
        emit_transformations(record.input_transformations.take(), out);
        let content = record.content.take().unwrap_or(Json::NULL);
        self.decode_content(&content, out);
        self.end(out);
    }

    fn decode_content(&mut self, content: &Json<'_>, out: &mut Emitter<'_, '_>) {
        let mut out = Emitter::new(out.own(), &mut *out.sink);
        let blocks = read::wholes_of::<Content<'_>>(content).unwrap_or_default();
        let last = blocks.len().saturating_sub(1);
        for (at, Whole { json, record }) in blocks.into_iter().enumerate() {
            let is_cut = at == last && self.ending.cuts_the_last_block();
            self.blocks.take_whole(at as u64, Whole { json, record }, is_cut, &mut out);
        }
    }

    fn end(&mut self, out: &mut Emitter<'_, '_>) {
        self.open = false;
        self.blocks.end_all(out);
        let is_cut = self.ending.cuts_the_last_block();
        self.blocks.settle_calls_without_input(!is_cut, out);
        if is_cut {
            self.blocks.abandon_all("the response was cut off, so its calls are not run", out);
        }
        self.emit_message_ended(out);
        let calls = self.blocks.take_client_calls();
        let mut ended = std::mem::take(&mut self.ending).turn(!calls.is_empty());
        let is_proper = matches!(ended.outcome, Outcome::Completed | Outcome::WaitingForClient);
        if calls.is_empty() && self.blocks.has_malformed && is_proper {
            arguments::end_with_malformed_calls(&mut ended);
        }
        out.emit(ended);
        self.left_to_client = calls;
    }

    fn fail<'a>(&mut self, failure: Failure<'a>, out: &mut Emitter<'_, 'a>) {
        let mut usage = None;
        if std::mem::replace(&mut self.open, false) {
            self.close(out);
            usage = self.ending.usage().map(|usage| Usage { scope: Scope::Turn, ..usage });
        } else {
            self.begin_turn(None, out);
            self.open = false;
        }
        let error = failure::error(failure);
        let ended = TurnEnded {
            outcome: Outcome::Failed,
            cause: Some(error.message.clone()),
            class: Some(error.class.clone()).filter(|class| *class != ErrorClass::Unspecified),
            reason: error.code.clone(),
            usage,
            ..TurnEnded::default()
        };
        out.emit(error);
        out.emit(ended);
    }

    /// Begins the turn of a response. If the one before it has not ended, it was cut off.
    fn begin_turn<'a>(&mut self, model: Option<Text<'a>>, out: &mut Emitter<'_, 'a>) {
        if std::mem::replace(&mut self.open, true) {
            self.close(out);
            let ended = TurnEnded {
                outcome: Outcome::Failed,
                cause: Some(Text::plain("another response began before the end of this one")),
                class: Some(ErrorClass::Network),
                ..TurnEnded::default()
            };
            out.sink.event(Event::new(ended).because(Some(Reason::Implied)));
        }
        let agent = Some(Text::plain(super::DIALECT.name));
        out.emit(SessionStarted { agent, model, ..SessionStarted::default() });
        out.emit(TurnStarted::default());
        for call in std::mem::take(&mut self.left_to_client) {
            out.emit(abandoned(call, "the client's answer is no part of this stream"));
        }
    }

    /// Closes what is open in a response that did not reach its end.
    fn close(&mut self, out: &mut Emitter<'_, '_>) {
        self.blocks.end_all(out);
        self.blocks.abandon_all("the response was not completed", out);
        self.emit_message_ended(out);
    }

    fn emit_message_ended(&mut self, out: &mut Emitter<'_, '_>) {
        out.emit(MessageEnded {
            message: self.blocks.message.clone(),
            stop_reason: self.ending.stop_reason(),
            usage: self.ending.usage(),
        });
    }
}

/// Keeps what the provider changed in the request, such as blocks of reasoning that it dropped.
fn emit_transformations<'a>(changes: Option<Json<'a>>, out: &mut Emitter<'_, 'a>) {
    if let Some(changes) = changes.filter(|changes| changes.get() != "[]") {
        out.emit(Native { name: Text::plain("input_transformations"), raw: Some(changes) });
    }
}
