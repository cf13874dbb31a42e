//! What a stream tells, without what differs from one run to the next.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// The fields whose values depend on when and where something happened. A host numbers the runs of an agent
/// from 1, since each continues its log. When a session is closed, an agent that does not end at once gets
/// a signal.
fn is_volatile(name: &str) -> bool {
    let is = ["sequence", "bytes", "line", "epoch", "timestamp", "created", "time", "pid"];
    let of_the_end = ["stderr", "signal"];
    let ends = ["_at", "_ms", "Ms", "At", "Timestamp"];
    is.contains(&name) || of_the_end.contains(&name) || ends.iter().any(|end| name.ends_with(end))
}

/// The fields that have an id.
fn is_id(name: &str) -> bool {
    let ids = ["id", "uuid", "call", "message", "request", "parent", "turn", "native"];
    ids.contains(&name) || name.ends_with("_id") || name.ends_with("Id") || name.ends_with("_ids")
}

/// The records of a stream without what differs from one run to the next: ids become numbers, times are
/// left out, and pieces of text that follow each other are one.
pub(crate) fn story(records: &[Value], home: &str) -> Vec<Value> {
    // Some agents name folders relative to the root.
    let home = home.trim_start_matches('/').to_owned();
    let mut names = Names { known: HashMap::new(), home };
    let mut told: Vec<Value> = Vec::new();
    let mut permissions = Vec::new();
    for record in records.iter().filter(|record| !is_private(record)) {
        let mut record = names.plain(record);
        if record["type"] == "session_ended"
            && let Some(fields) = record.as_object_mut()
        {
            fields.remove("exit_code");
        }
        match told.last().and_then(|last| joined(last, &record)) {
            _ if is_permission(&record) => permissions.push(record),
            Some(both) => *told.last_mut().unwrap() = both,
            None => told.push(record),
        }
    }
    told.append(&mut permissions);
    told
}

/// An agent goes on while its request is answered, so the order of the two is not the same every time.
fn is_permission(record: &Value) -> bool {
    let names = [&record["type"], &record["name"]];
    names.iter().any(|name| name.as_str().is_some_and(|name| name.contains("permission")))
}

/// Records that are no part of the story: a host announces its prompts, and agents report what only they
/// understand, at any time.
fn is_private(record: &Value) -> bool {
    let is_intent = record["type"] == "host_state" && record["name"] == "prompt";
    let kinds = ["native", "unknown", "silent", "RAW"];
    is_intent || kinds.iter().any(|kind| record["type"] == *kind)
}

/// The records of what a command printed in a dialect.
pub(crate) fn records(printed: &[u8], dialect: &str) -> Vec<Value> {
    let text = std::str::from_utf8(printed).unwrap();
    if dialect == "text" {
        return vec![Value::from(text)];
    }
    let lines = text.lines().filter(|line| !line.is_empty());
    let data = lines.map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let data = data.filter(|data| *data != "[DONE]");
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

struct Names {
    known: HashMap<String, usize>,
    home: String,
}

impl Names {
    fn plain(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut plain = Map::new();
                for (name, value) in fields.iter().filter(|(name, _)| !is_volatile(name)) {
                    let value = match value {
                        Value::String(id) if is_id(name) => self.number(id),
                        value => self.plain(value),
                    };
                    plain.insert(name.clone(), value);
                }
                Value::Object(plain)
            }
            Value::Array(list) => list.iter().map(|value| self.plain(value)).collect(),
            Value::String(text) => {
                let text = without_process(&text.replace(&self.home, "HOME"));
                Value::from(without_ids_and_times(&text))
            }
            value => value.clone(),
        }
    }

    fn number(&mut self, id: &str) -> Value {
        let next = self.known.len();
        json!(format!("#{}", self.known.entry(id.to_owned()).or_insert(next)))
    }
}

/// Qwen names the process group of a command.
fn without_process(text: &str) -> String {
    let Some((before, after)) = text.split_once("PGID: ") else { return text.to_owned() };
    format!("{before}PGID: {}", after.trim_start_matches(|letter: char| letter.is_ascii_digit()))
}

/// For a person, a session begins with its id, a turn ends with its duration, and last comes how the agent
/// ended and what it printed to standard error.
fn without_ids_and_times(text: &str) -> String {
    let plain = |line: &str| match line.chars().next() {
        Some('●') => line.split(" · session ").next().unwrap_or_default().to_owned(),
        Some('—') => line.rsplit_once(" · ").unwrap_or((line, "")).0.to_owned(),
        _ => line.to_owned(),
    };
    let is_end =
        |line: &str| line.starts_with("| ") || line.starts_with("! the agent was terminated");
    let lines = text.split('\n').filter(|line| !is_end(line));
    lines.map(plain).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Two records that differ in one text only, as one.
fn joined(first: &Value, second: &Value) -> Option<Value> {
    match (first, second) {
        (Value::String(first), Value::String(second)) => Some(json!(format!("{first}{second}"))),
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            let mut different = one.iter().filter(|(name, value)| other[*name] != **value);
            let (name, value) = different.next()?;
            if different.next().is_some() {
                return None;
            }
            let mut both = one.clone();
            both.insert(name.clone(), joined(value, &other[name])?);
            Some(Value::Object(both))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut different = (0..one.len()).filter(|at| one[*at] != other[*at]);
            let at = different.next()?;
            if different.next().is_some() {
                return None;
            }
            let mut both = one.clone();
            both[at] = joined(&one[at], &other[at])?;
            Some(Value::Array(both))
        }
        _ => None,
    }
}

/// The beginning of each record, for messages.
pub(crate) fn short(records: &[Value]) -> Vec<String> {
    let short = |record: &Value| record.to_string().chars().take(400).collect();
    records.iter().map(short).collect()
}
