//! The streamed text of a block, and how a whole block relates to it.

use crate::fingerprint::Fingerprint;
use crate::json::Text;

/// The longest text that is kept for comparison; of a longer one only a fingerprint is kept.
const MAX_TEXT: usize = 4 << 20;

/// The buffer capacity that is kept from block to block.
const SPARE_CAPACITY: usize = 64 << 10;

/// The deltas of a block, as the body of a JSON literal. An agent escapes a whole block as it
/// escapes its deltas, so comparing the two rarely requires unescaping.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    body: String,
    /// The fingerprint of all deltas, once they are too long to be kept.
    fingerprint: Option<Fingerprint>,
}

/// How a whole block relates to its deltas.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// It has the same text.
    Repeats,
    /// It starts with the same text, and continues with this.
    Extends(String),
    /// It has another text.
    Differs,
}

impl Pieces {
    /// Appends the next delta.
    #[inline]
    pub(super) fn add(&mut self, piece: &Text<'_>) {
        let body = piece.literal_body();
        match &mut self.fingerprint {
            Some(fingerprint) => fingerprint.add(body.as_bytes()),
            None => {
                self.body.push_str(&body);
                if self.body.len() > MAX_TEXT {
                    self.fingerprint = Some(Fingerprint::of(self.body.as_bytes()));
                    self.body = String::new();
                }
            }
        }
    }

    /// Clears the text, but keeps the buffer, up to `SPARE_CAPACITY`.
    pub(super) fn reset(&mut self) {
        self.body.clear();
        self.body.shrink_to(SPARE_CAPACITY);
        self.fingerprint = None;
    }

    /// Marks the text as too long to be kept.
    pub(super) fn discard_text(&mut self) {
        self.fingerprint = Some(Fingerprint::of(b""));
    }

    /// The whole text; `None` where it was too long to be kept.
    pub(super) fn into_body(self) -> Option<String> {
        self.fingerprint.is_none().then_some(self.body)
    }

    /// The fingerprint of the whole text.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint.unwrap_or_else(|| Fingerprint::of(self.body.as_bytes()))
    }

    /// How a whole block relates to the deltas.
    pub(super) fn relation(&self, whole: &Text<'_>) -> Relation {
        let body = whole.literal_body();
        if let Some(streamed) = self.fingerprint {
            let start = body.as_bytes().get(..streamed.length());
            return match start {
                Some(start) if Fingerprint::of(start) == streamed => {
                    match body.get(start.len()..) {
                        Some("") => Relation::Repeats,
                        Some(rest) => Relation::Extends(Text::of_literal_body(rest)),
                        None => Relation::Differs,
                    }
                }
                _ => Relation::Differs,
            };
        }
        if *body == *self.body {
            return Relation::Repeats;
        }
        // The same text may be escaped in another way.
        let (streamed, whole) = (Text::of_literal_body(&self.body), whole.to_plain());
        match whole.strip_prefix(&*streamed) {
            Some("") => Relation::Repeats,
            Some(rest) => Relation::Extends(rest.to_owned()),
            None => Relation::Differs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_block_is_compared_by_its_fingerprint() {
        let piece = "x".repeat(MAX_TEXT / 2 + 1);
        let mut pieces = Pieces::default();
        for _ in 0..3 {
            pieces.add(&Text::plain(&piece));
        }
        let whole = piece.repeat(3);
        assert_eq!(pieces.relation(&Text::plain(&whole)), Relation::Repeats);
        let more = format!("{whole}\n!");
        assert_eq!(pieces.relation(&Text::plain(&more)), Relation::Extends("\n!".to_owned()));
        assert_eq!(pieces.relation(&Text::plain("x")), Relation::Differs);
    }
}
