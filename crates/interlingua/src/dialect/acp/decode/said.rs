//! What the agent says: pieces of text and of thought, and what some agents say in that form though
//! it is something else.
//!
//! Gemini CLI tells a change of its mode as `[MODE_UPDATE] name`. Copilot CLI tells errors and notices
//! as whole pieces that begin with `Error: ` and `Info: `.

use super::agent::Agent;
use super::answers::{failure_of_text, request_usage};
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

/// What is being said.
#[derive(Debug, Default)]
pub(super) struct Saying {
    /// The block that is open.
    open: Option<OpenBlock>,
    /// The number of blocks so far: every block is a place of its own.
    index: u64,
    /// What looks like an error of Copilot's, until the next record shows whether it is one.
    held: Option<Text<'static>>,
    /// Copilot said that the user stopped it.
    pub(super) stopped: Option<Text<'static>>,
}

#[derive(Debug)]
struct OpenBlock {
    kind: BlockKind,
    message: Option<Text<'static>>,
    parent: Option<Text<'static>>,
}

impl AcpDecoder {
    pub(super) fn chunk<'a>(
        &mut self,
        update: &mut Update<'a>,
        session: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let thought = update.kind.as_ref().is_some_and(|kind| *kind == "agent_thought_chunk");
        let kind = if thought { BlockKind::Reasoning } else { BlockKind::Text };
        let meta = meta_of(&update.meta);
        let past = is_replay(meta.as_ref());
        let content = match std::mem::take(&mut update.content) {
            Shaped::Record(content) => content,
            _ => Content::default(),
        };
        if content.kind.as_ref().is_some_and(|kind| *kind != "text") {
            self.enter(false, past, session, sink);
            self.deny_unheard(None, sink);
            self.no_text(content, own, sink);
            return;
        }
        let text = content.text.unwrap_or_default();
        if text.is_empty() {
            let usage = meta.and_then(|meta| meta.usage).and_then(request_usage);
            if let Some(usage) = usage {
                let begins = !self.in_prompt();
                self.enter(false, past, session, sink);
                // Tokens alone do not say that a turn has begun.
                if begins && self.in_prompt() {
                    sink.event(Event::new(TurnStarted::default()));
                }
                self.add_usage(&usage);
                sink.event(Event::new(usage));
            } else {
                told_otherwise(update.kind.take(), own, sink);
            }
            return;
        }
        self.release(sink);
        if self.agent == Agent::Gemini && self.mode_told(&text, sink) {
            told_otherwise(update.kind.take(), own, sink);
            return;
        }
        self.enter(false, past, session, sink);
        self.deny_unheard(None, sink);
        if self.agent == Agent::Copilot && self.aside_told(thought, &text, sink) {
            told_otherwise(update.kind.take(), own, sink);
            return;
        }
        let parent = meta.and_then(|meta| {
            let ours = meta.ours.and_then(|ours| ours.parent);
            ours.or(meta.claude.and_then(|claude| claude.parent))
        });
        self.say(kind, update.message.take(), parent, text, sink);
    }

    /// Says the next piece: of the block at hand, or of a new one.
    #[inline]
    fn say<'a>(
        &mut self,
        kind: BlockKind,
        message: Option<Text<'a>>,
        parent: Option<Text<'_>>,
        text: Text<'a>,
        sink: &mut dyn EventSink,
    ) {
        let goes_on = self.saying.open.as_ref().is_some_and(|open| {
            open.kind == kind && open.message == message && open.parent == parent
        });
        if !goes_on {
            self.end_block(sink);
            self.saying.open = Some(OpenBlock {
                kind: kind.clone(),
                message: message.clone().map(Text::into_owned),
                parent: parent.clone().map(Text::into_owned),
            });
        }
        let index = self.saying.index;
        let delta = BlockDelta { block: 0, message, index, kind, text };
        match parent {
            Some(parent) => sink.event(Event::new(delta).within(Some(parent.into_owned()))),
            None => sink.event(Event::new(delta)),
        }
    }

    pub(super) fn end_block(&mut self, sink: &mut dyn EventSink) {
        let Some(open) = self.saying.open.take() else { return };
        let index = self.saying.index;
        self.saying.index += 1;
        let OpenBlock { kind, message, parent } = open;
        let ended = BlockEnded { block: 0, message, index, kind, signature: None };
        sink.event(Event::new(ended).within(parent));
    }

    /// Content that is no text: a file, or a picture.
    fn no_text(&mut self, content: Content<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        self.release(sink);
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
        let index = self.saying.index;
        self.saying.index += 1;
        let content = raw_content(own);
        sink.event(Event::new(Block { index, kind, content, ..Block::default() }));
    }

    /// Whether Gemini says with these words that its mode changed.
    fn mode_told(&mut self, text: &Text<'_>, sink: &mut dyn EventSink) -> bool {
        let Some(mode) = text.body().strip_prefix("[MODE_UPDATE] ") else { return false };
        let permission_mode = Some(Text::plain(mode));
        self.learn(SessionUpdated { permission_mode, ..SessionUpdated::default() }, sink);
        true
    }

    /// Whether Copilot says something beside the conversation. Of its notices, only those that change
    /// the course of the turn are known in the middle of a text.
    fn aside_told(&mut self, thought: bool, text: &Text<'_>, sink: &mut dyn EventSink) -> bool {
        if thought {
            return self.todo_told(text, sink);
        }
        if text.body().starts_with("Error: ") {
            self.saying.held = Some(text.clone().into_owned());
            return true;
        }
        let Some(info) = text.body().strip_prefix("Info: ").filter(|_| !text.has_escapes()) else {
            return false;
        };
        let said = Text::plain(info);
        let (retries, stops) =
            (info.ends_with("Retrying..."), info == "Operation cancelled by user");
        if self.saying.open.is_some() && !retries && !stops {
            return false;
        }
        self.end_block(sink);
        if retries {
            let class = ErrorClass::Unspecified;
            sink.event(Event::new(Retry { class, message: Some(said), ..Retry::default() }));
        } else if stops {
            self.saying.stopped = Some(said.clone().into_owned());
            sink.event(Event::new(Interrupted { text: Some(said) }));
        } else {
            sink.event(Event::new(Notice { severity: Severity::Info, text: said }));
        }
        true
    }

    /// Whether a thought is the title of the current todo: it comes while the call is open that wrote
    /// the todos, when no model thinks.
    fn todo_told(&mut self, text: &Text<'_>, sink: &mut dyn EventSink) -> bool {
        let told = self.calls.running("sql");
        if told {
            let severity = Severity::Info;
            sink.event(Event::new(Notice { severity, text: text.borrowed() }));
        }
        told
    }

    /// Says what was held back: it was no error, since the turn goes on.
    pub(super) fn release(&mut self, sink: &mut dyn EventSink) {
        if let Some(text) = self.saying.held.take() {
            self.say(BlockKind::Text, None, None, text, sink);
        }
    }

    /// The error that was said last, if that is what it was. Copilot counts tokens for a turn that
    /// answered, and names the status of a request that failed.
    pub(super) fn take_error(&mut self, counted: bool) -> Option<Text<'static>> {
        let text = self.saying.held.take()?;
        let (_, http_status) = failure_of_text(&text.to_plain());
        if counted && http_status.is_none() {
            self.saying.held = Some(text);
            return None;
        }
        let message = text.to_plain().strip_prefix("Error: ").map(str::to_owned);
        Some(message.map(Text::from).unwrap_or(text))
    }
}

/// A piece that is no text: what it means, if anything, is told now, or when that is known.
fn told_otherwise(kind: Option<Text<'_>>, own: Own<'_>, sink: &mut dyn EventSink) {
    let name = Text::from(format!("session/update/{}", kind.unwrap_or_default()));
    sink.event(Event::new(Native { name, raw: own.json() }));
}

fn raw_content(own: Own<'_>) -> Option<Json<'static>> {
    let mut line = RawLine::default();
    read::record(own.0, &mut line).ok()?;
    Some(line.params?.update?.content?.into_owned())
}
