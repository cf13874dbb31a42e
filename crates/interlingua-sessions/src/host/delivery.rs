//! How a prompt reaches an agent at most once.
//!
//! An *intent* is appended to the log before the prompt is sent, and in the same commit its command
//! is marked as being delivered. When its turn begins, the command is marked as delivered in the same
//! commit. Whoever finds a command that is being delivered does not know whether the agent has the
//! prompt, also if a turn follows the intent: an agent may begin one by itself.

use interlingua::event::{Event, HostState, Outcome, TurnEnded, TurnStarted};
use interlingua::json::{Json, Text};
use interlingua_agents::{LateResult, Prompt, Receipt};
use serde_json::json;

use crate::IdempotencyKey;
use crate::log::INTENT;

/// The most characters of a prompt that its announcement repeats. Most agents do not repeat it at all.
const LONGEST_ANNOUNCED: usize = 64 * 1024;

/// A prompt that waits for its turn.
#[derive(Debug, Clone)]
pub(super) struct QueuedPrompt {
    /// Its command. Of late answers, there are several.
    pub(super) keys: Vec<IdempotencyKey>,
    pub(super) text: String,
    /// The late answers that the agent gets with it.
    pub(super) results: Vec<LateResult>,
}

impl QueuedPrompt {
    pub(super) fn new(key: IdempotencyKey, text: String) -> Self {
        Self { keys: vec![key], text, results: Vec::new() }
    }

    /// The prompt as its agent takes it.
    pub(super) fn to_prompt(&self) -> Prompt {
        let mut prompt = Prompt::resuming(self.results.clone());
        prompt.text.clone_from(&self.text);
        prompt
    }
}

/// How far the current prompt got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// No turn is running, and no prompt is on its way.
    Resting,
    /// The intent to send a prompt was emitted, and is not stored yet.
    Announced(Vec<IdempotencyKey>),
    /// The prompt was sent, and its turn has not begun yet. Until the agent has it, which the receipt
    /// shows, a turn that begins is the agent's own.
    Sent { keys: Vec<IdempotencyKey>, receipt: Receipt },
    /// A turn is running.
    Running,
}

impl Turn {
    /// Whether the agent may have been given the prompt that is on its way.
    pub(super) fn may_be_known(&self) -> bool {
        match self {
            Self::Announced(_) => false,
            Self::Sent { receipt, .. } => receipt.sequence().is_some(),
            Self::Resting | Self::Running => true,
        }
    }
}

/// What the announcement of a prompt repeats of it: all of it, unless it is very long.
pub fn announced(prompt: &str) -> &str {
    let end = prompt.char_indices().nth(LONGEST_ANNOUNCED);
    end.and_then(|(end, _)| prompt.get(..end)).unwrap_or(prompt)
}

/// The event that announces a prompt. Its key is that of the first of its commands.
pub(super) fn announcement(prompt: &QueuedPrompt) -> Event<'static> {
    let text = announced(&prompt.text);
    let raw = Json::from_serialize(&json!({ "key": prompt.keys.first(), "text": text }));
    Event::new(HostState { name: Text::plain(INTENT), raw })
}

/// The events of a turn that an agent was asked for, and that it did not report.
pub(super) fn failed_turn(cause: &str) -> Vec<Event<'static>> {
    turn_of(&[], Outcome::Failed, cause)
}

/// The events of a turn that an agent did not report, in which calls of the client end.
pub(super) fn turn_of(
    results: &[LateResult],
    outcome: Outcome,
    cause: &str,
) -> Vec<Event<'static>> {
    let cause = Some(Text::from(cause.to_owned()));
    let mut events = vec![Event::new(TurnStarted::default())];
    events.extend(results.iter().map(LateResult::to_event));
    events.push(Event::new(TurnEnded { outcome, cause, ..TurnEnded::default() }));
    events
}

#[cfg(test)]
mod tests {
    use interlingua::event::Data;

    use super::*;

    /// Who looks for the announcement of a prompt compares it with the same part.
    #[test]
    fn the_beginning_of_a_long_prompt_is_announced() {
        let long = "ä".repeat(LONGEST_ANNOUNCED + 1);
        assert_eq!(announced(&long).chars().count(), LONGEST_ANNOUNCED);
        assert_eq!(announced("short"), "short");
        let key = IdempotencyKey::new("k").unwrap();
        let event = announcement(&QueuedPrompt::new(key, long.clone()));
        let Data::HostState(state) = event.data else { panic!("{event:?}") };
        let raw: serde_json::Value = serde_json::from_str(state.raw.unwrap().get()).unwrap();
        assert_eq!(raw["text"], json!(announced(&long)));
    }
}
