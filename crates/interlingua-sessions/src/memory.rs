//! A store in memory, for tests and for sessions that need not outlive their process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use crate::store::{check_continuation, system_clock};
use crate::wakes::Wakes;
use crate::{
    Acknowledgement, Answer, Clock, CommandState, Commit, Counts, Error, Fence, Filter,
    IdempotencyKey, Page, Patch, SessionId, SessionRecord, State, Store, StoredCommand, Tail,
};

/// Keeps sessions in memory.
pub struct MemoryStore {
    clock: Clock,
    sessions: Mutex<Sessions>,
    wakes: Wakes,
}

#[derive(Default)]
struct Sessions {
    sessions: HashMap<SessionId, StoredSession>,
    /// The last fence. It counts for all sessions, so that one is not repeated after a deletion.
    last_fence: u64,
}

struct StoredSession {
    record: SessionRecord,
    fence: u64,
    /// It has an owner.
    owned: bool,
    /// The JSON form of each entry, with its line feed.
    lines: Vec<Vec<u8>>,
    commands: Vec<StoredCommand>,
    keys: BTreeMap<IdempotencyKey, usize>,
    /// The places of commands that were withdrawn.
    withdrawn: BTreeSet<usize>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_clock(system_clock())
    }
}

impl StoredSession {
    fn tail(&self) -> Tail {
        Tail {
            next: self.lines.len() as u64,
            closed: self.record.state == State::Ended,
            commands: self.commands.len() as u64,
        }
    }

    fn use_at(&mut self, now: u64) {
        self.record.used_at = self.record.used_at.max(now);
    }
}

impl MemoryStore {
    /// A store with a clock of the caller's own.
    pub fn with_clock(clock: Clock) -> Self {
        Self { clock, sessions: Mutex::default(), wakes: Wakes::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an operation on a session that exists.
    fn with<T>(
        &self,
        id: &SessionId,
        work: impl FnOnce(&mut StoredSession, u64) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let now = (self.clock)();
        let mut sessions = self.lock();
        let session = sessions.sessions.get_mut(id).filter(|it| !it.record.is_expired(now));
        let session = session.ok_or_else(|| Error::NotFound(id.clone()))?;
        let before = session.tail();
        let done = work(session, now);
        let after = session.tail();
        drop(sessions);
        if before != after {
            self.wakes.moved(id, after);
        }
        done
    }
}

/// An operation that is done at once.
fn ready<'a, T: Send + 'a>(result: Result<T, Error>) -> Answer<'a, T> {
    Box::pin(std::future::ready(result))
}

impl Store for MemoryStore {
    fn create(&self, record: SessionRecord) -> Answer<'_, ()> {
        let now = (self.clock)();
        let mut sessions = self.lock();
        let known = sessions.sessions.get(&record.id);
        if known.is_some_and(|known| !known.record.is_expired(now)) {
            return ready(Err(Error::Exists(record.id)));
        }
        let session = StoredSession {
            fence: 0,
            owned: false,
            lines: Vec::new(),
            commands: Vec::new(),
            keys: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            record: record.clone(),
        };
        sessions.sessions.insert(record.id, session);
        ready(Ok(()))
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<SessionRecord>> {
        let found = self.with(id, |session, _| Ok(session.record.clone()));
        ready(Ok(found.ok()))
    }

    fn update<'a>(&'a self, id: &'a SessionId, patch: Patch) -> Answer<'a, SessionRecord> {
        let now = (self.clock)();
        let mut sessions = self.lock();
        let is_kept = |it: &&StoredSession| !it.record.is_expired(now);
        let known = |id: &SessionId| {
            let known = sessions.sessions.get(id).filter(is_kept);
            Ok(known.map(|known| known.record.clone()))
        };
        let checked = match (known(id), &patch.continued_by) {
            (Ok(Some(record)), Some(by)) => check_continuation(&record, by, known),
            (Ok(Some(_)), None) => Ok(()),
            _ => Err(Error::NotFound(id.clone())),
        };
        let session = checked.and_then(|()| {
            sessions.sessions.get_mut(id).ok_or_else(|| Error::NotFound(id.clone()))
        });
        ready(session.map(|session| {
            session.record.apply(&Patch { state: None, ..patch });
            session.record.updated_at = session.record.updated_at.max(now);
            session.use_at(now);
            session.record.clone()
        }))
    }

    fn touch<'a>(&'a self, id: &'a SessionId) -> Answer<'a, ()> {
        ready(self.with(id, |session, now| {
            session.use_at(now);
            Ok(())
        }))
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool> {
        let now = (self.clock)();
        let removed = self.lock().sessions.remove(id);
        if let Some(removed) = &removed {
            self.wakes.moved(id, Tail { closed: true, ..removed.tail() });
        }
        ready(Ok(removed.is_some_and(|removed| !removed.record.is_expired(now))))
    }

    fn list<'a>(&'a self, filter: &'a Filter) -> Answer<'a, Vec<SessionRecord>> {
        let now = (self.clock)();
        let sessions = self.lock();
        let is_listed =
            |record: &&SessionRecord| !record.is_expired(now) && filter.contains(record);
        let records = sessions.sessions.values().map(|session| &session.record);
        let mut found: Vec<_> = records.filter(is_listed).cloned().collect();
        drop(sessions);
        found.sort_by(|one, other| {
            other.used_at.cmp(&one.used_at).then_with(|| one.id.cmp(&other.id))
        });
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        ready(Ok(found))
    }

    fn counts(&self) -> Answer<'_, Counts> {
        let now = (self.clock)();
        let mut counts = Counts::default();
        let sessions = self.lock();
        for session in sessions.sessions.values().filter(|it| !it.record.is_expired(now)) {
            *counts.sessions.entry(session.record.state.name().to_owned()).or_default() += 1;
            let commands = session.commands.iter().enumerate();
            let kept = commands.filter(|(at, _)| !session.withdrawn.contains(at));
            let waiting = kept.filter(|(_, command)| command.waits_in_queue());
            counts.waiting_prompts += waiting.count() as u64;
        }
        ready(Ok(counts))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Fence> {
        let now = (self.clock)();
        let mut sessions = self.lock();
        let Sessions { sessions, last_fence } = &mut *sessions;
        let found = sessions.get_mut(id).filter(|it| !it.record.is_expired(now));
        let Some(session) = found else {
            return ready(Err(Error::NotFound(id.clone())));
        };
        *last_fence += 1;
        session.fence = *last_fence;
        let follows_lost_owner = std::mem::replace(&mut session.owned, true);
        ready(Ok(Fence { token: *last_fence, follows_lost_owner }))
    }

    fn release<'a>(&'a self, id: &'a SessionId, fence: Fence) -> Answer<'a, ()> {
        if let Some(session) = self.lock().sessions.get_mut(id)
            && session.fence == fence.token
        {
            session.owned = false;
        }
        ready(Ok(()))
    }

    fn commit<'a>(&'a self, id: &'a SessionId, fence: Fence, commit: Commit) -> Answer<'a, Tail> {
        ready(self.with(id, |session, now| {
            if session.fence != fence.token {
                return Err(Error::StaleOwner(id.clone()));
            }
            let tail = session.tail();
            if tail.closed {
                return Err(Error::Closed(id.clone()));
            }
            let lines = commit.entries.continuing(id, tail.next)?;
            let lines = lines.split_inclusive(|byte| *byte == b'\n');
            session.lines.extend(lines.map(<[u8]>::to_vec));
            for update in commit.commands {
                let known = session.keys.get(&update.key).copied();
                let command = known.and_then(|at| session.commands.get_mut(at));
                if let Some(command) = command.filter(|it| !it.acknowledgement.state.is_final()) {
                    command.update(update.state, update.sequence);
                }
            }
            for queued in commit.queued {
                let known = session.keys.get(&queued.key).copied();
                if let Some(command) = known.and_then(|at| session.commands.get_mut(at)) {
                    command.supersedes.get_or_insert(queued.supersedes);
                }
            }
            session.record.apply(&commit.patch);
            if session.record.state == State::Ended {
                let next = session.lines.len() as u64;
                for command in &mut session.commands {
                    if let Some(state) = command.acknowledgement.state.at_close() {
                        command.update(state, Some(next));
                    }
                }
            }
            session.record.updated_at = session.record.updated_at.max(now);
            session.use_at(now);
            Ok(session.tail())
        }))
    }

    fn read<'a>(&'a self, id: &'a SessionId, from: u64, limit: usize) -> Answer<'a, Page> {
        ready(self.with(id, |session, _| {
            let mut page = Page { next: from, tail: session.tail(), ..Page::default() };
            let start = usize::try_from(from).unwrap_or(usize::MAX);
            for line in session.lines.iter().skip(start) {
                if !page.lines.is_empty() && page.lines.len() + line.len() > limit {
                    break;
                }
                page.lines.extend_from_slice(line);
                page.next += 1;
            }
            Ok(page)
        }))
    }

    fn submit<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        body: Value,
    ) -> Answer<'a, (Acknowledgement, bool)> {
        ready(self.with(id, |session, now| {
            if let Some(known) = session.keys.get(&key).and_then(|at| session.commands.get(*at)) {
                return match known.is_for(&body) {
                    true => Ok((known.acknowledgement.clone(), false)),
                    false => Err(Error::KeyReused(key.into())),
                };
            }
            if session.tail().closed {
                return Err(Error::Closed(id.clone()));
            }
            session.use_at(now);
            let position = session.commands.len();
            let command = StoredCommand::new(position as u64, key.clone(), body);
            let acknowledgement = command.acknowledgement.clone();
            session.keys.insert(key, position);
            session.commands.push(command);
            Ok((acknowledgement, true))
        }))
    }

    fn acknowledged<'a>(
        &'a self,
        id: &'a SessionId,
        key: &'a IdempotencyKey,
    ) -> Answer<'a, Option<Acknowledgement>> {
        ready(self.with(id, |session, _| {
            let known = session.keys.get(key).and_then(|at| session.commands.get(*at));
            Ok(known.map(|known| known.acknowledgement.clone()))
        }))
    }

    fn withdraw<'a>(&'a self, id: &'a SessionId, key: &'a IdempotencyKey) -> Answer<'a, bool> {
        ready(self.with(id, |session, _| {
            let known = session.keys.get(key).and_then(|at| session.commands.get(*at));
            let is_open =
                known.is_some_and(|it| it.acknowledgement.state == CommandState::Accepted);
            // Its position is not used again.
            if is_open && let Some(at) = session.keys.remove(key) {
                session.withdrawn.insert(at);
            }
            Ok(is_open)
        }))
    }

    fn open_commands<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Vec<StoredCommand>> {
        ready(self.with(id, |session, _| {
            let is_open = |it: &StoredCommand| !it.acknowledgement.state.is_final();
            let commands = session.commands.iter().enumerate();
            let kept = commands.filter(|(at, _)| !session.withdrawn.contains(at));
            Ok(kept.map(|(_, command)| command).filter(|it| is_open(it)).cloned().collect())
        }))
    }

    fn watch(&self, id: &SessionId) -> watch::Receiver<Tail> {
        let receiver = self.wakes.watch(id);
        if let Ok(tail) = self.with(id, |session, _| Ok(session.tail())) {
            self.wakes.moved(id, tail);
        }
        receiver
    }

    fn sweep(&self) -> Answer<'_, usize> {
        let now = (self.clock)();
        let mut sessions = self.lock();
        let before = sessions.sessions.len();
        sessions.sessions.retain(|_, session| !session.record.is_expired(now));
        ready(Ok(before - sessions.sessions.len()))
    }

    fn probe(&self) -> Answer<'_, ()> {
        ready(Ok(()))
    }
}
