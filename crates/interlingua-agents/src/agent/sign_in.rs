//! Where a sign-in of an agent is visible without starting the agent, and which environment
//! variables contain keys.
//!
//! A variable counts only for an agent that uses it by itself: Codex, for example, does not use
//! `OPENAI_API_KEY`. What each agent uses was measured, with the requests that it sent.
//!
//! Neither the value of a variable nor a credential is read. Of the agents' settings, only the
//! chosen way of signing in is.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

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
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "OPENCODE_API_KEY",
    "DASHSCOPE_API_KEY",
    crate::SERVER_TOKEN,
];

/// Other environment variables that belong to a sign-in. They are no secrets.
const OTHER_VARIABLES: &[&str] = &[
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "COPILOT_PROVIDER_BASE_URL",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
];

/// The environment variables that name a folder in which agents keep their files.
const FOLDER_VARIABLES: &[&str] =
    &["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// Whether the user is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// A sign-in was found here. Only the provider knows whether it is still valid.
    Found(String),
    /// No sign-in was found; this is how to sign in.
    NotFound(&'static str),
}

/// What is visible of the machine without starting anything.
#[derive(Debug, Clone, Default)]
pub struct HostEnvironment {
    home: PathBuf,
    /// Those of the known variables that are set.
    variables: BTreeSet<&'static str>,
    /// The folders that variables name.
    folders: Vec<(&'static str, PathBuf)>,
}

impl HostEnvironment {
    /// The state of this machine, as seen by this process.
    pub fn current() -> Self {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        let known = KEY_VARIABLES.iter().chain(OTHER_VARIABLES).copied();
        let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = |name: &&'static str| Some((*name, PathBuf::from(value(name)?)));
        Self {
            home: home.map(PathBuf::from).unwrap_or_default(),
            variables: known.filter(|name| value(name).is_some()).collect(),
            folders: FOLDER_VARIABLES.iter().filter_map(folder).collect(),
        }
    }

    /// A machine with nothing but a home folder.
    #[cfg(test)]
    pub(super) fn at(home: &std::path::Path) -> Self {
        Self { home: home.to_owned(), ..Self::default() }
    }

    /// A folder in which an agent keeps its files.
    pub(super) fn folder(&self, folder: Folder) -> PathBuf {
        self.path(folder, "").0
    }

    /// The first of these variables that is set.
    pub(super) fn variable(&self, names: &[&str]) -> Option<String> {
        let found = names.iter().find(|name| self.variables.contains(*name));
        found.map(|name| format!("${name}"))
    }

    /// The first of several variables, if all of them are set.
    pub(super) fn variables(&self, names: &[&str]) -> Option<String> {
        let all = names.iter().all(|name| self.variables.contains(name));
        names.first().filter(|_| all).map(|name| format!("${name}"))
    }

    /// A file in a folder of the agent, if it exists.
    pub(super) fn file(&self, folder: Folder, name: &str) -> Option<String> {
        let (path, shown) = self.path(folder, name);
        path.is_file().then_some(shown)
    }

    /// A value in a file of the agent's settings, which is JSON, if it exists.
    pub(super) fn setting(&self, folder: Folder, name: &str, pointer: &str) -> Option<Value> {
        let text = std::fs::read_to_string(self.path(folder, name).0).ok()?;
        // Copilot begins its file with comments.
        let is_comment = |line: &&str| line.trim_start().starts_with("//");
        let text: String = text.lines().filter(|line| !is_comment(line)).collect();
        serde_json::from_str::<Value>(&text).ok()?.pointer_mut(pointer).map(Value::take)
    }

    /// The path of a file, and how it is shown.
    fn path(&self, Folder { variable, default }: Folder, name: &str) -> (PathBuf, String) {
        match self.folders.iter().find(|(it, _)| *it == variable) {
            Some((_, folder)) => (folder.join(name), format!("${variable}/{name}")),
            None => (self.home.join(default).join(name), format!("~/{default}/{name}")),
        }
    }
}

/// A folder in which an agent keeps its files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folder {
    /// The variable that names it; empty if there is none.
    pub(super) variable: &'static str,
    /// Where it is otherwise, below the home folder.
    pub(super) default: &'static str,
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    /// The names and the contents of files, and the agents that are signed in by them.
    type Files = (&'static [(&'static str, &'static str)], &'static [&'static str]);

    fn host(home: &std::path::Path, variables: &[&'static str]) -> HostEnvironment {
        let (home, variables) = (home.to_owned(), variables.iter().copied().collect());
        HostEnvironment { home, variables, folders: Vec::new() }
    }

    /// The agents that are signed in, and according to what.
    fn signed_in(host: &HostEnvironment) -> Vec<String> {
        let found = |agent: &&super::super::KnownAgent| match agent.sign_in(host) {
            SignIn::Found(place) => Some(format!("{}: {place}", agent.name)),
            SignIn::NotFound(_) => None,
        };
        ALL.iter().filter_map(found).collect()
    }

    /// Measured: `codex app-server` sends neither `OPENAI_API_KEY` nor `CODEX_API_KEY`, Gemini sends
    /// an empty key with `GOOGLE_API_KEY` alone, and Qwen refuses `OPENAI_API_KEY` alone.
    #[test]
    fn a_key_counts_only_for_the_agents_that_use_it_by_themselves() {
        let home = tempfile::tempdir().unwrap();
        let expected: [(&[&'static str], &[&str]); 16] = [
            (&[], &[]),
            (
                &["ANTHROPIC_API_KEY"],
                &["claude: $ANTHROPIC_API_KEY", "opencode: $ANTHROPIC_API_KEY"],
            ),
            (&["ANTHROPIC_AUTH_TOKEN"], &["claude: $ANTHROPIC_AUTH_TOKEN"]),
            (&["CLAUDE_CODE_OAUTH_TOKEN"], &["claude: $CLAUDE_CODE_OAUTH_TOKEN"]),
            (&["CODEX_API_KEY"], &[]),
            (&["OPENAI_API_KEY"], &["opencode: $OPENAI_API_KEY"]),
            (&["OPENAI_API_KEY", "OPENAI_BASE_URL"], &["opencode: $OPENAI_API_KEY"]),
            (
                &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"],
                &["opencode: $OPENAI_API_KEY", "qwen: $OPENAI_API_KEY"],
            ),
            (&["GEMINI_API_KEY"], &["gemini: $GEMINI_API_KEY", "opencode: $GEMINI_API_KEY"]),
            (&["GOOGLE_API_KEY"], &["opencode: $GOOGLE_API_KEY"]),
            (
                &["GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
                &["gemini: $GOOGLE_API_KEY", "opencode: $GOOGLE_API_KEY"],
            ),
            (&["COPILOT_GITHUB_TOKEN"], &["copilot: $COPILOT_GITHUB_TOKEN"]),
            (&["GITHUB_TOKEN", "GH_TOKEN"], &["copilot: $GH_TOKEN"]),
            (&["COPILOT_PROVIDER_BASE_URL"], &["copilot: $COPILOT_PROVIDER_BASE_URL"]),
            (&["OPENCODE_API_KEY"], &["opencode: $OPENCODE_API_KEY"]),
            (&["DASHSCOPE_API_KEY"], &["opencode: $DASHSCOPE_API_KEY"]),
        ];
        for (variables, agents) in expected {
            assert_eq!(signed_in(&host(home.path(), variables)), agents, "{variables:?}");
        }
    }

    #[test]
    fn a_file_counts_if_it_contains_a_sign_in() {
        let expected: [Files; 9] = [
            (&[(".claude/.credentials.json", "{}")], &["claude: ~/.claude/.credentials.json"]),
            (&[(".codex/auth.json", "{}")], &["codex: ~/.codex/auth.json"]),
            (&[(".gemini/oauth_creds.json", "{}")], &["gemini: ~/.gemini/oauth_creds.json"]),
            // Copilot writes this file when it is started for the first time.
            (&[(".copilot/config.json", "// Managed.\n{\"firstLaunchAt\": \"now\"}")], &[]),
            (
                &[(
                    ".copilot/config.json",
                    "// Managed.\n{\"loggedInUsers\": [{\"login\": \"a\"}]}",
                )],
                &["copilot: ~/.copilot/config.json"],
            ),
            (&[(".config/gh/hosts.yml", "")], &["copilot: ~/.config/gh/hosts.yml"]),
            (
                &[(".local/share/opencode/auth.json", "{}")],
                &["opencode: ~/.local/share/opencode/auth.json"],
            ),
            // Qwen refuses credentials of a way of signing in that was not chosen.
            (&[(".qwen/oauth_creds.json", "{}")], &[]),
            (
                &[
                    (".qwen/oauth_creds.json", "{}"),
                    (
                        ".qwen/settings.json",
                        r#"{"security":{"auth":{"selectedType":"qwen-oauth"}}}"#,
                    ),
                ],
                &["qwen: ~/.qwen/oauth_creds.json"],
            ),
        ];
        for (files, agents) in expected {
            let home = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = home.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            assert_eq!(signed_in(&host(home.path(), &[])), agents, "{files:?}");
        }
    }

    #[test]
    fn qwen_uses_the_key_of_the_way_of_signing_in_that_was_chosen() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".qwen")).unwrap();
        let chosen = r#"{"security":{"auth":{"selectedType":"openai"}}}"#;
        std::fs::write(home.path().join(".qwen/settings.json"), chosen).unwrap();
        assert_eq!(signed_in(&host(home.path(), &[])), [""; 0]);
        let both = ["opencode: $OPENAI_API_KEY", "qwen: $OPENAI_API_KEY"];
        assert_eq!(signed_in(&host(home.path(), &["OPENAI_API_KEY"])), both);
    }

    #[test]
    fn files_are_looked_for_where_a_variable_places_them() {
        let (home, codex) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders = vec![("CODEX_HOME", codex.path().to_owned())];
        let host = HostEnvironment { folders, ..host(home.path(), &[]) };
        assert_eq!(signed_in(&host), [""; 0]);
        std::fs::write(codex.path().join("auth.json"), "{}").unwrap();
        assert_eq!(signed_in(&host), ["codex: $CODEX_HOME/auth.json"]);
    }

    /// A command of an agent's own screen, such as `/login`, does not help at a shell.
    #[test]
    fn the_advice_works_at_a_shell() {
        for agent in ALL {
            assert!(!agent.how_to_sign_in.contains('/'), "{}", agent.how_to_sign_in);
            assert!(
                agent.how_to_sign_in.contains(&format!("`{}", agent.program)),
                "{}",
                agent.name
            );
        }
    }
}
