//! Writes records as server-sent events: `data:`, the record, an empty line.

use super::Output;
use crate::json::write::Object;

/// Writes one record whose first field is its type.
#[inline]
pub(crate) fn event(out: &mut Output, kind: &str, fields: impl FnOnce(&mut Object<'_>)) {
    let start = out.bytes().len();
    event_of_text(out, kind, fields);
    let record = out.bytes().get_mut(start..).unwrap_or_default();
    keep_on_one_line(record);
}

/// Like [`event`], for a record without values that pass through: text, numbers and names contain
/// no line breaks.
#[inline]
pub(crate) fn event_of_text(out: &mut Output, kind: &str, fields: impl FnOnce(&mut Object<'_>)) {
    let bytes = out.bytes();
    bytes.extend_from_slice(b"data: ");
    let mut record = Object::record(bytes, kind);
    fields(&mut record);
    record.close();
    bytes.extend_from_slice(b"\n\n");
}

/// Writes the `[DONE]` with which some protocols end a stream.
pub(crate) fn done(out: &mut Output) {
    out.bytes().extend_from_slice(b"data: [DONE]\n\n");
}

/// Replaces carriage returns, which also end a line of a server-sent event. In a value that passes
/// through they can only be white space, since a string contains none.
fn keep_on_one_line(record: &mut [u8]) {
    let Some(first) = memchr::memchr(b'\r', record) else { return };
    for byte in record.iter_mut().skip(first).filter(|byte| **byte == b'\r') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    #[test]
    fn white_space_of_a_value_does_not_end_the_event() {
        let value = Json::from_text("{\"a\":\r1}".to_owned()).unwrap();
        let mut out = Output::default();
        event(&mut out, "data-x", |part| {
            part.json("data", &value);
        });
        assert_eq!(out.bytes(), b"data: {\"type\":\"data-x\",\"data\":{\"a\": 1}}\n\n");
    }
}
