//! The limit: what a translator for one pair costs that knows nothing but that pair.
//!
//! Each line is split off, validated once, parsed once into borrowed fields, and written with raw
//! slices into a buffer that is used again. There is no order to keep, no repeated text to find, no
//! id to make, and a record out of shape is skipped. This is the yardstick, so it is to be as fast
//! as it can be without being wrong on the corpora; it shares one thing with us, the escaping of
//! JSON inside a string, since a hand-written loop was slower.

pub(crate) mod ag_ui;
pub(crate) mod ai_sdk;
pub(crate) mod ui_message;

use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Output is thrown away when there is this much of it.
const OUTPUT_KEPT: usize = 1 << 16;

/// Translates lines one by one; the output is thrown away, or handed to `keep` first.
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

/// What stands between the quotes of a literal.
pub(crate) fn body(value: Option<&RawValue>) -> &str {
    let literal = raw(value);
    literal.get(1..literal.len() - 1).unwrap_or_default()
}

pub(crate) use put;
