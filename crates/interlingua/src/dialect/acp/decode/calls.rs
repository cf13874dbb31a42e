//! Tool calls: what they are given, what they show, what they give back.
//!
//! A call may be announced before its input is known; it may be told by a request for permission
//! alone; what it shows while it runs is told again as a whole every time.

use std::collections::HashMap;

use super::AcpDecoder;
use super::agent::{self, Agent};
use super::output::{block, change, raw_text, shown_output, told_change};
use crate::dialect::EventSink;
use crate::dialect::acp::tools;
use crate::dialect::acp::wire::{Location, RawOutput, Sides, Update};
use crate::dialect::acp::wire_meta::{Meta, Ours};
use crate::event::{
    Event, Executor, FileChange, FilesChanged, Outcome, PlanUpdated, ToolEnded, ToolInput,
    ToolKind, ToolProgress, ToolStarted, ToolStatus,
};
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// How much of what a call shows is remembered, to tell what is new of it.
const SHOWN: usize = 1 << 20;

/// The calls that are open.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) open: HashMap<String, OpenCall>,
    made: u64,
    /// Some were made in the turn at hand.
    pub(super) in_turn: bool,
}

#[derive(Debug, Default)]
pub(super) struct OpenCall {
    pub(super) order: u64,
    pub(super) id: Text<'static>,
    pub(super) name: Text<'static>,
    kind: ToolKind,
    executor: Executor,
    pub(super) parent: Option<Text<'static>>,
    /// The title of a command is the command.
    titled_by_command: bool,
    pub(super) announced: bool,
    input_told: bool,
    /// The input, while it may still grow.
    pub(super) input: Option<Json<'static>>,
    title: Option<Text<'static>>,
    locations: Option<Json<'static>>,
    /// The differences that the call shows.
    changes: Vec<FileChange<'static>>,
    /// What it has shown so far.
    shown: String,
    /// What its terminal has shown so far.
    terminal: String,
    /// The request for permission that it waits for.
    pub(super) request: Option<Text<'static>>,
    pub(super) refused: bool,
    /// Its input was a plan.
    plan_told: bool,
    /// Nothing was heard of it but that the agent may ask for it.
    pub(super) only_asked_for: bool,
}

impl Calls {
    /// Notes whether the user lets a call run.
    pub(super) fn decided(&mut self, call: &Text<'_>, allowed: bool) {
        if let Some(open) = self.open.get_mut(&*call.to_plain()) {
            open.refused = !allowed;
            open.only_asked_for &= !allowed;
        }
    }

    /// Whether a tool with this name is at work.
    pub(super) fn running(&self, name: &str) -> bool {
        self.open.values().any(|call| call.name == *name)
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
    pub(super) fn call(&mut self, update: &Update<'_>, meta: Meta<'_>, sink: &mut dyn EventSink) {
        self.end_block(sink);
        let id = update.call.clone().unwrap_or_default();
        self.deny_unheard(Some(&id), sink);
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
        let piece = meta.terminal_output.as_ref().and_then(|output| output.data.as_ref());
        call.terminal_shows(piece);
        if ended {
            let stopped = self.stopping;
            call.end(status == "failed", stopped, update, meta, sink);
            return;
        }
        let shows = matches!(&update.content, Shaped::List(parts) if !parts.is_empty());
        if piece.is_some() {
            call.tell_progress(piece.cloned(), None, sink);
        } else if !first && (shows || input_told == call.input_told) {
            call.progress(update, meta.ours.as_ref(), sink);
        }
        self.calls.open.insert(id.to_plain().into_owned(), call);
    }

    /// Ends the calls that nobody answered, as far as their end is known: what a cancelled turn leaves
    /// open is cancelled with it.
    pub(super) fn end_calls(&mut self, outcome: &Outcome, sink: &mut dyn EventSink) {
        self.calls.in_turn = false;
        if *outcome == Outcome::Completed {
            self.deny_unheard(None, sink);
        }
        for mut call in self.calls.in_order() {
            call.tell_input(false, sink);
            let status = match outcome {
                _ if call.refused => ToolStatus::Denied,
                Outcome::Cancelled => ToolStatus::Cancelled,
                _ => continue,
            };
            let ended = ToolEnded { call: call.id, status, ..ToolEnded::default() };
            sink.event(Event::new(ended).within(call.parent));
        }
    }

    /// The call that a record is about; if nobody has heard of it yet, it is made.
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
        self.calls.in_turn = true;
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
            Agent::Copilot => agent::tool_of_copilot(update).map(Text::plain),
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

    /// Keeps what a request for permission tells, where nothing better is known: what was announced
    /// while the input could still grow is not better (OpenCode announces nothing but the folder).
    pub(super) fn learn_of_request(&mut self, update: &Update<'_>) {
        if !self.input_told || !self.input.as_ref().is_some_and(says_something) {
            self.learn(update, None, false);
        }
    }

    /// Tells the call, and its input once that is complete.
    pub(super) fn tell_input(&mut self, may_grow: bool, sink: &mut dyn EventSink) {
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

    fn start(&self, input: Option<&Json<'_>>, sink: &mut dyn EventSink) {
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

    /// What the title and the places say of an input that the agent does not tell.
    fn described(&self) -> Option<Json<'static>> {
        let locations = self.locations.as_ref().and_then(read::records_of::<Location<'_>>);
        let path = locations.and_then(|list| list.into_iter().next()).and_then(|first| first.path);
        // A title that repeats the name of the tool describes no input.
        let title = self.title.as_ref().filter(|title| **title != self.name);
        if title.is_none() && path.is_none() {
            return None;
        }
        let title_name = if self.titled_by_command { "command" } else { "title" };
        let sides = self.sides();
        Some(Json::object(|fields| {
            fields.text_if(title_name, title).text_if("path", path.as_ref());
            match self.kind {
                ToolKind::Write => fields.json_if("content", sides.new.as_ref()),
                ToolKind::Edit => fields
                    .json_if("old_string", sides.old.as_ref())
                    .json_if("new_string", sides.new.as_ref()),
                _ => fields,
            };
        }))
    }

    /// The text before and after, of a call that changes one file.
    fn sides(&self) -> Sides<'_> {
        let [change] = &*self.changes else { return Sides::default() };
        change.diff.as_ref().and_then(read::record_of::<Sides<'_>>).unwrap_or_default()
    }

    /// Keeps the next piece of what a terminal shows, to tell it again at the end.
    fn terminal_shows(&mut self, piece: Option<&Text<'_>>) {
        let Some(piece) = piece.map(Text::to_plain) else { return };
        if self.terminal.len() + piece.len() <= SHOWN {
            self.terminal.push_str(&piece);
        }
    }

    fn tell_progress(
        &self,
        output: Option<Text<'_>>,
        elapsed_ms: Option<u64>,
        sink: &mut dyn EventSink,
    ) {
        let progress = ToolProgress { call: self.id.borrowed(), output, elapsed_ms };
        sink.event(Event::new(progress).within(self.parent.clone()));
    }

    /// What a running call shows, as far as it is new.
    fn progress(&mut self, update: &Update<'_>, ours: Option<&Ours<'_>>, sink: &mut dyn EventSink) {
        if let Some(ours) = ours.filter(|ours| ours.output.is_some() || ours.elapsed_ms.is_some()) {
            self.tell_progress(ours.output.clone(), ours.elapsed_ms, sink);
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
        self.tell_progress(new.map(Text::plain), None, sink);
        if new.is_some() && text.len() <= SHOWN {
            self.shown = text;
        }
    }

    /// The call is over. The protocol has no word for one that was stopped: it has failed after the
    /// client asked for a stop.
    fn end(
        self,
        failed: bool,
        stopped: bool,
        update: &Update<'_>,
        mut meta: Meta<'_>,
        sink: &mut dyn EventSink,
    ) {
        let raw = update.raw_output.as_ref();
        let facts = raw.and_then(read::record_of::<RawOutput<'_>>).unwrap_or_default();
        let ours = meta.ours.take().unwrap_or_default();
        let in_terminal = || Some(&self.terminal).filter(|text| !text.is_empty());
        let output = shown_output(update)
            .or_else(|| in_terminal().map(|text| Json::from(&Text::plain(text))))
            .or_else(|| raw_text(raw, &facts));
        let cancelled = output
            .as_ref()
            .and_then(Json::as_text)
            .is_some_and(|text| text.body().starts_with("Command cancelled by user"));
        let rejected = facts.code.as_ref().is_some_and(|code| *code == "rejected");
        let exit_code = exit_code(&facts, &meta, &ours);
        let status = match (&ours.status, failed) {
            (Some(word), _) => ToolStatus::from(word.body()),
            (None, _) if cancelled => ToolStatus::Cancelled,
            (None, false) if exit_code.is_some_and(|code| code != 0) => ToolStatus::Failed,
            (None, false) => ToolStatus::Completed,
            (None, true) if rejected || self.refused => ToolStatus::Denied,
            (None, true) if stopped => ToolStatus::Cancelled,
            (None, true) => ToolStatus::Failed,
        };
        if rejected {
            self.tell_denied(facts.message.clone(), sink);
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
}

/// How a command exited, wherever an agent tells it.
fn exit_code(facts: &RawOutput<'_>, meta: &Meta<'_>, ours: &Ours<'_>) -> Option<i64> {
    let of_part = || facts.contents.iter().find_map(|part| part.exit_code);
    let of_metadata = || facts.metadata.as_ref().and_then(|metadata| metadata.exit);
    let of_terminal = || meta.terminal_exit.as_ref().and_then(|exit| exit.exit_code);
    let told = ours.exit_code.or(facts.exit_code);
    told.or_else(of_part).or_else(of_metadata).or_else(of_terminal)
}

/// Whether an input is more than an object without fields.
pub(super) fn says_something(input: &Json<'_>) -> bool {
    input.get().len() > 2
}
