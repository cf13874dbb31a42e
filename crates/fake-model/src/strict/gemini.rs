//! The rules of Gemini for a request alone.

use serde_json::Value;

use super::field;
use crate::check::{Breach, Breaches};
use crate::conversation::{items_at, text_at};

pub(super) fn rules(body: &Value) -> Breaches {
    let mut breaches = Breaches::new();
    let contents = items_at(body, "contents");
    for (place, content) in contents.iter().enumerate() {
        let parts = items_at(content, "parts");
        if parts.iter().any(|part| part.get("thought") == Some(&Value::Bool(true))) {
            breaches.push(field(format!("content {place} returns a thought")));
        }
        let empty = |part: &Value| {
            part.get("text").is_some_and(|text| text == "")
                && part.get("thoughtSignature").is_none()
        };
        if text_at(content, "role") == "model" && (parts.is_empty() || parts.iter().any(empty)) {
            breaches.push((Breach::ContentEmpty, format!("content {place} has an empty part")));
        }
        if text_at(content, "role") == "model" && place > 0 {
            let before = contents.get(place - 1).unwrap_or(&Value::Null);
            if text_at(before, "role") == "model" {
                breaches.push(field(format!(
                    "contents {} and {place} are both of the model",
                    place - 1
                )));
            }
        }
        answers(place, parts, contents.get(place + 1), &mut breaches);
    }
    let config = body.pointer("/generationConfig/thinkingConfig").unwrap_or(&Value::Null);
    if config.get("thinkingLevel").is_some() && config.get("thinkingBudget").is_some() {
        breaches.push(field("thinkingLevel and thinkingBudget"));
    }
    breaches
}

/// The responses to a content's calls are all in the next content, in order, and alone.
fn answers(place: usize, parts: &[Value], next: Option<&Value>, breaches: &mut Breaches) {
    let calls: Vec<&Value> = parts.iter().filter_map(|part| part.get("functionCall")).collect();
    let Some(next) = next.filter(|_| !calls.is_empty()) else { return };
    let parts = items_at(next, "parts");
    let responses: Vec<&Value> =
        parts.iter().filter_map(|part| part.get("functionResponse")).collect();
    let names = |list: &[&Value]| -> Vec<String> {
        list.iter().map(|item| text_at(item, "name").to_owned()).collect()
    };
    let place = place + 1;
    if names(&calls) != names(&responses) {
        let (calls, responses) = (names(&calls), names(&responses));
        let detail =
            format!("content {place} has responses of {responses:?} to calls of {calls:?}");
        breaches.push((Breach::AnswersMisplaced, detail));
        return;
    }
    if responses.len() != parts.len() {
        let detail = format!("content {place} has other parts beside the responses");
        breaches.push((Breach::AnswersMisplaced, detail));
    }
    for (call, response) in calls.iter().zip(&responses) {
        match (call.get("id"), response.get("id")) {
            (Some(id), None) => {
                let detail = format!("content {place} has a response without the id {id}");
                breaches.push((Breach::AnswerIdMissing, detail));
            }
            (Some(wanted), Some(found)) if wanted != found => {
                let detail = format!("content {place} has the id {found} in place of {wanted}");
                breaches.push((Breach::AnswersMisplaced, detail));
            }
            _ => {}
        }
    }
}
