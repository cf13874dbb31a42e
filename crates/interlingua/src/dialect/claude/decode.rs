//! Reads Claude Code's stream.

use super::answers::{Asked, provider_answer};
use super::ended::{Endings, counts};
use super::system::{Agents, control_request, failure, limit};
use super::tasks::Tasks;
use super::thread::{Thread, tool_started};
use super::wire::{Content, Line, Message};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, Emitter, EventSink, each_record, tools};
use crate::event::{
    Block, BlockKind, Decision, Event, Interrupted, MessageEnded, MessageStarted,
    PermissionResolved, PlanUpdated, Scope, SessionStarted, ToolProgress, UserMessage, Withdrawn,
};
use crate::framing::FrameText;
use crate::json::Text;
use crate::json::read::Shaped;

/// The reader of `claude`.
#[derive(Debug, Default)]
pub struct ClaudeDecoder {
    /// The message at hand of the main thread, and of each sub-agent.
    threads: Vec<Thread>,
    tasks: Tasks,
    asked: Asked,
    agents: Agents,
    endings: Endings,
    /// The session was told, by the record that starts a turn or by one that ends it.
    session_known: bool,
}

impl Decoder for ClaudeDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }
}

impl ClaudeDecoder {
    fn line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let parent = line.parent.take();
        let mut out = Emitter::new(own, sink).within(parent).at(line.timestamp.take());
        let kind = line.kind.take();
        let kind_body = kind.as_ref().map_or("", Text::body);
        let to_the_point = matches!(kind_body, "assistant" | "user" | "stream_event" | "result");
        if to_the_point && !self.session_known {
            self.introduce(line, &mut out);
        }
        match kind_body {
            "assistant" => self.assistant(line, &mut out),
            "user" => self.user(line, &mut out),
            "stream_event" => self.stream_event(line, &mut out),
            "result" => {
                let unanswered_call = out.sink.has_unanswered_call();
                out.emit(self.endings.turn_ended(std::mem::take(line), unanswered_call));
            }
            "system" => {
                self.session_known |=
                    line.subtype.as_ref().is_some_and(|subtype| *subtype == "init");
                self.agents.system(std::mem::take(line), &mut out);
            }
            "tool_progress" => progress(std::mem::take(line), &mut out),
            "control_request" => {
                control_request(std::mem::take(line), &mut self.asked, &mut out);
            }
            "control_cancel_request" => out.emit(PermissionResolved {
                request: line.request_id.take(),
                decision: Decision::Withdrawn,
                ..PermissionResolved::default()
            }),
            "rate_limit_event" => out.emit(limit(line.rate_limit_info.take())),
            "control_response" => match self.asked.decided(line.response.take()) {
                Some(resolved) => out.emit(resolved),
                None => out.native(kind.unwrap_or_default()),
            },
            "command_lifecycle" | "keep_alive" | "auth_status" | "prompt_suggestion"
            | "tool_use_summary" | "conversation_reset" | "active_goal" => {
                out.native(kind.unwrap_or_default());
            }
            _ => out.unknown(kind),
        }
    }

    fn assistant<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let Shaped::Record(message) = &mut line.message else {
            out.unknown(Text::plain("assistant"));
            return;
        };
        let thread = self.thread(&out.parent);
        // What the program says in the model's place is no word of the model.
        if let Some(code) = line.error.take() {
            thread.enter(message.id.as_ref());
            out.emit(failure(code, line.api_error_status, message));
            return;
        }
        thread.supersede(message.id.as_ref(), out);
        match &mut message.content {
            Shaped::List(list) => {
                for content in list {
                    self.whole_block(content, message.id.clone(), out);
                }
            }
            Shaped::Text(text) => {
                let index = self.thread(&out.parent).next_whole();
                let (message, text) = (message.id.clone(), text.clone());
                out.emit(Block { message, index, text, ..Block::default() });
            }
            _ => out.unknown(Text::plain("assistant")),
        }
    }

    /// Tells the session of a stream that comes to the point without having been introduced.
    fn introduce<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        self.session_known = true;
        out.sink.event(Event::new(SessionStarted {
            id: line.session_id.take(),
            agent: Some(Text::plain("claude")),
            ..SessionStarted::default()
        }));
    }

    fn whole_block<'a>(
        &mut self,
        content: &mut Content<'a>,
        message: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let index = self.thread(&out.parent).next_whole();
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
                self.call(std::mem::take(content), block.message, out);
                return;
            }
            kind if kind.ends_with("_tool_result") => {
                out.emit(provider_answer(std::mem::take(content)));
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

    fn call<'a>(
        &mut self,
        content: Content<'a>,
        message: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let name = content.name.clone().unwrap_or_default();
        let call = content.id.clone().unwrap_or_default();
        self.tasks.called(&call, &name, content.input.as_ref());
        let input = content.input.clone();
        out.emit(tool_started(content, message));
        if let Some(items) =
            input.as_ref().and_then(|input| tools::plan_written(&tools::kind_of(&name), input))
        {
            let plan = PlanUpdated { plan: None, call: Some(call), items };
            out.emit(plan);
        }
    }

    fn user<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let injected = line.is_synthetic.unwrap_or(false);
        let replay = line.is_replay.unwrap_or(false);
        let list = match &mut line.message {
            Shaped::Record(Message { content: Shaped::List(list), .. }) => list,
            Shaped::Record(Message { content: Shaped::Text(text), .. }) => {
                let text = text.clone();
                out.emit(UserMessage { text, injected, replay });
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
                    let plan = self.tasks.answered(&id, failed, structured.as_ref());
                    self.asked.answered(std::mem::take(content), meta, structured, out);
                    if let Some(plan) = plan {
                        out.emit(plan);
                    }
                }
                "text" => {
                    let text = content.text.take().unwrap_or_default();
                    if text.body().starts_with("[Request interrupted by user") {
                        out.emit(Interrupted { text: Some(text) });
                    } else {
                        out.emit(UserMessage { text, injected, replay });
                    }
                }
                other => {
                    let name = Text::from(format!("user/{other}"));
                    out.native(name);
                }
            }
        }
    }

    fn stream_event<'a>(&mut self, line: &mut Line<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(event) = &mut line.event else {
            out.unknown(Text::plain("stream_event"));
            return;
        };
        let thread = self.thread(&out.parent);
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
            "content_block_start" => thread.piece_started(event, out),
            "content_block_delta" => thread.piece(event, out),
            "content_block_stop" => thread.piece_ended(out),
            "message_delta" => {
                let usage = event.usage.take().map(|usage| counts(usage, Scope::Request));
                thread.usage = usage.map(crate::event::own_usage);
                let reason = event.delta.take().and_then(|delta| delta.stop_reason);
                thread.stop_reason = reason.map(Text::into_owned);
                out.native("message_delta");
            }
            "message_stop" => {
                // What the program gives up of a message, it says at the message's end.
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

    fn thread(&mut self, parent: &Option<Text<'_>>) -> &mut Thread {
        let at = self.threads.iter().position(|thread| thread.parent == *parent);
        let at = at.unwrap_or_else(|| {
            let parent = parent.clone().map(Text::into_owned);
            self.threads.push(Thread::of(parent));
            self.threads.len() - 1
        });
        // The index was just found or made.
        #[allow(clippy::indexing_slicing)]
        &mut self.threads[at]
    }
}

fn progress<'a>(line: Line<'a>, out: &mut Emitter<'_, 'a>) {
    // The id is that of the call, with the number of the heartbeat behind it in newer versions.
    let told = line.tool_use_id.unwrap_or_default();
    let call = match told.body().split_once("-heartbeat-") {
        Some((call, _)) if !told.has_escapes() => Text::from(call.to_owned()),
        _ => told,
    };
    if out.parent.as_ref() == Some(&call) {
        out.parent = None;
    }
    let elapsed_ms = line.elapsed_seconds.map(|seconds| (seconds * 1000.0) as u64);
    out.emit(ToolProgress { call, output: None, elapsed_ms });
}
