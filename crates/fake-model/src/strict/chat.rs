//! The rules of Chat Completions for a request alone, as the stricter servers keep them.

use serde_json::Value;

use super::field;
use crate::check::{Breach, Breaches};
use crate::conversation::{items_at, text_at};

pub(super) fn rules(body: &Value) -> Breaches {
    let mut breaches = Breaches::new();
    let empty = |value: Option<&Value>| {
        value.and_then(Value::as_array).is_some_and(|items| items.is_empty())
    };
    if empty(body.get("tools")) {
        breaches.push(field("tools is an empty list"));
    }
    if body.get("max_tokens").is_some() && body.get("max_completion_tokens").is_some() {
        breaches.push(field("max_tokens and max_completion_tokens"));
    }
    let messages = items_at(body, "messages");
    for (place, message) in messages.iter().enumerate() {
        if empty(message.get("tool_calls")) {
            breaches.push(field(format!("message {place}: tool_calls is an empty list")));
        }
        let calls = items_at(message, "tool_calls");
        for call in calls {
            let arguments = call.pointer("/function/arguments").and_then(Value::as_str);
            let parsed = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
            if !parsed.is_some_and(|arguments| arguments.is_object()) {
                let id = text_at(call, "id");
                breaches.push(field(format!("message {place}: the arguments of call {id:?}")));
            }
        }
        let rest = messages.get(place + 1..).unwrap_or_default();
        answers(place, calls, rest, &mut breaches);
    }
    breaches
}

/// The answers to a message's calls follow it directly, in the order of the calls.
fn answers(place: usize, calls: &[Value], rest: &[Value], breaches: &mut Breaches) {
    let wanted: Vec<&str> = calls.iter().map(|call| text_at(call, "id")).collect();
    let tools = rest.iter().take_while(|message| text_at(message, "role") == "tool");
    let found: Vec<&str> = tools.map(|message| text_at(message, "tool_call_id")).collect();
    if !wanted.is_empty() && wanted != found {
        let detail =
            format!("the calls of message {place} are {wanted:?}, their answers {found:?}");
        breaches.push((Breach::AnswersMisplaced, detail));
    }
}
