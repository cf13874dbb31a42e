//! Bearer tokens, and what each permits. Only their hashes are kept in memory.

use interlingua_sessions::{SessionId, SessionRecord};
use sha2::{Digest, Sha256};

use super::rate::Readers;
use crate::error::ApiError;

/// A token with which requests are sent.
#[derive(Clone)]
pub struct Token {
    hash: [u8; 32],
    scope: Scope,
}

/// What a token permits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Everything.
    Admin,
    /// The sessions of an owner. Those of others do not exist.
    Owner(String),
    /// Reading one session, and sending commands to it.
    Session(SessionId),
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Token").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl Token {
    /// A token that permits what its scope names.
    pub fn new(secret: &str, scope: Scope) -> Self {
        Self { hash: hash(secret), scope }
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Compares hashes in a time that does not depend on them.
    pub(super) fn is(&self, hash: &[u8; 32]) -> bool {
        let difference =
            self.hash.iter().zip(hash).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(difference) == 0
    }
}

pub(super) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// What the sender of a request may do.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    scope: Scope,
    readers: Readers,
}

impl Access {
    pub(super) fn new(scope: Scope, readers: Readers) -> Self {
        Self { scope, readers }
    }

    /// The places of the live readers that have this token.
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Whether a session may be looked up at all.
    pub(crate) fn may_name(&self, id: &SessionId) -> bool {
        match &self.scope {
            Scope::Admin | Scope::Owner(_) => true,
            Scope::Session(own) => own == id,
        }
    }

    pub(crate) fn may_see(&self, record: &SessionRecord) -> bool {
        match &self.scope {
            Scope::Admin => true,
            Scope::Owner(owner) => record.owner.as_ref() == Some(owner),
            Scope::Session(own) => *own == record.id,
        }
    }

    /// The owner of new sessions, and of those that are listed.
    pub(crate) fn owner(&self) -> Option<&str> {
        match &self.scope {
            Scope::Owner(owner) => Some(owner),
            Scope::Admin | Scope::Session(_) => None,
        }
    }

    /// The only session that exists for the caller.
    pub(crate) fn only_session(&self) -> Option<&SessionId> {
        match &self.scope {
            Scope::Session(id) => Some(id),
            Scope::Admin | Scope::Owner(_) => None,
        }
    }

    /// Requires a token that is not bound to one session.
    pub(crate) fn require_many_sessions(&self) -> Result<(), ApiError> {
        match self.only_session() {
            None => Ok(()),
            Some(_) => Err(ApiError::forbidden(
                "token_is_for_one_session",
                "this token reads one session and sends commands to it: use a token of its owner",
            )),
        }
    }

    pub(crate) fn require_admin(&self) -> Result<(), ApiError> {
        match self.scope {
            Scope::Admin => Ok(()),
            Scope::Owner(_) | Scope::Session(_) => {
                Err(ApiError::forbidden("admin_only", "this needs a token of an administrator"))
            }
        }
    }
}
