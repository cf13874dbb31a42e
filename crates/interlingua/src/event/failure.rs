//! What goes wrong, what is tried again, and what could not be read.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// Something went wrong.
    pub struct Error<'a> {
        /// What kind of thing.
        pub class: ErrorClass,
        /// What the agent says of it.
        pub message: Text<'a>,
        /// The agent's or the provider's own code.
        pub code: Option<Text<'a>>,
        /// The HTTP status of the request that failed.
        pub http_status: Option<u64>,
        /// The turn cannot go on.
        pub fatal: bool,
    }
}

payload! {
    /// A request failed and is tried again.
    pub struct Retry<'a> {
        /// Which try comes next.
        pub attempt: Option<u64>,
        /// How many there will be.
        pub of: Option<u64>,
        /// How long the agent waits.
        pub delay_ms: Option<u64>,
        /// What kind of failure it was.
        pub class: ErrorClass,
        /// The HTTP status of the request that failed.
        pub http_status: Option<u64>,
        /// What the agent says of it.
        pub message: Option<Text<'a>>,
    }
}

payload! {
    /// Something worth telling a person.
    pub struct Notice<'a> {
        /// How much it matters.
        pub severity: Severity,
        /// What it is.
        pub text: Text<'a>,
    }
}

payload! {
    /// A record that is understood and means nothing outside its own protocol.
    pub struct Native<'a> {
        /// What the protocol calls it.
        pub name: Text<'a>,
        /// All of it.
        pub raw: Option<Json<'a>>,
    }
}

payload! {
    /// A record of a kind that nobody knows.
    pub struct Unknown<'a> {
        /// What the protocol calls it, where it says.
        pub name: Text<'a>,
        /// All of it.
        pub raw: Option<Json<'a>>,
    }
}

payload! {
    /// A record that adds nothing to what was emitted before.
    pub struct Silent<'a> {
        /// Why it adds nothing.
        pub fate: SilentFate,
        /// The rule by which it is ignored.
        pub rule: Option<Text<'a>>,
    }
}

payload! {
    /// Text that is no record.
    pub struct Unparsed<'a> {
        /// What is wrong with it.
        pub flaw: TextFlaw,
        /// Where and why, for a person to read.
        pub message: Text<'a>,
        /// The text; absent where it was too long to keep.
        pub text: Option<Text<'a>>,
    }
}

payload! {
    /// A line that is no part of the protocol.
    pub struct Log<'a> {
        /// Where it was printed.
        pub stream: LogStream,
        /// The line.
        pub text: Text<'a>,
    }
}

open_enum! {
    /// What kind of thing went wrong.
    #[derive(Default)]
    pub enum ErrorClass {
        /// The key or the login is missing or wrong.
        Authentication = "authentication",
        /// The account may not do this.
        Permission = "permission",
        /// The account has no money or quota left.
        Quota = "quota",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The provider is too busy.
        Overloaded = "overloaded",
        /// It took too long.
        TimedOut = "timed_out",
        /// The provider was not reached, or the connection was cut.
        Network = "network",
        /// The conversation is too long for the model.
        ContextOverflow = "context_overflow",
        /// The provider did not understand the request.
        BadRequest = "bad_request",
        /// The model or session does not exist.
        NotFound = "not_found",
        /// The model would not.
        Refusal = "refusal",
        /// A limit on turns or money was reached.
        Limit = "limit",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// A tool failed.
        Tool = "tool",
        /// The agent is set up wrong.
        Configuration = "configuration",
        /// The agent's process died.
        Process = "process",
        /// The provider failed.
        Internal = "internal",
        /// The agent does not say.
        #[default]
        Unspecified = "unknown",
    }
}

impl ErrorClass {
    /// What an HTTP status says about a request to a model.
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
            _ => Self::Unspecified,
        }
    }

    /// Whether the same request may succeed later without anybody doing anything.
    pub fn may_be_retried(&self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Overloaded | Self::TimedOut | Self::Network | Self::Internal
        )
    }
}

open_enum! {
    /// How much a notice matters.
    #[derive(Default)]
    pub enum Severity {
        /// Good to know.
        #[default]
        Info = "info",
        /// Something may be wrong.
        Warning = "warning",
        /// Something is wrong.
        Error = "error",
    }
}

open_enum! {
    /// Why a record adds nothing.
    #[derive(Default)]
    pub enum SilentFate {
        /// It repeats what was emitted before, or completes the reader's knowledge of it.
        #[default]
        Repeated = "repeated",
        /// Its dialect leaves it out on purpose.
        Ignored = "ignored",
    }
}

open_enum! {
    /// What is wrong with text that should be a record.
    #[derive(Default)]
    pub enum TextFlaw {
        /// It is not JSON.
        #[default]
        NotJson = "not_json",
        /// It is JSON, but not an object.
        NotAnObject = "not_an_object",
        /// The input ended in the middle of it.
        Truncated = "truncated",
        /// It is longer than the limit.
        TooLong = "too_long",
    }
}

open_enum! {
    /// Where a line was printed.
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
