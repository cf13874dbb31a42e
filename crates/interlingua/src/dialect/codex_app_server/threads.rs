//! Assigns threads to the session and to sub-agents.
//!
//! A server has many threads, and a stream is one session: the thread that the client opened last
//! while no turn was in progress. A thread that an agent spawned belongs to a sub-agent, and its
//! records belong to the call that spawned it. A thread of unknown origin that emits records during
//! a turn is a sub-agent too, so that two conversations are never mixed.

use std::collections::BTreeMap;

use crate::json::Text;

#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The thread that is the session.
    main: Option<String>,
    agents: BTreeMap<String, Agent>,
    /// Calls that are spawning an agent whose thread is not known yet.
    spawning: Vec<Text<'static>>,
}

/// A sub-agent.
#[derive(Debug)]
pub(super) struct Agent {
    /// The call that spawned it.
    pub(super) call: Text<'static>,
    /// Its start was emitted.
    pub(super) start_emitted: bool,
    /// It has completed its task.
    pub(super) ended: bool,
    /// It is unknown which call spawned it.
    pub(super) of_unknown_origin: bool,
}

/// The owner of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadOwner<'t> {
    /// The session.
    Main,
    /// The sub-agent that this call spawned.
    Agent(&'t Text<'static>),
    /// A thread without an earlier record.
    Unknown,
}

impl Threads {
    /// The owner of a thread. Records without a thread belong to the session.
    #[inline]
    pub(super) fn owner(&self, thread: Option<&Text<'_>>) -> ThreadOwner<'_> {
        let Some(thread) = thread else { return ThreadOwner::Main };
        if self.is_main(thread) {
            return ThreadOwner::Main;
        }
        match self.agents.get(&*thread.to_plain()) {
            Some(agent) => ThreadOwner::Agent(&agent.call),
            None => ThreadOwner::Unknown,
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

    /// The sub-agent of a thread that a call spawned, which is new if the thread is.
    pub(super) fn spawned_by(&mut self, thread: &str, call: &Text<'_>) -> &mut Agent {
        self.agents.entry(thread.to_owned()).or_insert_with(|| Agent {
            call: call.clone().into_owned(),
            start_emitted: false,
            ended: false,
            of_unknown_origin: false,
        })
    }

    /// Records that a call begins to spawn an agent.
    pub(super) fn begin_spawn(&mut self, call: &Text<'_>) {
        self.spawning.push(call.clone().into_owned());
    }

    /// Records that the call has ended.
    pub(super) fn end_spawn(&mut self, call: &Text<'_>) {
        self.spawning.retain(|spawning| spawning != call);
    }

    /// Ends the turn, and with it all calls.
    pub(super) fn end_turn(&mut self) {
        self.spawning.clear();
    }

    /// Assigns a thread to the call that is spawning an agent, if there is one.
    pub(super) fn adopt(&mut self, thread: &Text<'_>) -> bool {
        let Some(call) = self.spawning.first().cloned() else { return false };
        self.spawned_by(&thread.to_plain(), &call);
        true
    }

    /// Makes a thread of unknown origin a sub-agent without a call.
    pub(super) fn admit(&mut self, thread: &Text<'_>) {
        let agent = self.spawned_by(&thread.to_plain(), thread);
        agent.start_emitted = true;
        agent.of_unknown_origin = true;
    }
}
