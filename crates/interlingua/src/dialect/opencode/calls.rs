//! Tool calls: every record of one is a snapshot of all that is known of it.

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

/// The calls that are not over, and those that were refused.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<Call>,
    /// The last one that ended: the next one takes its place in memory.
    spare: Call,
    denied: Vec<String>,
    /// The files that calls of this step are known to have changed.
    pub(super) changed: Vec<String>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    session: usize,
    tool: String,
    /// Its input was told.
    told: bool,
    /// The session of the sub-agent that it started.
    child: bool,
    /// What it gave back so far: every snapshot tells all of it.
    output: String,
}

/// Something that a snapshot of a call told, which is not about the call alone.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The snapshot said something new.
    pub(super) news: bool,
    /// The call was refused in a way that ends the turn.
    pub(super) blocks: bool,
    /// The call.
    pub(super) call: Option<Text<'static>>,
    /// The session of the sub-agent that it started, if this was not known.
    pub(super) child: Option<Text<'static>>,
}

/// Where a snapshot of a call belongs.
pub(super) struct Place<'a> {
    pub(super) session: usize,
    pub(super) parent: Option<Text<'static>>,
    pub(super) time: Option<Json<'a>>,
}

impl Calls {
    /// Notes that a call was refused.
    pub(super) fn deny(&mut self, call: &Text<'_>) {
        self.denied.push(call.to_plain().into_owned());
    }

    /// Whether a call is open that writes the plan of a session.
    pub(super) fn writes_plan(&self, session: usize) -> bool {
        self.open.iter().any(|call| call.session == session && call.tool == "todowrite")
    }

    /// The call of a session that starts a sub-agent and has not said which.
    pub(super) fn starts_agent(&self, session: usize) -> Option<&str> {
        let starts = |call: &&Call| call.session == session && call.tool == "task" && !call.child;
        self.open.iter().find(starts).map(|call| &*call.id)
    }

    /// Forgets the calls of a turn that is over.
    pub(super) fn end_turn(&mut self) {
        *self = Self::default();
    }

    /// Takes a snapshot of a call.
    pub(super) fn snapshot<'a>(
        &mut self,
        part: &mut Part<'a>,
        place: &Place<'a>,
        sink: &mut dyn EventSink,
    ) -> Told {
        // They are large: they are read where they are.
        let state = part.state.get_or_insert_default();
        let (structured, metadata) = match &state.metadata {
            Some(Whole { json, record }) => (Some(json), record),
            None => (None, &Metadata::default()),
        };
        let call = part.call.take().unwrap_or_default();
        let tool = part.tool.take().unwrap_or_default();
        let word = state.status.as_ref().map_or("", Text::body);
        let raw_input = state.input.as_ref().filter(|_| word != "pending");
        let is_read = metadata.session.is_some() || tools::input_is_read(tool.body());
        let input = raw_input.filter(|_| is_read).and_then(read::record_of::<Input<'_>>);
        let input = input.unwrap_or_default();
        // What the model gave a tool that cannot be called is not told: the input is a note about it.
        let nothing = (tool == "invalid").then(|| Json::object(|_| {}));
        let raw_input = raw_input.map(|input| nothing.as_ref().unwrap_or(input));
        let mut told = Told::default();
        let at = self.open.iter().position(|open| call == *open.id);
        let is_new = at.is_none();
        told.news = is_new;
        let at = at.unwrap_or_else(|| {
            let made = ToolStarted {
                call: call.clone(),
                name: tool.clone(),
                message: part.message.take(),
                input: raw_input.cloned(),
                ..ToolStarted::default()
            };
            self.start(made, input.tool.clone(), place, sink)
        });
        let Some(open) = self.open.get_mut(at) else { return told };
        // At first such a call has the name that the model gave it.
        if nothing.is_some() {
            open.tool = "invalid".to_owned();
        }
        if raw_input.is_some() && !std::mem::replace(&mut open.told, true) {
            told.news = true;
            if !is_new {
                let whole = raw_input.cloned();
                let call = call.clone();
                sink.event(place.tell(ToolInput { call, input: whole, ..ToolInput::default() }));
            }
            tell_plan(&call, &tool, &input, place, sink);
        }
        if let Some(session) = open.starts_agent(&call, &input, metadata, place, sink) {
            told.news = true;
            told.child = Some(session);
            told.call = Some(call.clone().into_owned());
        }
        match word {
            "completed" | "error" => {
                let open = self.open.swap_remove(at);
                told.news = true;
                let refused = self.denied.iter().any(|denied| call == **denied);
                let mut ended = ended(call, &open, state, &input, metadata, refused);
                ended.structured = structured.cloned();
                told.blocks = ended.status == ToolStatus::Denied
                    && !ended.error.as_ref().is_some_and(tools::is_forbidden);
                if open.child {
                    sink.event(place.tell(SubagentEnded {
                        id: metadata.session.clone(),
                        call: Some(ended.call.clone()),
                        status: Some(Text::plain(word)),
                        summary: None,
                    }));
                }
                self.files(&open.tool, &ended, &input, metadata, place, sink);
                sink.event(place.tell(ended));
                let Call { mut id, mut tool, .. } = open;
                id.clear();
                tool.clear();
                self.spare = Call { id, tool, ..Call::default() };
            }
            "running" => told.news |= open.progress(call, metadata, place, sink),
            _ => {}
        }
        told
    }

    /// A call that is new; gives its place among the open ones.
    fn start<'a>(
        &mut self,
        mut made: ToolStarted<'a>,
        asked: Option<Text<'a>>,
        place: &Place<'_>,
        sink: &mut dyn EventSink,
    ) -> usize {
        let Call { mut id, mut tool, .. } = std::mem::take(&mut self.spare);
        id.push_str(&made.call.to_plain());
        tool.push_str(&made.name.to_plain());
        self.open.push(Call { id, tool, session: place.session, ..Call::default() });
        // The name that the model gave a tool that does not exist.
        if let Some(asked) = asked.filter(|_| made.name == "invalid") {
            made.name = asked;
        }
        made.kind = tools::kind_of(&made.name);
        let time = place.time.as_ref().map(Json::borrowed);
        sink.event(Event::new(made).within(place.parent.clone()).at(time));
        self.open.len() - 1
    }

    fn files(
        &mut self,
        tool: &str,
        ended: &ToolEnded<'_>,
        input: &Input<'_>,
        metadata: &Metadata<'_>,
        place: &Place<'_>,
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
                .within(place.parent.clone())
                .at(place.time.as_ref().map(Json::borrowed)),
        );
    }
}

impl Call {
    /// A call names the session of the sub-agent that it started; gives that, the first time.
    fn starts_agent<'a>(
        &mut self,
        call: &Text<'a>,
        input: &Input<'_>,
        metadata: &Metadata<'_>,
        place: &Place<'a>,
        sink: &mut dyn EventSink,
    ) -> Option<Text<'static>> {
        let session = metadata.session.as_ref().filter(|_| !self.child)?;
        self.child = true;
        let started = SubagentStarted {
            id: Some(session.borrowed()),
            call: Some(call.borrowed()),
            kind: input.agent.as_ref().map(Text::borrowed),
            description: input.description.as_ref().map(Text::borrowed),
            prompt: input.prompt.as_ref().map(Text::borrowed),
        };
        let time = place.time.as_ref().map(Json::borrowed);
        sink.event(Event::new(started).within(place.parent.clone()).at(time));
        Some(session.clone().into_owned())
    }

    /// A running call told what it gave back so far; whether that is more than before.
    fn progress(
        &mut self,
        call: Text<'_>,
        metadata: &Metadata<'_>,
        place: &Place<'_>,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(output) = &metadata.output else { return false };
        let output = output.to_plain();
        // What was there before may have been cut, to keep the snapshot short.
        let piece = output.strip_prefix(&*self.output).unwrap_or_default();
        let progress =
            ToolProgress { call, output: Some(Text::plain(piece)), ..ToolProgress::default() };
        let is_news = !piece.is_empty();
        if is_news {
            let time = place.time.as_ref().map(Json::borrowed);
            sink.event(Event::new(progress).within(place.parent.clone()).at(time));
        }
        self.output.clear();
        self.output.push_str(&output);
        is_news
    }
}

impl<'a> Place<'a> {
    fn tell(&self, data: impl Into<crate::event::Data<'a>>) -> Event<'a> {
        Event::new(data).within(self.parent.clone()).at(self.time.clone())
    }
}

/// Tells the plan, if that is what a call writes.
fn tell_plan(
    call: &Text<'_>,
    tool: &Text<'_>,
    input: &Input<'_>,
    place: &Place<'_>,
    sink: &mut dyn EventSink,
) {
    let todos = input.todos.as_ref().filter(|_| *tool == "todowrite");
    if let Some(items) = todos.and_then(plan_items) {
        let call = Some(call.borrowed());
        sink.event(
            Event::new(PlanUpdated { plan: None, call, items })
                .within(place.parent.clone())
                .at(place.time.as_ref().map(Json::borrowed)),
        );
    }
}

fn ended<'a>(
    call: Text<'a>,
    open: &Call,
    state: &State<'a>,
    input: &Input<'a>,
    metadata: &Metadata<'_>,
    denied: bool,
) -> ToolEnded<'a> {
    let note = input.error.as_ref().filter(|_| open.tool == "invalid").cloned();
    let word = state.status.as_ref().map_or("", Text::body);
    let output = state.output.as_ref().and_then(Json::as_text);
    let said = state.error.as_ref().or(output.as_ref()).map_or("", Text::body);
    let status = tools::status_of(word, &open.tool, denied, metadata, said);
    ToolEnded {
        call,
        status,
        output: state.output.clone(),
        exit_code: metadata.exit,
        error: state.error.clone().or(note),
        ..ToolEnded::default()
    }
}
