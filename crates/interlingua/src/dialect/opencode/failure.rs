//! What went wrong, in opencode's words.

use super::wire::Failure;
use crate::event::{Error, ErrorClass};
use crate::json::Text;

/// The name of the error that an abort leaves behind.
pub(super) const ABORTED: &str = "MessageAbortedError";

/// What an error tells.
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
            None => class_of(&message),
        },
    };
    Error {
        class,
        message,
        code: Some(name).filter(|name| !name.is_empty()),
        http_status: data.status,
        fatal: true,
    }
}

/// What kind of failure a message tells of, where nothing else does.
pub(super) fn class_of(message: &Text<'_>) -> ErrorClass {
    let text = message.to_plain().to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["rate limit", "too many requests", "rate increased too quickly"]) {
        ErrorClass::RateLimit
    } else if has(&["overloaded"]) {
        ErrorClass::Overloaded
    } else if has(&["quota", "usage limit", "insufficient"]) {
        ErrorClass::Quota
    } else if has(&["timed out", "timeout"]) {
        ErrorClass::TimedOut
    } else if has(&["connection", "network", "socket", "econn", "fetch failed"]) {
        ErrorClass::Network
    } else if has(&["server error", "internal error"]) {
        ErrorClass::Internal
    } else {
        ErrorClass::Unspecified
    }
}
