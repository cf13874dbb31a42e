//! HTTP errors by their class, and answers that are given byte for byte.
//!
//! A class is what an agent has to tell apart; how each API reports it is known to the protocols.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An HTTP error of a class, with the headers that a provider may add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The class, which determines the status and the body.
    pub class: FailureClass,
    /// The message, in place of the one of the API.
    #[serde(default)]
    pub message: Option<String>,
    /// The seconds of the header `retry-after`; in Gemini, of the `RetryInfo` in the body.
    #[serde(default)]
    pub retry_after: Option<u64>,
    /// The milliseconds of the header `retry-after-ms`; in Gemini, of the `RetryInfo` in the body.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// The header `x-should-retry`. Gemini has none.
    #[serde(default)]
    pub should_retry: Option<bool>,
}

/// The class of an HTTP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureClass {
    /// Too many requests at the moment: 429.
    RateLimit,
    /// The account has nothing left, and a retry cannot succeed: 429 with `insufficient_quota`
    /// (OpenAI), `enforced_spend_limit_reached` (Anthropic), or a quota of the day (Gemini).
    Quota,
    /// The key is not valid: 401; in Gemini, 400 with `API_KEY_INVALID`.
    InvalidKey,
    /// The key has no rights to this: 403.
    Permission,
    /// There is no such model: 404.
    NotFound,
    /// The input is longer than the model's window: 400.
    ContextOverflow,
    /// The body is larger than the API accepts: 413.
    TooLarge,
    /// The provider is overloaded: 529 (Anthropic), 503 (the others).
    Overloaded,
    /// The provider failed: 500.
    Internal,
}

/// An answer that is given byte for byte, whatever the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The headers. The length of the body is added.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    pub body: String,
}
