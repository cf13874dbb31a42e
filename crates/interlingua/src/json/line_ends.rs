//! JSON text that a model wrote over several lines, as one line.
//!
//! Between values, a line end is white space. Inside a string it is not valid, but models write it
//! there too, and it is meant.

use std::borrow::Cow;

/// The text without line ends: those in strings are escaped, and others become blanks. It is borrowed
/// if there are none.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 16);
    let (mut in_string, mut escaped) = (false, false);
    for letter in text.chars() {
        match letter {
            '\n' if in_string => line.push_str(if escaped { "n" } else { "\\n" }),
            '\r' if in_string => line.push_str(if escaped { "r" } else { "\\r" }),
            '\n' | '\r' => line.push(' '),
            other => line.push(other),
        }
        match letter {
            '"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && letter == '\\' && !escaped;
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_in_strings_are_escaped() {
        assert_eq!(on_one_line("{\n\"a\":\r\n1}"), "{ \"a\":  1}");
        assert_eq!(on_one_line("{\"a\":\"x\ny\r\n\"}"), r#"{"a":"x\ny\r\n"}"#);
        // A backslash before a line end would otherwise escape the escape.
        assert_eq!(on_one_line("\"\\\n\""), r#""\n""#);
        assert_eq!(on_one_line("\"\\\\\n\""), r#""\\\n""#);
        assert_eq!(on_one_line("\"\\\"\n\"\n"), r#""\"\n" "#);
        assert!(matches!(on_one_line("{}"), Cow::Borrowed("{}")));
    }
}
