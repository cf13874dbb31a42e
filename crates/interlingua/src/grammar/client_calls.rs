//! Calls of tools that the client of the session runs.
//!
//! The host offers the client's tools to the agent as those of an MCP server of its own, and learns
//! of a call in two ways: the agent's stream reports it, under a name that contains the server's,
//! and the server receives it. Either may come first, some agents report a call only when it has
//! ended, and some servers are not given the agent's id of the call. Both are one call here, with
//! the client's own name for its tool, and it is the client's: the host emits its answer, and what
//! the agent reports of the answer is a repeat.

use super::Grammar;
use super::stream::Emit;
use crate::event::{
    Data, Event, Executor, Outcome, Reason, Suspended, ToolEnded, ToolInput, ToolKind, ToolStarted,
    ToolStatus, TurnEnded,
};
use crate::json::{Json, Text};
use crate::reader::{ClientCall, ClientTools};

/// The calls of the client's tools in the current epoch.
#[derive(Debug, Default)]
pub(super) struct ClientCalls {
    tools: Option<ClientTools>,
    /// The calls that the agent's stream reported, and that the server has not received.
    reported: Vec<Known>,
    /// The calls that the server received without an id, and that the stream has not reported.
    received: Vec<Known>,
    /// The answers to calls of an earlier process, which belong to the next turn.
    late_answers: Vec<Event<'static>>,
    /// The turn waits for the client as soon as the agent's own calls have ended.
    suspends: bool,
    /// The caller answers the calls while the stream is read.
    answered_in_stream: bool,
}

/// A call that is known from one of its two sources.
#[derive(Debug)]
struct Known {
    /// Its native id if it was reported, else its emitted one.
    id: String,
    tool: String,
    /// The input, if the server received the call.
    input: String,
}

impl ClientCalls {
    /// Forgets the calls of a turn or a process that has ended.
    pub(super) fn forget(&mut self) {
        self.reported.clear();
        self.received.clear();
        self.suspends = false;
    }

    /// The client's own name of a tool that the agent names.
    pub(super) fn tool(&self, name: &Text<'_>) -> Option<&str> {
        self.tools.as_ref()?.named(&name.to_plain())
    }

    /// Takes the call that the server received and that the agent reports now.
    fn take_received(&mut self, tool: &str, input: Option<&Json<'_>>) -> Option<String> {
        let fits = |call: &Known| {
            call.tool == tool && input.is_none_or(|input| is_same(&call.input, input.get()))
        };
        let at = self.received.iter().position(fits)?;
        Some(self.received.remove(at).id)
    }
}

impl Grammar {
    /// Sets the tools that the client runs.
    pub(crate) fn set_client_tools(&mut self, tools: ClientTools) {
        self.client_calls.tools =
            Some(tools).filter(|it| !it.names.is_empty() || !it.renamed.is_empty());
    }

    /// Suspends turns that wait for the client, instead of ending them.
    pub(crate) fn suspend_turns(&mut self) {
        self.client_calls.answered_in_stream = true;
    }

    /// Whether the end of a turn is only a pause, in which the caller answers calls of the client.
    pub(super) fn is_pause(&self, ended: &TurnEnded<'_>) -> bool {
        self.client_calls.answered_in_stream
            && ended.outcome == Outcome::WaitingForClient
            && !self.calls.open_of_client().is_empty()
    }

    /// Whether a decoder takes a call of the client for abandoned, because its stream does not have the answer.
    /// The caller knows whether it waits. If it does not, the end of the turn closes the call.
    pub(super) fn is_left_to_caller(&self, ended: &ToolEnded<'_>) -> bool {
        self.client_calls.answered_in_stream
            && !self.stream.from_caller
            && ended.status == ToolStatus::Abandoned
            && self.calls.open_of_client().iter().any(|call| ended.call == **call)
    }

    /// Suspends the turn. The agent does nothing else meanwhile, so that its own calls end, as they do at
    /// the end of a turn that waits for the client.
    pub(super) fn pause(&mut self, emit: Emit<'_>) {
        self.calls.end_turn((true, false), Reason::TurnEnded, &mut self.stream, emit);
        self.stream.count_merged();
        let fate = self.stream.event_fate;
        self.suspend(emit);
        self.stream.event_fate = fate;
    }

    /// Recognises what the agent reports of the client's tools.
    #[inline]
    pub(super) fn recognise_client_tool(&mut self, event: &mut Event<'_>) {
        if self.client_calls.tools.is_some() && !self.stream.from_caller {
            self.recognise_tool(event);
        }
    }

    fn recognise_tool(&mut self, event: &mut Event<'_>) {
        match &mut event.data {
            Data::ToolStarted(started) => {
                let Some(tool) = self.client_calls.tool(&started.name).map(str::to_owned) else {
                    return;
                };
                started.name = Text::from(tool.clone());
                (started.kind, started.executor) = (ToolKind::Mcp, Executor::Client);
                self.calls.assign_id(&mut event.data);
                self.report_client_call(&tool, &event.data);
            }
            Data::PermissionRequested(asked) => {
                let tool = asked.tool.as_ref().and_then(|tool| self.client_calls.tool(tool));
                if let Some(tool) = tool {
                    asked.tool = Some(Text::from(tool.to_owned()));
                }
            }
            _ => {}
        }
    }

    /// The agent's stream reports a call of one of the client's tools.
    fn report_client_call(&mut self, tool: &str, data: &Data<'_>) {
        let Data::ToolStarted(started) = data else { return };
        if self.calls.is_known(&started.call) {
            return;
        }
        match self.client_calls.take_received(tool, started.input.as_ref()) {
            Some(id) => self.calls.rename(&started.call, id),
            None => {
                let (id, tool) = (started.call.to_string(), tool.to_owned());
                self.client_calls.reported.push(Known { id, tool, input: String::new() });
            }
        }
    }

    /// Takes a call that the server of the client's tools received, and returns its emitted id; `None` if
    /// it has ended already.
    pub(crate) fn client_call(&mut self, call: &ClientCall<'_>, emit: Emit<'_>) -> Option<String> {
        let native = call.native.map(Text::plain);
        let known = match &native {
            Some(native) => self.calls.is_known(native).then(|| self.calls.emitted_id(native)),
            None => self.reported_as(call),
        };
        let Some(id) = known else {
            let id = call.native.map_or_else(|| self.calls.fresh_id(), str::to_owned);
            return Some(self.start_client_call(&id, call, emit));
        };
        if !self.calls.is_open_call_of(&id, call.tool) {
            return None;
        }
        self.calls.note_client_tool(&id);
        let calls = &self.calls;
        let is_other = |call: &Known| calls.emitted_id(&Text::plain(&call.id)) != id;
        self.client_calls.reported.retain(is_other);
        if !self.calls.has_input(&id) {
            let (call, input) = (Text::plain(&id), Some(Json::read_from(call.input)));
            let input = ToolInput { call, input, ..ToolInput::default() };
            self.push_from_caller(Event::new(input), emit);
        }
        Some(id)
    }

    /// The oldest call that the agent's stream reported and that is the one that the server received.
    fn reported_as(&self, call: &ClientCall<'_>) -> Option<String> {
        let of_tool = self.client_calls.reported.iter().filter(|known| known.tool == call.tool);
        let ids = of_tool.map(|known| self.calls.emitted_id(&Text::plain(&known.id)));
        let ids: Vec<_> = ids.collect();
        let has_same_input = |id: &&String| is_same(self.calls.input_so_far(id), call.input);
        // An input that is complete, and another one, is that of another call.
        let may_have_it =
            |id: &&String| !self.calls.has_input(id) && !is_complete(self.calls.input_so_far(id));
        let same = ids.iter().find(has_same_input);
        same.or_else(|| ids.iter().find(may_have_it)).cloned()
    }

    /// Starts a call that the agent's stream has not reported, and returns its emitted id.
    fn start_client_call(&mut self, id: &str, call: &ClientCall<'_>, emit: Emit<'_>) -> String {
        let started = ToolStarted {
            call: Text::plain(id),
            name: Text::plain(call.tool),
            kind: ToolKind::Mcp,
            executor: Executor::Client,
            input: Some(Json::read_from(call.input)),
            ..ToolStarted::default()
        };
        self.push_from_caller(Event::new(started), emit);
        // An earlier process of the agent may have used the same id.
        let id = self.calls.emitted_id(&Text::plain(id));
        self.calls.note_client_tool(&id);
        if call.native.is_none() {
            let (tool, input) = (call.tool.to_owned(), call.input.to_owned());
            self.client_calls.received.push(Known { id: id.clone(), tool, input });
        }
        id
    }

    /// Sets the answers to calls that waited when their process was lost. They are emitted when the next
    /// turn begins, since the agent receives them with its prompt.
    pub(crate) fn answer_with_next_turn(&mut self, answers: Vec<Event<'static>>) {
        self.client_calls.late_answers = answers;
    }

    /// Emits the answers that belong to the turn which has just begun.
    #[inline]
    pub(super) fn emit_late_answers(&mut self, emit: Emit<'_>) {
        if !self.client_calls.late_answers.is_empty() && !self.turns.is_replay() {
            let (from_caller, fate) = (self.stream.from_caller, self.stream.event_fate);
            for answer in std::mem::take(&mut self.client_calls.late_answers) {
                self.push_from_caller(answer, emit);
            }
            (self.stream.from_caller, self.stream.event_fate) = (from_caller, fate);
        }
    }

    /// Emits that the turn waits for the client, if that was left for the end of a call.
    #[inline]
    pub(super) fn suspend_later(&mut self, emit: Emit<'_>) {
        if self.client_calls.suspends {
            let (from_caller, fate) = (self.stream.from_caller, self.stream.event_fate);
            self.suspend(emit);
            (self.stream.from_caller, self.stream.event_fate) = (from_caller, fate);
        }
    }

    /// Emits that the turn waits for the client, if one of the client's calls is open. Returns
    /// whether it does. While the agent works on other calls, it does not wait: it is emitted when these
    /// have ended, since writers rely on no others being open.
    pub(crate) fn suspend(&mut self, emit: Emit<'_>) -> bool {
        let calls = self.calls.open_of_client();
        self.client_calls.suspends = !calls.is_empty() && self.calls.has_running();
        if calls.is_empty() || self.client_calls.suspends {
            return false;
        }
        // What the model was writing has ended, since it waits for a tool.
        self.blocks.end_turn(Reason::Implied, &mut self.stream, emit);
        self.messages.end_turn(&Reason::Implied, &mut self.stream, emit);
        let calls = calls.into_iter().map(Text::from).collect();
        self.push_from_caller(Event::new(Suspended { calls }), emit);
        true
    }
}

/// Whether a text is a whole JSON value.
fn is_complete(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether two JSON texts have the same value.
fn is_same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let value = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    value(one).zip(value(other)).is_some_and(|(one, other)| one == other)
}
