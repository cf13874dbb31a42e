//! The one error type of this crate.

/// Why an operation failed. What an agent writes is never an error: text that cannot be read
/// becomes an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller named a dialect that does not exist.
    #[error("no dialect is called `{name}`")]
    UnknownDialect {
        /// The name.
        name: String,
    },
    /// The caller began another stream before the current one had ended.
    #[error("another stream of a session can begin only after the one before it was ended")]
    StreamNotEnded,
    /// The caller's table of prices is not valid.
    #[error("the table of prices is not valid: {problem}")]
    InvalidPrices {
        /// The problem, with the entry that has it.
        problem: String,
    },
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

/// Who is responsible for an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The caller: the request is invalid.
    Caller,
    /// The agent: it violates its protocol.
    Agent,
    /// No one: the request is valid, but not supported.
    Unsupported,
    /// The system, or the transport to the agent.
    Transport,
}

impl Error {
    /// Who is responsible for the error.
    pub fn fault(&self) -> Fault {
        match self {
            Self::UnknownDialect { .. } | Self::StreamNotEnded | Self::InvalidPrices { .. } => {
                Fault::Caller
            }
            Self::NotRead { .. } | Self::NotWritten { .. } => Fault::Unsupported,
        }
    }
}
