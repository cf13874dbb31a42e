//! Writes where a run begins and ends, what is known of the session, and the sub-agents of a run.

use super::encode::{AgUiEncoder, step_event};
use crate::dialect::ai_parts;
use crate::dialect::encode::Uuid;
use crate::dialect::{Output, sse};
use crate::event::{
    Event, Outcome, SessionUpdated, SubagentEnded, SubagentStarted, TurnEnded, TurnStarted, Usage,
};
use crate::json::Text;
use crate::json::write::{self, Object};

/// The largest count that a client takes for one.
const MOST_TOKENS: u64 = (1 << 53) - 1;

/// The run at hand.
#[derive(Debug)]
pub(super) struct Run {
    thread: Thread,
    id: Uuid,
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
        let thread = match &self.session.id {
            Some(id) => Thread::Session(id.clone()),
            None => Thread::Made(*self.thread.get_or_insert_with(|| self.identity.uuid())),
        };
        let run = Run { thread, id: self.identity.uuid(), subagents: Vec::new() };
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

    /// The state of the agent is what is known of its session.
    fn tell_session(&mut self, out: &mut Output) {
        if std::mem::replace(&mut self.session_told, true) {
            return;
        }
        let session = &self.session;
        sse::event(out, "STATE_SNAPSHOT", |event| {
            event.object("snapshot", |state| {
                state.object("session", |facts| {
                    facts.text_if("id", session.id.as_ref());
                    facts.text_if("agent", session.agent.as_ref());
                    facts.text_if("version", session.version.as_ref());
                    facts.text_if("model", session.model.as_ref());
                    facts.text_if("cwd", session.cwd.as_ref());
                    facts.text_if("permissionMode", session.permission_mode.as_ref());
                    facts.json_if("tools", session.tools.as_ref());
                });
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

    pub(super) fn run_ended(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        let failed = is_error(&ended.outcome);
        for error in self.errors.besides(ended.cause.as_ref()) {
            self.custom_of("error", &error, None, out);
        }
        let step = self.steps.number();
        if self.steps.end() {
            step_event("STEP_FINISHED", step, out);
        }
        let Some(run) = self.run.take() else { return };
        for (subagent, _) in run.subagents.iter().filter(|(_, at_work)| *at_work) {
            sse::event(out, "SUBAGENT_FINISHED", |event| {
                event.text("subagentRunId", subagent);
                // It may go on in a later run.
                event.fixed(r#""outcome":{"type":"suspended"}"#);
            });
        }
        if failed {
            run_error(ended, out);
        } else {
            run_finished(&run, ended, out);
        }
    }
}

/// Calls that the client must run are those without a result: it counts them itself.
fn run_finished(run: &Run, ended: &TurnEnded<'_>, out: &mut Output) {
    sse::event(out, "RUN_FINISHED", |event| {
        run.write_ids(event);
        event.json_if("result", ended.structured.as_ref().filter(|it| !it.is_null()));
        event.fixed(match ended.outcome {
            Outcome::Cancelled => r#""outcome":{"type":"cancelled"}"#,
            _ => r#""outcome":{"type":"success"}"#,
        });
        how_it_went(event, ended);
    });
}

/// Whether a run that ended so is told as an error. What was cut short did not succeed, and the
/// protocol has no other word for that.
fn is_error(outcome: &Outcome) -> bool {
    let ended_well = [Outcome::Completed, Outcome::WaitingForClient, Outcome::Cancelled];
    !ended_well.contains(outcome)
}

fn run_error(ended: &TurnEnded<'_>, out: &mut Output) {
    let message = match (&ended.cause, &ended.outcome) {
        (None, Outcome::Refused) => Text::plain("the model would not"),
        (None, Outcome::LimitReached) => Text::plain("a limit was reached"),
        _ => ai_parts::failure(ended),
    };
    sse::event(out, "RUN_ERROR", |event| {
        event.text("message", &message);
        let class = ended.class.as_ref().filter(|_| ended.outcome == Outcome::Failed);
        event.string("code", class.map_or(ended.outcome.as_str(), |class| class.as_str()));
        how_it_went(event, ended);
    });
}

/// Tokens, money and time.
fn how_it_went(event: &mut Object<'_>, ended: &TurnEnded<'_>) {
    if let Some(usage) = &ended.usage {
        let model = match ended.by_model.as_slice() {
            [one] => usage.model.as_ref().or(one.model.as_ref()),
            _ => usage.model.as_ref(),
        };
        event.objects("usage", [usage], |counts, usage| write_usage(counts, usage, model));
    }
    event.object("metadata", |metadata| {
        metadata.string("outcome", ended.outcome.as_str());
        let word = ended.stop_reason.as_ref().or(ended.reason.as_ref());
        metadata.text_if("reason", word);
        metadata.text_if("cause", ended.cause.as_ref().filter(|_| !is_error(&ended.outcome)));
        metadata.number_if("httpStatus", ended.http_status);
        if let Some(cost) = ended.cost.as_ref().filter(|cost| cost.usd.is_finite()) {
            metadata.raw("costUsd", &cost.usd.to_string());
        }
        metadata.number_if("durationMs", ended.duration_ms).number_if("steps", ended.steps);
        if ended.by_model.len() > 1 {
            metadata.objects("usageByModel", &ended.by_model, |counts, usage| {
                write_usage(counts, usage, usage.model.as_ref());
            });
        }
    });
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
        let failed = ["fail", "error"].iter().any(|word| status.contains(word));
        let kind = if failed { "SUBAGENT_ERROR" } else { "SUBAGENT_FINISHED" };
        sse::event(out, kind, |record| {
            record.text("subagentRunId", id);
            if failed {
                let message = ended.summary.as_ref().or(ended.status.as_ref());
                record.text("message", message.unwrap_or(&Text::plain("the sub-agent failed")));
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

    fn knows(&self, subagent: &Text<'_>) -> bool {
        self.subagents.iter().any(|(id, _)| id == subagent)
    }

    fn at_work(&mut self, subagent: &Text<'_>) -> Option<&mut bool> {
        let known = self.subagents.iter_mut().find(|(id, at_work)| id == subagent && *at_work);
        known.map(|(_, at_work)| at_work)
    }
}
