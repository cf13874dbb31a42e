//! Writes where a run begins and ends, what is known of the session, and the sub-agents of a run.

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

/// The largest count that a client takes for one.
const MOST_TOKENS: u64 = (1 << 53) - 1;

/// The run at hand.
#[derive(Debug, Clone)]
pub(super) struct Run {
    thread: Thread,
    id: Uuid,
    /// The agent took another model while it was at work.
    other_models: bool,
    /// The sub-agents that were started in this run, and whether they are still at work.
    subagents: Vec<(Text<'static>, bool)>,
}

/// The id of the conversation: the agent's session, or one of our own.
#[derive(Debug, Clone)]
enum Thread {
    Session(Text<'static>),
    Made(Uuid),
}

impl Thread {
    fn write(&self, out: &mut write::Bytes) {
        match self {
            Self::Session(id) => write::text(out, id),
            Self::Made(id) => id.write(out),
        }
    }
}

impl AgUiEncoder {
    pub(super) fn run_started(&mut self, started: &TurnStarted<'_>, out: &mut Output) {
        self.end_run(out);
        // A conversation that began with an id of ours goes on with it.
        let thread = match &self.session.id {
            Some(id) if self.thread.is_none() => Thread::Session(id.clone()),
            _ => Thread::Made(*self.thread.get_or_insert_with(|| self.identity.uuid())),
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
        self.tell_session(out);
        let (bytes, names) = std::mem::take(&mut self.held);
        out.bytes().extend_from_slice(&bytes);
        drop(names);
    }

    /// What is known of the session is a part of the state, beside those of the application.
    fn tell_session(&mut self, out: &mut Output) {
        if std::mem::replace(&mut self.session_told, true) {
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
                    self.session_told = false;
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
            self.tell_session(out);
        }
        if update.relay.as_ref().is_some_and(|relay| relay.token.reveal().is_some()) {
            out.lost("token of a relay");
        }
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            self.custom(event, out);
        }
    }

    /// Ends the run; but where the turn ended with the input, how the process ended follows, and is
    /// told first.
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
        self.of_client.iter_mut().for_each(|(_, run_is_over)| *run_is_over = true);
        for error in self.errors.take_unreported(ended.cause.as_ref()) {
            self.custom_of("error", &error, None, out);
        }
        let step = self.steps.number();
        if self.steps.end() {
            step_event("STEP_FINISHED", step, out);
        }
        let Some(run) = self.run.take() else { return };
        run.suspend_subagents(out);
        // An agent that counts by model and names none has used nothing more: a turn before counted it.
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

    /// Tells in one more run what came after the last turn, if it is something to show.
    pub(super) fn afterword(&mut self, out: &mut Output) {
        for error in self.errors.take_unreported(None) {
            self.custom_of("error", &error, None, out);
        }
        let aside = [RECORD, "session_ended", "log", "unparsed", "limit", "usage"];
        if self.held.1.iter().all(|what| aside.contains(what)) {
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

/// Calls that the client must run are those without a result: it counts them itself.
fn run_finished(run: &Run, ended: &TurnEnded<'_>, used: &[Used<'_>], out: &mut Output) {
    sse::event(out, "RUN_FINISHED", |event| {
        run.write_ids(event);
        event.json_if("result", ended.structured.as_ref().filter(|it| !it.is_null()));
        event.fixed(match ended.outcome {
            Outcome::Cancelled => r#""outcome":{"type":"cancelled"}"#,
            _ => r#""outcome":{"type":"success"}"#,
        });
        how_it_went(event, ended, used);
    });
}

/// Whether a run that ended so is told as an error. What was cut short did not succeed, and the
/// protocol has no other word for that.
fn is_error(outcome: &Outcome) -> bool {
    let ended_well = [Outcome::Completed, Outcome::WaitingForClient, Outcome::Cancelled];
    !ended_well.contains(outcome)
}

fn run_error(ended: &TurnEnded<'_>, used: &[Used<'_>], out: &mut Output) {
    let message = match (&ended.cause, &ended.outcome) {
        (None, Outcome::Refused) => Text::plain("the model refused"),
        (None, Outcome::LimitReached) => Text::plain(limit_in_words(ended)),
        _ => ai_parts::failure(ended),
    };
    sse::event(out, "RUN_ERROR", |event| {
        event.text("message", &message);
        let class = ended.class.as_ref().filter(|_| ended.outcome == Outcome::Failed);
        event.string("code", class.map_or(ended.outcome.as_str(), |class| class.as_str()));
        how_it_went(event, ended, used);
    });
}

/// Which limit was reached, as far as the model's word for it says so.
fn limit_in_words(ended: &TurnEnded<'_>) -> &'static str {
    let word = ended.stop_reason.as_ref().map(Text::to_plain).unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "max_output_tokens" => {
            "the answer reached the model's output limit"
        }
        _ => "a limit was reached",
    }
}

/// Tokens, money and time.
fn how_it_went(event: &mut Object<'_>, ended: &TurnEnded<'_>, used: &[Used<'_>]) {
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

/// What a run used: an entry for each model where the agent says so, since that counts sub-agents too.
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
        // The same counts, and more of them.
        ([one], Some(all)) if same(one, all) => {
            vec![(all, all.model.as_ref().or(one.model.as_ref()))]
        }
        (models, _) => models.iter().map(|usage| (usage, usage.model.as_ref())).collect(),
    }
}

/// The totals, and the parts of them: a part is never beside its total.
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

/// Sub-agents: named by the call that started them, as what they say is.
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
        let at_work = run.and_then(|(run, id)| run.at_work(id));
        let (Some(id), Some(at_work)) = (id, at_work) else {
            self.custom(event, out);
            return;
        };
        *at_work = false;
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

    /// Ends the sub-agents that are still at work: they may go on in a later run.
    fn suspend_subagents(&self, out: &mut Output) {
        for (subagent, _) in self.subagents.iter().filter(|(_, at_work)| *at_work) {
            sse::event(out, "SUBAGENT_FINISHED", |event| {
                event.text("subagentRunId", subagent);
                event.fixed(r#""outcome":{"type":"suspended"}"#);
            });
        }
    }

    fn knows(&self, subagent: &Text<'_>) -> bool {
        self.subagents.iter().any(|(id, _)| id == subagent)
    }

    fn at_work(&mut self, subagent: &Text<'_>) -> Option<&mut bool> {
        let known = self.subagents.iter_mut().find(|(id, at_work)| id == subagent && *at_work);
        known.map(|(_, at_work)| at_work)
    }
}
