//! Shortens the input of a tool so that it fits a line.
//!
//! The input of a tool cannot be split. If it is too long, its longest strings are truncated and
//! state how much is missing; short values are unchanged. The result is an object with the same
//! fields, as far as there is room for them. It knows JSON text, and no tool.

use super::chunks;
use crate::json::read::{self, Fields};
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text};

/// The shortest length to which strings are truncated.
const SHORTEST: usize = 64;

/// The object, with strings truncated until it fits.
pub(super) fn object(json: &str, room: usize) -> String {
    let mut longest = room / 2;
    while longest >= SHORTEST {
        let shorter = with_strings_cut(json, longest);
        if shorter.len() <= room {
            return shorter;
        }
        longest /= 2;
    }
    with_fields_left_out(json, room)
}

/// The same JSON, with every string value truncated that is longer than `longest`.
fn with_strings_cut(json: &str, longest: usize) -> String {
    let mut short = String::with_capacity(json.len().min(longest * 4));
    let mut rest = json;
    while let Some(quote) = memchr::memchr(b'"', rest.as_bytes()) {
        let (before, string) = rest.split_at(quote);
        short.push_str(before);
        let (literal, after) = string.split_at(literal_length(string));
        let is_name = after.trim_ascii_start().starts_with(':');
        if literal.len() <= longest || is_name {
            short.push_str(literal);
        } else {
            cut_literal(&mut short, literal, longest);
        }
        rest = after;
    }
    short.push_str(rest);
    short
}

/// Appends the start of a string literal, and how much of it is missing.
fn cut_literal(short: &mut String, literal: &str, longest: usize) {
    let Ok(text) = serde_json::from_str::<Text<'_>>(literal) else { return };
    let (start, left_out) = chunks::start(&text, longest);
    let mut body = Bytes::new();
    start.write_body(&mut body);
    short.push('"');
    short.push_str(&String::from_utf8_lossy(&body));
    short.push_str(&format!("… [{left_out} bytes left out]\""));
}

/// The length of the string literal at the start of JSON text.
fn literal_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            _ => at += 2,
        }
    }
    bytes.len()
}

/// The object with its short fields, and a note in place of each long one. This is for objects that
/// are long without long strings, such as those with a list of a million numbers.
fn with_fields_left_out(json: &str, room: usize) -> String {
    const SHORT: usize = 1024;
    let mut all = Fields::default();
    let read = read::record(json, &mut all);
    let (Ok(_), Fields(fields)) = (read, all) else {
        return "{}".to_owned();
    };
    let mut left = room.saturating_sub(2);
    let made = Json::object(|object: &mut Object<'_>| {
        for (name, value) in &fields {
            let value = value.get();
            let cost = name.len() * 6 + value.len().min(SHORT) + 64;
            if cost > left {
                continue;
            }
            left -= cost;
            let out = object.escaped_name(name);
            if value.len() <= SHORT {
                out.extend_from_slice(value.as_bytes());
            } else {
                let note = format!("\"… [{} bytes left out]\"", value.len());
                out.extend_from_slice(note.as_bytes());
            }
        }
    });
    made.get().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_longest_strings_are_truncated_and_state_what_is_missing() {
        let input = json!({ "file_path": "/a/b", "content": "x\n".repeat(5000), "n": [1, "two"] });
        let short = object(&input.to_string(), 2000);
        assert!(short.len() <= 2000);
        let short: Value = serde_json::from_str(&short).unwrap();
        assert_eq!((&short["file_path"], &short["n"]), (&json!("/a/b"), &json!([1, "two"])));
        let content = short["content"].as_str().unwrap();
        let kept = content.find('…').unwrap();
        assert_eq!(content[kept..], format!("… [{} bytes left out]", 10_000 - kept));
        assert!(kept > 400);
    }

    #[test]
    fn quotes_and_names_are_not_mistaken_for_values() {
        let name = "n".repeat(500);
        let input = json!({ &name: "v\"\\".repeat(300), "e": "\\" });
        let short: Value = serde_json::from_str(&object(&input.to_string(), 900)).unwrap();
        assert!(short[&name].as_str().unwrap().ends_with("bytes left out]"));
        assert_eq!(short["e"], json!("\\"));
    }

    #[test]
    fn an_object_without_long_strings_loses_its_long_fields() {
        let input = json!({ "path": "/a", "numbers": vec![7; 5000] }).to_string();
        let short: Value = serde_json::from_str(&object(&input, 2000)).unwrap();
        assert_eq!(short, json!({ "path": "/a", "numbers": "… [10001 bytes left out]" }));
    }

    #[test]
    fn an_object_with_ten_thousand_fields_fits() {
        let many: serde_json::Map<_, _> =
            (0..10_000).map(|at| (format!("field{at}"), json!(at))).collect();
        let short = object(&Value::from(many).to_string(), 2000);
        assert!(short.len() <= 2000 && serde_json::from_str::<Value>(&short).is_ok());
    }
}
