//! Writes `AgentEvent` streams.

use super::todo_calls::TodoCalls;
use super::wire;
use crate::dialect::content::output_text;
use crate::dialect::{EncodeOptions, Encoder, Identity, Output, time, tools};
use crate::event::{
    BlockDelta, BlockKind, Data, Error, ErrorClass, Event, Executor, Notice, Outcome, PlanItem,
    PlanStatus, PlanUpdated, Reason, SessionEnded, SessionStarted, Severity, ToolEnded, ToolKind,
    ToolStatus, TurnEnded, Unparsed,
};
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

/// How many errors of a turn are remembered, so that its end does not say them again.
const ERRORS_KEPT: usize = 100;

/// The writer of `agent-event`.
#[derive(Debug, Clone)]
pub struct AgentEventEncoder {
    envelope: Envelope,
    /// The id of the list that was told last, and the fields that told it.
    list: Text<'static>,
    list_told: Option<Json<'static>>,
    todo_calls: TodoCalls,
    /// The errors that were told in the turn at hand.
    errors: Vec<Text<'static>>,
    /// A turn has ended and no other has begun: a reader may have gone.
    rests: bool,
    /// Times are the caller's, and notices are written between turns too.
    callers_time: bool,
}

/// What every record of a stream has; texts are kept as the literals that are written.
#[derive(Debug, Clone)]
struct Envelope {
    identity: Identity,
    agent_id: String,
    agent_type: String,
    /// The caller said what type the agent is.
    type_is_given: bool,
    team: String,
    /// The time of the event before, for one that has none.
    time: u64,
}

impl AgentEventEncoder {
    /// The same writer, with the caller's time in every record, and with what the system says between
    /// two turns.
    #[must_use]
    pub fn at_the_callers_time(mut self) -> Self {
        self.callers_time = true;
        self
    }

    /// A writer that names the agent and its team as the caller says.
    pub fn new(options: &EncodeOptions) -> Self {
        let team = Json::from_text(options.team.metadata.replace(['\r', '\n'], " "));
        let team = team.filter(Json::is_object).map(|team| team.get().to_owned());
        let envelope = Envelope {
            identity: Identity::default(),
            agent_id: literal(&options.team.agent_id),
            agent_type: literal(options.team.agent_type.as_deref().unwrap_or("unknown")),
            type_is_given: options.team.agent_type.is_some(),
            team: team.unwrap_or_else(|| "{}".to_owned()),
            time: 0,
        };
        // Before the session starts there is nobody to tell anything either.
        let list = Text::plain("plan");
        Self {
            envelope,
            list,
            list_told: None,
            todo_calls: TodoCalls::default(),
            errors: Vec::new(),
            rests: true,
            callers_time: false,
        }
    }
}

fn literal(plain: &str) -> String {
    let mut out = write::Bytes::new();
    write::string(&mut out, plain);
    String::from_utf8(out).unwrap_or_default()
}

impl Envelope {
    /// Opens a record, with all that records share.
    #[inline]
    fn record<'o>(&mut self, kind: &str, out: &'o mut Output) -> Object<'o> {
        let mut record = out.record(kind);
        self.identity.uuid().write(record.name("eventId"));
        record.raw("agentId", &self.agent_id);
        record.raw("agentType", &self.agent_type);
        record.raw("teamMetadata", &self.team);
        record.number("timestamp", self.time);
        record
    }

    /// Sets the time of the records to come: the agent's, or else the caller's, or else the last.
    #[inline]
    fn at(&mut self, event: &Event<'_>, callers_time: bool, out: &Output) {
        let own = if callers_time { None } else { event.time.as_ref() };
        if let Some(time) = own.and_then(time::milliseconds).or(out.now_ms()) {
            self.time = time;
        }
    }
}

impl Encoder for AgentEventEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.envelope.identity.follow(out);
        self.envelope.at(event, self.callers_time, out);
        lose_lineage(event, out);
        let of_subagent = event.parent.is_some();
        match &event.data {
            Data::BlockDelta(BlockDelta { kind, text, .. }) => {
                self.text(kind, text, of_subagent, out);
            }
            Data::Block(block) => {
                lose_block(&block.kind, out);
                lose_signature(block.signature.as_ref(), out);
                self.text(&block.kind, &block.text, of_subagent, out);
            }
            Data::BlockStarted(started) => lose_block(&started.kind, out),
            Data::BlockEnded(ended) => lose_signature(ended.signature.as_ref(), out),
            Data::ToolStarted(started) => {
                if let Some(input) = &started.input {
                    let call = (&started.call, &started.name);
                    self.tool_started(call, &started.kind, &started.executor, Some(input), out);
                }
            }
            Data::ToolInput(input) => {
                let call = (&input.call, &input.name);
                self.tool_started(call, &input.kind, &input.executor, input.input.as_ref(), out);
            }
            Data::ToolEnded(ended) => self.tool_ended(ended, out),
            Data::PlanUpdated(plan) => {
                self.todo_calls.list_told(plan.call.as_ref());
                // There is one list, and it is the main agent's.
                if of_subagent {
                    out.lost("todo list of a sub-agent");
                } else {
                    self.todo_list(plan, out);
                }
            }
            Data::Notice(notice) if !self.rests || self.callers_time => self.notice(notice, out),
            Data::SessionStarted(started) => self.session_started(started, out),
            Data::SessionEnded(ended) => session_ended(ended, out),
            Data::Error(error) => self.error(error, out),
            Data::Unparsed(unparsed) => self.unreadable(unparsed, out),
            Data::TurnStarted(_) => {
                self.errors.clear();
                self.rests = false;
            }
            Data::TurnEnded(ended) => {
                self.todo_calls.end_turn(out);
                self.turn_ended(ended, event, out);
            }
            other => unsayable(other, out),
        }
    }
}

/// What the model says.
impl AgentEventEncoder {
    #[inline]
    fn text(&mut self, kind: &BlockKind, text: &Text<'_>, of_subagent: bool, out: &mut Output) {
        // Consumers put the final answer together from the category `message`; a sub-agent's words
        // are no part of it.
        let category = match kind {
            BlockKind::Text if of_subagent => "subagent",
            BlockKind::Text => "message",
            BlockKind::Reasoning => "reasoning",
            _ => return,
        };
        if text.is_empty() {
            return;
        }
        let mut record = self.envelope.record("text", out);
        record.text("text", text).raw("role", "\"assistant\"").string("category", category);
        record.end();
    }

    fn todo_list(&mut self, plan: &PlanUpdated<'_>, out: &mut Output) {
        if let Some(list) = plan.plan.as_ref().or(plan.call.as_ref()) {
            self.list = list.clone().into_owned();
        }
        for item in &plan.items {
            match item.status {
                PlanStatus::Blocked => out.lost("blocked step shown as pending"),
                PlanStatus::Other(_) => out.lost("step with an unknown status"),
                _ if is_blank(&item.text) => out.lost("step without a text"),
                _ => {}
            }
        }
        let sayable = plan.items.iter().filter_map(|item| Some((item, todo_status(item)?)));
        let list = Json::object(|fields| {
            fields.text("todoId", &self.list).objects("items", sayable, |todo, (item, status)| {
                todo.text("text", &item.text).string("status", status);
            });
        });
        if self.list_told.as_ref() == Some(&list) {
            return;
        }
        let mut record = self.envelope.record("todo_list", out);
        record.fields_of(list.get());
        record.end();
        self.list_told = Some(list);
    }

    /// Writes what the system says. A warning has a category of its own, which is no part of the answer.
    fn notice(&mut self, notice: &Notice<'_>, out: &mut Output) {
        let mut record = self.envelope.record("text", out);
        record.text("text", &notice.text).raw("role", "\"system\"");
        if notice.severity != Severity::Info {
            record.raw("category", "\"notice\"");
        }
        record.end();
    }
}

/// Counts what a sub-agent says and does: nothing here tells which one it was.
fn lose_lineage(event: &Event<'_>, out: &mut Output) {
    let begins =
        matches!(event.data, Data::Block(_) | Data::BlockStarted(_) | Data::ToolStarted(_));
    if begins && event.parent.is_some() {
        out.lost("which sub-agent it was");
    }
}

fn lose_block(kind: &BlockKind, out: &mut Output) {
    match kind {
        BlockKind::Text | BlockKind::Reasoning => {}
        BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
        BlockKind::Image => out.lost("picture"),
        BlockKind::Other(_) => out.lost("block of an unknown kind"),
    }
}

fn lose_signature(signature: Option<&Text<'_>>, out: &mut Output) {
    if signature.is_some() {
        out.lost("signature");
    }
}

/// The word for a step's status; `None` for a step that a list cannot have.
fn todo_status<'p>(item: &'p PlanItem<'_>) -> Option<&'p str> {
    match &item.status {
        _ if is_blank(&item.text) => None,
        PlanStatus::Blocked => Some(PlanStatus::Pending.as_str()),
        PlanStatus::Other(_) => None,
        known => Some(known.as_str()),
    }
}

fn is_blank(text: &Text<'_>) -> bool {
    text.to_plain().trim().is_empty()
}

/// Tool calls.
impl AgentEventEncoder {
    fn tool_started(
        &mut self,
        (call, name): (&Text<'_>, &Text<'_>),
        kind: &ToolKind,
        executor: &Executor,
        input: Option<&Json<'_>>,
        out: &mut Output,
    ) {
        if *executor == Executor::Client {
            // Nobody could answer it here, and every `tool.started` must have an end.
            out.lost("tool call for the client");
            return;
        }
        if keeps_the_plan(kind, name) {
            self.todo_calls.made(call);
            return;
        }
        let mut record = self.envelope.record("tool.started", out);
        record.text("toolName", &tool_name(name)).text("toolId", call);
        match input.filter(|input| input.is_object()) {
            Some(input) => record.json("input", input),
            None => record.raw("input", "{}"),
        };
        record.end();
        if input.is_some_and(|input| !input.is_object()) {
            out.lost("tool input that is no object");
        }
    }

    fn tool_ended(&mut self, ended: &ToolEnded<'_>, out: &mut Output) {
        let failed = ended.status != ToolStatus::Completed;
        if ended.executor == Executor::Client {
            return;
        }
        if keeps_the_plan(&ended.kind, &ended.name) {
            self.todo_calls.answered(ended, out);
            return;
        }
        let (output, others) = match &ended.output {
            Some(output) if !output.is_null() => output_text(output),
            _ => (Text::default(), 0),
        };
        let mut record = self.envelope.record("tool.completed", out);
        record.text("toolName", &tool_name(&ended.name)).text("toolId", &ended.call);
        if ended.output.is_some() {
            record.text("output", &output);
        }
        if failed {
            failure(&mut record, ended, &output);
        }
        record.end();
        if !matches!(ended.status, ToolStatus::Completed | ToolStatus::Failed) {
            out.lost("how a call failed (denied, cancelled, abandoned)");
        }
        for _ in 0..others {
            out.lost("tool output that is no text");
        }
        if ended.structured.is_some() {
            out.lost("structured tool output");
        }
    }
}

/// Whether a tool keeps the plan, by its kind or by its name.
fn keeps_the_plan(kind: &ToolKind, name: &Text<'_>) -> bool {
    *kind == ToolKind::Plan || tools::kind_of(name) == ToolKind::Plan
}

/// What went wrong: in the agent's words, by the exit code, or else by how it ended.
fn failure(record: &mut Object<'_>, ended: &ToolEnded<'_>, output: &Text<'_>) {
    match (&ended.error, ended.exit_code) {
        (Some(error), _) => record.text("error", error),
        (None, Some(code)) if code != 0 => record.string("error", &format!("Exit code: {code}")),
        (None, _) if !output.is_empty() => record.text("error", output),
        (None, _) => record.string("error", ended.status.as_str()),
    };
}

/// The name of a tool: what Codex calls a kind of item has the name of the tool that does the same.
fn tool_name<'t>(name: &'t Text<'_>) -> Text<'t> {
    match name.body() {
        "command_execution" => Text::plain("Bash"),
        "file_change" => Text::plain("Write"),
        "web_search" => Text::plain("WebSearch"),
        _ => name.borrowed(),
    }
}

/// Sessions, turns and what goes wrong in them.
impl AgentEventEncoder {
    fn session_started(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        if let Some(agent) = &started.agent {
            // What was recorded in our own events is the stream of another agent.
            if !self.envelope.type_is_given {
                self.envelope.agent_type = literal(wire::agent_type(&agent.to_plain()));
            }
        }
        self.envelope.record("session.started", out).end();
        self.rests = false;
        if started.id.is_some() || started.model.is_some() || started.cwd.is_some() {
            out.lost("session facts");
        }
    }

    fn error(&mut self, error: &Error<'_>, out: &mut Output) {
        let code = code(&error.class);
        self.problem(&error.message, code.as_ref().or(error.code.as_ref()), out);
    }

    fn unreadable(&mut self, unparsed: &Unparsed<'_>, out: &mut Output) {
        let message = Text::from(format!("Failed to parse JSONL: {}", unparsed.message));
        self.problem(&message, Some(&Text::plain("JSONL_PARSE_ERROR")), out);
        if unparsed.text.is_some() {
            out.lost("text of an unreadable line");
        }
    }

    fn problem(&mut self, message: &Text<'_>, code: Option<&Text<'_>>, out: &mut Output) {
        let mut record = self.envelope.record("error", out);
        record.text("error", message).text_if("code", code);
        record.end();
        if self.errors.len() < ERRORS_KEPT {
            self.errors.push(message.clone().into_owned());
        }
    }

    fn turn_ended(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        let reason = match &ended.outcome {
            Outcome::Completed => "done",
            Outcome::Cancelled => "cancelled",
            Outcome::TimedOut => "timeout",
            _ => "error",
        };
        if reason == "error" {
            self.cause(ended, event, out);
        } else if ended.cause.is_some() {
            out.lost("why the turn was stopped");
        }
        let mut record = self.envelope.record("turn.completed", out);
        record.string("finishReason", reason);
        record.end();
        self.errors.clear();
        self.rests = true;
        lose_counts(ended, out);
    }

    /// Says why a turn failed, unless that was said before.
    fn cause(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        let told = |cause: &Text<'_>| self.errors.contains(cause);
        let cause = match &ended.cause {
            Some(cause) if told(cause) => return,
            Some(cause) => cause.borrowed(),
            // Its call was not told: nobody here could answer it.
            None if ended.outcome == Outcome::WaitingForClient => {
                Text::plain("the agent waits for a tool of the client")
            }
            None => Text::plain("the turn failed, and the agent does not say why"),
        };
        self.problem(&cause, code_of(ended, event).as_ref(), out);
    }
}

/// What kind of failure ended a turn, as far as its end says so.
fn code_of(ended: &TurnEnded<'_>, event: &Event<'_>) -> Option<Text<'static>> {
    let class = match (&ended.outcome, &ended.class, ended.http_status) {
        _ if event.synthetic == Some(Reason::ProcessEnded) => {
            return Some(Text::plain("PROCESS_EXIT"));
        }
        (Outcome::LimitReached, ..) => ErrorClass::Limit,
        (Outcome::Refused, ..) => ErrorClass::Refusal,
        (_, Some(class), _) => class.clone(),
        (_, None, Some(status)) => ErrorClass::of_http_status(status),
        (_, None, None) => return None,
    };
    code(&class)
}

/// The code for a class of errors.
fn code(class: &ErrorClass) -> Option<Text<'static>> {
    let known = *class != ErrorClass::Unspecified;
    known.then(|| Text::from(class.as_str().to_ascii_uppercase()))
}

fn lose_counts(ended: &TurnEnded<'_>, out: &mut Output) {
    let counts = [
        (ended.usage.is_some(), "usage"),
        (ended.cost.is_some(), "cost"),
        (ended.duration_ms.is_some(), "duration"),
    ];
    for (_, what) in counts.into_iter().filter(|(known, _)| *known) {
        out.lost(what);
    }
}

fn session_ended(ended: &SessionEnded<'_>, out: &mut Output) {
    let failed = ended.exit_code.is_some_and(|code| code != 0);
    if failed || ended.signal.is_some() || ended.stderr.is_some() {
        out.lost("how the process ended");
    }
}

/// Counts what has no record; what only frames other events has nothing to lose.
fn unsayable(data: &Data<'_>, out: &mut Output) {
    let what = match data {
        Data::MessageStarted(_) | Data::MessageEnded(_) | Data::ToolInputDelta(_) => return,
        // The call has told it.
        Data::FilesChanged(files) if files.call.is_some() => return,
        Data::FilesChanged(_) => "file change",
        Data::SessionUpdated(_) => "session facts",
        Data::UserMessage(_) => "user message",
        Data::ToolProgress(_) => "tool progress",
        Data::PermissionRequested(_) => "permission request",
        Data::PermissionResolved(_) => "permission decision",
        Data::QuestionAsked(_) => "question",
        Data::QuestionAnswered(_) => "answer to a question",
        Data::Usage(_) => "usage within a turn",
        Data::Limit(_) => "limit",
        Data::Retry(_) => "retry",
        Data::Notice(_) => "notice",
        Data::Interrupted(_) => "interruption",
        Data::Compacted(_) => "compaction",
        Data::Artifact(_) => "artifact",
        Data::SubagentStarted(_) => "sub-agent start",
        Data::SubagentEnded(_) => "sub-agent end",
        Data::Native(_) => "record of the agent's own",
        Data::Unknown(_) => "unknown record",
        Data::Log(_) => "log line",
        other => other.kind(),
    };
    out.lost(what);
}
