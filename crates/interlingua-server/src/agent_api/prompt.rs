//! A prompt whose turn has not begun: where it is announced in the log, and whether it ever will be.

use interlingua::event::Data;
use interlingua_sessions::{Acknowledgement, CommandState, IdempotencyKey, SessionId};
use serde_json::Value;

use crate::app::App;
use crate::error::ApiError;
use crate::stream::feed::parse;

/// How often a prompt is looked up that was not announced yet.
pub(super) const LOOKED_UP: std::time::Duration = std::time::Duration::from_secs(2);

/// A prompt that was accepted, by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt(pub(super) IdempotencyKey);

impl Prompt {
    /// Why it is refused, if it is. Its agent may turn out not to be there when its turn comes.
    pub(super) async fn refused(&self, app: &App, session: &SessionId) -> Option<String> {
        match self.sent(app, session).await.ok()??.state {
            CommandState::Refused { reason } | CommandState::Unknown { reason } => Some(reason),
            _ => None,
        }
    }

    /// Whether its turn begins with an entry.
    pub(super) async fn begins(
        &self,
        app: &App,
        session: &SessionId,
        (position, stored): (u64, &[u8]),
    ) -> Result<bool, ApiError> {
        let key = self.0.as_str();
        let has = |word: &[u8]| memchr::memmem::find(stored, word).is_some();
        if has(b"host_state") && has(key.as_bytes()) {
            let entry = parse(stored, session, position)?;
            let Data::HostState(state) = &entry.event.data else { return Ok(false) };
            let raw: Option<Value> =
                state.raw.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
            let named = raw.as_ref().and_then(|raw| raw.get("key")?.as_str());
            return Ok(state.name == *"prompt" && named == Some(key));
        }
        if !has(b"turn_ended") {
            return Ok(false);
        }
        // The turn of a prompt that could not be sent has no announcement.
        let Some(sent) = self.sent(app, session).await? else { return Ok(false) };
        Ok(sent.state.is_final() && sent.sequence.is_some_and(|at| at <= position + 1))
    }

    async fn sent(
        &self,
        app: &App,
        session: &SessionId,
    ) -> Result<Option<Acknowledgement>, ApiError> {
        Ok(app.store().acknowledged(session, &self.0).await?)
    }
}
