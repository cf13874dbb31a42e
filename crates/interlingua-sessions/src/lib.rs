//! Sessions that outlive the process that serves them: their records, their logs, and the commands
//! that are addressed to them.
//!
//! A [`Store`] keeps all three. What a session's owner changes at once is one [`Commit`]: entries that
//! continue the log, fields of the record, and what became of commands. It is stored as a whole or
//! not at all. So the log states that a prompt is about to be sent exactly if the command is marked
//! as sent.
//!
//! The rules that every store keeps, and one suite of tests that verifies them for each:
//!
//! - A log has no gaps: an entry is appended only behind its predecessor.
//! - A stale owner appends nothing. An owner holds a [`Fence`]; a newer one invalidates it.
//! - A command has an idempotency key. Submitted again, it has the same acknowledgement; with another
//!   content, it is rejected.
//! - An expired or unreadable record is absent. Sessions that are starting, working or waiting do not
//!   expire.
//! - What was acknowledged survives the end of the process (SQLite).
//!
//! A [`Host`] owns the sessions of a store: it takes commands, lets agents do what they ask for, and
//! appends what the agents emit. Which agents there are is known to its
//! [launcher](host::Launcher) alone.
//!
//! This crate knows neither programs nor protocols, and no HTTP.

mod command;
mod error;
pub mod host;
mod id;
mod lines;
mod log;
mod memory;
mod record;
mod sqlite;
mod store;
mod wakes;

pub use command::{
    Acknowledgement, CommandState, CommandUpdate, IdempotencyKey, Queued, StoredCommand,
};
pub use error::Error;
pub use host::Host;
pub use id::SessionId;
/// The tools of a session, which its client runs.
pub use interlingua_agents::{ClientTool, ClientTools};
pub use lines::Lines;
pub use memory::MemoryStore;
pub use record::{Filter, Patch, Place, SessionRecord, State, Waiting};
pub use sqlite::{Durability, ServerLock, SessionRecorder, SqliteStore, import_session_files};
pub use store::{Answer, Clock, Commit, Counts, Fence, Page, Store, Tail};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
