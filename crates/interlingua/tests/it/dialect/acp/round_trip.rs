//! Events that are written as ACP and read again are the same, as far as the protocol can carry
//! them.

use serde_json::{Value, json};

use crate::support::summary::flat_text;
use crate::support::{self, Case, translate};

/// The part of an event that ACP carries, or `None` if it carries nothing of it.
fn carried(event: &Value) -> Option<Value> {
    let mut event = event.clone();
    let fields = event.as_object_mut()?;
    for field in
        ["interlingua", "sequence", "line", "bytes", "synthetic", "time", "message", "index"]
    {
        fields.remove(field);
    }
    match fields["type"].as_str()? {
        "turn_started" => {
            fields.remove("id");
        }
        "turn_ended" => {
            // These were written in other records before, or as text.
            for field in ["final_text", "replay"] {
                fields.remove(field);
            }
            // A zero is an absent count in ACP.
            let zero = |usage: &Value| usage["input"] == 0 && usage["output"] == 0;
            if fields.get("usage").is_some_and(zero) {
                fields.remove("usage");
            }
            // The last of them is written before the others.
            if let Some(errors) = fields.get_mut("errors").and_then(Value::as_array_mut) {
                errors.sort_by_key(Value::to_string);
            }
            if let Some(usage) = fields.get_mut("usage").and_then(Value::as_object_mut) {
                usage.remove("model");
                usage.remove("total");
            }
            for usage in
                fields.get_mut("by_model").and_then(Value::as_array_mut).into_iter().flatten()
            {
                usage.as_object_mut()?.remove("scope");
            }
        }
        "tool_started" | "tool_input" => return None,
        "tool_ended" => {
            let output = fields.remove("output").unwrap_or(Value::Null);
            let error = fields.remove("error").unwrap_or(Value::Null);
            fields.remove("structured");
            let output =
                if flat_text(&output).is_empty() { flat_text(&error) } else { flat_text(&output) };
            fields.insert("answer".to_owned(), Value::from(output));
        }
        "plan_updated" => {
            if fields.contains_key("parent") {
                return None;
            }
            for item in fields.get_mut("items")?.as_array_mut()? {
                let item = item.as_object_mut()?;
                item.remove("raw_status");
                // Every step has a priority in ACP.
                if item.get("priority").is_some_and(|priority| priority == "medium") {
                    item.remove("priority");
                }
            }
        }
        "files_changed" if fields.contains_key("call") => {}
        "user_message" if !fields.contains_key("parent") && fields.get("injected").is_none() => {
            fields.remove("replay");
        }
        "permission_requested" => {
            for field in ["input", "tool", "description", "parent"] {
                fields.remove(field);
            }
        }
        "tool_progress" if fields.contains_key("output") || fields.contains_key("elapsed_ms") => {}
        "artifact" => {}
        _ => return None,
    }
    Some(event)
}

/// The part of a stream that ACP carries. The client knows what its user writes, so that is not
/// sent.
fn all_carried(events: &[Value]) -> Vec<Value> {
    let (mut replayed, mut all) = (false, Vec::new());
    for event in events {
        if event["type"] == "turn_started" {
            replayed = event["replay"] == true;
        }
        if event["type"] != "user_message" || replayed {
            all.extend(carried(event));
        }
    }
    all
}

/// The calls whose changed files a stream contains.
fn calls_with_changes(events: &[Value]) -> Vec<&Value> {
    let changes = events.iter().filter(|event| event["type"] == "files_changed");
    changes.map(|event| &event["call"]).collect()
}

/// The kind of a text, its parent, and the text.
type TextBlock = (Value, Value, String);

/// The texts of the agents by block, and the inputs of their calls by call.
fn content(events: &[Value]) -> (Vec<TextBlock>, Vec<(Value, Value)>) {
    let (mut texts, mut inputs) = (Vec::<TextBlock>::new(), Vec::new());
    for event in events {
        match event["type"].as_str().unwrap() {
            "block" | "block_delta" if event["kind"] == "text" || event["kind"] == "reasoning" => {
                let text = event["text"].as_str().unwrap();
                let (kind, parent) = (event["kind"].clone(), event["parent"].clone());
                match texts.last_mut() {
                    Some(last) if last.0 == kind && last.1 == parent => last.2 += text,
                    _ if text.is_empty() => {}
                    _ => texts.push((kind, parent, text.to_owned())),
                }
            }
            "tool_started" | "tool_input" if event.get("input").is_some() => {
                inputs.push((event["call"].clone(), event["input"].clone()));
            }
            _ => {}
        }
    }
    (texts, inputs)
}

#[test]
fn every_transcript_survives_the_round_trip() {
    for case in Case::all() {
        let events = translate("events", &case.input, &case.exit).records();
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        let written = translate("acp", lines.as_bytes(), &case.exit);
        let again = translate("events", &written.bytes, &case.exit).records();
        let (one, two) = (content(&events), content(&again));
        assert_eq!(one.0, two.0, "{}: text", case.name);
        assert_eq!(one.1, two.1, "{}: inputs", case.name);
        let one = all_carried(&events);
        let mut two = all_carried(&again);
        // An edit is shown even if the agent does not report the file, and is read as a change.
        let with_changes = calls_with_changes(&events);
        two.retain(|event| {
            event["type"] != "files_changed" || with_changes.contains(&&event["call"])
        });
        for (one, two) in one.iter().zip(&mut two) {
            // A request must have options: if the agent offers none, they are to allow and to deny.
            if one.get("options").is_none()
                && let Some(fields) = two.as_object_mut()
            {
                fields.remove("options");
            }
            assert_eq!(one, two, "{}", case.name);
        }
        assert_eq!(one.len(), two.len(), "{}", case.name);
    }
}

#[test]
fn the_session_that_we_write_is_read_again() {
    let lines = json!({
        "interlingua": 1, "type": "session_started", "sequence": 0, "line": 1, "bytes": [0, 1],
        "id": "s", "agent": "codex", "version": "1", "model": "m", "cwd": "/w",
        "permission_mode": "ask", "tools": ["a"],
    });
    let written = translate("acp", format!("{lines}\n").as_bytes(), &support::exit("0"));
    let again = translate("events", &written.bytes, &support::exit("0")).records();
    for field in ["id", "agent", "version", "model", "cwd", "permission_mode", "tools"] {
        assert_eq!(again[0][field], lines[field], "{field}");
    }
}
