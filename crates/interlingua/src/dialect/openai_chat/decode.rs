//! Decodes a response of Chat Completions: its start, text, reasoning and end.

use super::calls::{Calls, Context, Settlement};
use super::ended::{Counts, outcome_of};
use super::wire::{Choice, Chunk, Delta, Part, ReasoningDetail};
use crate::dialect::decode::Own;
use crate::dialect::openai_error::{ErrorFields, Failure};
use crate::dialect::{Decoder, Emitter, EventSink, arguments, each_record};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, ErrorClass, MessageEnded,
    MessageStarted, Native, Notice, Outcome, SessionStarted, Severity, ToolEnded, ToolStatus,
    TurnEnded, TurnStarted,
};
use crate::framing::FrameText;
use crate::json::read::Shaped;
use crate::json::{RepeatedRecord, Text};

/// The decoder of `openai-chat`.
#[derive(Debug, Default)]
pub struct OpenAiChatDecoder {
    id_tag: String,
    /// The number of responses so far.
    responses: u64,
    response: Response,
    /// The calls of earlier responses that the client has to answer.
    client_calls: Vec<Text<'static>>,
}

/// The response that is being read.
#[derive(Debug, Default)]
struct Response {
    state: State,
    /// The provider's id.
    id: Option<String>,
    /// The id of the message.
    message: Text<'static>,
    /// It has content, so that a repeated start is that of another response.
    has_content: bool,
    message_ended: bool,
    refused: bool,
    /// Other choices than the first were reported.
    others_reported: bool,
    finish_reason: Option<Text<'static>>,
    counts: Counts,
    /// The open block, and its index in the message.
    open: Option<(u64, BlockKind)>,
    /// The number of blocks so far.
    blocks: u64,
    /// The signature of the open reasoning block.
    signature: Option<Text<'static>>,
    calls: Calls,
    /// The calls that the client has to run.
    open_calls: Vec<Text<'static>>,
    /// The prefix of the ids of calls without one.
    call_prefix: String,
    /// The last chunk that was a piece of text or reasoning and nothing else.
    repeated: RepeatedRecord<BlockKind>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    None,
    Open,
    Ended,
}

impl Decoder for OpenAiChatDecoder {
    fn set_id_tag(&mut self, tag: &str) {
        self.id_tag = tag.to_owned();
    }

    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        if frame.text.trim_ascii().is_empty() {
            sink.ignored("an event without data keeps the connection alive");
            return;
        }
        if self.response.repeat(frame.text, sink) {
            return;
        }
        let is_error = frame.event == "error";
        each_record(frame, sink, |chunk: &mut Chunk<'_>, own, sink| {
            self.chunk(std::mem::take(chunk), is_error, own, sink);
        });
    }

    fn done(&mut self, sink: &mut dyn EventSink) {
        let mut out = Emitter::without_record(sink);
        if self.response.state == State::Open {
            self.end(&mut out);
        } else {
            out.emit(Native { name: Text::plain("[DONE]"), raw: None });
        }
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        let mut out = Emitter::without_record(sink);
        if self.response.state != State::Open {
            return;
        }
        if self.response.finish_reason.is_some() {
            self.end(&mut out);
        } else {
            self.response.release_calls(&mut out);
        }
    }
}

impl OpenAiChatDecoder {
    fn chunk<'a>(
        &mut self,
        mut chunk: Chunk<'a>,
        is_error: bool,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let mut out = Emitter::new(own, sink);
        let is_chunk = matches!(chunk.choices, Shaped::List(_)) || chunk.usage.is_some();
        if let Some(failure) = failure_of(&mut chunk, is_error, is_chunk) {
            self.fail(&failure, &mut out);
            return;
        }
        if !is_chunk {
            let name = chunk.object.or(chunk.kind);
            out.unknown(name);
            return;
        }
        let choices = match std::mem::take(&mut chunk.choices) {
            Shaped::List(choices) => choices,
            _ => Vec::new(),
        };
        if !self.enter(&chunk, &choices, &mut out) {
            out.native("chunk/empty");
            return;
        }
        self.response.learn(&chunk, &choices, own);
        if let Some(usage) = chunk.usage {
            self.response.counts.replace(&usage);
        }
        let only_counts = choices.is_empty();
        let mut whole = false;
        for (at, choice) in choices.into_iter().enumerate() {
            if choice.index.unwrap_or(at as u64) == 0 {
                whole |= choice.delta.is_none() && choice.message.is_some();
                self.response.choice(choice, &mut out);
            } else {
                self.response.other_choice(&mut out);
            }
        }
        if whole {
            self.end(&mut out);
        } else if only_counts && self.response.finish_reason.is_some() {
            self.response.end_message(&mut out);
        }
        if !out.emitted {
            out.native("chunk/empty");
        }
    }

    /// Begins a response, if the chunk does not belong to the current one. Returns `false` for a chunk
    /// that has nothing to begin a response with.
    fn enter<'a>(
        &mut self,
        chunk: &Chunk<'a>,
        choices: &[Choice<'a>],
        out: &mut Emitter<'_, 'a>,
    ) -> bool {
        let response = &self.response;
        let id = chunk.id.as_ref().filter(|id| !id.is_empty());
        let other_id = matches!((id, &response.id), (Some(id), Some(own)) if *id != **own);
        let has_role = choices.iter().filter_map(Choice::piece).any(|piece| piece.role.is_some());
        match response.state {
            State::Open if !other_id => return true,
            // Some servers give every chunk an id of its own.
            State::Open if response.finish_reason.is_none() && !response.has_content => {
                return true;
            }
            State::Open if !has_role => return true,
            State::None | State::Ended if choices.is_empty() => return false,
            _ => {}
        }
        self.leave(out);
        self.begin(id, chunk.model.as_ref().filter(|model| !model.is_empty()), out);
        true
    }

    /// Ends the current response, because another one follows it.
    fn leave(&mut self, out: &mut Emitter<'_, '_>) {
        if self.response.state != State::Open {
            return;
        }
        if self.response.finish_reason.is_some() {
            self.end(out);
            return;
        }
        let why = "the response was cut off";
        self.response.settle(Settlement::Stopped(why), out);
        self.response.end_message(out);
        self.response.state = State::Ended;
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
        let before = self.response.id.take();
        let own = id.map(Text::to_string);
        // A server may give every response the same id; those are different messages.
        let message = match &own {
            Some(id) if own != before => id.clone(),
            Some(id) => format!("{id}-{}", self.responses),
            None => format!("message_{}_{}", self.id_tag, self.responses),
        };
        let message = Text::from(message);
        out.emit(MessageStarted {
            message: Some(message.borrowed()),
            model: model.cloned(),
            usage: None,
        });
        self.response = Response {
            state: State::Open,
            id: own,
            message,
            call_prefix: format!("call_{}_{}_", self.id_tag, self.responses),
            ..Response::default()
        };
    }

    fn begin_turn<'a>(&mut self, model: Option<&Text<'a>>, out: &mut Emitter<'_, 'a>) {
        self.responses += 1;
        out.emit(SessionStarted {
            agent: Some(Text::plain(super::DIALECT.name)),
            model: model.cloned(),
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

    /// Ends a response that stopped for a reason, or whose stream was declared as done.
    fn end(&mut self, out: &mut Emitter<'_, '_>) {
        let response = &mut self.response;
        let reason = response.finish_reason.clone();
        response.settle(Settlement::of(reason.as_ref()), out);
        response.end_message(out);
        response.state = State::Ended;
        let calls = std::mem::take(&mut response.open_calls);
        let ended = outcome_of(reason.as_ref(), response.refused, !calls.is_empty());
        let unusable = calls.is_empty() && !response.calls.is_empty();
        let mut ended = TurnEnded {
            stop_reason: reason,
            usage: response.counts.of_turn(),
            cost: response.counts.cost(),
            ..ended
        };
        if unusable && ended.outcome == Outcome::Completed {
            arguments::end_with_malformed_calls(&mut ended);
        }
        out.emit(ended);
        self.client_calls = calls;
    }

    /// Ends the response with an error, which may be all there is.
    fn fail<'a>(&mut self, failure: &Failure<'a>, out: &mut Emitter<'_, 'a>) {
        if self.response.state == State::Open {
            self.response.settle(Settlement::Stopped("the response failed"), out);
        } else {
            self.begin_turn(None, out);
        }
        out.emit(failure.to_error());
        let mut ended = failure.to_turn_ended();
        if self.response.state == State::Open {
            self.response.end_message(out);
            ended.usage = self.response.counts.of_turn();
            ended.cost = self.response.counts.cost();
        }
        out.emit(ended);
        self.response.state = State::Ended;
    }
}

/// The error that a record reports, in any of the forms that servers use.
fn failure_of<'a>(chunk: &mut Chunk<'a>, is_error: bool, is_chunk: bool) -> Option<Failure<'a>> {
    if let Some(failure) = Failure::of_shape(std::mem::take(&mut chunk.error)) {
        return Some(failure);
    }
    if let Shaped::List(choices) = &mut chunk.choices {
        let mut errors = choices.iter_mut().map(|choice| std::mem::take(&mut choice.error));
        return errors.find_map(Failure::of_shape);
    }
    let object_is_error = chunk.object.as_ref().is_some_and(|object| *object == "error");
    let type_is_error = chunk.kind.as_ref().is_some_and(|kind| *kind == "error");
    if is_error || object_is_error || type_is_error {
        return Some(Failure::of(ErrorFields {
            message: chunk.message.take(),
            kind: chunk.kind.take().filter(|kind| *kind != "error"),
            code: chunk.code.take(),
            ..ErrorFields::default()
        }));
    }
    let detail = chunk.detail.take().filter(|_| !is_chunk)?;
    Some(Failure::of_detail(&detail))
}

/// The text of a chunk that contains nothing else that is read.
fn only_text<'c, 'a>(
    chunk: &Chunk<'a>,
    choices: &'c [Choice<'a>],
) -> Option<(&'c Text<'a>, BlockKind)> {
    let [Choice { index: None | Some(0), delta: Some(delta), message: None, finish_reason, .. }] =
        choices
    else {
        return None;
    };
    let is_empty = chunk.usage.is_none()
        && finish_reason.is_none()
        && delta.reasoning_details.is_empty()
        && delta.refusal.is_none()
        && delta.tool_calls.is_empty()
        && delta.function_call.is_none()
        && delta.annotations.is_none()
        && delta.images.is_none()
        && delta.audio.is_none();
    let (text, kind) = match (&delta.content, &delta.reasoning_content, &delta.reasoning) {
        (Shaped::Text(text), None, None) => (text, BlockKind::Text),
        (Shaped::Other, Some(text), None) | (Shaped::Other, None, Some(text)) => {
            (text, BlockKind::Reasoning)
        }
        _ => return None,
    };
    (is_empty && !text.is_empty() && !text.has_escapes()).then_some((text, kind))
}

impl<'a> Choice<'a> {
    /// The next piece of the answer, or all of it.
    fn piece(&self) -> Option<&Delta<'a>> {
        self.delta.as_ref().or(self.message.as_ref())
    }
}

impl Response {
    /// Reads a chunk that differs from an earlier one of this response only in its text. Returns
    /// `false` for any other chunk.
    #[inline]
    fn repeat(&mut self, record: &str, sink: &mut dyn EventSink) -> bool {
        let (State::Open, Some((text, kind))) = (self.state, self.repeated.read(record)) else {
            return false;
        };
        // A chunk with an empty text is kept as it is.
        if text.is_empty() {
            return false;
        }
        let kind = kind.clone();
        sink.record(record);
        self.text(kind, text, true, &mut Emitter::new(Own(record), sink));
        true
    }

    /// Remembers a chunk of the open response that consists of text.
    fn learn(&mut self, chunk: &Chunk<'_>, choices: &[Choice<'_>], own: Own<'_>) {
        let is_of = |id: &Text<'_>| self.id.as_ref().is_none_or(|own| *id == **own);
        if let Some((text, kind)) = only_text(chunk, choices)
            && chunk.id.as_ref().is_none_or(is_of)
        {
            self.repeated.learn(own.0, text.body(), kind);
        }
    }

    fn choice<'a>(&mut self, mut choice: Choice<'a>, out: &mut Emitter<'_, 'a>) {
        let streamed = choice.delta.is_some();
        if let Some(piece) = choice.delta.take().or(choice.message.take()) {
            self.piece(piece, streamed, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason.into_owned());
            let settlement = Settlement::of(self.finish_reason.as_ref());
            self.settle(settlement, out);
        }
    }

    fn piece<'a>(&mut self, mut piece: Delta<'a>, streamed: bool, out: &mut Emitter<'_, 'a>) {
        self.reasoning(&mut piece, streamed, out);
        match std::mem::take(&mut piece.content) {
            Shaped::Text(text) => self.text(BlockKind::Text, text, streamed, out),
            Shaped::List(parts) => {
                for part in parts {
                    self.part(part, streamed, out);
                }
            }
            Shaped::Record(part) => self.part(part, streamed, out),
            Shaped::Other => {}
        }
        if let Some(refusal) = piece.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.text(BlockKind::Text, refusal, streamed, out);
        }
        let function = piece.function_call.map(|function| super::wire::CallPiece {
            function: Some(function),
            ..super::wire::CallPiece::default()
        });
        let calls = piece.tool_calls.into_iter().chain(function);
        for call in calls {
            self.has_content = true;
            self.end_block(out);
            let context = Context { message: &self.message, id_prefix: &self.call_prefix };
            if !self.calls.add(call, streamed, &context, out) {
                out.native("tool_calls/late");
            } else if streamed && !out.emitted {
                out.emit(Native { name: Text::plain("tool_calls/begun"), raw: None });
            }
        }
        let others =
            [("annotations", piece.annotations), ("images", piece.images), ("audio", piece.audio)];
        for (name, value) in others {
            if value.is_some_and(|value| value.get() != "[]") {
                out.native(name);
            }
        }
    }

    /// Reads reasoning. A server may state the same text in two fields, and a third time in the form
    /// in which it has to be returned.
    fn reasoning<'a>(&mut self, piece: &mut Delta<'a>, streamed: bool, out: &mut Emitter<'_, 'a>) {
        let is_there = |text: &Text<'_>| !text.is_empty();
        let content = piece.reasoning_content.take().filter(is_there);
        let mut text = content.or(piece.reasoning.take().filter(is_there));
        let details = std::mem::take(&mut piece.reasoning_details);
        let signature = details.iter().find_map(|detail| detail.signature.clone());
        if text.is_none() {
            let texts: Vec<_> = details
                .iter()
                .filter_map(|detail: &ReasoningDetail<'_>| detail.text.as_ref())
                .collect();
            text = match &*texts {
                [] => None,
                [one] => Some((*one).clone()),
                many => Some(Text::from(many.iter().map(ToString::to_string).collect::<String>())),
            };
        }
        if let Some(text) = text {
            if !streamed {
                self.signature = signature.map(Text::into_owned);
                self.text(BlockKind::Reasoning, text, streamed, out);
                return;
            }
            self.text(BlockKind::Reasoning, text, streamed, out);
        }
        if let Some(signature) = signature {
            let is_open = matches!(self.open, Some((_, BlockKind::Reasoning)));
            self.signature = Some(signature.into_owned());
            if !is_open {
                // The reasoning itself is encrypted.
                self.whole_block(BlockKind::HiddenReasoning, Text::default(), out);
            }
        }
    }

    /// Reads a part of a content that is a list.
    fn part<'a>(&mut self, part: Part<'a>, streamed: bool, out: &mut Emitter<'_, 'a>) {
        match part.kind.as_ref().map_or("text", Text::body) {
            "text" | "output_text" => {
                self.text(BlockKind::Text, part.text.unwrap_or_default(), streamed, out);
            }
            "thinking" | "reasoning" => match part.thinking {
                Shaped::List(parts) => {
                    for part in parts {
                        let text = part.text.unwrap_or_default();
                        self.text(BlockKind::Reasoning, text, streamed, out);
                    }
                }
                Shaped::Text(text) => self.text(BlockKind::Reasoning, text, streamed, out),
                _ => {
                    let text = part.text.unwrap_or_default();
                    self.text(BlockKind::Reasoning, text, streamed, out);
                }
            },
            other => out.unknown(Text::from(format!("content/{other}"))),
        }
    }

    /// Emits the next piece of a text, or all of it.
    #[inline]
    fn text<'a>(
        &mut self,
        kind: BlockKind,
        text: Text<'a>,
        streamed: bool,
        out: &mut Emitter<'_, 'a>,
    ) {
        if text.is_empty() {
            return;
        }
        self.has_content = true;
        if !streamed {
            self.whole_block(kind, text, out);
            return;
        }
        let index = match &self.open {
            Some((index, open)) if *open == kind => *index,
            _ => self.start_block(kind.clone(), out),
        };
        let message = Some(self.message.borrowed());
        out.emit(BlockDelta { block: 0, message, index, kind, text });
    }

    fn start_block(&mut self, kind: BlockKind, out: &mut Emitter<'_, '_>) -> u64 {
        self.end_block(out);
        let index = self.blocks;
        self.blocks += 1;
        self.open = Some((index, kind.clone()));
        out.emit(BlockStarted { block: 0, message: Some(self.message.borrowed()), index, kind });
        index
    }

    fn whole_block(&mut self, kind: BlockKind, text: Text<'_>, out: &mut Emitter<'_, '_>) {
        let signature = self.signature.take();
        self.end_block(out);
        out.emit(Block {
            message: Some(self.message.borrowed()),
            index: self.blocks,
            kind,
            text,
            signature,
            ..Block::default()
        });
        self.blocks += 1;
        self.has_content = true;
    }

    fn end_block(&mut self, out: &mut Emitter<'_, '_>) {
        let Some((index, kind)) = self.open.take() else { return };
        let message = Some(self.message.borrowed());
        let signature = self.signature.take();
        out.emit(BlockEnded { block: 0, message, index, kind, signature });
    }

    /// Reports a choice other than the first: it is kept as it is, apart from the message.
    fn other_choice(&mut self, out: &mut Emitter<'_, '_>) {
        if !std::mem::replace(&mut self.others_reported, true) {
            let text = "the response has several choices, of which only the first is read";
            out.emit(Notice { severity: Severity::Warning, text: Text::plain(text) });
        }
        out.native("choices/other");
    }

    /// Ends the open block, and settles the calls.
    fn settle(&mut self, settlement: Settlement, out: &mut Emitter<'_, '_>) {
        self.end_block(out);
        let context = Context { message: &self.message, id_prefix: &self.call_prefix };
        let open = self.calls.settle(settlement, &context, out);
        self.open_calls.extend(open);
    }

    fn release_calls(&mut self, out: &mut Emitter<'_, '_>) {
        let context = Context { message: &self.message, id_prefix: &self.call_prefix };
        self.calls.release(&context, out);
    }

    fn end_message(&mut self, out: &mut Emitter<'_, '_>) {
        if std::mem::replace(&mut self.message_ended, true) {
            return;
        }
        out.emit(MessageEnded {
            message: Some(self.message.borrowed()),
            stop_reason: self.finish_reason.as_ref().map(Text::borrowed),
            usage: self.counts.of_request(),
        });
    }
}
