//! Agents that an ordinary user runs. Root may create a PID namespace and use every file; others need
//! a user namespace. So this program runs some of its trials once more, as such a user.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::situations::Outcome;

/// The user and the group id of `nobody`.
const ORDINARY: &str = "65534";

/// The trials that are run as an ordinary user.
fn trials(agent: &str) -> &'static [&'static str] {
    match agent {
        // Its sandbox creates namespaces of its own.
        "codex" => &["plain_text", "a_tool", "permission_allowed"],
        _ => &["plain_text", "a_tool"],
    }
}

fn as_ordinary_user(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups"]).arg(program);
    command
}

/// Whether the trials can be run: only root can become another user, who must be able to start both
/// programs.
pub(crate) fn is_possible(agent: &Path) -> bool {
    let Ok(this) = std::env::current_exe() else { return false };
    let usable = |program: &Path| {
        let tried = as_ordinary_user("test").arg("-x").arg(program).output();
        tried.is_ok_and(|output| output.status.success())
    };
    usable(&this) && usable(agent)
}

pub(crate) fn runs(agent: &str) -> Outcome {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    for trial in trials(agent) {
        let mut command = as_ordinary_user(&this);
        let output = command.args(["--exact", &format!("{agent}::{trial}")]).output();
        let output = output.map_err(|error| error.to_string())?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || !stdout.contains("1 passed") {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{trial}: {stdout}\n{stderr}"));
        }
    }
    Ok(())
}
