//! Decodes a response of the `generateContent` API, chunk by chunk.

use super::ended::{Counts, blocked, finished};
use super::failure;
use super::parts::Parts;
use super::wire::{Candidate, Chunk, Failure};
use crate::dialect::{Decoder, Emitter, EventSink, each_record};
use crate::event::{
    ErrorClass, Event, MessageEnded, MessageStarted, Native, Outcome, Reason, Scope,
    SessionStarted, ToolEnded, ToolStatus, TurnEnded, TurnStarted, Usage,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The decoder of `gemini-api`.
#[derive(Debug, Default)]
pub struct GeminiApiDecoder {
    /// A response has begun and not ended.
    open: bool,
    /// A response has begun.
    any: bool,
    parts: Parts,
    counts: Counts,
    /// The calls that earlier responses left to the client.
    left_to_client: Vec<Text<'static>>,
}

impl Decoder for GeminiApiDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |chunk: &mut Chunk<'_>, own, sink| {
            self.decode_chunk(chunk, &mut Emitter::new(own, sink));
        });
    }

    fn set_id_tag(&mut self, tag: &str) {
        self.parts.set_id_tag(tag);
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        // Every chunk has the counts so far, so those of a response that was cut off are known.
        let usage = self.counts.usage(Scope::Request).filter(|_| self.open);
        if let Some(usage) = usage.map(|usage| Usage { estimated: true, ..usage }) {
            let mut out = Emitter::without_record(sink);
            self.parts.end_block(&mut out);
            let message = self.parts.message.clone();
            out.emit(MessageEnded { message, stop_reason: None, usage: Some(usage) });
        }
    }
}

impl GeminiApiDecoder {
    fn decode_chunk<'a>(&mut self, chunk: &mut Chunk<'a>, out: &mut Emitter<'_, 'a>) {
        if let Some(failure) = chunk.error.take() {
            self.fail(failure, out);
            return;
        }
        if !is_response(chunk) {
            out.unknown(None);
            return;
        }
        let other = chunk.id.is_some() && self.parts.message.is_some();
        let other = other && chunk.id != self.parts.message;
        if self.open && other {
            self.cut(out);
        }
        let ended_before = self.any && !self.open && !other;
        if ended_before && chunk.prompt.is_none() && chunk.candidates.iter().all(adds_nothing) {
            let is_other = chunk.candidates.iter().any(is_alternative);
            out.native(if is_other { "candidate" } else { "chunk" });
            return;
        }
        let begins = !self.open;
        let mut emitted = begins;
        if begins {
            self.begin(chunk, out);
        }
        if let Some(usage) = &chunk.usage {
            self.counts.replace(usage);
        }
        for candidate in std::mem::take(&mut chunk.candidates) {
            emitted |= self.decode_candidate(candidate, begins, out);
        }
        let prompt = chunk.prompt.take().filter(|prompt| prompt.block_reason.is_some());
        if let Some(prompt) = prompt.filter(|_| self.open) {
            self.end(blocked(prompt), None, out);
            emitted = true;
        }
        if !emitted {
            out.native("chunk");
        }
    }

    /// Decodes a candidate; returns whether it emitted an event.
    fn decode_candidate<'a>(
        &mut self,
        candidate: Candidate<'a>,
        begins: bool,
        out: &mut Emitter<'_, 'a>,
    ) -> bool {
        if is_alternative(&candidate) {
            out.native("candidate");
            return true;
        }
        let mut emitted = false;
        // A chunk that is both the first and the last is the whole response.
        let is_whole = begins && candidate.finish_reason.is_some();
        for part in candidate.content.map(|content| content.parts).unwrap_or_default() {
            emitted |= self.parts.take(part, is_whole, out);
        }
        let kept = [
            ("continuationToken", candidate.continuation),
            ("groundingMetadata", candidate.grounding),
            ("citationMetadata", candidate.citations),
            ("urlContextMetadata", candidate.urls),
        ];
        for (name, raw) in kept.into_iter().filter(|(_, raw)| raw.is_some()) {
            out.emit(Native { name: Text::plain(name), raw });
            emitted = true;
        }
        if let Some(reason) = candidate.finish_reason {
            let calls = self.parts.take_calls();
            let ended = finished(&reason, candidate.finish_message.as_ref(), !calls.is_empty());
            self.left_to_client = calls;
            self.end(ended, Some(reason), out);
            emitted = true;
        }
        emitted
    }

    fn begin<'a>(&mut self, chunk: &Chunk<'a>, out: &mut Emitter<'_, 'a>) {
        self.parts.begin(chunk.id.clone().map(Text::into_owned));
        self.counts = Counts::default();
        self.any = true;
        self.begin_turn(chunk.model.clone(), out);
        let (message, model) = (chunk.id.clone(), chunk.model.clone());
        out.emit(MessageStarted { message, model, usage: None });
    }

    fn begin_turn<'a>(&mut self, model: Option<Text<'a>>, out: &mut Emitter<'_, 'a>) {
        self.open = true;
        let agent = Some(Text::plain(super::DIALECT.name));
        out.emit(SessionStarted { agent, model, ..SessionStarted::default() });
        out.emit(TurnStarted::default());
        let calls = std::mem::take(&mut self.left_to_client);
        abandon(calls, "the client's answer is no part of this stream", out);
    }

    fn end(
        &mut self,
        mut ended: TurnEnded<'static>,
        stop_reason: Option<Text<'_>>,
        out: &mut Emitter<'_, '_>,
    ) {
        self.open = false;
        self.parts.end_block(out);
        if ended.outcome != Outcome::WaitingForClient {
            let calls = std::mem::take(&mut self.left_to_client);
            abandon(calls, "the response was cut off, so its calls are not run", out);
        }
        ended.usage = self.counts.usage(Scope::Turn);
        self.emit_message_ended(stop_reason, out);
        out.emit(ended);
    }

    fn fail<'a>(&mut self, failure: Failure<'a>, out: &mut Emitter<'_, 'a>) {
        let mut usage = None;
        if std::mem::replace(&mut self.open, false) {
            self.close(out);
            usage = self.counts.usage(Scope::Turn);
        } else {
            self.begin_turn(None, out);
            self.open = false;
        }
        let error = failure::error(&failure);
        let ended = TurnEnded {
            outcome: Outcome::Failed,
            cause: Some(error.message.clone()),
            class: Some(error.class.clone()).filter(|class| *class != ErrorClass::Unspecified),
            reason: error.code.clone(),
            http_status: error.http_status,
            usage,
            ..TurnEnded::default()
        };
        out.emit(error);
        // They state, for example, when the request may be repeated.
        if let Some(details) = failure.details {
            out.emit(Native { name: Text::plain("error.details"), raw: Some(details) });
        }
        out.emit(ended);
    }

    /// Ends a response that another one cut off.
    fn cut(&mut self, out: &mut Emitter<'_, '_>) {
        self.open = false;
        self.close(out);
        let ended = TurnEnded {
            outcome: Outcome::Failed,
            cause: Some(Text::plain("another response began before the end of this one")),
            class: Some(ErrorClass::Network),
            usage: self.counts.usage(Scope::Turn),
            ..TurnEnded::default()
        };
        out.sink.event(Event::new(ended).because(Some(Reason::Implied)));
    }

    /// Closes what is open in a response that did not reach its end.
    fn close(&mut self, out: &mut Emitter<'_, '_>) {
        self.parts.end_block(out);
        abandon(self.parts.take_calls(), "the response was not completed", out);
        self.emit_message_ended(None, out);
    }

    fn emit_message_ended(&self, stop_reason: Option<Text<'_>>, out: &mut Emitter<'_, '_>) {
        let message = self.parts.message.as_ref().map(Text::borrowed);
        let usage = self.counts.usage(Scope::Request);
        out.emit(MessageEnded { message, stop_reason, usage });
    }
}

/// Whether this is not the first candidate. Others exist only on request, and are alternatives to it.
fn is_alternative(candidate: &Candidate<'_>) -> bool {
    candidate.index.is_some_and(|index| index > 0)
}

/// Whether a candidate has nothing that a response which has ended could continue with.
fn adds_nothing(candidate: &Candidate<'_>) -> bool {
    let is_empty = candidate.content.as_ref().is_none_or(|content| content.parts.is_empty());
    is_empty || is_alternative(candidate)
}

/// Whether an object is a chunk of a response.
fn is_response(chunk: &Chunk<'_>) -> bool {
    let has_content = !chunk.candidates.is_empty() || chunk.prompt.is_some();
    has_content || chunk.usage.is_some() || chunk.id.is_some() || chunk.model.is_some()
}

fn abandon(calls: Vec<Text<'static>>, why: &'static str, out: &mut Emitter<'_, '_>) {
    for call in calls {
        out.emit(ToolEnded {
            call,
            status: ToolStatus::Abandoned,
            error: Some(Text::plain(why)),
            output: None::<Json<'_>>,
            ..ToolEnded::default()
        });
    }
}
