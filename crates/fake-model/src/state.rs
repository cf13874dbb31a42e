//! The state that all connections share: the position in the script, requests, findings and gates.
//!
//! One lock and one condition variable guard all of it, so that every wait is for a condition and
//! none is a sleep. It knows no wire format and does no I/O.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::check::{Breach, Breaches, Finding};
use crate::conversation::{Conversation, Entry};
use crate::protocol::Block;
use crate::record::{Outcome, Request, ToolResult};
use crate::script::{AtEnd, Reply, Script};
use crate::strict::Threads;

/// The script and the state, for all threads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) address: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub(crate) fn new(script: Script, address: SocketAddr) -> Self {
        Self { script, address, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the state, and wakes all waiting threads.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until the state meets a condition, until the deadline, or until the server stops.
    pub(crate) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut wanted: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = wanted(&mut state) {
                return Some(found);
            }
            if state.stopping {
                return None;
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the next reply of the script for a conversation.
    pub(crate) fn next_reply(
        &self,
        state: &mut State,
        request: usize,
        conversation: &Conversation,
    ) -> (Option<usize>, Reply) {
        let places = self.places(conversation);
        let until = |place: &usize| self.script.replies.get(*place)?.until.as_deref();
        let unused = places.iter().find(|place| match until(place) {
            Some(gate) => !state.gate(gate).open,
            None => !state.used.contains(place),
        });
        let place = match self.script.at_end {
            AtEnd::RepeatLast => unused.or(places.last()),
            AtEnd::Exhausted => unused,
        };
        if let Some(reply) = place.and_then(|place| self.script.replies.get(*place)) {
            state.used.extend(place);
            return (place.copied(), reply.clone());
        }
        let detail = format!("the script has {} replies for this conversation", places.len());
        state.find(request, vec![(Breach::ScriptExhausted, detail)]);
        (None, Reply::text("(script exhausted)"))
    }

    /// The replies for a conversation: those reserved for it, else those for all.
    fn places(&self, conversation: &Conversation) -> Vec<usize> {
        let opening = conversation.opening();
        let places = |wanted: &dyn Fn(Option<&str>) -> bool| -> Vec<usize> {
            let replies = self.script.replies.iter().enumerate();
            let wanted = replies.filter(|(_, reply)| wanted(reply.only_for.as_deref()));
            wanted.map(|(place, _)| place).collect()
        };
        let own = places(&|words| {
            words.is_some_and(|words| {
                opening.contains(words) || conversation.instructions.contains(words)
            })
        });
        if own.is_empty() { places(&|words| words.is_none()) } else { own }
    }
}

/// What has happened so far.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) requests: Vec<Request>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) stopping: bool,
    /// The replies that were taken.
    used: HashSet<usize>,
    calls: Vec<TrackedCall>,
    gates: BTreeMap<String, GateState>,
    /// The number of gates that the answers to requests have not passed yet.
    pub(crate) gates_ahead: HashMap<usize, usize>,
    /// The rests of answers, by the token with which a request continues them.
    pub(crate) rests: HashMap<String, Rest>,
    /// What a strict script compares with later requests.
    pub(crate) threads: Threads,
    /// The last complete answer was paused, so that the next request ends with it.
    pub(crate) paused: bool,
}

/// An answer that a request can continue after a checkpoint.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) place: Option<usize>,
    pub(crate) reply: Reply,
    /// The request that the reply first answered.
    pub(crate) number: usize,
    /// All blocks of the answer.
    pub(crate) whole: Vec<Block>,
    /// The first block after the checkpoint.
    pub(crate) start: usize,
}

/// The state of a gate.
#[derive(Debug, Default)]
pub(crate) struct GateState {
    pub(crate) reached: bool,
    pub(crate) open: bool,
}

/// A call that was sent, and its answer.
#[derive(Debug)]
struct TrackedCall {
    id: String,
    name: String,
    /// The request whose answer contained it.
    request: usize,
    /// The identity of its conversation, and its length at that time.
    opening: String,
    length: usize,
    /// Whether the script sends its reply completely.
    complete: bool,
    /// Whether a later request contained it.
    seen: bool,
    answer: Option<String>,
}

/// The answer in which a call is sent.
#[derive(Debug)]
pub(crate) struct CallPlace<'a> {
    pub(crate) request: usize,
    pub(crate) conversation: &'a Conversation,
    pub(crate) complete: bool,
}

impl State {
    /// Notes that the answer to a request has to pass gates.
    pub(crate) fn has_gates_ahead(&mut self, request: usize, gates: usize) {
        self.gates_ahead.insert(request, gates);
    }

    /// Notes that the answer to a request has passed a gate.
    pub(crate) fn passed_gate(&mut self, request: usize) {
        if let Some(gates) = self.gates_ahead.get_mut(&request) {
            *gates = gates.saturating_sub(1);
        }
    }

    /// Whether the agent gave up the answer to an earlier request. One with a gate ahead was given up,
    /// although the end of its connection may not have been noticed.
    pub(crate) fn gave_up(
        requests: &[Request],
        gates_ahead: &HashMap<usize, usize>,
        number: usize,
    ) -> bool {
        let outcome = requests.get(number).map(|request| request.outcome);
        outcome == Some(Outcome::AgentLeft)
            || gates_ahead.get(&number).is_some_and(|gates| *gates > 0)
    }

    /// The gate of this name.
    pub(crate) fn gate(&mut self, name: &str) -> &mut GateState {
        self.gates.entry(name.to_owned()).or_default()
    }

    /// Records the breaches of a request.
    pub(crate) fn find(&mut self, request: usize, breaches: Breaches) {
        self.findings.extend(breaches.into_iter().map(|(breach, detail)| Finding {
            request,
            breach,
            detail,
        }));
    }

    /// Generates an id for a call, unless it has one, and remembers it.
    pub(crate) fn new_call(&mut self, name: &str, place: &CallPlace, id: Option<String>) -> String {
        let id = id.unwrap_or_else(|| format!("call_{:04}", self.calls.len() + 1));
        self.calls.push(TrackedCall {
            id: id.clone(),
            name: name.to_owned(),
            request: place.request,
            opening: place.conversation.opening(),
            length: place.conversation.entries.len(),
            complete: place.complete,
            seen: false,
            answer: None,
        });
        id
    }

    /// Records which calls are in a request and how they were answered, and finds those that
    /// vanished.
    pub(crate) fn follow_calls(&mut self, request: usize, conversation: &Conversation) {
        let mut breaches = Vec::new();
        let opening = conversation.opening();
        for call in &mut self.calls {
            let mut seen = false;
            for entry in &conversation.entries {
                match entry {
                    Entry::Call { id, .. } => seen |= call.id == *id,
                    Entry::Answer { id, text } if call.answer.is_none() && call.id == *id => {
                        call.answer = Some(text.clone());
                    }
                    _ => {}
                }
            }
            let due = call.complete
                && !Self::gave_up(&self.requests, &self.gates_ahead, call.request)
                && call.opening == opening
                && call.length < conversation.entries.len();
            if due && !seen && !call.seen {
                let detail = format!("call {:?} of {} is not there", call.id, call.name);
                breaches.push((Breach::CallLost, detail));
            }
            call.seen |= seen || due;
        }
        self.find(request, breaches);
    }

    /// The answer to each call that was sent.
    pub(crate) fn tool_results(&self) -> Vec<ToolResult> {
        let result = |call: &TrackedCall| ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            text: call.answer.clone(),
        };
        self.calls.iter().map(result).collect()
    }
}
