//! Lone surrogates, which some agents print.
//!
//! A program that cuts a string inside an emoji prints `\ud83d` alone. Node and Python accept that;
//! strict parsers reject the whole line. Each lone surrogate is replaced by `\ufffd` of the same
//! length, so that byte ranges stay valid, and every consumer can parse the line.

use std::borrow::Cow;

/// The text with every lone surrogate escape replaced; borrowed if there is none.
pub fn mend_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or(&[])) {
        let escape = at + found;
        match surrogate_at(bytes, escape) {
            Some(Half::High) if matches!(surrogate_at(bytes, escape + 6), Some(Half::Low)) => {
                at = escape + 12;
            }
            Some(_) => {
                let copy = mended.get_or_insert_with(|| bytes.to_vec());
                if let Some(digits) = copy.get_mut(escape + 2..escape + 6) {
                    digits.copy_from_slice(b"fffd");
                }
                at = escape + 6;
            }
            None => at = escape + 2,
        }
    }
    match mended.map(String::from_utf8) {
        Some(Ok(mended)) => Cow::Owned(mended),
        _ => Cow::Borrowed(text),
    }
}

/// Replaces lone surrogates in frames, after a fast check that is enough for nearly all of them.
#[derive(Debug, Clone)]
pub(crate) struct Mender {
    escape: memchr::memmem::Finder<'static>,
}

impl Default for Mender {
    fn default() -> Self {
        Self { escape: memchr::memmem::Finder::new(b"\\u") }
    }
}

impl Mender {
    /// Like [`mend_surrogates`].
    pub(crate) fn mend<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        if memchr::memchr(b'\\', bytes).is_none() || self.escape.find(bytes).is_none() {
            return Cow::Borrowed(text);
        }
        mend_surrogates(text)
    }
}

enum Half {
    High,
    Low,
}

fn surrogate_at(bytes: &[u8], at: usize) -> Option<Half> {
    let [b'\\', b'u', b'd' | b'D', second, _, _] = bytes.get(at..at + 6)? else { return None };
    match second {
        b'8' | b'9' | b'a' | b'b' | b'A' | b'B' => Some(Half::High),
        b'c'..=b'f' | b'C'..=b'F' => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_stays_and_a_lone_half_is_replaced() {
        let mended = mend_surrogates(r#"{"a":"\ud83d\ude00 \ud83d b \ude00\\ud83d"}"#);
        assert_eq!(mended, r#"{"a":"\ud83d\ude00 \ufffd b \ufffd\\ud83d"}"#);
    }

    #[test]
    fn text_without_surrogates_is_not_copied() {
        assert!(matches!(mend_surrogates(r#"{"a":"\n\u0041"}"#), Cow::Borrowed(_)));
    }
}
