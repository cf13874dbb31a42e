//! The agent itself: its identity, where it runs, and how its process ended.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::payload::{Absent, Own, payload};
use crate::json::{Json, Text};

payload! {
    /// What is known of an agent when it starts.
    pub struct SessionStarted<'a> {
        /// The agent's own id for the session, by which it can be resumed.
        pub id: Option<Text<'a>>,
        /// The agent's name, as its dialect gives it.
        pub agent: Option<Text<'a>>,
        /// The agent's version.
        pub version: Option<Text<'a>>,
        /// The model.
        pub model: Option<Text<'a>>,
        /// The working directory of the agent.
        pub cwd: Option<Text<'a>>,
        /// The permission mode: that of the host if it decides about permissions, else the agent's
        /// own.
        pub permission_mode: Option<Text<'a>>,
        /// The names of its tools: a JSON array of strings.
        pub tools: Option<Json<'a>>,
        /// The names of the fields whose values the host of the agent knew, and not the agent;
        /// completed by the grammar.
        pub host_fields: Vec<Text<'a>>,
    }
}

payload! {
    /// What changed or became known about a session.
    pub struct SessionUpdated<'a> {
        /// The agent's own id for the session.
        pub id: Option<Text<'a>>,
        /// The agent's name, as its dialect gives it.
        pub agent: Option<Text<'a>>,
        /// The agent's version.
        pub version: Option<Text<'a>>,
        /// The model.
        pub model: Option<Text<'a>>,
        /// The working directory of the agent.
        pub cwd: Option<Text<'a>>,
        /// The permission mode: that of the host if it decides about permissions, else the agent's
        /// own.
        pub permission_mode: Option<Text<'a>>,
        /// The names of its tools: a JSON array of strings.
        pub tools: Option<Json<'a>>,
        /// The sandbox in which the agent runs.
        pub sandbox: Option<Text<'a>>,
        /// The snapshot that was taken of that sandbox.
        pub snapshot: Option<Text<'a>>,
        /// How the client's tools are reached.
        pub relay: Option<Relay<'a>>,
    }
}

payload! {
    /// How a client that runs tools for the agent is reached.
    pub struct Relay<'a> {
        /// The relay's id for the session.
        pub session: Option<Text<'a>>,
        /// The relay's token.
        pub token: Secret<'a>,
        /// The relay's address.
        pub url: Option<Text<'a>>,
        /// When the session expires at the relay, as the host wrote it.
        pub expires_at: Option<Json<'a>>,
    }
}

payload! {
    /// How the agent's process or stream ended.
    pub struct SessionEnded<'a> {
        /// The exit code, if one was seen.
        pub exit_code: Option<i64>,
        /// The signal that ended the process, if one did.
        pub signal: Option<i64>,
        /// The last lines of standard error, if they were kept.
        pub stderr: Option<Text<'a>>,
    }
}

/// An optional secret that is passed through. It is never printed, and the JSON form of events does
/// not contain it.
#[derive(Clone, PartialEq, Default)]
pub struct Secret<'a>(Option<Text<'a>>);

impl<'a> Secret<'a> {
    /// Wraps a secret.
    pub fn new(secret: Option<Text<'a>>) -> Self {
        Self(secret)
    }

    /// The secret itself, for a consumer that needs it.
    pub fn reveal(&self) -> Option<&Text<'a>> {
        self.0.as_ref()
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[secret]")
    }
}

impl Serialize for Secret<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[secret]")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Secret<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The JSON form contains a placeholder instead of the secret.
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self(None))
    }
}

impl Own for Secret<'_> {
    type Owned = Secret<'static>;

    fn own(self) -> Secret<'static> {
        Secret(self.0.map(Text::into_owned))
    }
}

impl super::schema::Described for Secret<'_> {
    fn schema() -> serde_json::Value {
        serde_json::json!({ "const": "[secret]" })
    }
}

impl Absent for Secret<'_> {
    fn absent(&self) -> bool {
        true
    }
}
