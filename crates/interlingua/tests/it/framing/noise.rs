//! Guards against records that are lost or invented because of other output on the stream.

use interlingua::framing::{Body, Framing, Lines, Objects};

/// The noise and the text of every frame.
fn frames(mut framing: impl Framing, input: &[u8]) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    let mut sink = |frame: interlingua::framing::Frame<'_>| {
        if let Body::Text(text) = frame.body {
            seen.push((text.noise.to_owned(), text.text.to_owned()));
        }
    };
    framing.push(input, &mut sink);
    framing.finish(&mut sink);
    seen
}

fn check(framing: impl Framing, input: &str, expected: &[(&str, &str)]) {
    let seen = frames(framing, input.as_bytes());
    let seen: Vec<_> = seen.iter().map(|(noise, text)| (noise.as_str(), text.as_str())).collect();
    assert_eq!(seen, expected, "{input:?}");
}

#[test]
fn text_before_the_brace_is_kept_verbatim() {
    for noise in [
        "\u{1b}[2K\u{1b}[1G",
        "\u{1b}]0;title {x}\u{7}",
        "\u{feff}",
        "> ",
        "Yes — what next?",
        "prose with } and \" then ",
        "[INFO] {thread 1} ",
        "\u{2028}",
    ] {
        let input = format!("{noise}{{\"a\":1}}\n");
        check(Lines::default(), &input, &[(noise, "{\"a\":1}")]);
        check(Objects::default(), &input, &[(noise, "{\"a\":1}")]);
    }
}

#[test]
fn indentation_is_not_noise() {
    check(Lines::default(), " \t{\"a\":1}\n", &[("", "{\"a\":1}")]);
    check(Objects::default(), " \t{\"a\":1}\n", &[("", "{\"a\":1}")]);
}

#[test]
fn a_banner_is_a_frame_of_its_own() {
    let input = "Agent v1.2 {beta}\n\n{\"a\":1}\nbye\n";
    let expected = [("", "Agent v1.2 {beta}"), ("", "{\"a\":1}"), ("", "bye")];
    check(Lines::default(), input, &expected);
    check(Objects::default(), input, &expected);
}

#[test]
fn a_line_that_starts_with_a_brace_is_never_split() {
    check(Lines::default(), "{x {\"a\":1}\n", &[("", "{x {\"a\":1}")]);
    check(Lines::default(), "  {x {\"a\":1}\n", &[("", "{x {\"a\":1}")]);
}

#[test]
fn prose_with_a_brace_that_opens_no_object_is_never_split() {
    check(Lines::default(), "a set {x, y}\n", &[("", "a set {x, y}")]);
    check(Lines::default(), "fn main() {\n", &[("", "fn main() {")]);
}

#[test]
fn blank_lines_are_counted_but_not_emitted() {
    let mut places = Vec::new();
    let mut lines = Lines::default();
    lines.push(b"\n \t\r\n{}\r\n", &mut |frame| places.push((frame.line, frame.bytes)));
    lines.finish(&mut |frame| places.push((frame.line, frame.bytes)));
    // The range includes the CR, though the text does not.
    assert_eq!(places, [(3, 5..8)]);
}

#[test]
fn only_one_carriage_return_is_removed_and_only_line_feeds_end_a_line() {
    check(Lines::default(), "{}\r\r\n", &[("", "{}\r")]);
    check(Lines::default(), "{}\r{}\u{2028}{}\u{2029}{}\n", &[("", "{}\r{}\u{2028}{}\u{2029}{}")]);
}

#[test]
fn stray_quotes_and_braces_lose_no_record() {
    for stray in
        ["\"", "}", "{", "{\"", "{ \"a", "{\"a\":", "{\"a\":[", "say '{' or \"", "]]}}", "{{{{"]
    {
        let input = format!("{stray}\n{{\"b\":2}}\n{{\"c\":3}}\n");
        let expected = [("", stray), ("", "{\"b\":2}"), ("", "{\"c\":3}")];
        check(Lines::default(), &input, &expected);
        check(Objects::default(), &input, &expected);
        // The record is the very end of the input.
        let input = format!("{stray}\n{{\"b\":2}}\n");
        check(Objects::default(), &input, expected.split_last().map_or(&[][..], |(_, rest)| rest));
    }
}

#[test]
fn invalid_utf8_is_replaced_only_in_its_line() {
    let mut replaced = Vec::new();
    let mut lines = Lines::default();
    lines.push(b"{\"a\":\"\xff\"}\n{\"b\":2}\n", &mut |frame| {
        if let Body::Text(text) = frame.body {
            replaced.push((text.text.to_owned(), text.replaced));
        }
    });
    let expected = [("{\"a\":\"\u{fffd}\"}".to_owned(), true), ("{\"b\":2}".to_owned(), false)];
    assert_eq!(replaced, expected);
}
