//! The decoder of `codex exec --json`. It keeps the open calls and the sub-agents of the thread.

use std::collections::{BTreeMap, BTreeSet};

use super::wire::{AgentState, Change, Item, Line, Usage as WireUsage};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, tools, unknown};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, Error, ErrorClass, Event, Executor, FileChange,
    FilesChanged, Native, Notice, Outcome, PlanUpdated, Retry, Scope, SessionStarted,
    SessionUpdated, Severity, SubagentEnded, SubagentStarted, ToolEnded, ToolInput, ToolKind,
    ToolStarted, ToolStatus, TurnEnded, TurnStarted, Usage, Withdrawn,
};
use crate::framing::FrameText;
use crate::json::read;
use crate::json::{Json, Text};

/// The decoder of `codex`.
#[derive(Debug, Default)]
pub struct CodexDecoder {
    thread_known: bool,
    /// The ids of calls that were started and not yet completed.
    open_calls: Vec<Box<str>>,
    /// The ids of sub-agents whose end was emitted.
    ended_agents: BTreeSet<String>,
    /// The calls that spawned sub-agents, by the id of the sub-agent.
    agents: BTreeMap<String, Text<'static>>,
    /// The number of the current message of the older form.
    message: u64,
    /// Its id, once it was generated.
    message_id: String,
    id_tag: String,
}

impl Decoder for CodexDecoder {
    fn set_id_tag(&mut self, tag: &str) {
        self.id_tag = tag.to_owned();
    }

    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.read_line(line, own, sink);
        });
    }
}

impl CodexDecoder {
    fn read_line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let kind = line.kind.take();
        let kind_body = kind.as_ref().map_or("", Text::body);
        match kind_body {
            "thread.started" => {
                // Another run numbers its items from zero again.
                self.open_calls.clear();
                self.thread_known = true;
                emit_session_started(line.thread_id.take(), None, sink);
            }
            "session.created" if self.thread_known => {
                let model = line.model.take();
                sink.event(Event::new(SessionUpdated { model, ..SessionUpdated::default() }));
            }
            "session.created" => emit_session_started(line.id.take(), line.model.take(), sink),
            "turn.started" => sink.event(Event::new(TurnStarted::default())),
            "item.started" | "item.updated" | "item.completed" => match &mut line.item {
                Some(item) => self.read_item(kind_body, item, own, sink),
                None => sink.event(Event::new(unknown(kind.clone(), own))),
            },
            "turn.completed" => {
                let usage = line.usage.take().and_then(|usage| usage_of(usage, Scope::Session));
                let ended =
                    TurnEnded { outcome: Outcome::Completed, usage, ..TurnEnded::default() };
                sink.event(Event::new(ended));
            }
            "turn.failed" => emit_turn_failed(line, sink),
            "error" => emit_error(line.message.take(), own, sink),
            "message.output_text.delta" => self.emit_delta(line, sink),
            "message.output_text.done" => self.emit_message(line, sink),
            "response.completed" => {
                let usage =
                    line.response.take().and_then(|response| response.usage).or(line.usage.take());
                let usage = usage.and_then(|usage| usage_of(usage, Scope::Turn));
                let ended =
                    TurnEnded { outcome: Outcome::Completed, usage, ..TurnEnded::default() };
                sink.event(Event::new(ended));
            }
            _ => sink.event(Event::new(unknown(kind.clone(), own))),
        }
    }

    fn read_item<'a>(
        &mut self,
        kind: &str,
        item: &mut Item<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let completed = kind == "item.completed";
        match item.kind.as_ref().map_or("", Text::body) {
            "agent_message" if completed => emit_block(item, BlockKind::Text, sink),
            "reasoning" if completed => emit_block(item, BlockKind::Reasoning, sink),
            "agent_message" | "reasoning" => sink.ignored("a message before it is complete"),
            "error" => {
                let text = item.message.take().unwrap_or_default();
                sink.event(Event::new(Notice { severity: Severity::Warning, text }));
            }
            "todo_list" => emit_plan(item, sink),
            "command_execution" | "file_change" | "mcp_tool_call" | "web_search"
            | "collab_tool_call" => self.read_call(completed, item, sink),
            other => {
                let name = Text::from(format!("{kind}/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    fn read_call(&mut self, completed: bool, item: &mut Item<'_>, sink: &mut dyn EventSink) {
        let id = item.id.clone().unwrap_or_default();
        let position = self.open_calls.iter().position(|open| id == **open);
        if position.is_none() {
            let started = call_started(item, completed);
            if completed && sink.repeats(&started, &call_ended(&mut item.clone())) {
                return;
            }
            sink.event(Event::new(started));
        }
        if !completed {
            match position {
                None => self.open_calls.push(id.to_plain().into()),
                Some(_) => sink.ignored("an update of a call that has not ended"),
            }
            return;
        }
        if let Some(at) = position {
            self.open_calls.swap_remove(at);
        }
        if item.kind.as_ref().is_some_and(|kind| *kind == "web_search") {
            let input = Some(search_input(item));
            sink.event(Event::new(ToolInput { call: id, input, ..ToolInput::default() }));
        }
        self.emit_subagents(item, sink);
        emit_file_changes(item, sink);
        sink.event(Event::new(call_ended(item)));
    }

    /// Emits the sub-agents that a call spawned, and those that it reports as completed.
    fn emit_subagents(&mut self, item: &Item<'_>, sink: &mut dyn EventSink) {
        let spawned = item.tool.as_ref().is_some_and(|tool| *tool == "spawn_agent");
        if let Some(ids) = item.receivers.as_ref().and_then(Json::read::<Vec<String>>)
            && spawned
        {
            for id in ids {
                let call = item.id.clone().unwrap_or_default();
                self.agents.insert(id.clone(), call.into_owned());
                sink.event(Event::new(SubagentStarted {
                    id: Some(Text::from(id)),
                    call: item.id.clone(),
                    prompt: item.prompt.as_ref().and_then(Json::as_text),
                    ..SubagentStarted::default()
                }));
            }
        }
        let states = item.states.as_ref().and_then(Json::read::<BTreeMap<String, Json<'_>>>);
        for (id, state) in states.into_iter().flatten() {
            let Some(state) = read::record_of::<AgentState<'_>>(&state) else { continue };
            let status = state.status.unwrap_or_default();
            let running = matches!(status.body(), "pending_init" | "running" | "in_progress");
            if !running && self.ended_agents.insert(id.clone()) {
                sink.event(Event::new(SubagentEnded {
                    call: self.agents.get(&id).map(Text::borrowed),
                    id: Some(Text::from(id)),
                    status: Some(status),
                    summary: state.message,
                }));
            }
        }
    }

    fn emit_delta(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let message = line.item_id.take();
        let message = message.unwrap_or_else(|| Text::plain(self.message_id()));
        let text = line.delta.take().unwrap_or_default();
        sink.event(Event::new(BlockDelta {
            message: Some(message),
            text,
            ..BlockDelta::default()
        }));
    }

    fn emit_message(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let message = line.item_id.take();
        let message = message.unwrap_or_else(|| Text::plain(self.message_id()));
        let text = line.text.take().unwrap_or_default();
        let block = Block { message: Some(message.clone()), text, ..Block::default() };
        sink.event(Event::new(block));
        sink.event(Event::new(BlockEnded { message: Some(message), ..BlockEnded::default() }));
        self.message += 1;
        self.message_id.clear();
    }

    /// The generated id of the current message, for a stream without ids.
    fn message_id(&mut self) -> &str {
        if self.message_id.is_empty() {
            self.message_id = format!("message_{}_{}", self.id_tag, self.message);
        }
        &self.message_id
    }
}

fn emit_session_started(id: Option<Text<'_>>, model: Option<Text<'_>>, sink: &mut dyn EventSink) {
    sink.event(Event::new(SessionStarted {
        id,
        model,
        agent: Some(Text::plain("codex")),
        ..SessionStarted::default()
    }));
}

fn emit_block(item: &mut Item<'_>, kind: BlockKind, sink: &mut dyn EventSink) {
    let text = item.text.take().unwrap_or_default();
    sink.event(Event::new(Block { message: item.id.take(), kind, text, ..Block::default() }));
}

fn emit_plan(item: &Item<'_>, sink: &mut dyn EventSink) {
    let items = item.items.as_ref().and_then(tools::plan_items).unwrap_or_default();
    sink.event(Event::new(PlanUpdated { plan: item.id.clone(), call: None, items }));
}

fn call_started<'a>(item: &Item<'a>, completed: bool) -> ToolStarted<'a> {
    let (name, kind, input) = match item.kind.as_ref().map_or("", Text::body) {
        "command_execution" => {
            let input = Json::object(|fields| {
                fields.json_if("command", item.command.as_ref());
            });
            (Text::plain("command_execution"), ToolKind::Execute, Some(input))
        }
        "file_change" => {
            let input = Json::object(|fields| {
                fields.json_if("changes", item.changes.as_ref());
            });
            (Text::plain("file_change"), ToolKind::Edit, Some(input))
        }
        "mcp_tool_call" => {
            let server = item.server.as_ref().map(Text::to_plain).unwrap_or_default();
            let tool = item.tool.as_ref().map(Text::to_plain).unwrap_or_default();
            let name = Text::from(format!("mcp__{server}__{tool}"));
            (
                name,
                ToolKind::Mcp,
                Some(item.arguments.clone().unwrap_or_else(|| Json::object(|_| {}))),
            )
        }
        "web_search" => {
            let input = completed.then(|| search_input(item));
            (Text::plain("web_search"), ToolKind::WebSearch, input)
        }
        _ => {
            let input = Json::object(|fields| {
                fields.json_if("prompt", item.prompt.as_ref());
                fields.json_if("receiver_thread_ids", item.receivers.as_ref());
            });
            let name = item.tool.clone().unwrap_or_else(|| Text::plain("collab_tool_call"));
            (name, ToolKind::Task, Some(input))
        }
    };
    // The provider of the model searches the web, not the agent.
    let executor = if kind == ToolKind::WebSearch { Executor::Provider } else { Executor::Agent };
    ToolStarted {
        call: item.id.clone().unwrap_or_default(),
        name,
        kind,
        executor,
        input,
        ..ToolStarted::default()
    }
}

fn search_input(item: &Item<'_>) -> Json<'static> {
    Json::object(|fields| {
        fields.json_if("query", item.query.as_ref());
        fields.json_if("action", item.action.as_ref());
    })
}

fn emit_file_changes(item: &Item<'_>, sink: &mut dyn EventSink) {
    let done = item.status.as_ref().is_some_and(|status| *status == "completed");
    let Some(changes) = item.changes.as_ref().filter(|_| done) else { return };
    let Some(changes) = read::records_of::<Change<'_>>(changes) else { return };
    let changes = changes
        .into_iter()
        .map(|change| FileChange {
            path: change.path.unwrap_or_default(),
            kind: change.kind.map(|kind| kind.body().into()).unwrap_or_default(),
            ..FileChange::default()
        })
        .collect();
    sink.event(Event::new(FilesChanged { call: item.id.clone(), changes }));
}

fn call_ended<'a>(item: &mut Item<'a>) -> ToolEnded<'a> {
    let status = match item.status.as_ref().map_or("completed", Text::body) {
        "completed" => ToolStatus::Completed,
        "failed" => ToolStatus::Failed,
        "declined" => ToolStatus::Denied,
        // The item is completed, but the call never finished.
        "in_progress" => ToolStatus::Abandoned,
        other => ToolStatus::from(other),
    };
    let (mut output, mut structured) = (item.output.take().or(item.states.take()), None);
    if let Some(result) = item.result.take() {
        (output, structured) = (result.content, result.structured);
    }
    ToolEnded {
        call: item.id.take().unwrap_or_default(),
        status,
        output,
        structured,
        exit_code: item.exit_code,
        error: item.error.take().and_then(|error| error.message),
        ..ToolEnded::default()
    }
}

/// Converts counts of tokens. `codex exec review` prints zeros, which means that nothing was
/// counted.
fn usage_of(usage: WireUsage<'_>, scope: Scope) -> Option<Usage<'_>> {
    let cached = usage.cached.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    let usage = Usage {
        scope,
        input: usage.input.map(|input| input.saturating_sub(cached)),
        cache_read: usage.cached,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.reasoning,
        ..Usage::default()
    };
    Some(usage).filter(|usage| usage.all() > 0)
}

fn emit_turn_failed(line: &mut Line<'_>, sink: &mut dyn EventSink) {
    let cause = line.error.take().and_then(|error| error.message);
    let (class, http_status) = cause.as_ref().map(classify).unwrap_or_default();
    let outcome = if class == ErrorClass::Limit { Outcome::LimitReached } else { Outcome::Failed };
    // The only limit that Codex reports is that on the output tokens of a response.
    let stop_reason = (class == ErrorClass::Limit).then(|| Text::plain("max_output_tokens"));
    let class = Some(class).filter(|class| *class != ErrorClass::Unspecified);
    let ended =
        TurnEnded { outcome, cause, class, stop_reason, http_status, ..TurnEnded::default() };
    sink.event(Event::new(ended));
}

/// Emits an `error`, which is a retry, or the failure that `turn.failed` repeats.
fn emit_error<'a>(message: Option<Text<'a>>, own: Own<'a>, sink: &mut dyn EventSink) {
    let Some(message) = message else {
        let name = Text::plain("error");
        sink.event(Event::new(Native { name, raw: own.json() }));
        return;
    };
    let (class, http_status) = classify(&message);
    let plain = message.to_plain().into_owned();
    let Some(state) = plain.strip_prefix("Reconnecting... ") else {
        let error = Error { class, message, http_status, ..Error::default() };
        sink.event(Event::new(error));
        return;
    };
    let numbers = state.split_once(' ').map_or(state, |(numbers, _)| numbers);
    let (attempt, of) = match numbers.split_once('/') {
        Some((attempt, of)) => (attempt.parse().ok(), of.parse().ok()),
        None => (None, None),
    };
    let message = Some(message);
    // The retry repeats the messages of the failed request as new items.
    sink.event(Event::new(Withdrawn { reason: message.clone(), ..Withdrawn::default() }));
    sink.event(Event::new(Retry { attempt, of, class, http_status, message, delay_ms: None }));
}

/// Classifies a failure by its message, since Codex has no field for it.
fn classify(message: &Text<'_>) -> (ErrorClass, Option<u64>) {
    let text = message.to_plain();
    if let Some((_, rest)) = text.split_once("unexpected status ") {
        let status: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if let Ok(status) = status.parse() {
            return (ErrorClass::of_http_status(status), Some(status));
        }
    }
    // The message about a malformed request is the body of the response of the provider.
    if let Some(kind) = text.split_once("\"type\":").map(|(_, rest)| rest.trim_start())
        && kind.starts_with("\"invalid_request_error\"")
    {
        return (ErrorClass::BadRequest, None);
    }
    let class = if text.contains("context window") {
        ErrorClass::ContextOverflow
    } else if text.contains("high demand") || text.contains("at capacity") {
        ErrorClass::Overloaded
    } else if text.contains("usage limit") || text.contains("quota") || text.contains("Quota") {
        ErrorClass::Quota
    } else if text.contains("rate limit") {
        ErrorClass::RateLimit
    } else if text.contains("idle timeout") {
        ErrorClass::TimedOut
    } else if text.contains("stream disconnected")
        || text.contains("Connection failed")
        || text.contains("waiting for network")
    {
        ErrorClass::Network
    } else if text.contains("Missing environment variable") || text.contains("Not logged in") {
        ErrorClass::Authentication
    } else if text.contains("max_output_tokens") {
        ErrorClass::Limit
    } else {
        ErrorClass::Unspecified
    };
    (class, None)
}
