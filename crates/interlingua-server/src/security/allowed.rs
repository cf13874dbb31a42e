//! The lists of agents, permission modes and folders that a server permits.

use interlingua_sessions::SessionRecord;

use super::folders;
use crate::error::ApiError;
use crate::settings::Allowed;

impl Allowed {
    /// Checks an agent that is named for a session.
    pub(crate) fn check_agent(&self, agent: &str) -> Result<(), ApiError> {
        if self.agents.iter().any(|allowed| allowed == agent) {
            return Ok(());
        }
        let message = "this agent is not allowed: name one that the server permits";
        Err(ApiError::forbidden("agent_not_allowed", message))
    }

    /// Checks the permission mode of a session. Without one, it has the agent's default.
    pub(crate) fn check_mode(&self, mode: Option<&str>) -> Result<(), ApiError> {
        if mode.is_none_or(|mode| self.modes.iter().any(|allowed| allowed == mode)) {
            return Ok(());
        }
        let message = "this permission mode is not allowed: name one that the server permits";
        Err(ApiError::forbidden("mode_not_allowed", message))
    }

    /// Checks a stored session, for which an agent would be started. It may not have been created by
    /// this server: `run` and servers with other lists keep sessions in the same store.
    pub(crate) async fn check_session(&self, record: &SessionRecord) -> Result<(), ApiError> {
        self.check_agent(&record.agent)?;
        self.check_mode(record.mode.as_deref())?;
        let resolved = folders::resolve(record.folder.as_deref(), &self.folders).await;
        // The caller has sent no folder that could be malformed.
        resolved.map(drop).map_err(|error| match error.code {
            "invalid_folder" => folders::outside(),
            _ => error,
        })
    }
}
