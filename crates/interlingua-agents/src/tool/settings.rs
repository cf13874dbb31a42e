//! What the tools of a session may do.

use std::path::{Path, PathBuf};

use super::Sandbox;
use crate::process::{Guard, Isolation};

/// What the tools of a session may do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The working folder.
    pub folder: PathBuf,
    /// Further folders that the tools may read and change.
    pub additional_folders: Vec<PathBuf>,
    /// The names of the tools that are offered; all if absent.
    pub tools: Option<Vec<String>>,
    /// Whether `WebFetch` is offered. It is never offered without this.
    pub web_fetch: bool,
    /// Whether `WebFetch` may fetch from loopback and private addresses.
    pub private_addresses: bool,
    /// Whether commands may use the network. Without it, `WebFetch` is not offered.
    pub network: bool,
    /// The program that guards commands.
    pub guard: Option<Guard>,
    /// How the processes of a command are kept together.
    pub isolation: Isolation,
    /// The program that applies the sandbox to commands. Without it, they have none.
    pub sandbox: Option<Sandbox>,
    /// The names of environment variables that commands must not see, such as keys.
    pub hidden_variables: Vec<String>,
    /// Folders that a sandboxed command may write to in addition; see [`Settings::default_caches`].
    pub caches: Vec<PathBuf>,
}

impl Settings {
    /// Settings for a folder: all tools but `WebFetch`, commands with a network and the usual
    /// caches, without a guard and without a sandbox.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            additional_folders: Vec::new(),
            tools: None,
            web_fetch: false,
            private_addresses: false,
            network: true,
            guard: None,
            isolation: Isolation::default(),
            sandbox: None,
            hidden_variables: Vec::new(),
            caches: Self::default_caches(),
        }
    }

    /// The folders of the user into which compilers and package managers write, where they exist.
    pub fn default_caches() -> Vec<PathBuf> {
        const NAMES: [&str; 12] = [
            ".bun",
            ".cache",
            ".cargo",
            ".dotnet",
            ".gradle",
            ".m2",
            ".npm",
            ".nuget",
            ".pnpm-store",
            ".rustup",
            "Library/Caches",
            "go",
        ];
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let below = |home: PathBuf| NAMES.map(|name| home.join(Path::new(name)));
        home.map(below).into_iter().flatten().filter(|folder| folder.is_dir()).collect()
    }

    /// Whether a tool is offered.
    pub(super) fn offers(&self, name: &str) -> bool {
        let listed = self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name));
        listed && (name != "WebFetch" || (self.web_fetch && self.network))
    }
}
