//! The interface between the server and the host of the sessions.
//!
//! The server stores nothing and starts no agent. It passes commands on, and reads logs from the
//! store.

use std::sync::Arc;

use interlingua_sessions::{
    Acknowledgement, Answer, IdempotencyKey, SessionId, SessionRecord, Store,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Runs sessions.
pub trait Sessions: Send + Sync {
    /// Creates a session, and sends it a prompt if there is one. With the same key, it returns the
    /// same session.
    fn create(&self, request: NewSession) -> Answer<'_, SessionRecord>;

    /// Sends a command to a session.
    fn command<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Answer<'a, Acknowledgement>;

    /// Ends a session and deletes it. Returns whether there was one.
    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool>;

    /// The store of the sessions.
    fn store(&self) -> &Arc<dyn Store>;
}

/// A session that is to be created.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewSession {
    /// The agent's name.
    pub agent: String,
    /// The first prompt.
    pub prompt: Option<String>,
    /// Identifies the request. The same request with the same key creates nothing more.
    pub key: Option<IdempotencyKey>,
    /// The folder in which the agent works.
    pub folder: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The permission mode.
    pub mode: Option<String>,
    /// What the caller attached.
    pub metadata: Map<String, Value>,
    /// The session that this one continues.
    pub continue_from: Option<SessionId>,
    /// Whose session it is.
    pub owner: Option<String>,
    /// How long it is kept after its last use, in milliseconds.
    pub ttl_ms: Option<u64>,
}

/// A command for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", tag = "type", deny_unknown_fields)]
#[non_exhaustive]
pub enum Command {
    /// Sends a prompt.
    #[serde(rename_all = "camelCase")]
    Prompt {
        /// The text of the prompt.
        text: String,
        /// What happens if the session waits for an answer.
        #[serde(default)]
        while_pending: WhilePending,
        /// The prompt joins the turn that is running, instead of being queued behind it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        joins: bool,
    },
    /// Decides a permission request.
    Decide {
        /// The id of the request.
        request: String,
        /// The decision.
        decision: Decision,
        /// Why, for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Answers a question, or declines to.
    Answer {
        /// The id of the request.
        request: String,
        /// The answer, in the form that the question asks for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Object>)]
        answer: Option<Value>,
        /// Why there is no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decline: Option<String>,
    },
    /// Interrupts the turn that is running.
    Interrupt,
    /// Closes the session. It takes no more commands, and its stream ends.
    Close,
}

/// What happens to a prompt while the session waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhilePending {
    /// What is pending is answered as superseded; permissions are denied.
    Supersede,
    /// The prompt is queued behind the turn.
    #[default]
    Queue,
    /// The prompt is rejected.
    Reject,
}

/// A decision about a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// Allowed once.
    Allow,
    /// Allowed from now on, within the session.
    AllowAlways,
    /// Denied.
    Deny,
}
