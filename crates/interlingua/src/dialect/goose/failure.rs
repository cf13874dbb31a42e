//! Recognises the reports that a turn did not complete, which goose writes only as prose.

use crate::event::{Error, ErrorClass};
use crate::json::Text;

/// The beginnings of the reports that a request, a compaction, or the retry logic of a recipe
/// failed.
const STARTS: [&str; 3] = [
    "Ran into this error: ",
    "Ran into this error trying to compact: ",
    "Retry logic encountered an error: ",
];

/// The beginning of the report that the limit of turns was reached.
const LIMIT: &str = "I've reached the maximum number of actions I can do without user input.";

/// The advice that goose appends to an error.
const ADVICE: &str = ".\n\nPlease retry if you think this is a transient or recoverable error.";

/// Whether a message without an id reports that the limit of turns was reached.
pub(super) fn is_limit(text: &Text<'_>) -> bool {
    text.to_plain().starts_with(LIMIT)
}

/// The failure that a message without an id reports.
pub(super) fn of_prose(text: &Text<'_>) -> Option<Error<'static>> {
    let text = text.to_plain();
    let what = STARTS.iter().find_map(|start| text.strip_prefix(start))?;
    let what = what.strip_suffix(ADVICE).unwrap_or(what);
    let (class, http_status) = classify(what);
    Some(Error {
        class,
        message: Text::from(what.to_owned()),
        http_status,
        fatal: true,
        ..Error::default()
    })
}

/// Classifies a failure by the words that goose puts before the provider's message.
fn classify(what: &str) -> (ErrorClass, Option<u64>) {
    let status = status_of(what);
    let words = [
        ("Authentication error", ErrorClass::Authentication),
        ("Context length exceeded", ErrorClass::ContextOverflow),
        ("Rate limit exceeded", ErrorClass::RateLimit),
        ("Credits exhausted", ErrorClass::Quota),
        ("Endpoint not found", ErrorClass::NotFound),
        ("Network error", ErrorClass::Network),
        ("Request timed out", ErrorClass::TimedOut),
    ];
    let known = words.iter().find(|(word, _)| what.starts_with(word)).map(|(_, class)| class);
    let class = match (known, status) {
        (Some(class), _) => class.clone(),
        (None, Some(status)) => ErrorClass::of_http_status(status),
        (None, None) if what.starts_with("Server error") => ErrorClass::Internal,
        // goose reports a stream that was cut off as a failed request.
        (None, None) if what.contains("error decoding response body") => ErrorClass::Network,
        (None, None) => ErrorClass::Unspecified,
    };
    (class, status)
}

/// The HTTP status in a message: `Status: 401`, `(500 Internal Server Error)` or `status 429`.
fn status_of(what: &str) -> Option<u64> {
    ["Status: ", "status: ", "status ", "error ("].iter().find_map(|before| {
        let (_, after) = what.split_once(before)?;
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|status| (400..600).contains(status))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(what: &str) -> (ErrorClass, Option<u64>) {
        classify(what)
    }

    #[test]
    fn prose_states_the_class_of_a_failure() {
        let prose = "Ran into this error: Server error: Server error (500 Internal Server Error): \
                     Internal error..\n\nPlease retry if you think this is a transient or \
                     recoverable error.";
        let error = of_prose(&Text::plain(prose)).unwrap();
        assert_eq!((error.class, error.http_status), (ErrorClass::Internal, Some(500)));
        assert!(error.message.to_plain().ends_with("Internal error."));
        let auth = "Authentication error: Authentication failed. Status: 401 Unauthorized.";
        assert_eq!(of(auth), (ErrorClass::Authentication, Some(401)));
        assert_eq!(of("Rate limit exceeded: slow down"), (ErrorClass::RateLimit, None));
        assert!(of_prose(&Text::plain("I ran into this error: no")).is_none());
    }
}
