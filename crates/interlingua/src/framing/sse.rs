//! Server-sent events, as the WHATWG defines them.
//!
//! This framing knows fields, line ends and the `[DONE]` of chat servers; it does not know what an
//! event's data means. It differs from a browser in one point: an event that is still open when the
//! input ends is emitted and marked as unterminated, so that nothing is lost.
//!
//! A frame covers the event from the start of its first field to the end of its last. Comments
//! before and after are not part of it, and all of that range counts against the limit.

use std::borrow::Cow;

use memchr::memchr2;

use super::lines::{Carry, decode};
use super::{Body, Frame, FrameText, Framing, Limits};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Cuts a stream of server-sent events into the data of its events.
///
/// The data of an event with a single `data:` line within one chunk is emitted without a copy.
#[derive(Debug)]
pub struct Sse {
    limits: Limits,
    /// The length of the byte order mark read so far; `None` after the start of the input.
    mark: Option<usize>,
    /// The last byte was a CR, so an LF that follows belongs to the same line end.
    after_cr: bool,
    /// The offset of the next byte in the input.
    offset: u64,
    /// The number of the current line, and its offset.
    line: u64,
    line_start: u64,
    /// The part of the current line in earlier chunks: all of it, or only its first byte if the
    /// rest does not matter.
    carry: Carry,
    event: Event,
}

/// The event whose fields are being read.
#[derive(Debug, Default)]
struct Event {
    /// The line and the offset at which its first field starts, once there is one.
    place: Option<(u64, u64)>,
    /// The end of its last field.
    end: u64,
    name: Carry,
    has_data: bool,
    /// It has more than one line of data.
    several_lines: bool,
    /// Its data, unless the data is still in the chunk.
    data: Carry,
}

impl Sse {
    /// Starts at the beginning of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            mark: Some(0),
            after_cr: false,
            offset: 0,
            line: 1,
            line_start: 0,
            carry: Carry::default(),
            event: Event::default(),
        }
    }

    /// The memory in use for bytes that are held back between two chunks.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.carry.capacity() + self.event.data.capacity() + self.event.name.capacity()
    }

    /// The number of lines and of bytes that were read, at the start of a line.
    pub(super) fn next_line(&self) -> (u64, u64) {
        (self.line - 1, self.offset)
    }

    /// Skips a byte order mark, which is allowed only at the start of the input.
    fn skip_mark<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let Some(seen) = self.mark else { return chunk };
        let expected = BYTE_ORDER_MARK.get(seen..).unwrap_or_default();
        let same = expected.iter().zip(chunk).take_while(|(mark, byte)| mark == byte).count();
        if same == expected.len() {
            self.mark = None;
            self.offset = BYTE_ORDER_MARK.len() as u64;
            self.line_start = self.offset;
        } else if same == chunk.len() {
            self.mark = Some(seen + same);
        } else {
            // It is not a mark after all: the bytes held back are the start of the first line.
            self.mark = None;
            self.hold(BYTE_ORDER_MARK.get(..seen).unwrap_or_default());
            return chunk;
        }
        chunk.get(same..).unwrap_or_default()
    }

    /// Cuts the next line off `rest`, if it ends there, and returns its end in the input.
    fn cut_line<'c>(&mut self, rest: &mut &'c [u8]) -> Option<(&'c [u8], u64)> {
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            if let Some(after) = rest.strip_prefix(b"\n") {
                *rest = after;
                self.offset += 1;
                self.line_start += 1;
            }
        }
        let (line, end_and_after) = rest.split_at_checked(memchr2(b'\r', b'\n', rest)?)?;
        let (end, after) = end_and_after.split_first()?;
        *rest = after;
        self.after_cr = *end == b'\r';
        let end = self.offset + line.len() as u64;
        self.offset = end + 1;
        Some((line, end))
    }

    /// Keeps the incomplete line at the end of a chunk.
    fn hold(&mut self, part: &[u8]) {
        let Some(first) = self.carry.as_slice().first().or(part.first()).copied() else { return };
        self.offset += part.len() as u64;
        let (_, start) = self.event.place.unwrap_or((self.line, self.line_start));
        if first == b':' || self.offset - start > self.limits.frame as u64 {
            // The line is a comment, or too long; its first byte is enough to tell which.
            self.carry.clear();
            self.carry.extend(&[first], 1);
        } else {
            self.carry.extend(part, self.limits.frame);
        }
    }

    fn take_line<'c>(
        &mut self,
        line: &'c [u8],
        end: u64,
        in_place: &mut Option<&'c [u8]>,
        sink: &mut dyn FnMut(Frame<'_>),
    ) {
        match line {
            [] => self.dispatch(in_place.take(), false, sink),
            [b':', ..] => {}
            field => {
                let (_, start) = *self.event.place.get_or_insert((self.line, self.line_start));
                self.event.end = end;
                if end - start <= self.limits.frame as u64 {
                    self.event.take_field(field, in_place, self.limits);
                } else {
                    *in_place = None;
                    self.event.clear_data();
                }
            }
        }
        self.line += 1;
        self.line_start = self.offset;
    }

    /// Emits the event that was read, and begins the next.
    fn dispatch(
        &mut self,
        in_place: Option<&[u8]>,
        unterminated: bool,
        sink: &mut dyn FnMut(Frame<'_>),
    ) {
        let event = &mut self.event;
        let Some((line, start)) = event.place.take() else { return };
        let bytes = start..event.end;
        let length = bytes.end - bytes.start;
        let limit = self.limits.frame;
        if length > limit as u64 {
            sink(Frame { line, bytes, body: Body::TooLong { length, limit } });
        } else if event.has_data {
            let data = in_place.unwrap_or(event.data.as_slice());
            if data.trim_ascii() == b"[DONE]" {
                sink(Frame { line, bytes, body: Body::Done });
            } else {
                let (text, name) = (decode(data), decode(event.name.as_slice()));
                let replaced = matches!((&text, &name), (Cow::Owned(_), _) | (_, Cow::Owned(_)));
                let several_lines = event.several_lines;
                let (text, event) = (text.as_ref(), name.as_ref());
                let noise = "";
                let text = FrameText { text, noise, replaced, unterminated, several_lines, event };
                sink(Frame { line, bytes, body: Body::Text(text) });
            }
        }
        event.clear_data();
    }
}

impl Event {
    fn take_field<'c>(&mut self, field: &'c [u8], in_place: &mut Option<&'c [u8]>, limits: Limits) {
        // Only these two fields matter here, so the colon need not be searched for.
        if let Some(value) = value_of(b"data", field) {
            if self.has_data {
                self.several_lines = true;
                self.keep(in_place.take(), limits);
                self.data.extend(b"\n", limits.frame);
                self.data.extend(value, limits.frame);
            } else {
                self.has_data = true;
                *in_place = Some(value);
            }
        } else if let Some(value) = value_of(b"event", field) {
            self.name.clear();
            self.name.extend(value, limits.frame);
        }
    }

    /// Copies the data out of a chunk that is about to be dropped.
    fn keep(&mut self, in_place: Option<&[u8]>, limits: Limits) {
        self.data.extend(in_place.unwrap_or_default(), limits.frame);
    }

    fn clear_data(&mut self) {
        self.has_data = false;
        self.several_lines = false;
        self.data.clear();
        self.name.clear();
    }
}

/// The value of the field called `name`, if `field` is one. Without a colon the value is empty.
fn value_of<'c>(name: &[u8], field: &'c [u8]) -> Option<&'c [u8]> {
    match field.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

impl Default for Sse {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Framing for Sse {
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        let mut rest = self.skip_mark(chunk);
        let mut in_place = None;
        let mut carried = std::mem::take(&mut self.carry);
        if !carried.is_empty() {
            let Some((part, end)) = self.cut_line(&mut rest) else {
                self.carry = carried;
                return self.hold(rest);
            };
            carried.extend(part, self.limits.frame);
            self.take_line(carried.as_slice(), end, &mut in_place, sink);
        }
        while let Some((line, end)) = self.cut_line(&mut rest) {
            self.take_line(line, end, &mut in_place, sink);
        }
        self.event.keep(in_place, self.limits);
        carried.clear();
        self.carry = carried;
        self.hold(rest);
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        let carried = std::mem::take(&mut self.carry);
        let mut in_place = None;
        if !carried.is_empty() {
            self.take_line(carried.as_slice(), self.offset, &mut in_place, sink);
        }
        // Data of earlier lines was kept already; only the last line can still be in place.
        self.dispatch(in_place, true, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_its_whole_name_and_loses_one_space_at_most() {
        assert_eq!(value_of(b"data", b"data: x"), Some(&b"x"[..]));
        assert_eq!(value_of(b"data", b"data:  x"), Some(&b" x"[..]));
        assert_eq!(value_of(b"data", b"data:x"), Some(&b"x"[..]));
        assert_eq!(value_of(b"data", b"data"), Some(&b""[..]));
        assert_eq!(value_of(b"data", b"database: x"), None);
        assert_eq!(value_of(b"data", b"data : x"), None);
    }
}
