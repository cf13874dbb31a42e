//! Items that are tool calls.

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

/// The calls that are being made.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Those that were announced and not yet completed.
    announced: Vec<Box<str>>,
}

/// A tool: its name, the kind of its work, and who runs it.
pub(super) type Tool<'a> = (Text<'a>, ToolKind, Executor);

impl Calls {
    pub(super) fn started<'a>(
        &mut self,
        tool: Tool<'a>,
        item: &Item<'a>,
        threads: &mut Threads,
        out: &mut Emitter<'_, 'a>,
    ) {
        let id = item.id.clone().unwrap_or_default();
        if starts_agent(item) {
            threads.begin_start(&id);
        }
        self.announced.push(id.to_plain().into());
        out.emit(start(tool, item, false));
    }

    /// Whether a call was announced; it is over now.
    fn take(&mut self, id: &Text<'_>) -> bool {
        let at = self.announced.iter().position(|open| *id == **open);
        at.map(|at| self.announced.remove(at)).is_some()
    }

    /// Ends the calls that ran when the turn was stopped: nobody will answer them. What the grammar
    /// knows to be answered it does not answer again.
    pub(super) fn stop(&mut self, out: &mut Emitter<'_, '_>) {
        for call in self.announced.drain(..) {
            out.emit(ToolEnded {
                call: Text::plain(&call),
                status: ToolStatus::Cancelled,
                error: Some(Text::plain("the turn was stopped while this call ran")),
                ..ToolEnded::default()
            });
        }
    }

    /// Forgets a call that was answered in another way.
    pub(super) fn forget(&mut self, call: &Text<'_>) {
        self.announced.retain(|announced| *call != **announced);
    }

    pub(super) fn clear(&mut self) {
        self.announced.clear();
    }
}

impl CodexAppServerDecoder {
    pub(super) fn call_completed<'a>(
        &mut self,
        tool: Tool<'a>,
        item: &mut Item<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let id = item.id.clone().unwrap_or_default();
        let kind = tool.1.clone();
        if !self.calls.take(&id) {
            out.emit(start(tool, item, true));
        }
        if kind == ToolKind::WebSearch {
            let (call, input) = (id.clone(), Some(search_input(item)));
            out.emit(ToolInput { call, input, ..ToolInput::default() });
        }
        if kind == ToolKind::Task {
            self.threads.end_start(&id);
            other_agents(item, &mut self.threads, out);
        }
        let ended = end(item);
        self.asked.call_shows(&id, Some(&ended.status), out);
        if ended.status == ToolStatus::Completed {
            self.files_changed(item, out);
            artifact(item, out);
        }
        out.emit(ended);
    }

    fn files_changed(&mut self, item: &Item<'_>, out: &mut Emitter<'_, '_>) {
        let changes = item.changes.as_ref().and_then(read::records_of::<Change<'_>>);
        let Some(changes) = changes.filter(|changes| !changes.is_empty()) else { return };
        let changes: Vec<_> = changes.into_iter().map(file_change).collect();
        changes.iter().for_each(|change| self.files.add(&change.path));
        out.emit(FilesChanged { call: item.id.clone(), changes });
    }
}

fn starts_agent(item: &Item<'_>) -> bool {
    item.tool.as_ref().is_some_and(|tool| *tool == "spawnAgent")
}

fn start<'a>(
    (name, kind, executor): Tool<'a>,
    item: &Item<'a>,
    completed: bool,
) -> ToolStarted<'a> {
    let call = item.id.clone().unwrap_or_default();
    let input = input(item, &kind, completed);
    ToolStarted { native_call: None, call, name, kind, executor, input, message: None }
}

/// What a tool is given; a search on the web does not say it before it is over.
fn input<'a>(item: &Item<'a>, kind: &ToolKind, completed: bool) -> Option<Json<'a>> {
    let of = |fields: &[(&str, &Option<Json<'_>>)]| {
        Json::object(|object| {
            for (name, value) in fields {
                object.json_if(name, value.as_ref());
            }
        })
    };
    Some(match item.kind.as_ref().map_or("", Text::body) {
        "commandExecution" => of(&[("command", &item.command), ("cwd", &item.cwd)]),
        "fileChange" => of(&[("changes", &item.changes)]),
        "imageView" => of(&[("path", &item.path)]),
        "imageGeneration" => of(&[("prompt", &item.prompt)]),
        "collabAgentToolCall" => {
            let receivers = item.receivers.clone().filter(|receivers| receivers.get() != "[]");
            of(&[("prompt", &item.prompt), ("receiverThreadIds", &receivers)])
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

fn end<'a>(item: &mut Item<'a>) -> ToolEnded<'a> {
    let status = match item.status.as_ref().map_or("completed", Text::body) {
        "completed" => ToolStatus::Completed,
        "failed" => ToolStatus::Failed,
        "declined" => ToolStatus::Denied,
        // Completed as far as the stream is concerned, and never finished.
        "inProgress" => ToolStatus::Abandoned,
        other => ToolStatus::from(other),
    };
    let (output, structured) = output(item);
    let error = item.error.take().and_then(|error| error.message);
    let silent = output.as_ref().is_none_or(|output| output.get() == "\"\"");
    let silent = silent && item.exit_code.is_none();
    ToolEnded {
        call: item.id.clone().unwrap_or_default(),
        error: error.or_else(|| reason_of(&status).filter(|_| silent)),
        status,
        output,
        structured,
        exit_code: item.exit_code,
        ..ToolEnded::default()
    }
}

/// Why a call did not do what it should, where the agent leaves it at that.
pub(super) fn reason_of(status: &ToolStatus) -> Option<Text<'static>> {
    match status {
        ToolStatus::Denied => Some(Text::plain("the call was not allowed")),
        ToolStatus::Failed => Some(Text::plain("the call failed")),
        _ => None,
    }
}

/// What a call gave back, and the same for a program.
fn output<'a>(item: &mut Item<'a>) -> (Option<Json<'a>>, Option<Json<'a>>) {
    if let Some(result) = item.result.as_ref().and_then(read::record_of::<McpResult<'_>>) {
        return (result.content.map(Json::into_owned), result.structured.map(Json::into_owned));
    }
    let states = item.states.take().filter(|states| states.get() != "{}");
    let of_client = item.content_items.take().map(in_words_of_mcp);
    let output = item.output.take().or(item.results.take()).or(of_client);
    (output.or(states), None)
}

/// What a tool of the client gave back; that of a server of tools has other words for the same.
fn in_words_of_mcp(items: Json<'_>) -> Json<'_> {
    let blocks: Option<Vec<Json<'_>>> = items.read();
    let told = blocks.and_then(|blocks| {
        let blocks: Vec<_> = blocks.iter().map(content_block).collect();
        let blocks: Vec<_> = blocks.iter().map(Json::get).collect();
        Json::from_text(format!("[{}]", blocks.join(",")))
    });
    told.unwrap_or(items)
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
    let diff = change.diff.and_then(|diff| diffs::of_change(&kind, diff));
    FileChange { path, old_path, kind, diff }
}

/// A picture that was drawn and kept.
fn artifact(item: &Item<'_>, out: &mut Emitter<'_, '_>) {
    if let Some(path) = item.saved_path.clone() {
        out.emit(Artifact { path, ..Artifact::default() });
    }
}

/// Other agents that a call started, and those it shows to be done.
fn other_agents(item: &Item<'_>, threads: &mut Threads, out: &mut Emitter<'_, '_>) {
    let call = item.id.clone().unwrap_or_default();
    let receivers = item.receivers.as_ref().and_then(Json::read::<Vec<String>>);
    for thread in receivers.into_iter().flatten().filter(|_| starts_agent(item)) {
        let agent = threads.started_by(&thread, &call);
        if !std::mem::replace(&mut agent.told, true) {
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
        let agent = threads.started_by(&thread, &call);
        if !std::mem::replace(&mut agent.ended, true) {
            let call = agent.told.then(|| agent.call.borrowed());
            out.emit(SubagentEnded {
                id: Some(Text::plain(&thread)),
                call,
                status: Some(status),
                summary: state.message,
            });
        }
    }
}

/// What another agent does, where no call tells it.
pub(super) fn activity<'a>(
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
            let agent = threads.started_by(&thread.to_plain(), id);
            if std::mem::replace(&mut agent.told, true) {
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
            let agent = threads.started_by(&thread.to_plain(), id);
            if std::mem::replace(&mut agent.ended, true) {
                return false;
            }
            out.emit(SubagentEnded {
                id: Some(thread.clone()),
                call: agent.told.then(|| agent.call.borrowed()),
                status: item.activity.clone(),
                summary: None,
            });
            true
        }
        _ => false,
    }
}
