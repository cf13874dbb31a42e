//! What a host needs to know of agents: how one is prepared for a session, and what it remembers.

use interlingua::Entry;
use interlingua::event::Data;
use interlingua_agents::remote::RelayAccess;
use interlingua_agents::{Agent, Options};
use serde_json::Value;

use crate::{SessionId, SessionRecord, log};

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

    /// What the record of a session keeps of a relay, with which [`prepare`](Self::prepare) lets a remote agent go on.
    /// Its token is a secret, which no record may contain as it is. `None` if nothing is kept.
    fn keep_relay(&self, session: &SessionId, relay: &RelayAccess) -> Option<Value> {
        let _ = (session, relay);
        None
    }
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

impl Logs {
    /// The text of the last prompt that was given to the agent.
    pub fn last_prompt(&self) -> Option<String> {
        self.own.rsplit(|byte| *byte == b'\n').find_map(|line| {
            // Most lines have nothing to do with prompts, and need not be parsed.
            memchr::memmem::find(line, b"host_state")?;
            let entry: Entry = serde_json::from_slice(line).ok()?;
            match &entry.event.data {
                Data::HostState(state) => log::announced(state).filter(|text| !text.is_empty()),
                _ => None,
            }
        })
    }
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
