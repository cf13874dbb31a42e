//! Guards against objects that are lost, invented or rescanned when they are not one per line.

use std::time::Duration;

use interlingua::framing::{Body, Frame, Framing, Limits, Objects, extract_json_objects};

use crate::support::processor;

fn describe(frame: &Frame<'_>) -> String {
    match &frame.body {
        Body::Text(text) => {
            let noise =
                if text.noise.is_empty() { String::new() } else { format!("<{}>", text.noise) };
            format!("{noise}{}{}", text.text, if text.unterminated { "…" } else { "" })
        }
        Body::TooLong { length, .. } => format!("too long: {length}"),
        Body::Done => "done".to_owned(),
    }
}

fn frames_in<'c>(limits: Limits, chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<(u64, String)> {
    let mut seen = Vec::new();
    let mut objects = Objects::new(limits);
    for chunk in chunks {
        objects.push(chunk, &mut |frame| seen.push((frame.line, describe(&frame))));
    }
    objects.finish(&mut |frame| seen.push((frame.line, describe(&frame))));
    seen
}

/// Checks line and content of every frame, for every split in two and into single bytes.
///
/// Noise is written in angle brackets before the text; an ellipsis marks an unterminated frame.
fn check_with(limits: Limits, input: &str, expected: &[(u64, &str)]) {
    let input = input.as_bytes();
    let expected: Vec<_> =
        expected.iter().map(|(line, seen)| (*line, (*seen).to_owned())).collect();
    assert_eq!(frames_in(limits, [input]), expected);
    assert_eq!(frames_in(limits, input.chunks(1)), expected, "byte by byte");
    for split in 0..=input.len() {
        let (first, second) = input.split_at(split);
        assert_eq!(frames_in(limits, [first, second]), expected, "split at {split}");
    }
}

fn check(input: &str, expected: &[(u64, &str)]) {
    check_with(Limits::default(), input, expected);
}

#[test]
fn adjacent_objects_are_separate_frames() {
    check(r#"{"a":1}{"b":2}"#, &[(1, r#"{"a":1}"#), (1, r#"{"b":2}"#)]);
    check("{}{}\n{}", &[(1, "{}"), (1, "{}"), (2, "{}")]);
}

#[test]
fn an_object_on_several_lines_is_one_frame() {
    let pretty = "{\n  \"a\": [\n    {\"b\": 1},\n    {}\n  ]\n}";
    check(&format!("{pretty}\n\n{pretty}\r\n"), &[(1, pretty), (8, pretty)]);
}

#[test]
fn strings_may_hold_anything() {
    check(
        r#"{"a":"}{\"]\\"}{"\u00e9\n":"{"}"#,
        &[(1, r#"{"a":"}{\"]\\"}"#), (1, r#"{"\u00e9\n":"{"}"#)],
    );
}

#[test]
fn an_array_around_objects_is_ignored() {
    check("[{\"a\":1},\n {\"b\":2} , {}\n]\n", &[(1, "{\"a\":1}"), (2, "{\"b\":2}"), (2, "{}")]);
}

#[test]
fn noise_belongs_to_the_next_object_on_its_line_or_else_to_a_frame_of_its_own() {
    check(
        "hello\n[INFO] ready {\"a\":1} and {\"b\":2} bye \r\n\nend",
        &[
            (1, "hello"),
            (2, "<[INFO] ready >{\"a\":1}"),
            (2, "<and >{\"b\":2}"),
            (2, "bye"),
            (4, "end…"),
        ],
    );
    check(
        "Yes — what next?{\"type\":\"complete\"}",
        &[(1, "<Yes — what next?>{\"type\":\"complete\"}")],
    );
    check(r#"prose with } and " then {"a":1}"#, &[(1, r#"<prose with } and " then >{"a":1}"#)]);
    check(r#"{"a":1}} {"b":2}"#, &[(1, r#"{"a":1}"#), (1, r#"<} >{"b":2}"#)]);
}

#[test]
fn a_stray_quote_or_brace_loses_at_most_its_line() {
    check("{\"a\n{\"b\":2}\n", &[(1, "{\"a"), (2, "{\"b\":2}")]);
    check("noise {\n{\"a\":1}\n", &[(1, "noise {"), (2, "{\"a\":1}")]);
    check("}\n\"\n{\"a\":1}\n", &[(1, "}"), (2, "\""), (3, "{\"a\":1}")]);
    check("{ {\"a\":1}\n", &[(1, "<{ >{\"a\":1}")]);
    check("{x} {\"y\"} {\"a\":1}\n", &[(1, "<{x} {\"y\"} >{\"a\":1}")]);
}

#[test]
fn objects_inside_a_broken_one_are_emitted() {
    check(
        "{ \"a\":\n{\"b\":2}\n{\"c\":3}\n",
        &[(1, "{ \"a\":"), (2, "{\"b\":2}"), (3, "{\"c\":3}")],
    );
    check(
        "x {\"a\":[\n  {\"b\":\n{\"c\":\n3}},\n  {}, 4\n, oops\n{}",
        &[
            (1, "x {\"a\":["),
            (2, "{\"b\":\n{\"c\":\n3}}"),
            (5, "{}"),
            (5, ", 4"),
            (6, ", oops"),
            (7, "{}"),
        ],
    );
    // The end of the input breaks it too, if the first column shows where records begin.
    check("{\"a\":\n{\"b\":2}\n", &[(1, "{\"a\":"), (2, "{\"b\":2}")]);
    check("{\"a\":[\n{\"b\":2},\n{\"c\":", &[(1, "{\"a\":["), (2, "{\"b\":2}"), (3, "{\"c\":…")]);
}

#[test]
fn parts_of_a_broken_record_are_not_records() {
    let broken = r#"{"a":oops,"b":{"type":"result"}}"#;
    check(&format!("{broken}\n{{}}\n"), &[(1, broken), (2, "{}")]);
    let broken = "{\"a\":\"raw\ttab\",\"b\":{}}";
    check(&format!("{broken}\n{{}}\n"), &[(1, broken), (2, "{}")]);
}

#[test]
fn a_record_directly_after_a_truncated_one_is_found() {
    check(r#"{"a":1,"b{"c":2}"#, &[(1, r#"{"a":1,"b{"c":2}…"#)]);
    check(r#"{"a":12{"c":2}"#, &[(1, r#"<{"a":12>{"c":2}"#)]);
}

#[test]
fn reading_resumes_on_the_line_where_a_broken_record_ends_before_it_begins() {
    check("{\"a\":1,\nprose {\"b\":2}\n", &[(1, "{\"a\":1,"), (2, "<prose >{\"b\":2}")]);
}

#[test]
fn a_record_open_at_the_end_is_unterminated() {
    check(
        "{}\nx {\"a\":{\n  \"b\":[\n    {}\n",
        &[(1, "{}"), (2, "<x >{\"a\":{\n  \"b\":[\n    {}…")],
    );
    check("{}\n{\"a\"", &[(1, "{}"), (2, "{\"a\"…")]);
    check("{}\nfn main() {\n", &[(1, "{}"), (2, "fn main() {")]);
}

#[test]
fn a_record_that_is_too_long_is_reported_and_reading_resumes_at_the_next_line() {
    let limits = Limits { frame: 10 };
    check_with(limits, "{\"a\":1234}\n", &[(1, "{\"a\":1234}")]);
    check_with(limits, "{\"a\":12345}{}\n{}\n", &[(1, "too long: 13"), (2, "{}")]);
    check_with(
        limits,
        "0123456789\n0123456789a\n{}",
        &[(1, "0123456789"), (2, "too long: 11"), (3, "{}")],
    );
    check_with(limits, "{\"a\":[\n1,\n{}\n{}\n", &[(1, "too long: 12"), (4, "{}")]);
    check_with(limits, "{\"a\":\n123\n{}\n", &[(1, "{\"a\":"), (2, "123"), (3, "{}")]);
    check_with(limits, "x 3456789{}", &[(1, "too long: 11")]);
    check_with(limits, "{\"a\":\"67890\n{}\n", &[(1, "too long: 11"), (2, "{}")]);
    check_with(limits, "{\"a\":\"7890\n{}\n", &[(1, "{\"a\":\"7890"), (2, "{}")]);
}

#[test]
fn invalid_utf8_is_replaced_only_in_its_frame() {
    let mut seen = Vec::new();
    let mut objects = Objects::default();
    objects.push(b"\xff{\"a\":\"\xe2\x82\"}{}", &mut |frame| {
        if let Body::Text(text) = frame.body {
            seen.push((text.noise.to_owned(), text.text.to_owned(), text.replaced));
        }
    });
    let replaced = ("\u{fffd}".to_owned(), "{\"a\":\"\u{fffd}\"}".to_owned(), true);
    assert_eq!(seen, [replaced, (String::new(), "{}".to_owned(), false)]);
}

#[test]
fn extraction_gives_the_complete_objects_and_the_open_rest() {
    assert_eq!(
        extract_json_objects("{\"a\":1}\n{\"b\":2}\n{\"c\":"),
        (vec!["{\"a\":1}", "{\"b\":2}"], "{\"c\":")
    );
    assert_eq!(extract_json_objects("é {\"a\":1} é {"), (vec!["{\"a\":1}"], "{"));
    assert_eq!(extract_json_objects("{\"a\":1} tail"), (vec!["{\"a\":1}"], ""));
    assert_eq!(extract_json_objects("{\"a\":\n{\"b\":2}\noops"), (vec!["{\"b\":2}"], ""));
    assert_eq!(extract_json_objects(""), (vec![], ""));
}

fn time_of(input: &[u8]) -> Duration {
    processor::time(|| {
        let mut objects = Objects::default();
        for chunk in input.chunks(64 << 10) {
            objects.push(chunk, &mut |_| {});
        }
        objects.finish(&mut |_| {});
    })
}

#[test]
fn no_input_has_quadratic_cost() {
    let patterns: [(&str, &str); 13] = [
        ("", "{"),
        ("", "{\"a\":"),
        ("", "{\"\n"),
        ("", "{\n"),
        ("", "{\"a\":\n"),
        ("", "{\"a\":[\n"),
        ("", "{\"a\":{}\n"),
        ("{\"a\":[", "\n{},"),
        ("{\"a\":[", "{\"a\":[\n{},\n"),
        ("", "{\"a\":1,x{"),
        ("", ","),
        ("[,,,", "x{x"),
        ("x {\"a\":", "1{\"a\":"),
    ];
    // There are as many separators in front as braces after them: each may be scanned only once.
    let separators = ",".repeat(1 << 20) + "x";
    let mut inputs: Vec<_> = patterns
        .iter()
        .map(|(front, pattern)| {
            let sized = |size: usize| format!("{front}{}", pattern.repeat(size / pattern.len()));
            (sized(1 << 18), sized(1 << 20))
        })
        .collect();
    let behind = |size: usize| separators[(1 << 20) - size..].to_owned() + &"{x".repeat(size / 2);
    inputs.push((behind(1 << 18), behind(1 << 20)));
    for (small, large) in inputs {
        // Four times the input takes four times as long if the cost is linear, sixteen times if it
        // is quadratic. A busy machine may slow down a run or two.
        let best = (0..3).map(|_| time_of(small.as_bytes())).min().unwrap_or_default();
        let allowed = best * 10 + Duration::from_millis(5);
        let start: String = large.chars().take(20).collect();
        assert!((0..3).any(|_| time_of(large.as_bytes()) < allowed), "{start:?}: not {allowed:?}");
    }
}
