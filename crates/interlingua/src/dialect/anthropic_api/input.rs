//! The input of a call, which is streamed as JSON text that is cut anywhere. It knows no record.

use crate::json::{Json, Text, mend_surrogates, on_one_line};

/// The longest input that is kept, in bytes.
const MAX_INPUT: usize = 64 << 20;

/// The input so far.
#[derive(Debug, Default)]
pub(super) struct StreamedInput {
    text: String,
    too_long: bool,
}

/// What the whole text of an input is.
#[derive(Debug, PartialEq)]
pub(super) enum WholeInput {
    /// There is none, which stands for an empty object.
    Empty,
    /// An object.
    Object(Json<'static>),
    /// It is incomplete, or not an object.
    Broken,
}

impl StreamedInput {
    /// Adds the next piece.
    pub(super) fn add(&mut self, piece: &Text<'_>) {
        let piece = piece.to_plain();
        if self.text.len() + piece.len() > MAX_INPUT {
            self.too_long = true;
            self.text = String::new();
        }
        if !self.too_long {
            self.text.push_str(&piece);
        }
    }

    /// Ends the input.
    pub(super) fn end(self) -> WholeInput {
        let text = self.text.trim_ascii();
        if self.too_long {
            return WholeInput::Broken;
        }
        if text.is_empty() {
            return WholeInput::Empty;
        }
        // A record must not break a line of the output.
        let text = mend_surrogates(text);
        let object = Json::from_text(on_one_line(&text).into_owned()).filter(Json::is_object);
        object.map_or(WholeInput::Broken, WholeInput::Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(pieces: &[&'static str]) -> WholeInput {
        let mut input = StreamedInput::default();
        pieces.iter().for_each(|piece| input.add(&Text::plain(piece)));
        input.end()
    }

    #[test]
    fn only_a_whole_object_is_an_input() {
        assert_eq!(whole(&[]), WholeInput::Empty);
        assert_eq!(whole(&["", " "]), WholeInput::Empty);
        let object = Json::from_text(r#"{"a":1}"#.to_owned()).unwrap();
        assert_eq!(whole(&["", "{\"a\"", ":1}", "\n"]), WholeInput::Object(object));
        let object = Json::from_text(r#"{ "a":"x\ny"}"#.to_owned()).unwrap();
        assert_eq!(whole(&["{\n\"a\":\"x", "\ny\"}"]), WholeInput::Object(object));
        for broken in ["{\"a\":", "{\"a\":1}}", "12", "null", "[]", "{a:1}"] {
            assert_eq!(whole(&[broken]), WholeInput::Broken, "{broken}");
        }
    }
}
