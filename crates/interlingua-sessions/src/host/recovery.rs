//! How a session goes on whose owner was lost: its process was killed, or its machine lost power.
//!
//! The agent has ended, because its guard ends it. The turn that was running is closed as failed. A
//! prompt that was about to be sent is looked up in the agent's own files; where they do not decide,
//! its turn ends as failed too, because sending it again might run it twice. So it is with an answer to a
//! call of the client that an agent was being given.

mod answers;

use interlingua::event::{Event, Outcome};
use interlingua::{EntryRef, Exit, Reader, Stopped, StreamEnd};

use interlingua_agents::LateResult;
use serde_json::Value;

use super::Received;
use super::client_calls::ClientCalls;
use super::command::Command;
use super::delivery::{self, Turn};
use super::observation::{Observed, updates};
use super::owner::Owner;
use crate::log::{Intent, LOST, StoredLog};
use crate::store::system_clock;
use crate::{
    Acknowledgement, CommandState, CommandUpdate, Commit, Error, Lines, Patch, State, StoredCommand,
};
use answers::LateAnswers;

/// The cause of a turn of which it is not known whether it began.
const UNKNOWN: &str = "delivery unknown: the process that ran the agent ended while the prompt was being sent, and the \
                       agent's own files do not decide whether it was received; send it again if it \
                       should run";

/// What became of a prompt that its agent was not given.
const NOT_SENT: &str =
    "the agent's session ended before the agent was given the prompt; send it again";

/// What became of a command for an agent that has ended.
const GONE: &str = "the process that ran the agent ended while the command was being executed, and the agent with it";

impl Owner {
    /// Closes what an earlier owner left open.
    pub(super) async fn recover(&mut self) -> Result<(), Error> {
        if self.record.state == State::Ended {
            return Ok(());
        }
        let commands = self.open_commands().await?;
        let is_delivering =
            |it: &&StoredCommand| it.acknowledgement.state == CommandState::Delivering;
        let delivering: Vec<_> = commands.iter().filter(is_delivering).cloned().collect();
        if self.record.state == State::Idle && delivering.is_empty() {
            return Ok(());
        }
        let stored = match self.stored_log(&self.record, false).await {
            Err(damaged @ Error::Damaged { .. }) => return self.give_up(&commands, &damaged).await,
            read => read?,
        };
        let late = LateAnswers::of(&delivering, &stored);
        if !delivering.is_empty() && (stored.intent.is_some() || !late.keys.is_empty()) {
            // Until then, it may still write to the files that are asked.
            self.until_lost_agent_ended().await;
        }
        let waits = commands.iter().any(waits);
        let (mut updates, mut answered) = (Vec::new(), Vec::new());
        let mut cause = stored.has_open_turn.then_some(LOST);
        for command in delivering {
            let key = command.acknowledgement.key;
            let read = serde_json::from_value(command.body).ok();
            // Late answers have an intent; this one was for an agent that waited.
            let given = read.as_ref().filter(|_| late.intent.is_none());
            if let Some(given) = given.and_then(|command| self.live_answer(command, &stored)) {
                cause = given.cause().or(cause);
                answered.extend(given.ended);
                let (state, sequence) = (given.state, given.sequence);
                updates.push(CommandUpdate { key, state, sequence });
                continue;
            }
            let (prompt, joins) = match read {
                Some(Command::Prompt { text, joins, .. }) => (Some(text), joins),
                _ if late.keys.contains(&key) => (Some(LateResult::trace(&late.results)), false),
                _ => (None, false),
            };
            let intent = stored.intent.as_ref().filter(|intent| intent.key == key.as_str());
            let intent = intent.or(late.intent.as_ref().filter(|_| late.keys.contains(&key)));
            let sequence = command.acknowledgement.sequence;
            let state = match prompt {
                // It was about to join a turn, which is not announced.
                Some(_) if joins && intent.is_none() => {
                    CommandState::Unknown { reason: GONE.to_owned() }
                }
                // Another prompt was announced since, so its turn has ended.
                Some(_) if intent.is_none() => CommandState::Delivered,
                Some(text) => match self.received_as(&text, late.of_key(&key), intent) {
                    Received::No => CommandState::Accepted,
                    Received::Yes => {
                        cause = Some(LOST);
                        CommandState::Delivered
                    }
                    Received::Unknown => {
                        cause = Some(UNKNOWN);
                        CommandState::Unknown { reason: UNKNOWN.to_owned() }
                    }
                },
                None => CommandState::Unknown { reason: GONE.to_owned() },
            };
            updates.push(CommandUpdate { key, state, sequence });
        }
        let StoredLog { reader, has_open_turn, mut client_calls, .. } = stored;
        let entries = match cause {
            Some(cause) if has_open_turn => self.ended(reader, answered, cause, &mut client_calls),
            Some(cause) => {
                client_calls = ClientCalls::default();
                self.emitted(reader, delivery::turn_of(&late.results, Outcome::Failed, cause))
            }
            None => Lines::default(),
        };
        self.observed = Observed::resting_with(client_calls);
        let sent_again = updates.iter().any(|update| update.state == CommandState::Accepted);
        let state = match self.observed.state() {
            State::Idle if waits || sent_again => State::Starting,
            state => state,
        };
        if entries.is_empty() && updates.is_empty() && self.record.state == state {
            return Ok(());
        }
        let patch = Patch { state: Some(state), ..Patch::default() };
        self.commit(Commit { entries, patch, commands: updates, ..Commit::default() }).await
    }

    /// Whether the agent received a prompt after it was announced.
    fn received(&self, prompt: &str, intent: Option<&Intent>) -> Received {
        let announced = intent.and_then(|intent| intent.at);
        announced
            .map_or(Received::Unknown, |at| self.shared.launcher.received(&self.record, prompt, at))
    }

    /// Notes that nothing is under way in a session whose log is damaged. A turn that is open in it stays
    /// open, because nothing is appended; but the session rests, so that it can expire.
    async fn give_up(&mut self, commands: &[StoredCommand], damaged: &Error) -> Result<(), Error> {
        let unknown = CommandState::Unknown { reason: damaged.to_string() };
        let delivering = commands.iter().map(|command| &command.acknowledgement);
        let delivering = delivering.filter(|it| it.state == CommandState::Delivering);
        let update = |it: &Acknowledgement| {
            let (key, state, sequence) = (it.key.clone(), unknown.clone(), it.sequence);
            CommandUpdate { key, state, sequence }
        };
        let updates = delivering.map(update).collect();
        // Prompts that wait are refused when their agent would be started.
        let state = if commands.iter().any(waits) { State::Starting } else { State::Idle };
        let patch = Patch { state: Some(state), ..Patch::default() };
        self.commit(Commit { patch, commands: updates, ..Commit::default() }).await
    }

    /// Closes the turn that the log left open.
    pub(super) async fn close_turn(&mut self, cause: &str) -> Result<(), Error> {
        let stored = self.stored_log(&self.record, false).await;
        let keys = match &self.observed.turn {
            Turn::Sent { keys, .. } => keys.clone(),
            _ => Vec::new(),
        };
        let mut client_calls = ClientCalls::default();
        let entries = match stored {
            Ok(mut stored) if stored.has_open_turn => {
                let calls = &mut stored.client_calls;
                let entries = self.ended(stored.reader, Vec::new(), cause, calls);
                client_calls = stored.client_calls;
                entries
            }
            Ok(stored) if !keys.is_empty() => {
                self.emitted(stored.reader, delivery::failed_turn(cause))
            }
            // Nothing is appended to a damaged log.
            Ok(_) | Err(Error::Damaged { .. }) => Lines::default(),
            Err(error) => return Err(error),
        };
        let state = match self.observed.turn.may_be_known() {
            true => CommandState::Unknown { reason: cause.to_owned() },
            false => CommandState::Refused { reason: NOT_SENT.to_owned() },
        };
        let sequence = Some(self.next);
        let commands = updates(&keys, &state, sequence).collect();
        self.observed = Observed::resting_with(client_calls);
        let patch = Patch { state: Some(self.state()), ..Patch::default() };
        self.commit(Commit { entries, patch, commands, ..Commit::default() }).await
    }

    /// The entries that end the stream which an agent left open, after the ends of the calls whose answers it
    /// may have. If it waited for the client, the session goes on waiting.
    fn ended(
        &self,
        mut reader: Reader,
        answered: Vec<Event<'static>>,
        cause: &str,
        calls: &mut ClientCalls,
    ) -> Lines {
        let mut entries = Lines::default();
        let mut keep = |calls: &mut ClientCalls, entry: EntryRef<'_>| {
            calls.observe(entry.event, entry.received_at);
            entries.push(entry);
        };
        for event in answered {
            let Ok(_) =
                reader.emit(event, Some(now()), &mut |entry: EntryRef<'_>| keep(calls, entry));
        }
        let outcome = if calls.has_open() { Outcome::WaitingForClient } else { Outcome::Failed };
        let stopped = Some(Stopped { outcome, cause: cause.to_owned() });
        let exit = Exit { stopped, ..Exit::default() };
        let mut keep = |entry: EntryRef<'_>| keep(calls, entry);
        let Ok(_) = reader.end_stream(StreamEnd::Exit(&exit), Some(now()), &mut keep);
        entries
    }

    /// The entries of events that no agent emitted.
    pub(super) fn emitted(
        &self,
        mut reader: Reader,
        events: impl IntoIterator<Item = Event<'static>>,
    ) -> Lines {
        let mut entries = Lines::default();
        let mut keep = |entry: EntryRef<'_>| entries.push(entry);
        for event in events {
            let Ok(_) = reader.emit(event, Some(now()), &mut keep);
        }
        entries
    }

    /// The entries that end a session whose agent is not live.
    pub(super) fn finished(&self, reader: Reader) -> Lines {
        let mut entries = Lines::default();
        let mut keep = |entry: EntryRef<'_>| entries.push(entry);
        let Ok(_) = reader.finish(&Exit::default(), Some(now()), &mut keep);
        entries
    }
}

/// Whether a command is a prompt that was not sent yet.
fn waits(command: &StoredCommand) -> bool {
    command.acknowledgement.state == CommandState::Accepted && is_prompt(&command.body)
}

fn is_prompt(body: &Value) -> bool {
    body.get("type").and_then(Value::as_str) == Some("prompt")
}

fn now() -> u64 {
    system_clock()()
}
