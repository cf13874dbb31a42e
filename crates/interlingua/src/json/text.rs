//! A string, as the literal of a frame or as plain text.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A string that passes through.
///
/// A literal is copied to the output unchanged, which makes translation fast; the plain form is for
/// text that was generated or had to be kept. All forms compare by the text that they denote.
/// Whether a literal has escapes is known once it is read, and needed often, so there are two forms
/// of it.
#[derive(Clone)]
pub enum Text<'a> {
    /// A JSON string literal without escapes, with its quotes, borrowed from the frame.
    Literal(Literal<'a>),
    /// A JSON string literal with escapes.
    Escaped(Literal<'a>),
    /// Plain text, not escaped.
    Plain(Cow<'a, str>),
}

/// A valid JSON string literal, including its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    /// The text that it denotes.
    #[cold]
    fn unescaped(self) -> String {
        serde_json::from_str(self.0).unwrap_or_else(|_| self.0.trim_matches('"').to_owned())
    }

    /// The literal.
    pub fn get(self) -> &'a str {
        self.0
    }
}

impl<'a> Text<'a> {
    /// The text of a JSON value, if that value is a string.
    pub fn of(raw: &'a RawValue) -> Option<Self> {
        Self::read_from(raw.get())
    }

    /// Like [`Text::of`], for text that is known to be a JSON value.
    #[inline]
    pub(super) fn read_from(value: &'a str) -> Option<Self> {
        let escaped = || memchr::memchr(b'\\', value.as_bytes()).is_some();
        value.starts_with('"').then(|| Self::of_literal(value, escaped()))
    }

    /// The text of a valid literal, of which it is known whether it has escapes.
    #[inline]
    pub(crate) fn of_literal(literal: &'a str, escaped: bool) -> Self {
        if escaped { Self::Escaped(Literal(literal)) } else { Self::Literal(Literal(literal)) }
    }

    /// Plain text, borrowed from the caller.
    pub const fn plain(text: &'a str) -> Self {
        Self::Plain(Cow::Borrowed(text))
    }

    /// The text between the quotes of a literal, or the plain text itself.
    ///
    /// It is escaped only if [`Text::has_escapes`] returns `true`.
    #[inline]
    pub fn body(&self) -> &str {
        match self {
            Self::Literal(raw) | Self::Escaped(raw) => {
                let quoted = raw.get();
                quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or("")
            }
            Self::Plain(text) => text,
        }
    }

    /// The literal, if the text is one.
    #[inline]
    pub fn as_literal(&self) -> Option<&'a str> {
        match self {
            Self::Literal(raw) | Self::Escaped(raw) => Some(raw.get()),
            Self::Plain(_) => None,
        }
    }

    /// Whether [`Text::body`] is an escaped form rather than the text itself.
    #[inline]
    pub fn has_escapes(&self) -> bool {
        matches!(self, Self::Escaped(_))
    }

    /// The plain text; copied only if it has to be unescaped.
    #[inline]
    pub fn to_plain(&self) -> Cow<'_, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Literal(_) => Cow::Borrowed(self.body()),
            Self::Escaped(raw) => Cow::Owned(raw.unescaped()),
        }
    }

    /// The text between the quotes of the literal for this text; copied only if it has to be
    /// escaped.
    pub fn literal_body(&self) -> Cow<'_, str> {
        match self {
            Self::Literal(_) | Self::Escaped(_) => Cow::Borrowed(self.body()),
            Self::Plain(plain) => {
                let mut body = Vec::new();
                super::write::escape(&mut body, plain);
                String::from_utf8(body).map_or(Cow::Borrowed(""), Cow::Owned)
            }
        }
    }

    /// The plain text of the body of a literal.
    pub fn of_literal_body(body: &str) -> String {
        serde_json::from_str(&format!("\"{body}\"")).unwrap_or_else(|_| body.to_owned())
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.body().is_empty()
    }

    /// A copy that does not borrow from the frame.
    pub fn into_owned(self) -> Text<'static> {
        match self {
            Self::Plain(text) => Text::Plain(Cow::Owned(text.into_owned())),
            _ => Text::Plain(Cow::Owned(self.to_plain().into_owned())),
        }
    }

    /// Stores a copy in `place`, reusing the memory of its previous text.
    pub fn keep_in(this: Option<&Self>, place: &mut Option<Text<'static>>) {
        match (this, &mut *place) {
            (Some(text), Some(Text::Plain(Cow::Owned(kept)))) => {
                kept.clear();
                kept.push_str(&text.to_plain());
            }
            _ => *place = this.map(|text| text.clone().into_owned()),
        }
    }

    /// The same text, borrowed from this one.
    pub fn borrowed(&self) -> Text<'_> {
        match self {
            Self::Literal(raw) => Text::Literal(*raw),
            Self::Escaped(raw) => Text::Escaped(*raw),
            Self::Plain(text) => Text::Plain(Cow::Borrowed(text)),
        }
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::plain("")
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Escaped(one), Self::Escaped(another)) if one == another => true,
            (Self::Escaped(_), _) => *other == *self.to_plain(),
            _ => *other == *self.body(),
        }
    }
}

impl Eq for Text<'_> {}

impl PartialEq<str> for Text<'_> {
    /// An escape is longer than the character it denotes, so comparing the lengths is usually
    /// enough.
    #[inline]
    fn eq(&self, other: &str) -> bool {
        let body = self.body();
        match body.len().cmp(&other.len()) {
            Ordering::Less => false,
            Ordering::Equal => body == other && !self.has_escapes(),
            Ordering::Greater => self.has_escapes() && self.to_plain() == other,
        }
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_plain(), out)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_plain())
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Plain(Cow::Owned(text))
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Literal(_) => serializer.serialize_str(self.body()),
            Self::Escaped(raw) => super::value::write_raw(raw.get(), serializer),
            Self::Plain(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::of(raw).ok_or_else(|| serde::de::Error::custom("expected a string"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_and_its_meaning_are_equal() {
        let raw: &RawValue = serde_json::from_str(r#""a\u0062\n""#).unwrap();
        let literal = Text::of(raw).unwrap();
        assert_eq!(literal, Text::plain("ab\n"));
        assert_eq!(literal.into_owned(), Text::plain("ab\n"));
    }

    #[test]
    fn the_form_of_a_text_does_not_matter() {
        let read = |literal| Text::of(serde_json::from_str(literal).unwrap()).unwrap();
        let same = [r#""a\\b""#, r#""a\u005cb""#, r#""\u0061\\b""#];
        for literal in same {
            assert_eq!(read(literal), *"a\\b", "{literal}");
            assert_eq!(read(literal), Text::plain("a\\b"), "{literal}");
            assert_eq!(Text::plain("a\\b"), read(literal), "{literal}");
            same.iter().for_each(|other| assert_eq!(read(literal), read(other), "{literal}"));
        }
        // The same bytes, but another text.
        assert_ne!(read(r#""a\\b""#), *r"a\\b");
        assert_ne!(read(r#""a\\b""#), Text::plain(r"a\\b"));
        assert_ne!(read(r#""ab""#), *"a");
        assert_ne!(read(r#""ab""#), *"abc");
    }

    #[test]
    fn only_a_string_is_text() {
        let raw: &RawValue = serde_json::from_str("12").unwrap();
        assert!(Text::of(raw).is_none());
    }
}
