//! Tool calls: their input, their progress and their result.
//!
//! A call may be announced before its input is known, or be reported by a permission request alone.
//! The content of a running call is repeated as a whole with every update.

use std::collections::HashMap;

use super::AcpDecoder;
use super::agent::{self, Agent};
use super::output::{change_from_diff, change_from_meta, content_block, raw_text, shown_output};
use super::running_output::{SnapshotOutput, TerminalOutput};
use crate::dialect::EventSink;
use crate::dialect::acp::tools;
use crate::dialect::acp::wire::{Location, RawOutput, Sides, Update};
use crate::dialect::acp::wire_meta::{InterlinguaMeta, Meta};
use crate::event::{
    Event, Executor, FileChange, FilesChanged, Outcome, PlanUpdated, ToolEnded, ToolInput,
    ToolKind, ToolProgress, ToolStarted, ToolStatus,
};
use crate::json::read::{self, Shaped};
use crate::json::write::Object;
use crate::json::{Json, Text};

/// The open calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) open: HashMap<String, OpenCall>,
    count: u64,
    /// A call was started in the current turn.
    pub(super) any_in_turn: bool,
}

#[derive(Debug, Default)]
pub(super) struct OpenCall {
    pub(super) order: u64,
    pub(super) id: Text<'static>,
    pub(super) name: Text<'static>,
    kind: ToolKind,
    executor: Executor,
    pub(super) parent: Option<Text<'static>>,
    /// The title of the call is its command.
    titled_by_command: bool,
    pub(super) start_emitted: bool,
    input_emitted: bool,
    /// The input so far, which may still grow until it is emitted.
    pub(super) input: Option<Json<'static>>,
    title: Option<Text<'static>>,
    /// The folder in which its command runs.
    folder: Option<Text<'static>>,
    locations: Option<Json<'static>>,
    /// The diffs of the call.
    changes: Vec<FileChange<'static>>,
    snapshots: SnapshotOutput,
    terminal: TerminalOutput,
    /// The permission request that it waits for.
    pub(super) request: Option<Text<'static>>,
    pub(super) denied: bool,
    /// Its input was a plan, which was emitted.
    plan_emitted: bool,
    /// It is known only from a permission request.
    pub(super) only_requested: bool,
}

impl Calls {
    /// Records whether the user allowed a call.
    pub(super) fn record_decision(&mut self, call: &Text<'_>, allowed: bool) {
        if let Some(open) = self.open.get_mut(&*call.to_plain()) {
            open.denied = !allowed;
            open.only_requested &= !allowed;
        }
    }

    /// Whether a call of this tool is open.
    pub(super) fn has_open(&self, name: &str) -> bool {
        self.open.values().any(|call| call.name == *name)
    }

    /// Whether the input of a call was emitted as the plan.
    pub(super) fn has_emitted_plan(&self, call: &Text<'_>) -> bool {
        self.open.get(&*call.to_plain()).is_some_and(|call| call.plan_emitted)
    }

    fn drain_in_order(&mut self) -> Vec<OpenCall> {
        let mut calls: Vec<_> = self.open.drain().map(|(_, call)| call).collect();
        calls.sort_unstable_by_key(|call| call.order);
        calls
    }
}

impl AcpDecoder {
    /// Reads the start, the progress or the result of a call.
    pub(super) fn read_call(
        &mut self,
        update: &Update<'_>,
        meta: Meta<'_>,
        sink: &mut dyn EventSink,
    ) {
        self.end_block(sink);
        let id = update.call.clone().unwrap_or_default();
        self.deny_dropped_calls(Some(&id), sink);
        let mut call = self.take_call(&id, update, &meta);
        let status = update.status.as_ref().map_or("", Text::body);
        let ended = matches!(status, "completed" | "failed");
        let first = update.kind.as_ref().is_some_and(|kind| *kind == "tool_call");
        // The input that Copilot announces is complete. Other agents may still be writing it.
        let may_grow = !ended
            && (status == "pending" || (first && status.is_empty()))
            && self.agent != Agent::Copilot;
        call.only_requested = false;
        let was_emitted = call.input_emitted;
        call.learn(update, meta.ours.as_ref(), ended);
        call.emit_input(may_grow, sink);
        let delta = meta.terminal_output.as_ref().and_then(|output| output.data.as_ref());
        if let Some(delta) = delta {
            call.terminal.push(&delta.to_plain());
        }
        if ended {
            let cancelled = self.cancel_requested;
            call.emit_end(status == "failed", cancelled, update, meta, sink);
            return;
        }
        let has_content = matches!(&update.content, Shaped::List(parts) if !parts.is_empty());
        if delta.is_some() {
            call.emit_progress(delta.cloned(), None, sink);
        } else if !first && (has_content || was_emitted == call.input_emitted) {
            call.read_progress(update, meta.ours.as_ref(), sink);
        }
        self.calls.open.insert(id.to_plain().into_owned(), call);
    }

    /// Ends the calls without an answer, as far as their end is known: calls that the user denied
    /// are denied, and a cancelled turn cancels the others.
    pub(super) fn end_calls(&mut self, outcome: &Outcome, sink: &mut dyn EventSink) {
        self.calls.any_in_turn = false;
        if *outcome == Outcome::Completed {
            self.deny_dropped_calls(None, sink);
        }
        for mut call in self.calls.drain_in_order() {
            call.emit_input(false, sink);
            let status = match outcome {
                _ if call.denied => ToolStatus::Denied,
                Outcome::Cancelled => ToolStatus::Cancelled,
                _ => continue,
            };
            let ended = ToolEnded { call: call.id, status, ..ToolEnded::default() };
            sink.event(Event::new(ended).within(call.parent));
        }
    }

    /// The call that a record is about, which is new if no earlier record was about it.
    pub(super) fn take_call(
        &mut self,
        id: &Text<'_>,
        update: &Update<'_>,
        meta: &Meta<'_>,
    ) -> OpenCall {
        if let Some(call) = self.calls.open.remove(&*id.to_plain()) {
            return call;
        }
        let name = self.tool_name(id, update, meta);
        let ours = meta.ours.as_ref();
        let exact = ours.and_then(|ours| ours.kind.as_ref());
        let kind = match exact {
            Some(kind) => ToolKind::from(&*kind.to_plain()),
            None => tools::kind_of(&name, update.tool_kind.as_ref()),
        };
        let executor = ours.and_then(|ours| ours.executor.as_ref());
        let executor = executor.map_or(Executor::Agent, |executor| Executor::from(executor.body()));
        let of_ours = ours.and_then(|ours| ours.parent.clone());
        let parent =
            of_ours.or_else(|| meta.claude.as_ref().and_then(|claude| claude.parent.clone()));
        let parent = parent.map(Text::into_owned);
        self.calls.count += 1;
        self.calls.any_in_turn = true;
        let order = self.calls.count;
        let id = id.clone().into_owned();
        let titled_by_command = self.agent == Agent::Gemini && kind == ToolKind::Execute;
        OpenCall {
            order,
            id,
            name,
            kind,
            executor,
            parent,
            titled_by_command,
            ..OpenCall::default()
        }
    }

    /// The name of a tool. Earlier versions of the protocol had no field for it; agents report it
    /// in ways of their own or not at all. The last resort is the kind of the tool.
    fn tool_name(&self, id: &Text<'_>, update: &Update<'_>, meta: &Meta<'_>) -> Text<'static> {
        let of_claude = meta.claude.as_ref().and_then(|claude| claude.tool_name.as_ref());
        let reported = update.name.as_ref().or(meta.tool_name.as_ref()).or(of_claude);
        if let Some(name) = reported.filter(|name| !name.is_empty()) {
            return name.clone().into_owned();
        }
        let by_agent = match self.agent {
            Agent::Gemini => {
                id.to_plain().split_once("__").map(|(name, _)| Text::from(name.to_owned()))
            }
            Agent::OpenCode => update.title.clone().map(Text::into_owned),
            Agent::Copilot => agent::copilot_tool(update).map(Text::plain),
            _ => None,
        };
        let kind = || update.tool_kind.clone().map(Text::into_owned);
        by_agent.or_else(kind).unwrap_or_else(|| Text::plain("other"))
    }
}

impl OpenCall {
    /// Keeps what a record reports about the call.
    fn learn(&mut self, update: &Update<'_>, ours: Option<&InterlinguaMeta<'_>>, ended: bool) {
        if !self.input_emitted {
            if let Some(input) = update.raw_input.as_ref().filter(|input| is_meaningful(input)) {
                self.input = Some(input.clone().into_owned());
            } else if self.input.is_none() {
                self.input = update.raw_input.clone().map(Json::into_owned);
            }
            // The title of a result describes the result, not the input.
            if !ended || self.title.is_none() {
                self.title = update.title.clone().map(Text::into_owned).or(self.title.take());
            }
            self.locations =
                update.locations.clone().map(Json::into_owned).or(self.locations.take());
        }
        let reported = ours.map_or(&[][..], |ours| &*ours.changes);
        if !reported.is_empty() {
            self.changes = reported.iter().map(change_from_meta).collect();
        } else if let Shaped::List(parts) = &update.content {
            self.changes = parts.iter().filter_map(change_from_diff).collect();
        }
    }

    /// Keeps what a permission request reports, unless better information is known. An input that
    /// was announced while it could still grow is not better: OpenCode announces only the folder.
    pub(super) fn learn_from_request(&mut self, update: &Update<'_>, cwd: Option<&Text<'_>>) {
        if self.titled_by_command {
            self.folder = agent::gemini_folder(update, cwd);
        }
        if !self.input_emitted || !self.input.as_ref().is_some_and(is_meaningful) {
            self.learn(update, None, false);
        }
    }

    /// Emits the start of the call, and its input once that is complete.
    pub(super) fn emit_input(&mut self, may_grow: bool, sink: &mut dyn EventSink) {
        if self.input_emitted {
            return;
        }
        if may_grow {
            if !std::mem::replace(&mut self.start_emitted, true) {
                self.emit_start(None, sink);
            }
            return;
        }
        self.input_emitted = true;
        self.input = self.input.take().or_else(|| self.describe_input());
        let input = &self.input;
        if std::mem::replace(&mut self.start_emitted, true) {
            let input = input.as_ref().map(Json::borrowed);
            let input = ToolInput { call: self.id.borrowed(), input, ..ToolInput::default() };
            sink.event(Event::new(input).within(self.parent.clone()));
        } else {
            self.emit_start(input.as_ref(), sink);
        }
        let items =
            input.as_ref().and_then(|it| crate::dialect::tools::plan_written(&self.kind, it));
        if let Some(items) = items {
            self.plan_emitted = true;
            let plan = PlanUpdated { plan: None, call: Some(self.id.borrowed()), items };
            sink.event(Event::new(plan).within(self.parent.clone()));
        }
    }

    fn emit_start(&self, input: Option<&Json<'_>>, sink: &mut dyn EventSink) {
        let started = ToolStarted {
            native_call: None,
            call: self.id.borrowed(),
            name: self.name.borrowed(),
            kind: self.kind.clone(),
            executor: self.executor.clone(),
            message: None,
            input: input.map(Json::borrowed),
        };
        sink.event(Event::new(started).within(self.parent.clone()));
    }

    /// An input made of the title, the locations and the diffs, for a call whose agent reports no
    /// input. It names every file.
    fn describe_input(&self) -> Option<Json<'static>> {
        let locations = self.locations.as_ref().and_then(read::records_of::<Location<'_>>);
        let located = locations.unwrap_or_default().into_iter().filter_map(|it| it.path);
        let mut paths = Vec::new();
        let changed = |change: &'_ FileChange<'static>| {
            [Some(change.path.clone()), change.old_path.clone()].into_iter().flatten()
        };
        for path in located.chain(self.changes.iter().flat_map(changed)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let title = self.title.as_ref().filter(|title| !self.is_name(title));
        if title.is_none() && paths.is_empty() {
            return None;
        }
        let title_name = if self.titled_by_command { "command" } else { "title" };
        Some(Json::object(|fields| {
            fields.text_if(title_name, title).text_if("cwd", self.folder.as_ref());
            match &*paths {
                [] => {}
                [path] if self.changes.len() < 2 => self.describe_file(path, fields),
                _ => {
                    let paths: Vec<_> = paths.iter().map(Text::to_plain).collect();
                    fields.json_if("paths", Json::from_serialize(&paths).as_ref());
                    if !self.changes.is_empty() {
                        fields.objects("changes", &self.changes, describe_change);
                    }
                }
            }
        }))
    }

    /// Whether a title is the tool's name, and does not describe the input. Gemini has a form of its own
    /// for the tools of MCP servers.
    fn is_name(&self, title: &Text<'_>) -> bool {
        if *title == self.name {
            return true;
        }
        let title = title.to_plain();
        let named = title.strip_suffix(" MCP Server)").and_then(|title| title.rsplit_once(" ("));
        named.is_some_and(|(tool, server)| self.name == *format!("mcp_{server}_{tool}"))
    }

    fn describe_file(&self, path: &Text<'_>, fields: &mut Object<'_>) {
        let sides = self.sides();
        fields.text("path", path);
        match self.kind {
            ToolKind::Write => fields.json_if("content", sides.new.as_ref()),
            ToolKind::Edit => fields
                .json_if("old_string", sides.old.as_ref())
                .json_if("new_string", sides.new.as_ref()),
            _ => fields,
        };
    }

    /// The old and the new text, for a call that changes one file.
    fn sides(&self) -> Sides<'_> {
        let [change] = &*self.changes else { return Sides::default() };
        sides_of(change)
    }

    fn emit_progress(
        &self,
        output: Option<Text<'_>>,
        elapsed_ms: Option<u64>,
        sink: &mut dyn EventSink,
    ) {
        let progress = ToolProgress { call: self.id.borrowed(), output, elapsed_ms };
        sink.event(Event::new(progress).within(self.parent.clone()));
    }

    /// Emits the new output of a running call.
    fn read_progress(
        &mut self,
        update: &Update<'_>,
        ours: Option<&InterlinguaMeta<'_>>,
        sink: &mut dyn EventSink,
    ) {
        if let Some(ours) = ours.filter(|ours| ours.output.is_some() || ours.elapsed_ms.is_some()) {
            self.emit_progress(ours.output.clone(), ours.elapsed_ms, sink);
            return;
        }
        let parts = match &update.content {
            Shaped::List(parts) => &**parts,
            _ => &[],
        };
        let blocks: Vec<_> = parts.iter().filter_map(content_block).collect();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block.text.as_ref()).collect();
        let text = texts.iter().map(|text| text.to_plain()).collect::<Vec<_>>().join("\n");
        let new = self.snapshots.new_part(&text).map(Text::plain);
        self.emit_progress(new, None, sink);
    }

    /// Emits the end of the call. The protocol has no status for a cancelled call, so a call that
    /// fails after the client cancelled the turn is a cancelled one.
    fn emit_end(
        self,
        failed: bool,
        cancel_requested: bool,
        update: &Update<'_>,
        mut meta: Meta<'_>,
        sink: &mut dyn EventSink,
    ) {
        let raw = update.raw_output.as_ref();
        let facts = raw.and_then(read::record_of::<RawOutput<'_>>).unwrap_or_default();
        let ours = meta.ours.take().unwrap_or_default();
        let output = shown_output(update)
            .or_else(|| self.terminal.result())
            .or_else(|| raw_text(raw, &facts));
        let is_cancelled = output
            .as_ref()
            .and_then(Json::as_text)
            .is_some_and(|text| text.body().starts_with("Command cancelled by user"));
        let rejected = facts.code.as_ref().is_some_and(|code| *code == "rejected");
        let exit_code = exit_code(&facts, &meta, &ours);
        let status = match (&ours.status, failed) {
            (Some(status), _) => ToolStatus::from(status.body()),
            (None, _) if is_cancelled => ToolStatus::Cancelled,
            (None, false) if exit_code.is_some_and(|code| code != 0) => ToolStatus::Failed,
            (None, false) => ToolStatus::Completed,
            (None, true) if rejected || self.denied => ToolStatus::Denied,
            (None, true) if cancel_requested => ToolStatus::Cancelled,
            (None, true) => ToolStatus::Failed,
        };
        if rejected {
            self.emit_denial(facts.message.clone(), sink);
        }
        // A result that contains only an error is emitted as the error.
        let only_error = failed && output.is_none() && facts.message.is_some();
        let structured = raw.filter(|raw| (raw.is_object() || raw.is_array()) && !only_error);
        let OpenCall { id, parent, changes, .. } = self;
        if status == ToolStatus::Completed && !changes.is_empty() {
            let changed = FilesChanged { call: Some(id.borrowed()), changes };
            sink.event(Event::new(changed).within(parent.clone()));
        }
        let ended = ToolEnded {
            call: id,
            status,
            output,
            structured: structured.cloned(),
            exit_code,
            error: ours.error.or(facts.message.filter(|_| failed)),
            ..ToolEnded::default()
        };
        sink.event(Event::new(ended).within(parent));
    }
}

fn sides_of<'a>(change: &'a FileChange<'_>) -> Sides<'a> {
    change.diff.as_ref().and_then(read::record_of::<Sides<'_>>).unwrap_or_default()
}

fn describe_change(fields: &mut Object<'_>, change: &FileChange<'_>) {
    let sides = sides_of(change);
    fields.text("path", &change.path).text_if("oldPath", change.old_path.as_ref());
    fields.json_if("oldText", sides.old.as_ref()).json_if("newText", sides.new.as_ref());
}

/// The exit code of a command, which agents report in different places.
fn exit_code(facts: &RawOutput<'_>, meta: &Meta<'_>, ours: &InterlinguaMeta<'_>) -> Option<i64> {
    let of_part = || facts.contents.iter().find_map(|part| part.exit_code);
    let of_metadata = || facts.metadata.as_ref().and_then(|metadata| metadata.exit);
    let of_terminal = || meta.terminal_exit.as_ref().and_then(|exit| exit.exit_code);
    let reported = ours.exit_code.or(facts.exit_code);
    reported.or_else(of_part).or_else(of_metadata).or_else(of_terminal)
}

/// Whether an input is more than an empty object.
pub(super) fn is_meaningful(input: &Json<'_>) -> bool {
    input.get().len() > 2
}
