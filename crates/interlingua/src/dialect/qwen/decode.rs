//! Decodes Qwen Code's stream: selects the meaning of a record by its type, and decodes messages.
//! Other modules decode the end of a turn and the records of the program.

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

/// The decoder of `qwen`.
#[derive(Debug, Default)]
pub struct QwenDecoder {
    /// The threads of the main agent and of each sub-agent.
    threads: Vec<Thread>,
    /// Text that is a failed request if the `result` repeats it, and text of the model otherwise.
    suspect: Option<Suspect>,
}

impl Decoder for QwenDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        let mut rest = frame.text;
        // `--output-format json` writes the same records as one array.
        while frame.noise.trim_ascii_end().ends_with('[') {
            let Ok((own, after)) = read::record(rest, &mut Fields::default()) else { break };
            self.decode_records(&FrameText { text: own, ..frame.clone() }, sink);
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
            self.decode_records(&FrameText { text: rest, ..frame.clone() }, sink);
        }
    }

    /// Emits the suspect as an error, since the program ends after a failed request.
    fn finish(&mut self, sink: &mut dyn EventSink) {
        if let Some(suspect) = self.suspect.take() {
            sink.event(Event::new(failure::error(suspect.text)));
        }
    }
}

impl QwenDecoder {
    fn decode_records(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.decode_line(line, own, sink);
        });
    }

    fn decode_line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let mut out = Emitter::new(own, sink).within(line.parent.take());
        let kind = line.kind.take();
        match kind.as_ref().map_or("", Text::body) {
            "stream_event" => self.decode_stream_event(line, &mut out),
            "assistant" => self.decode_assistant(line, &mut out),
            "user" => self.decode_user(line, &mut out),
            "result" => self.decode_result(line, &mut out),
            "system" if line.subtype.as_ref().is_some_and(|it| *it == "retry") => {
                self.emit_suspect(&mut out);
                self.decode_retry(line, &mut out);
            }
            "system" => system::decode_system(line, &mut out),
            "control_request" => system::emit_control_request(line, &mut out),
            "control_response" => system::emit_control_response(line, &mut out),
            _ => out.unknown(kind),
        }
    }

    fn decode_stream_event<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(event) = &mut line.event else {
            out.unknown(Text::plain("stream_event"));
            return;
        };
        match event.kind.as_ref().map_or("", Text::body) {
            "content_block_delta" => {
                self.emit_suspect(out);
                self.suspect = self.thread_of(&out.parent).add_delta(event, out);
            }
            "content_block_start" => {
                self.emit_suspect(out);
                self.thread_of(&out.parent).start_block(event, line.uuid.take(), out);
            }
            // The complete record ends the block, since the program may still extend it.
            "content_block_stop" => {
                out.sink.ignored("the end of a block; the complete block follows");
            }
            "message_start" => {
                self.emit_suspect(out);
                let Message { id, model, .. } = event.message.take().unwrap_or_default();
                self.thread_of(&out.parent).enter(id.clone().map(Text::into_owned), true);
                out.emit(MessageStarted { message: id, model, usage: None });
            }
            "message_stop" => {
                let thread = self.thread_of(&out.parent);
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

    /// Decodes a complete record: blocks of one kind, which repeat their deltas if those were
    /// streamed.
    fn decode_assistant<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
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
        // The record repeats a suspect from its deltas.
        let repeats = |suspect: &Suspect| {
            let texts = list.iter().filter_map(|content| content.text.as_ref());
            texts.map(Text::to_plain).any(|text| text.ends_with(&*suspect.text.to_plain()))
        };
        if let Some(suspect) = self.suspect.take().filter(|suspect| !repeats(suspect)) {
            emit_text(suspect, out);
        }
        let thread = self.thread_of(&out.parent);
        let is_streamed = thread.has_bounds;
        let message = thread.message.clone().or_else(|| id.clone());
        let (first, length) = (thread.complete_blocks, list.len() as u64);
        if !is_streamed {
            out.emit(MessageStarted { message: id.clone(), model, usage: None });
        }
        for (index, content) in (first..).zip(list) {
            self.decode_block(content, message.clone(), index, out);
        }
        let usage = usage.map(|usage| counts(usage, Scope::Request));
        let usage = usage.filter(|usage| usage.all() > 0);
        let thread = self.thread_of(&out.parent);
        thread.complete_record(length);
        thread.retries = 0;
        if is_streamed {
            thread.usage = usage.map(own_usage).or(thread.usage.take());
            thread.stop_reason = stop_reason.map(Text::into_owned);
        } else {
            out.emit(MessageEnded { message: id, stop_reason, usage });
        }
    }

    fn decode_block<'a>(
        &mut self,
        mut content: Content<'a>,
        message: Option<Text<'a>>,
        index: u64,
        out: &mut Emitter<'_, 'a>,
    ) {
        let mut block = Block { message, index, ..Block::default() };
        match content.kind.as_ref().map_or("", Text::body) {
            "tool_use" => {
                self.decode_call(&mut content, block.message, out);
                return;
            }
            "text" => {
                block.text = content.text.take().unwrap_or_default();
                if out.parent.is_none()
                    && let Some((before, failed)) = failure::split(&block.text)
                {
                    // After other text it becomes a separate block, if it is text of the model.
                    let message = block.message.clone().filter(|_| before.is_empty());
                    let message = message.map(Text::into_owned);
                    self.suspect = Some(Suspect { text: Text::from(failed), message, index });
                    if before.is_empty() {
                        return;
                    }
                    block.text = Text::from(before);
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

    fn decode_call<'a>(
        &mut self,
        content: &mut Content<'a>,
        message: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let started = tools::started(content, message);
        self.thread_of(&out.parent).note_call(&started.call);
        let (kind, call, input) =
            (started.kind.clone(), started.call.clone(), started.input.clone());
        out.emit(started);
        let plan = input.as_ref().and_then(|input| dialect::tools::plan_written(&kind, input));
        if let Some(items) = plan {
            let plan = PlanUpdated { plan: None, call: Some(call), items };
            out.emit(plan);
        }
    }

    fn decode_user<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        self.emit_suspect(out);
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
                "tool_result" => self.emit_answer(tools::ended(&mut content), out),
                // The prompt is not repeated, so the program wrote this for the user.
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

    fn emit_answer<'a>(&mut self, ended: ToolEnded<'a>, out: &mut Emitter<'_, 'a>) {
        self.thread_of(&out.parent).note_answer(&ended.call);
        if ended.status == ToolStatus::Denied {
            let reason = ended.output.as_ref().and_then(crate::json::Json::as_text);
            out.emit(PermissionResolved {
                call: Some(ended.call.clone()),
                decision: Decision::Denied,
                reason: reason.map(Text::into_owned),
                ..PermissionResolved::default()
            });
        }
        out.emit(ended);
    }

    /// Decodes the retry of a request; its text is retracted, unless the record preserves it.
    fn decode_retry<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let data = line.data.take().unwrap_or_default();
        let thread = self.thread_of(&out.parent);
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
        out.emit(Retry { attempt, ..system::retry_of(data) });
    }

    fn decode_result<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let id = line.session_id.take();
        let took_no_time = line.duration_ms == Some(0) && line.duration_api_ms == Some(0);
        let mut ended = turn_ended(line);
        let waiting = self.thread_of(&None).calls.first().cloned();
        // A failed sub-agent writes a `result` too, and no field distinguishes it from the main
        // agent's.
        if let Some(call) = waiting.filter(|_| took_no_time && ended.outcome == Outcome::Failed) {
            let (call, status) = (Some(call), Some(Text::plain("failed")));
            let summary = ended.cause.map(failure::message_text);
            out.emit(SubagentEnded { id: None, call, status, summary });
            return;
        }
        let is_cause = |suspect: &Suspect| ended.cause.as_ref() == Some(&suspect.text);
        if let Some(suspect) = self.suspect.take().filter(|suspect| !is_cause(suspect)) {
            emit_text(suspect, out);
        }
        out.emit(system::session(id));
        if let Some(message) = ended.cause.clone().filter(|_| ended.outcome == Outcome::Failed) {
            out.emit(failure::error(message));
        }
        ended.cause = ended.cause.map(failure::message_text);
        self.threads.clear();
        out.emit(ended);
    }

    /// Emits the suspect as text of the model, since the turn continues.
    fn emit_suspect(&mut self, out: &mut Emitter<'_, '_>) {
        if let Some(suspect) = self.suspect.take() {
            emit_text(suspect, out);
        }
    }

    fn thread_of(&mut self, parent: &Option<Text<'_>>) -> &mut Thread {
        let at = self.threads.iter().position(|thread| thread.parent == *parent);
        let at = at.unwrap_or_else(|| {
            self.threads.push(Thread::of(parent.clone().map(Text::into_owned)));
            self.threads.len() - 1
        });
        // The index was just found or added.
        #[allow(clippy::indexing_slicing)]
        &mut self.threads[at]
    }
}

fn emit_text(suspect: Suspect, out: &mut Emitter<'_, '_>) {
    let Suspect { text, message, index } = suspect;
    out.sink.event(Event::new(Block { message, index, text, ..Block::default() }));
}
