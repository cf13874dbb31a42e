//! Guards against messages that are lost, doubled or merged when the length before them is wrong, or
//! when something else is printed between them.

use interlingua::framing::{Body, ContentLength, Frame, Framing, Limits};
use proptest::prelude::*;

use crate::support;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    line: u64,
    bytes: std::ops::Range<u64>,
    text: String,
    unterminated: bool,
}

fn describe(frame: &Frame<'_>) -> Seen {
    let (line, bytes) = (frame.line, frame.bytes.clone());
    match &frame.body {
        Body::Text(text) => {
            assert_eq!((text.noise, text.event), ("", ""));
            let (text, unterminated) = (text.text.to_owned(), text.unterminated);
            Seen { line, bytes, text, unterminated }
        }
        Body::TooLong { length, limit } => {
            let text = format!("{length} bytes, over {limit}");
            Seen { line, bytes, text, unterminated: false }
        }
        Body::Done => panic!("a message is never the end of the stream"),
    }
}

fn frames_in<'c>(limit: usize, chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut framing = ContentLength::new(Limits { frame: limit });
    for chunk in chunks {
        framing.push(chunk, &mut |frame| seen.push(describe(&frame)));
    }
    framing.finish(&mut |frame| seen.push(describe(&frame)));
    seen
}

/// The frames of an input, which must be the same for chunks of every size.
fn frames_with(limit: usize, input: &[u8]) -> Vec<Seen> {
    let at_once = frames_in(limit, [input]);
    for size in 1..=input.len() {
        assert_eq!(frames_in(limit, input.chunks(size)), at_once, "chunks of {size}");
    }
    at_once
}

fn texts(input: &str) -> Vec<String> {
    let frames = frames_with(1 << 20, input.as_bytes());
    frames.into_iter().map(|seen| seen.text).collect()
}

fn message(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn messages_are_cut_out_by_their_length() {
    let bodies = [r#"{"a":1}"#, r#"{"b":"é🌍"}"#, "{\r\n  \"c\": [\n1]}", r#"{"d":{"e":{}}}"#];
    let input: String = bodies.iter().map(|body| message(body)).collect();
    assert_eq!(texts(&input), bodies);
    assert_eq!(texts(&input.replace("\r\n\r\n", "\n\n")), bodies);
    assert_eq!(texts(&input.replace("Content-Length: ", "content-length:")), bodies);
    let typed = "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length:";
    assert_eq!(texts(&input.replace("Content-Length:", typed)), bodies);
}

#[test]
fn a_frame_begins_with_its_header() {
    let input = format!("{}{}", message("{\"a\":\n1}"), message(r#"{"b":2}"#));
    let frames = frames_with(100, input.as_bytes());
    let places: Vec<_> = frames.into_iter().map(|seen| (seen.line, seen.bytes)).collect();
    assert_eq!(places, [(1, 0..29), (4, 29..57)]);
}

#[test]
fn a_header_belongs_to_the_next_frame_whatever_it_is() {
    let (long, header) = ("x".repeat(300), "Content-Length: 2\r\n");
    let too_long = format!("Content-Length: 302\r\n\r\n{{{long}}}");
    let cases = [
        (format!("{header}noise\r\n\r\n{{}}"), vec![(1, 0..24), (4, 28..30)]),
        (format!("a\nb {header}\r\n{{}}"), vec![(1, 0..1), (2, 2..3), (2, 4..27)]),
        (format!("Content-Type: x\n{header}\r\n{{}}"), vec![(1, 0..39)]),
        (format!("{header}\r\n{header}\r\n{{}}"), vec![(1, 0..44)]),
        (format!("{header}\r\n"), vec![(1, 0..21)]),
        ("Content-Type: x\r\n".to_owned(), vec![(1, 0..17)]),
        (too_long, vec![(1, 0..325)]),
    ];
    for (input, expected) in cases {
        let frames = frames_with(200, input.as_bytes());
        let places: Vec<_> = frames.into_iter().map(|seen| (seen.line, seen.bytes)).collect();
        assert_eq!(places, expected, "{input}");
    }
}

/// In a string, line feeds are escaped, so no text of a model is taken for a header.
#[test]
fn text_about_headers_is_text() {
    let body = r#"{"a":"Content-Length: 7\r\n\r\n{\"b\":2}"}"#;
    assert_eq!(texts(&format!("{}{}", message(body), message("{}"))), [body, "{}"]);
}

#[test]
fn noise_costs_only_itself() {
    let (one, two) = (message(r#"{"a":1}"#), message(r#"{"b":2}"#));
    let noise = ["npm warn", "} stray", "12", "[1, 2", "\\", "Content-Length: many", "an { brace"];
    for noise in noise {
        let expected = [noise, r#"{"a":1}"#, noise, r#"{"b":2}"#, noise];
        let around = format!("{noise}\n{one}{noise}\r\n{two}{noise}");
        assert_eq!(texts(&around), expected, "{noise}");
        let glued = format!("{noise}{one}{noise}{two}{noise}");
        assert_eq!(texts(&glued), expected, "{noise}");
        let inside = format!("{one}{two}").replace("\r\n\r\n", &format!("\r\n{noise}\r\n\r\n"));
        assert_eq!(texts(&inside), [noise, r#"{"a":1}"#, noise, r#"{"b":2}"#], "{noise}");
        let before = format!("{one}{two}").replace("\r\n\r\n", &format!("\r\n\r\n{noise}\r\n"));
        assert_eq!(texts(&before), [noise, r#"{"a":1}"#, noise, r#"{"b":2}"#], "{noise}");
    }
}

#[test]
fn a_wrong_length_loses_no_other_message() {
    let (body, next) = (r#"{"a":{"b":"c d"}}"#, r#"{"e":{"f":1}}"#);
    for length in (0..200).chain([u64::MAX]) {
        let wrong = format!("Content-Length: {length}\r\n\r\n{body}");
        let input = format!("{}{wrong}{}{}", message("{}"), message(next), message("{}"));
        let seen = texts(&input);
        assert_eq!(seen.first().map(String::as_str), Some("{}"), "{length}");
        assert_eq!(seen[seen.len() - 2..], [next, "{}"], "{length}: {seen:?}");
        // Between them is the message itself, in one piece or cut at a brace.
        let own: String = seen[1..seen.len() - 2].concat();
        assert!(own == body || length == u64::MAX, "{length}: {seen:?}");
    }
}

#[test]
fn a_body_over_the_limit_is_reported_and_skipped() {
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(300));
    let input = format!("{}{}{}", message("{}"), message(&long), message(r#"{"b":2}"#));
    let seen = frames_with(200, input.as_bytes());
    let texts: Vec<_> = seen.iter().map(|seen| &*seen.text).collect();
    assert_eq!(texts, ["{}", "308 bytes, over 200", r#"{"b":2}"#]);
    // The limit itself is allowed.
    let texts: Vec<_> = frames_with(308, input.as_bytes()).into_iter().map(|it| it.text).collect();
    assert_eq!(texts, ["{}", &*long, r#"{"b":2}"#]);
}

#[test]
fn a_line_of_noise_over_the_limit_is_reported_and_skipped() {
    let noise = "x".repeat(300);
    for end in ["", "\n"] {
        let input = format!("{}{noise}{end}{}", message("{}"), message(r#"{"b":2}"#));
        let seen = frames_with(200, input.as_bytes());
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert_eq!(seen[2].text, r#"{"b":2}"#);
    }
}

#[test]
fn what_is_held_back_is_bounded() {
    let mut framing = ContentLength::new(Limits { frame: 1 << 16 });
    let chunk = vec![b'x'; 1 << 14];
    for start in
        [&b"Content-Length: 99999999\r\n\r\n{"[..], b"Content-Length: 0\r\n\r\n{", b"noise"]
    {
        framing.push(start, &mut |_| {});
        for _ in 0..64 {
            framing.push(&chunk, &mut |_| {});
            assert!(framing.held_bytes() <= (1 << 16) + (1 << 15), "{}", framing.held_bytes());
        }
        let mut seen = Vec::new();
        framing.push(message("{}").as_bytes(), &mut |frame| seen.push(describe(&frame).text));
        assert_eq!(seen.last().map(String::as_str), Some("{}"));
    }
}

#[test]
fn an_input_that_ends_in_a_message_is_marked() {
    let whole = message(r#"{"a":1}"#);
    for length in 1..whole.len() {
        let input = whole.get(..length).unwrap();
        let seen = frames_with(100, input.as_bytes());
        assert_eq!(seen.len(), 1, "{input:?}");
        assert!(seen[0].unterminated, "{input:?}");
    }
    assert!(!frames_with(100, whole.as_bytes())[0].unterminated);
    assert_eq!(frames_with(100, b"\r\n \n"), []);
}

#[test]
fn the_cost_is_linear() {
    let run = |size: usize| {
        let body = format!(r#"{{"a":"{}"}}"#, "Content-Length: 1 ".repeat(size / 18));
        let input = message(&body).into_bytes();
        move || drop(frames_in(64 << 20, input.chunks(4096)))
    };
    assert!(support::is_linear(run(1 << 20), run(8 << 20)));
}

/// Parts of streams, sound and broken.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c{}\"\\\\ ]{0,12}".prop_map(|text| message(&format!("{{{text}}}"))),
        1 => (0u64..60).prop_map(|length| format!("Content-Length: {length}\r\n\r\n")),
        1 => Just("Content-Len".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("Content-Length: x\n".to_owned()),
        1 => "[a-z{}\\r\\n:]{0,30}",
        1 => "x{60,90}",
    ]
}

proptest! {
    #![proptest_config(support::cases(512))]

    #[test]
    fn any_split_gives_the_same_frames(
        parts in prop::collection::vec(part(), 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        limit in 8usize..80,
    ) {
        let input = parts.concat();
        let at_once = frames_in(limit, [input.as_bytes()]);
        prop_assert_eq!(&frames_in(limit, input.as_bytes().chunks(1)), &at_once);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.sort_unstable();
        let mut rest = input.as_bytes();
        let mut chunks = Vec::new();
        for (at, cut) in cuts.iter().enumerate() {
            let (head, tail) = rest.split_at(cut - at.checked_sub(1).map_or(0, |at| cuts[at]));
            chunks.push(head);
            rest = tail;
        }
        chunks.push(rest);
        prop_assert_eq!(&frames_in(limit, chunks), &at_once);
        for pair in at_once.windows(2) {
            prop_assert!(pair[0].bytes.end <= pair[1].bytes.start, "{:?}", pair);
        }
    }

    /// Messages with the right length are found, whatever is printed between them on lines of its own.
    #[test]
    fn sound_messages_survive_noise(
        messages in prop::collection::vec(("[a-z ]{0,9}", "[a-z}\\]\"\\\\ ]{0,20}"), 1..6),
    ) {
        let mut input = String::new();
        let mut bodies = Vec::new();
        for (value, noise) in &messages {
            let body = format!(r#"{{"v":"{value}"}}"#);
            input += &message(&body);
            input += &format!("{noise}\n");
            bodies.push(body);
        }
        let seen = frames_in(1 << 20, [input.as_bytes()]);
        let found: Vec<_> = seen.iter().filter(|it| it.text.starts_with('{')).collect();
        let found: Vec<_> = found.into_iter().map(|it| it.text.clone()).collect();
        prop_assert_eq!(found, bodies);
    }
}
