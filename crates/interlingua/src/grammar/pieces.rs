//! What was said of a block in pieces, and how a whole block relates to it.

use crate::fingerprint::Fingerprint;
use crate::json::Text;

/// How much text is kept to be compared; of a longer block only a fingerprint is.
const KEPT: usize = 4 << 20;

/// How much room for text is kept from block to block.
const ROOM: usize = 64 << 10;

/// The pieces of a block, in the form that they have in a literal: a whole block by the same agent
/// escapes what its pieces escape, so that as a rule nothing has to be unescaped.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    body: String,
    /// Of all pieces, once they are too long to be kept.
    fingerprint: Option<Fingerprint>,
}

/// How a whole block relates to its pieces.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// It says the same.
    Repeats,
    /// It says the same, and then this.
    GoesOn(String),
    /// It says something else.
    Differs,
}

impl Pieces {
    /// Takes the next piece.
    #[inline]
    pub(super) fn add(&mut self, piece: &Text<'_>) {
        let body = piece.literal_body();
        match &mut self.fingerprint {
            Some(fingerprint) => fingerprint.add(body.as_bytes()),
            None => {
                self.body.push_str(&body);
                if self.body.len() > KEPT {
                    self.fingerprint = Some(Fingerprint::of(self.body.as_bytes()));
                    self.body = String::new();
                }
            }
        }
    }

    /// Forgets the pieces, but keeps the room, unless there is much.
    pub(super) fn empty(&mut self) {
        self.body.clear();
        self.body.shrink_to(ROOM);
        self.fingerprint = None;
    }

    /// Keeps no text: only that there was more than can be kept.
    pub(super) fn give_up(&mut self) {
        self.fingerprint = Some(Fingerprint::of(b""));
    }

    /// All pieces together; `None` where they are too long to be kept.
    pub(super) fn into_body(self) -> Option<String> {
        self.fingerprint.is_none().then_some(self.body)
    }

    /// The fingerprint of all pieces.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint.unwrap_or_else(|| Fingerprint::of(self.body.as_bytes()))
    }

    /// How a whole block relates to the pieces.
    pub(super) fn relation(&self, whole: &Text<'_>) -> Relation {
        let body = whole.literal_body();
        if let Some(said) = self.fingerprint {
            let start = body.as_bytes().get(..said.length());
            return match start {
                Some(start) if Fingerprint::of(start) == said => match body.get(start.len()..) {
                    Some("") => Relation::Repeats,
                    Some(rest) => Relation::GoesOn(Text::of_literal_body(rest)),
                    None => Relation::Differs,
                },
                _ => Relation::Differs,
            };
        }
        if *body == *self.body {
            return Relation::Repeats;
        }
        // Another way to escape the same text is no other text.
        let (said, whole) = (Text::of_literal_body(&self.body), whole.to_plain());
        match whole.strip_prefix(&*said) {
            Some("") => Relation::Repeats,
            Some(rest) => Relation::GoesOn(rest.to_owned()),
            None => Relation::Differs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_block_is_compared_by_its_fingerprint() {
        let piece = "x".repeat(KEPT / 2 + 1);
        let mut pieces = Pieces::default();
        for _ in 0..3 {
            pieces.add(&Text::plain(&piece));
        }
        let whole = piece.repeat(3);
        assert_eq!(pieces.relation(&Text::plain(&whole)), Relation::Repeats);
        let more = format!("{whole}\n!");
        assert_eq!(pieces.relation(&Text::plain(&more)), Relation::GoesOn("\n!".to_owned()));
        assert_eq!(pieces.relation(&Text::plain("x")), Relation::Differs);
    }
}
