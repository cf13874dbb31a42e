//! The password of a run, which is never shown.

use std::fmt::Write;

/// A random password. It exists only in the environment of the server and in the headers of our
/// requests.
#[derive(Clone)]
pub(in crate::process) struct Password(String);

impl Password {
    /// A new password.
    pub(in crate::process) fn new() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// Sets the password in the environment of a program.
    pub(in crate::process) fn set(&self, command: &mut tokio::process::Command, variable: &str) {
        command.env(variable, &self.0);
    }

    /// Adds the password to a request. The header is marked as sensitive.
    pub(super) fn authorize(
        &self,
        request: reqwest::RequestBuilder,
        user: &str,
    ) -> reqwest::RequestBuilder {
        request.basic_auth(user, Some(&self.0))
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Password")
    }
}
