//! Reads Qwen Code's stream.

use super::ended::{counts, turn_ended};
use super::thread::{Suspect, Thread};
use super::wire::{Content, Line, Message};
use super::{failure, system, tools};
use crate::dialect::decode::Own;
use crate::dialect::{self, Decoder, Emitter, EventSink, each_record};
use crate::event::{
    Block, BlockKind, Decision, Event, MessageEnded, MessageStarted, Outcome, PermissionResolved,
    PlanUpdated, Retry, Scope, SubagentEnded, ToolEnded, ToolProgress, ToolStatus, UserMessage,
    Withdrawn, own_usage,
};
use crate::framing::FrameText;
use crate::json::Text;
use crate::json::read::{self, Fields, Shaped};

/// The reader of `qwen`.
#[derive(Debug, Default)]
pub struct QwenDecoder {
    /// The main agent, and each one that a call started.
    threads: Vec<Thread>,
    /// Text that is a failed request, if the end of the turn says so.
    suspect: Option<Suspect>,
}

impl Decoder for QwenDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        let mut rest = frame.text;
        // `--output-format json` prints the same records as one list.
        while frame.noise.trim_ascii_end().ends_with('[') {
            let Ok((own, after)) = read::record(rest, &mut Fields::default()) else { break };
            self.records(&FrameText { text: own, ..frame.clone() }, sink);
            rest = after.trim_ascii_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next.trim_ascii_start(),
                None => {
                    rest = rest.strip_prefix(']').unwrap_or(rest);
                    break;
                }
            }
        }
        if !rest.is_empty() || frame.text.is_empty() {
            self.records(&FrameText { text: rest, ..frame.clone() }, sink);
        }
    }

    /// Nobody said any more whose words these were: the program stops after a failed request.
    fn finish(&mut self, sink: &mut dyn EventSink) {
        if let Some(suspect) = self.suspect.take() {
            sink.event(Event::new(failure::error(suspect.text)));
        }
    }
}

impl QwenDecoder {
    fn records(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }

    fn line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let mut out = Emitter::new(own, sink).within(line.parent.take());
        let kind = line.kind.take();
        match kind.as_ref().map_or("", Text::body) {
            "stream_event" => self.stream_event(line, &mut out),
            "assistant" => self.assistant(line, &mut out),
            "user" => self.user(line, &mut out),
            "result" => self.result(line, &mut out),
            "system" if line.subtype.as_ref().is_some_and(|it| *it == "retry") => {
                self.acquit(&mut out);
                self.retry(line, &mut out);
            }
            "system" => system::system(line, &mut out),
            "control_request" => system::control_request(line, &mut out),
            "control_response" => system::control_response(line, &mut out),
            _ => out.unknown(kind),
        }
    }

    fn stream_event<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(event) = &mut line.event else {
            out.unknown(Text::plain("stream_event"));
            return;
        };
        match event.kind.as_ref().map_or("", Text::body) {
            "content_block_delta" => {
                self.acquit(out);
                self.suspect = self.thread(&out.parent).piece(event, out);
            }
            "content_block_start" => {
                self.acquit(out);
                self.thread(&out.parent).piece_started(event, line.uuid.take(), out);
            }
            // The whole record ends the block: the program may still add to it.
            "content_block_stop" => out.sink.ignored("the end of a block: the whole block follows"),
            "message_start" => {
                self.acquit(out);
                let Message { id, model, .. } = event.message.take().unwrap_or_default();
                self.thread(&out.parent).enter(id.clone().map(Text::into_owned), true);
                out.emit(MessageStarted { message: id, model, usage: None });
            }
            "message_stop" => {
                let thread = self.thread(&out.parent);
                let ended = MessageEnded {
                    message: thread.message.take(),
                    stop_reason: thread.stop_reason.take(),
                    usage: thread.usage.take(),
                };
                thread.enter(None, false);
                out.emit(ended);
            }
            "tool_progress" => out.emit(ToolProgress {
                call: event.tool_use_id.take().unwrap_or_default(),
                ..ToolProgress::default()
            }),
            "goal_state" | "active_goal" => {
                let name = Text::plain("stream_event/goal");
                out.native(name);
            }
            other => {
                let name = Text::from(format!("stream_event/{other}"));
                out.unknown(name);
            }
        }
    }

    /// A whole record: blocks of one kind, which repeat their pieces where there were any.
    fn assistant<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(Message { id, model, content, stop_reason, usage }) = line.message.take() else {
            out.unknown(Text::plain("assistant"));
            return;
        };
        let list = match content {
            Shaped::List(list) => list,
            Shaped::Text(text) => {
                let kind = Some(Text::plain("text"));
                vec![Content { kind, text: Some(text), ..Content::default() }]
            }
            _ => Vec::new(),
        };
        // What the pieces seemed to say, their record says again.
        let says_again = |suspect: &Suspect| {
            let texts = list.iter().filter_map(|content| content.text.as_ref());
            texts.map(Text::to_plain).any(|text| text.ends_with(&*suspect.text.to_plain()))
        };
        if let Some(suspect) = self.suspect.take().filter(|suspect| !says_again(suspect)) {
            say(suspect, out);
        }
        let thread = self.thread(&out.parent);
        let in_pieces = thread.has_bounds;
        let message = thread.message.clone().or_else(|| id.clone());
        let (first, length) = (thread.whole, list.len() as u64);
        if !in_pieces {
            out.emit(MessageStarted { message: id.clone(), model, usage: None });
        }
        for (index, content) in (first..).zip(list) {
            self.whole_block(content, message.clone(), index, out);
        }
        let usage = usage.map(|usage| counts(usage, Scope::Request));
        let usage = usage.filter(|usage| usage.all() > 0);
        let thread = self.thread(&out.parent);
        thread.came_whole(length);
        thread.retries = 0;
        if in_pieces {
            thread.usage = usage.map(own_usage).or(thread.usage.take());
            thread.stop_reason = stop_reason.map(Text::into_owned);
        } else {
            out.emit(MessageEnded { message: id, stop_reason, usage });
        }
    }

    fn whole_block<'a>(
        &mut self,
        mut content: Content<'a>,
        message: Option<Text<'a>>,
        index: u64,
        out: &mut Emitter<'_, 'a>,
    ) {
        let mut block = Block { message, index, ..Block::default() };
        match content.kind.as_ref().map_or("", Text::body) {
            "tool_use" => {
                self.call(&mut content, block.message, out);
                return;
            }
            "text" => {
                block.text = content.text.take().unwrap_or_default();
                if out.parent.is_none()
                    && let Some((said, failed)) = failure::split(&block.text)
                {
                    // Behind other text it is a block of its own, should the model have said it.
                    let message = block.message.clone().filter(|_| said.is_empty());
                    let message = message.map(Text::into_owned);
                    self.suspect = Some(Suspect { text: Text::from(failed), message, index });
                    if said.is_empty() {
                        return;
                    }
                    block.text = Text::from(said);
                }
            }
            "thinking" => {
                block.kind = BlockKind::Reasoning;
                block.text = content.thinking.take().unwrap_or_default();
            }
            other => block.kind = BlockKind::from(other),
        }
        out.emit(block);
    }

    fn call<'a>(
        &mut self,
        content: &mut Content<'a>,
        message: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let started = tools::started(content, message);
        self.thread(&out.parent).made(&started.call);
        let (kind, call, input) =
            (started.kind.clone(), started.call.clone(), started.input.clone());
        out.emit(started);
        let plan = input.as_ref().and_then(|input| dialect::tools::plan_written(&kind, input));
        if let Some(items) = plan {
            let plan = PlanUpdated { plan: None, call: Some(call), items };
            out.emit(plan);
        }
    }

    fn user<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        self.acquit(out);
        let list = match line.message.take().unwrap_or_default().content {
            Shaped::List(list) => list,
            Shaped::Text(text) => {
                out.emit(UserMessage { text, injected: true, replay: false });
                return;
            }
            _ => {
                out.unknown(Text::plain("user"));
                return;
            }
        };
        for mut content in list {
            match content.kind.as_ref().map_or("", Text::body) {
                "tool_result" => self.answer(tools::ended(&mut content), out),
                // The prompt is not repeated: this the program says in the user's name.
                "text" => out.emit(UserMessage {
                    text: content.text.take().unwrap_or_default(),
                    injected: true,
                    replay: false,
                }),
                other => {
                    let name = Text::from(format!("user/{other}"));
                    out.unknown(name);
                }
            }
        }
    }

    fn answer<'a>(&mut self, ended: ToolEnded<'a>, out: &mut Emitter<'_, 'a>) {
        self.thread(&out.parent).answered(&ended.call);
        if ended.status == ToolStatus::Denied {
            let said = ended.output.as_ref().and_then(crate::json::Json::as_text);
            out.emit(PermissionResolved {
                call: Some(ended.call.clone()),
                decision: Decision::Denied,
                reason: said.map(Text::into_owned),
                ..PermissionResolved::default()
            });
        }
        out.emit(ended);
    }

    /// A request that is tried again; what it had said is void, unless it says otherwise.
    fn retry<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let data = line.data.take().unwrap_or_default();
        let thread = self.thread(&out.parent);
        if data.preserve_text != Some(true) {
            thread.enter(None, false);
            out.emit(Withdrawn { reason: data.reason.clone(), ..Withdrawn::default() });
        }
        if data.discarded_calls.is_some_and(|count| count > 0) {
            for call in thread.calls.drain(..) {
                out.emit(ToolEnded {
                    call,
                    status: ToolStatus::Cancelled,
                    error: Some(Text::plain("the request that made this call was tried again")),
                    ..ToolEnded::default()
                });
            }
        }
        thread.retries += 1;
        let attempt = Some(thread.retries);
        out.emit(Retry { attempt, ..system::retry(data) });
    }

    fn result<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let id = line.session_id.take();
        let nothing_took_time = line.duration_ms == Some(0) && line.duration_api_ms == Some(0);
        let mut ended = turn_ended(line);
        let waiting = self.thread(&None).calls.first().cloned();
        // An agent that a call started has a `result` too where it fails, and nothing else to show it.
        if let Some(call) =
            waiting.filter(|_| nothing_took_time && ended.outcome == Outcome::Failed)
        {
            let (call, status) = (Some(call), Some(Text::plain("failed")));
            let summary = ended.cause.map(failure::words);
            out.emit(SubagentEnded { id: None, call, status, summary });
            return;
        }
        let said_by_program = |suspect: &Suspect| ended.cause.as_ref() == Some(&suspect.text);
        if let Some(suspect) = self.suspect.take().filter(|suspect| !said_by_program(suspect)) {
            say(suspect, out);
        }
        out.emit(system::session(id));
        if let Some(message) = ended.cause.clone().filter(|_| ended.outcome == Outcome::Failed) {
            out.emit(failure::error(message));
        }
        ended.cause = ended.cause.map(failure::words);
        self.threads.clear();
        out.emit(ended);
    }

    /// Says what seemed to be a failure, and was the model's own word.
    fn acquit(&mut self, out: &mut Emitter<'_, '_>) {
        if let Some(suspect) = self.suspect.take() {
            say(suspect, out);
        }
    }

    fn thread(&mut self, parent: &Option<Text<'_>>) -> &mut Thread {
        let at = self.threads.iter().position(|thread| thread.parent == *parent);
        let at = at.unwrap_or_else(|| {
            self.threads.push(Thread::of(parent.clone().map(Text::into_owned)));
            self.threads.len() - 1
        });
        // The index was just found or made.
        #[allow(clippy::indexing_slicing)]
        &mut self.threads[at]
    }
}

fn say(suspect: Suspect, out: &mut Emitter<'_, '_>) {
    let Suspect { text, message, index } = suspect;
    out.sink.event(Event::new(Block { message, index, text, ..Block::default() }));
}
