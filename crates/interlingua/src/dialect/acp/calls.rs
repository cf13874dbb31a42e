//! Tool calls: what they are given, what they show, what they give back.
//!
//! A call may be announced before its input is known; it may be told by a request for permission
//! alone; what it shows while it runs is told again as a whole every time.

use std::collections::HashMap;

use super::decode::{AcpDecoder, Asking, meta_of, request_name};
use super::said::Agent;
use super::tools;
use super::wire::{
    Content, Location, Meta, OurChange, Ours, Params, PermissionOption, RawOutput, Update,
};
use crate::event::{
    Decision, Event, Executor, FileChange, FileChangeKind, FilesChanged, Outcome,
    PermissionRequested, PermissionResolved, PlanUpdated, Sink, ToolEnded, ToolInput, ToolKind,
    ToolProgress, ToolStarted, ToolStatus,
};
use crate::json::read::{self, Shaped};
use crate::json::write;
use crate::json::{Json, Text};

/// How much of what a call shows is remembered, to tell what is new of it.
const SHOWN: usize = 1 << 20;

/// The calls that are open.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<String, OpenCall>,
    made: u64,
}

#[derive(Debug, Default)]
struct OpenCall {
    order: u64,
    id: Text<'static>,
    name: Text<'static>,
    kind: ToolKind,
    executor: Executor,
    parent: Option<Text<'static>>,
    /// The title of a command is the command.
    titled_by_command: bool,
    announced: bool,
    input_told: bool,
    /// The input, while it may still grow.
    input: Option<Json<'static>>,
    title: Option<Text<'static>>,
    locations: Option<Json<'static>>,
    /// The differences that the call shows.
    changes: Vec<FileChange<'static>>,
    /// What it has shown so far.
    shown: String,
    refused: bool,
    /// Its input was a plan.
    plan_told: bool,
    /// Nothing was heard of it but that the agent may ask for it.
    only_asked_for: bool,
}

impl Calls {
    /// Notes that the user did not let a call run.
    pub(super) fn refused(&mut self, call: &Text<'_>) {
        if let Some(open) = self.open.get_mut(&*call.to_plain()) {
            open.refused = true;
        }
    }

    /// Whether the input of a call has told the plan.
    pub(super) fn told_plan(&self, call: &Text<'_>) -> bool {
        self.open.get(&*call.to_plain()).is_some_and(|call| call.plan_told)
    }

    fn in_order(&mut self) -> Vec<OpenCall> {
        let mut calls: Vec<_> = self.open.drain().map(|(_, call)| call).collect();
        calls.sort_unstable_by_key(|call| call.order);
        calls
    }
}

impl AcpDecoder {
    /// A call is made, goes on, or is answered.
    pub(super) fn call(&mut self, update: &Update<'_>, meta: Meta<'_>, sink: &mut dyn Sink) {
        self.end_block(sink);
        let id = update.call.clone().unwrap_or_default();
        let mut call = self.take_call(&id, update, &meta);
        let status = update.status.as_ref().map_or("", Text::body);
        let ended = matches!(status, "completed" | "failed");
        let first = update.kind.as_ref().is_some_and(|kind| *kind == "tool_call");
        // What Copilot announces is complete; others may still be writing it.
        let may_grow = !ended
            && (status == "pending" || (first && status.is_empty()))
            && self.agent != Agent::Copilot;
        call.only_asked_for = false;
        let input_told = call.input_told;
        call.learn(update, meta.ours.as_ref(), ended);
        call.tell_input(may_grow, sink);
        if ended {
            call.end(status == "failed", update, meta, sink);
            return;
        }
        let shows = matches!(&update.content, Shaped::List(parts) if !parts.is_empty());
        if !first && (shows || input_told == call.input_told) {
            call.progress(update, meta.ours.as_ref(), sink);
        }
        self.calls.open.insert(id.to_plain().into_owned(), call);
    }

    /// The agent asks whether it may run a call, of which this may be the first that is heard.
    pub(super) fn permission(
        &mut self,
        id: Option<&Json<'_>>,
        params: Params<'_>,
        sink: &mut dyn Sink,
    ) {
        self.end_block(sink);
        let update = params.call.as_ref().and_then(read::record_of::<Update<'_>>);
        let update = update.unwrap_or_default();
        let call_id = update.call.clone().unwrap_or_default();
        let meta = meta_of(&update.meta).unwrap_or_default();
        let mut call = self.take_call(&call_id, &update, &meta);
        call.only_asked_for = !call.announced;
        let ours = meta_of(&params.meta).and_then(|meta| meta.ours).unwrap_or_default();
        // Our own writer tells a call apart from what is asked about it: a request makes none.
        let by_us = ours.request.is_some();
        if !by_us {
            call.learn_if_unknown(&update);
            call.tell_input(false, sink);
        }
        let options = ours.options.or(params.options);
        let request = ours.request.or(id.map(request_name)).unwrap_or_default();
        if let Some(id) = id {
            let refusing = refusing(options.as_ref());
            let call = call.id.clone();
            self.remember_asking(id, Asking::Permission { call, refusing });
        }
        let asked = PermissionRequested {
            request,
            call: Some(call_id.clone()),
            tool: Some(call.name.borrowed()),
            description: ours.description.or(update.title),
            input: update.raw_input.or_else(|| call.input.as_ref().map(Json::borrowed)),
            options,
        };
        sink.event(Event::new(asked).within(call.parent.clone()));
        if call.announced || !by_us {
            self.calls.open.insert(call_id.to_plain().into_owned(), call);
        }
    }

    /// Ends the calls that nobody answered, as far as their end is known. Of a call that the user did
    /// not let run Gemini says nothing more; what a cancelled turn leaves open is cancelled with it.
    pub(super) fn end_calls(&mut self, outcome: &Outcome, sink: &mut dyn Sink) {
        let gemini = self.agent == Agent::Gemini;
        for mut call in self.calls.in_order() {
            call.tell_input(false, sink);
            let status = match outcome {
                _ if call.refused => ToolStatus::Denied,
                Outcome::Cancelled => ToolStatus::Cancelled,
                Outcome::Completed if gemini && call.only_asked_for => ToolStatus::Denied,
                _ => continue,
            };
            let ended = ToolEnded { call: call.id, status, ..ToolEnded::default() };
            sink.event(Event::new(ended).within(call.parent));
        }
    }

    /// The call that a record is about; if nobody has heard of it yet, it is made.
    fn take_call(&mut self, id: &Text<'_>, update: &Update<'_>, meta: &Meta<'_>) -> OpenCall {
        if let Some(call) = self.calls.open.remove(&*id.to_plain()) {
            return call;
        }
        let name = self.tool_name(id, update, meta);
        let ours = meta.ours.as_ref();
        let told = ours.and_then(|ours| ours.kind.as_ref());
        let kind = match told {
            Some(kind) => ToolKind::from(&*kind.to_plain()),
            None => tools::kind_of(&name, update.tool_kind.as_ref()),
        };
        let executor = ours.and_then(|ours| ours.executor.as_ref());
        let executor = executor.map_or(Executor::Agent, |word| Executor::from(word.body()));
        let of_ours = ours.and_then(|ours| ours.parent.clone());
        let parent =
            of_ours.or_else(|| meta.claude.as_ref().and_then(|claude| claude.parent.clone()));
        let parent = parent.map(Text::into_owned);
        self.calls.made += 1;
        let order = self.calls.made;
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

    /// The name of a tool. The protocol had none until lately; agents tell it in ways of their own, or
    /// not at all: then the kind of work is all that can be said.
    fn tool_name(&self, id: &Text<'_>, update: &Update<'_>, meta: &Meta<'_>) -> Text<'static> {
        let of_claude = meta.claude.as_ref().and_then(|claude| claude.tool_name.as_ref());
        let told = update.name.as_ref().or(meta.tool_name.as_ref()).or(of_claude);
        if let Some(name) = told.filter(|name| !name.is_empty()) {
            return name.clone().into_owned();
        }
        let in_own_way = match self.agent {
            Agent::Gemini => {
                id.to_plain().split_once("__").map(|(name, _)| Text::from(name.to_owned()))
            }
            Agent::OpenCode => update.title.clone().map(Text::into_owned),
            _ => None,
        };
        let kind = || update.tool_kind.clone().map(Text::into_owned);
        in_own_way.or_else(kind).unwrap_or_else(|| Text::plain("other"))
    }
}

impl OpenCall {
    /// Keeps what a record tells of the call.
    fn learn(&mut self, update: &Update<'_>, ours: Option<&Ours<'_>>, ended: bool) {
        if !self.input_told {
            if let Some(input) = update.raw_input.as_ref().filter(|input| says_something(input)) {
                self.input = Some(input.clone().into_owned());
            } else if self.input.is_none() {
                self.input = update.raw_input.clone().map(Json::into_owned);
            }
            // Titles of answers say what came out of it.
            if !ended || self.title.is_none() {
                self.title = update.title.clone().map(Text::into_owned).or(self.title.take());
            }
            self.locations =
                update.locations.clone().map(Json::into_owned).or(self.locations.take());
        }
        let told = ours.map_or(&[][..], |ours| &*ours.changes);
        if !told.is_empty() {
            self.changes = told.iter().map(told_change).collect();
        } else if let Shaped::List(parts) = &update.content {
            self.changes = parts.iter().filter_map(change).collect();
        }
    }

    /// Keeps what a request for permission tells, where nothing better is known.
    fn learn_if_unknown(&mut self, update: &Update<'_>) {
        if !self.input.as_ref().is_some_and(says_something) {
            self.learn(update, None, false);
        }
    }

    /// Tells the call, and its input once that is complete.
    fn tell_input(&mut self, may_grow: bool, sink: &mut dyn Sink) {
        if self.input_told {
            return;
        }
        if may_grow {
            if !std::mem::replace(&mut self.announced, true) {
                self.start(None, sink);
            }
            return;
        }
        self.input_told = true;
        self.input = self.input.take().or_else(|| self.described());
        let input = &self.input;
        if std::mem::replace(&mut self.announced, true) {
            let input = input.as_ref().map(Json::borrowed);
            let input = ToolInput { call: self.id.borrowed(), input, ..ToolInput::default() };
            sink.event(Event::new(input).within(self.parent.clone()));
        } else {
            self.start(input.as_ref(), sink);
        }
        let items =
            input.as_ref().and_then(|it| crate::dialect::tools::plan_written(&self.kind, it));
        if let Some(items) = items {
            self.plan_told = true;
            let plan = PlanUpdated { plan: None, call: Some(self.id.borrowed()), items };
            sink.event(Event::new(plan).within(self.parent.clone()));
        }
    }

    fn start(&self, input: Option<&Json<'_>>, sink: &mut dyn Sink) {
        let started = ToolStarted {
            call: self.id.borrowed(),
            name: self.name.borrowed(),
            kind: self.kind.clone(),
            executor: self.executor.clone(),
            message: None,
            input: input.map(Json::borrowed),
        };
        sink.event(Event::new(started).within(self.parent.clone()));
    }

    /// What the title and the places say of an input that the agent does not tell.
    fn described(&self) -> Option<Json<'static>> {
        let locations = self.locations.as_ref().and_then(read::records_of::<Location<'_>>);
        let path = locations.and_then(|list| list.into_iter().next()).and_then(|first| first.path);
        if self.title.is_none() && path.is_none() {
            return None;
        }
        let title = if self.titled_by_command { "command" } else { "title" };
        Some(Json::object(|fields| {
            fields.text_if(title, self.title.as_ref()).text_if("path", path.as_ref());
        }))
    }

    /// What a running call shows, as far as it is new.
    fn progress(&mut self, update: &Update<'_>, ours: Option<&Ours<'_>>, sink: &mut dyn Sink) {
        let parent = self.parent.clone();
        if let Some(ours) = ours.filter(|ours| ours.output.is_some() || ours.elapsed_ms.is_some()) {
            let (output, elapsed_ms) = (ours.output.clone(), ours.elapsed_ms);
            let progress = ToolProgress { call: self.id.borrowed(), output, elapsed_ms };
            sink.event(Event::new(progress).within(parent));
            return;
        }
        let parts = match &update.content {
            Shaped::List(parts) => &**parts,
            _ => &[],
        };
        let blocks: Vec<_> = parts.iter().filter_map(block).collect();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block.text.as_ref()).collect();
        let text = texts.iter().map(|text| text.to_plain()).collect::<Vec<_>>().join("\n");
        let new = text.strip_prefix(&*self.shown).filter(|new| !new.is_empty());
        let output = new.map(Text::plain);
        let progress = ToolProgress { call: self.id.borrowed(), output, elapsed_ms: None };
        sink.event(Event::new(progress).within(parent));
        if new.is_some() && text.len() <= SHOWN {
            self.shown = text;
        }
    }

    fn end(self, failed: bool, update: &Update<'_>, meta: Meta<'_>, sink: &mut dyn Sink) {
        let raw = update.raw_output.as_ref();
        let facts = raw.and_then(read::record_of::<RawOutput<'_>>).unwrap_or_default();
        let ours = meta.ours.unwrap_or_default();
        let output = shown_output(update).or_else(|| raw_text(raw, &facts));
        let cancelled = output
            .as_ref()
            .and_then(Json::as_text)
            .is_some_and(|text| text.body().starts_with("Command cancelled by user"));
        let rejected = facts.code.as_ref().is_some_and(|code| *code == "rejected");
        let status = match (&ours.status, failed) {
            (Some(word), _) => ToolStatus::from(word.body()),
            (None, _) if cancelled => ToolStatus::Cancelled,
            (None, false) => ToolStatus::Completed,
            (None, true) if rejected || self.refused => ToolStatus::Denied,
            (None, true) => ToolStatus::Failed,
        };
        let exit_of_part = facts.contents.iter().find_map(|part| part.exit_code);
        let exit_of_metadata = facts.metadata.as_ref().and_then(|metadata| metadata.exit);
        let exit_of_terminal = meta.terminal_exit.and_then(|exit| exit.exit_code);
        let exit_code = ours.exit_code.or(facts.exit_code).or(exit_of_part);
        let exit_code = exit_code.or(exit_of_metadata).or(exit_of_terminal);
        if rejected {
            self.denied(&facts, sink);
        }
        // A result that is nothing but an error is told as one.
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

    /// Copilot says with the answer that the user did not let the call run.
    fn denied(&self, facts: &RawOutput<'_>, sink: &mut dyn Sink) {
        if self.refused {
            return;
        }
        sink.event(Event::new(PermissionResolved {
            call: Some(self.id.borrowed()),
            tool: Some(self.name.borrowed()),
            decision: Decision::Denied,
            reason: facts.message.clone(),
            ..PermissionResolved::default()
        }));
    }
}

/// What a call shows when it is over: one text as it is, several blocks as a list.
fn shown_output(update: &Update<'_>) -> Option<Json<'static>> {
    let Shaped::List(parts) = &update.content else { return None };
    let raw: Vec<_> = parts.iter().filter_map(|part| part.inner.as_ref()).collect();
    if let [only] = &*raw {
        let block = read::record_of::<Content<'_>>(only)?;
        if let Some(text) = block.text.filter(|_| block.kind.is_some_and(|kind| kind == "text")) {
            return Some(Json::from(&text));
        }
    }
    if raw.is_empty() {
        return None;
    }
    let list = raw.iter().map(|block| block.get()).collect::<Vec<_>>().join(",");
    Json::from_text(format!("[{list}]"))
}

/// The text of a result that is told for programs alone.
fn raw_text(raw: Option<&Json<'_>>, facts: &RawOutput<'_>) -> Option<Json<'static>> {
    let texts = [raw, facts.content.as_ref(), facts.output.as_ref(), facts.text.as_ref()];
    let text = texts.into_iter().flatten().find_map(Json::as_text)?;
    let mut literal = Vec::new();
    write::text(&mut literal, &text);
    String::from_utf8(literal).ok().and_then(Json::from_text)
}

/// The block that a part of what a call shows holds.
fn block<'p>(part: &'p Content<'_>) -> Option<Content<'p>> {
    read::record_of::<Content<'_>>(part.inner.as_ref()?)
}

fn change(part: &Content<'_>) -> Option<FileChange<'static>> {
    if part.kind.as_ref().is_none_or(|kind| *kind != "diff") {
        return None;
    }
    let path = part.path.as_ref()?;
    let meta = meta_of(&part.meta);
    let word = meta.as_ref().and_then(|meta| meta.kind.as_ref()).map_or("", Text::body);
    let was_empty = part.old_text.as_ref().is_none_or(|old| old.get() == "\"\"");
    let kind = match word {
        "add" => FileChangeKind::Add,
        "delete" => FileChangeKind::Delete,
        "" if was_empty => FileChangeKind::Add,
        _ => FileChangeKind::Update,
    };
    let diff = Json::object(|fields| {
        fields.json_if("oldText", part.old_text.as_ref());
        fields.json_if("newText", part.new_text.as_ref());
    });
    Some(FileChange { path: path.clone().into_owned(), old_path: None, kind, diff: Some(diff) })
}

fn told_change(change: &OurChange<'_>) -> FileChange<'static> {
    let own = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
    FileChange {
        path: own(&change.path).unwrap_or_default(),
        old_path: own(&change.old_path),
        kind: change.kind.as_ref().map(|kind| kind.body().into()).unwrap_or_default(),
        diff: change.diff.clone().map(Json::into_owned),
    }
}

/// The options that do not let a call run.
fn refusing(options: Option<&Json<'_>>) -> Vec<Text<'static>> {
    let options = options.and_then(read::records_of::<PermissionOption<'_>>).unwrap_or_default();
    let refuses = |option: &PermissionOption<'_>| {
        option.kind.as_ref().is_some_and(|kind| kind.body().starts_with("reject"))
    };
    let refusing = options.into_iter().filter(refuses).filter_map(|option| option.id);
    refusing.map(Text::into_owned).collect()
}

/// Whether an input is more than an object without fields.
fn says_something(input: &Json<'_>) -> bool {
    input.get().len() > 2
}
