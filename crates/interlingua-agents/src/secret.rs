//! Which settings of a caller are secrets, by their names and by their form.
//!
//! What counts as a secret is replaced wherever it occurs, also in what a model writes to a file. So a media type
//! or a path, which occur in ordinary text, must not count. How a secret is replaced is not known here.

use std::path::Path;

/// Words in the names of variables and headers whose values are secrets.
const WORDS: [&str; 7] = ["AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "JWT", "PASS", "PAT"];

/// Ends of such words: `ACCESSTOKEN`.
const ENDS: [&str; 6] = ["CREDENTIAL", "KEY", "PASSWD", "PASSWORD", "SECRET", "TOKEN"];

/// Ends of the names of headers that have ordinary text. The word of another header may be a key if it has digits and
/// letters.
const PLAIN_HEADERS: [&str; 10] = [
    "accept", "agent", "beta", "encoding", "language", "origin", "referer", "title", "type",
    "version",
];

/// The length from which a value without a word of its own can be a key.
const LONG: usize = 24;

/// Whether the value of a variable is a secret.
pub(crate) fn is_in_variable(name: &str, value: &str) -> bool {
    (is_name(name) && !is_place(value)) || is_key(value)
}

/// The secrets in the value of a header: the value, and its words, such as the token of `Bearer TOKEN`.
pub(crate) fn in_header<'v>(name: &str, value: &'v str) -> Vec<&'v str> {
    let words = value.split_whitespace();
    if is_name(name) {
        return std::iter::once(value).chain(words).collect();
    }
    let is_plain = PLAIN_HEADERS.iter().any(|plain| name.to_ascii_lowercase().ends_with(plain));
    let has = |word: &str, is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    let may_be_key = |word: &&str| {
        let is_mixed = has(word, char::is_ascii_digit) && has(word, char::is_ascii_alphabetic);
        is_key(word) || (!is_plain && is_mixed && !is_place(word))
    };
    words.filter(may_be_key).collect()
}

fn is_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        // There may be several: `KEYS`, `TOKEN2`.
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let one = word.strip_suffix('S').unwrap_or(word);
        [word, one]
            .iter()
            .any(|word| WORDS.contains(word) || ENDS.iter().any(|end| word.ends_with(end)))
    })
}

/// Whether a value is the address of a server, or a path of a file that exists, which names a secret but is none.
/// The path of an address may be a secret.
fn is_place(value: &str) -> bool {
    let address = reqwest::Url::parse(value).ok().filter(reqwest::Url::has_host);
    let is_plain = |it: reqwest::Url| {
        it.username().is_empty()
            && it.password().is_none()
            && it.path() == "/"
            && it.query().is_none()
            && it.fragment().is_none()
    };
    address.is_some_and(is_plain) || (Path::new(value).is_absolute() && Path::new(value).exists())
}

/// Whether a word looks like a generated key: long, of digits and of letters in both cases, or hexadecimal.
fn is_key(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_+/=.~".contains(c);
    let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    let is_mixed = has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
    let is_hexadecimal = word.chars().all(|c| c.is_ascii_hexdigit());
    let is_address = word.contains("://");
    word.len() >= LONG
        && word.chars().all(is_plain)
        && !is_address
        && has(char::is_ascii_digit)
        && (is_mixed || is_hexadecimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-Ab3dEf6hIj9kLm2nOp5q";

    #[test]
    fn variables_are_known_by_the_words_of_their_names() {
        for name in ["API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "ACCESSTOKEN", "my-secret", "GH_PAT"]
        {
            assert!(is_in_variable(name, "correct horse battery"), "{name}");
        }
        for name in ["KEYCLOAK_URL", "TOKENIZERS", "PATH", "AUTHOR", "HOME"] {
            assert!(!is_in_variable(name, "correct horse battery"), "{name}");
        }
        assert!(is_in_variable("SENTRY_DSN", KEY));
        let here = std::env::current_exe().unwrap().display().to_string();
        assert!(!is_in_variable("APPLICATION_CREDENTIALS", &here));
        assert!(!is_in_variable("KEY_SERVER", "https://keys.example.com"));
        assert!(is_in_variable("WEBHOOK_SECRET", "https://hooks.example.com/services/T0/B0/x"));
        assert!(is_in_variable("KEY_SERVER", "https://token@keys.example.com/"));
        for name in ["API_KEYS", "TOKEN2", "DBPASSWD", "COOKIES", "DB_PASS"] {
            assert!(is_in_variable(name, "correct horse battery"), "{name}");
        }
        assert!(is_in_variable("KEY_SERVER", "https://me:password@keys.example.com/"));
    }

    /// A media type was redacted in the files that the model wrote.
    #[test]
    fn ordinary_headers_are_no_secrets() {
        for (name, value) in [
            ("Accept", "application/json"),
            ("Content-Type", "application/json; charset=utf-8"),
            ("HTTP-Referer", "https://app.example.com/a/long/path"),
            ("anthropic-beta", "prompt-caching-2024-07-31"),
            ("X-Title", "My Application For Everyone in 2026a"),
            ("X-Team", "the-team-in-blue"),
        ] {
            assert_eq!(in_header(name, value), [""; 0], "{name}");
        }
        assert_eq!(in_header("Authorization", "Bearer abc"), ["Bearer abc", "Bearer", "abc"]);
        assert_eq!(in_header("x-goog-api-key", "abc"), ["abc", "abc"]);
        assert_eq!(in_header("X-Custom", &format!("v {KEY}")), [KEY]);
        assert_eq!(in_header("X-Title", &"0a".repeat(16)).len(), 1);
        assert_eq!(in_header("X-Custom", "value-of-1-header"), ["value-of-1-header"]);
    }
}
