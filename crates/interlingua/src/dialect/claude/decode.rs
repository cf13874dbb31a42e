//! Reads Claude Code's stream.

use std::collections::BTreeMap;

use super::tasks::Tasks;
use super::thread::{Teller, Thread, tool_started};
use super::wire::{Content, Line, Message, ModelCost, Usage as WireUsage};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, each_record, tools, unknown};
use crate::event::{
    Block, BlockKind, Compacted, Cost, Decision, Error, ErrorClass, Event, Interrupted, Limit,
    MessageEnded, MessageStarted, Native, Notice, Outcome, PermissionRequested, PermissionResolved,
    PlanUpdated, QuestionAsked, Retry, Scope, SessionStarted, SessionUpdated, Sink, SubagentEnded,
    SubagentStarted, ToolEnded, ToolProgress, ToolStatus, TurnEnded, TurnStarted, Usage,
    UserMessage,
};
use crate::framing::FrameText;
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// The reader of `claude`.
#[derive(Debug, Default)]
pub struct ClaudeDecoder {
    /// The message at hand of the main thread, and of each sub-agent.
    threads: Vec<Thread>,
    tasks: Tasks,
}

impl Decoder for ClaudeDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn Sink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }
}

impl ClaudeDecoder {
    fn line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn Sink) {
        let parent = line.parent.take();
        let mut out = Teller { parent, time: line.timestamp.take(), sink };
        let kind = line.kind.take();
        match kind.as_ref().map_or("", Text::body) {
            "assistant" => self.assistant(line, &mut out),
            "user" => self.user(line, &mut out),
            "stream_event" => self.stream_event(line, own, &mut out),
            "result" => out.tell(turn_ended(std::mem::take(line))),
            "system" => self.system(std::mem::take(line), own, &mut out),
            "tool_progress" => progress(std::mem::take(line), &mut out),
            "control_request" => control_request(std::mem::take(line), own, &mut out),
            "control_cancel_request" => out.tell(PermissionResolved {
                request: line.request_id.take(),
                decision: Decision::Withdrawn,
                ..PermissionResolved::default()
            }),
            "rate_limit_event" => {
                out.tell(Limit { details: line.rate_limit_info.take(), ..Limit::default() });
            }
            "control_response" | "command_lifecycle" | "keep_alive" | "auth_status"
            | "prompt_suggestion" | "tool_use_summary" | "conversation_reset" | "active_goal" => {
                out.tell(Native { name: kind.unwrap_or_default(), raw: own.json() });
            }
            _ => out.tell(unknown(kind, own)),
        }
    }

    fn assistant<'a>(&mut self, line: &mut Line<'a>, out: &mut Teller<'_, 'a>) {
        let Shaped::Record(message) = &mut line.message else { return };
        let thread = self.thread(&out.parent);
        thread.enter(message.id.as_ref());
        let failure = line.error.take().map(|code| failure(code, line.api_error_status, message));
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
            _ => {}
        }
        if let Some(failure) = failure {
            out.tell(failure);
        }
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
        if let Some(items) = input.as_ref().and_then(|input| tools::plan_written(&name, input)) {
            let (parent, time) = (out.parent.clone(), out.time.clone());
            let plan = PlanUpdated { plan: None, call: Some(call), items };
            out.sink.event(Event::new(plan).within(parent).at(time));
        }
    }

    fn user<'a>(&mut self, line: &mut Line<'a>, out: &mut Teller<'_, 'a>) {
        let injected = line.is_synthetic.unwrap_or(false);
        let replay = line.is_replay.unwrap_or(false);
        let Shaped::Record(message) = &mut line.message else { return };
        let list = match &mut message.content {
            Shaped::List(list) => list,
            Shaped::Text(text) => {
                let text = text.clone();
                out.tell(UserMessage { text, injected, replay });
                return;
            }
            _ => return,
        };
        for content in list {
            match content.kind.as_ref().map_or("", Text::body) {
                "tool_result" => {
                    let id = content.tool_use_id.clone().unwrap_or_default();
                    let meta =
                        line.tool_result_meta.iter().find(|meta| meta.id.as_ref() == Some(&id));
                    let kind = meta.and_then(|meta| meta.non_execution_kind.clone());
                    let structured = line.tool_use_result.clone();
                    let failed = content.is_error == Some(true);
                    let plan = self.tasks.answered(&id, failed, structured.as_ref());
                    out.tell(answer(std::mem::take(content), kind, structured));
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
                _ => {}
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
            thread.enter(Some(id));
        }
        match event.kind.as_ref().map_or("", Text::body) {
            "message_start" => {
                let message = event.message.take().unwrap_or_default();
                thread.enter(message.id.as_ref());
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

    fn system<'a>(&mut self, line: Line<'a>, own: Own<'a>, out: &mut Teller<'_, 'a>) {
        let subtype = line.subtype.clone().unwrap_or_default();
        match subtype.body() {
            "init" => {
                out.tell(SessionStarted {
                    id: line.session_id,
                    agent: Some(Text::plain("claude")),
                    version: line.version,
                    model: line.model,
                    cwd: line.cwd,
                    permission_mode: line.permission_mode,
                    tools: line.tools,
                });
                out.tell(TurnStarted::default());
            }
            "api_retry" => out.tell(Retry {
                attempt: line.attempt,
                of: line.max_retries,
                delay_ms: line.retry_delay_ms,
                class: line.error_status.map(ErrorClass::of_http_status).unwrap_or_default(),
                http_status: line.error_status,
                message: line.error,
            }),
            "permission_denied" => out.tell(PermissionResolved {
                request: None,
                call: line.tool_use_id,
                tool: line.tool_name,
                decision: Decision::Denied,
                reason: text_of(line.message).or(line.decision_reason),
            }),
            "compact_boundary" => out.tell(compacted(line.compact_metadata)),
            "informational" | "notification" => out.tell(Notice {
                severity: line.level.map(|level| level.body().into()).unwrap_or_default(),
                text: line.content.or_else(|| text_of(line.message)).unwrap_or_default(),
            }),
            "task_started" if line.task_type.as_ref().is_none_or(|kind| *kind == "local_agent") => {
                out.tell(SubagentStarted {
                    id: line.task_id,
                    call: line.tool_use_id,
                    kind: line.subagent_type,
                    description: line.description,
                    prompt: line.prompt,
                });
            }
            "task_notification" => out.tell(SubagentEnded {
                id: line.task_id,
                call: line.tool_use_id,
                status: line.status,
                summary: line.summary,
            }),
            "status" if line.permission_mode.is_some() => out.tell(SessionUpdated {
                permission_mode: line.permission_mode,
                ..SessionUpdated::default()
            }),
            known if SUBTYPES_OF_ITS_OWN.contains(&known) => {
                let name = Text::from(format!("system/{known}"));
                out.tell(Native { name, raw: own.json() });
            }
            other => {
                let name = Text::from(format!("system/{other}"));
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

/// Records of `system` that are understood and mean nothing to anybody else.
const SUBTYPES_OF_ITS_OWN: &[&str] = &[
    "status",
    "thinking_tokens",
    "hook_started",
    "hook_progress",
    "hook_response",
    "task_started",
    "task_progress",
    "task_updated",
    "background_tasks_changed",
    "commands_changed",
    "control_request_progress",
    "elicitation_complete",
    "files_persisted",
    "local_command_output",
    "memory_recall",
    "mirror_error",
    "model_refusal_fallback",
    "model_refusal_no_fallback",
    "plugin_install",
    "session_state_changed",
    "session_writes_lost",
    "worker_shutting_down",
];

fn provider_answer(content: Content<'_>) -> ToolEnded<'_> {
    ToolEnded {
        call: content.tool_use_id.unwrap_or_default(),
        output: content.content,
        ..ToolEnded::default()
    }
}

fn answer<'a>(
    content: Content<'a>,
    non_execution_kind: Option<Text<'a>>,
    structured: Option<Json<'a>>,
) -> ToolEnded<'a> {
    let said = content.content.as_ref().and_then(Json::as_text);
    let said = said.as_ref().map_or("", Text::body);
    let status = match (content.is_error, non_execution_kind) {
        (Some(true), Some(_)) if said.contains("this call was stopped while running") => {
            ToolStatus::Cancelled
        }
        (Some(true), Some(_)) => ToolStatus::Denied,
        (Some(true), None) => ToolStatus::Failed,
        _ => ToolStatus::Completed,
    };
    let exit_code = said.strip_prefix("Exit code ").and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    ToolEnded {
        call: content.tool_use_id.unwrap_or_default(),
        status,
        exit_code,
        output: content.content,
        structured,
        ..ToolEnded::default()
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

fn control_request<'a>(line: Line<'a>, own: Own<'a>, out: &mut Teller<'_, 'a>) {
    let request = line.request.unwrap_or_default();
    let id = line.request_id.unwrap_or_default();
    let asks = request.subtype.as_ref().is_some_and(|subtype| *subtype == "can_use_tool");
    if !asks {
        out.tell(Native { name: Text::plain("control_request"), raw: own.json() });
    } else if request.tool_name.as_ref().is_some_and(|tool| *tool == "AskUserQuestion") {
        out.tell(QuestionAsked {
            request: id,
            call: request.tool_use_id,
            questions: request.input,
        });
    } else {
        out.tell(PermissionRequested {
            request: id,
            call: request.tool_use_id,
            tool: request.tool_name,
            description: request.description,
            input: request.input,
            options: request.suggestions,
        });
    }
}

fn failure<'a>(code: Text<'a>, status: Option<u64>, message: &Message<'a>) -> Error<'a> {
    let class = match (status, code.body()) {
        (_, "authentication_failed") => ErrorClass::Authentication,
        (_, "billing_error") => ErrorClass::Quota,
        (Some(status), _) => ErrorClass::of_http_status(status),
        (_, "rate_limit") => ErrorClass::RateLimit,
        (_, "invalid_request") => ErrorClass::BadRequest,
        (_, "server_error") => ErrorClass::Internal,
        _ => ErrorClass::Unspecified,
    };
    let said = match &message.content {
        Shaped::List(list) => list.first().and_then(|content| content.text.clone()),
        Shaped::Text(text) => Some(text.clone()),
        _ => None,
    };
    let message = said.unwrap_or_else(|| code.clone());
    Error { class, message, code: Some(code), http_status: status, fatal: false }
}

fn compacted(details: Option<Json<'_>>) -> Compacted<'static> {
    crate::json::record! {
        struct Metadata<'a> {
            trigger: text "trigger",
            before: number "pre_tokens",
            after: number "post_tokens",
        }
    }
    let metadata = details.as_ref().and_then(read::record_of::<Metadata<'_>>).unwrap_or_default();
    Compacted {
        trigger: metadata.trigger.map(Text::into_owned),
        tokens_before: metadata.before,
        tokens_after: metadata.after,
        details: details.map(Json::into_owned),
    }
}

fn turn_ended(line: Line<'_>) -> TurnEnded<'_> {
    let failed = line.is_error.unwrap_or(false);
    let stopped =
        line.terminal_reason.as_ref().is_some_and(|why| why.body().starts_with("aborted"));
    let outcome = match line.subtype.as_ref().map_or("", Text::body) {
        _ if stopped => Outcome::Cancelled,
        "error_max_turns" | "error_max_budget_usd" => Outcome::LimitReached,
        _ if line.stop_reason.as_ref().is_some_and(|stop| *stop == "refusal") => Outcome::Refused,
        _ if failed => Outcome::Failed,
        "success" if line.stop_reason.as_ref().is_some_and(|stop| *stop == "tool_use") => {
            Outcome::WaitingForClient
        }
        "success" => Outcome::Completed,
        _ => Outcome::Failed,
    };
    let errors =
        line.errors.as_ref().and_then(|errors| errors.read().map(own_list)).unwrap_or_default();
    let (final_text, said) = if failed { (None, line.result) } else { (line.result, None) };
    let cause = said.or_else(|| errors.first().cloned()).filter(|_| outcome != Outcome::Completed);
    // Our own writer says which of its zeros are unknown. A turn that was stopped prints zeros too.
    let unknown: Vec<Text<'_>> =
        line.unknown_fields.as_ref().and_then(|names| names.read()).unwrap_or_default();
    let known = |name: &str| !unknown.iter().any(|unknown| *unknown == *name);
    let usage = line.usage.map(|mut usage| {
        usage.input = usage.input.filter(|_| known("usage.input_tokens"));
        usage.output = usage.output.filter(|_| known("usage.output_tokens"));
        counts(usage, Scope::Turn)
    });
    let usage = usage.filter(|usage| !failed || usage.output.is_some_and(|output| output > 0));
    let usage = usage.filter(|_| known("usage"));
    let total_cost_usd = line.total_cost_usd.filter(|_| known("total_cost_usd"));
    let spent = line.models_since.as_ref().and_then(cost_since);
    let cost = match (spent, total_cost_usd) {
        (Some(usd), _) => Some(Cost { scope: Scope::Turn, usd, ..Cost::default() }),
        (None, Some(usd)) => Some(Cost { scope: Scope::Session, usd, ..Cost::default() }),
        (None, None) => None,
    };
    TurnEnded {
        outcome,
        cause,
        reason: line.terminal_reason.or(line.subtype),
        stop_reason: line.stop_reason,
        errors,
        http_status: line.api_error_status,
        final_text,
        structured: line.structured_output,
        usage,
        cost,
        duration_ms: line.duration_ms.filter(|_| known("duration_ms")),
        api_duration_ms: line.duration_api_ms.filter(|_| known("duration_api_ms")),
        requests: line.num_turns,
        denials: line.permission_denials,
    }
}

fn own_list(list: Vec<Text<'_>>) -> Vec<Text<'static>> {
    list.into_iter().map(Text::into_owned).collect()
}

/// What all models together have cost since the last result.
fn cost_since(models: &Json<'_>) -> Option<f64> {
    let models: BTreeMap<String, Json<'_>> = models.read()?;
    let costs = models.values().filter_map(read::record_of::<ModelCost<'_>>);
    // An empty sum of floats is a negative zero.
    Some(costs.filter_map(|model| model.usd).fold(0.0, |sum, usd| sum + usd))
}

fn counts(usage: WireUsage<'_>, scope: Scope) -> Usage<'_> {
    Usage {
        scope,
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.details.and_then(|details| details.thinking),
        ..Usage::default()
    }
}

fn text_of<'a>(shape: Shaped<'a, Message<'a>>) -> Option<Text<'a>> {
    match shape {
        Shaped::Text(text) => Some(text),
        _ => None,
    }
}
