//! What the entries of an agent change in the record of its session.

use interlingua::event::{Data, Executor};
use interlingua::{Batch, EntryRef};
use interlingua_agents::remote::RelayAccess;
use interlingua_agents::{InputRequest, Wanted};

use super::client_calls::ClientCalls;
use super::creation::SANDBOX;
use super::delivery::Turn;
use super::launcher::Launcher;
use crate::record::title;
use crate::{CommandState, CommandUpdate, Commit, IdempotencyKey, SessionId, State, Waiting, log};

/// The fact of the host with what is kept of the relay of a remote agent.
pub const RELAY: &str = "relay";

/// What is known of a live session from its entries.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) turn: Turn,
    pub(super) waiting: Vec<Waiting>,
    /// The calls of the client's tools.
    pub(super) client_calls: ClientCalls,
    /// Requests whose entry is not stored yet.
    requested: Vec<InputRequest>,
    /// The calls of other tools that are running.
    running: Vec<String>,
}

/// Entries that are stored next, and what they change.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) commit: Commit,
    /// The entries contain the intent of the prompt that was announced: once they are stored, it is sent.
    pub(super) announced: bool,
    /// The relay at which a remote agent takes results from now on.
    relay: Option<RelayAccess>,
}

impl Changes {
    /// What is committed, with what the record may keep of the relay.
    pub(super) fn into_commit(self, launcher: &dyn Launcher, session: &SessionId) -> Commit {
        let mut commit = self.commit;
        let kept = self.relay.and_then(|relay| launcher.keep_relay(session, &relay));
        commit.patch.host.extend(kept.map(|kept| (RELAY.to_owned(), kept)));
        commit
    }
}

impl Observed {
    pub(super) fn resting() -> Self {
        Self {
            turn: Turn::Resting,
            waiting: Vec::new(),
            client_calls: ClientCalls::default(),
            requested: Vec::new(),
            running: Vec::new(),
        }
    }

    /// At the end of a log whose last turn has ended.
    pub(super) fn resting_with(client_calls: ClientCalls) -> Self {
        Self { waiting: client_calls.waiting(), client_calls, ..Self::resting() }
    }

    /// Whether the client has a call to answer. The log has it a moment before the request arrives.
    pub(super) fn waits_for_client(&self) -> bool {
        self.client_calls.has_open()
    }

    /// Whether the turn waits for calls of the client, and nothing else is done or asked for.
    pub(super) fn waits_for_client_alone(&self) -> bool {
        let is_call = |waiting: &Waiting| matches!(waiting, Waiting::ClientTool { .. });
        let asks = !self.waiting.is_empty() && self.waiting.iter().all(is_call);
        asks && self.requested.is_empty() && self.running.is_empty()
    }

    /// Whether a prompt can begin a turn.
    pub(super) fn may_begin(&self) -> bool {
        self.turn == Turn::Resting && self.waiting.is_empty()
    }

    /// What the session is doing.
    pub(super) fn state(&self) -> State {
        match (&self.turn, self.waiting.is_empty()) {
            (Turn::Resting, true) => State::Idle,
            (_, true) => State::Working,
            (_, false) => State::Waiting { waiting: self.waiting.clone() },
        }
    }

    /// Takes a request for the user. It counts when the entry that requests it is stored.
    pub(super) fn requested(&mut self, request: InputRequest) {
        self.requested.push(request);
    }

    /// Takes the requests whose entries are stored; `next` is the number of the next entry. Returns
    /// whether the state has changed.
    pub(super) fn stored(&mut self, next: u64) -> bool {
        let before = self.waiting.len();
        let requested = std::mem::take(&mut self.requested);
        let (stored, later) = requested.into_iter().partition(|it| it.sequence < next);
        self.requested = later;
        let stored: Vec<InputRequest> = stored;
        let pending = stored.into_iter().filter(InputRequest::is_pending);
        self.waiting.extend(pending.map(|request| waiting(&request)));
        self.waiting.len() != before
    }

    /// Takes a batch of entries, which are stored next.
    pub(super) fn observe(&mut self, batch: &Batch, changes: &mut Changes) {
        batch.for_each(|entry| {
            changes.commit.entries.push(entry);
            self.entry(entry, changes);
        });
    }

    /// What the agent reports of its own permission mode is not the mode of the session, which callers
    /// are allowed to request or not.
    fn entry(&mut self, entry: EntryRef<'_>, changes: &mut Changes) {
        self.client_calls.observe(entry.event, entry.received_at);
        let Commit { patch, commands, .. } = &mut changes.commit;
        match &entry.event.data {
            Data::SessionStarted(started) => {
                patch.native_id = started.id.as_ref().map(|id| id.to_string().trim().to_owned());
                patch.model =
                    started.model.as_ref().map(ToString::to_string).or(patch.model.take());
            }
            Data::SessionUpdated(updated) => {
                let id = updated.id.as_ref().map(|id| id.to_string().trim().to_owned());
                patch.native_id = id.or(patch.native_id.take());
                patch.model =
                    updated.model.as_ref().map(ToString::to_string).or(patch.model.take());
                for (name, fact) in [(SANDBOX, &updated.sandbox), ("snapshotId", &updated.snapshot)]
                {
                    let fact = fact.as_ref().map(|fact| fact.to_string().into());
                    patch.host.extend(fact.map(|fact| (name.to_owned(), fact)));
                }
                if let Some(relay) = &updated.relay {
                    changes.relay = RelayAccess::of(relay).or(changes.relay.take());
                }
            }
            Data::HostState(state) => {
                if let Turn::Announced(keys) = &self.turn
                    && log::intent(state).as_deref() == keys.first().map(IdempotencyKey::as_str)
                {
                    commands.extend(updates(keys, &CommandState::Delivering, Some(entry.sequence)));
                    changes.announced = true;
                }
            }
            Data::UserMessage(message) => {
                patch.title.get_or_insert_with(|| title(&message.text.to_plain()));
            }
            // A turn that begins before the agent was given the prompt is its own, for example because a
            // command in the background has ended. The prompt waits for the end of it.
            Data::TurnStarted(started) if !started.replay => match &self.turn {
                Turn::Announced(_) => {}
                Turn::Sent { receipt, .. }
                    if receipt.sequence().is_none_or(|first| entry.sequence < first) => {}
                Turn::Sent { keys, .. } => {
                    commands.extend(updates(keys, &CommandState::Delivered, Some(entry.sequence)));
                    self.turn = Turn::Running;
                }
                Turn::Resting | Turn::Running => self.turn = Turn::Running,
            },
            Data::TurnEnded(ended) if !ended.replay => {
                self.waiting = self.client_calls.waiting();
                // A request of the next turn may have arrived before its entry.
                self.requested.retain(|requested| requested.sequence > entry.sequence);
                self.running.clear();
                if self.turn == Turn::Running {
                    self.turn = Turn::Resting;
                }
            }
            Data::PermissionResolved(resolved) => {
                if let Some(id) = &resolved.request {
                    self.forget(&id.to_string());
                }
            }
            Data::QuestionAnswered(answered) => self.forget(&answered.request.to_string()),
            Data::ToolStarted(started) if started.executor != Executor::Client => {
                self.running.push(started.call.to_string());
            }
            // A call of the client has the id of its request.
            Data::ToolEnded(ended) if ended.executor == Executor::Client => {
                self.forget(&ended.call.to_string());
            }
            Data::ToolEnded(ended) => {
                let call = ended.call.to_string();
                self.running.retain(|running| *running != call);
            }
            _ => {}
        }
    }

    fn forget(&mut self, request: &str) {
        self.waiting.retain(|waiting| waiting.request() != request);
        self.requested.retain(|requested| requested.id() != request);
    }
}

/// What became of the commands with these keys.
pub(super) fn updates(
    keys: &[IdempotencyKey],
    state: &CommandState,
    sequence: Option<u64>,
) -> impl Iterator<Item = CommandUpdate> {
    let update = move |key: &IdempotencyKey| {
        let (key, state) = (key.clone(), state.clone());
        CommandUpdate { key, state, sequence }
    };
    keys.iter().map(update)
}

fn waiting(request: &InputRequest) -> Waiting {
    let id = request.id().to_owned();
    match &request.wanted {
        Wanted::Answer(_) => Waiting::Answer { request: id },
        Wanted::Call(call) => Waiting::ClientTool { request: id, tool: call.tool.clone() },
        _ => Waiting::Decision { request: id },
    }
}

#[cfg(test)]
mod tests {
    use interlingua::event::{
        Event, SessionUpdated, ToolEnded, ToolStarted, TurnEnded, TurnStarted,
    };
    use interlingua::json::Text;
    use interlingua::{Entry, Origin};
    use interlingua_agents::Receipt;

    use super::*;

    /// What an event changes that has this number.
    fn observed(observed: &mut Observed, sequence: u64, event: Event<'static>) -> Changes {
        let origin = Origin::default();
        let entry = Entry { sequence, received_at: None, epoch: 0, origin, event, raw: None };
        let (mut batch, mut changes) = (Batch::default(), Changes::default());
        batch.push(entry.borrowed());
        observed.observe(&batch, &mut changes);
        changes
    }

    /// Agents have modes of their own, and one of them may be called `auto`.
    #[test]
    fn the_mode_of_an_agent_is_not_that_of_its_session() {
        let updated = SessionUpdated {
            model: Some(Text::plain("m")),
            permission_mode: Some(Text::plain("auto")),
            ..SessionUpdated::default()
        };
        let changes = observed(&mut Observed::resting(), 0, Event::new(updated));
        let patch = changes.commit.patch;
        assert_eq!((patch.model.as_deref(), patch.mode), (Some("m"), None));
    }

    /// What else the agent does would be lost, and a decision cannot be given to another process.
    #[test]
    fn a_turn_with_another_tool_or_request_does_not_wait_for_the_client_alone() {
        let mut turn = Observed { turn: Turn::Running, ..Observed::resting() };
        let call = Waiting::ClientTool { request: "c".to_owned(), tool: "ask".to_owned() };
        assert!(!turn.waits_for_client_alone());
        turn.waiting.push(call);
        assert!(turn.waits_for_client_alone());
        turn.waiting.push(Waiting::Decision { request: "d".to_owned() });
        assert!(!turn.waits_for_client_alone());
        turn.waiting.pop();
        let call = || Text::plain("t");
        observed(&mut turn, 1, Event::new(ToolStarted { call: call(), ..<_>::default() }));
        assert!(!turn.waits_for_client_alone());
        observed(&mut turn, 2, Event::new(ToolEnded { call: call(), ..<_>::default() }));
        assert!(turn.waits_for_client_alone());
    }

    /// A command in the background ended while a prompt was on its way. The agent reported it in a turn
    /// of its own, which was taken for that of the prompt.
    #[test]
    fn a_turn_that_an_agent_begins_by_itself_is_no_receipt() {
        let (key, receipt) = (IdempotencyKey::new("k").unwrap(), Receipt::default());
        let sent = Turn::Sent { keys: vec![key.clone()], receipt: receipt.clone() };
        let mut observation = Observed { turn: sent.clone(), ..Observed::resting() };
        let started = || Event::new(TurnStarted::default());
        let ended = || Event::new(TurnEnded::default());
        // The prompt waits in the agent's queue.
        assert_eq!(observed(&mut observation, 3, started()).commit.commands, []);
        assert_eq!(observation.turn, sent);
        // The agent has it by the time at which the end of its own turns is observed.
        receipt.note(7);
        for (sequence, event) in [(4, ended()), (5, started()), (6, ended())] {
            assert_eq!(observed(&mut observation, sequence, event).commit.commands, []);
            assert_eq!(observation.turn, sent);
        }
        let changes = observed(&mut observation, 7, started());
        let (state, sequence) = (CommandState::Delivered, Some(7));
        assert_eq!(changes.commit.commands, [CommandUpdate { key, state, sequence }]);
        assert_eq!(observation.turn, Turn::Running);
    }
}
