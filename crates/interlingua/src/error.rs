//! The one error type of this crate.

/// Why something cannot be done. What an agent writes is never an error here: whatever cannot be read
/// becomes an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller named a dialect that does not exist.
    #[error("no dialect is called `{name}`")]
    UnknownDialect {
        /// What the caller named.
        name: String,
    },
    /// The caller began another stream before the current one was ended.
    #[error("another stream of a session can begin only after the one before it was ended")]
    StreamNotEnded,
    /// Unsupported: the dialect has no decoder.
    #[error("`{dialect}` can be written, but not read")]
    NotRead {
        /// The dialect.
        dialect: &'static str,
    },
    /// Unsupported: the dialect has no encoder.
    #[error("`{dialect}` can be read, but not written")]
    NotWritten {
        /// The dialect.
        dialect: &'static str,
    },
}

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The caller's: what was asked for makes no sense.
    Caller,
    /// The agent's: it does not do what its protocol says.
    Agent,
    /// Nobody's: it is not supported.
    Unsupported,
    /// The system's, or that of whatever lies between us and the agent.
    Transport,
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::UnknownDialect { .. } | Self::StreamNotEnded => Fault::Caller,
            Self::NotRead { .. } | Self::NotWritten { .. } => Fault::Unsupported,
        }
    }
}
