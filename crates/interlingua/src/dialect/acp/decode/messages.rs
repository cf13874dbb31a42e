//! Chunks of text and of thoughts, and the other meanings that some agents give them.
//!
//! Gemini CLI reports a change of its mode as the text `[MODE_UPDATE] name`. Copilot CLI reports
//! errors and notices as complete chunks that begin with `Error: ` and `Info: `.

use super::agent::Agent;
use super::responses::{classify_text, request_usage};
use super::{AcpDecoder, is_replay, meta_of};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Content, RawLine, Update};
use crate::dialect::decode::Own;
use crate::event::{
    Artifact, Block, BlockDelta, BlockEnded, BlockKind, ErrorClass, Event, Interrupted, Native,
    Notice, Retry, SessionUpdated, Severity, TurnStarted,
};
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// The state of the streamed text.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    /// The open block.
    open: Option<OpenBlock>,
    /// The number of blocks so far, which is the index of the next one.
    index: u64,
    /// A chunk of Copilot that may be an error, held back until the next record shows whether it is
    /// one.
    held_error: Option<Text<'static>>,
    /// The text with which Copilot reported that the user cancelled the turn.
    pub(super) cancelled: Option<Text<'static>>,
}

#[derive(Debug)]
struct OpenBlock {
    kind: BlockKind,
    message: Option<Text<'static>>,
    parent: Option<Text<'static>>,
}

impl AcpDecoder {
    pub(super) fn read_agent_chunk<'a>(
        &mut self,
        update: &mut Update<'a>,
        session: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let thought = update.kind.as_ref().is_some_and(|kind| *kind == "agent_thought_chunk");
        let kind = if thought { BlockKind::Reasoning } else { BlockKind::Text };
        let meta = meta_of(&update.meta);
        let replay = is_replay(meta.as_ref());
        let content = match std::mem::take(&mut update.content) {
            Shaped::Record(content) => content,
            _ => Content::default(),
        };
        if content.kind.as_ref().is_some_and(|kind| *kind != "text") {
            self.enter_turn(false, replay, session, sink);
            self.deny_dropped_calls(None, sink);
            self.read_non_text(content, own, sink);
            return;
        }
        let text = content.text.unwrap_or_default();
        if text.is_empty() {
            let usage = meta.and_then(|meta| meta.usage).and_then(request_usage);
            if let Some(usage) = usage {
                let begins = !self.has_live_turn();
                self.enter_turn(false, replay, session, sink);
                // The grammar starts no turn for usage alone, so the start is emitted here.
                if begins && self.has_live_turn() {
                    sink.event(Event::new(TurnStarted::default()));
                }
                self.add_usage(&usage);
                sink.event(Event::new(usage));
            } else {
                emit_native_chunk(update.kind.take(), own, sink);
            }
            return;
        }
        self.release_held_text(sink);
        if self.agent == Agent::Gemini && self.read_mode_text(&text, sink) {
            emit_native_chunk(update.kind.take(), own, sink);
            return;
        }
        self.enter_turn(false, replay, session, sink);
        self.deny_dropped_calls(None, sink);
        if self.agent == Agent::Copilot && self.read_copilot_status(thought, &text, sink) {
            emit_native_chunk(update.kind.take(), own, sink);
            return;
        }
        let parent = meta.and_then(|meta| {
            let ours = meta.ours.and_then(|ours| ours.parent);
            ours.or(meta.claude.and_then(|claude| claude.parent))
        });
        self.emit_delta(kind, update.message.take(), parent, text, sink);
    }

    /// Emits the next delta of the open block, or of a new one.
    #[inline]
    fn emit_delta<'a>(
        &mut self,
        kind: BlockKind,
        message: Option<Text<'a>>,
        parent: Option<Text<'_>>,
        text: Text<'a>,
        sink: &mut dyn EventSink,
    ) {
        let continues = self.streaming.open.as_ref().is_some_and(|open| {
            open.kind == kind && open.message == message && open.parent == parent
        });
        if !continues {
            self.end_block(sink);
            self.streaming.open = Some(OpenBlock {
                kind: kind.clone(),
                message: message.clone().map(Text::into_owned),
                parent: parent.clone().map(Text::into_owned),
            });
        }
        let index = self.streaming.index;
        let delta = BlockDelta { block: 0, message, index, kind, text };
        match parent {
            Some(parent) => sink.event(Event::new(delta).within(Some(parent.into_owned()))),
            None => sink.event(Event::new(delta)),
        }
    }

    pub(super) fn end_block(&mut self, sink: &mut dyn EventSink) {
        let Some(open) = self.streaming.open.take() else { return };
        let index = self.streaming.index;
        self.streaming.index += 1;
        let OpenBlock { kind, message, parent } = open;
        let ended = BlockEnded { block: 0, message, index, kind, signature: None };
        sink.event(Event::new(ended).within(parent));
    }

    /// Emits content that is not text: a file, or a picture.
    fn read_non_text(&mut self, content: Content<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        self.release_held_text(sink);
        self.end_block(sink);
        if content.kind.as_ref().is_some_and(|kind| *kind == "resource_link") {
            let uri = content.uri.unwrap_or_default().to_plain().into_owned();
            let path = uri.strip_prefix("file://").map(str::to_owned).unwrap_or(uri);
            sink.event(Event::new(Artifact {
                path: Text::from(path),
                label: content.name,
                media_type: content.mime,
                size: content.size,
            }));
            return;
        }
        let kind = match content.kind.as_ref().map_or("", Text::body) {
            "image" => BlockKind::Image,
            other => BlockKind::Other(other.into()),
        };
        let index = self.streaming.index;
        self.streaming.index += 1;
        let content = raw_content(own);
        sink.event(Event::new(Block { index, kind, content, ..Block::default() }));
    }

    /// Emits a change of the mode if Gemini reports one with this text.
    fn read_mode_text(&mut self, text: &Text<'_>, sink: &mut dyn EventSink) -> bool {
        let Some(mode) = text.body().strip_prefix("[MODE_UPDATE] ") else { return false };
        let permission_mode = Some(Text::plain(mode));
        self.update_session(SessionUpdated { permission_mode, ..SessionUpdated::default() }, sink);
        true
    }

    /// Emits the notice, the retry or the interruption that Copilot reports with this text, or
    /// holds an error back. Returns false for ordinary text. In the middle of a text only retries
    /// and cancellations are recognised, since they change the course of the turn.
    fn read_copilot_status(
        &mut self,
        thought: bool,
        text: &Text<'_>,
        sink: &mut dyn EventSink,
    ) -> bool {
        if thought {
            return self.read_copilot_todo(text, sink);
        }
        if text.body().starts_with("Error: ") {
            self.streaming.held_error = Some(text.clone().into_owned());
            return true;
        }
        let Some(info) = text.body().strip_prefix("Info: ").filter(|_| !text.has_escapes()) else {
            return false;
        };
        let message = Text::plain(info);
        let (is_retry, is_cancellation) =
            (info.ends_with("Retrying..."), info == "Operation cancelled by user");
        if self.streaming.open.is_some() && !is_retry && !is_cancellation {
            return false;
        }
        self.end_block(sink);
        if is_retry {
            let class = ErrorClass::Unspecified;
            sink.event(Event::new(Retry { class, message: Some(message), ..Retry::default() }));
        } else if is_cancellation {
            self.streaming.cancelled = Some(message.clone().into_owned());
            sink.event(Event::new(Interrupted { text: Some(message) }));
        } else {
            sink.event(Event::new(Notice { severity: Severity::Info, text: message }));
        }
        true
    }

    /// Emits a thought as a notice if it is the title of the current todo: Copilot sends it while
    /// the call that writes the todos is open, when no model thinks.
    fn read_copilot_todo(&mut self, text: &Text<'_>, sink: &mut dyn EventSink) -> bool {
        let is_todo = self.calls.has_open("sql");
        if is_todo {
            let severity = Severity::Info;
            sink.event(Event::new(Notice { severity, text: text.borrowed() }));
        }
        is_todo
    }

    /// Emits the text that was held back. It is not an error, since the turn continues.
    pub(super) fn release_held_text(&mut self, sink: &mut dyn EventSink) {
        if let Some(text) = self.streaming.held_error.take() {
            self.emit_delta(BlockKind::Text, None, None, text, sink);
        }
    }

    /// Takes the held text if it is an error. Copilot counts tokens for a turn that completed, and
    /// names the HTTP status of a request that failed.
    pub(super) fn take_held_error(&mut self, has_usage: bool) -> Option<Text<'static>> {
        let text = self.streaming.held_error.take()?;
        let (_, http_status) = classify_text(&text.to_plain());
        if has_usage && http_status.is_none() {
            self.streaming.held_error = Some(text);
            return None;
        }
        let message = text.to_plain().strip_prefix("Error: ").map(str::to_owned);
        Some(message.map(Text::from).unwrap_or(text))
    }
}

/// Emits a chunk that adds no text as a native record. Its meaning, if any, is another event.
fn emit_native_chunk(kind: Option<Text<'_>>, own: Own<'_>, sink: &mut dyn EventSink) {
    let name = Text::from(format!("session/update/{}", kind.unwrap_or_default()));
    sink.event(Event::new(Native { name, raw: own.json() }));
}

fn raw_content(own: Own<'_>) -> Option<Json<'static>> {
    let mut line = RawLine::default();
    read::record(own.0, &mut line).ok()?;
    Some(line.params?.update?.content?.into_owned())
}
