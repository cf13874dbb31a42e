//! The rules of OpenAI Responses for a request alone.

use serde_json::Value;

use super::field;
use crate::check::{Breach, Breaches};
use crate::conversation::{items_at, text_at};

pub(super) fn rules(body: &Value) -> Breaches {
    let mut breaches = Breaches::new();
    for tool in items_at(body, "tools").iter().filter(|tool| text_at(tool, "type") == "function") {
        let missing = ["strict", "parameters"].into_iter().filter(|name| tool.get(name).is_none());
        let name = text_at(tool, "name");
        breaches
            .extend(missing.map(|missing| field(format!("the tool {name:?} has no {missing}"))));
    }
    if body.get("max_tokens").is_some() {
        breaches.push(field("max_tokens is max_output_tokens here"));
    }
    let stateless = body.get("store") == Some(&Value::Bool(false));
    let included = items_at(body, "include");
    if stateless && !included.iter().any(|name| name == "reasoning.encrypted_content") {
        breaches.push(field("store is false, and include lacks reasoning.encrypted_content"));
    }
    let input = items_at(body, "input");
    for (place, item) in input.iter().enumerate() {
        if matches!(text_at(item, "status"), "in_progress" | "incomplete") {
            breaches.push(field(format!("item {place} has status {:?}", text_at(item, "status"))));
        }
        if text_at(item, "type") == "reasoning" {
            reasoning(place, item, input.get(place + 1), stateless, &mut breaches);
        }
    }
    breaches
}

fn reasoning(
    place: usize,
    item: &Value,
    next: Option<&Value>,
    stateless: bool,
    breaches: &mut Breaches,
) {
    let id = text_at(item, "id");
    if stateless && text_at(item, "encrypted_content").is_empty() {
        let detail = format!("item {place}, {id:?}, has no encrypted_content, and store is false");
        breaches.push((Breach::SignatureMissing, detail));
    }
    if !next.is_some_and(is_output) {
        let detail = format!("item {place}, {id:?}, is not followed by the item it led to");
        breaches.push((Breach::ReasoningAlone, detail));
    }
}

/// Whether an item is one of the model.
pub(super) fn is_output(item: &Value) -> bool {
    match text_at(item, "type") {
        "reasoning" | "function_call" | "custom_tool_call" => true,
        "message" | "" => text_at(item, "role") == "assistant",
        _ => false,
    }
}
