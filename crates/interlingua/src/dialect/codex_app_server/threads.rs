//! Which thread is the session, and which are those of other agents.
//!
//! One server has many threads, and one stream tells one session: the thread that the client opened
//! last while no turn was going on. A thread that an agent started is a sub-agent's, and what it says
//! belongs to the call that started it. A thread that begins to speak in the middle of a turn, and
//! that nobody is known to have started, is told as a sub-agent's too, so that two conversations
//! never become one.

use std::collections::BTreeMap;

use crate::json::Text;

#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The session.
    main: Option<String>,
    agents: BTreeMap<String, Agent>,
    /// Calls that are starting an agent whose thread is not known yet.
    starting: Vec<Text<'static>>,
}

/// Another agent.
#[derive(Debug)]
pub(super) struct Agent {
    /// The call that started it.
    pub(super) call: Text<'static>,
    /// It was told that it is there.
    pub(super) told: bool,
    /// It is done with what it was asked.
    pub(super) ended: bool,
    /// Nobody is known to have started it.
    pub(super) stranger: bool,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker<'t> {
    /// The agent itself.
    Main,
    /// The agent that this call started.
    Agent(&'t Text<'static>),
    /// A thread that was never heard of.
    Unknown,
}

impl Threads {
    /// Who speaks in a thread; without a name it is the session itself.
    #[inline]
    pub(super) fn speaker(&self, thread: Option<&Text<'_>>) -> Speaker<'_> {
        let Some(thread) = thread else { return Speaker::Main };
        if self.is_main(thread) {
            return Speaker::Main;
        }
        match self.agents.get(&*thread.to_plain()) {
            Some(agent) => Speaker::Agent(&agent.call),
            None => Speaker::Unknown,
        }
    }

    #[inline]
    pub(super) fn is_main(&self, thread: &Text<'_>) -> bool {
        self.main.as_deref().is_some_and(|main| *thread == *main)
    }

    /// Makes a thread the session.
    pub(super) fn open(&mut self, thread: &Text<'_>) {
        let thread = thread.to_plain().into_owned();
        self.agents.remove(&thread);
        self.main = Some(thread);
    }

    pub(super) fn has_main(&self) -> bool {
        self.main.is_some()
    }

    pub(super) fn agent(&mut self, thread: &Text<'_>) -> Option<&mut Agent> {
        self.agents.get_mut(&*thread.to_plain())
    }

    /// The agent of a thread that a call started; it is new if nobody spoke of it before.
    pub(super) fn started_by(&mut self, thread: &str, call: &Text<'_>) -> &mut Agent {
        self.agents.entry(thread.to_owned()).or_insert_with(|| Agent {
            call: call.clone().into_owned(),
            told: false,
            ended: false,
            stranger: false,
        })
    }

    /// A call begins to start an agent.
    pub(super) fn begin_start(&mut self, call: &Text<'_>) {
        self.starting.push(call.clone().into_owned());
    }

    /// The call is over.
    pub(super) fn end_start(&mut self, call: &Text<'_>) {
        self.starting.retain(|starting| starting != call);
    }

    /// The turn is over, and with it all calls.
    pub(super) fn end_turn(&mut self) {
        self.starting.clear();
    }

    /// Takes a thread for that of the agent which is just being started, if there is one.
    pub(super) fn adopt(&mut self, thread: &Text<'_>) -> bool {
        let Some(call) = self.starting.first().cloned() else { return false };
        self.started_by(&thread.to_plain(), &call);
        true
    }

    /// Takes a thread that nobody is known to have started for an agent of its own.
    pub(super) fn admit(&mut self, thread: &Text<'_>) {
        let agent = self.started_by(&thread.to_plain(), thread);
        agent.told = true;
        agent.stranger = true;
    }
}
