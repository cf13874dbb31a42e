//! Commands that are addressed to a session, and what became of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Error;

/// The longest idempotency key.
const LONGEST_KEY: usize = 255;

/// Identifies a command. Whoever sends it again gets the same acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Checks a key.
    pub fn new(key: impl Into<String>) -> Result<Self, Error> {
        let key = key.into();
        let is_visible = |byte: u8| byte.is_ascii_graphic();
        if key.is_empty() || key.len() > LONGEST_KEY || !key.bytes().all(is_visible) {
            return Err(Error::InvalidKey);
        }
        Ok(Self(key))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<IdempotencyKey> for String {
    fn from(key: IdempotencyKey) -> Self {
        key.0
    }
}

impl TryFrom<String> for IdempotencyKey {
    type Error = Error;

    fn try_from(key: String) -> Result<Self, Error> {
        Self::new(key)
    }
}

/// A command, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCommand {
    /// Its place among the commands of the session.
    pub position: u64,
    /// What it asks for. The store does not look at it.
    pub body: Value,
    /// What became of it.
    pub acknowledgement: Acknowledgement,
    /// The requests that it supersedes, once it was [queued](Queued). Until then, its owner may still refuse it.
    pub supersedes: Option<Vec<String>>,
}

impl StoredCommand {
    /// A command that was submitted now.
    pub(crate) fn new(position: u64, key: IdempotencyKey, body: Value) -> Self {
        let state = CommandState::Accepted;
        let acknowledgement = Acknowledgement { key, state, sequence: None };
        Self { position, body, acknowledgement, supersedes: None }
    }

    /// Whether it is a prompt that was queued, and that no agent was given yet.
    pub(crate) fn waits_in_queue(&self) -> bool {
        self.supersedes.is_some() && self.acknowledgement.state == CommandState::Accepted
    }

    /// Whether it is the command with this content.
    pub(crate) fn is_for(&self, body: &Value) -> bool {
        self.body == *body || self.body == digest(body)
    }

    /// Notes how far it got. Of a command that is final, only a digest of the content is kept: it may
    /// contain a secret that the user gave as an answer.
    pub(crate) fn update(&mut self, state: CommandState, sequence: Option<u64>) {
        if state.is_final() {
            self.body = digest(&self.body);
        }
        self.acknowledgement.state = state;
        self.acknowledgement.sequence = sequence;
    }
}

/// What is kept of the content of a command that is final.
fn digest(body: &Value) -> Value {
    let hash = Sha256::digest(body.to_string());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Value::String(format!("sha256:{hex}"))
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Acknowledgement {
    /// The key of the command.
    pub key: IdempotencyKey,
    /// How far it got.
    #[serde(flatten)]
    pub state: CommandState,
    /// The number of the entry at which it took effect, once it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

/// How far a command got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "status")]
#[non_exhaustive]
pub enum CommandState {
    /// It is stored, and will be delivered.
    Accepted,
    /// It is about to be delivered. If the process ends now, no one knows whether it was: it is not
    /// delivered again.
    Delivering,
    /// It was delivered.
    Delivered,
    /// It is not known whether it was delivered, because the host ended meanwhile. It is not delivered
    /// again; a new command is.
    Unknown {
        /// What happened.
        reason: String,
    },
    /// It was not delivered, and will not be.
    Refused {
        /// Why.
        reason: String,
    },
}

impl CommandState {
    /// What becomes of a command when its session is closed, unless it is final.
    pub(crate) fn at_close(&self) -> Option<Self> {
        let reason = || "the session was closed".to_owned();
        match self {
            Self::Accepted => Some(Self::Refused { reason: reason() }),
            Self::Delivering => Some(Self::Unknown { reason: reason() }),
            _ => None,
        }
    }

    /// Whether nothing more happens to the command.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Delivered | Self::Unknown { .. } | Self::Refused { .. })
    }
}

/// What became of a command, as a part of a [`Commit`](crate::Commit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandUpdate {
    /// The command.
    pub key: IdempotencyKey,
    /// How far it got.
    pub state: CommandState,
    /// The number of the entry at which it took effect.
    pub sequence: Option<u64>,
}

/// A command that its owner has queued, as a part of a [`Commit`](crate::Commit). What waited for an answer then was
/// decided then, once: whoever owns the session later does not decide it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// The command.
    pub key: IdempotencyKey,
    /// The requests that it supersedes.
    pub supersedes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_ascii() {
        assert!(IdempotencyKey::new("a-1_:~").is_ok());
        for key in ["", "a b", "ä", "a\u{7f}", &"k".repeat(256)] {
            assert_eq!(IdempotencyKey::new(key), Err(Error::InvalidKey), "{key:?}");
        }
    }

    #[test]
    fn an_acknowledgement_is_flat() {
        let key = IdempotencyKey::new("k").unwrap();
        let state = CommandState::Refused { reason: "no".to_owned() };
        let refused = Acknowledgement { key, state, sequence: Some(3) };
        let json = serde_json::to_value(&refused).unwrap();
        let expected = serde_json::json!({
            "key": "k", "status": "refused", "reason": "no", "sequence": 3,
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<Acknowledgement>(json).unwrap(), refused);
    }
}
