//! Notes of what was resumed, so that a request that is sent again is recognised after the turn has ended.
//!
//! A note is a command that does nothing: it answers a request that no agent has made, and is refused. So it is stored
//! with its session and lasts as long, also when the server is killed.

use interlingua_sessions::host::Command;
use interlingua_sessions::{IdempotencyKey, SessionId};

use super::sandbox::digest;
use crate::app::App;
use crate::error::ApiError;

/// What a note answers. No agent names a call so.
const NOTHING: &str = "agent-api-note";

/// What is noted.
#[derive(Clone, Copy)]
pub(super) enum Note<'a> {
    /// A request with this key has resumed or joined a turn.
    Resumed(&'a IdempotencyKey),
    /// A run has begun behind the pause that ends before this entry.
    Shown(u64),
}

impl Note<'_> {
    fn key(self) -> Result<IdempotencyKey, ApiError> {
        let digest = match self {
            Self::Resumed(key) => digest(&["resumed", key.as_str()]),
            Self::Shown(begin) => digest(&["shown", &begin.to_string()]),
        };
        Ok(IdempotencyKey::new(format!("{NOTHING}-{digest}"))?)
    }

    pub(super) async fn is_there(self, app: &App, session: &SessionId) -> Result<bool, ApiError> {
        Ok(app.store().acknowledged(session, &self.key()?).await?.is_some())
    }

    /// Makes the note. What was asked for has happened, so it does not fail without one.
    pub(super) async fn make(self, app: &App, session: &SessionId) {
        let (request, decline) = (NOTHING.to_owned(), Some(NOTHING.to_owned()));
        let nothing = Command::Answer { request, answer: None, decline };
        let Ok(key) = self.key() else { return };
        if let Err(problem) = app.sessions.command(session, key, nothing).await {
            tracing::warn!(%problem, "a run was not noted");
        }
    }
}
