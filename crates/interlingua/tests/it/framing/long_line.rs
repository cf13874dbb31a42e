//! Guards against an endless line that exhausts memory, or costs more than its length.

use interlingua::framing::{Body, Framing, Limits, Lines, Objects, Sse};

use crate::support;

const CHUNK: usize = 64 << 10;

/// A framing that reports how much memory it holds.
trait Held: Framing {
    fn held(&self) -> usize;
}

macro_rules! held {
    ($($framing:ty),*) => {$(
        impl Held for $framing {
            fn held(&self) -> usize {
                self.held_bytes()
            }
        }
    )*};
}
held!(Lines, Sse, Objects);

/// Pushes 200 MB that start with `front`, then `back`, and returns the bodies of the frames as
/// text.
fn push_200_megabytes(framing: &mut dyn Held, front: &str, back: &str, most: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let chunk = vec![b'x'; CHUNK];
    let mut sink = |frame: interlingua::framing::Frame<'_>| {
        seen.push(match frame.body {
            Body::Text(text) => text.text.to_owned(),
            other => format!("{other:?}"),
        });
    };
    framing.push(front.as_bytes(), &mut sink);
    for _ in 0..200_000_000 / CHUNK {
        framing.push(&chunk, &mut sink);
        assert!(framing.held() <= most, "{} bytes held", framing.held());
    }
    framing.push(back.as_bytes(), &mut sink);
    framing.finish(&mut sink);
    assert!(framing.held() <= 1 << 20, "{} bytes held at the end", framing.held());
    seen
}

#[test]
fn a_line_of_200_megabytes_never_uses_more_memory_than_the_limit() {
    let limit = 8 << 20;
    let limits = Limits { frame: limit };
    let bytes = 200_000_000 / CHUNK * CHUNK;
    let too_long = |more: usize| format!("TooLong {{ length: {}, limit: {limit} }}", bytes + more);

    let seen = push_200_megabytes(&mut Lines::new(limits), "{\"a\":\"", "\"}\n{}\n", limit);
    assert_eq!(seen, [too_long(8), "{}".to_owned()]);

    let back = "\n\ndata: {}\n\n";
    let seen = push_200_megabytes(&mut Sse::new(limits), "data: ", back, limit);
    assert_eq!(seen, [too_long(6), "{}".to_owned()]);
    let seen = push_200_megabytes(&mut Sse::new(limits), ": ", back, limit);
    assert_eq!(seen, ["{}"]);

    // The scanner needs held and new bytes to be contiguous.
    let most = limit + CHUNK;
    let seen = push_200_megabytes(&mut Objects::new(limits), "{\"a\":\"", "\"}\n{}\n", most);
    assert_eq!(seen, [too_long(8), "{}".to_owned()]);
    let seen = push_200_megabytes(&mut Objects::new(limits), "prose", "\n{}\n", most);
    assert_eq!(seen, [too_long(5), "{}".to_owned()]);
}

#[test]
fn a_line_as_long_as_the_limit_is_accepted() {
    let mut seen = Vec::new();
    let mut lines = Lines::new(Limits { frame: 4 });
    for chunk in [&b"1234\n12345\n12"[..], b"3", b"45", b"6\n123", b"45"] {
        lines.push(chunk, &mut |frame| seen.push((frame.line, frame.bytes, is_text(&frame.body))));
    }
    lines.finish(&mut |frame| seen.push((frame.line, frame.bytes, is_text(&frame.body))));
    assert_eq!(seen, [(1, 0..4, true), (2, 5..10, false), (3, 11..17, false), (4, 18..23, false)]);
}

fn is_text(body: &Body<'_>) -> bool {
    matches!(body, Body::Text(_))
}

#[test]
fn the_buffer_of_a_large_line_is_released() {
    let mut lines = Lines::default();
    let mut longest = 0;
    for _ in 0..64 {
        lines.push(&[b'x'; CHUNK], &mut |_| {});
    }
    assert!(lines.held_bytes() >= 64 * CHUNK);
    lines.push(b"\n", &mut |frame| longest = frame.bytes.end);
    assert_eq!(longest, 64 * CHUNK as u64);
    for _ in 0..20 {
        lines.push(&[b'\n'; CHUNK], &mut |_| {});
    }
    assert!(lines.held_bytes() <= 1 << 20);
}

fn frame_all(mut framing: Box<dyn Framing>, input: &[u8]) {
    let mut frames = 0;
    for chunk in input.chunks(CHUNK) {
        framing.push(chunk, &mut |_| frames += 1);
    }
    framing.finish(&mut |_| frames += 1);
    assert_eq!(frames, 1);
}

fn check_linear(make: &dyn Fn() -> Box<dyn Framing>, front: &str, back: &str) {
    let input = |size: usize| format!("{front}{}{back}", "x".repeat(size)).into_bytes();
    let (short, long) = (input(4 << 20), input(32 << 20));
    assert!(support::is_linear(|| frame_all(make(), &short), || frame_all(make(), &long)));
}

#[test]
fn the_cost_of_a_line_is_linear_in_its_length() {
    check_linear(&|| Box::new(Lines::default()), "{\"a\":\"", "\"}\n");
    check_linear(&|| Box::new(Sse::default()), "data: {\"a\":\"", "\"}\n\n");
    check_linear(&|| Box::new(Objects::default()), "{\"a\":\"", "\"}\n");
}
