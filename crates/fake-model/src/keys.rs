//! Keys: whether a request has one, and whether it is that of the test.
//!
//! This module knows where each protocol puts its key. The value is compared and dropped; nothing
//! that is kept contains it.

/// The key of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The key of the script.
    Right,
    /// Another one.
    Wrong,
    /// None.
    Missing,
}

/// The headers whose values are never kept.
const SECRET: [&str; 6] =
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];

/// Compares the key of a request, from its headers or the query of its path.
pub(crate) fn judge(headers: &[(String, String)], path: &str, expected: &str) -> Key {
    let from_headers = headers.iter().filter_map(|(name, value)| match name.as_str() {
        "authorization" => Some(value.strip_prefix("Bearer ").unwrap_or(value)),
        "x-api-key" | "api-key" | "x-goog-api-key" => Some(value.as_str()),
        _ => None,
    });
    let from_query = query(path).filter_map(|pair| pair.strip_prefix("key="));
    let mut key = Key::Missing;
    for given in from_headers.chain(from_query).map(str::trim).filter(|given| !given.is_empty()) {
        if given != expected {
            return Key::Wrong;
        }
        key = Key::Right;
    }
    key
}

/// The headers without those that contain secrets.
pub(crate) fn without_secrets(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.into_iter().filter(|(name, _)| !SECRET.contains(&name.as_str())).collect()
}

/// The path without a key in its query.
pub(crate) fn path_without_key(path: &str) -> String {
    let Some((before, _)) = path.split_once('?') else { return path.to_owned() };
    let kept: Vec<&str> = query(path).filter(|pair| !pair.starts_with("key=")).collect();
    if kept.is_empty() { before.to_owned() } else { format!("{before}?{}", kept.join("&")) }
}

fn query(path: &str) -> impl Iterator<Item = &str> {
    path.split_once('?').map(|(_, query)| query).unwrap_or_default().split('&')
}
