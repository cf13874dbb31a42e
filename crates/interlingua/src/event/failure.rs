//! Errors, retries, notices, and records that could not be read or have no event of their own.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// An error occurred.
    pub struct Error<'a> {
        /// The class of error.
        pub class: ErrorClass,
        /// The agent's message.
        pub message: Text<'a>,
        /// The agent's or the provider's own code.
        pub code: Option<Text<'a>>,
        /// The HTTP status of the request that failed.
        pub http_status: Option<u64>,
        /// The turn cannot continue.
        pub fatal: bool,
        /// Whether the same request may succeed later without a change by the user, if it is known.
        pub retryable: Option<bool>,
        /// The delay that the provider asks for before it is repeated.
        pub retry_after_ms: Option<u64>,
    }
}

payload! {
    /// A request failed and is retried.
    pub struct Retry<'a> {
        /// The number of the next attempt.
        pub attempt: Option<u64>,
        /// The maximum number of attempts.
        pub of: Option<u64>,
        /// The delay before the next attempt.
        pub delay_ms: Option<u64>,
        /// The class of failure.
        pub class: ErrorClass,
        /// The HTTP status of the request that failed.
        pub http_status: Option<u64>,
        /// The agent's message.
        pub message: Option<Text<'a>>,
    }
}

payload! {
    /// A notice for the user.
    pub struct Notice<'a> {
        /// The severity.
        pub severity: Severity,
        /// The text of the notice.
        pub text: Text<'a>,
    }
}

payload! {
    /// A known record that has no meaning outside its own protocol.
    pub struct Native<'a> {
        /// The protocol's name for it.
        pub name: Text<'a>,
        /// The whole record.
        pub raw: Option<Json<'a>>,
    }
}

payload! {
    /// What the host of the agent stores for itself, in order to resume the session. It is no part
    /// of the conversation, so only the dialect `events` writes it.
    pub struct HostState<'a> {
        /// The host's name for it.
        pub name: Text<'a>,
        /// What is stored.
        pub raw: Option<Json<'a>>,
    }
}

payload! {
    /// A record of an unknown type.
    pub struct Unknown<'a> {
        /// The record's type, if it has one.
        pub name: Text<'a>,
        /// The whole record.
        pub raw: Option<Json<'a>>,
    }
}

payload! {
    /// A record that adds nothing to what was emitted before.
    pub struct Silent<'a> {
        /// Why the record adds nothing.
        pub fate: SilentFate,
        /// The rule by which the record is ignored.
        pub rule: Option<Text<'a>>,
    }
}

payload! {
    /// Text that could not be read as a record.
    pub struct Unparsed<'a> {
        /// What is wrong with it.
        pub flaw: TextFlaw,
        /// The position and the cause, for a person to read.
        pub message: Text<'a>,
        /// The text; absent if it was too long to keep.
        pub text: Option<Text<'a>>,
    }
}

payload! {
    /// A line that is not part of the protocol.
    pub struct Log<'a> {
        /// The stream to which it was printed.
        pub stream: LogStream,
        /// The line.
        pub text: Text<'a>,
    }
}

open_enum! {
    /// A class of error.
    #[derive(Default)]
    pub enum ErrorClass {
        /// The credentials are missing or invalid.
        Authentication = "authentication",
        /// The account is not permitted to do this.
        Permission = "permission",
        /// The account has no credit or quota left.
        Quota = "quota",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The provider is overloaded.
        Overloaded = "overloaded",
        /// A timeout.
        TimedOut = "timed_out",
        /// The provider could not be reached, or the connection was lost.
        Network = "network",
        /// The conversation exceeds the model's context window.
        ContextOverflow = "context_overflow",
        /// The provider rejected the request as invalid.
        BadRequest = "bad_request",
        /// The model or session does not exist.
        NotFound = "not_found",
        /// The model refused.
        Refusal = "refusal",
        /// A limit on turns or cost was reached.
        Limit = "limit",
        /// The user or the client cancelled it.
        Cancelled = "cancelled",
        /// A tool failed.
        Tool = "tool",
        /// The agent's configuration is invalid.
        Configuration = "configuration",
        /// The agent's process crashed.
        Process = "process",
        /// The provider failed.
        Internal = "internal",
        /// The agent does not report a class.
        #[default]
        Unspecified = "unknown",
    }
}

impl ErrorClass {
    /// The class of a failed model request, by its HTTP status.
    pub fn of_http_status(status: u64) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::Quota,
            403 => Self::Permission,
            404 => Self::NotFound,
            408 | 504 => Self::TimedOut,
            413 => Self::ContextOverflow,
            429 => Self::RateLimit,
            503 | 529 => Self::Overloaded,
            400..=499 => Self::BadRequest,
            500..=599 => Self::Internal,
            // The address is another one: a redirect is not followed with a key.
            300..=399 => Self::Configuration,
            _ => Self::Unspecified,
        }
    }

    /// Whether the same request may succeed later without a change by the user.
    pub fn may_be_retried(&self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Overloaded | Self::TimedOut | Self::Network | Self::Internal
        )
    }
}

open_enum! {
    /// The severity of a notice.
    #[derive(Default)]
    pub enum Severity {
        /// Information.
        #[default]
        Info = "info",
        /// A warning.
        Warning = "warning",
        /// An error.
        Error = "error",
    }
}

open_enum! {
    /// Why a record has no event of its own.
    #[derive(Default)]
    pub enum SilentFate {
        /// It repeats what was emitted before, or only completes the reader's state.
        #[default]
        Repeated = "repeated",
        /// Its dialect leaves it out on purpose.
        Ignored = "ignored",
    }
}

open_enum! {
    /// The flaw of a text that should be a record.
    #[derive(Default)]
    pub enum TextFlaw {
        /// It is not JSON.
        #[default]
        NotJson = "not_json",
        /// It is JSON, but not an object.
        NotAnObject = "not_an_object",
        /// The input ended in the middle of it.
        Truncated = "truncated",
        /// It exceeds the limit.
        TooLong = "too_long",
    }
}

open_enum! {
    /// The stream to which a line was printed.
    #[derive(Default)]
    pub enum LogStream {
        /// Standard output, between the records.
        #[default]
        Output = "stdout",
        /// Standard error.
        Error = "stderr",
    }
}

owned!(ErrorClass, Severity, SilentFate, TextFlaw, LogStream);
