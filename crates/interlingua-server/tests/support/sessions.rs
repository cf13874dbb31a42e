//! Sessions without agents: commands are stored, and tests write the log themselves.

use std::sync::Arc;

use interlingua_server::Sessions;
use interlingua_sessions::host::{Command, NewSession};
use interlingua_sessions::{
    Acknowledgement, Answer, Clock, CommandState, CommandUpdate, Commit, Error, IdempotencyKey,
    Patch, SessionId, SessionRecord, State, Store, Waiting,
};

/// Works directly on a store.
pub(crate) struct StoredSessions {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
}

impl Sessions for StoredSessions {
    fn create(&self, request: NewSession) -> Answer<'_, SessionRecord> {
        Box::pin(async move {
            let id = match &request.key {
                Some(key) => id_of(request.owner.as_deref(), key)?,
                None => SessionId::random()?,
            };
            if let Some(record) = self.store.load(&id).await? {
                if record.agent != request.agent {
                    return Err(Error::KeyReused(id.into()));
                }
                return Ok(record);
            }
            let record = SessionRecord {
                folder: request.folder,
                model: request.model,
                mode: request.mode,
                metadata: request.metadata,
                tools: request.tools,
                owner: request.owner,
                continues: request.continues,
                ttl_ms: request.ttl.and_then(|ttl| u64::try_from(ttl.as_millis()).ok()),
                state: State::Idle,
                ..SessionRecord::new(id.clone(), request.agent, (self.clock)())
            };
            self.store.create(record.clone()).await?;
            if let Some(text) = request.prompt {
                let key = request.key.map_or_else(|| IdempotencyKey::new("first"), Ok)?;
                let body = serde_json::json!({"type": "prompt", "text": text});
                self.store.submit(&id, key, body).await?;
            }
            Ok(record)
        })
    }

    fn created<'a>(
        &'a self,
        owner: Option<&'a str>,
        key: &'a IdempotencyKey,
    ) -> Answer<'a, Option<SessionRecord>> {
        Box::pin(async move { self.store.load(&id_of(owner, key)?).await })
    }

    fn command<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Answer<'a, Acknowledgement> {
        Box::pin(async move {
            let body = serde_json::to_value(&command);
            let body = body.map_err(|problem| Error::Failed(problem.to_string()))?;
            let (acknowledgement, is_new) =
                self.store.submit(id, key.clone(), body.clone()).await?;
            if !is_new {
                return Ok(acknowledgement);
            }
            let record = self.store.load(id).await?.ok_or_else(|| Error::NotFound(id.clone()))?;
            let (state, patch) = take_effect(&record.state, command);
            let Some(state) = state else { return Ok(acknowledgement) };
            let fence = self.store.claim(id).await?;
            let update = CommandUpdate { key: key.clone(), state, sequence: None };
            let patch = Patch { state: patch, ..Patch::default() };
            let commit = Commit { patch, commands: vec![update], ..Commit::default() };
            self.store.commit(id, fence, commit).await?;
            Ok(self.store.submit(id, key, body).await?.0)
        })
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool> {
        self.store.delete(id)
    }

    fn live_agents(&self) -> usize {
        3
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

/// The id of the session that a request with this key creates.
fn id_of(owner: Option<&str>, key: &IdempotencyKey) -> Result<SessionId, Error> {
    SessionId::new(format!("{}-{}", owner.unwrap_or("created"), key.as_str()))
}

/// What a command does at once: its new state, and that of the session.
fn take_effect(state: &State, command: Command) -> (Option<CommandState>, Option<State>) {
    let is_pending = |wanted: &str| match state {
        State::Waiting { waiting } => waiting.iter().any(|waiting| match waiting {
            Waiting::Decision { request }
            | Waiting::Answer { request }
            | Waiting::ClientTool { request, .. } => request == wanted,
            _ => false,
        }),
        _ => false,
    };
    match command {
        Command::Close => (Some(CommandState::Delivered), Some(State::Ended)),
        Command::Decide { request, .. } | Command::Answer { request, .. } => {
            if is_pending(&request) {
                (Some(CommandState::Delivered), Some(State::Working))
            } else {
                let reason = "nothing waits for this: it was answered, or never asked".to_owned();
                (Some(CommandState::Refused { reason }), None)
            }
        }
        _ => (None, None),
    }
}
