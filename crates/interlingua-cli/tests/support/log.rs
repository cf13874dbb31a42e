//! What the log of a session tells.
#![allow(clippy::expect_used, reason = "a message tells what was wrong")]

use serde_json::Value;

pub(crate) fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The beginning of each entry, for messages.
pub(crate) fn kinds(events: &[Value]) -> Vec<String> {
    let short = |event: &Value| format!("{} {event}", event["type"]).chars().take(300).collect();
    events.iter().map(short).collect()
}

pub(crate) fn outcomes(events: &[Value]) -> Vec<&str> {
    of_kind(events, "turn_ended").iter().map(|end| end["outcome"].as_str().unwrap()).collect()
}

/// The cause of the last turn's end.
pub(crate) fn cause(events: &[Value]) -> String {
    let end = of_kind(events, "turn_ended").pop().unwrap();
    end["cause"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn has(kind: &'static str) -> impl Fn(&[Value]) -> bool {
    move |events| !of_kind(events, kind).is_empty()
}

/// The keys of the prompts that the log announces.
pub(crate) fn intents(events: &[Value]) -> Vec<&str> {
    let states = of_kind(events, "host_state").into_iter();
    states.filter_map(|state| state["raw"]["key"].as_str()).collect()
}

/// No entry has disappeared, changed, or moved.
pub(crate) fn assert_continues(before: &[Value], after: &[Value]) {
    assert!(after.starts_with(before), "{:#?}\n{:#?}", kinds(before), kinds(after));
    let numbers = after.iter().map(|event| event["sequence"].as_u64().unwrap());
    assert!(numbers.eq(0..after.len() as u64), "there is a gap: {:#?}", kinds(after));
}

/// A turn, as the log tells it.
#[derive(Debug)]
pub(crate) struct Turn<'e> {
    /// The key of the prompt that was announced before it.
    pub(crate) key: Option<&'e str>,
    pub(crate) text: String,
    pub(crate) outcome: &'e str,
}

/// The turns of a log. Checks that each one ends exactly once, before the next one begins, and that
/// every call and every request in it has ended with it.
pub(crate) fn turns(events: &[Value]) -> Vec<Turn<'_>> {
    let (mut turns, mut key, mut open) = (Vec::new(), None, None);
    let mut is_past = false;
    for event in events {
        // Some agents tell the history of a session that they resume.
        is_past = is_past || event["type"] == "turn_started" && event["replay"] == true;
        if is_past {
            is_past = event["type"] != "turn_ended";
            continue;
        }
        match event["type"].as_str().unwrap() {
            "host_state" => key = event["raw"]["key"].as_str().or(key),
            "turn_started" => {
                assert!(open.is_none(), "a turn began in another one: {event}");
                open = Some((key.take(), String::new(), 0));
            }
            "block" | "block_delta" if event["kind"] == "text" => {
                let (_, text, _) = open.as_mut().expect("a text is part of a turn");
                *text += event["text"].as_str().unwrap();
            }
            "tool_started" => open.as_mut().unwrap().2 += 1,
            "tool_ended" => open.as_mut().unwrap().2 -= 1,
            "turn_ended" => {
                let (key, text, calls) = open.take().expect("only an open turn ends");
                assert_eq!(calls, 0, "every call ends with its turn: {event}");
                let outcome = event["outcome"].as_str().unwrap();
                turns.push(Turn { key, text, outcome });
            }
            _ => {}
        }
    }
    assert!(open.is_none(), "the last turn has not ended");
    turns
}
