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
