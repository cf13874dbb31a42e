//! The rules of Anthropic Messages for a request alone.

use serde_json::Value;

use super::{VERSION, field};
use crate::check::{Breach, Breaches};
use crate::conversation::{items_at, text_at};
use crate::record::Request;

pub(super) fn rules(request: &Request) -> Breaches {
    let body = &request.body;
    let mut breaches = Breaches::new();
    if body.get("max_tokens").and_then(Value::as_u64).is_none() {
        breaches.push(field("max_tokens is missing"));
    }
    if request.header("anthropic-version") == Some(VERSION) {
        let sampling = ["temperature", "top_p", "top_k"].into_iter();
        let given = sampling.filter(|name| body.get(name).is_some());
        breaches.extend(given.map(|name| field(format!("{name} with version {VERSION}"))));
    }
    if body.get("system").is_some_and(|system| items_at_any(system).iter().any(blank)) {
        breaches.push((Breach::ContentEmpty, "a text block of the system prompt".to_owned()));
    }
    let messages = items_at(body, "messages");
    for (place, message) in messages.iter().enumerate() {
        blocks(place, message, &mut breaches);
        answers(place, message, messages.get(place + 1), &mut breaches);
    }
    breaches
}

fn items_at_any(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether a block is a text of white space only. That an empty one is refused is checked for all
/// scripts.
fn blank(block: &Value) -> bool {
    let text = text_at(block, "text");
    text_at(block, "type") == "text" && !text.is_empty() && text.trim().is_empty()
}

fn blocks(place: usize, message: &Value, breaches: &mut Breaches) {
    let mut called = false;
    for block in items_at(message, "content") {
        let kind = text_at(block, "type");
        let inner = items_at(block, "content");
        let empty_inside =
            |block: &Value| text_at(block, "type") == "text" && text_at(block, "text").is_empty();
        if blank(block) || inner.iter().any(|block| blank(block) || empty_inside(block)) {
            let detail = format!("message {place} has a text block without text");
            breaches.push((Breach::ContentEmpty, detail));
        }
        if called && kind != "tool_use" {
            let detail = format!("message {place} has a {kind} block after a tool_use");
            breaches.push((Breach::TextAfterCall, detail));
        }
        if kind == "tool_use" {
            called = true;
            if !block.get("input").is_some_and(Value::is_object) {
                breaches.push(field(format!("message {place}: the input of a tool_use")));
            }
        }
    }
}

/// All results of a message's calls must be in the next message, before anything else.
fn answers(place: usize, message: &Value, next: Option<&Value>, breaches: &mut Breaches) {
    let calls =
        items_at(message, "content").iter().filter(|block| text_at(block, "type") == "tool_use");
    let mut calls: Vec<&str> = calls.map(|call| text_at(call, "id")).collect();
    let Some(next) = next.filter(|_| !calls.is_empty()) else { return };
    let results = items_at(next, "content").iter();
    for block in results.take_while(|block| text_at(block, "type") == "tool_result") {
        calls.retain(|id| *id != text_at(block, "tool_use_id"));
    }
    if !calls.is_empty() {
        let detail = format!(
            "message {} does not start with the results of {} in message {place}",
            place + 1,
            calls.join(", ")
        );
        breaches.push((Breach::AnswersMisplaced, detail));
    }
}
