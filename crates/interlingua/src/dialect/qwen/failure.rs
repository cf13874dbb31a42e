//! Failed requests of Qwen Code, which it tells in the model's place, and once more at the end.
//!
//! The text of a failure is a sentence in brackets, alone or behind what the model had said. Whether
//! the program or the model said it, the `result` tells.

use crate::event::{Error, ErrorClass};
use crate::json::Text;

const START: &str = "[API Error: ";

/// Whether some text looks like a failed request.
pub(super) fn may_be(text: &Text<'_>) -> bool {
    let body = text.body();
    body.starts_with(START) && body.ends_with(']')
}

/// What the model said, and what looks like a failed request behind it.
pub(super) fn split(text: &Text<'_>) -> Option<(String, String)> {
    let body = text.body();
    if !body.ends_with(']') || !body.contains(START) {
        return None;
    }
    let text = text.to_plain();
    let at = text.rfind(START)?;
    let (said, failure) = text.split_at_checked(at)?;
    Some((said.to_owned(), failure.to_owned()))
}

/// The failure of a turn.
pub(super) fn error(message: Text<'_>) -> Error<'_> {
    let (class, http_status) = classify(&message);
    Error { class, message, http_status, fatal: true, ..Error::default() }
}

/// What kind of failure a message tells of: there is no field for it.
pub(super) fn classify(message: &Text<'_>) -> (ErrorClass, Option<u64>) {
    let text = message.to_plain();
    if let Some(status) = status_of(&text) {
        return (ErrorClass::of_http_status(status), Some(status));
    }
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let class = if has(&["terminated", "fetch failed", "Connection error", "ECONN", "socket"]) {
        ErrorClass::Network
    } else if has(&["timed out", "timeout"]) {
        ErrorClass::TimedOut
    } else if has(&["quota"]) {
        ErrorClass::Quota
    } else if has(&["rate limit", "Rate limit"]) {
        ErrorClass::RateLimit
    } else if has(&["context length", "maximum context"]) {
        ErrorClass::ContextOverflow
    } else if has(&["API key", "auth type", "authentication"]) {
        ErrorClass::Authentication
    } else {
        ErrorClass::Unspecified
    };
    (class, None)
}

/// The HTTP status: in front of the provider's message, or behind it.
fn status_of(text: &str) -> Option<u64> {
    let number = |rest: &str| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|status| (400..600).contains(status))
    };
    let in_front = text.strip_prefix(START).and_then(number);
    in_front.or_else(|| text.rsplit_once("(Status: ").and_then(|(_, rest)| number(rest)))
}
