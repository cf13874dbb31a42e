//! A record that differs from an earlier one only in its text is not parsed (`RepeatedRecord`). It
//! means the same as if it were.

use proptest::prelude::*;
use serde_json::Value;

use crate::support::{self, Case, dialect, translate_seeded};

/// Chunks of Chat Completions; `TEXT` and `PADDING` are replaced.
const CHAT: &[&str] = &[
    r#"{"id":"a","choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}]}"#,
    r#"{"id":"a","choices":[{"index":0,"delta":{"reasoning_content":"TEXT"}}]}"#,
    r#"{"id":"a","choices":[{"delta":{"content":"TEXT"}}],"usage":null,"obfuscation":"PADDING"}"#,
    r#"{"id":"a","choices":[{"delta":{"content":"TEXT"},"finish_reason":"PADDING"}]}"#,
    r#"{"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":"TEXT"}}]}"#,
    r#"{"id":"b","choices":[{"index":0,"delta":{"role":"assistant","content":"TEXT"}}]}"#,
    r#"{"id":"b","choices":[{"index":0,"delta":{"content":"TEXT"}}]}"#,
    r#"{"choices":[{"delta":{"content":"TEXT","content":"TEXT"}}]}"#,
    r#"{"id":"a","choices":[{"delta":{"content":"TEXT"}},{"index":1,"delta":{"content":"TEXT"}}]}"#,
    r#"{"id":"a","choices":[{"delta":{"content":"TEXT","refusal":"TEXT"}}]}"#,
    r#"{"id":"a","choices":[{"delta":{"content":"TEXT"}}],"usage":{"prompt_tokens":1}}"#,
    r#"{"id":"a","choices":[{"delta":{"content":"TEXT"},"finish_reason":"stop"}]}"#,
    r#"{"id":"a","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}"#,
    r#"{"id":"a","choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"id":"a","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
    r#"{"error":{"message":"TEXT"}}"#,
    "[DONE]",
];

/// Records of the Messages API.
const ANTHROPIC: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":1}}}"#,
    r#"{"type":"message_start","message":{"id":"n"}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"TEXT"}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"TEXT"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"TEXT"}}"#,
    r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"TEXT"}}"#,
    r#"{"index":0,"delta":{"type":"text_delta","text":"TEXT"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"TEXT"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
    r#"{"type":"error","error":{"type":"overloaded_error","message":"TEXT"}}"#,
];

const TEXTS: &[&str] =
    &["", "a", "some words", "ü 🙂", r"\n", r#"\""#, "\u{1}", "é\\u00e9", r"\ud83d"];

/// The same stream, in which the spaces of no two records are the same.
fn without_repeats(stream: &str) -> String {
    let mut records = 0;
    let mut lines = stream.split('\n').map(|line| match line.split_once('{') {
        Some((before, rest))
            if before.trim_ascii_end().is_empty() || before.starts_with("data:") =>
        {
            records += 1;
            format!("{before}{{{}{rest}", " ".repeat(records))
        }
        _ => line.to_owned(),
    });
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |all, line| all + "\n" + &line)
}

/// The events of a stream, without the positions of its records.
fn meaning(from: &str, stream: &str) -> Vec<Value> {
    let exit = interlingua::Exit::default();
    let input = [stream.as_bytes()];
    let written = translate_seeded(Some(dialect(from)), dialect("events"), input, &exit);
    let mut records = written.records();
    for record in &mut records {
        let is_unparsed = record["type"] == "unparsed";
        if let Value::Object(fields) = record {
            fields.remove("bytes");
            // The text of a record that is not JSON contains the spaces, and the message counts them.
            fields.retain(|name, _| !is_unparsed || !matches!(&**name, "text" | "message"));
        }
    }
    records
}

#[test]
fn every_transcript_means_the_same_without_repeats() {
    for from in ["openai-chat", "anthropic-api"] {
        for case in Case::of(from) {
            let stream = String::from_utf8(case.input).unwrap();
            let spaced = without_repeats(&stream);
            assert_eq!(meaning(from, &stream), meaning(from, &spaced), "{}", case.name);
        }
    }
}

fn streams(records: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = (prop::sample::select(records), prop::sample::select(TEXTS), 1..6_usize);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| {
        let records = pieces.iter().flat_map(|(record, text, times)| {
            let is_named = record.starts_with(r#"{"index"#);
            let event = if is_named { "event: content_block_delta\n" } else { "" };
            TEXTS.iter().take(*times).map(move |padding| {
                let record = record.replace("TEXT", text).replace("PADDING", padding);
                format!("{event}data: {record}\n\n")
            })
        });
        records.collect()
    })
}

proptest! {
    #![proptest_config(support::cases(256))]

    #[test]
    fn chunks_of_chat_completions_mean_the_same(stream in streams(CHAT)) {
        prop_assert_eq!(
            meaning("openai-chat", &stream),
            meaning("openai-chat", &without_repeats(&stream)),
            "{}", stream
        );
    }

    #[test]
    fn records_of_the_messages_api_mean_the_same(stream in streams(ANTHROPIC)) {
        prop_assert_eq!(
            meaning("anthropic-api", &stream),
            meaning("anthropic-api", &without_repeats(&stream)),
            "{}", stream
        );
    }
}
