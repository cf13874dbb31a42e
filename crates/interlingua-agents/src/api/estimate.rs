//! Estimates the tokens of a request for which the provider reported none.
//!
//! The tokenizer is OpenAI's `o200k`, whatever the model is: Anthropic and Google publish none for
//! their current models, and compatible servers do not reveal theirs. It is that of the crate
//! `tiktoken-rs`. The alternative `bpe-openai` counts about 1.5 times as fast, and loads three times
//! as fast, but adds 34 MB to the program instead of 6 MB and needs 70 MB of memory instead of 53 MB;
//! an estimate is rare, and the program is copied to every user.
//!
//! The tokenizer is loaded when the first estimate is needed and never before, because that takes
//! longer than a session may take to start. Callers run [`estimate`] where they may block.

use interlingua::event::{Scope, Usage};
use serde_json::Value;

/// How many bytes of a text are tokenized. What follows is taken to be like the beginning.
const TOKENIZED: usize = 64 << 10;

/// How many bytes are tokenized at once. The tokenizer searches with a stack, and aborts if white
/// space of a million characters exceeds it.
const PIECE: usize = 4 << 10;

/// The length from which text without spaces is not read by the model as text.
const LONG: usize = 256;

/// The tokens of a request with this body, and of what was received for it.
pub(super) fn estimate(sent: &str, received: &str) -> Usage<'static> {
    usage(tokens(&text_of(sent)), tokens(received))
}

/// The same by the length of the texts alone: less exact, but without a tokenizer.
pub(super) fn estimate_by_length(sent: &str, received: &str) -> Usage<'static> {
    usage(by_length(&text_of(sent)), by_length(received))
}

fn by_length(text: &str) -> u64 {
    // A token of English text or of code has almost four characters.
    text.chars().count().div_ceil(4) as u64
}

/// The counts that the provider reported when a response began, with those of what was received of it.
pub(super) fn completed(begun: Usage<'static>, received: &str) -> Usage<'static> {
    with_output(begun, tokens(received))
}

/// The same by the length of the text alone.
pub(super) fn completed_by_length(begun: Usage<'static>, received: &str) -> Usage<'static> {
    with_output(begun, by_length(received))
}

fn with_output(begun: Usage<'static>, output: u64) -> Usage<'static> {
    Usage { output: Some(output), total: None, estimated: true, ..begun }
}

fn usage(input: u64, output: u64) -> Usage<'static> {
    Usage {
        scope: Scope::Request,
        input: Some(input),
        output: Some(output),
        estimated: true,
        ..Usage::default()
    }
}

fn tokens(text: &str) -> u64 {
    let mut counted = 0_u64;
    let mut rest = text;
    while !rest.is_empty() && text.len() - rest.len() < TOKENIZED {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        counted += tiktoken_rs::o200k_base_singleton().encode_ordinary(piece).len() as u64;
        rest = after;
    }
    let tokenized = text.len() - rest.len();
    if rest.is_empty() {
        return counted;
    }
    (counted as f64 * text.len() as f64 / tokenized as f64).ceil() as u64
}

/// The text that a model reads of a body: names and values, without punctuation and without the
/// bytes of images and signatures.
fn text_of(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    match serde_json::from_str(body) {
        Ok(value) => collect(&value, &mut text),
        Err(_) => text.push_str(body),
    }
    text
}

fn collect(value: &Value, text: &mut String) {
    let mut add = |word: &str| {
        text.push_str(word);
        text.push('\n');
    };
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => add(&value.to_string()),
        Value::String(word) if is_binary(word) => {}
        Value::String(word) => add(word),
        Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
        Value::Object(fields) => {
            for (name, value) in fields {
                text.push_str(name);
                text.push('\n');
                collect(value, text);
            }
        }
    }
}

fn is_binary(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    text.starts_with("data:") || (text.len() >= LONG && text.bytes().all(is_base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_marked_as_one() {
        // The line end after "?" belongs to its token, and the one after "input" does not.
        let usage = estimate(r#"{"input":"How many tokens are these?"}"#, "hello world");
        assert_eq!((usage.input, usage.output), (Some(8), Some(2)));
        assert!(usage.estimated);
        assert_eq!(usage.scope, Scope::Request);
    }

    #[test]
    fn images_are_not_text() {
        let image = "iVBORw0KGgo".repeat(1000);
        let with = format!(r#"{{"text":"hi","data":"{image}","url":"data:image/png;base64,AA"}}"#);
        let without = r#"{"text":"hi","data":"","url":""}"#;
        assert_eq!(estimate(&with, "").input, estimate(without, "").input);
    }

    #[test]
    fn a_long_text_is_extrapolated() {
        let line = "The quick brown fox jumps over the lazy dog.\n";
        let once = tokens(&line.repeat(100));
        let often = tokens(&line.repeat(100_000));
        let expected = once * 1000;
        assert!(often.abs_diff(expected) < expected / 50, "{often} is not about {expected}");
    }

    /// The tokenizer aborts if such a text is given to it at once.
    #[test]
    fn white_space_of_any_length_is_counted() {
        let spaces = format!("{}x", " ".repeat(3_000_000));
        assert!(tokens(&spaces) > 0);
        assert!(tokens(&"é".repeat(TOKENIZED)) > 0);
    }

    #[test]
    fn without_a_tokenizer_the_length_counts() {
        let usage = estimate_by_length(r#"{"a":"twelve chars"}"#, "four");
        assert_eq!((usage.input, usage.output), (Some(4), Some(1)));
        assert!(usage.estimated);
    }
}
