//! What a host needs to know of agents: how one is prepared for a session, and what it remembers.

use interlingua_agents::{Agent, Options};

use crate::SessionRecord;

/// Prepares agents for sessions. The host starts them; it knows neither programs nor protocols.
pub trait Launcher: Send + Sync {
    /// Checks that the agent of a session exists and supports what the record requests. The error
    /// is for the person who asked.
    fn check(&self, record: &SessionRecord) -> Result<(), String>;

    /// Whether the agent has no memory of its own, and continues from the log of the session.
    fn needs_log(&self, record: &SessionRecord) -> bool;

    /// Prepares the agent of a session: it resumes the newest of its
    /// [own sessions](SessionRecord::native_ids), if there is one.
    fn prepare(&self, record: &SessionRecord, logs: &Logs) -> Result<Prepared, String>;

    /// Whether the agent still has the newest of its own sessions; `None` if that is not known. Without it, a
    /// new one begins with what the log knows.
    fn remembers(&self, record: &SessionRecord) -> Option<bool>;

    /// Whether the agent has received a prompt at or after a time, in milliseconds since 1970,
    /// according to the files in which it keeps its sessions.
    fn received(&self, record: &SessionRecord, prompt: &str, since: u64) -> Received;
}

/// What an agent without a memory of its own [continues from](Launcher::needs_log): entries, one per
/// line.
#[derive(Debug, Default)]
pub struct Logs {
    /// The log of the session.
    pub own: Vec<u8>,
    /// The log of the session that it continues, if it does.
    pub earlier: Vec<u8>,
}

/// An agent that can be started.
pub struct Prepared {
    /// The agent.
    pub agent: Box<dyn Agent>,
    /// The policy, the limits, and how its output is read. The host sets who is asked, and the log
    /// that is continued.
    pub options: Options,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Prepared").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Whether an agent has received a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// The prompt is in the agent's own files, so it must not be sent again.
    Yes,
    /// The agent's own files exist without the prompt, so it was not sent.
    No,
    /// There are no such files, or they do not decide it.
    Unknown,
}
