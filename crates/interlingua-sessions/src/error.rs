//! Why an operation of a store failed.

use crate::SessionId;

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller named a session that cannot exist.
    #[error(
        "this cannot be the id of a session: it has letters, digits, `-` and `_`, and at most 128 of them"
    )]
    InvalidId,
    /// A session with this id exists.
    #[error("there is a session {0} already")]
    Exists(SessionId),
    /// There is no such session, or it has expired.
    #[error("there is no session {0}: it was deleted, has expired, or never existed")]
    NotFound(SessionId),
    /// Another owner has taken the session.
    #[error("the session {0} has another owner by now")]
    StaleOwner(SessionId),
    /// Another process uses the session.
    #[error(
        "the session {0} is in use by another process: wait for its end, or use the server that runs it (--server)"
    )]
    Held(SessionId),
    /// The session is closed, and takes nothing more.
    #[error("the session {0} is closed: continue it with a new one")]
    Closed(SessionId),
    /// The session is not closed.
    #[error("the session {0} is not closed: send it a prompt, or close it and then continue it")]
    NotClosed(SessionId),
    /// The session was continued already.
    #[error(
        "the session {id} is continued by {by} already: send that one a prompt, or close it and then continue it"
    )]
    Continued {
        /// The session.
        id: SessionId,
        /// The one that continues it, and is not closed.
        by: SessionId,
    },
    /// The agent of a session cannot be started; why.
    #[error("{0}")]
    NotLaunched(String),
    /// The entries do not continue the log.
    #[error("the log of the session {id} continues with entry {expected}, not with {found}")]
    Gap {
        /// The session.
        id: SessionId,
        /// The number of the next entry.
        expected: u64,
        /// The number that was given.
        found: u64,
    },
    /// An idempotency key cannot be used.
    #[error("an idempotency key has between 1 and 255 visible ASCII characters")]
    InvalidKey,
    /// The key was used for a command with another content.
    #[error("the idempotency key `{0}` was used for another command: use a new one")]
    KeyReused(String),
    /// The store is used by another process.
    #[error("{0} is in use by another process: stop it, or use it through its server (--server)")]
    InUse(String),
    /// The store was written by a newer version.
    #[error(
        "{path} has version {found} of the schema, and this program knows versions up to {known}: update it"
    )]
    NewerSchema {
        /// The file.
        path: String,
        /// Its version.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
    /// An entry of a log is lost, or is not what was stored.
    #[error(
        "entry {entry} of the session {id} is lost or changed, because the file of the store is damaged; the session \
         takes no more prompts: close or delete it, and begin a new one"
    )]
    Damaged {
        /// The session.
        id: SessionId,
        /// The number of the entry.
        entry: u64,
    },
    /// The store failed.
    #[error("the store of sessions failed: {0}")]
    Failed(String),
    /// The system has no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
}
