//! Lines, server-sent events or messages with their length, detected from the start of the stream.
//!
//! Some agents print their records as lines and also serve them as server-sent events. The first
//! field name decides which of them a stream is; until it is complete, a few bytes are held back. A
//! stream that starts with a length is neither: each of its messages has one. A first line that is
//! only a brace begins a record that is printed over several lines, and then all records may be. One
//! that starts with a square bracket and a brace begins an array, whose elements are the records.

use super::{Frame, Framing, FramingKind, Limits};

/// How a stream of server-sent events can start: with a field, or with a comment.
pub(super) const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// How a stream of messages with their length starts.
const LENGTH: &[u8] = b"Content-Length:";

/// The number of bytes of empty lines after which the decision is made.
pub(super) const MAX_UNDECIDED: usize = 4096;

/// Cuts a stream into the data of its events if it looks like server-sent events, into messages if
/// it starts with a length, else into lines.
pub struct LinesOrSse {
    limits: Limits,
    state: State,
}

enum State {
    /// The bytes that are held back until the kind of stream is known.
    Undecided(Vec<u8>),
    Decided(Box<dyn Framing + Send>),
}

impl LinesOrSse {
    /// Starts at the beginning of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Undecided(Vec::new()) }
    }
}

impl std::fmt::Debug for LinesOrSse {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decided = matches!(self.state, State::Decided(_));
        out.debug_struct("LinesOrSse").field("decided", &decided).finish_non_exhaustive()
    }
}

impl Framing for LinesOrSse {
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        match &mut self.state {
            State::Decided(framing) => framing.push(chunk, sink),
            State::Undecided(held) => {
                // Only the bytes that decide the kind are copied, not the rest of the chunk.
                let (start, rest) = chunk.split_at(chunk.len().min(MAX_UNDECIDED));
                held.extend_from_slice(start);
                if let Some(kind) = kind_of(held) {
                    let start = std::mem::take(held);
                    let mut framing = kind.at_start(self.limits);
                    framing.push(&start, sink);
                    framing.push(rest, sink);
                    self.state = State::Decided(framing);
                }
            }
        }
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        if let State::Undecided(held) = &mut self.state {
            let start = std::mem::take(held);
            let mut framing = FramingKind::Lines.at_start(self.limits);
            framing.push(&start, sink);
            self.state = State::Decided(framing);
        }
        if let State::Decided(framing) = &mut self.state {
            framing.finish(sink);
        }
    }
}

/// The framing that the start of a stream indicates; `None` while it may be either.
fn kind_of(start: &[u8]) -> Option<FramingKind> {
    let unmarked = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start);
    let text = unmarked.trim_ascii_start();
    if FIELDS.iter().any(|field| text.starts_with(field)) {
        return Some(FramingKind::SseOrObjects);
    }
    if text.starts_with(LENGTH) {
        return Some(FramingKind::ContentLength);
    }
    let after_brace = text.strip_prefix(b"{").map(|rest| {
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
        rest.get(blank..).unwrap_or_default()
    });
    let mut starts = FIELDS.iter().copied().chain([LENGTH]);
    let may_become = starts.any(|start| start.starts_with(text));
    let may_be_mark = b"\xEF\xBB\xBF".starts_with(start);
    let in_array = text.strip_prefix(b"[").map(|rest| {
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        rest.get(blank..).unwrap_or_default()
    });
    match after_brace {
        _ if matches!(in_array, Some([b'{', ..])) => Some(FramingKind::Objects),
        _ if in_array.is_some_and(<[u8]>::is_empty) && start.len() < MAX_UNDECIDED => None,
        Some([b'\n', ..]) => Some(FramingKind::Joined),
        _ if start.len() >= MAX_UNDECIDED => Some(FramingKind::Lines),
        Some([]) => None,
        _ if may_become || may_be_mark => None,
        _ => Some(FramingKind::Lines),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Body;
    use super::*;

    fn texts<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<String> {
        let mut framing = LinesOrSse::new(Limits::default());
        let mut seen = Vec::new();
        let mut take = |frame: Frame<'_>| match frame.body {
            Body::Text(text) => seen.push(format!("{}|{}", text.noise, text.text)),
            other => seen.push(format!("{other:?}")),
        };
        for chunk in chunks {
            framing.push(chunk, &mut take);
        }
        framing.finish(&mut take);
        seen
    }

    #[test]
    fn the_first_field_decides_in_any_split() {
        let streams: [(&[u8], &[&str]); 12] = [
            (b"[{\n  \"a\": 1\n}\n,\r\n{\"b\":2}\n]\n", &["|{\n  \"a\": 1\n}", "|{\"b\":2}"]),
            (b"[ ", &["|[ "]),
            (b"[1] {\"a\":1}\n", &["[1] |{\"a\":1}"]),
            (b"Content-Length: 7\r\n\r\n{\"a\":1}", &["|{\"a\":1}"]),
            (b"Content {\"a\":1}\n", &["Content |{\"a\":1}"]),
            (b"{\r\n  \"a\": 1\n}\n{\"b\":2}\n", &["|{\r\n  \"a\": 1\n}", "|{\"b\":2}"]),
            (b"{ \"a\":\n1}\n", &["|{ \"a\":", "|1}"]),
            (b"data: {\"a\":1}\n\ndata: {\"b\":2}\n\n", &["|{\"a\":1}", "|{\"b\":2}"]),
            (b"\xEF\xBB\xBF\n: hello\n\nevent: x\ndata: {}\n\n", &["|{}"]),
            (b"\n\n{\"a\":1}\n{\"b\":2}\n", &["|{\"a\":1}", "|{\"b\":2}"]),
            (b"dat", &["|dat"]),
            (b"date {\"a\":1}\n", &["date |{\"a\":1}"]),
        ];
        for (stream, expected) in streams {
            for size in 1..=stream.len() {
                assert_eq!(texts(stream.chunks(size)), expected, "{stream:?} by {size}");
            }
        }
    }

    #[test]
    fn empty_lines_are_held_back_up_to_a_limit() {
        let blank = vec![b'\n'; MAX_UNDECIDED * 2];
        let mut framing = LinesOrSse::new(Limits::default());
        framing.push(&blank, &mut |_| {});
        assert!(matches!(framing.state, State::Decided(_)));
    }
}
