//! The limit: the cost of a translator that is written by hand for one pair.
//!
//! Each line is split off, validated once, parsed once into borrowed fields, and written with raw
//! slices into a buffer that is reused. The limit keeps no order, detects no repeated text and
//! generates no ids, and it skips malformed records. It is the yardstick, so it is as fast as it
//! can be without being wrong on the corpora. It shares one thing with us, the escaping of JSON
//! inside a string, since a hand-written loop was slower.

pub(crate) mod ag_ui;
pub(crate) mod ai_sdk;
pub(crate) mod ui_message;

use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The output is discarded when it reaches this size.
const OUTPUT_KEPT: usize = 1 << 16;

/// Translates lines one by one; the output is passed to `keep` and then discarded.
pub(crate) fn each_line<'a, L: Deserialize<'a>>(
    mut input: &'a [u8],
    keep: &mut dyn FnMut(&[u8]),
    mut translate: impl FnMut(L, &mut Vec<u8>),
) {
    let mut out = Vec::new();
    while let Some(end) = memchr(b'\n', input) {
        let (line, rest) = input.split_at(end);
        input = rest.get(1..).unwrap_or_default();
        let Ok(text) = simdutf8::basic::from_utf8(line) else { continue };
        let Ok(line) = serde_json::from_str(text) else { continue };
        translate(line, &mut out);
        if out.len() > OUTPUT_KEPT {
            keep(&out);
            out.clear();
        }
    }
    keep(&out);
}

/// Writes fixed text and raw values in turn.
macro_rules! put {
    ($out:expr, $($part:expr),+ $(,)?) => {
        {$($out.extend_from_slice($part.as_bytes());)+}
    };
}

pub(crate) fn raw(value: Option<&RawValue>) -> &str {
    value.map_or("null", RawValue::get)
}

/// The text between the quotes of a literal.
pub(crate) fn body(value: Option<&RawValue>) -> &str {
    let literal = raw(value);
    literal.get(1..literal.len() - 1).unwrap_or_default()
}

pub(crate) use put;
