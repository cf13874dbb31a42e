//! The sessions of a [`Host`], as the server needs them.

use std::sync::Arc;
use std::time::Duration;

use interlingua_sessions::host::{self, Verdict};
use interlingua_sessions::{
    Acknowledgement, Answer, Host, IdempotencyKey, SessionId, SessionRecord, Store,
};

use crate::sessions::{Command, Decision, NewSession, Sessions, WhilePending};

impl Sessions for Host {
    fn create(&self, request: NewSession) -> Answer<'_, SessionRecord> {
        let new = host::NewSession {
            agent: request.agent,
            prompt: request.prompt,
            key: request.key,
            folder: request.folder,
            model: request.model,
            mode: request.mode,
            metadata: request.metadata,
            continues: request.continue_from,
            owner: request.owner,
            ttl: request.ttl_ms.map(Duration::from_millis),
        };
        Box::pin(Host::create(self, new))
    }

    fn command<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Answer<'a, Acknowledgement> {
        Box::pin(Host::command(self, id, key, command.into()))
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool> {
        Box::pin(Host::delete(self, id))
    }

    fn store(&self) -> &Arc<dyn Store> {
        Host::store(self)
    }
}

impl From<Command> for host::Command {
    fn from(command: Command) -> Self {
        match command {
            Command::Prompt { text, while_pending, joins } => {
                Self::Prompt { text, while_pending: while_pending.into(), joins }
            }
            Command::Decide { request, decision, reason } => {
                let decision = match decision {
                    Decision::Allow => Verdict::Allow,
                    Decision::AllowAlways => Verdict::AllowAlways,
                    Decision::Deny => Verdict::Deny,
                };
                Self::Decide { request, decision, reason }
            }
            Command::Answer { request, answer, decline } => {
                Self::Answer { request, answer, decline }
            }
            Command::Interrupt => Self::Interrupt,
            Command::Close => Self::Close,
        }
    }
}

impl From<WhilePending> for host::WhilePending {
    fn from(while_pending: WhilePending) -> Self {
        match while_pending {
            WhilePending::Supersede => Self::Supersede,
            WhilePending::Queue => Self::Queue,
            WhilePending::Reject => Self::Reject,
        }
    }
}
