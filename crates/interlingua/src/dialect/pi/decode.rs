//! Decodes pi's stream: sessions, turns, messages and retries.

use super::calls::{Made, Running};
use super::ended::{Totals, classify, counts, price};
use super::wire::{Content, Line, Message, Update};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Compacted, Data, Error, Event,
    Interrupted, MessageEnded, MessageStarted, Native, Notice, Retry, SessionStarted,
    SessionUpdated, Severity, TurnStarted, UserMessage, Withdrawn,
};
use crate::framing::FrameText;
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// The decoder of `pi`.
#[derive(Debug, Default)]
pub struct PiDecoder {
    id_tag: String,
    turn: Turn,
    totals: Totals,
    /// The number of messages of the model.
    messages: u64,
    /// The id of the current message.
    pub(super) message: String,
    model: String,
    /// The open block, and its index in the message.
    open: Option<(u64, BlockKind)>,
    /// The calls of the current message.
    pub(super) made: Vec<Made>,
    /// The calls that are running.
    pub(super) running: Vec<Running>,
}

/// The state of the turn.
#[derive(Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    None,
    Open,
    /// The run has ended, in a version without `agent_settled`. Another run may follow.
    RunEnded,
}

impl Decoder for PiDecoder {
    fn set_id_tag(&mut self, tag: &str) {
        self.id_tag = tag.to_owned();
    }

    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        if self.turn == Turn::RunEnded {
            self.end_turn(sink);
        } else if let Some(failure) = self.totals.failure.take() {
            let error = Error {
                class: failure.class,
                message: failure.message,
                http_status: failure.http_status,
                ..Error::default()
            };
            sink.event(Event::new(error));
        }
    }
}

impl PiDecoder {
    fn line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let kind = line.kind.take();
        let kind_body = kind.as_ref().map_or("", Text::body);
        match kind_body {
            "message_update" => match line.update.take() {
                Some(update) => self.update(update, own, sink),
                None => sink.event(Event::new(unknown(kind.clone(), own))),
            },
            "session" => self.session(line, sink),
            "agent_start" => self.start(own, sink),
            "agent_end" => {
                if self.turn == Turn::Open && line.will_retry.is_none() {
                    self.turn = Turn::RunEnded;
                }
                emit_native("agent_end", None, sink);
            }
            "agent_settled" => self.end_turn(sink),
            "message_start" | "message_end" => match &line.message {
                Some(message) => self.message(kind_body, message, sink),
                None => sink.event(Event::new(unknown(kind.clone(), own))),
            },
            "tool_execution_start" => self.call(line, sink),
            "tool_execution_update" => self.progress(line, sink),
            "tool_execution_end" => self.answer(line, sink),
            "auto_retry_start" => self.retry(line, sink),
            "compaction_end" | "auto_compaction_end" => compacted(line, own, sink),
            "extension_error" => {
                let text = line.error.take().unwrap_or_else(|| Text::plain("an extension failed"));
                sink.event(Event::new(Notice { severity: Severity::Warning, text }));
            }
            "turn_start" => emit_native("turn_start", None, sink),
            "turn_end" => emit_native("turn_end", None, sink),
            "auto_retry_end"
            | "entry_appended"
            | "queue_update"
            | "compaction_start"
            | "auto_compaction_start"
            | "session_info_changed"
            | "thinking_level_changed"
            | "summarization_retry_scheduled"
            | "summarization_retry_attempt_start"
            | "summarization_retry_finished" => emit_native(kind_body, own.json(), sink),
            _ => sink.event(Event::new(unknown(kind.clone(), own))),
        }
    }

    fn session(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let started = SessionStarted {
            id: line.id.take(),
            cwd: line.cwd.take(),
            agent: Some(Text::plain("pi")),
            ..SessionStarted::default()
        };
        sink.event(Event::new(started).at(line.timestamp.take()));
    }

    fn start(&mut self, own: Own<'_>, sink: &mut dyn EventSink) {
        if self.turn == Turn::RunEnded {
            self.end_turn(sink);
        }
        if self.turn == Turn::Open {
            // The next attempt of the same turn.
            emit_native("agent_start/again", own.json(), sink);
            return;
        }
        self.turn = Turn::Open;
        sink.event(Event::new(TurnStarted::default()));
    }

    fn end_turn(&mut self, sink: &mut dyn EventSink) {
        self.turn = Turn::None;
        self.running.clear();
        self.end_block(None, sink);
        if self.totals.is_aborted() {
            sink.event(Event::new(Interrupted { text: None }));
        }
        let ended = self.totals.ended();
        if ended.outcome == crate::event::Outcome::Failed {
            sink.event(Event::new(Error {
                class: ended.class.clone().unwrap_or_default(),
                message: ended.cause.clone().unwrap_or_default(),
                http_status: ended.http_status,
                fatal: true,
                ..Error::default()
            }));
        }
        sink.event(Event::new(ended));
    }

    fn update<'a>(&mut self, update: Update<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let index = update.index.unwrap_or(0);
        let kind_body = update.kind.as_ref().map_or("", Text::body);
        match kind_body {
            "text_delta" => self.block_delta(index, BlockKind::Text, update.delta, sink),
            "thinking_delta" => self.block_delta(index, BlockKind::Reasoning, update.delta, sink),
            "text_start" => self.begin_block(index, BlockKind::Text, sink),
            "thinking_start" => self.begin_block(index, BlockKind::Reasoning, sink),
            "text_end" => self.complete_block(index, BlockKind::Text, update.content, sink),
            "thinking_end" => {
                self.complete_block(index, BlockKind::Reasoning, update.content, sink)
            }
            "toolcall_start" => self.begin_input(index, update, own, sink),
            "toolcall_delta" => self.input_delta(index, update, own, sink),
            "toolcall_end" => match update.call {
                Some(call) => self.call_made(index, call, sink),
                None => emit_native("message_update/again", own.json(), sink),
            },
            // `message_start` and `message_end` report the same.
            "start" | "done" | "error" => emit_native("message_update/again", None, sink),
            other => {
                let name = Text::from(format!("message_update/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    fn begin_block(&mut self, index: u64, kind: BlockKind, sink: &mut dyn EventSink) {
        self.end_block(None, sink);
        self.open = Some((index, kind.clone()));
        let message = Some(Text::plain(&self.message));
        sink.event(Event::new(BlockStarted { message, index, kind, ..BlockStarted::default() }));
    }

    fn block_delta(
        &mut self,
        index: u64,
        kind: BlockKind,
        text: Option<Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            self.begin_block(index, kind.clone(), sink);
        }
        let (message, text) = (Some(Text::plain(&self.message)), text.unwrap_or_default());
        sink.event(Event::new(BlockDelta { message, index, kind, text, ..BlockDelta::default() }));
    }

    /// Ends a block with its complete text. If the next block has already ended it, nothing is
    /// emitted.
    fn complete_block(
        &mut self,
        index: u64,
        kind: BlockKind,
        text: Option<Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            emit_native("message_update/again", None, sink);
            return;
        }
        if let Some(text) = text {
            let message = Some(Text::plain(&self.message));
            sink.event(Event::new(Block { message, index, kind, text, ..Block::default() }));
        }
        self.end_block(None, sink);
    }

    /// Ends the open block. pi begins the next block before it ends this one.
    pub(super) fn end_block(&mut self, signature: Option<Text<'_>>, sink: &mut dyn EventSink) {
        if let Some((index, kind)) = self.open.take() {
            let message = Some(Text::plain(&self.message));
            let ended = BlockEnded { message, index, kind, signature, ..BlockEnded::default() };
            sink.event(Event::new(ended));
        }
    }

    fn message(&mut self, kind: &str, raw: &Json<'_>, sink: &mut dyn EventSink) {
        let message = read::record_of::<Message<'_>>(raw).unwrap_or_default();
        match (kind, message.role.as_ref().map_or("", Text::body)) {
            ("message_start", "assistant") => self.begin_message(&message, sink),
            ("message_end", "assistant") => self.end_message(message, sink),
            ("message_start", "user") => {
                let text = text_of(&message.content);
                let event = Event::new(UserMessage { text, ..UserMessage::default() });
                sink.event(event.at(message.time));
            }
            ("message_start", "system") if !message.tools.is_empty() => {
                let names: Vec<_> = message.tools.iter().map(|tool| tool.name.as_ref()).collect();
                let tools = Json::from_serialize(&names);
                sink.event(Event::new(SessionUpdated { tools, ..SessionUpdated::default() }));
            }
            (_, role) => {
                // A message that was emitted already is not kept.
                let repeats = kind == "message_end" || role == "toolResult";
                let raw = Some(raw.borrowed()).filter(|_| !repeats);
                let name = Text::from(format!("{kind}/{role}"));
                sink.event(Event::new(Native { name, raw }));
            }
        }
    }

    fn begin_message(&mut self, message: &Message<'_>, sink: &mut dyn EventSink) {
        self.end_block(None, sink);
        self.made.clear();
        self.messages += 1;
        self.message = format!("message_{}_{}", self.id_tag, self.messages);
        if let Some(model) = &message.model
            && *model != *self.model
        {
            self.model = model.to_plain().into_owned();
            let model = Some(model.clone());
            sink.event(Event::new(SessionUpdated { model, ..SessionUpdated::default() }));
        }
        let started = MessageStarted {
            message: Some(Text::plain(&self.message)),
            model: message.model.clone(),
            usage: None,
        };
        sink.event(Event::new(started).at(message.time.clone()));
    }

    /// Emits what the deltas of the message did not contain, and ends it.
    fn end_message(&mut self, message: Message<'_>, sink: &mut dyn EventSink) {
        if self.message.is_empty() {
            self.begin_message(&message, sink);
        }
        let blocks = match message.content {
            Shaped::List(blocks) => blocks,
            _ => Vec::new(),
        };
        let stop_reason = message.stop_reason.as_ref().map_or("", Text::body);
        let cut_off = matches!(stop_reason, "error" | "aborted");
        for (index, block) in (0..).zip(blocks) {
            self.block(index, block, cut_off, sink);
        }
        self.end_block(None, sink);
        if cut_off {
            self.cancel_calls(sink);
        }
        let usage = message.usage.as_ref().and_then(counts);
        let cost = price(message.usage.as_ref().and_then(|usage| usage.cost.as_ref()));
        let (stop_reason, error) = (message.stop_reason, message.error);
        self.totals.add_message(usage.as_ref(), cost, stop_reason.as_ref(), error.as_ref());
        let message_id = Some(Text::plain(&self.message));
        sink.event(
            Event::new(MessageEnded { message: message_id, stop_reason, usage }).at(message.time),
        );
    }

    fn block(&mut self, index: u64, block: Content<'_>, cut_off: bool, sink: &mut dyn EventSink) {
        let unfinished = |made: &Made| made.index == index && !made.complete;
        let kind = match block.kind.as_ref().map_or("", Text::body) {
            // An input that was cut off is not usable.
            "toolCall" if cut_off && self.made.iter().any(unfinished) => return,
            "toolCall" => return self.call_made(index, block, sink),
            "text" => BlockKind::Text,
            "thinking" if block.redacted == Some(true) => BlockKind::HiddenReasoning,
            "thinking" => BlockKind::Reasoning,
            "image" => BlockKind::Image,
            other => BlockKind::from(other),
        };
        sink.event(Event::new(Block {
            message: Some(Text::plain(&self.message)),
            index,
            kind,
            text: block.text.unwrap_or_default(),
            signature: block.signature,
            ..Block::default()
        }));
        if self.open.as_ref().is_some_and(|(open, _)| *open == index) {
            self.end_block(None, sink);
        }
    }

    fn retry(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let message = line.error.take();
        let failure = self.totals.failure.take();
        let (class, http_status) = match &failure {
            Some(failure) => (failure.class.clone(), failure.http_status),
            None => message.as_ref().map(classify).unwrap_or_default(),
        };
        // The next request repeats the text of the failed one.
        sink.event(Event::new(Withdrawn {
            message: Some(Text::plain(&self.message)),
            reason: message.clone(),
            ..Withdrawn::default()
        }));
        sink.event(Event::new(Retry {
            attempt: line.attempt,
            of: line.attempts,
            delay_ms: line.delay_ms,
            class,
            http_status,
            message,
        }));
    }
}

fn compacted<'a>(line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
    let Some(result) = line.result.take().filter(|_| line.aborted != Some(true)) else {
        if let Some(text) = line.error.take() {
            sink.event(Event::new(Notice { severity: Severity::Warning, text }));
            return;
        }
        emit_native("compaction_end/nothing", own.json(), sink);
        return;
    };
    sink.event(Event::new(Compacted {
        trigger: line.reason.take(),
        tokens_before: result.tokens_before,
        tokens_after: None,
        details: own.json(),
    }));
}

/// The content of a user message as one text.
fn text_of<'a>(content: &Shaped<'a, Content<'a>>) -> Text<'a> {
    match content {
        Shaped::Text(text) => text.clone(),
        Shaped::List(blocks) if blocks.len() == 1 => {
            blocks.first().and_then(|block| block.text.clone()).unwrap_or_default()
        }
        Shaped::List(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.text.as_ref());
            Text::from(
                texts.map(|text| text.to_plain().into_owned()).collect::<Vec<_>>().join("\n"),
            )
        }
        _ => Text::default(),
    }
}

/// Emits a record that has no event of its own, or that repeats earlier ones.
pub(super) fn emit_native(name: &str, raw: Option<Json<'_>>, sink: &mut dyn EventSink) {
    sink.event(Event::new(Data::from(Native { name: Text::plain(name), raw })));
}
