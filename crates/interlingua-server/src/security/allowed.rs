//! The lists of agents, permission modes and folders that a server permits.

use interlingua_sessions::SessionRecord;

use super::folders;
use crate::error::ApiError;
use crate::settings::Allowed;

impl Allowed {
    /// Checks a stored session for which an agent is about to be started, and returns why it is not
    /// permitted. A prompt may have waited for its agent since a server with other lists accepted it.
    /// Links are followed, so this reads the disk.
    pub fn check_record(&self, record: &SessionRecord) -> Result<(), String> {
        self.check_stored(record).map_err(|error| error.message)
    }

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

    /// Checks the session of a prompt that has just arrived.
    pub(crate) async fn check_session(&self, record: &SessionRecord) -> Result<(), ApiError> {
        let (allowed, record) = (self.clone(), record.clone());
        let checked = tokio::task::spawn_blocking(move || allowed.check_stored(&record)).await;
        checked.map_err(|problem| ApiError::internal("checking a session", &problem))?
    }

    /// Checks a stored session. It may not have been created by this server: `run` and servers with
    /// other lists keep sessions in the same store.
    fn check_stored(&self, record: &SessionRecord) -> Result<(), ApiError> {
        self.check_agent(&record.agent)?;
        self.check_mode(record.mode.as_deref())?;
        let sandboxes = self.sandboxes.iter();
        let folders: Vec<_> = self.folders.iter().chain(sandboxes).cloned().collect();
        folders::check(record.folder.as_deref(), &folders)
    }
}
