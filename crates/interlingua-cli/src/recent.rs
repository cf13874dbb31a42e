//! The sessions that were held on this machine, so that the last one can be continued.
//!
//! One line per session: the agent, the folder, and the agent's own id. Only the owner can read it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use interlingua_agents::api::provider::Provider;
use serde::{Deserialize, Serialize};

/// The number of sessions that are remembered.
const REMEMBERED: usize = 500;

/// The list of sessions.
#[derive(Debug)]
pub(crate) struct Recent {
    path: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    agent: String,
    folder: PathBuf,
    session: String,
}

impl Recent {
    /// The list of this user.
    pub(crate) fn open() -> Self {
        Self { path: state_folder().map(|folder| folder.join("sessions.jsonl")) }
    }

    /// The last session in a folder that an agent can continue: its own, and for a model API that of
    /// any model API.
    pub(crate) fn last(&self, agent: &str, folder: &Path) -> Result<String> {
        let folder = canonical(folder);
        let is_api = |agent: &str| Provider::find(agent).is_some();
        let can_continue =
            |held: &Held| held.agent == agent || (is_api(agent) && is_api(&held.agent));
        let all = self.read();
        let found = all.into_iter().rfind(|held| held.folder == folder && can_continue(held));
        let session = found.map(|held| held.session);
        session.with_context(|| {
            format!(
                "there is no session of {agent} in {} to continue: start one without --continue, or name one with --resume",
                folder.display()
            )
        })
    }

    /// Remembers the sessions of an agent in a folder.
    pub(crate) fn recorder(self, agent: &str, folder: &Path) -> RecentRecorder {
        let held =
            Held { agent: agent.to_owned(), folder: canonical(folder), session: String::new() };
        RecentRecorder { recent: self, held }
    }

    fn read(&self) -> Vec<Held> {
        let text = self.path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let text = text.unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn add(&self, held: &Held) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut all = self.read();
        all.retain(|other| other != held);
        all.push(held.clone());
        let start = all.len().saturating_sub(REMEMBERED);
        let lines: io::Result<Vec<_>> = all
            .iter()
            .skip(start)
            .map(|held| serde_json::to_string(held).map_err(io::Error::other))
            .collect();
        // Another process may read it at any time, so it is replaced as a whole.
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = private_file(&beside)?;
        file.write_all((lines?.join("\n") + "\n").as_bytes())?;
        fs::rename(beside, path)
    }
}

/// Remembers the sessions of one conversation.
#[derive(Debug)]
pub(crate) struct RecentRecorder {
    recent: Recent,
    held: Held,
}

impl RecentRecorder {
    /// The agent reported its own id for the session.
    pub(crate) fn session(&mut self, id: &str) {
        if self.held.session != id {
            self.held.session = id.to_owned();
            // A list that cannot be written is not worth an interruption.
            let _ = self.recent.add(&self.held);
        }
    }
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The folder for what is remembered between two runs, if this user has one.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = set("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from);
    let state = state.or_else(|| home().map(|home| home.join(".local/state")))?;
    Some(state.join("interlingua"))
}

/// Opens a file for appending that only its owner can read, in a folder of the same kind.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        private_folder(folder)?;
    }
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_session_of_an_agent_in_a_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let recent = || Recent { path: Some(folder.path().join("state/sessions.jsonl")) };
        assert!(recent().last("codex", folder.path()).is_err());
        let record = |agent: &str, place: &Path, id: &str| {
            recent().recorder(agent, place).session(id);
        };
        let other = folder.path().join("other");
        record("codex", folder.path(), "one");
        record("codex", folder.path(), "two");
        record("claude", folder.path(), "three");
        record("codex", &other, "four");
        assert_eq!(recent().last("codex", folder.path()).unwrap(), "two");
        record("codex", folder.path(), "one");
        assert_eq!(recent().last("codex", folder.path()).unwrap(), "one", "it was held again");
        assert_eq!(recent().read().len(), 4);
    }

    #[test]
    fn a_model_api_continues_the_last_session_of_any_model_api() {
        let folder = tempfile::tempdir().unwrap();
        let recent = || Recent { path: Some(folder.path().join("state/sessions.jsonl")) };
        for (agent, id) in [("gemini-api", "one"), ("anthropic-api", "two"), ("codex", "three")] {
            recent().recorder(agent, folder.path()).session(id);
        }
        assert_eq!(recent().last("gemini-api", folder.path()).unwrap(), "two");
        assert_eq!(recent().last("openai-api", folder.path()).unwrap(), "two");
        assert_eq!(recent().last("codex", folder.path()).unwrap(), "three");
        assert!(recent().last("claude", folder.path()).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/sessions.jsonl");
        Recent { path: Some(path.clone()) }.recorder("codex", folder.path()).session("one");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
