//! Writes the NDJSON of the Giselle API.

use super::{EXECUTE_TOOL, SNAPSHOT_TOOL};
use crate::dialect::content::answer_text;
use crate::dialect::{EncodeOptions, Encoder, Output};
use crate::event::{
    Artifact, BlockKind, Data, Event, Executor, Outcome, PlanUpdated, Relay, SessionStarted,
    SessionUpdated, Severity, ToolEnded, ToolStatus, TurnEnded, Usage,
};
use crate::json::read;
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

/// The writer of `giselle`.
#[derive(Debug, Default)]
pub struct GiselleEncoder {
    plans: u64,
}

impl Encoder for GiselleEncoder {
    #[inline]
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        let time = event.time.as_ref();
        match &event.data {
            Data::BlockDelta(delta) => match delta.kind {
                BlockKind::Text => say(&delta.text, true, time, out),
                _ => out.lost("reasoning"),
            },
            Data::Block(block) => match block.kind {
                BlockKind::Text => say(&block.text, false, time, out),
                BlockKind::Image => out.lost("pictures"),
                _ => out.lost("reasoning"),
            },
            Data::ToolStarted(started) => {
                if let Some(input) = &started.input {
                    let call = (&started.call, &started.name, &started.executor);
                    tool_use(call, Some(input), time, out);
                }
            }
            Data::ToolInput(input) => {
                let call = (&input.call, &input.name, &input.executor);
                tool_use(call, input.input.as_ref(), time, out);
            }
            Data::ToolEnded(ended) => tool_result(ended, time, out),
            Data::SessionStarted(started) => init(started, time, out),
            Data::SessionUpdated(update) => updated(update, time, out),
            Data::TurnEnded(ended) => result(ended, event.source.synthetic.is_some(), time, out),
            Data::UserMessage(message) if !message.injected && event.parent.is_none() => {
                let mut record = out.record("message");
                stamp(&mut record, time);
                record.raw("role", "\"user\"").text("content", &message.text);
                record.end();
            }
            Data::PlanUpdated(plan) => self.plan(plan, time, out),
            Data::Error(error) => stderr(&error.message, out),
            Data::Retry(retry) => match &retry.message {
                Some(message) => stderr(message, out),
                None => out.lost("retries"),
            },
            Data::Log(log) => stderr(&log.text, out),
            Data::Notice(notice) => problem(&notice.severity, &notice.text, time, out),
            Data::Artifact(made) => artifact(made, out),
            other => lose(other, out),
        }
    }
}

impl GiselleEncoder {
    /// A writer as the caller wants it.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self::default()
    }

    /// A plan that no tool call wrote is told by the tool that Gemini has for it.
    fn plan(&mut self, plan: &PlanUpdated<'_>, time: Option<&Json<'_>>, out: &mut Output) {
        if plan.call.is_some() {
            return;
        }
        self.plans += 1;
        let call = Text::from(format!("plan-{}", self.plans));
        let input = Json::object(|fields| {
            fields.objects("todos", &plan.items, |todo, item| {
                todo.text("description", &item.text).string("status", item.status.as_str());
            });
        });
        let name = Text::plain("write_todos");
        tool_use((&call, &name, &Executor::Agent), Some(&input), time, out);
        tool_result(&ToolEnded { call, ..ToolEnded::default() }, time, out);
    }
}

/// The agent's own time, where it gives one in the form that this protocol has.
fn stamp(record: &mut Object<'_>, time: Option<&Json<'_>>) {
    if let Some(time) = time.filter(|time| time.as_text().is_some()) {
        record.json("timestamp", time);
    }
}

fn say(text: &Text<'_>, delta: bool, time: Option<&Json<'_>>, out: &mut Output) {
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

fn updated(update: &SessionUpdated<'_>, time: Option<&Json<'_>>, out: &mut Output) {
    if update.id.is_some() || update.model.is_some() {
        let mut record = out.record("init");
        stamp(&mut record, time);
        record.text_if("session_id", update.id.as_ref()).text_if("modelId", update.model.as_ref());
        record.end();
    }
    if let Some(sandbox) = &update.sandbox {
        let mut record = out.record("sandbox");
        record.text("sandbox_id", sandbox);
        record.end();
    }
    if let Some(relay) = &update.relay {
        relay_session(relay, out);
    }
    if let Some(snapshot) = &update.snapshot {
        let mut record = out.record("snapshot");
        record.text("snapshot_id", snapshot);
        record.end();
    }
    if update.cwd.is_some() || update.tools.is_some() || update.permission_mode.is_some() {
        out.lost("session details (folder, tools, permission mode)");
    }
}

fn relay_session(relay: &Relay<'_>, out: &mut Output) {
    let mut record = out.record("relay.session");
    record.text_if("relayUrl", relay.url.as_ref());
    record.text_if("sessionId", relay.session.as_ref());
    record.text_if("token", relay.token.as_ref().map(|token| token.reveal()));
    record.json_if("expiresAt", relay.expires_at.as_ref());
    record.end();
}

fn tool_use(
    (call, name, executor): (&Text<'_>, &Text<'_>, &Executor),
    input: Option<&Json<'_>>,
    time: Option<&Json<'_>>,
    out: &mut Output,
) {
    if *executor == Executor::Client && (*name == SNAPSHOT_TOOL || *name == EXECUTE_TOOL) {
        request(call, name, input, out);
        return;
    }
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
        record.json_if("instruction", input.instruction.as_ref());
        record.json_if("document", input.document.as_ref());
    } else {
        record.json_if("actions", input.actions.as_ref());
        record.json_if("fields", input.fields.as_ref());
    }
    record.end();
}

fn tool_result(ended: &ToolEnded<'_>, time: Option<&Json<'_>>, out: &mut Output) {
    let failed = ended.status != ToolStatus::Completed;
    let (text, others) = answer_text(ended);
    if others > 0 {
        out.lost("tool output that is no text");
    }
    if ended.exit_code.is_some_and(|code| code != 0) {
        out.lost("exit codes");
    }
    let mut record = out.record("tool_result");
    stamp(&mut record, time);
    record.text("tool_id", &ended.call);
    record.string("status", if failed { "error" } else { "success" });
    if ended.output.is_some() {
        record.text("output", &text);
    }
    if failed {
        record.object("error", |error| {
            error.string("type", ended.status.as_str());
            error.text("message", ended.error.as_ref().unwrap_or(&text));
        });
    }
    record.end();
}

fn result(ended: &TurnEnded<'_>, added: bool, time: Option<&Json<'_>>, out: &mut Output) {
    // A turn that rests was told by the request; one that ends with the stream ends with the stream.
    let told = ended.outcome == Outcome::WaitingForClient;
    if told || (added && ended.outcome == Outcome::Completed) {
        return;
    }
    let completed = ended.outcome == Outcome::Completed;
    let mut record = out.record("result");
    stamp(&mut record, time);
    record.string("status", if completed { "success" } else { "error" });
    if !completed {
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
    if ended.usage.is_some() || ended.duration_ms.is_some() {
        record.object("stats", |stats| {
            if let Some(usage) = &ended.usage {
                counts(stats, usage);
            }
            stats.number_if("duration_ms", ended.duration_ms);
        });
    }
    record.end();
    if ended.cost.is_some() {
        out.lost("cost");
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

fn lose(data: &Data<'_>, out: &mut Output) {
    match data {
        Data::UserMessage(_) => out.lost("messages in the user's name"),
        Data::ToolProgress(_) => out.lost("tool progress"),
        Data::PermissionRequested(_) | Data::PermissionResolved(_) => out.lost("permissions"),
        Data::QuestionAsked(_) | Data::QuestionAnswered(_) => out.lost("questions"),
        Data::SubagentStarted(_) | Data::SubagentEnded(_) => out.lost("sub-agents"),
        Data::Compacted(_) => out.lost("compaction"),
        Data::Limit(_) => out.lost("limits"),
        Data::Interrupted(_) => out.lost("interruptions"),
        Data::FilesChanged(changed) if changed.call.is_none() => out.lost("file changes"),
        Data::Native(native) => out.lost(&format!("records of its own: {}", native.name)),
        Data::Unknown(unknown) => out.lost(&format!("unknown records: {}", unknown.name)),
        Data::Unparsed(_) => out.lost("unreadable lines"),
        _ => {}
    }
}
