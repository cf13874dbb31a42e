//! The interface between the server and the host of the sessions.
//!
//! The server stores nothing and starts no agent. It passes commands on, and reads logs from the
//! store.

use std::sync::Arc;

use interlingua_sessions::host::{Command, NewSession};
use interlingua_sessions::{
    Acknowledgement, Answer, Host, IdempotencyKey, SessionId, SessionRecord, Store,
};

/// Runs sessions.
pub trait Sessions: Send + Sync {
    /// Creates a session, and sends it a prompt if there is one. With the same key, it returns the
    /// same session.
    fn create(&self, request: NewSession) -> Answer<'_, SessionRecord>;

    /// The session that a request of this owner with this key has created.
    fn created<'a>(
        &'a self,
        owner: Option<&'a str>,
        key: &'a IdempotencyKey,
    ) -> Answer<'a, Option<SessionRecord>>;

    /// Sends a command to a session.
    fn command<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Answer<'a, Acknowledgement>;

    /// Ends a session and deletes it. Returns whether there was one.
    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool>;

    /// The number of live agents.
    fn live_agents(&self) -> usize;

    /// The store of the sessions.
    fn store(&self) -> &Arc<dyn Store>;
}

impl Sessions for Host {
    fn create(&self, request: NewSession) -> Answer<'_, SessionRecord> {
        Box::pin(Host::create(self, request))
    }

    fn created<'a>(
        &'a self,
        owner: Option<&'a str>,
        key: &'a IdempotencyKey,
    ) -> Answer<'a, Option<SessionRecord>> {
        Box::pin(Host::created(self, owner, key))
    }

    fn command<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Answer<'a, Acknowledgement> {
        Box::pin(Host::command(self, id, key, command))
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool> {
        Box::pin(Host::delete(self, id))
    }

    fn live_agents(&self) -> usize {
        Host::live(self)
    }

    fn store(&self) -> &Arc<dyn Store> {
        Host::store(self)
    }
}
