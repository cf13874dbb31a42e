//! Where a sign-in of an agent is visible without starting the agent, and which environment
//! variables contain keys.
//!
//! Only names are looked at here: neither the value of a variable nor the contents of a file is
//! read.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// The environment variables whose values are keys. A sign-in is recognised by them, and their
/// values are redacted wherever an agent prints them.
pub const KEY_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "COPILOT_PROVIDER_API_KEY",
    "OPENCODE_API_KEY",
    "DASHSCOPE_API_KEY",
];

/// The environment variables that name the server of a model. They are no secrets.
const SERVER_VARIABLES: &[&str] = &["COPILOT_PROVIDER_BASE_URL", "OPENAI_BASE_URL"];

/// Whether the user is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// A sign-in was found here. Only the provider knows whether it is still valid.
    Found(String),
    /// No sign-in was found; this is how to sign in.
    NotFound(&'static str),
}

/// What is visible of the machine without starting anything.
#[derive(Debug, Clone)]
pub struct HostEnvironment {
    home: PathBuf,
    /// Those of the known variables that are set.
    variables: BTreeSet<&'static str>,
}

impl HostEnvironment {
    /// The state of this machine, as seen by this process.
    pub fn current() -> Self {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        let known = KEY_VARIABLES.iter().chain(SERVER_VARIABLES).copied();
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            home: home.map(PathBuf::from).unwrap_or_default(),
            variables: known.filter(is_set).collect(),
        }
    }

    /// The first of these that exists: environment variables, or files below the home folder.
    fn first_of(&self, variables: &[&str], files: &[&str]) -> Option<String> {
        if let Some(name) = variables.iter().find(|name| self.variables.contains(*name)) {
            return Some(format!("${name}"));
        }
        let file = files.iter().find(|file| self.home.join(file).is_file());
        file.map(|file| format!("~/{file}"))
    }

    pub(super) fn sign_in(&self, variables: &[&str], files: &[&str], how: &'static str) -> SignIn {
        self.first_of(variables, files).map_or(SignIn::NotFound(how), SignIn::Found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    /// A variable that a sign-in is recognised by but that is not in the list would not be found,
    /// and its value would not be redacted.
    #[test]
    fn every_key_is_a_sign_in_of_some_agent() {
        let home = tempfile::tempdir().unwrap();
        for key in KEY_VARIABLES.iter().filter(|key| **key != "COPILOT_PROVIDER_API_KEY") {
            let host = HostEnvironment { home: home.path().to_owned(), variables: [*key].into() };
            let found = SignIn::Found(format!("${key}"));
            assert!(ALL.iter().any(|agent| (agent.signed_in)(&host) == found), "{key}");
        }
    }
}
