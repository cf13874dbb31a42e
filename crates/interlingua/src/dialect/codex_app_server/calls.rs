//! The items that are tool calls: their input, their output, and the sub-agents that they spawn.

use std::collections::BTreeMap;

use super::decode::CodexAppServerDecoder;
use super::diffs;
use super::threads::Threads;
use super::wire::{AgentState, Change, ChangeKind, ContentItem, Item, McpResult};
use crate::dialect::Emitter;
use crate::event::{
    Artifact, Executor, FileChange, FileChangeKind, FilesChanged, SubagentEnded, SubagentStarted,
    ToolEnded, ToolInput, ToolKind, ToolStarted, ToolStatus,
};
use crate::json::read;
use crate::json::{Json, Text};

/// The calls in progress.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The calls that were started and not yet completed.
    open: Vec<OpenCall>,
}

#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) id: Box<str>,
    /// The name of the tool.
    pub(super) name: Box<str>,
    /// The MCP server that has the tool. Requests for approval name only this and the input.
    server: Option<Text<'static>>,
    input: Option<Json<'static>>,
}

/// A tool: its name, its kind, and its executor.
pub(super) type Tool<'a> = (Text<'a>, ToolKind, Executor);

impl Calls {
    pub(super) fn start<'a>(
        &mut self,
        tool: Tool<'a>,
        item: &Item<'a>,
        threads: &mut Threads,
        out: &mut Emitter<'_, 'a>,
    ) {
        let id = item.id.clone().unwrap_or_default();
        if spawns_agent(item) {
            threads.begin_spawn(&id);
        }
        let server = item.server.clone().filter(|_| tool.1 == ToolKind::Mcp);
        let name = tool.0.to_plain().into();
        let started = tool_started(tool, item, false);
        self.open.push(OpenCall {
            id: id.to_plain().into(),
            name,
            server: server.map(Text::into_owned),
            input: started.input.clone().map(Json::into_owned),
        });
        out.emit(started);
    }

    /// The input of an open call.
    pub(super) fn input_of(&self, call: Option<&Text<'_>>) -> Option<&Json<'static>> {
        let call = call?;
        self.open.iter().find(|open| *call == *open.id)?.input.as_ref()
    }

    /// Closes a call; returns whether it was open.
    fn take(&mut self, id: &Text<'_>) -> bool {
        let at = self.open.iter().position(|call| *id == *call.id);
        at.map(|at| self.open.remove(at)).is_some()
    }

    /// Cancels the open calls of an interrupted turn, which will not be answered. The grammar drops
    /// the cancellation of an answered call.
    pub(super) fn cancel_all(&mut self, out: &mut Emitter<'_, '_>) {
        for call in self.open.drain(..) {
            out.emit(ToolEnded {
                call: Text::plain(&call.id),
                status: ToolStatus::Cancelled,
                error: Some(Text::plain("the turn was stopped while this call ran")),
                ..ToolEnded::default()
            });
        }
    }

    /// Removes a call that was answered in another way.
    pub(super) fn forget(&mut self, call: &Text<'_>) {
        self.open.retain(|open| *call != *open.id);
    }

    /// The oldest open call of a tool of an MCP server with this input that `filter` selects.
    pub(super) fn of_mcp_server(
        &self,
        server: &Text<'_>,
        input: Option<&Json<'_>>,
        filter: impl Fn(&str) -> bool,
    ) -> Option<&OpenCall> {
        self.open.iter().filter(|call| filter(&call.id)).find(|call| {
            call.server.as_ref() == Some(server) && is_same_input(call.input.as_ref(), input)
        })
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

impl CodexAppServerDecoder {
    pub(super) fn complete_call<'a>(
        &mut self,
        tool: Tool<'a>,
        item: &mut Item<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let id = item.id.clone().unwrap_or_default();
        let kind = tool.1.clone();
        if !self.calls.take(&id) {
            out.emit(tool_started(tool, item, true));
        }
        if kind == ToolKind::WebSearch {
            let (call, input) = (id.clone(), Some(search_input(item)));
            out.emit(ToolInput { call, input, ..ToolInput::default() });
        }
        if kind == ToolKind::Task {
            self.threads.end_spawn(&id);
            emit_subagents(item, &mut self.threads, out);
        }
        let ended = tool_ended(item);
        self.agent_requests.resolve_by_call(&id, Some(&ended.status), out);
        if ended.status == ToolStatus::Completed {
            self.emit_file_changes(item, out);
            emit_artifact(item, out);
        }
        out.emit(ended);
    }

    fn emit_file_changes(&mut self, item: &Item<'_>, out: &mut Emitter<'_, '_>) {
        let changes = item.changes.as_ref().and_then(read::records_of::<Change<'_>>);
        let Some(changes) = changes.filter(|changes| !changes.is_empty()) else { return };
        let changes: Vec<_> = changes.into_iter().map(file_change).collect();
        changes.iter().for_each(|change| self.files.add(&change.path));
        out.emit(FilesChanged { call: item.id.clone(), changes });
    }
}

/// Whether two inputs are the same. An empty input may be absent.
fn is_same_input(one: Option<&Json<'_>>, other: Option<&Json<'_>>) -> bool {
    let is_empty = |input: Option<&Json<'_>>| input.is_none_or(|input| input.get() == "{}");
    one == other || (is_empty(one) && is_empty(other))
}

fn spawns_agent(item: &Item<'_>) -> bool {
    item.tool.as_ref().is_some_and(|tool| *tool == "spawnAgent")
}

fn tool_started<'a>(
    (name, kind, executor): Tool<'a>,
    item: &Item<'a>,
    completed: bool,
) -> ToolStarted<'a> {
    let call = item.id.clone().unwrap_or_default();
    let input = input(item, &kind, completed);
    ToolStarted { native_call: None, call, name, kind, executor, input, message: None }
}

/// The input of a tool. That of a web search is known only when it has completed.
fn input<'a>(item: &Item<'a>, kind: &ToolKind, completed: bool) -> Option<Json<'a>> {
    let object_of = |fields: &[(&str, &Option<Json<'_>>)]| {
        Json::object(|object| {
            for (name, value) in fields {
                object.json_if(name, value.as_ref());
            }
        })
    };
    Some(match item.kind.as_ref().map_or("", Text::body) {
        "commandExecution" => object_of(&[("command", &item.command), ("cwd", &item.cwd)]),
        "fileChange" => object_of(&[("changes", &item.changes)]),
        "imageView" => object_of(&[("path", &item.path)]),
        "imageGeneration" => object_of(&[("prompt", &item.prompt)]),
        "collabAgentToolCall" => {
            let receivers = item.receivers.clone().filter(|receivers| receivers.get() != "[]");
            object_of(&[("prompt", &item.prompt), ("receiverThreadIds", &receivers)])
        }
        _ if *kind == ToolKind::WebSearch => return completed.then(|| search_input(item)),
        _ => item.arguments.clone().unwrap_or_else(|| Json::object(|_| {})),
    })
}

fn search_input(item: &Item<'_>) -> Json<'static> {
    Json::object(|fields| {
        fields.json_if("query", item.query.as_ref());
        fields.json_if("action", item.action.as_ref());
    })
}

fn tool_ended<'a>(item: &mut Item<'a>) -> ToolEnded<'a> {
    let status = match item.status.as_ref().map_or("completed", Text::body) {
        "completed" => ToolStatus::Completed,
        "failed" if is_rejected(item) => ToolStatus::Denied,
        "failed" => ToolStatus::Failed,
        "declined" => ToolStatus::Denied,
        // The item is completed, but the call never finished.
        "inProgress" => ToolStatus::Abandoned,
        other => ToolStatus::from(other),
    };
    let (output, structured) = output(item);
    let error = item.error.take().and_then(|error| error.message);
    let no_output = output.as_ref().is_none_or(|output| output.get() == "\"\"");
    let is_unexplained = no_output && item.exit_code.is_none();
    ToolEnded {
        call: item.id.clone().unwrap_or_default(),
        error: error.or_else(|| default_error(&status).filter(|_| is_unexplained)),
        status,
        output,
        structured,
        exit_code: item.exit_code,
        ..ToolEnded::default()
    }
}

/// Whether the user did not allow a call of an MCP tool, which has no status of its own.
fn is_rejected(item: &Item<'_>) -> bool {
    let message = item.error.as_ref().and_then(|error| error.message.as_ref());
    item.server.is_some()
        && message.is_some_and(|message| *message == "user rejected MCP tool call")
}

/// The error of a call whose agent reports none.
pub(super) fn default_error(status: &ToolStatus) -> Option<Text<'static>> {
    match status {
        ToolStatus::Denied => Some(Text::plain("the call was not allowed")),
        ToolStatus::Failed => Some(Text::plain("the call failed")),
        _ => None,
    }
}

/// The output of a call, and its structured form.
fn output<'a>(item: &mut Item<'a>) -> (Option<Json<'a>>, Option<Json<'a>>) {
    if let Some(result) = item.result.as_ref().and_then(read::record_of::<McpResult<'_>>) {
        return (result.content.map(Json::into_owned), result.structured.map(Json::into_owned));
    }
    let states = item.states.take().filter(|states| states.get() != "{}");
    let of_client = item.content_items.take().map(as_mcp_content);
    let output = item.output.take().or(item.results.take()).or(of_client);
    (output.or(states), None)
}

/// Converts the output of a tool of the client to the content blocks of MCP.
fn as_mcp_content(items: Json<'_>) -> Json<'_> {
    let blocks: Option<Vec<Json<'_>>> = items.read();
    let converted = blocks.and_then(|blocks| {
        let blocks: Vec<_> = blocks.iter().map(content_block).collect();
        let blocks: Vec<_> = blocks.iter().map(Json::get).collect();
        Json::from_text(format!("[{}]", blocks.join(",")))
    });
    converted.unwrap_or(items)
}

fn content_block<'a>(item: &'a Json<'_>) -> Json<'a> {
    let Some(ContentItem { kind: Some(kind), text, image }) = read::record_of(item) else {
        return item.borrowed();
    };
    let image = image.as_ref().map(Text::to_plain);
    let inline = image.as_ref().and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
    match (kind.body(), text, inline) {
        ("inputText", Some(text), _) => Json::object(|block| {
            block.string("type", "text").text("text", &text);
        }),
        ("inputImage", _, Some((media_type, data))) => Json::object(|block| {
            block.string("type", "image").string("data", data).string("mimeType", media_type);
        }),
        _ => item.borrowed(),
    }
}

fn file_change(change: Change<'_>) -> FileChange<'_> {
    let path = change.path.unwrap_or_default();
    let ChangeKind { kind, move_path } = change.kind.unwrap_or_default();
    let kind = match (kind, &move_path) {
        (_, Some(_)) => FileChangeKind::Move,
        (Some(kind), None) => kind.body().into(),
        (None, None) => FileChangeKind::default(),
    };
    let (path, old_path) = match move_path {
        Some(new) => (new, Some(path)),
        None => (path, None),
    };
    let diff = change.diff.and_then(|diff| diffs::as_diff(&kind, diff));
    FileChange { path, old_path, kind, diff }
}

/// Emits a generated picture that was saved as a file.
fn emit_artifact(item: &Item<'_>, out: &mut Emitter<'_, '_>) {
    if let Some(path) = item.saved_path.clone() {
        out.emit(Artifact { path, ..Artifact::default() });
    }
}

/// Emits the sub-agents that a call spawned, and those that it reports as completed.
fn emit_subagents(item: &Item<'_>, threads: &mut Threads, out: &mut Emitter<'_, '_>) {
    let call = item.id.clone().unwrap_or_default();
    let receivers = item.receivers.as_ref().and_then(Json::read::<Vec<String>>);
    for thread in receivers.into_iter().flatten().filter(|_| spawns_agent(item)) {
        let agent = threads.spawned_by(&thread, &call);
        if !std::mem::replace(&mut agent.start_emitted, true) {
            out.emit(SubagentStarted {
                id: Some(Text::from(thread)),
                call: Some(call.borrowed()),
                prompt: item.prompt.as_ref().and_then(Json::as_text),
                ..SubagentStarted::default()
            });
        }
    }
    let states = item.states.as_ref().and_then(Json::read::<BTreeMap<String, Json<'_>>>);
    for (thread, state) in states.into_iter().flatten() {
        let Some(state) = read::record_of::<AgentState<'_>>(&state) else { continue };
        let status = state.status.unwrap_or_default();
        if matches!(status.body(), "pendingInit" | "running" | "inProgress") {
            continue;
        }
        let agent = threads.spawned_by(&thread, &call);
        if !std::mem::replace(&mut agent.ended, true) {
            let call = agent.start_emitted.then(|| agent.call.borrowed());
            out.emit(SubagentEnded {
                id: Some(Text::plain(&thread)),
                call,
                status: Some(status),
                summary: state.message,
            });
        }
    }
}

/// Emits the start or the end of a sub-agent that no call reports. Returns whether it was new.
pub(super) fn emit_activity<'a>(
    item: &Item<'a>,
    threads: &mut Threads,
    out: &mut Emitter<'_, 'a>,
) -> bool {
    let (Some(thread), Some(id)) = (&item.agent, &item.id) else { return false };
    if threads.is_main(thread) {
        return false;
    }
    match item.activity.as_ref().map_or("", Text::body) {
        "started" => {
            let agent = threads.spawned_by(&thread.to_plain(), id);
            if std::mem::replace(&mut agent.start_emitted, true) {
                return false;
            }
            let call = agent.call.clone();
            let input = Json::object(|fields| {
                fields.text_if("agentPath", item.agent_path.as_ref());
            });
            out.emit(ToolStarted {
                call: call.borrowed(),
                name: Text::plain("spawn_agent"),
                kind: ToolKind::Task,
                input: Some(input),
                ..ToolStarted::default()
            });
            out.emit(SubagentStarted {
                id: Some(thread.clone()),
                call: Some(call.borrowed()),
                description: item.agent_path.clone(),
                ..SubagentStarted::default()
            });
            out.emit(ToolEnded { call, ..ToolEnded::default() });
            true
        }
        "completed" | "interrupted" => {
            let agent = threads.spawned_by(&thread.to_plain(), id);
            if std::mem::replace(&mut agent.ended, true) {
                return false;
            }
            out.emit(SubagentEnded {
                id: Some(thread.clone()),
                call: agent.start_emitted.then(|| agent.call.borrowed()),
                status: item.activity.clone(),
                summary: None,
            });
            true
        }
        _ => false,
    }
}
