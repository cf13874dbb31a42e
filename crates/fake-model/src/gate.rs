//! A gate: a point at which a reply, or a tool that the agent runs, waits until the test opens it.
//!
//! A tool waits by requesting the path of the gate, which is answered when the gate opens.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::state::Shared;

/// A gate of a script, by its name. A gate that is open stays open.
#[derive(Debug, Clone)]
pub struct Gate {
    pub(crate) name: String,
    pub(crate) shared: Arc<Shared>,
}

impl Gate {
    /// Opens the gate.
    pub fn open(&self) {
        self.shared.change(|state| state.gate(&self.name).open = true);
    }

    /// Waits until a reply or a tool is at the gate (or has passed it), and returns whether it
    /// happened in time.
    #[must_use]
    pub fn wait_until_reached(&self, deadline: Instant) -> bool {
        self.shared
            .wait(Some(deadline), |state| state.gate(&self.name).reached.then_some(()))
            .is_some()
    }
}

const PREFIX: &str = "/gate/";

/// The shell command that waits at a gate: it requests the gate's path and prints the response.
pub(crate) fn command(address: SocketAddr, name: &str) -> String {
    let path: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    let (ip, port) = (address.ip(), address.port());
    format!(
        "bash -c 'exec 3<>/dev/tcp/{ip}/{port}; \
         printf \"GET {PREFIX}{path} HTTP/1.0\\r\\n\\r\\n\" >&3; exec cat <&3'"
    )
}

/// The name of the gate that a path denotes.
pub(crate) fn name(path: &str) -> Option<String> {
    let digits = path.strip_prefix(PREFIX)?;
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_survives_the_command() {
        for gate in ["in a tool", "it's \"é\"", ""] {
            let command = command(SocketAddr::from(([127, 0, 0, 1], 80)), gate);
            let path = command.split("GET ").nth(1).and_then(|rest| rest.split(' ').next());
            assert_eq!(name(path.unwrap_or_default()).as_deref(), Some(gate));
        }
    }

    #[test]
    fn other_paths_are_no_gates() {
        for path in ["/gate/xyz", "/gate/a", "/gate/ff", "/other", "/gate/é"] {
            assert_eq!(name(path), None, "{path}");
        }
    }
}
