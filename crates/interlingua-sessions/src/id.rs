//! The ids of sessions.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;

/// The longest id of a session.
const LONGEST: usize = 128;

/// The id of a session: letters, digits, `-` and `_`. It is a part of addresses, keys and file names,
/// so it cannot be anything else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Checks an id.
    pub fn new(id: impl Into<String>) -> Result<Self, Error> {
        let id = id.into();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if id.is_empty() || id.len() > LONGEST || !id.bytes().all(is_plain) {
            return Err(Error::InvalidId);
        }
        Ok(Self(id))
    }

    /// A new id that no one can guess.
    pub fn random() -> Result<Self, Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|problem| Error::NoRandomness(problem.to_string()))?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(hex))
    }

    /// The id that belongs to some words: always the same, and another one for other words.
    pub(crate) fn derived(words: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for word in words {
            hash.update((word.len() as u64).to_le_bytes());
            hash.update(word);
        }
        let hex = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self(hex)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl TryFrom<String> for SessionId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        Self::new(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_plain() {
        for id in ["a", "A-b_9", &"x".repeat(128)] {
            assert_eq!(SessionId::new(id).unwrap().as_str(), id);
        }
        for id in ["", "../x", "a b", "a\n", "ä", "a/b", "a:b", &"x".repeat(129)] {
            assert!(SessionId::new(id).is_err(), "{id:?}");
        }
        assert_ne!(SessionId::random().unwrap(), SessionId::random().unwrap());
    }
}
