//! Encodes `AgentEvent` streams.

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

/// The number of errors of a turn that are remembered, so that its end does not repeat them.
const ERRORS_KEPT: usize = 100;

/// The encoder of `agent-event`.
#[derive(Debug, Clone)]
pub struct AgentEventEncoder {
    envelope: Envelope,
    /// The id of the last list, and its fields as they were written.
    list: Text<'static>,
    written_list: Option<Json<'static>>,
    todo_calls: TodoCalls,
    /// The errors that were written in the current turn.
    errors: Vec<Text<'static>>,
    /// No turn is open, so the consumer may have stopped reading.
    between_turns: bool,
    /// Records have the caller's time, and notices between turns are written too.
    callers_time: bool,
}

/// The fields that every record has. Texts are stored as JSON literals.
#[derive(Debug, Clone)]
struct Envelope {
    identity: Identity,
    agent_id: String,
    agent_type: String,
    /// The caller chose the type of the agent.
    type_is_given: bool,
    team: String,
    /// The time of the last event, for events without one.
    time: u64,
}

impl AgentEventEncoder {
    /// Writes the caller's time in every record, and also notices between two turns.
    #[must_use]
    pub fn at_the_callers_time(mut self) -> Self {
        self.callers_time = true;
        self
    }

    /// An encoder with the caller's names for the agent and its team.
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
        let list = Text::plain("plan");
        Self {
            envelope,
            list,
            written_list: None,
            todo_calls: TodoCalls::default(),
            errors: Vec::new(),
            between_turns: true,
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
    /// Opens a record and writes its envelope.
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

    /// Sets the time of the next records: the agent's, else the caller's, else the last one.
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
                self.todo_calls.list_written(plan.call.as_ref());
                // The dialect has one list, that of the main agent.
                if of_subagent {
                    out.lost("todo lists of sub-agents");
                } else {
                    self.todo_list(plan, out);
                }
            }
            Data::Notice(notice) if !self.between_turns || self.callers_time => {
                self.notice(notice, out)
            }
            Data::SessionStarted(started) => self.session_started(started, out),
            Data::SessionEnded(ended) => session_ended(ended, out),
            Data::Error(error) => self.error(error, out),
            Data::Unparsed(unparsed) => self.unparsed(unparsed, out),
            Data::TurnStarted(_) => {
                self.errors.clear();
                self.between_turns = false;
            }
            Data::TurnEnded(ended) => {
                self.todo_calls.end_turn(out);
                self.turn_ended(ended, event, out);
            }
            other => count_losses(other, out),
        }
    }
}

/// Text, plans and notices.
impl AgentEventEncoder {
    #[inline]
    fn text(&mut self, kind: &BlockKind, text: &Text<'_>, of_subagent: bool, out: &mut Output) {
        // Consumers join the final answer from texts with the category `message`, to which the text
        // of a sub-agent does not belong.
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
                PlanStatus::Blocked => out.lost("blocked steps shown as pending"),
                PlanStatus::Other(_) => out.lost("steps with an unknown status"),
                _ if is_blank(&item.text) => out.lost("steps without a text"),
                _ => {}
            }
        }
        let items = plan.items.iter().filter_map(|item| Some((item, todo_status(item)?)));
        let list = Json::object(|fields| {
            fields.text("todoId", &self.list).objects("items", items, |todo, (item, status)| {
                todo.text("text", &item.text).string("status", status);
            });
        });
        if self.written_list.as_ref() == Some(&list) {
            return;
        }
        let mut record = self.envelope.record("todo_list", out);
        record.fields_of(list.get());
        record.end();
        self.written_list = Some(list);
    }

    /// Writes a notice. A warning or an error has a category of its own, so that it is not taken
    /// for a part of the answer.
    fn notice(&mut self, notice: &Notice<'_>, out: &mut Output) {
        let mut record = self.envelope.record("text", out);
        record.text("text", &notice.text).raw("role", "\"system\"");
        if notice.severity != Severity::Info {
            record.raw("category", "\"notice\"");
        }
        record.end();
    }
}

/// Counts the messages and calls of sub-agents, since records do not state which agent wrote them.
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
        BlockKind::Image => out.lost("pictures"),
        BlockKind::Other(_) => out.lost("blocks of an unknown kind"),
    }
}

fn lose_signature(signature: Option<&Text<'_>>, out: &mut Output) {
    if signature.is_some() {
        out.lost("signatures");
    }
}

/// The word for the status of a step, or `None` for a step that cannot be in a list.
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
            // The consumer cannot answer it, and every `tool.started` must have an end.
            out.lost("tool calls for the client");
            return;
        }
        if keeps_the_plan(kind, name) {
            self.todo_calls.started(call);
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
            out.lost("tool inputs that are not objects");
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
            out.lost("tool outputs that are not text");
        }
        if ended.structured.is_some() {
            out.lost("structured tool outputs");
        }
    }
}

/// Whether a tool keeps the plan, according to its kind or its name.
fn keeps_the_plan(kind: &ToolKind, name: &Text<'_>) -> bool {
    *kind == ToolKind::Plan || tools::kind_of(name) == ToolKind::Plan
}

/// Writes why a call failed: the agent's message, else the exit code, the output or the status.
fn failure(record: &mut Object<'_>, ended: &ToolEnded<'_>, output: &Text<'_>) {
    match (&ended.error, ended.exit_code) {
        (Some(error), _) => record.text("error", error),
        (None, Some(code)) if code != 0 => record.string("error", &format!("Exit code: {code}")),
        (None, _) if !output.is_empty() => record.text("error", output),
        (None, _) => record.string("error", ended.status.as_str()),
    };
}

/// The name of a tool. Kinds of Codex items get the names of the equivalent tools.
fn tool_name<'t>(name: &'t Text<'_>) -> Text<'t> {
    match name.body() {
        "command_execution" => Text::plain("Bash"),
        "file_change" => Text::plain("Write"),
        "web_search" => Text::plain("WebSearch"),
        _ => name.borrowed(),
    }
}

/// Sessions, turns and errors.
impl AgentEventEncoder {
    fn session_started(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        if let Some(agent) = &started.agent
            && !self.envelope.type_is_given
        {
            self.envelope.agent_type = literal(wire::agent_type(&agent.to_plain()));
        }
        self.envelope.record("session.started", out).end();
        self.between_turns = false;
        if started.id.is_some() || started.model.is_some() || started.cwd.is_some() {
            out.lost("session facts");
        }
    }

    fn error(&mut self, error: &Error<'_>, out: &mut Output) {
        let code = code(&error.class);
        self.problem(&error.message, code.as_ref().or(error.code.as_ref()), out);
    }

    fn unparsed(&mut self, unparsed: &Unparsed<'_>, out: &mut Output) {
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
        self.between_turns = true;
        lose_counts(ended, out);
    }

    /// Writes why a turn failed, unless an error stated it before.
    fn cause(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        let cause = match &ended.cause {
            Some(cause) if self.errors.contains(cause) => return,
            Some(cause) => cause.borrowed(),
            // The call for the client was not written, since the consumer cannot answer it.
            None if ended.outcome == Outcome::WaitingForClient => {
                Text::plain("the agent waits for a tool of the client")
            }
            None => Text::plain("the turn failed, and the agent reported no reason"),
        };
        self.problem(&cause, code_of(ended, event).as_ref(), out);
    }
}

/// The code of the failure that ended a turn, if the end of the turn states its class.
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

/// Counts events that have no record. Events that only delimit others lose nothing.
fn count_losses(data: &Data<'_>, out: &mut Output) {
    let what = match data {
        Data::MessageStarted(_) | Data::MessageEnded(_) | Data::ToolInputDelta(_) => return,
        // The call contains the change.
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
