//! Tokens for one session that the server issues, for a page in a browser for instance.
//!
//! A token names its session and its expiry, and is signed, so the server keeps none of them. The
//! key is derived from a secret of the operator: tokens survive a restart, other instances with the
//! same secret accept them, and another secret revokes all of them.

use hmac::{Hmac, KeyInit, Mac};
use interlingua_sessions::{SessionId, SessionRecord};
use sha2::{Digest, Sha256, Sha512};

/// What every issued token begins with; its last character is the version of the form.
const PREFIX: &str = "il1";

/// Separates this use of the secret from all others.
const PURPOSE: &[u8] = b"interlingua: tokens of sessions\0";

/// What every token of the relay begins with.
const RELAY_PREFIX: &str = "ilr1";

/// The purpose of tokens of the relay, which are sent in addresses and do less.
const RELAY_PURPOSE: &[u8] = b"interlingua: tokens of the relay\0";

/// Issues tokens, and checks them.
#[derive(Clone)]
pub struct TokenKey {
    sessions: Key,
    relay: Key,
}

/// The key of one kind of tokens.
#[derive(Clone)]
struct Key {
    prefix: &'static str,
    bytes: [u8; 64],
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("TokenKey")
    }
}

impl TokenKey {
    /// The key that belongs to a secret.
    pub fn from_secret(secret: &str) -> Self {
        let key = |prefix, purpose: &[u8]| {
            let hash = Sha512::new().chain_update(purpose).chain_update(secret);
            Key { prefix, bytes: hash.finalize().into() }
        };
        Self { sessions: key(PREFIX, PURPOSE), relay: key(RELAY_PREFIX, RELAY_PURPOSE) }
    }

    /// A token for a session, until a time in milliseconds since 1970.
    pub(crate) fn issue(&self, session: &SessionId, expires_at: u64) -> String {
        self.sessions.issue(session.as_str(), expires_at)
    }

    /// The session of a token, if it is one of ours and has not expired.
    pub(crate) fn session(&self, token: &str, now_ms: u64) -> Option<SessionId> {
        let (session, _) = self.sessions.verify(token, now_ms)?;
        SessionId::new(session).ok()
    }

    /// A token for the relay of a session, which does nothing else.
    pub(crate) fn issue_for_relay(&self, session: &SessionRecord, expires_at: u64) -> String {
        self.relay.issue(&format!("{}.{}", session.id, instance(session)), expires_at)
    }

    /// The session of a token for the relay, which [instance](instance) of it, and when the token expires.
    pub(crate) fn relay_session(
        &self,
        token: &str,
        now_ms: u64,
    ) -> Option<(SessionId, String, u64)> {
        let (subject, expires_at) = self.relay.verify(token, now_ms)?;
        let (session, instance) = subject.split_once('.')?;
        Some((SessionId::new(session).ok()?, instance.to_owned(), expires_at))
    }
}

/// Tells a session from a later one with the same id, such as the next one of a chat.
pub(crate) fn instance(session: &SessionRecord) -> String {
    let SessionRecord { id_seed, created_at, .. } = session;
    let hash = Sha256::digest(format!("{id_seed}.{created_at}"));
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl Key {
    fn issue(&self, subject: &str, expires_at: u64) -> String {
        let content = format!("{}.{subject}.{expires_at}", self.prefix);
        let signature = self.sign(&content).finalize().into_bytes();
        let hex: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{content}.{hex}")
    }

    fn verify<'a>(&self, token: &'a str, now_ms: u64) -> Option<(&'a str, u64)> {
        let (content, signature) = token.rsplit_once('.')?;
        let signature = from_hex(signature).filter(|bytes| bytes.len() == 32)?;
        // It is compared in a time that does not depend on it, before anything of it is used.
        self.sign(content).verify_slice(&signature).ok()?;
        let (prefix, rest) = content.split_once('.')?;
        let (subject, expires_at) = rest.rsplit_once('.')?;
        let expires_at: u64 = expires_at.parse().ok()?;
        (prefix == self.prefix && now_ms < expires_at).then_some((subject, expires_at))
    }

    fn sign(&self, content: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new(&self.bytes.into());
        mac.chain_update(content)
    }
}

/// The bytes that a text names in lower case hexadecimal digits.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        })
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair.iter().fold(0, |all, digit| all << 4 | digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_its_session_until_it_expires() {
        let key = TokenKey::from_secret("secret");
        let session = SessionId::new("s-1_a").unwrap();
        let token = key.issue(&session, 1000);
        assert_eq!(key.session(&token, 999), Some(session));
        assert_eq!(key.session(&token, 1000), None, "it has expired");
        assert_eq!(TokenKey::from_secret("other").session(&token, 0), None);
    }

    #[test]
    fn a_token_of_the_relay_is_for_the_relay_alone() {
        let key = TokenKey::from_secret("secret");
        let session = SessionId::new("s").unwrap();
        let record = SessionRecord::new(session.clone(), "codex", 7);
        let (own, relay) = (key.issue(&session, 1000), key.issue_for_relay(&record, 1000));
        assert_eq!(key.relay_session(&relay, 999), Some((session, instance(&record), 1000)));
        assert_eq!(key.relay_session(&relay, 1000), None, "it has expired");
        assert_eq!((key.session(&relay, 0), key.relay_session(&own, 0)), (None, None));
        let renamed = relay.replacen(RELAY_PREFIX, PREFIX, 1);
        assert_eq!((key.session(&renamed, 0), key.relay_session(&renamed, 0)), (None, None));
        for end in 0..relay.len() {
            assert_eq!(key.relay_session(&relay[..end], 0), None, "{end}");
        }
    }

    #[test]
    fn a_forged_or_truncated_token_is_none() {
        let key = TokenKey::from_secret("secret");
        let token = key.issue(&SessionId::new("s").unwrap(), 1000);
        for (at, byte) in token.bytes().enumerate() {
            assert_eq!(key.session(&token[..at], 0), None, "{at}");
            let mut forged = token.clone().into_bytes();
            forged[at] = if byte == b'1' { b'2' } else { b'1' };
            assert_eq!(key.session(&String::from_utf8(forged).unwrap(), 0), None, "{at}");
        }
        for token in ["", ".", "il1", "il1.s.1000.", "il1.s.1000.ä"] {
            assert_eq!(key.session(token, 0), None, "{token}");
        }
        assert_eq!(key.session(&format!("{token}0"), 0), None);
        assert_eq!(key.session(&token.to_uppercase(), 0), None);
    }
}
