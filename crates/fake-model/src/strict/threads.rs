//! Conversations across requests: each request must repeat the one before it unchanged, and then
//! what it was answered.
//!
//! A conversation is identified by the first text of its user. A shorter request that repeats the
//! start of a conversation is another branch of it, and no breach.

use std::collections::HashSet;

use serde_json::Value;

use super::echo;
use super::history::{History, Piece, Role};
use crate::check::{Breach, Breaches};
use crate::protocol::Protocol;

/// An answer, and what must come back of it.
#[derive(Debug, Clone)]
pub(crate) struct SentAnswer {
    /// The request that it answered.
    pub(crate) request: usize,
    /// Its blocks, parts or items, or its message.
    pub(crate) pieces: Vec<Value>,
    /// Whether the script sends it completely, so that all of it must come back.
    pub(crate) complete: bool,
}

/// All conversations.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    threads: Vec<Thread>,
    /// All signatures that were sent.
    signatures: HashSet<String>,
}

#[derive(Debug)]
struct Thread {
    protocol: Protocol,
    /// The last request.
    history: History,
    /// The answers to it, of which one is the next message. A repeated request has several.
    answers: Vec<SentAnswer>,
}

impl Threads {
    /// Finds the conversation of a request, and compares the request with it. `left` is whether
    /// the agent closed the connection before it had all of an answer.
    pub(crate) fn follow(
        &mut self,
        protocol: Protocol,
        body: &Value,
        left: &dyn Fn(usize) -> bool,
    ) -> (usize, Breaches) {
        let history = History::of(protocol, body);
        let related = |thread: &Thread| {
            thread.protocol == protocol && thread.history.opening() == history.opening()
        };
        let related: Vec<usize> = (0..self.threads.len())
            .filter(|place| self.threads.get(*place).is_some_and(related))
            .collect();
        let Some(latest) = related.last() else {
            let breaches = self.bound_elsewhere(protocol, &history);
            return (self.add(protocol, history), breaches);
        };
        let length =
            |place: usize| self.threads.get(place).map(|thread| thread.history.pieces.len());
        let continued = related.iter().copied().filter(|place| {
            self.threads.get(*place).is_some_and(|thread| thread.is_continued_by(&history))
        });
        if let Some(place) = continued.max_by_key(|place| length(*place)) {
            let breaches = self.compare_answer(place, &history, left);
            self.replace(place, history);
            return (place, breaches);
        }
        let branches = |place: &usize| {
            self.threads.get(*place).is_some_and(|thread| thread.is_branched_by(&history))
        };
        if related.iter().any(branches) {
            return (self.add(protocol, history), Breaches::new());
        }
        let breaches = self.threads.get(*latest).map(|thread| thread.changes(&history));
        self.replace(*latest, history);
        (*latest, breaches.unwrap_or_default())
    }

    /// Remembers an answer to the last request of a conversation.
    pub(crate) fn sent(&mut self, thread: usize, answer: SentAnswer) {
        if let Some(thread) = self.threads.get_mut(thread) {
            let signatures = answer
                .pieces
                .iter()
                .filter_map(|piece| echo::signature(thread.protocol, piece).map(str::to_owned));
            self.signatures.extend(signatures);
            thread.answers.push(answer);
        }
    }

    fn add(&mut self, protocol: Protocol, history: History) -> usize {
        self.threads.push(Thread { protocol, history, answers: Vec::new() });
        self.threads.len() - 1
    }

    /// Makes a request the last one of its conversation. The answers to it are those to come, and
    /// those to the same request before.
    fn replace(&mut self, place: usize, history: History) {
        if let Some(thread) = self.threads.get_mut(place) {
            if thread.history.pieces != history.pieces {
                thread.answers.clear();
            }
            let tools = thread.history.tools.take();
            let kept = thread.protocol == Protocol::Gemini && history.tools.is_null();
            thread.history = history;
            if kept {
                thread.history.tools = tools;
            }
        }
    }

    /// Anthropic binds a signature to everything before it, so that no other conversation may
    /// contain it.
    fn bound_elsewhere(&self, protocol: Protocol, history: &History) -> Breaches {
        if protocol != Protocol::Messages {
            return Breaches::new();
        }
        let signatures =
            history.pieces.iter().filter_map(|piece| echo::signature(protocol, &piece.value));
        let known = signatures.filter(|signature| self.signatures.contains(*signature));
        let breach = |signature: &str| {
            let detail = format!("{signature:?} is bound to a different conversation");
            (Breach::SignatureMisplaced, detail)
        };
        known.map(breach).collect()
    }

    /// Compares what follows the last request with the answers to it. The one that fits best was
    /// the one that the agent continued; an incomplete one was given up if the request was repeated.
    fn compare_answer(
        &self,
        place: usize,
        history: &History,
        left: &dyn Fn(usize) -> bool,
    ) -> Breaches {
        let Some(thread) = self.threads.get(place) else { return Breaches::new() };
        let new = history.pieces.get(thread.history.pieces.len()..).unwrap_or_default();
        let returned = new.iter().take_while(|piece| piece.role == Role::Model);
        let returned: Vec<&Value> = returned.map(|piece| &piece.value).collect();
        if returned.is_empty() {
            return Breaches::new();
        }
        let is_complete = |answer: &SentAnswer| answer.complete && !left(answer.request);
        let known = |signature: &str| self.signatures.contains(signature);
        let last = thread.answers.len().saturating_sub(1);
        let all = thread.answers.iter().enumerate();
        let all = all.filter(|(place, answer)| *place == last || is_complete(answer));
        let all = all.map(|(_, answer)| {
            let complete = is_complete(answer);
            echo::compare(thread.protocol, &answer.pieces, &returned, complete, &known)
        });
        all.min_by_key(Vec::len).unwrap_or_default()
    }
}

impl Thread {
    fn same_frame(&self, history: &History) -> bool {
        self.history.system == history.system && self.same_tools(history)
    }

    /// Some models of Gemini produce structured output only without tools, and bind nothing to them.
    fn same_tools(&self, history: &History) -> bool {
        let without = self.protocol == Protocol::Gemini && history.tools.is_null();
        without || self.history.tools == history.tools
    }

    fn is_continued_by(&self, history: &History) -> bool {
        self.same_frame(history) && history.pieces.starts_with(&self.history.pieces)
    }

    fn is_branched_by(&self, history: &History) -> bool {
        self.same_frame(history) && self.history.pieces.starts_with(&history.pieces)
    }

    fn changes(&self, history: &History) -> Breaches {
        let mut breaches = Breaches::new();
        if self.history.system != history.system {
            breaches.push((Breach::SystemChanged, "the system prompt".to_owned()));
        }
        if !self.same_tools(history) {
            breaches.push((Breach::ToolsChanged, "the list of tools".to_owned()));
        }
        let mut pairs = self.history.pieces.iter().zip(&history.pieces);
        if let Some(place) = pairs.position(|(old, new)| old != new) {
            let shown = |pieces: &[Piece]| {
                let text = pieces.get(place).map(|piece| piece.value.to_string());
                text.unwrap_or_default().chars().take(200).collect::<String>()
            };
            let (old, new) = (shown(&self.history.pieces), shown(&history.pieces));
            let system = self.history.pieces.get(place).is_some_and(|old| old.role == Role::System);
            let breach = if system { Breach::SystemChanged } else { Breach::HistoryChanged };
            breaches.push((breach, format!("piece {place} was {old} and is {new}")));
        }
        breaches
    }
}
