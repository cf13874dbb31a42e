//! The order of preference among the mechanisms that keep the processes of a run together.

use std::io;

use super::Isolation;

/// The mechanisms to try in order.
pub(super) fn candidates(isolation: Isolation) -> &'static [Isolation] {
    match isolation {
        Isolation::Auto => {
            &[Isolation::Namespace, Isolation::Cgroup, Isolation::Tree, Isolation::None]
        }
        Isolation::Namespace => &[Isolation::Namespace],
        Isolation::Cgroup => &[Isolation::Cgroup],
        Isolation::Tree => &[Isolation::Tree],
        Isolation::None => &[Isolation::None],
    }
}

/// The error for a mechanism that is not available.
pub(super) fn unavailable(isolation: Isolation, why: &str) -> io::Error {
    let message = format!("the isolation `{isolation}` is not available here: {why}");
    io::Error::new(io::ErrorKind::Unsupported, message)
}
