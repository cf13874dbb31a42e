//! The benchmark corpora are valid, and the hand-written limits write the same content as we do.

use serde_json::Value;

use crate::corpus::{Shape, Size};
use crate::pairs::PAIRS;

const SAMPLE: Size = Size { stream: 1 << 18, line: Size::FULL.line / 30 };

#[test]
fn a_corpus_needs_no_repairs() {
    for pair in PAIRS.iter().copied() {
        for shape in Shape::ALL {
            let corpus = pair.corpus(shape, SAMPLE);
            let finished = pair.translate(&corpus, &mut |_| {});
            assert_eq!(finished.repairs.listed(), [], "{} {shape:?}", pair.from);
            let recognised = interlingua::dialect::find(pair.from).map(|dialect| dialect.name);
            assert_eq!(recognised, finished.from.map(|dialect| dialect.name));
        }
    }
}

#[test]
fn a_record_has_the_size_of_its_shape() {
    for pair in PAIRS.iter().copied() {
        let mean = |shape| {
            let corpus = pair.corpus(shape, Size { stream: 1 << 20, ..SAMPLE });
            corpus.len() / corpus.iter().filter(|byte| **byte == b'\n').count()
        };
        let (from, small, kilobyte) = (pair.from, mean(Shape::Small), mean(Shape::Kilobyte));
        assert!((120..400).contains(&small), "{from} {small}");
        assert!((700..1500).contains(&kilobyte), "{from} {kilobyte}");
        let huge = pair.corpus(Shape::Huge, SAMPLE);
        let longest = huge.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
        assert!(longest.is_some_and(|longest| longest >= SAMPLE.line), "{from}");
    }
}

/// The texts, calls and answers of both must be equal; ids that the limit does not generate
/// need not be.
#[test]
fn the_limit_writes_the_same_content() {
    let mut different = Vec::new();
    for pair in PAIRS.iter().copied() {
        for shape in Shape::ALL {
            let corpus = pair.corpus(shape, SAMPLE);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            pair.translate(&corpus, &mut |out| ours.extend_from_slice(out));
            (pair.limit)(shape)(&corpus, &mut |out| theirs.extend_from_slice(out));
            let (ours, theirs) = (contents(&ours), contents(&theirs));
            let name = format!("{} {}", pair.from, shape.name());
            assert!(ours.len() > 3, "{name}");
            let first = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
            if let Some(at) = first.or((ours.len() != theirs.len()).then_some(ours.len())) {
                let start_at = |records: &[Vec<Value>]| {
                    let start =
                        |record: &Vec<Value>| format!("{record:?}").chars().take(400).collect();
                    records.get(at).map_or_else(String::new, start)
                };
                different.push(format!(
                    "{name}: {}\n  {}\n  {}",
                    at,
                    start_at(&ours),
                    start_at(&theirs)
                ));
            }
        }
    }
    assert!(different.is_empty(), "ours, then the limit:\n{}", different.join("\n"));
}

/// The content of each record; a record is a line or a server-sent event.
fn contents(output: &[u8]) -> Vec<Vec<Value>> {
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| line.strip_prefix(b"data: ").unwrap_or(line))
        .filter(|record| *record != b"[DONE]")
        .map(|record| {
            let record: Value = serde_json::from_slice(record).unwrap();
            let mut content = Vec::new();
            collect(&record, &mut content);
            content
        })
        .collect()
}

/// Whether a field carries content, in any record.
fn is_content(name: &str) -> bool {
    let of_all = matches!(name, "type" | "subtype" | "role" | "status" | "timestamp");
    let of_text = matches!(name, "text" | "content" | "delta" | "modelId");
    let of_calls = matches!(
        name,
        "output"
            | "result"
            | "tool_use_id"
            | "tool_name"
            | "tool_id"
            | "toolCallName"
            | "errorText"
    );
    let of_parts = matches!(name, "toolCallId" | "toolName" | "dynamic" | "providerExecuted");
    let of_updates = matches!(name, "sessionUpdate" | "stopReason" | "stepName" | "name" | "call");
    of_all || of_text || of_calls || of_parts || of_updates || name == "unified"
}

/// Whether a field is compared as a complete value: the input of a call.
fn is_input(name: &str) -> bool {
    matches!(name, "input" | "parameters" | "rawInput" | "structured")
}

fn collect(value: &Value, content: &mut Vec<Value>) {
    match value {
        Value::Object(fields) if fields.get("type") == Some(&Value::from("result")) => {
            // The limit keeps no state for the summary of a turn.
            content.push(Value::from("result"));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Number(_) => {}
                    _ if is_content(name) && !value.is_object() && !value.is_array()
                        || is_input(name) =>
                    {
                        content.extend([Value::from(name.as_str()), value.clone()]);
                    }
                    Value::Object(_) | Value::Array(_) => collect(value, content),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, content)),
        _ => {}
    }
}
