//! A live session with an agent: commands go in, entries come out.
//!
//! An [`Agent`] is anything that can hold a conversation: a process, and whatever else implements
//! the trait. Starting one returns a [`Session`]: a [`Handle`], whose calls report whether they were
//! accepted, and [`Entries`], a bounded stream. What consumes the entries is the caller's choice.
//! If it is slow, the agent is not: its output waits where the implementation keeps it.
//!
//! This module knows no protocol and no process.

mod commands;
mod deadlines;
mod entries;
mod late_results;
mod prompts;
mod requests;
mod time;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use interlingua::event::Outcome;
use interlingua::{Exit, ReadOptions, Reader, Stopped};
use tokio::sync::mpsc;

use crate::error::Error;
use crate::permission::Policy;
use crate::record::Recorder;
use crate::redaction::Redacted;

pub(crate) use commands::{Command, Commands, Sent, stopped_again};
pub use commands::{Handle, Refused};
pub use deadlines::Deadlines;
pub(crate) use deadlines::{Clock, Due, Limit};
pub use entries::Entries;
pub(crate) use entries::{ConsumerChange, Outbox};
pub use late_results::{CallOutcome, LateResult};
pub(crate) use late_results::{LONGEST_RESULT, long_result_note};
pub(crate) use prompts::PromptQueue;
pub use prompts::{Prompt, Receipt};
pub use requests::{ClientCall, InputRequest, Question, QuestionRequest, Wanted};
pub(crate) use requests::{PendingRequests, no_user};
pub(crate) use time::{fresh_seed, now_ms, until};

/// Something that can hold a conversation.
pub trait Agent: Send {
    /// Starts the agent. It waits for its first prompt.
    fn start(self: Box<Self>, options: Options) -> Starting;
}

/// An agent that is being started.
pub type Starting = Pin<Box<dyn Future<Output = Result<Session, Error>> + Send>>;

/// A started session.
#[derive(Debug)]
pub struct Session {
    /// Sends commands to the session. When the last handle is dropped, the session ends as if it had
    /// been [finished](Handle::finish).
    pub handle: Handle,
    /// The entries of the session.
    pub entries: Entries,
    /// The seed of its ids, which every writer of its entries needs.
    pub id_seed: u64,
}

/// The options of a session.
#[derive(Debug)]
pub struct Options {
    /// How the agent's output is read: which raw records are kept, and the seed of the ids.
    pub read: ReadOptions,
    /// A reader at the end of a stored log, which the session continues
    /// ([`Continuation`](interlingua::Continuation)). Its options replace `read`, but for the seed.
    /// Such a log can be continued again, so the end of the session is emitted only if the session
    /// is [closed](Handle::close).
    pub reader: Option<Reader>,
    /// What the agent may do.
    pub policy: Policy,
    /// The time limits.
    pub deadlines: Deadlines,
    /// Receives what the user has to decide or answer. Without it, permissions are denied, and
    /// questions are declined.
    pub input_requests: Option<mpsc::UnboundedSender<InputRequest>>,
    /// Records the agent's own bytes.
    pub record: Option<Recorder>,
    /// The limit, in bytes, of output that the consumer of the entries has not taken; beyond it, the
    /// agent is stopped.
    pub max_unread: u64,
    /// The minimum time between two reads of the output of a process that prints fast. What is
    /// printed after a pause is read at once. For a consumer that draws, it is the time between two
    /// drawings.
    pub read_interval: Duration,
}

impl Default for Options {
    /// Options for a session in which no user can be asked.
    fn default() -> Self {
        Self {
            read: ReadOptions::default(),
            reader: None,
            policy: Policy::default(),
            deadlines: Deadlines::default(),
            input_requests: None,
            record: None,
            max_unread: 4 << 30,
            read_interval: Duration::from_millis(3),
        }
    }
}

/// Why a session is stopped before its agent has ended its work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The user interrupted it.
    Interrupted,
    /// The session was closed.
    Closed,
    /// The consumer takes no more entries.
    ConsumerGone,
    /// The output could not be written; why.
    OutputFailed(String),
    /// A time limit was exceeded; which one.
    TimedOut(String),
    /// The agent cannot do what was requested; why.
    GaveUp(String),
    /// The session is continued later. A turn that waits for the client goes on waiting. An agent that can
    /// defer a call ends its turn itself; others are killed, so that they do not record an interrupt.
    Suspended,
}

impl Stop {
    pub(crate) fn to_stopped(&self) -> Stopped {
        let (outcome, cause) = match self {
            Self::Interrupted => (Outcome::Cancelled, "the run was interrupted".to_owned()),
            Self::Closed => (Outcome::Cancelled, "the session was closed".to_owned()),
            Self::ConsumerGone => (Outcome::Cancelled, "the consumer closed the output".to_owned()),
            Self::OutputFailed(why) => {
                (Outcome::Failed, format!("the output could not be written: {why}"))
            }
            Self::TimedOut(what) => (Outcome::TimedOut, what.clone()),
            Self::GaveUp(why) => (Outcome::Failed, why.clone()),
            Self::Suspended => (Outcome::WaitingForClient, "the session was suspended".to_owned()),
        };
        Stopped { outcome, cause }
    }
}

/// The result of a session.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The outcome of the last turn; `None` if there was no turn.
    pub outcome: Option<Outcome>,
    /// How the last process of the agent ended.
    pub exit: Exit,
    /// Why the session was stopped, if it was.
    pub stop: Option<Stop>,
    /// The process did not exit in time after its work had ended, and was terminated.
    pub exit_overdue: bool,
    /// The agent printed nothing at all.
    pub silent: bool,
    /// Some of the agent's output may be missing: the agent truncated it, or the disk is full.
    pub truncated: bool,
    /// The number of processes that the agent left behind; they were killed.
    pub orphans: usize,
    /// The keys that the agent printed; they were redacted.
    pub redacted: Vec<Redacted>,
    /// Why the recording is incomplete, if it is.
    pub recording: Option<String>,
}

impl Ended {
    /// The exit code for this result: 0 completed, 1 failed, 124 timed out, 130 interrupted.
    pub fn code(&self) -> u8 {
        match (&self.stop, &self.outcome) {
            (Some(Stop::TimedOut(_)), _) | (_, Some(Outcome::TimedOut)) => 124,
            (Some(Stop::Interrupted | Stop::ConsumerGone), _) => 130,
            (Some(Stop::OutputFailed(_) | Stop::GaveUp(_)), _) => 1,
            (Some(Stop::Closed), Some(Outcome::Cancelled)) => 130,
            (_, None | Some(Outcome::Completed | Outcome::WaitingForClient))
                if !self.contradicts() =>
            {
                0
            }
            _ => 1,
        }
    }

    /// Whether there was a failure although the stream reports success.
    fn contradicts(&self) -> bool {
        let failed = self.exit.signal.is_some() || self.exit.code.is_some_and(|code| code != 0);
        self.truncated
            || self.recording.is_some()
            || (self.stop.is_none() && !self.exit_overdue && failed)
    }
}
