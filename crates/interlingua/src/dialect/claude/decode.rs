//! Decodes Claude Code's stream: selects the meaning of a record by its type, and decodes messages.
//! Other modules decode the end of a turn, answers to calls, and the records of the program.

use std::collections::VecDeque;

use super::ended::Endings;
use super::requests::Requests;
use super::system::{Subagents, failure, limit};
use super::tasks::Tasks;
use super::thread::{Thread, tool_started};
use super::wire::{AskedHook, Content, Line, Message};
use crate::dialect::decode::Own;
use crate::dialect::messages_api::{counts, provider_answer};
use crate::dialect::{Decoder, Emitter, EventSink, each_record, tools};
use crate::event::{
    Block, BlockKind, Event, Interrupted, MessageEnded, MessageStarted, Notice, PlanUpdated, Scope,
    SessionStarted, Severity, ToolProgress, ToolStarted, UserMessage, Withdrawn,
};
use crate::fingerprint::Fingerprint;
use crate::framing::FrameText;
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// The decoder of `claude`.
#[derive(Debug, Default)]
pub struct ClaudeDecoder {
    /// The threads of the main agent and of each sub-agent.
    threads: Vec<Thread>,
    tasks: Tasks,
    requests: Requests,
    subagents: Subagents,
    endings: Endings,
    /// The start of the session was emitted.
    session_emitted: bool,
    /// The prompts that the host sent, by their fingerprints, until the program repeats them
    /// (`--replay-user-messages`).
    sent: VecDeque<u64>,
}

/// The maximum number of prompts that the program has not repeated.
const SENT: usize = 64;

impl Decoder for ClaudeDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.decode_line(line, own, sink);
        });
    }
}

impl ClaudeDecoder {
    fn decode_line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let parent = line.parent.take();
        let mut out = Emitter::new(own, sink).within(parent).at(line.timestamp.take());
        let kind = line.kind.take();
        let kind_body = kind.as_ref().map_or("", Text::body);
        let has_content = matches!(kind_body, "assistant" | "user" | "stream_event" | "result");
        if has_content && !self.session_emitted {
            self.emit_session(line, &mut out);
        }
        match kind_body {
            "assistant" => self.decode_assistant(line, &mut out),
            "user" => self.decode_user(line, &mut out),
            "stream_event" => self.decode_stream_event(line, &mut out),
            "result" => {
                let unanswered_call = out.sink.has_unanswered_call();
                out.emit(self.endings.turn_ended(std::mem::take(line), unanswered_call));
            }
            "system" => {
                self.session_emitted |=
                    line.subtype.as_ref().is_some_and(|subtype| *subtype == "init");
                self.subagents.decode_system(std::mem::take(line), &mut out);
            }
            "tool_progress" => emit_progress(std::mem::take(line), &mut out),
            "control_request" if is_between_programs(line) => {
                // It repeats a call, and may have the answer of the user.
                if self.session_emitted || !self.emit_deferred_call(line, &mut out) {
                    out.native_without_text("control_request");
                }
            }
            "control_request" => {
                self.requests.emit_request(std::mem::take(line), &mut out);
            }
            "control_cancel_request" => {
                self.requests.emit_cancelled(line.request_id.take(), &mut out);
            }
            "rate_limit_event" => out.emit(limit(line.rate_limit_info.take())),
            "control_response" if answers_program(line) => {
                out.native_without_text("control_response");
            }
            "control_response" => {
                if !self.requests.emit_host_answer(line.response.take(), &mut out) {
                    out.native(kind.unwrap_or_default());
                }
            }
            "command_lifecycle" | "keep_alive" | "auth_status" | "prompt_suggestion"
            | "tool_use_summary" | "conversation_reset" | "active_goal" | "attachment" => {
                out.native(kind.unwrap_or_default());
            }
            _ => out.unknown(kind),
        }
    }

    fn decode_assistant<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let Shaped::Record(message) = &mut line.message else {
            out.unknown(Text::plain("assistant"));
            return;
        };
        let thread = self.thread_of(&out.parent);
        // The program writes errors as messages of the model, which they are not.
        if let Some(code) = line.error.take() {
            thread.enter(message.id.as_ref());
            out.emit(failure(code, line.api_error_status, message));
            return;
        }
        thread.supersede(message.id.as_ref(), out);
        match &mut message.content {
            Shaped::List(list) => {
                for content in list {
                    self.decode_block(content, message.id.clone(), out);
                }
            }
            Shaped::Text(text) => {
                let index = self.thread_of(&out.parent).next_complete_index();
                let (message, text) = (message.id.clone(), text.clone());
                out.emit(Block { message, index, text, ..Block::default() });
            }
            _ => out.unknown(Text::plain("assistant")),
        }
    }

    /// Emits the session of a stream whose content starts without an `init`.
    fn emit_session<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        self.session_emitted = true;
        out.sink.event(Event::new(SessionStarted {
            id: line.session_id.take(),
            agent: Some(Text::plain("claude")),
            ..SessionStarted::default()
        }));
    }

    /// Emits the call that a resumed program has deferred before: it asks its host about it before
    /// anything else. Returns whether it does.
    fn emit_deferred_call<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) -> bool {
        let request = line.request.take().unwrap_or_default();
        let asked = request.input.as_ref().and_then(read::record_of::<AskedHook<'_>>);
        let Some(asked) = asked else { return false };
        if asked.event.is_none_or(|event| event != "PreToolUse") {
            return false;
        }
        line.session_id = asked.session_id.map(Text::into_owned);
        self.emit_session(line, out);
        let name = asked.tool_name.map(Text::into_owned).unwrap_or_default();
        out.emit(ToolStarted {
            call: asked.tool_use_id.map(Text::into_owned).unwrap_or_default(),
            kind: tools::kind_of(&name),
            name,
            input: asked.tool_input.map(Json::into_owned),
            ..ToolStarted::default()
        });
        true
    }

    fn decode_block<'a>(
        &mut self,
        content: &mut Content<'a>,
        message: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let index = self.thread_of(&out.parent).next_complete_index();
        let mut block = Block { message, index, ..Block::default() };
        match content.kind.as_ref().map_or("", Text::body) {
            "text" => block.text = content.text.take().unwrap_or_default(),
            "thinking" => {
                block.kind = BlockKind::Reasoning;
                block.text = content.thinking.take().unwrap_or_default();
                block.signature = content.signature.take();
            }
            "redacted_thinking" => {
                block.kind = BlockKind::HiddenReasoning;
                block.signature = content.data.take();
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                self.decode_call(std::mem::take(content), block.message, out);
                return;
            }
            kind if kind.ends_with("_tool_result") => {
                let Content { tool_use_id, content, is_error, .. } = std::mem::take(content);
                out.emit(provider_answer(tool_use_id, content, is_error));
                return;
            }
            "image" => {
                block.kind = BlockKind::Image;
                block.content = content.source.take();
            }
            other => block.kind = BlockKind::from(other),
        }
        out.emit(block);
    }

    fn decode_call<'a>(
        &mut self,
        content: Content<'a>,
        message: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let name = content.name.clone().unwrap_or_default();
        let call = content.id.clone().unwrap_or_default();
        self.tasks.note_call(&call, &name, content.input.as_ref());
        let input = content.input.clone();
        out.emit(tool_started(content, message));
        if let Some(items) =
            input.as_ref().and_then(|input| tools::plan_written(&tools::kind_of(&name), input))
        {
            let plan = PlanUpdated { plan: None, call: Some(call), items };
            out.emit(plan);
        }
    }

    fn decode_user<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let injected = line.is_synthetic.unwrap_or(false);
        let replay = line.is_replay.unwrap_or(false);
        let list = match &mut line.message {
            Shaped::Record(Message { content: Shaped::List(list), .. }) => list,
            Shaped::Record(Message { content: Shaped::Text(text), .. }) => {
                let text = text.clone();
                // Only the program knows the session.
                let from_host = line.session_id.is_none() && !replay;
                if self.repeats_prompt(&text, from_host, replay) {
                    out.sink.ignored("a prompt that the host sent, and that was emitted then");
                } else {
                    decode_user_text(text, injected, replay, out);
                }
                return;
            }
            _ => {
                out.unknown(Text::plain("user"));
                return;
            }
        };
        for content in list {
            match content.kind.as_ref().map_or("", Text::body) {
                "tool_result" => {
                    let id = content.tool_use_id.clone().unwrap_or_default();
                    let meta = line.tool_result_meta.iter();
                    let meta = meta.clone().find(|meta| meta.id.as_ref() == Some(&id)).cloned();
                    let structured = line.tool_use_result.clone();
                    let failed = content.is_error == Some(true);
                    let plan = self.tasks.apply_answer(&id, failed, structured.as_ref());
                    self.requests.emit_answer(std::mem::take(content), meta, structured, out);
                    if let Some(plan) = plan {
                        out.emit(plan);
                    }
                }
                "text" => {
                    let text = content.text.take().unwrap_or_default();
                    decode_user_text(text, injected, replay, out);
                }
                other => {
                    let name = Text::from(format!("user/{other}"));
                    out.native(name);
                }
            }
        }
    }

    /// Whether the program repeats a prompt that its host sent before.
    fn repeats_prompt(&mut self, text: &Text<'_>, from_host: bool, replay: bool) -> bool {
        let fingerprint = Fingerprint::of(text.to_plain().as_bytes()).number();
        if from_host {
            self.sent.truncate(SENT - 1);
            self.sent.push_front(fingerprint);
            return false;
        }
        let sent = self.sent.iter().position(|sent| replay && *sent == fingerprint);
        sent.is_some_and(|at| self.sent.remove(at).is_some())
    }

    fn decode_stream_event<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(event) = &mut line.event else {
            out.unknown(Text::plain("stream_event"));
            return;
        };
        let thread = self.thread_of(&out.parent);
        if let Some(id) = &line.api_message_id {
            thread.supersede(Some(id), out);
        }
        match event.kind.as_ref().map_or("", Text::body) {
            "message_start" => {
                let message = event.message.take().unwrap_or_default();
                thread.supersede(message.id.as_ref(), out);
                out.emit(MessageStarted {
                    message: message.id,
                    model: message.model,
                    usage: message.usage.map(|usage| counts(usage, Scope::Request)),
                });
            }
            "content_block_start" => thread.start_block(event, out),
            "content_block_delta" => thread.add_delta(event, out),
            "content_block_stop" => thread.end_block(out),
            "message_delta" => {
                let usage = event.usage.take().map(|usage| counts(usage, Scope::Request));
                thread.usage = usage.map(crate::event::own_usage);
                let reason = event.delta.take().and_then(|delta| delta.stop_reason);
                thread.stop_reason = reason.map(Text::into_owned);
                out.native("message_delta");
            }
            "message_stop" => {
                // The end of a message lists the blocks of it that are retracted.
                if let Some(abandoned) = line.abandoned.take() {
                    out.emit(Withdrawn {
                        message: abandoned.message.or_else(|| thread.message.clone()),
                        index: abandoned.from.unwrap_or(0),
                        ..Withdrawn::default()
                    });
                    thread.abandon_call(out);
                }
                let ended = MessageEnded {
                    message: thread.message.clone(),
                    stop_reason: thread.stop_reason.take(),
                    usage: thread.usage.take(),
                };
                out.emit(ended);
            }
            "ping" => out.native("ping"),
            other => {
                let name = Text::from(format!("stream_event/{other}"));
                out.unknown(name);
            }
        }
    }

    fn thread_of(&mut self, parent: &Option<Text<'_>>) -> &mut Thread {
        let at = self.threads.iter().position(|thread| thread.parent == *parent);
        let at = at.unwrap_or_else(|| {
            let parent = parent.clone().map(Text::into_owned);
            self.threads.push(Thread::of(parent));
            self.threads.len() - 1
        });
        // The index was just found or added.
        #[allow(clippy::indexing_slicing)]
        &mut self.threads[at]
    }
}

/// Whether a request has a message of an MCP server that the host provides, or asks a hook of the host. Both
/// repeat a call that the stream has anyway.
fn is_between_programs(line: &Line<'_>) -> bool {
    let subtype = line.request.as_ref().and_then(|request| request.subtype.as_ref());
    subtype.is_some_and(|subtype| *subtype == "mcp_message" || *subtype == "hook_callback")
}

/// Whether a response answers such a request, or states the configuration of the program, with the account of
/// the user.
fn answers_program(line: &Line<'_>) -> bool {
    let answer = line.response.as_ref().and_then(|response| response.answer.as_ref());
    answer.map(|answer| &answer.record).is_some_and(|answer| {
        answer.mcp.is_some() || answer.hook.is_some() || answer.account.is_some()
    })
}

fn emit_progress<'a>(line: Line<'a>, out: &mut Emitter<'_, 'a>) {
    // In newer versions, the number of the heartbeat follows the id of the call.
    let id = line.tool_use_id.unwrap_or_default();
    let call = match id.body().split_once("-heartbeat-") {
        // A hook that is asked about a call: the call waits for it.
        Some((hook, _)) if hook.starts_with("hook-") => match out.parent.take() {
            Some(call) => call,
            None => {
                out.native("tool_progress");
                return;
            }
        },
        Some((call, _)) if !id.has_escapes() => Text::from(call.to_owned()),
        _ => id,
    };
    if out.parent.as_ref() == Some(&call) {
        out.parent = None;
    }
    let elapsed_ms = line.elapsed_seconds.map(|seconds| (seconds * 1000.0) as u64);
    out.emit(ToolProgress { call, output: None, elapsed_ms });
}

/// A text in the user's place. Claude Code also writes there what it did itself: `set_model` between
/// two turns is reported so, and is neither a prompt nor the start of a turn.
fn decode_user_text<'a>(text: Text<'a>, injected: bool, replay: bool, out: &mut Emitter<'_, 'a>) {
    if text.body().starts_with("[Request interrupted by user") {
        out.emit(Interrupted { text: Some(text) });
    } else if let Some(report) = local_command_output(&text).filter(|_| replay) {
        out.emit(Notice { severity: Severity::Info, text: report });
    } else {
        out.emit(UserMessage { text, injected, replay });
    }
}

/// What a command of Claude Code itself printed.
fn local_command_output<'a>(text: &Text<'_>) -> Option<Text<'a>> {
    if !text.body().starts_with("<local-command-stdout>") {
        return None;
    }
    let plain = text.to_plain();
    let output = plain.strip_prefix("<local-command-stdout>")?;
    Some(Text::from(output.strip_suffix("</local-command-stdout>")?.to_owned()))
}
