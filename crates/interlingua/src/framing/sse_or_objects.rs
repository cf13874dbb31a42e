//! Server-sent events or JSON objects, detected from the start of the stream, for APIs that send
//! either.
//!
//! Objects may be separate, spread over lines, or elements of an array. A server that fails in the
//! middle of a stream of events may send the error as a bare object: no field starts with a brace, so
//! from a line that does, the rest is read as objects.

use memchr::memmem;

use super::either::{FIELDS, MAX_UNDECIDED};
use super::{Frame, Framing, Limits, Objects, Sse};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Cuts a stream into the data of its events if it looks like server-sent events, else into objects.
#[derive(Debug)]
pub struct SseOrObjects {
    limits: Limits,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The bytes that are held back until the kind of stream is known.
    Undecided(Vec<u8>),
    Events {
        sse: Box<Sse>,
        /// The last byte ended a line, or there was none.
        at_line_start: bool,
    },
    Objects {
        objects: Box<Objects>,
        /// What precedes the objects: lines, and bytes.
        before: (u64, u64),
    },
}

impl SseOrObjects {
    /// Starts at the beginning of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Undecided(Vec::new()) }
    }

    /// Decides what the stream is, if the bytes so far allow it or are the last.
    fn decide(&mut self, last: bool, sink: &mut dyn FnMut(Frame<'_>)) {
        let State::Undecided(held) = &mut self.state else { return };
        let unmarked = held.strip_prefix(BYTE_ORDER_MARK).unwrap_or(held);
        let text = unmarked.trim_ascii_start();
        let is_sse = FIELDS.iter().any(|field| text.starts_with(field));
        let may_be_sse = FIELDS.iter().any(|field| field.starts_with(text));
        let may_be_mark = BYTE_ORDER_MARK.starts_with(held);
        let may_be_either = (may_be_sse || may_be_mark) && held.len() < MAX_UNDECIDED;
        if !is_sse && may_be_either && !last {
            return;
        }
        let start = std::mem::take(held);
        if is_sse {
            let sse = Box::new(Sse::new(self.limits));
            self.state = State::Events { sse, at_line_start: true };
            self.push(&start, sink);
        } else {
            let mark = if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
            self.begin_objects((0, mark as u64));
            self.push(start.get(mark..).unwrap_or_default(), sink);
        }
    }

    fn begin_objects(&mut self, before: (u64, u64)) {
        self.state = State::Objects { objects: Box::new(Objects::new(self.limits)), before };
    }

    /// Takes bytes of a stream of events, and changes to objects where a line is none of its fields.
    fn push_events(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        let State::Events { sse, at_line_start } = &mut self.state else { return };
        let Some(at) = bare_object(chunk, *at_line_start) else {
            if let Some(last) = chunk.last() {
                *at_line_start = is_line_end(*last);
            }
            return sse.push(chunk, sink);
        };
        let (events, objects) = chunk.split_at(at);
        sse.push(events, sink);
        let before = sse.next_line();
        sse.finish(sink);
        self.begin_objects(before);
        self.push(objects, sink);
    }
}

/// The position of a brace at the start of a line.
fn bare_object(chunk: &[u8], at_line_start: bool) -> Option<usize> {
    if at_line_start && chunk.first() == Some(&b'{') {
        return Some(0);
    }
    // There are many lines, and hardly ever such a brace.
    let after = |end: &[u8]| memmem::find(chunk, end).map(|end| end + 1);
    [after(b"\n{"), after(b"\r{")].into_iter().flatten().min()
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Moves a frame behind what precedes it in the input.
fn moved<'a>(frame: Frame<'a>, (lines, bytes): (u64, u64)) -> Frame<'a> {
    let range = frame.bytes.start + bytes..frame.bytes.end + bytes;
    Frame { line: frame.line + lines, bytes: range, ..frame }
}

impl Framing for SseOrObjects {
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        match &mut self.state {
            State::Events { .. } => self.push_events(chunk, sink),
            State::Objects { objects, before } => {
                let before = *before;
                objects.push(chunk, &mut |frame| sink(moved(frame, before)));
            }
            State::Undecided(held) => {
                // Only the bytes that decide the kind are copied, not the rest of the chunk.
                let (start, rest) = chunk.split_at(chunk.len().min(MAX_UNDECIDED));
                held.extend_from_slice(start);
                self.decide(false, sink);
                if !rest.is_empty() {
                    self.push(rest, sink);
                }
            }
        }
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        self.decide(true, sink);
        match &mut self.state {
            State::Events { sse, .. } => sse.finish(sink),
            State::Objects { objects, before } => {
                let before = *before;
                objects.finish(&mut |frame| sink(moved(frame, before)));
            }
            State::Undecided(_) => {}
        }
    }
}
