//! Tool calls. Every record of a call is a snapshot of all that is known of it.

use super::tools;
use super::wire::{Input, Metadata, Part, State};
use crate::dialect::EventSink;
use crate::dialect::tools::plan_items;
use crate::event::{
    Event, FilesChanged, PlanUpdated, SubagentEnded, SubagentStarted, ToolEnded, ToolInput,
    ToolProgress, ToolStarted, ToolStatus,
};
use crate::json::read::{self, Whole};
use crate::json::{Json, Text};

/// The open calls, and those that were denied.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<Call>,
    /// The call that ended last, whose memory the next one reuses.
    spare: Call,
    denied: Vec<String>,
    /// The files that calls of the current step have changed.
    pub(super) changed: Vec<String>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    session: usize,
    tool: String,
    /// Its input was emitted.
    input_emitted: bool,
    /// The folder in which its command runs, if its input names one.
    folder: Option<Text<'static>>,
    /// It has reported the session of the sub-agent that it spawned.
    has_child: bool,
    /// The output so far, which every snapshot repeats.
    output: String,
}

/// The effects of a snapshot beyond its call.
#[derive(Debug, Default)]
pub(super) struct SnapshotEffect {
    /// The snapshot contained something new.
    pub(super) is_new: bool,
    /// The call was denied in a way that ends the turn.
    pub(super) ends_turn: bool,
    /// The call.
    pub(super) call: Option<Text<'static>>,
    /// The session of the sub-agent that it spawned, if it was not known before.
    pub(super) child: Option<Text<'static>>,
}

/// The session and the time of a snapshot, which its events share.
pub(super) struct CallContext<'a> {
    pub(super) session: usize,
    pub(super) parent: Option<Text<'static>>,
    pub(super) time: Option<Json<'a>>,
}

impl Calls {
    /// Records that a call was denied.
    pub(super) fn deny(&mut self, call: &Text<'_>) {
        self.denied.push(call.to_plain().into_owned());
    }

    /// The folder that the input of an open call names for its command.
    pub(super) fn folder_of(&self, call: &Text<'_>) -> Option<&Text<'static>> {
        self.open.iter().find(|open| *call == *open.id)?.folder.as_ref()
    }

    /// Whether an open call writes the plan of a session.
    pub(super) fn writes_plan(&self, session: usize) -> bool {
        self.open.iter().any(|call| call.session == session && call.tool == "todowrite")
    }

    /// The open call of a session that spawns a sub-agent and has not reported its session yet.
    pub(super) fn call_spawning_agent(&self, session: usize) -> Option<&str> {
        let spawns =
            |call: &&Call| call.session == session && call.tool == "task" && !call.has_child;
        self.open.iter().find(spawns).map(|call| &*call.id)
    }

    /// Forgets the calls of a turn that has ended.
    pub(super) fn end_turn(&mut self) {
        *self = Self::default();
    }

    /// Reads a snapshot of a call.
    pub(super) fn read_snapshot<'a>(
        &mut self,
        part: &mut Part<'a>,
        context: &CallContext<'a>,
        sink: &mut dyn EventSink,
    ) -> SnapshotEffect {
        // The state is large, so it is borrowed and not moved.
        let state = part.state.get_or_insert_default();
        let (structured, metadata) = match &state.metadata {
            Some(Whole { json, record }) => (Some(json), record),
            None => (None, &Metadata::default()),
        };
        let call = part.call.take().unwrap_or_default();
        let tool = part.tool.take().unwrap_or_default();
        let status = state.status.as_ref().map_or("", Text::body);
        let raw_input = state.input.as_ref().filter(|_| status != "pending");
        let is_read = metadata.session.is_some() || tools::input_is_read(tool.body());
        let input = raw_input.filter(|_| is_read).and_then(read::record_of::<Input<'_>>);
        let input = input.unwrap_or_default();
        // opencode replaces the input of a call that cannot be made by a note, so the real input is
        // unknown.
        let empty = (tool == "invalid").then(|| Json::object(|_| {}));
        let raw_input = raw_input.map(|input| empty.as_ref().unwrap_or(input));
        let mut effect = SnapshotEffect::default();
        let at = self.open.iter().position(|open| call == *open.id);
        let is_new = at.is_none();
        effect.is_new = is_new;
        let at = at.unwrap_or_else(|| {
            let started = ToolStarted {
                call: call.clone(),
                name: tool.clone(),
                message: part.message.take(),
                input: raw_input.cloned(),
                ..ToolStarted::default()
            };
            self.start(started, input.tool.clone(), context, sink)
        });
        let Some(open) = self.open.get_mut(at) else { return effect };
        // Earlier snapshots of such a call have the name that the model used.
        if empty.is_some() {
            open.tool = "invalid".to_owned();
        }
        if raw_input.is_some() && !std::mem::replace(&mut open.input_emitted, true) {
            effect.is_new = true;
            open.folder = input.folder.clone().map(Text::into_owned);
            if !is_new {
                let complete = raw_input.cloned();
                let call = call.clone();
                sink.event(context.event(ToolInput {
                    call,
                    input: complete,
                    ..ToolInput::default()
                }));
            }
            emit_plan(&call, &tool, &input, context, sink);
        }
        if let Some(session) = open.emit_subagent(&call, &input, metadata, context, sink) {
            effect.is_new = true;
            effect.child = Some(session);
            effect.call = Some(call.clone().into_owned());
        }
        match status {
            "completed" | "error" => {
                let open = self.open.swap_remove(at);
                effect.is_new = true;
                let is_denied = self.denied.iter().any(|denied| call == **denied);
                let mut ended = tool_ended(call, &open, state, &input, metadata, is_denied);
                ended.structured = structured.cloned();
                effect.ends_turn = ended.status == ToolStatus::Denied
                    && !ended.error.as_ref().is_some_and(tools::is_forbidden);
                if open.has_child {
                    sink.event(context.event(SubagentEnded {
                        id: metadata.session.clone(),
                        call: Some(ended.call.clone()),
                        status: Some(Text::plain(status)),
                        summary: None,
                    }));
                }
                self.emit_file_changes(&open.tool, &ended, &input, metadata, context, sink);
                sink.event(context.event(ended));
                let Call { mut id, mut tool, .. } = open;
                id.clear();
                tool.clear();
                self.spare = Call { id, tool, ..Call::default() };
            }
            "running" => effect.is_new |= open.emit_progress(call, metadata, context, sink),
            _ => {}
        }
        effect
    }

    /// Starts a new call; returns its position among the open ones.
    fn start<'a>(
        &mut self,
        mut started: ToolStarted<'a>,
        requested_name: Option<Text<'a>>,
        context: &CallContext<'_>,
        sink: &mut dyn EventSink,
    ) -> usize {
        let Call { mut id, mut tool, .. } = std::mem::take(&mut self.spare);
        id.push_str(&started.call.to_plain());
        tool.push_str(&started.name.to_plain());
        self.open.push(Call { id, tool, session: context.session, ..Call::default() });
        // A tool that does not exist gets the name that the model used.
        if let Some(requested_name) = requested_name.filter(|_| started.name == "invalid") {
            started.name = requested_name;
        }
        started.kind = tools::kind_of(&started.name);
        let time = context.time.as_ref().map(Json::borrowed);
        sink.event(Event::new(started).within(context.parent.clone()).at(time));
        self.open.len() - 1
    }

    fn emit_file_changes(
        &mut self,
        tool: &str,
        ended: &ToolEnded<'_>,
        input: &Input<'_>,
        metadata: &Metadata<'_>,
        context: &CallContext<'_>,
        sink: &mut dyn EventSink,
    ) {
        if ended.status != ToolStatus::Completed {
            return;
        }
        let changes = tools::files_changed(tool, input, metadata);
        if changes.is_empty() {
            return;
        }
        self.changed.extend(changes.iter().map(|change| change.path.to_plain().into_owned()));
        let call = Some(ended.call.borrowed());
        sink.event(
            Event::new(FilesChanged { call, changes })
                .within(context.parent.clone())
                .at(context.time.as_ref().map(Json::borrowed)),
        );
    }
}

impl Call {
    /// Emits the start of the sub-agent whose session a call reports; returns the session the first
    /// time.
    fn emit_subagent<'a>(
        &mut self,
        call: &Text<'a>,
        input: &Input<'_>,
        metadata: &Metadata<'_>,
        context: &CallContext<'a>,
        sink: &mut dyn EventSink,
    ) -> Option<Text<'static>> {
        let session = metadata.session.as_ref().filter(|_| !self.has_child)?;
        self.has_child = true;
        let started = SubagentStarted {
            id: Some(session.borrowed()),
            call: Some(call.borrowed()),
            kind: input.agent.as_ref().map(Text::borrowed),
            description: input.description.as_ref().map(Text::borrowed),
            prompt: input.prompt.as_ref().map(Text::borrowed),
        };
        let time = context.time.as_ref().map(Json::borrowed);
        sink.event(Event::new(started).within(context.parent.clone()).at(time));
        Some(session.clone().into_owned())
    }

    /// Emits the new output of a running call; returns whether there was any.
    fn emit_progress(
        &mut self,
        call: Text<'_>,
        metadata: &Metadata<'_>,
        context: &CallContext<'_>,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(output) = &metadata.output else { return false };
        let output = output.to_plain();
        // The start of the output may have been cut, to keep the snapshot short.
        let delta = output.strip_prefix(&*self.output).unwrap_or_default();
        let progress =
            ToolProgress { call, output: Some(Text::plain(delta)), ..ToolProgress::default() };
        let is_new_output = !delta.is_empty();
        if is_new_output {
            let time = context.time.as_ref().map(Json::borrowed);
            sink.event(Event::new(progress).within(context.parent.clone()).at(time));
        }
        self.output.clear();
        self.output.push_str(&output);
        is_new_output
    }
}

impl<'a> CallContext<'a> {
    fn event(&self, data: impl Into<crate::event::Data<'a>>) -> Event<'a> {
        Event::new(data).within(self.parent.clone()).at(self.time.clone())
    }
}

/// Emits the plan, if a call writes it.
fn emit_plan(
    call: &Text<'_>,
    tool: &Text<'_>,
    input: &Input<'_>,
    context: &CallContext<'_>,
    sink: &mut dyn EventSink,
) {
    let todos = input.todos.as_ref().filter(|_| *tool == "todowrite");
    if let Some(items) = todos.and_then(plan_items) {
        let call = Some(call.borrowed());
        sink.event(
            Event::new(PlanUpdated { plan: None, call, items })
                .within(context.parent.clone())
                .at(context.time.as_ref().map(Json::borrowed)),
        );
    }
}

fn tool_ended<'a>(
    call: Text<'a>,
    open: &Call,
    state: &State<'a>,
    input: &Input<'a>,
    metadata: &Metadata<'_>,
    denied: bool,
) -> ToolEnded<'a> {
    let note = input.error.as_ref().filter(|_| open.tool == "invalid").cloned();
    let reported = state.status.as_ref().map_or("", Text::body);
    let output = state.output.as_ref().and_then(Json::as_text);
    let message = state.error.as_ref().or(output.as_ref()).map_or("", Text::body);
    let status = tools::status_of(reported, &open.tool, denied, metadata, message);
    ToolEnded {
        call,
        status,
        output: state.output.clone(),
        exit_code: metadata.exit,
        error: state.error.clone().or(note),
        ..ToolEnded::default()
    }
}
