//! A stream is read as server-sent events or as objects, as its start indicates, in any split.

use interlingua::framing::{Body, Frame, Framing, Limits, SseOrObjects};

/// The line, the bytes and the content of every frame.
fn frames<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<(u64, String, String)> {
    let mut seen = Vec::new();
    let mut framing = SseOrObjects::new(Limits::default());
    let mut take = |frame: Frame<'_>| {
        let content = match &frame.body {
            Body::Text(text) => {
                let end = if text.unterminated { "…" } else { "" };
                format!("{}|{}{end}", text.noise, text.text)
            }
            other => format!("{other:?}"),
        };
        seen.push((frame.line, format!("{:?}", frame.bytes), content));
    };
    for chunk in chunks {
        framing.push(chunk, &mut take);
    }
    framing.finish(&mut take);
    seen
}

/// Checks the frames for every split in two, and into pieces of every size.
fn check(input: &[u8], expected: &[(u64, &str)]) {
    let at_once = frames([input]);
    let seen: Vec<_> = at_once.iter().map(|(line, _, content)| (*line, &**content)).collect();
    assert_eq!(seen, expected);
    for (_, bytes, content) in &at_once {
        let (start, end) = bytes.split_once("..").unwrap();
        let bytes = &input[start.parse().unwrap()..end.parse().unwrap()];
        let text = content.trim_end_matches('…').rsplit('|').next().unwrap();
        assert!(String::from_utf8_lossy(bytes).contains(text), "{content} is at {bytes:?}");
    }
    for split in 0..=input.len() {
        let (one, two) = input.split_at(split);
        assert_eq!(frames([one, two]), at_once, "split at {split}");
    }
    for size in 1..input.len() {
        assert_eq!(frames(input.chunks(size)), at_once, "by {size}");
    }
}

#[test]
fn events_are_cut_into_their_data() {
    check(b"data: {\"a\":1}\n\ndata:{\"b\":2}\r\n\r\n", &[(1, "|{\"a\":1}"), (3, "|{\"b\":2}")]);
    check(b"\xEF\xBB\xBF: hi\n\nevent: x\ndata: {}\n\n", &[(3, "|{}")]);
    check(b"\n\nid: 7\ndata: {}", &[(3, "|{}…")]);
}

#[test]
fn objects_are_cut_out_of_an_array() {
    let array = b"[{\n  \"a\": [1]\n}\n,\r\n{\n  \"b\": \"[{\"\n}\n]\n";
    check(array, &[(1, "|{\n  \"a\": [1]\n}"), (5, "|{\n  \"b\": \"[{\"\n}")]);
    check(b"[\n  {\"a\":1},\n  {\"b\":2}\n]", &[(2, "|{\"a\":1}"), (3, "|{\"b\":2}")]);
    check(b"\xEF\xBB\xBF[{}, {}]", &[(1, "|{}"), (1, "|{}")]);
    check(b"[{\"a\":1},\n{\"b\":", &[(1, "|{\"a\":1}"), (2, "|{\"b\":…")]);
}

#[test]
fn an_object_may_be_printed_over_lines() {
    check(b"{\n  \"a\": 1\n}\n", &[(1, "|{\n  \"a\": 1\n}")]);
    check(b"{\"a\":1}\n{\"b\":2}\n", &[(1, "|{\"a\":1}"), (2, "|{\"b\":2}")]);
    check(b"dat", &[(1, "|dat…")]);
    check(b"date {\"a\":1}\n", &[(1, "date |{\"a\":1}")]);
}

/// A server that fails may send a bare error in place of the next event.
#[test]
fn an_object_may_follow_events() {
    let stream = b"data: {\"a\":\n\ndata: {\"b\":[\"{\"]}\n\n{\n  \"error\": {\n  }\n}\n";
    let error = "|{\n  \"error\": {\n  }\n}";
    check(stream, &[(1, "|{\"a\":"), (3, "|{\"b\":[\"{\"]}"), (5, error)]);
    check(b"data: {}\r\n\r\n{\"e\":1}", &[(1, "|{}"), (3, "|{\"e\":1}")]);
    check(b"data: {}\r\r{\"e\":1}", &[(1, "|{}"), (3, "|{\"e\":1}")]);
    // The event before it has not ended.
    check(b"data: {}\n{\"e\":1}\n", &[(1, "|{}…"), (2, "|{\"e\":1}")]);
}

#[test]
fn white_space_is_held_back_up_to_a_limit() {
    let mut input = vec![b'\n'; 10_000];
    input.extend_from_slice(b"{\"a\":1}");
    assert_eq!(frames([&*input]), frames(input.chunks(77)));
    assert_eq!(frames([&*input])[0].0, 10_001);
}
