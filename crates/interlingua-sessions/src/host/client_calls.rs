//! The calls of the client's tools in the last turn, which can be answered after their agent was lost.
//!
//! A turn whose agent is lost while a call waits ends as waiting for the client. The answer to such a call
//! is *late*: it is given to the agent with the next prompt. Until its turn begins, its command stays
//! accepted, so that it survives the process that took it.

use std::hash::{DefaultHasher, Hash, Hasher};

use interlingua::event::{Data, Event, Executor, Outcome, ToolEnded};
use interlingua::json::Json;
use interlingua_agents::{CallOutcome, LateResult};

use super::command::{Command, DECLINED, DENIED, Verdict};
use crate::Waiting;

/// The calls of the client's tools in the last turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ClientCalls {
    /// Those that were not answered.
    open: Vec<OpenCall>,
    /// Those that have ended, and a digest of what each of them ended with: results may be long.
    ended: Vec<(String, u64)>,
    /// The turn has ended, and waits for the client.
    wait: bool,
    /// The agent has ended it itself, instead of being lost.
    deferred: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct OpenCall {
    id: String,
    native: Option<String>,
    tool: String,
    input: String,
    /// When it was made, in milliseconds since 1970.
    at: Option<u64>,
}

impl ClientCalls {
    /// Takes the next event of the log, and its time.
    pub(crate) fn observe(&mut self, event: &Event<'_>, at: Option<u64>) {
        match &event.data {
            Data::TurnStarted(started) if !started.replay => *self = Self::default(),
            Data::ToolStarted(started) if started.executor == Executor::Client => {
                self.open.push(OpenCall {
                    id: started.call.to_string(),
                    native: started.native_call.as_ref().map(ToString::to_string),
                    tool: started.name.to_string(),
                    input: started
                        .input
                        .as_ref()
                        .map_or_else(String::new, |it| it.get().to_owned()),
                    at,
                });
            }
            Data::ToolInput(given) if given.executor == Executor::Client => {
                let id = given.call.to_string();
                let call = self.open.iter_mut().find(|call| call.id == id);
                if let Some((call, input)) = call.zip(given.input.as_ref()) {
                    call.input = input.get().to_owned();
                }
            }
            Data::ToolEnded(ended) if ended.executor == Executor::Client => {
                let id = ended.call.to_string();
                self.open.retain(|call| call.id != id);
                self.ended.push((id, digest(ended)));
            }
            Data::TurnEnded(ended) if !ended.replay => {
                self.wait = ended.outcome == Outcome::WaitingForClient;
                self.deferred = self.wait && event.synthetic.is_none();
                if !self.wait {
                    self.open.clear();
                }
            }
            _ => {}
        }
    }

    /// Whether there are calls that were not answered.
    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a call was not answered.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.open.iter().any(|call| call.id == id)
    }

    /// When a call was made that was not answered.
    pub(super) fn made_at(&self, id: &str) -> Option<u64> {
        self.open.iter().find(|call| call.id == id)?.at
    }

    /// Whether a call has ended with this answer, and not with another one.
    pub(super) fn has_ended_with(&self, id: &str, outcome: &CallOutcome) -> bool {
        let Data::ToolEnded(ended) = end_of(id, outcome).data else { return false };
        let sought = digest(&ended);
        self.ended.iter().any(|(ended, digest)| ended == id && *digest == sought)
    }

    /// What the session waits for after its turn has ended.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let open = self.open.iter().filter(|_| self.wait);
        open.map(|call| Waiting::ClientTool { request: call.id.clone(), tool: call.tool.clone() })
            .collect()
    }

    /// The late answer to a call.
    pub(super) fn late(&self, id: &str, outcome: CallOutcome) -> Option<LateResult> {
        let call = self.open.iter().find(|call| call.id == id).filter(|_| self.wait)?;
        let OpenCall { id, native, tool, input, at: _ } = call.clone();
        Some(LateResult { call: id, native, tool, input, outcome, deferred: self.deferred })
    }
}

/// The event that ends a call with an answer.
pub(super) fn end_of(id: &str, outcome: &CallOutcome) -> Event<'static> {
    let (call, outcome) = (id.to_owned(), outcome.clone());
    let (native, tool, input) = (None, String::new(), String::new());
    LateResult { call, native, tool, input, outcome, deferred: false }.to_event()
}

fn digest(ended: &ToolEnded<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", ended.status).hash(&mut hasher);
    ended.output.as_ref().map(Json::get).hash(&mut hasher);
    ended.error.as_ref().map(ToString::to_string).hash(&mut hasher);
    hasher.finish()
}

/// What a command answers to which call, if it is an answer to one.
pub(super) fn outcome_of(command: &Command) -> Option<(&str, CallOutcome)> {
    match command {
        // Clients that write every field decline with a null as the answer.
        Command::Answer { request, answer: Some(answer), decline }
            if !answer.is_null() || decline.is_none() =>
        {
            Some((request, CallOutcome::Output(answer.clone())))
        }
        Command::Answer { request, decline, .. } => {
            let why = decline.clone().unwrap_or_else(|| DECLINED.to_owned());
            Some((request, CallOutcome::Failed(why)))
        }
        Command::Decide { request, decision: Verdict::Deny, reason } => {
            // A live agent gets the same words, for which its files are searched.
            let why = reason.clone().unwrap_or_else(|| DENIED.to_owned());
            Some((request, CallOutcome::Denied(why)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use interlingua::event::{Reason, ToolEnded, ToolStarted, TurnEnded, TurnStarted};
    use interlingua::json::{Json, Text};
    use serde_json::json;

    use super::*;

    fn started(id: &str) -> Event<'static> {
        Event::new(ToolStarted {
            call: Text::from(id.to_owned()),
            name: Text::plain("ask"),
            executor: Executor::Client,
            input: Json::from_text("{}".to_owned()),
            ..ToolStarted::default()
        })
    }

    fn ended(outcome: Outcome) -> Event<'static> {
        Event::new(TurnEnded { outcome, ..TurnEnded::default() })
    }

    #[test]
    fn a_call_waits_after_the_end_of_a_turn_that_waits_for_the_client() {
        let mut calls = ClientCalls::default();
        calls.observe(&started("a"), None);
        calls.observe(&started("b"), None);
        assert!(calls.has_open() && calls.waiting().is_empty());
        let (call, executor) = (Text::plain("a"), Executor::Client);
        calls.observe(&Event::new(ToolEnded { call, executor, ..ToolEnded::default() }), None);
        calls.observe(&ended(Outcome::WaitingForClient), None);
        let waiting = Waiting::ClientTool { request: "b".to_owned(), tool: "ask".to_owned() };
        assert_eq!(calls.waiting(), [waiting]);
        let late = calls.late("b", CallOutcome::Output(json!(1))).unwrap();
        assert_eq!((&*late.call, &*late.input, late.deferred), ("b", "{}", true));
        assert_eq!(calls.late("a", CallOutcome::Output(json!(1))), None);
        calls.observe(&Event::new(TurnStarted::default()), None);
        assert_eq!(calls, ClientCalls::default());
    }

    /// An agent that was lost does not make the call again.
    #[test]
    fn a_call_is_deferred_only_if_the_agent_has_ended_the_turn_itself() {
        let mut calls = ClientCalls::default();
        calls.observe(&started("a"), None);
        let lost = ended(Outcome::WaitingForClient).because(Some(Reason::ProcessEnded));
        calls.observe(&lost, None);
        assert!(!calls.late("a", CallOutcome::Output(json!(1))).unwrap().deferred);
    }

    /// A server was stopped in the moment between the entry of a call and its request.
    #[test]
    fn a_turn_waits_for_the_client_from_the_entry_of_the_call_on() {
        let mut observed = crate::host::observation::Observed::resting();
        assert!(!observed.waits_for_client());
        observed.client_calls.observe(&started("a"), None);
        assert!(observed.waits_for_client() && observed.waiting.is_empty());
    }

    #[test]
    fn no_call_waits_after_another_end() {
        let mut calls = ClientCalls::default();
        calls.observe(&started("a"), None);
        calls.observe(&ended(Outcome::Failed), None);
        assert!(calls.waiting().is_empty() && !calls.has_open());
    }
}
