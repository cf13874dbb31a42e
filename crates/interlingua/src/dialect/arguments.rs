//! The arguments of a tool call, which model APIs stream as pieces of JSON text.

use crate::event::{ErrorClass, Outcome, TurnEnded};
use crate::json::{Json, Text, mend_surrogates, on_one_line};

/// The arguments of a call so far.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    text: String,
    /// It has more than white space.
    begun: bool,
    /// The number of open objects and arrays.
    depth: usize,
    in_string: bool,
    after_backslash: bool,
}

impl Arguments {
    /// Adds the next piece, cut anywhere.
    pub(crate) fn add(&mut self, piece: &Text<'_>) {
        let piece = piece.to_plain();
        for byte in piece.bytes() {
            match byte {
                _ if self.after_backslash => self.after_backslash = false,
                b'\\' if self.in_string => self.after_backslash = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.begun |= !piece.trim_ascii().is_empty();
        self.text.push_str(&piece);
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether there is nothing but white space.
    pub(crate) fn is_empty(&self) -> bool {
        !self.begun
    }

    /// Whether every object, array and string that was opened is closed.
    pub(crate) fn is_closed(&self) -> bool {
        !self.is_empty() && self.depth == 0 && !self.in_string
    }

    /// The arguments as an object; `None` if they are not complete or no object. A call without
    /// arguments has an empty text, which is complete only if the response is.
    pub(crate) fn to_input(&self, response_is_complete: bool) -> Option<Json<'static>> {
        let text = self.text.trim_ascii();
        if text.is_empty() || text == "null" {
            return response_is_complete.then(|| Json::object(|_| {}));
        }
        // A record must not break a line of the output.
        let text = mend_surrogates(text);
        Json::from_text(on_one_line(&text).into_owned()).filter(Json::is_object)
    }
}

/// Ends a response whose calls all have arguments that are no JSON object.
pub(crate) fn end_with_malformed_calls(ended: &mut TurnEnded<'_>) {
    ended.outcome = Outcome::Failed;
    // The model made a mistake, and may not make it again.
    ended.class = Some(ErrorClass::Internal);
    ended.reason = Some(Text::plain(TurnEnded::MALFORMED_CALLS));
    ended.cause = Some(Text::plain("the arguments of the tool call are no JSON object"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Arguments {
        let mut arguments = Arguments::default();
        arguments.add(&Text::plain(text));
        arguments
    }

    #[test]
    fn nothing_means_an_empty_object_only_if_the_response_is_complete() {
        for text in ["", " \n", "null"] {
            assert_eq!(of(text).to_input(true).unwrap().get(), "{}");
            assert!(of(text).to_input(false).is_none());
        }
    }

    #[test]
    fn only_a_complete_object_is_an_input() {
        for text in [
            "12",
            "[1]",
            "\"x\"",
            "{",
            r#"{"a":"#,
            r#"{"a":"x"#,
            r#"{"a":[1,2]"#,
            r#"{"a":1}{"b":2}"#,
        ] {
            assert!(of(text).to_input(true).is_none(), "{text}");
        }
    }

    #[test]
    fn an_input_is_one_line_of_valid_json() {
        let input = of("{\r\n \"a\": \"\\ud83d\"\n}").to_input(true).unwrap();
        assert_eq!(input.get(), "{   \"a\": \"\\ufffd\" }");
        let input = of("{\"a\":\"x\ny\"}").to_input(true).unwrap();
        assert_eq!(input.get(), r#"{"a":"x\ny"}"#);
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert!(!of(r#"{"a":"}\"]"#).is_closed());
        assert!(of(r#"{"a":"{\"["}"#).is_closed());
        assert!(!of("").is_closed());
    }
}
