//! The errors of opencode, and their classification.

use super::wire::Failure;
use crate::event::{Error, ErrorClass};
use crate::json::Text;

/// The name of the error that an abort causes.
pub(super) const ABORTED: &str = "MessageAbortedError";

/// Converts an error.
pub(super) fn error_of(failure: Failure<'_>) -> Error<'_> {
    let data = failure.data.unwrap_or_default();
    let name = failure.name.unwrap_or_default();
    let message = data.message.unwrap_or_else(|| name.clone());
    let class = match name.body() {
        ABORTED => ErrorClass::Cancelled,
        "ProviderAuthError" => ErrorClass::Authentication,
        "ProviderModelNotFoundError" | "NotFoundError" => ErrorClass::NotFound,
        "ContextOverflowError" => ErrorClass::ContextOverflow,
        "MessageOutputLengthError" => ErrorClass::Limit,
        _ => match data.status {
            Some(status) => ErrorClass::of_http_status(status),
            None => classify_text(&message),
        },
    };
    Error {
        class,
        message,
        code: Some(name).filter(|name| !name.is_empty()),
        http_status: data.status,
        fatal: true,
        ..Error::default()
    }
}

/// Classifies an error by its message, if nothing else identifies it.
pub(super) fn classify_text(message: &Text<'_>) -> ErrorClass {
    let text = message.to_plain().to_ascii_lowercase();
    let contains = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if contains(&["rate limit", "too many requests", "rate increased too quickly"]) {
        ErrorClass::RateLimit
    } else if contains(&["overloaded"]) {
        ErrorClass::Overloaded
    } else if contains(&["quota", "usage limit", "insufficient"]) {
        ErrorClass::Quota
    } else if contains(&["timed out", "timeout"]) {
        ErrorClass::TimedOut
    } else if contains(&["connection", "network", "socket", "econn", "fetch failed"]) {
        ErrorClass::Network
    } else if contains(&["server error", "internal error"]) {
        ErrorClass::Internal
    } else {
        ErrorClass::Unspecified
    }
}
