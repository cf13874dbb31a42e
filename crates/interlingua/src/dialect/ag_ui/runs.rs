//! Encodes the bounds of a run, the facts of the session, and the sub-agents of a run.

use super::encode::{AgUiEncoder, RECORD, step_event};
use crate::dialect::ai_parts;
use crate::dialect::encode::Uuid;
use crate::dialect::{Output, sse};
use crate::event::{
    Data, Event, Outcome, Reason, SessionUpdated, SubagentEnded, SubagentStarted, TurnEnded,
    TurnStarted, Usage,
};
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

/// The largest count that a client can represent.
const MOST_TOKENS: u64 = (1 << 53) - 1;

/// The current run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    thread: Thread,
    id: Uuid,
    /// The model of the session changed during the run.
    other_models: bool,
    /// The sub-agents that were started in this run, and whether they are still running.
    subagents: Vec<(Text<'static>, bool)>,
}

/// The id of the conversation: that of the agent's session, or a generated one.
#[derive(Debug, Clone)]
enum Thread {
    Session(Text<'static>),
    Generated(Uuid),
}

impl Thread {
    fn write(&self, out: &mut write::Bytes) {
        match self {
            Self::Session(id) => write::text(out, id),
            Self::Generated(id) => id.write(out),
        }
    }
}

impl AgUiEncoder {
    pub(super) fn run_started(&mut self, started: &TurnStarted<'_>, out: &mut Output) {
        self.end_run(out);
        // A conversation that began with a generated id keeps it.
        let thread = match &self.session.id {
            Some(id) if self.thread.is_none() => Thread::Session(id.clone()),
            _ => Thread::Generated(*self.thread.get_or_insert_with(|| self.identity.uuid())),
        };
        let id = self.identity.uuid();
        let run = Run { thread, id, other_models: false, subagents: Vec::new() };
        sse::event(out, "RUN_STARTED", |event| {
            run.write_ids(event);
            if let Some(turn) = &started.id {
                event.object("metadata", |metadata| {
                    metadata.text("turnId", turn);
                });
            }
        });
        self.run = Some(run);
        self.write_session(out);
        let (bytes, names) = std::mem::take(&mut self.held);
        out.bytes().extend_from_slice(&bytes);
        drop(names);
    }

    /// Writes the facts of the session as a part of the state, next to those of the application.
    fn write_session(&mut self, out: &mut Output) {
        if std::mem::replace(&mut self.session_written, true) {
            return;
        }
        let session = &self.session;
        let facts = Json::object(|facts| {
            facts.text_if("id", session.id.as_ref());
            facts.text_if("agent", session.agent.as_ref());
            facts.text_if("version", session.version.as_ref());
            facts.text_if("model", session.model.as_ref());
            facts.text_if("cwd", session.cwd.as_ref());
            facts.text_if("permissionMode", session.permission_mode.as_ref());
            facts.json_if("tools", session.tools.as_ref());
        });
        if facts.get() == "{}" {
            return;
        }
        sse::event(out, "STATE_DELTA", |event| {
            event.objects("delta", [facts], |change, facts| {
                change.fixed(r#""op":"add","path":"/session""#).json("value", &facts);
            });
        });
    }

    pub(super) fn session_updated(
        &mut self,
        event: &Event<'_>,
        update: &SessionUpdated<'_>,
        out: &mut Output,
    ) {
        macro_rules! learn {
            ($($fact:ident)+) => {$(
                if let Some(fact) = &update.$fact {
                    self.session.$fact = Some(fact.clone().into_owned());
                    self.session_written = false;
                }
            )+};
        }
        if let (Some(run), Some(before), Some(_)) =
            (&mut self.run, &self.session.model, &update.model)
        {
            run.other_models |= update.model.as_ref() != Some(before);
        }
        learn!(id agent version model cwd permission_mode tools);
        if self.run.is_some() {
            self.write_session(out);
        }
        if update.relay.as_ref().is_some_and(|relay| relay.token.reveal().is_some()) {
            out.lost("tokens of relays");
        }
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            self.custom(event, out);
        }
    }

    /// Ends the run. If the turn ended with the input, the end of the process follows and is
    /// written first.
    pub(super) fn turn_ended(
        &mut self,
        event: &Event<'_>,
        ended: &TurnEnded<'_>,
        out: &mut Output,
    ) {
        let reason = event.synthetic.as_ref();
        let is_last = |reason: &Reason| reason.is_end_of_input() || *reason == Reason::StreamEnded;
        if reason.is_some_and(is_last) {
            self.ending = Some(event.clone().into_owned());
        } else {
            self.run_ended(ended, reason.is_some(), out);
        }
    }

    /// Ends the run whose turn ended with the input.
    pub(super) fn end_run(&mut self, out: &mut Output) {
        if let Some(Data::TurnEnded(ended)) = self.ending.take().map(|event| event.data) {
            self.run_ended(&ended, true, out);
        }
    }

    fn run_ended(&mut self, ended: &TurnEnded<'_>, synthetic: bool, out: &mut Output) {
        self.of_client.iter_mut().for_each(|(_, run_has_ended)| *run_has_ended = true);
        for error in self.errors.take_unreported(ended.cause.as_ref()) {
            self.custom_of("error", &error, None, out);
        }
        let step = self.steps.number();
        if self.steps.end() {
            step_event("STEP_FINISHED", step, out);
        }
        let Some(run) = self.run.take() else { return };
        run.suspend_subagents(out);
        // If an agent counts by model and names none, an earlier turn has counted the usage.
        let counted = self.counts_models && !synthetic;
        self.counts_models |= !ended.by_model.is_empty();
        let model = self.session.model.as_ref().filter(|_| !run.other_models);
        let used = used(ended, counted, model);
        if is_error(&ended.outcome) {
            run_error(ended, &used, out);
        } else {
            run_finished(&run, ended, &used, out);
        }
    }

    /// Writes what followed the last turn in an additional run, if it is of interest to a user.
    pub(super) fn write_after_last_run(&mut self, out: &mut Output) {
        for error in self.errors.take_unreported(None) {
            self.custom_of("error", &error, None, out);
        }
        let uninteresting = [RECORD, "session_ended", "log", "unparsed", "limit", "usage"];
        if self.held.1.iter().all(|what| uninteresting.contains(what)) {
            return;
        }
        self.run_started(&TurnStarted::default(), out);
        let Some(run) = self.run.take() else { return };
        sse::event(out, "RUN_FINISHED", |event| {
            run.write_ids(event);
            event.fixed(r#""metadata":{"afterword":true}"#);
        });
    }
}

/// Writes `RUN_FINISHED`. It does not list the client's calls: they are those without a result.
fn run_finished(run: &Run, ended: &TurnEnded<'_>, used: &[Used<'_>], out: &mut Output) {
    sse::event(out, "RUN_FINISHED", |event| {
        run.write_ids(event);
        event.json_if("result", ended.structured.as_ref().filter(|it| !it.is_null()));
        event.fixed(match ended.outcome {
            Outcome::Cancelled => r#""outcome":{"type":"cancelled"}"#,
            _ => r#""outcome":{"type":"success"}"#,
        });
        write_totals(event, ended, used);
    });
}

/// Whether a run with this outcome ends with `RUN_ERROR`. A run that was cut short did not succeed,
/// and the protocol has no other way to express that.
fn is_error(outcome: &Outcome) -> bool {
    let ended_well = [Outcome::Completed, Outcome::WaitingForClient, Outcome::Cancelled];
    !ended_well.contains(outcome)
}

fn run_error(ended: &TurnEnded<'_>, used: &[Used<'_>], out: &mut Output) {
    let message = match (&ended.cause, &ended.outcome) {
        (None, Outcome::Refused) => Text::plain("the model refused"),
        (None, Outcome::LimitReached) => Text::plain(limit_text(ended)),
        _ => ai_parts::failure(ended),
    };
    sse::event(out, "RUN_ERROR", |event| {
        event.text("message", &message);
        let class = ended.class.as_ref().filter(|_| ended.outcome == Outcome::Failed);
        event.string("code", class.map_or(ended.outcome.as_str(), |class| class.as_str()));
        write_totals(event, ended, used);
    });
}

/// The limit that was reached, according to the stop reason of the model.
fn limit_text(ended: &TurnEnded<'_>) -> &'static str {
    let word = ended.stop_reason.as_ref().map(Text::to_plain).unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "max_output_tokens" => {
            "the answer reached the model's output limit"
        }
        _ => "a limit was reached",
    }
}

/// Writes tokens, outcome, cost and duration.
fn write_totals(event: &mut Object<'_>, ended: &TurnEnded<'_>, used: &[Used<'_>]) {
    if !used.is_empty() {
        event.objects("usage", used, |counts, (usage, model)| write_usage(counts, usage, *model));
    }
    event.object("metadata", |metadata| {
        metadata.string("outcome", ended.outcome.as_str());
        metadata.text_if("reason", ai_parts::end_reason(ended));
        metadata.text_if("cause", ended.cause.as_ref().filter(|_| !is_error(&ended.outcome)));
        metadata.number_if("httpStatus", ended.http_status);
        if let Some(cost) = ended.cost.as_ref().filter(|cost| cost.usd.is_finite()) {
            metadata.raw("costUsd", &cost.usd.to_string());
        }
        metadata.number_if("durationMs", ended.duration_ms).number_if("steps", ended.steps);
    });
}

/// Tokens, and the model that used them.
type Used<'u> = (&'u Usage<'u>, Option<&'u Text<'u>>);

/// The usage of a run: one entry for each model if the agent states it, since only these counts
/// contain sub-agents.
fn used<'u>(
    ended: &'u TurnEnded<'_>,
    counted_before: bool,
    model: Option<&'u Text<'u>>,
) -> Vec<Used<'u>> {
    let same = |one: &Usage<'_>, all: &Usage<'_>| {
        (one.input_total(), one.output) == (all.input_total(), all.output)
    };
    match (ended.by_model.as_slice(), &ended.usage) {
        ([], Some(all)) if !counted_before => vec![(all, all.model.as_ref().or(model))],
        // The total has the same counts, and more detail.
        ([one], Some(all)) if same(one, all) => {
            vec![(all, all.model.as_ref().or(one.model.as_ref()))]
        }
        (models, _) => models.iter().map(|usage| (usage, usage.model.as_ref())).collect(),
    }
}

/// Writes the totals, of which the other counts are parts.
fn write_usage(counts: &mut Object<'_>, usage: &Usage<'_>, model: Option<&Text<'_>>) {
    let (input, output) = (usage.input_total(), usage.output);
    let total = input.zip(output).map(|(input, output)| input.saturating_add(output));
    counts.text_if("model", model);
    for (name, count) in [
        ("inputTokens", input),
        ("outputTokens", output),
        ("totalTokens", total.or(usage.total)),
        ("reasoningTokens", usage.reasoning),
        ("cachedInputTokens", usage.cache_read),
        ("cacheWriteInputTokens", usage.cache_write),
    ] {
        counts.number_if(name, count.filter(|count| *count <= MOST_TOKENS));
    }
}

/// Sub-agents. Their id is that of the call that started them.
impl AgUiEncoder {
    pub(super) fn subagent_started(
        &mut self,
        event: &Event<'_>,
        started: &SubagentStarted<'_>,
        out: &mut Output,
    ) {
        let id = started.call.as_ref().or(started.id.as_ref());
        let run = self.run.as_mut();
        let (Some(id), Some(run)) = (id, run.filter(|run| id.is_some_and(|id| !run.knows(id))))
        else {
            self.custom(event, out);
            return;
        };
        run.subagents.push((id.clone().into_owned(), true));
        let above = event.parent.as_ref().filter(|parent| run.knows(parent));
        sse::event(out, "SUBAGENT_STARTED", |record| {
            record.text("subagentRunId", id);
            let name = started.kind.as_ref().filter(|kind| !kind.is_empty());
            record.text("name", name.unwrap_or(&Text::plain("subagent")));
            record.text_if("description", started.description.as_ref());
            record.text_if("parentSubagentRunId", above);
            record.text_if("parentToolCallId", started.call.as_ref());
            record.object("metadata", |metadata| {
                metadata.text_if("agentId", started.id.as_ref());
                metadata.text_if("prompt", started.prompt.as_ref());
            });
        });
    }

    pub(super) fn subagent_ended(
        &mut self,
        event: &Event<'_>,
        ended: &SubagentEnded<'_>,
        out: &mut Output,
    ) {
        let id = ended.call.as_ref().or(ended.id.as_ref());
        let run = self.run.as_mut().zip(id);
        let running = run.and_then(|(run, id)| run.running(id));
        let (Some(id), Some(running)) = (id, running) else {
            self.custom(event, out);
            return;
        };
        *running = false;
        let status = ended.status.as_ref().map(Text::to_plain).unwrap_or_default();
        let well = ["", "completed", "complete", "done", "finished", "success", "succeeded", "ok"];
        let failed = !well.contains(&&*status);
        let kind = if failed { "SUBAGENT_ERROR" } else { "SUBAGENT_FINISHED" };
        sse::event(out, kind, |record| {
            record.text("subagentRunId", id);
            if failed {
                let message = ended.summary.as_ref().or(ended.status.as_ref());
                record.text("message", message.unwrap_or(&Text::plain("the sub-agent failed")));
                record.string("code", &status);
            } else {
                record.text_if("result", ended.summary.as_ref());
            }
            record.object("metadata", |metadata| {
                metadata.text_if("status", ended.status.as_ref());
            });
        });
    }
}

impl Run {
    fn write_ids(&self, event: &mut Object<'_>) {
        self.thread.write(event.name("threadId"));
        self.id.write(event.name("runId"));
    }

    /// Ends the sub-agents that are still running, as suspended: they may continue in a later run.
    fn suspend_subagents(&self, out: &mut Output) {
        for (subagent, _) in self.subagents.iter().filter(|(_, running)| *running) {
            sse::event(out, "SUBAGENT_FINISHED", |event| {
                event.text("subagentRunId", subagent);
                event.fixed(r#""outcome":{"type":"suspended"}"#);
            });
        }
    }

    fn knows(&self, subagent: &Text<'_>) -> bool {
        self.subagents.iter().any(|(id, _)| id == subagent)
    }

    fn running(&mut self, subagent: &Text<'_>) -> Option<&mut bool> {
        let known = self.subagents.iter_mut().find(|(id, running)| id == subagent && *running);
        known.map(|(_, running)| running)
    }
}
