//! The kinds of records in a stream: the name of a record and how it reports that something ended,
//! without its other content. It shares no code with our decoders.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The kinds of records in a stream of a dialect. A truncated line has the kinds that its start
/// names.
pub fn kinds(dialect: &str, stream: &str) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for line in stream.lines().filter(|line| !line.trim().is_empty()) {
        if dialect == "text" {
            kinds.insert(kind_of_line(line));
            continue;
        }
        match line.strip_prefix("data: ").unwrap_or(line) {
            "[DONE]" => {
                kinds.insert("[DONE]".to_owned());
            }
            record => collect("", &read(record), &mut kinds),
        }
    }
    kinds
}

/// A record, or its complete fields if it is truncated.
fn read(record: &str) -> Map<String, Value> {
    let starts = record.match_indices(',').rev().map(|(at, _)| format!("{}}}", &record[..at]));
    let mut tries = std::iter::once(record.to_owned()).chain(starts);
    tries.find_map(|start| serde_json::from_str(&start).ok()).unwrap()
}

/// The fields that name a kind.
const NAMES: [&str; 5] = ["method", "type", "subtype", "sessionUpdate", "activityType"];

/// The fields that report how something ended, as a word or as an object that contains the word.
const ENDS: [&str; 4] = ["status", "stopReason", "finishReason", "outcome"];

/// The fields in which records of some dialects contain another record with a kind of its own.
const CARRIERS: [&str; 9] = [
    "params",
    "update",
    "message",
    "content",
    "event",
    "delta",
    "content_block",
    "request",
    "response",
];

fn collect(outer: &str, record: &Map<String, Value>, kinds: &mut BTreeSet<String>) {
    let named = name(record, outer.is_empty());
    let kind = match (outer, &*named) {
        (outer, "") => outer.to_owned(),
        ("", named) => named.to_owned(),
        (outer, named) => format!("{outer} > {named}"),
    };
    kinds.insert(kind.clone());
    // A `RAW` event of AG-UI contains a record of the agent.
    if named == "RAW" {
        return;
    }
    for (_, carried) in record.iter().filter(|(field, _)| CARRIERS.contains(&field.as_str())) {
        let several = carried.as_array().map_or(std::slice::from_ref(carried), Vec::as_slice);
        for carried in several.iter().filter_map(Value::as_object) {
            collect(&kind, carried, kinds);
        }
    }
}

fn name(record: &Map<String, Value>, outermost: bool) -> String {
    let word = |field: &&str| record.get(*field)?.as_str().map(str::to_owned);
    let mut words: Vec<String> = NAMES.iter().filter_map(word).collect();
    if record.get("type").is_some_and(|kind| kind == "CUSTOM") {
        words.extend(word(&"name"));
    }
    // A response of JSON-RPC has no name.
    if words.is_empty() && outermost {
        words.extend(
            ["result", "error"]
                .map(str::to_owned)
                .into_iter()
                .filter(|field| record.contains_key(field)),
        );
    }
    for field in ENDS {
        let end = record.get(field).and_then(|end| match end {
            Value::Object(end) => end.get("unified").or_else(|| end.get("type"))?.as_str(),
            end => end.as_str(),
        });
        words.extend(end.map(|end| format!("{field}={end}")));
    }
    words.join("/")
}

/// The kind of a line that a person reads: its mark, and the word after it if it is one of ours.
fn kind_of_line(line: &str) -> String {
    let line = line.trim_start();
    let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut words = rest.split(' ').map(|word| word.trim_end_matches([':', ',', '?']));
    let ours = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    match mark {
        "!" | "?" | "—" => match words.next().filter(ours) {
            Some("the") => format!("{mark} the {}", words.next().unwrap_or_default()),
            Some(word) => format!("{mark} {word}"),
            None => mark.to_owned(),
        },
        "⎿" => match rest.split_once([':', ',']) {
            Some((word, _)) if ours(&word) => format!("{mark} {word}"),
            _ => mark.to_owned(),
        },
        "●" | "▸" | "▹" | ">" | "+" | "~" | "|" => mark.to_owned(),
        "plan:" | "thinking:" => mark.to_owned(),
        _ if line.starts_with('[') && line.get(2..3) == Some("]") => line[..3].to_owned(),
        _ => "text".to_owned(),
    }
}
