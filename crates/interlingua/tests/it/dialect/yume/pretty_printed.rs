//! Records of Yume's contract that are printed on several lines are read, and a broken one loses
//! only its own lines.
use crate::support::records::of_type;
use crate::support::{dialect, is_linear, translate, translate_chunks};
use interlingua::Exit;
use interlingua::framing::{Body, Frame, Framing, Joined, Limits};
use serde_json::{Value, json};

/// The frames of an input: the line and the text of each, or its length.
fn frames(input: &[u8], size: usize, limits: Limits) -> Vec<(u64, String)> {
    let mut framing = Joined::new(limits);
    let mut seen = Vec::new();
    let mut take = |frame: Frame<'_>| {
        let text = match &frame.body {
            Body::Text(text) => {
                let of_input = &input[frame.bytes.start as usize..frame.bytes.end as usize];
                assert!(String::from_utf8_lossy(of_input).contains(text.text), "{frame:?}");
                format!("{}{}", text.noise, text.text)
            }
            other => format!("{other:?}"),
        };
        seen.push((frame.line, text));
    };
    for chunk in input.chunks(size) {
        framing.push(chunk, &mut take);
    }
    framing.finish(&mut take);
    seen
}

fn check(input: &str, expected: &[(u64, &str)]) {
    for size in [1, 2, 3, 7, input.len().max(1)] {
        let seen = frames(input.as_bytes(), size, Limits::default());
        let seen: Vec<_> = seen.iter().map(|(line, text)| (*line, &**text)).collect();
        assert_eq!(seen, expected, "{input:?} by {size}");
    }
}

#[test]
fn lines_are_joined_until_the_object_is_complete() {
    let pretty = "{\n  \"type\": \"text\",\n\n  \"content\": {\"a\": [\n    1\n  ]}\r\n}";
    let input = format!("{{\"type\":1}}\n{pretty}\n{{\"type\":2}}\n");
    check(&input, &[(1, "{\"type\":1}"), (2, pretty), (9, "{\"type\":2}")]);
}

#[test]
fn other_lines_are_unchanged() {
    let input = "log {x}\n$\n[\n{\"a\":1} {\"b\":2}\n  {\"c\":\"\n\"}\n{x\n{\"d\":tru\n";
    let expected = [
        (1, "log {x}"),
        (2, "$"),
        (3, "["),
        (4, "{\"a\":1} {\"b\":2}"),
        (5, "{\"c\":\""),
        (6, "\"}"),
        (7, "{x"),
        (8, "{\"d\":tru"),
    ];
    check(input, &expected);
}

#[test]
fn a_line_that_starts_a_record_ends_the_open_one() {
    let input = "{\n  \"type\": \"tool_use\",\n  \"todos\": [\n{\"type\":\"text\"}\n";
    let open = "{\n  \"type\": \"tool_use\",\n  \"todos\": [";
    check(input, &[(1, open), (4, "{\"type\":\"text\"}")]);
    // The same holds if a later line would complete it.
    let input = "{\"a\":[\n{\"type\":\"text\"}\n]}\n";
    check(input, &[(1, "{\"a\":["), (2, "{\"type\":\"text\"}"), (3, "]}")]);
    // An indented line is a part of it.
    let pretty = "{\"a\":[\n {\"type\":\"text\"}\n]}";
    check(&format!("{pretty}\n"), &[(1, pretty)]);
}

#[test]
fn a_broken_record_loses_only_its_own_lines() {
    // The record is cut off in a list, and the next one could be an item of it.
    let second = "{\n  \"type\": \"text\"\n}";
    let input = format!("{{\n  \"todos\": [\n{second}\n{{\"type\":1}}\n");
    let expected = [(1, "{\n  \"todos\": ["), (3, second), (6, "{\"type\":1}")];
    check(&input, &expected);
    // The same at the end of the input.
    check(&format!("{{\n  \"todos\": [\n{second}\n"), &expected[..2]);
    // The record is cut off between two fields, where a brace cannot continue it.
    let input = format!("{{\n  \"a\": 1,\n{second}\nnoise\n");
    check(&input, &[(1, "{\n  \"a\": 1,"), (3, second), (6, "noise")]);
}

#[test]
fn records_on_several_lines_have_a_limit_of_their_own() {
    let long =
        format!("{{\n\"a\":\"{}\",\n\"b\":\"{}\"\n}}", "x".repeat(60_000), "y".repeat(60_000));
    let input = format!("{long}\n{{\"type\":1}}\n");
    let too_long = format!("TooLong {{ length: {}, limit: 100000 }}", long.len());
    check(&input, &[(1, &too_long), (5, "{\"type\":1}")]);
    // A line may be as long as a frame.
    let line = format!("{{\"type\":\"{}\"}}", "x".repeat(1_000_000));
    check(&format!("{line}\n"), &[(1, &line)]);
    let limits = Limits { frame: 50 };
    let seen = frames(b"{\n\"a\":\"0123456789012345678901234567890123456789\"\n\n}\n", 5, limits);
    assert_eq!(seen, [(1, "TooLong { length: 51, limit: 50 }".to_owned())]);
    let input =
        b"{\n\"a\":1,\n\"0123456789012345678901234567890123456789012345678901234567890123456789\n}";
    let seen = frames(input, 5, limits);
    assert_eq!(seen[1], (3, "TooLong { length: 71, limit: 50 }".to_owned()));
}

#[test]
fn joining_is_linear() {
    let of = |line: &str, count: usize| line.repeat(count);
    for line in ["{\"a\":\n", "{\n", "{\"a\":[\n{},\n", "{}\n", "[{\"a\":1\n"] {
        let (short, long) = (of(line, 20_000), of(line, 160_000));
        let run = |input: &str| frames(input.as_bytes(), 1 << 16, Limits::default()).len();
        assert!(
            is_linear(
                || {
                    run(&short);
                },
                || {
                    run(&long);
                }
            ),
            "{line:?}"
        );
    }
}

#[test]
fn a_stream_of_pretty_printed_records_gives_the_same_events() {
    let records = [
        json!({"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/","permissionMode":"default","tools":["Bash"]}),
        json!({"type":"text","content":"one\ntwo {","id":"chunk-1"}),
        json!({"type":"tool_use","id":"c","name":"Bash","input":{"command":"ls","list":[{"type":"x"}]}}),
        json!({"type":"tool_result","tool_use_id":"c","content":"a"}),
        json!({"type":"usage","input_tokens":1,"output_tokens":2}),
        json!({"type":"result","is_error":false,"subtype":"success","usage":{"input_tokens":1,"output_tokens":2}}),
        json!({"type":"message_stop"}),
    ];
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    let pretty: String = records.iter().map(|record| format!("{record:#}\n")).collect();
    let emitted = |input: &str| -> Vec<Value> {
        let mut events = translate("events", input.as_bytes(), &Exit::default()).records();
        for event in &mut events {
            let event = event.as_object_mut().unwrap();
            event.remove("line");
            event.remove("bytes");
        }
        events
    };
    // The dialect is recognised, or given by name.
    assert_eq!(emitted(&pretty), emitted(&lines));
    let by_name = translate_chunks(
        Some(dialect("yume")),
        dialect("text"),
        [pretty.as_bytes()],
        &Exit::default(),
    );
    assert_eq!(by_name.text(), translate("text", lines.as_bytes(), &Exit::default()).text());
    // When passed through, each is one line.
    let passed = translate("yume", pretty.as_bytes(), &Exit::default()).records();
    assert_eq!(passed, records);
}

#[test]
fn a_broken_record_is_reported_once_and_the_turn_continues() {
    let input = "{\n  \"type\": \"text\",\n  \"content\": [\n{\"type\":\"text\",\"content\":\"Hello\"}\n{\"type\":\"result\",\"is_error\":false}\n";
    let (from, to) = (Some(dialect("yume")), dialect("events"));
    let events = translate_chunks(from, to, [input.as_bytes()], &Exit::default()).records();
    let of = |kind: &str| of_type(&events, kind);
    assert_eq!(of("unparsed").len(), 1);
    assert_eq!(
        (&of("unparsed")[0]["line"], &of("block_delta")[0]["text"]),
        (&json!(1), &json!("Hello"))
    );
    assert_eq!(of("turn_ended")[0]["outcome"], "completed");
}
