//! What the tools of a session may do.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Sandbox;
use crate::process::{Guard, Isolation};

/// What the tools of a session may do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The working folder.
    pub folder: PathBuf,
    /// Further folders that the tools may read and change.
    pub additional_folders: Vec<PathBuf>,
    /// The names of the tools that are offered; all if absent. Those of MCP servers may end in `*`,
    /// for all that begin like it.
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
    /// Certificates of authorities to trust, in PEM, besides those of the system.
    pub certificates: Vec<u8>,
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
            certificates: Vec::new(),
            caches: Self::default_caches(),
        }
    }

    /// The folders of the user in which compilers and package managers cache what they download and
    /// build, where they exist. A folder with programs on `PATH` is never among them: what a command
    /// writes there would run later, without a sandbox.
    pub fn default_caches() -> Vec<PathBuf> {
        caches(&|name| std::env::var_os(name))
    }

    /// Whether a tool is offered, one of our own or one of an MCP server.
    pub(crate) fn offers(&self, name: &str) -> bool {
        let is_listed = |tools: &Vec<String>| tools.iter().any(|tool| lists(tool, name));
        let listed = self.tools.as_ref().is_none_or(is_listed);
        listed && (name != "WebFetch" || (self.web_fetch && self.network))
    }
}

/// Whether a name that may be listed is one of a tool of an MCP server, or of several.
pub(crate) fn is_of_server(listed: &str) -> bool {
    listed.starts_with("mcp__")
}

/// Whether a listed name is that of a tool. Those of MCP servers may end in `*`.
pub(crate) fn lists(listed: &str, tool: &str) -> bool {
    match listed.strip_suffix('*').filter(|_| is_of_server(listed)) {
        Some(start) => tool.starts_with(start),
        None => listed == tool,
    }
}

/// Where a tool keeps its caches.
struct Cache {
    /// The variable that names its folder.
    variable: &'static str,
    /// Its folder in the home folder, without the variable.
    folder: &'static str,
    /// What it writes there; everything if empty.
    parts: &'static [&'static str],
}

const CACHES: [Cache; 11] = [
    Cache { variable: "", folder: ".bun", parts: &["install/cache"] },
    Cache {
        variable: "CARGO_HOME",
        folder: ".cargo",
        parts: &["git", "registry", ".global-cache", ".package-cache", ".package-cache-mutate"],
    },
    Cache { variable: "GOPATH", folder: "go", parts: &["pkg"] },
    Cache {
        variable: "GRADLE_USER_HOME",
        folder: ".gradle",
        parts: &[".tmp", "caches", "daemon", "native", "notifications", "wrapper"],
    },
    Cache { variable: "", folder: ".m2", parts: &["repository", "wrapper"] },
    Cache { variable: "npm_config_cache", folder: ".npm", parts: &[] },
    Cache { variable: "", folder: ".nuget", parts: &["packages"] },
    Cache { variable: "", folder: ".pnpm-store", parts: &[] },
    Cache { variable: "RUSTUP_HOME", folder: ".rustup", parts: &["downloads", "tmp"] },
    Cache { variable: "", folder: "Library/Caches", parts: &[] },
    Cache { variable: "XDG_CACHE_HOME", folder: ".cache", parts: &[] },
];

/// The caches that exist, for an environment.
fn caches(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let paths = |name: &str| -> Vec<PathBuf> {
        let value = variable(name).filter(|value| !value.is_empty());
        value.iter().flat_map(std::env::split_paths).filter(|path| path.is_absolute()).collect()
    };
    let real = |path: PathBuf| path.canonicalize().ok();
    let home = paths("HOME").into_iter().next();
    let programs: Vec<_> = paths("PATH").into_iter().filter_map(real).collect();
    let mut found = Vec::new();
    for cache in CACHES {
        let named = if cache.variable.is_empty() { Vec::new() } else { paths(cache.variable) };
        let usual = home.iter().map(|home| home.join(cache.folder));
        let folders = if named.is_empty() { usual.collect() } else { named };
        for folder in folders {
            match cache.parts {
                [] => found.push(folder),
                parts => found.extend(parts.iter().map(|part| folder.join(part))),
            }
        }
    }
    let has_programs = |path: &PathBuf| {
        programs.iter().any(|folder| folder.starts_with(path) || path.starts_with(folder))
    };
    found.into_iter().filter_map(real).filter(|path| !has_programs(path)).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn caches_are_writable_and_programs_are_not() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for folder in [
            ".cargo/bin",
            ".cargo/registry",
            ".cargo/git",
            ".rustup/toolchains/stable/bin",
            ".rustup/tmp",
            "go/bin",
            "go/pkg",
            ".cache",
            ".npm/bin",
            "elsewhere/registry",
            "elsewhere/bin",
            "other/pkg",
            "more/pkg",
            "xdg",
        ] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::write(home.join(".cargo/.package-cache"), "").unwrap();
        let found = |set: &[(&str, String)]| {
            let path = format!("{0}/.cargo/bin:{0}/.npm/bin:relative", home.display());
            let caches = caches(&|name| match name {
                "HOME" => Some(home.clone().into()),
                "PATH" => Some(path.clone().into()),
                _ => set.iter().find(|(it, _)| *it == name).map(|(_, value)| value.into()),
            });
            let below = |path: PathBuf| path.strip_prefix(&home).unwrap().display().to_string();
            caches.into_iter().map(below).collect::<Vec<_>>()
        };
        let usual = [".cargo/git", ".cargo/registry", ".cargo/.package-cache", "go/pkg"];
        assert_eq!(found(&[]), [&usual[..], &[".rustup/tmp", ".cache"]].concat());
        let home = home.display();
        let set = [
            ("CARGO_HOME", format!("{home}/elsewhere")),
            ("GOPATH", format!("{home}/other:{home}/more")),
            ("RUSTUP_HOME", "relative".to_owned()),
            ("XDG_CACHE_HOME", format!("{home}/xdg")),
        ];
        let expected = ["elsewhere/registry", "other/pkg", "more/pkg", ".rustup/tmp", "xdg"];
        assert_eq!(found(&set), expected);
    }
}
