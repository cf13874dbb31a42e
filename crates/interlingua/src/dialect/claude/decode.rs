//! Reads Claude Code's stream.

use super::answers::{Asked, provider_answer};
use super::ended::{Endings, counts};
use super::system::{Agents, control_request, failure, limit};
use super::tasks::Tasks;
use super::thread::{Teller, Thread, tool_started};
use super::wire::{Content, Line, Message};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, tools, unknown};
use crate::event::{
    Block, BlockKind, Decision, Event, Interrupted, MessageEnded, MessageStarted, Native,
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
        let mut out = Teller { parent, time: line.timestamp.take(), sink };
        let kind = line.kind.take();
        let kind_body = kind.as_ref().map_or("", Text::body);
        let to_the_point = matches!(kind_body, "assistant" | "user" | "stream_event" | "result");
        if to_the_point && !self.session_known {
            self.introduce(line, &mut out);
        }
        match kind_body {
            "assistant" => self.assistant(line, own, &mut out),
            "user" => self.user(line, own, &mut out),
            "stream_event" => self.stream_event(line, own, &mut out),
            "result" => {
                let unanswered_call = out.sink.has_unanswered_call();
                out.tell(self.endings.turn_ended(std::mem::take(line), unanswered_call));
            }
            "system" => {
                self.session_known |=
                    line.subtype.as_ref().is_some_and(|subtype| *subtype == "init");
                self.agents.system(std::mem::take(line), own, &mut out);
            }
            "tool_progress" => progress(std::mem::take(line), &mut out),
            "control_request" => {
                control_request(std::mem::take(line), own, &mut self.asked, &mut out);
            }
            "control_cancel_request" => out.tell(PermissionResolved {
                request: line.request_id.take(),
                decision: Decision::Withdrawn,
                ..PermissionResolved::default()
            }),
            "rate_limit_event" => out.tell(limit(line.rate_limit_info.take())),
            "control_response" => match self.asked.decided(line.response.take()) {
                Some(resolved) => out.tell(resolved),
                None => out.tell(Native { name: kind.unwrap_or_default(), raw: own.json() }),
            },
            "command_lifecycle" | "keep_alive" | "auth_status" | "prompt_suggestion"
            | "tool_use_summary" | "conversation_reset" | "active_goal" => {
                out.tell(Native { name: kind.unwrap_or_default(), raw: own.json() });
            }
            _ => out.tell(unknown(kind, own)),
        }
    }

    fn assistant<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, out: &mut Teller<'_, 'a>) {
        let Shaped::Record(message) = &mut line.message else {
            out.tell(unknown(Some(Text::plain("assistant")), own));
            return;
        };
        let thread = self.thread(&out.parent);
        // What the program says in the model's place is no word of the model.
        if let Some(code) = line.error.take() {
            thread.enter(message.id.as_ref());
            out.tell(failure(code, line.api_error_status, message));
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
                out.tell(Block { message, index, text, ..Block::default() });
            }
            _ => out.tell(unknown(Some(Text::plain("assistant")), own)),
        }
    }

    /// Tells the session of a stream that comes to the point without having been introduced.
    fn introduce<'a>(&mut self, line: &mut Line<'a>, out: &mut Teller<'_, 'a>) {
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
        out: &mut Teller<'_, 'a>,
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
                out.tell(provider_answer(std::mem::take(content)));
                return;
            }
            "image" => {
                block.kind = BlockKind::Image;
                block.content = content.source.take();
            }
            other => block.kind = BlockKind::from(other),
        }
        out.tell(block);
    }

    fn call<'a>(
        &mut self,
        content: Content<'a>,
        message: Option<Text<'a>>,
        out: &mut Teller<'_, 'a>,
    ) {
        let name = content.name.clone().unwrap_or_default();
        let call = content.id.clone().unwrap_or_default();
        self.tasks.called(&call, &name, content.input.as_ref());
        let input = content.input.clone();
        out.tell(tool_started(content, message));
        if let Some(items) =
            input.as_ref().and_then(|input| tools::plan_written(&tools::kind_of(&name), input))
        {
            let (parent, time) = (out.parent.clone(), out.time.clone());
            let plan = PlanUpdated { plan: None, call: Some(call), items };
            out.sink.event(Event::new(plan).within(parent).at(time));
        }
    }

    fn user<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, out: &mut Teller<'_, 'a>) {
        let injected = line.is_synthetic.unwrap_or(false);
        let replay = line.is_replay.unwrap_or(false);
        let list = match &mut line.message {
            Shaped::Record(Message { content: Shaped::List(list), .. }) => list,
            Shaped::Record(Message { content: Shaped::Text(text), .. }) => {
                let text = text.clone();
                out.tell(UserMessage { text, injected, replay });
                return;
            }
            _ => {
                out.tell(unknown(Some(Text::plain("user")), own));
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
                        out.tell(plan);
                    }
                }
                "text" => {
                    let text = content.text.take().unwrap_or_default();
                    if text.body().starts_with("[Request interrupted by user") {
                        out.tell(Interrupted { text: Some(text) });
                    } else {
                        out.tell(UserMessage { text, injected, replay });
                    }
                }
                other => {
                    let name = Text::from(format!("user/{other}"));
                    out.tell(Native { name, raw: own.json() });
                }
            }
        }
    }

    fn stream_event<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, out: &mut Teller<'_, 'a>) {
        let Some(event) = &mut line.event else {
            out.tell(unknown(Some(Text::plain("stream_event")), own));
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
                out.tell(MessageStarted {
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
                out.tell(Native { name: Text::plain("message_delta"), raw: own.json() });
            }
            "message_stop" => {
                // What the program gives up of a message, it says at the message's end.
                if let Some(abandoned) = line.abandoned.take() {
                    out.tell(Withdrawn {
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
                out.tell(ended);
            }
            "ping" => out.tell(Native { name: Text::plain("ping"), raw: own.json() }),
            other => {
                let name = Text::from(format!("stream_event/{other}"));
                out.tell(unknown(Some(name), own));
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

fn progress<'a>(line: Line<'a>, out: &mut Teller<'_, 'a>) {
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
    out.tell(ToolProgress { call, output: None, elapsed_ms });
}
