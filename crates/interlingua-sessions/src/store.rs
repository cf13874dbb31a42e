//! What every store of sessions can do.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::watch;

use crate::{
    Acknowledgement, CommandUpdate, Error, Filter, IdempotencyKey, Lines, Patch, Queued, SessionId,
    SessionRecord, State, StoredCommand,
};

/// The result of an operation.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Tells the time, in milliseconds since 1970. Tests have their own.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The clock of the system.
pub(crate) fn system_clock() -> Clock {
    Arc::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Refuses that a session is continued by another one as well: both would use the same session of the agent, of
/// which most agents lose a turn then. One that was closed gives way, unless it is continued itself.
pub(crate) fn check_continuation(
    record: &SessionRecord,
    by: &SessionId,
    load: impl Fn(&SessionId) -> Result<Option<SessionRecord>, Error>,
) -> Result<(), Error> {
    let (mut next, mut passed) = (record.continued_by.clone(), Vec::new());
    while let Some(id) = next.filter(|id| id != by && !passed.contains(id)) {
        let Some(known) = load(&id)? else { return Ok(()) };
        if known.state != State::Ended {
            return Err(Error::Continued { id: record.id.clone(), by: id });
        }
        next = known.continued_by;
        passed.push(id);
    }
    Ok(())
}

/// Proves who owns a session. A newer fence invalidates all older ones, and none is ever repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    pub(crate) token: u64,
    pub(crate) follows_lost_owner: bool,
}

impl Fence {
    /// Whether the owner before has not [released](Store::release) the session: its process was lost,
    /// and its agent may still be ending.
    pub fn follows_lost_owner(self) -> bool {
        self.follows_lost_owner
    }
}

/// What the owner of a session changes at once.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// Entries that continue the log.
    pub entries: Lines,
    /// Changed fields of the record.
    pub patch: Patch,
    /// What became of commands.
    pub commands: Vec<CommandUpdate>,
    /// Commands that were queued. For one that was queued before, nothing changes.
    pub queued: Vec<Queued>,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The entries, in the JSON form of the dialect `events`, one per line.
    pub lines: Vec<u8>,
    /// The number of the entry after the last one in the page.
    pub next: u64,
    /// The end of the log, when the page was read.
    pub tail: Tail,
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// The number of the next entry.
    pub next: u64,
    /// Nothing more follows.
    pub closed: bool,
    /// The number of commands that were submitted.
    pub commands: u64,
}

/// How many there are of what a store keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// The sessions, by the [name](crate::State::name) of their state.
    pub sessions: BTreeMap<String, u64>,
    /// The prompts that are queued, and that no agent was given yet.
    pub waiting_prompts: u64,
}

/// Keeps sessions.
///
/// Operations of one session take effect in the order in which they were called.
pub trait Store: Send + Sync {
    /// Creates a session.
    fn create(&self, record: SessionRecord) -> Answer<'_, ()>;

    /// Loads the record of a session; `None` if there is none, or if it has expired.
    fn load<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<SessionRecord>>;

    /// Changes fields of a record, except for its state, also if the session is closed or owned by
    /// someone else. Returns the changed record. A session that is continued by another one, which is not
    /// closed, is [rejected](Error::Continued) if the change names a further one.
    fn update<'a>(&'a self, id: &'a SessionId, patch: Patch) -> Answer<'a, SessionRecord>;

    /// Notes that a session was used, so that it is kept.
    fn touch<'a>(&'a self, id: &'a SessionId) -> Answer<'a, ()>;

    /// Deletes a session, its log and its commands. Returns whether there was one.
    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool>;

    /// Lists sessions, the ones that were used last first.
    fn list<'a>(&'a self, filter: &'a Filter) -> Answer<'a, Vec<SessionRecord>>;

    /// Counts what there is, for operators.
    fn counts(&self) -> Answer<'_, Counts>;

    /// Takes the ownership of a session. Earlier owners can commit nothing more. A session that
    /// another process holds is rejected.
    fn claim<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Fence>;

    /// Gives up the ownership of a session, so that another process can take it.
    fn release<'a>(&'a self, id: &'a SessionId, fence: Fence) -> Answer<'a, ()>;

    /// Stores a change of the owner, completely or not at all. Returns the end of the log.
    fn commit<'a>(&'a self, id: &'a SessionId, fence: Fence, commit: Commit) -> Answer<'a, Tail>;

    /// Reads entries from a number on: complete ones, and not many more bytes than `limit`, but at
    /// least one if there is one.
    fn read<'a>(&'a self, id: &'a SessionId, from: u64, limit: usize) -> Answer<'a, Page>;

    /// Stores a command, unless it is known. Returns it, and whether it is new. A new command for a
    /// session that another process holds is rejected.
    fn submit<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        body: Value,
    ) -> Answer<'a, (Acknowledgement, bool)>;

    /// What became of a command that was submitted; `None` if there is none with this key.
    fn acknowledged<'a>(
        &'a self,
        id: &'a SessionId,
        key: &'a IdempotencyKey,
    ) -> Answer<'a, Option<Acknowledgement>>;

    /// Removes a command that was stored and has not begun. Returns whether there was one.
    fn withdraw<'a>(&'a self, id: &'a SessionId, key: &'a IdempotencyKey) -> Answer<'a, bool>;

    /// The commands of a session that are not final, in the order in which they were submitted.
    fn open_commands<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Vec<StoredCommand>>;

    /// Follows the end of a log. It only wakes readers, which then [`read`](Self::read).
    fn watch(&self, id: &SessionId) -> watch::Receiver<Tail>;

    /// Deletes what has expired. Returns how many sessions that were.
    fn sweep(&self) -> Answer<'_, usize>;

    /// The sessions whose owner was lost: its process has ended without releasing them. A store whose owners
    /// end with it has none.
    fn lost(&self) -> Answer<'_, Vec<SessionId>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Checks that something can be stored.
    fn probe(&self) -> Answer<'_, ()>;
}
