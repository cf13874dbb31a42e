//! Recognises a record that differs from an earlier one only in one text.
//!
//! Almost every record of a model's response contains the next piece of a text, and everything
//! around the pieces is the same. Comparing it costs a fraction of parsing it. Whatever differs in
//! anything else has to be parsed, except padding.

use super::Text;

/// The last field of the records of OpenAI, which pads them to hide the lengths of texts. It has no
/// other meaning.
const PADDING: &str = r#","obfuscation":"#;

/// What follows the padding.
const END: &str = r#""}"#;

/// A record without its text, from which other records with the same meaning are recognised.
///
/// ```
/// use interlingua::json::RepeatedRecord;
///
/// let first = r#"{"type":"delta","text":"Hello"}"#;
/// let mut known = RepeatedRecord::default();
/// // It was parsed, and its only content is this text, which belongs to block 7.
/// known.learn(first, &first[24..29], 7);
/// let (text, block) = known.read(r#"{"type":"delta","text":" world"}"#).unwrap();
/// assert_eq!((text.body(), *block), (" world", 7));
/// ```
#[derive(Debug)]
pub struct RepeatedRecord<Place> {
    /// The record up to its text, including the quote.
    before: String,
    /// The record after its text, from the quote on, up to its padding.
    after: String,
    is_padded: bool,
    /// Where the text belongs; `None` if no record is known.
    place: Option<Place>,
}

impl<Place> Default for RepeatedRecord<Place> {
    fn default() -> Self {
        Self { before: String::new(), after: String::new(), is_padded: false, place: None }
    }
}

impl<Place> RepeatedRecord<Place> {
    /// Remembers a valid record whose only content is a text. `text` is what is between the quotes,
    /// and must be borrowed from the record; otherwise, nothing is remembered.
    pub fn learn(&mut self, record: &str, text: &str, place: Place) {
        self.place = None;
        let start = text.as_ptr().addr().wrapping_sub(record.as_ptr().addr());
        let Some((before, rest)) = record.split_at_checked(start) else { return };
        let Some((_, after)) = rest.split_at_checked(text.len()) else { return };
        if before.ends_with('"') && after.starts_with('"') {
            self.before.clear();
            self.before.push_str(before);
            let unpadded = without_padding(after).filter(|after| after.ends_with(PADDING));
            self.is_padded = unpadded.is_some();
            self.after.clear();
            self.after.push_str(unpadded.unwrap_or(after));
            self.place = Some(place);
        }
    }

    /// Reads the text of a record that is otherwise the known one, and returns it with its place.
    /// A text with escapes is left to the parser, as is one that is not valid JSON.
    #[inline]
    pub fn read<'r>(&self, record: &'r str) -> Option<(Text<'r>, &Place)> {
        let place = self.place.as_ref()?;
        let rest = record.strip_prefix(&*self.before)?;
        let rest = if self.is_padded { without_padding(rest)? } else { rest };
        let text = rest.strip_suffix(&*self.after)?;
        if !is_plain(text) {
            return None;
        }
        let start = self.before.len() - 1;
        let literal = record.get(start..start + text.len() + 2)?;
        Some((Text::of_literal(literal, false), place))
    }
}

/// The beginning of an object whose last field is a string, up to that string.
fn without_padding(record: &str) -> Option<&str> {
    let (before, padding) = record.strip_suffix(END)?.rsplit_once('"')?;
    is_plain(padding).then_some(before)
}

/// Whether a text is the same as the body of its literal.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    // Without a shortcut, the compiler uses vector instructions.
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(record: &str, text: &str) -> RepeatedRecord<u8> {
        let start = record.find(text).unwrap();
        let mut known = RepeatedRecord::default();
        known.learn(record, &record[start..start + text.len()], 7);
        known
    }

    #[test]
    fn only_the_text_may_differ() {
        let known = learned(r#"{"a":"one","b":1}"#, "one");
        for text in ["another", "", "ü 🙂"] {
            let record = format!(r#"{{"a":"{text}","b":1}}"#);
            assert_eq!(known.read(&record), Some((Text::plain(text), &7)));
        }
        for other in [
            r#"{"a":"one","b":2}"#,
            r#"{"a":"one"}"#,
            r#"{"a":"one","c":"","b":1}"#,
            r#"{"a":"o\"ne","b":1}"#,
            r#"{"a":"o\u0020ne","b":1}"#,
            "{\"a\":\"o\nne\",\"b\":1}",
            r#"{"a":","b":1}"#,
            r#"{"a":1,"b":1}"#,
            r#" {"a":"one","b":1}"#,
        ] {
            assert_eq!(known.read(other), None, "{other}");
        }
    }

    #[test]
    fn padding_may_differ() {
        let known = learned(r#"{"a":"one","obfuscation":"xyz"}"#, "one");
        for padding in ["", "x", "another"] {
            let record = format!(r#"{{"a":"another","obfuscation":"{padding}"}}"#);
            assert_eq!(known.read(&record), Some((Text::plain("another"), &7)));
        }
        for other in [
            r#"{"a":"one","obfuscation":"x\"y"}"#,
            r#"{"a":"one","obfuscation":"x\"}"#,
            r#"{"a":"one","obfuscation":1}"#,
            r#"{"a":"one","obfuscation":"x","b":""}"#,
            r#"{"a":"one","b":"x"}"#,
        ] {
            assert_eq!(known.read(other), None, "{other}");
        }
        let known = learned(r#"{"a":"one","b":"xyz"}"#, "one");
        assert_eq!(known.read(r#"{"a":"one","b":"x"}"#), None);
    }

    #[test]
    fn a_text_that_is_not_of_the_record_is_not_learned() {
        let record = r#"{"a":"one"}"#;
        let mut known = learned(record, "one");
        known.learn(record, &String::from("one"), 7);
        assert_eq!(known.read(record), None);
        known.learn(record, &record[1..2], 7);
        assert_eq!(known.read(record), None);
        assert_eq!(RepeatedRecord::<u8>::default().read(""), None);
    }
}
