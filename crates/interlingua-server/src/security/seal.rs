//! Seals secrets of other services that a session needs again, so that its record does not contain them.
//!
//! A sealed secret belongs to its session: in the record of another one, it cannot be opened. The key is derived
//! from the secret of the operator, as the one that signs [tokens](super::TokenKey) is.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use interlingua_sessions::SessionId;
use sha2::{Digest, Sha256};

/// Separates this use of the secret from all others.
const PURPOSE: &[u8] = b"interlingua: sealed secrets of sessions\0";

/// The length of what makes each sealed secret different.
const NONCE: usize = 24;

/// Seals secrets, and opens them.
#[derive(Clone)]
pub struct Seal {
    cipher: XChaCha20Poly1305,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Seal")
    }
}

impl Seal {
    /// The seal that belongs to a secret of the operator.
    pub fn from_secret(secret: &str) -> Self {
        let hash = Sha256::new().chain_update(PURPOSE).chain_update(secret).finalize();
        let key: [u8; 32] = hash.into();
        Self { cipher: XChaCha20Poly1305::new(&Key::from(key)) }
    }

    /// Seals a secret of a session; nothing without randomness.
    pub fn seal(&self, session: &SessionId, secret: &str) -> Option<String> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: secret.as_bytes(), aad: session.as_str().as_bytes() };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
        let bytes = nonce.into_iter().chain(sealed);
        Some(bytes.map(|byte| format!("{byte:02x}")).collect())
    }

    /// The secret, if it was sealed for this session with the secret of the same operator.
    pub fn open(&self, session: &SessionId, sealed: &str) -> Option<String> {
        let bytes = super::issued::from_hex(sealed)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: sealed, aad: session.as_str().as_bytes() };
        let secret = self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()?;
        String::from_utf8(secret).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_secret_is_opened_for_its_session_only() {
        let seal = Seal::from_secret("the secret of the operator");
        let id = |id: &str| SessionId::new(id).unwrap();
        let sealed = seal.seal(&id("one"), "token").unwrap();
        assert_eq!(seal.open(&id("one"), &sealed).as_deref(), Some("token"));
        assert_eq!(seal.open(&id("two"), &sealed), None);
        assert_eq!(Seal::from_secret("another").open(&id("one"), &sealed), None);
        let again = seal.seal(&id("one"), "token").unwrap();
        assert_ne!(sealed, again, "the same secret is sealed differently");
        assert!(!sealed.contains("token"));
        for broken in ["", "xyz", "00", &sealed[2..], &format!("{sealed}00")] {
            assert_eq!(seal.open(&id("one"), broken), None, "{broken}");
        }
    }
}
