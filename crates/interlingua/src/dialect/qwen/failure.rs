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
    let message = words(message);
    Error { class, message, http_status, fatal: true, ..Error::default() }
}

/// What a failure says: without the brackets that mark it, and the status that is told apart.
pub(super) fn words(message: Text<'_>) -> Text<'_> {
    let said = message.to_plain();
    let Some(inner) = said.strip_prefix(START).and_then(|rest| rest.strip_suffix(']')) else {
        drop(said);
        return message;
    };
    let sentence = inner.split_once(' ').filter(|(first, rest)| {
        // Some providers make the status a part of the sentence.
        status_in_front(first).is_some() && !rest.starts_with("status code")
    });
    Text::from(sentence.map_or(inner, |(_, rest)| rest).to_owned())
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
    let in_front = text.strip_prefix(START).and_then(status_in_front);
    in_front.or_else(|| text.rsplit_once("(Status: ").and_then(|(_, rest)| status_in_front(rest)))
}

fn status_in_front(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|status| (400..600).contains(status))
}
