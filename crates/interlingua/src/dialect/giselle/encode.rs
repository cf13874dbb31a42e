//! Encodes the NDJSON of the Giselle API.

use super::{EXECUTE_TOOL, SNAPSHOT_TOOL};
use crate::dialect::content::output_text;
use crate::dialect::content::retry_in_words;
use crate::dialect::{EncodeOptions, Encoder, Identity, Output};
use crate::event::{
    Artifact, BlockKind, Data, Event, Executor, Outcome, PlanUpdated, Reason, Relay,
    SessionStarted, SessionUpdated, Severity, ToolEnded, ToolStatus, TurnEnded, Usage,
};
use crate::json::read;
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

/// The encoder of `giselle`.
#[derive(Debug, Clone, Default)]
pub struct GiselleEncoder {
    identity: Identity,
    turn: Turn,
    /// The block of the last delta, to which a consumer would add the next one.
    open_text: Option<u64>,
    /// Calls that the client must answer, and for which this protocol has no request.
    client_calls: Vec<Text<'static>>,
    /// The snapshot of the current run, which is written as its last record.
    snapshot: Option<Text<'static>>,
}

/// The state of the current turn.
#[derive(Debug, Clone, Default)]
struct Turn {
    /// The number of calls.
    calls: u64,
    /// The number of calls that are not answered yet.
    open: u64,
    /// A request to the client was written, which implies that the turn is suspended.
    requested: bool,
    /// Requests to the client that are held back until all open calls are answered, since a turn
    /// cannot be suspended before.
    held: Vec<u8>,
}

impl Encoder for GiselleEncoder {
    #[inline]
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.identity.follow(out);
        let time = event.time.as_ref();
        let of_subagent = event.parent.is_some();
        match &event.data {
            Data::BlockDelta(delta) => {
                if delta.kind == BlockKind::Text && !of_subagent {
                    self.delta(delta.block, &delta.text, time, out);
                }
            }
            Data::BlockStarted(block) => count_block(&block.kind, of_subagent, out),
            Data::Block(block) => {
                count_block(&block.kind, of_subagent, out);
                if block.kind == BlockKind::Text && !of_subagent && !block.text.is_empty() {
                    self.open_text = None;
                    write_message(&block.text, false, time, out);
                }
            }
            Data::ToolStarted(started) => {
                if of_subagent {
                    out.lost("which sub-agent called a tool");
                }
                if let Some(input) = &started.input {
                    let call = (&started.call, &started.name, &started.executor);
                    self.call(call, Some(input), time, out);
                }
            }
            Data::ToolInput(input) => {
                let call = (&input.call, &input.name, &input.executor);
                self.call(call, input.input.as_ref(), time, out);
            }
            Data::ToolEnded(ended) => self.answer(ended, time, out),
            Data::SessionStarted(started) => init(started, time, out),
            Data::SessionUpdated(update) => self.updated(update, time, out),
            Data::TurnEnded(ended) => {
                self.ended(ended, event.synthetic.is_some(), time, out);
            }
            Data::UserMessage(message) if !message.injected && !of_subagent => {
                let mut record = out.record("message");
                stamp(&mut record, time);
                record.raw("role", "\"user\"").text("content", &message.text);
                record.end();
            }
            // A rejected plan has no record, so it needs no correction.
            Data::PlanUpdated(_) if event.synthetic == Some(Reason::Refused) => {}
            Data::PlanUpdated(plan) => self.plan(plan, time, out),
            Data::Error(error) => stderr(&error.message, out),
            Data::Retry(retry) => match &retry.message {
                Some(message) => stderr(message, out),
                None => stderr(&Text::from(retry_in_words(retry)), out),
            },
            Data::Log(log) => stderr(&log.text, out),
            Data::Notice(notice) => problem(&notice.severity, &notice.text, time, out),
            Data::Artifact(made) => {
                self.open_text = None;
                artifact(made, out);
            }
            other => count_losses(other, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if !out.is_passing() {
            self.end_run(out);
        }
    }

    fn suspends_turns(&self) -> bool {
        true
    }
}

impl GiselleEncoder {
    /// An encoder with the caller's options.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self::default()
    }

    /// Writes the next delta of a block. Deltas have no ids, so an empty message ends the block
    /// before another one begins.
    #[inline]
    fn delta(&mut self, block: u64, text: &Text<'_>, time: Option<&Json<'_>>, out: &mut Output) {
        if text.is_empty() {
            return;
        }
        if self.open_text.is_some_and(|open| open != block) {
            write_message(&Text::default(), false, time, out);
        }
        self.open_text = Some(block);
        write_message(text, true, time, out);
    }

    /// Writes a plan that no call wrote as a call of Gemini's tool for plans.
    fn plan(&mut self, plan: &PlanUpdated<'_>, time: Option<&Json<'_>>, out: &mut Output) {
        if plan.call.is_some() {
            return;
        }
        self.open_text = None;
        let call = Text::from(self.identity.named("plan-"));
        let input = Json::object(|fields| {
            fields.objects("todos", &plan.items, |todo, item| {
                todo.text("description", &item.text).string("status", item.status.as_str());
            });
        });
        tool_use(&call, &Text::plain("write_todos"), Some(&input), time, out);
        tool_result(&ToolEnded { call, ..ToolEnded::default() }, time, out);
    }

    fn call(
        &mut self,
        (call, name, executor): (&Text<'_>, &Text<'_>, &Executor),
        input: Option<&Json<'_>>,
        time: Option<&Json<'_>>,
        out: &mut Output,
    ) {
        self.open_text = None;
        if is_request(name, executor) {
            self.turn.requested = true;
            let length = out.bytes().len();
            request(call, name, input, out);
            if self.turn.open > 0 && !out.is_passing() {
                self.turn.held.extend(out.bytes().drain(length..));
            }
            return;
        }
        self.turn.calls += 1;
        self.turn.open += 1;
        if *executor == Executor::Client {
            self.client_calls.push(call.clone().into_owned());
        }
        tool_use(call, name, input, time, out);
    }

    /// Writes an answer. Answers of the client are not part of the stream.
    fn answer(&mut self, ended: &ToolEnded<'_>, time: Option<&Json<'_>>, out: &mut Output) {
        if ended.executor == Executor::Client {
            let left = self.client_calls.iter().position(|call| *call == ended.call);
            match left {
                Some(at) => drop(self.client_calls.swap_remove(at)),
                None => {
                    if ended.status != ToolStatus::Abandoned {
                        out.lost("answers of the client");
                    }
                    return;
                }
            }
        }
        tool_result(ended, time, out);
        self.turn.open = self.turn.open.saturating_sub(1);
        if self.turn.open == 0 {
            out.bytes().append(&mut self.turn.held);
        }
    }

    /// Ends the calls that a turn leaves to the client, since the client answers them elsewhere.
    fn close_calls(&mut self, out: &mut Output) {
        for call in self.client_calls.drain(..) {
            let ended = ToolEnded {
                call,
                status: ToolStatus::Abandoned,
                error: Some(Text::plain("the client has to run this tool")),
                ..ToolEnded::default()
            };
            tool_result(&ended, None, out);
        }
    }

    fn updated(&mut self, update: &SessionUpdated<'_>, time: Option<&Json<'_>>, out: &mut Output) {
        if update.relay.is_some() || update.sandbox.is_some() {
            self.end_run(out);
        }
        if let Some(relay) = &update.relay {
            relay_session(relay, out);
        }
        if let Some(sandbox) = &update.sandbox {
            let mut record = out.record("sandbox");
            record.text("sandbox_id", sandbox);
            record.end();
        }
        if update.id.is_some() || update.model.is_some() {
            let mut record = out.record("init");
            stamp(&mut record, time);
            record.text_if("session_id", update.id.as_ref());
            record.text_if("modelId", update.model.as_ref());
            record.end();
        }
        if let Some(snapshot) = &update.snapshot
            && self.snapshot.replace(snapshot.clone().into_owned()).is_some()
        {
            out.lost("earlier snapshots");
        }
        if update.cwd.is_some() || update.tools.is_some() || update.permission_mode.is_some() {
            out.lost("session details (folder, tools, permission mode)");
        }
    }

    /// Ends the run, since another one begins or the stream ends.
    fn end_run(&mut self, out: &mut Output) {
        if let Some(snapshot) = self.snapshot.take() {
            let mut record = out.record("snapshot");
            record.text("snapshot_id", &snapshot);
            record.end();
        }
    }

    fn ended(
        &mut self,
        ended: &TurnEnded<'_>,
        added: bool,
        time: Option<&Json<'_>>,
        out: &mut Output,
    ) {
        self.open_text = None;
        let turn = std::mem::take(&mut self.turn);
        let suspended = ended.outcome == Outcome::WaitingForClient;
        if suspended {
            self.close_calls(out);
        }
        out.bytes().extend_from_slice(&turn.held);
        // The request implies that the turn is suspended. If records are passed through, the end of
        // the stream is the end of the turn; otherwise the stream may be empty without a `result`.
        let ends_with_stream = out.is_passing() && added && ended.outcome == Outcome::Completed;
        if suspended && turn.requested {
            if ended.usage.is_some() {
                out.lost("usage of a suspended turn");
            }
        } else if !ends_with_stream {
            result(ended, turn.calls, time, out);
        }
    }
}

/// Whether this protocol has a request for the tool.
fn is_request(name: &Text<'_>, executor: &Executor) -> bool {
    *executor == Executor::Client && (*name == SNAPSHOT_TOOL || *name == EXECUTE_TOOL)
}

/// Counts a block that is not written.
fn count_block(kind: &BlockKind, of_subagent: bool, out: &mut Output) {
    match kind {
        BlockKind::Text if of_subagent => out.lost("text of sub-agents"),
        BlockKind::Text => {}
        BlockKind::Image => out.lost("pictures"),
        _ => out.lost("reasoning"),
    }
}

/// Writes the agent's time, if it is in the form of this protocol.
fn stamp(record: &mut Object<'_>, time: Option<&Json<'_>>) {
    if let Some(time) = time.filter(|time| time.as_text().is_some()) {
        record.json("timestamp", time);
    }
}

fn write_message(text: &Text<'_>, delta: bool, time: Option<&Json<'_>>, out: &mut Output) {
    let mut record = out.record("message");
    stamp(&mut record, time);
    record.raw("role", "\"assistant\"").text("content", text).flag("delta", delta);
    record.end();
}

fn init(started: &SessionStarted<'_>, time: Option<&Json<'_>>, out: &mut Output) {
    if started.id.is_none() && started.model.is_none() {
        return;
    }
    let mut record = out.record("init");
    stamp(&mut record, time);
    record.text_if("session_id", started.id.as_ref()).text_if("modelId", started.model.as_ref());
    record.end();
    if started.cwd.is_some() || started.tools.is_some() {
        out.lost("session details (folder, tools, permission mode)");
    }
}

/// Writes the address of the relay, which is useless unless it is complete.
fn relay_session(relay: &Relay<'_>, out: &mut Output) {
    let (Some(url), Some(session), Some(token)) =
        (&relay.url, &relay.session, relay.token.reveal())
    else {
        out.lost("relay without its token");
        return;
    };
    let mut record = out.record("relay.session");
    record.text("relayUrl", url).text("sessionId", session).text("token", token);
    record.json_if("expiresAt", relay.expires_at.as_ref());
    record.end();
}

fn tool_use(
    call: &Text<'_>,
    name: &Text<'_>,
    input: Option<&Json<'_>>,
    time: Option<&Json<'_>>,
    out: &mut Output,
) {
    let mut record = out.record("tool_use");
    stamp(&mut record, time);
    record.text("tool_name", name).text("tool_id", call);
    match input.filter(|input| input.is_object()) {
        Some(input) => record.json("parameters", input),
        None => record.raw("parameters", "{}"),
    };
    record.end();
}

crate::json::record! {
    /// The input of the tools that a client runs.
    struct ClientInput<'a> {
        instruction: json "instruction",
        document: json "document",
        actions: json "actions",
        fields: json "fields",
    }
}

/// Asks the client to run one of its tools.
fn request(call: &Text<'_>, name: &Text<'_>, input: Option<&Json<'_>>, out: &mut Output) {
    let input = input.and_then(read::record_of::<ClientInput<'_>>).unwrap_or_default();
    let snapshot = *name == SNAPSHOT_TOOL;
    let mut record = out.record(if snapshot { "snapshot_request" } else { "execute_request" });
    record.text("requestId", call);
    if snapshot {
        // Clients reject a request without an instruction.
        let is_text = |it: &&Json<'_>| it.as_text().is_some_and(|text| !text.is_empty());
        match input.instruction.as_ref().filter(is_text) {
            Some(instruction) => record.json("instruction", instruction),
            None => record.raw("instruction", "\"snapshot\""),
        };
        record.json_if("document", input.document.as_ref());
    } else {
        record.json_if("actions", input.actions.as_ref());
        record.json_if("fields", input.fields.as_ref());
    }
    record.end();
}

fn tool_result(ended: &ToolEnded<'_>, time: Option<&Json<'_>>, out: &mut Output) {
    let failed = ended.status != ToolStatus::Completed;
    let code = ended.exit_code.filter(|code| *code != 0);
    let output = ended.output.as_ref().map(output_text);
    if output.as_ref().is_some_and(|(_, others)| *others > 0) {
        out.lost("tool outputs that are not text");
    }
    if code.is_some() && (!failed || ended.error.is_some()) {
        out.lost("exit codes");
    }
    let mut record = out.record("tool_result");
    stamp(&mut record, time);
    record.text("tool_id", &ended.call);
    record.string("status", if failed { "error" } else { "success" });
    if let Some((text, _)) = &output {
        record.text("output", text);
    }
    if failed {
        record.object("error", |error| {
            error.string("type", ended.status.as_str());
            // The message does not repeat the output.
            let code = code.map(|code| Text::from(format!("Exit code {code}")));
            error.text_if("message", ended.error.as_ref().or(code.as_ref()));
        });
    }
    record.end();
}

fn result(ended: &TurnEnded<'_>, calls: u64, time: Option<&Json<'_>>, out: &mut Output) {
    let fine = matches!(ended.outcome, Outcome::Completed | Outcome::WaitingForClient);
    let mut record = out.record("result");
    stamp(&mut record, time);
    record.string("status", if fine { "success" } else { "error" });
    if !fine {
        record.object("error", |error| {
            match &ended.reason {
                Some(reason) => error.text("type", reason),
                None => error.string("type", ended.outcome.as_str()),
            };
            match &ended.cause {
                Some(cause) => error.text("message", cause),
                None => error.string("message", ended.outcome.as_str()),
            };
        });
    }
    let counted = |usage: &&Usage<'_>| usage.model.is_some() && usage.all() > 0;
    let by_model: Vec<&Usage<'_>> = ended.by_model.iter().filter(counted).collect();
    if ended.usage.is_some() || ended.duration_ms.is_some() || !by_model.is_empty() {
        record.object("stats", |stats| {
            if let Some(usage) = &ended.usage {
                counts(stats, usage);
            }
            stats.number_if("duration_ms", ended.duration_ms);
            stats.number("tool_calls", calls);
            if !by_model.is_empty() {
                stats.object("models", |models| counts_by_model(models, &by_model));
            }
        });
    }
    record.end();
    if ended.cost.is_some() {
        out.lost("cost");
    }
}

fn counts_by_model(models: &mut Object<'_>, by_model: &[&Usage<'_>]) {
    for usage in by_model {
        if let Some(name) = &usage.model {
            let mut model = Object::open(models.escaped_name(&name.to_plain()));
            counts(&mut model, usage);
            model.close();
        }
    }
}

fn counts(stats: &mut Object<'_>, usage: &Usage<'_>) {
    let input = usage.input_total();
    let sum = match (input, usage.output) {
        (Some(input), Some(output)) => Some(input.saturating_add(output)),
        _ => None,
    };
    stats.number_if("total_tokens", usage.total.or(sum));
    stats.number_if("input_tokens", input);
    stats.number_if("output_tokens", usage.output);
    stats.number_if("cached", usage.cache_read);
    stats.number_if("input", usage.input);
}

fn stderr(text: &Text<'_>, out: &mut Output) {
    let mut record = out.record("stderr");
    record.text("content", text);
    record.end();
}

fn problem(severity: &Severity, text: &Text<'_>, time: Option<&Json<'_>>, out: &mut Output) {
    let mut record = out.record("error");
    stamp(&mut record, time);
    let word = if *severity == Severity::Error { "error" } else { "warning" };
    write::string(record.name("severity"), word);
    record.text("message", text);
    record.end();
}

fn artifact(made: &Artifact<'_>, out: &mut Output) {
    let mut record = out.record("artifact");
    record.text("path", &made.path).number_if("size_bytes", made.size);
    record.text_if("mime_type", made.media_type.as_ref()).text_if("label", made.label.as_ref());
    record.end();
}

fn count_losses(data: &Data<'_>, out: &mut Output) {
    match data {
        Data::UserMessage(_) => out.lost("messages in the user's name"),
        Data::ToolProgress(_) => out.lost("tool progress"),
        Data::PermissionRequested(_) | Data::PermissionResolved(_) => out.lost("permissions"),
        Data::QuestionAsked(_) | Data::QuestionAnswered(_) => out.lost("questions"),
        Data::SubagentStarted(_) | Data::SubagentEnded(_) => out.lost("sub-agents"),
        Data::Compacted(_) => out.lost("compactions"),
        Data::Limit(_) => out.lost("limits"),
        Data::Interrupted(_) => out.lost("interruptions"),
        Data::FilesChanged(changed) if changed.call.is_none() => out.lost("file changes"),
        Data::Native(native) => out.lost(&format!("records of its own: {}", native.name)),
        Data::Unknown(unknown) => out.lost(&format!("unknown records: {}", unknown.name)),
        Data::Unparsed(_) => out.lost("unreadable lines"),
        _ => {}
    }
}
