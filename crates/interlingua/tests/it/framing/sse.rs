//! Guards against server-sent events that are read otherwise than WHATWG defines, or lost at the
//! end.

use interlingua::framing::{Body, Frame, Framing, Limits, Sse};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    line: u64,
    bytes: std::ops::Range<u64>,
    event: String,
    text: String,
    unterminated: bool,
    replaced: bool,
}

fn describe(frame: &Frame<'_>) -> Seen {
    let (line, bytes) = (frame.line, frame.bytes.clone());
    match &frame.body {
        Body::Text(text) => {
            assert_eq!(text.noise, "");
            let (event, unterminated) = (text.event.to_owned(), text.unterminated);
            let (text, replaced) = (text.text.to_owned(), text.replaced);
            Seen { line, bytes, event, text, unterminated, replaced }
        }
        other => {
            let text = format!("{other:?}");
            let event = String::new();
            Seen { line, bytes, event, text, unterminated: false, replaced: false }
        }
    }
}

fn events_in(limits: Limits, chunks: &[&[u8]]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut sse = Sse::new(limits);
    for chunk in chunks {
        sse.push(chunk, &mut |frame| seen.push(describe(&frame)));
    }
    sse.finish(&mut |frame| seen.push(describe(&frame)));
    seen
}

/// The events of `input`, which must be the same for every split into one, two or three chunks and
/// into single bytes.
fn events(input: &[u8]) -> Vec<Seen> {
    let at_once = events_in(Limits::default(), &[input]);
    let bytes: Vec<_> = input.chunks(1).collect();
    assert_eq!(events_in(Limits::default(), &bytes), at_once);
    for first in 0..=input.len() {
        let (head, rest) = input.split_at(first);
        for second in 0..=rest.len() {
            let (middle, tail) = rest.split_at(second);
            let chunks = [head, middle, tail];
            assert_eq!(events_in(Limits::default(), &chunks), at_once, "{first} {second}");
        }
    }
    at_once
}

/// The event name and the data of every event.
fn data(input: &str) -> Vec<(String, String)> {
    events(input.as_bytes()).into_iter().map(|seen| (seen.event, seen.text)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(event, text)| ((*event).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn every_kind_of_line_end_is_accepted() {
    for end in ["\n", "\r", "\r\n"] {
        let input = "event: add\ndata: 1\ndata: 2\n\ndata: 3\n\n".replace('\n', end);
        assert_eq!(data(&input), pairs(&[("add", "1\n2"), ("", "3")]), "{end:?}");
    }
    assert_eq!(data("data: 1\r\n\rdata: 2\n\r\n"), pairs(&[("", "1"), ("", "2")]));
}

#[test]
fn unicode_line_separators_are_text() {
    assert_eq!(data("data: a\u{2028}b\u{85}c\n\n"), pairs(&[("", "a\u{2028}b\u{85}c")]));
}

#[test]
fn a_byte_order_mark_is_removed_only_at_the_start() {
    assert_eq!(data("\u{feff}data: 1\n\n"), pairs(&[("", "1")]));
    assert_eq!(data("\u{feff}: x\ndata: 1\n\n"), pairs(&[("", "1")]));
    assert_eq!(data("\u{feff}\u{feff}data: 1\n\n"), pairs(&[]));
    assert_eq!(data("data: 1\n\n\u{feff}data: 2\n\n"), pairs(&[("", "1")]));
    assert_eq!(events(b"\xEF\xBBdata: 1\n\ndata: 2\n\n").len(), 1);
    assert_eq!(events(b"\xEF\xBB"), []);
}

#[test]
fn fields_are_read_as_the_standard_defines() {
    // The examples of the standard.
    let input = "data: YHOO\ndata: +2\ndata: 10\n\n";
    assert_eq!(data(input), pairs(&[("", "YHOO\n+2\n10")]));
    let input = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n";
    assert_eq!(
        data(input),
        pairs(&[("", "first event"), ("", "second event"), ("", " third event")])
    );
    let input = "data\n\ndata\ndata\n\ndata:\n\n";
    assert_eq!(data(input), pairs(&[("", ""), ("", "\n"), ("", "")]));
    assert_eq!(data("data:test\n\ndata: test\n\n"), pairs(&[("", "test"), ("", "test")]));
}

#[test]
fn an_event_without_data_is_ignored_with_its_name() {
    assert_eq!(data("event: ping\n\nretry: 10\n\ndata: 1\n\n"), pairs(&[("", "1")]));
    assert_eq!(data("event: a\nevent: b\ndata: 1\n\n"), pairs(&[("b", "1")]));
    assert_eq!(data("event: a\nevent\ndata: 1\n\n"), pairs(&[("", "1")]));
    assert_eq!(data("data: 1\nevent: late\n\n"), pairs(&[("late", "1")]));
}

#[test]
fn comments_are_ignored_even_inside_an_event() {
    assert_eq!(data(": PROCESSING\n\n:\ndata: 1\n: x\ndata: 2\n\n"), pairs(&[("", "1\n2")]));
}

#[test]
fn done_marks_the_end_of_the_stream() {
    for input in ["data: [DONE]\n\n", "data:[DONE]\r\n\r\n", "data: [DONE]"] {
        assert_eq!(data(input), pairs(&[("", "Done")]), "{input:?}");
    }
    assert_eq!(data("data: \"[DONE]\"\n\n"), pairs(&[("", "\"[DONE]\"")]));
}

#[test]
fn an_event_open_at_the_end_is_emitted() {
    for input in ["data: {\"a\":", "data: {\"a\":\n", "data: {\"a\":\r\n", "data: {\"a\":\n: x"] {
        let seen = events(input.as_bytes());
        assert_eq!(seen.len(), 1, "{input:?}");
        assert_eq!((seen[0].text.as_str(), seen[0].unterminated), ("{\"a\":", true), "{input:?}");
    }
    let closed = events(b"data: 1\n\n");
    assert!(!closed[0].unterminated);
}

#[test]
fn an_event_has_its_position() {
    let seen = events(b": x\r\n\r\nevent: a\r\ndata: 1\r\n: y\r\n\r\ndata: 2\r\n\r\n");
    let places: Vec<_> = seen.into_iter().map(|seen| (seen.line, seen.bytes)).collect();
    assert_eq!(places, [(3, 7..24), (7, 33..40)]);
}

#[test]
fn invalid_utf8_is_replaced_only_in_its_event() {
    let seen = events(b"data: \xff\xe2\x82\ndata: 2\n\ndata: \xe2\x82\xac\n\n");
    let texts: Vec<_> = seen.iter().map(|seen| (seen.text.as_str(), seen.replaced)).collect();
    assert_eq!(texts, [("\u{fffd}\u{fffd}\n2", true), ("€", false)]);
}

#[test]
fn the_limit_applies_to_the_complete_event_and_does_not_depend_on_the_split() {
    let input = b"data: 1\n\ndata: 12345678\ndata: 2\n\n: a comment of any length\ndata: 3\n\nevent: long enough\n\ndata: 4";
    let limits = Limits { frame: 14 };
    let at_once = events_in(limits, &[input]);
    let texts: Vec<_> = at_once.iter().map(|seen| seen.text.as_str()).collect();
    let too_long = |length| format!("TooLong {{ length: {length}, limit: 14 }}");
    assert_eq!(texts, ["1", &too_long(22), "3", &too_long(18), "4"]);
    for split in 0..=input.len() {
        assert_eq!(events_in(limits, &[&input[..split], &input[split..]]), at_once, "{split}");
    }
    assert_eq!(events_in(limits, &input.chunks(1).collect::<Vec<_>>()), at_once);
}
