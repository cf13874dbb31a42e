//! How the processes of a run are kept together, so that none of them survives it.
//!
//! This module names the mechanisms. How each works is known by the modules of the guard.

use std::fmt;

/// The mechanism that keeps the descendants of an agent together.
///
/// All but [`None`](Self::None) exist on Linux only, and need a guard, which is started in place of
/// the agent and starts the agent itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The first available one of `Namespace`, `Cgroup`, `Tree` and `None`.
    #[default]
    Auto,
    /// A PID namespace with the guard as its init process. The kernel ends all its processes with
    /// the guard, whatever they do, even if the guard and its parent are both killed.
    Namespace,
    /// A delegated cgroup v2, whose members are killed at once. Processes that leave the cgroup are
    /// found like those of `Tree`.
    Cgroup,
    /// The guard adopts all orphans, so the processes of a run are always its descendants. They
    /// survive only if the guard and its parent are both killed.
    Tree,
    /// The agent is started directly. Descendants are found by an inherited environment variable;
    /// those that clear it may survive, and all of them do if this process is killed.
    None,
}

impl Isolation {
    /// All choices.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Namespace, Self::Cgroup, Self::Tree, Self::None];

    /// The name of the choice.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Namespace => "namespace",
            Self::Cgroup => "cgroup",
            Self::Tree => "tree",
            Self::None => "none",
        }
    }

    /// Finds a choice by its name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|isolation| isolation.as_str() == name)
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
