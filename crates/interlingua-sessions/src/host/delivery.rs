//! How a prompt reaches an agent at most once.
//!
//! An *intent* is appended to the log before the prompt is sent, and in the same commit its command
//! is marked as being delivered. When its turn begins, the command is marked as delivered in the same
//! commit. Whoever finds a command that is being delivered does not know whether the agent has the
//! prompt, also if a turn follows the intent: an agent may begin one by itself.

use interlingua::event::{Event, HostState, Outcome, TurnEnded, TurnStarted};
use interlingua::json::{Json, Text};
use interlingua_agents::Receipt;
use serde_json::json;

use crate::IdempotencyKey;
use crate::log::INTENT;

/// A prompt that waits for its turn.
#[derive(Debug, Clone)]
pub(super) struct QueuedPrompt {
    pub(super) key: IdempotencyKey,
    pub(super) text: String,
}

/// How far the current prompt got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// No turn is running, and no prompt is on its way.
    Resting,
    /// The intent to send a prompt was emitted, and is not stored yet.
    Announced(IdempotencyKey),
    /// The prompt was sent, and its turn has not begun yet. Until the agent has it, which the receipt
    /// shows, a turn that begins is the agent's own.
    Sent { key: IdempotencyKey, receipt: Receipt },
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

/// The event that announces a prompt.
pub(super) fn announcement(key: &IdempotencyKey) -> Event<'static> {
    let raw = Json::from_serialize(&json!({ "key": key }));
    Event::new(HostState { name: Text::plain(INTENT), raw })
}

/// The events of a turn that an agent was asked for, and that it did not report.
pub(super) fn failed_turn(cause: &str) -> [Event<'static>; 2] {
    let cause = Some(Text::from(cause.to_owned()));
    let ended = TurnEnded { outcome: Outcome::Failed, cause, ..TurnEnded::default() };
    [Event::new(TurnStarted::default()), Event::new(ended)]
}
