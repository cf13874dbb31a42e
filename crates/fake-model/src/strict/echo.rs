//! Compares an answer that was sent with what a later request returns of it.
//!
//! Signatures must come back unchanged, each with what it signs, in order. What the model did not
//! complete may be left out.

use serde_json::{Value, json};

use crate::check::{Breach, Breaches};
use crate::conversation::{content_text, items_at, text_at};
use crate::protocol::Protocol;

/// The value of a piece that must come back unchanged, if it has one.
pub(super) fn signature(protocol: Protocol, piece: &Value) -> Option<&str> {
    let field = match (protocol, text_at(piece, "type")) {
        (Protocol::Messages, "thinking") => "signature",
        (Protocol::Messages, "redacted_thinking") => "data",
        (Protocol::Responses, "reasoning") => "encrypted_content",
        (Protocol::Gemini, _) => "thoughtSignature",
        _ => return None,
    };
    piece.get(field).and_then(Value::as_str)
}

/// Compares an answer with the pieces that came back. `known` is whether a signature was sent
/// at all.
pub(super) fn compare(
    protocol: Protocol,
    sent: &[Value],
    returned: &[&Value],
    complete: bool,
    known: &dyn Fn(&str) -> bool,
) -> Breaches {
    if protocol == Protocol::Chat {
        return compare_message(sent.first(), returned.first().copied(), complete);
    }
    let mut breaches = Breaches::new();
    let mut order = Vec::new();
    for piece in returned {
        let found = find(protocol, sent, piece);
        if let Some(place) = found {
            order.push(place);
        }
        let original = found.and_then(|place| sent.get(place));
        breaches.extend(compare_piece(protocol, original, piece, known));
    }
    if !order.is_sorted() {
        breaches.push((Breach::SignatureMisplaced, "the blocks are in another order".to_owned()));
    }
    if complete {
        let changed = !breaches.is_empty();
        let missing = sent.iter().filter_map(|piece| signature(protocol, piece)).filter(|wanted| {
            !returned.iter().any(|piece| signature(protocol, piece) == Some(wanted))
        });
        // What was changed or misplaced is not also missing.
        breaches.extend(missing.filter(|_| !changed).map(|signature| {
            (Breach::SignatureMissing, format!("{signature:?} did not come back"))
        }));
        breaches.extend(compare_content(protocol, sent, returned));
    }
    breaches
}

/// The piece that was sent and came back as this one.
fn find(protocol: Protocol, sent: &[Value], piece: &Value) -> Option<usize> {
    let same = |other: &Value| match protocol {
        Protocol::Messages => match text_at(piece, "type") {
            "tool_use" => same_text(other, piece, "id"),
            "text" => same_text(other, piece, "text"),
            _ => signed_alike(protocol, other, piece),
        },
        Protocol::Responses => match text_at(piece, "type") {
            "function_call" | "custom_tool_call" => same_text(other, piece, "call_id"),
            _ => same_text(other, piece, "id"),
        },
        _ => match piece.get("functionCall") {
            Some(call) => other.get("functionCall").is_some_and(|other| other == call),
            None => signed_alike(protocol, other, piece),
        },
    };
    sent.iter().position(same)
}

fn same_text(one: &Value, other: &Value, field: &str) -> bool {
    !text_at(one, field).is_empty()
        && text_at(one, "type") == text_at(other, "type")
        && text_at(one, field) == text_at(other, field)
}

fn signed_alike(protocol: Protocol, one: &Value, other: &Value) -> bool {
    signature(protocol, one).is_some() && signature(protocol, one) == signature(protocol, other)
}

fn compare_piece(
    protocol: Protocol,
    original: Option<&Value>,
    piece: &Value,
    known: &dyn Fn(&str) -> bool,
) -> Option<(Breach, String)> {
    let wanted = original.and_then(|original| signature(protocol, original));
    match (wanted, signature(protocol, piece)) {
        (None, None) => None,
        (Some(wanted), None) => Some((
            Breach::SignatureMissing,
            format!("{wanted:?} is not on the part that it came with"),
        )),
        (wanted, Some(found)) if wanted != Some(found) => {
            let breach =
                if known(found) { Breach::SignatureMisplaced } else { Breach::SignatureChanged };
            Some((breach, format!("{found:?} is on a part that came with {wanted:?}")))
        }
        (_, found) => {
            let fields: &[&str] = match protocol {
                Protocol::Messages => &["thinking"],
                Protocol::Responses => &["summary", "id"],
                _ => &["text", "functionCall"],
            };
            let changed = fields.iter().find(|field| {
                original.and_then(|original| original.get(field)) != piece.get(field)
            });
            changed.map(|field| {
                let breach = if protocol == Protocol::Gemini {
                    Breach::SignatureMisplaced
                } else {
                    Breach::SignatureChanged
                };
                (
                    breach,
                    format!("the {field} that {:?} signs is another", found.unwrap_or_default()),
                )
            })
        }
    }
}

/// Compares the text and the calls.
fn compare_content(protocol: Protocol, sent: &[Value], returned: &[&Value]) -> Breaches {
    let mut breaches = Breaches::new();
    let sent_text: String = sent.iter().map(|piece| text(protocol, piece)).collect();
    let returned_text: String = returned.iter().map(|piece| text(protocol, piece)).collect();
    if sent_text.trim() != returned_text.trim() {
        breaches.push(changed(&format!("the text {sent_text:?} came back as {returned_text:?}")));
    }
    let sent_calls: Vec<Value> = sent.iter().filter_map(call).collect();
    let found: Vec<Value> = returned.iter().filter_map(|piece| call(piece)).collect();
    if sent_calls != found {
        breaches.push(changed(&format!("the calls {sent_calls:?} came back as {found:?}")));
    }
    if protocol == Protocol::Responses {
        for message in sent.iter().filter(|item| text_at(item, "type") == "message") {
            let same = |item: &&&Value| {
                ["id", "status", "phase"].iter().all(|field| item.get(field) == message.get(field))
            };
            if !text(protocol, message).is_empty() && !returned.iter().any(|item| same(&item)) {
                let id = text_at(message, "id");
                breaches.push(changed(&format!("{id:?} lacks its id, its status or its phase")));
            }
        }
    }
    breaches
}

fn changed(detail: &str) -> (Breach, String) {
    (Breach::ReplyChanged, detail.to_owned())
}

fn text(protocol: Protocol, piece: &Value) -> String {
    match (protocol, text_at(piece, "type")) {
        (Protocol::Messages, "text") => text_at(piece, "text").to_owned(),
        (Protocol::Responses, "message" | "") => {
            content_text(piece.get("content").unwrap_or(&Value::Null))
        }
        (Protocol::Gemini, _) => text_at(piece, "text").to_owned(),
        _ => String::new(),
    }
}

/// A call with what the model wrote, in any protocol. Input that was no object came back as one.
fn call(piece: &Value) -> Option<Value> {
    if let Some(call) = piece.get("functionCall") {
        return Some(call.clone());
    }
    match text_at(piece, "type") {
        "tool_use" => Some(json!([piece.get("id"), piece.get("name"), piece.get("input")])),
        "function_call" => Some(json!([piece.get("call_id"), piece.get("name"), arguments(piece)])),
        "custom_tool_call" => {
            Some(json!([piece.get("call_id"), piece.get("name"), piece.get("input")]))
        }
        _ => None,
    }
}

/// The arguments of a call. What is no JSON may be replaced by an empty object.
fn arguments(function: &Value) -> Value {
    serde_json::from_str(text_at(function, "arguments")).unwrap_or(json!({}))
}

/// Compares a message of Chat Completions.
fn compare_message(sent: Option<&Value>, returned: Option<&Value>, complete: bool) -> Breaches {
    let (Some(sent), Some(returned)) = (sent, returned) else { return Breaches::new() };
    let mut breaches = Breaches::new();
    if !complete {
        return breaches;
    }
    let content = |message: &Value| content_text(message.get("content").unwrap_or(&Value::Null));
    if content(sent) != content(returned) {
        let (sent, returned) = (content(sent), content(returned));
        breaches.push(changed(&format!("the text {sent:?} came back as {returned:?}")));
    }
    let calls = |message: &Value| -> Vec<Value> {
        let calls = items_at(message, "tool_calls").iter();
        let call = |call: &Value| {
            let function = call.get("function").unwrap_or(&Value::Null);
            json!([call.get("id"), function.get("name"), arguments(function)])
        };
        calls.map(call).collect()
    };
    if calls(sent) != calls(returned) {
        breaches.push(changed("the calls came back as others"));
    }
    if !calls(sent).is_empty() {
        breaches.extend(compare_reasoning(sent, returned));
    }
    breaches
}

/// Reasoning comes back with calls, under the name of the field that it came in.
fn compare_reasoning(sent: &Value, returned: &Value) -> Breaches {
    let fields = ["reasoning_content", "reasoning", "reasoning_details"];
    let at = |message: &Value, field: &str| match (field, message.get(field)?) {
        ("reasoning_details", details) => Some(joined(details)),
        (_, text) => Some(text.clone()),
    };
    let breach = |field: &&str| match (at(sent, field), at(returned, field)) {
        (Some(_), None) => Some((Breach::SignatureMissing, format!("{field} did not come back"))),
        (None, Some(_)) => {
            Some((Breach::SignatureMisplaced, format!("{field} came back and was not sent")))
        }
        (wanted, found) if wanted != found => {
            Some((Breach::SignatureChanged, format!("{field} came back as another")))
        }
        _ => None,
    };
    fields.iter().filter_map(breach).collect()
}

/// The entries of `reasoning_details` with the deltas of each one joined. A client may return them
/// either way.
fn joined(details: &Value) -> Value {
    let mut joined: Vec<Value> = Vec::new();
    for entry in details.as_array().map(Vec::as_slice).unwrap_or_default() {
        match joined.last_mut().filter(|last| last.get("index") == entry.get("index")) {
            Some(last) => {
                let text = text_at(last, "text").to_owned() + text_at(entry, "text");
                if let (Some(last), Some(entry)) = (last.as_object_mut(), entry.as_object()) {
                    last.extend(entry.clone());
                    last.insert("text".to_owned(), json!(text));
                }
            }
            None => joined.push(entry.clone()),
        }
    }
    json!(joined)
}
