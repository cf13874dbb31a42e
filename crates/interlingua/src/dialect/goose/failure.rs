//! How a turn ended that did not complete, which goose tells in prose only.

use crate::event::{Error, ErrorClass};
use crate::json::Text;

/// What goose says where a request, the shortening of the conversation, or a recipe's own way of trying
/// again failed.
const STARTS: [&str; 3] = [
    "Ran into this error: ",
    "Ran into this error trying to compact: ",
    "Retry logic encountered an error: ",
];

/// What goose says where it may take no more turns.
const LIMIT: &str = "I've reached the maximum number of actions I can do without user input.";

/// What it adds.
const ADVICE: &str = ".\n\nPlease retry if you think this is a transient or recoverable error.";

/// Whether a message without an id says that a limit was reached.
pub(super) fn is_limit(text: &Text<'_>) -> bool {
    text.to_plain().starts_with(LIMIT)
}

/// The failure that a message without an id tells of.
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

/// The words with which goose begins what the provider said.
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
    let told = words.iter().find(|(word, _)| what.starts_with(word)).map(|(_, class)| class);
    let class = match (told, status) {
        (Some(class), _) => class.clone(),
        (None, Some(status)) => ErrorClass::of_http_status(status),
        (None, None) if what.starts_with("Server error") => ErrorClass::Internal,
        // A stream that was cut is a request that failed, to goose.
        (None, None) if what.contains("error decoding response body") => ErrorClass::Network,
        (None, None) => ErrorClass::Unspecified,
    };
    (class, status)
}

/// `Status: 401`, `(500 Internal Server Error)`, `status 429`: a number of three digits after one of
/// these.
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
    fn prose_tells_the_kind_of_failure() {
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
