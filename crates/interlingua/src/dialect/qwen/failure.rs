//! Recognises and classifies failed requests, which Qwen Code writes as text of the model and again
//! in the `result`.
//!
//! The text of a failure is a sentence in brackets, alone or after text of the model. Only the
//! `result` states whether the program or the model wrote it.

use crate::event::{Error, ErrorClass};
use crate::json::Text;

const START: &str = "[API Error: ";

/// Whether a text looks like a failed request.
pub(super) fn looks_like_failure(text: &Text<'_>) -> bool {
    let body = text.body();
    body.starts_with(START) && body.ends_with(']')
}

/// The text of the model, and what looks like a failed request after it.
pub(super) fn split(text: &Text<'_>) -> Option<(String, String)> {
    let body = text.body();
    if !body.ends_with(']') || !body.contains(START) {
        return None;
    }
    let text = text.to_plain();
    let at = text.rfind(START)?;
    let (before, failure) = text.split_at_checked(at)?;
    Some((before.to_owned(), failure.to_owned()))
}

/// The error of a failed turn.
pub(super) fn error(message: Text<'_>) -> Error<'_> {
    let (class, http_status) = classify(&message);
    let message = message_text(message);
    Error { class, message, http_status, fatal: true, ..Error::default() }
}

/// The message of a failure, without its brackets and without the status, which is a field.
pub(super) fn message_text(message: Text<'_>) -> Text<'_> {
    let plain = message.to_plain();
    let Some(inner) = plain.strip_prefix(START).and_then(|rest| rest.strip_suffix(']')) else {
        drop(plain);
        return message;
    };
    let sentence = inner.split_once(' ').filter(|(first, rest)| {
        // Some providers make the status a part of the sentence.
        leading_status(first).is_some() && !rest.starts_with("status code")
    });
    Text::from(sentence.map_or(inner, |(_, rest)| rest).to_owned())
}

/// Classifies a failure by its message, since no field states the class.
pub(super) fn classify(message: &Text<'_>) -> (ErrorClass, Option<u64>) {
    let text = message.to_plain();
    if let Some(status) = status_of(&text) {
        return (ErrorClass::of_http_status(status), Some(status));
    }
    let mentions = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let class = if mentions(&["terminated", "fetch failed", "Connection error", "ECONN", "socket"])
    {
        ErrorClass::Network
    } else if mentions(&["timed out", "timeout"]) {
        ErrorClass::TimedOut
    } else if mentions(&["quota"]) {
        ErrorClass::Quota
    } else if mentions(&["rate limit", "Rate limit"]) {
        ErrorClass::RateLimit
    } else if mentions(&["context length", "maximum context"]) {
        ErrorClass::ContextOverflow
    } else if mentions(&["API key", "auth type", "authentication"]) {
        ErrorClass::Authentication
    } else {
        ErrorClass::Unspecified
    };
    (class, None)
}

/// The HTTP status, before or after the provider's message.
fn status_of(text: &str) -> Option<u64> {
    let in_front = text.strip_prefix(START).and_then(leading_status);
    in_front.or_else(|| text.rsplit_once("(Status: ").and_then(|(_, rest)| leading_status(rest)))
}

fn leading_status(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|status| (400..600).contains(status))
}
