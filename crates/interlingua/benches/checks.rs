//! The corpora are what they claim to be, and the limits do the work that they are the limit of.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "all of this is a test")]

mod corpus;
mod limit;
mod pairs;

use corpus::{Shape, Size};
use pairs::PAIRS;
use serde_json::Value;

const SAMPLE: Size = Size { stream: 1 << 18, line: Size::FULL.line / 30 };

#[test]
fn a_corpus_is_a_clean_stream() {
    for pair in PAIRS.iter().copied() {
        for shape in Shape::ALL {
            let corpus = pair.corpus(shape, SAMPLE);
            let translator = pair.translate(&corpus, &mut |_| {});
            assert_eq!(translator.repairs().told(), [], "{} {shape:?}", pair.from);
            let recognised = interlingua::dialect::find(pair.from).map(|dialect| dialect.name);
            assert_eq!(recognised, translator.from().map(|dialect| dialect.name));
        }
    }
}

#[test]
fn a_record_has_the_size_that_its_shape_says() {
    for pair in PAIRS.iter().copied() {
        let mean = |shape| {
            let corpus = pair.corpus(shape, Size { stream: 1 << 20, ..SAMPLE });
            corpus.len() / corpus.iter().filter(|byte| **byte == b'\n').count()
        };
        let from = pair.from;
        assert!((120..400).contains(&mean(Shape::Small)), "{from} {}", mean(Shape::Small));
        assert!((700..1500).contains(&mean(Shape::Kilobyte)), "{from}");
        let huge = pair.corpus(Shape::Huge, SAMPLE);
        let longest = huge.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
        assert!(longest.is_some_and(|longest| longest >= SAMPLE.line), "{from}");
    }
}

/// The texts, calls and answers of both must be the same; ids that the limit does not make may not.
#[test]
fn the_limit_says_what_we_say() {
    for pair in PAIRS.iter().copied() {
        for shape in Shape::ALL {
            let corpus = pair.corpus(shape, SAMPLE);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            pair.translate(&corpus, &mut |out| ours.extend_from_slice(out));
            (pair.limit)(shape)(&corpus, &mut |out| theirs.extend_from_slice(out));
            let (ours, theirs) = (essence(&ours), essence(&theirs));
            let name = format!("{} {}", pair.from, shape.name());
            assert!(ours.len() > 3, "{name}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours, theirs, "{name}");
            }
            assert_eq!(ours.len(), theirs.len(), "{name}");
        }
    }
}

/// What each record says.
fn essence(output: &[u8]) -> Vec<Vec<Value>> {
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let record: Value = serde_json::from_slice(line).unwrap();
            let mut said = Vec::new();
            collect(&record, &mut said);
            said
        })
        .collect()
}

/// Whether a field carries what was said, wherever it stands.
fn says(name: &str) -> bool {
    let of_all = matches!(name, "type" | "subtype" | "role" | "status" | "timestamp");
    let of_text = matches!(name, "text" | "content" | "delta" | "modelId");
    let of_calls = matches!(
        name,
        "input" | "output" | "parameters" | "result" | "tool_use_id" | "tool_name" | "tool_id"
    );
    let of_parts = matches!(name, "toolCallId" | "toolName" | "dynamic" | "providerExecuted");
    of_all || of_text || of_calls || of_parts || name == "unified"
}

fn collect(value: &Value, said: &mut Vec<Value>) {
    match value {
        Value::Object(fields) if fields.get("type") == Some(&Value::from("result")) => {
            // What a turn came to: the limit has no memory of it.
            said.push(Value::from("result"));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Object(_) | Value::Array(_) => collect(value, said),
                    Value::Number(_) => {}
                    _ if says(name) => {
                        said.extend([Value::from(name.as_str()), value.clone()]);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, said)),
        _ => {}
    }
}
