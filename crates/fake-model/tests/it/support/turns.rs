//! A correct second request for each protocol, which a test then damages.

use fake_model::{FakeModel, Reply, Script};
use serde_json::{Value, json};

use super::bodies::request_without_stream;
use super::{Entry, Wire, found, post, start};

/// A conversation of two requests, the second of which returns the answer to the first.
pub struct Turns {
    pub model: FakeModel,
    pub path: String,
    /// The first request.
    pub first: Value,
    /// The second request.
    pub second: Value,
}

/// The field with the messages of a request.
pub fn list(wire: Wire) -> &'static str {
    match wire {
        Wire::Responses => "input",
        Wire::Chat | Wire::Messages => "messages",
        Wire::Gemini => "contents",
    }
}

impl Turns {
    /// Sends the first request to a strict script with this reply.
    pub fn new(wire: Wire, reply: Reply) -> Self {
        let script = Script::new().strict().any_stream().without_side_requests();
        let model = start(script.reply(reply).reply(Reply::text("Bye.")).repeat_last());
        let (path, mut first) = request_without_stream(wire, &[Entry::User("Hello")]);
        if wire == Wire::Responses {
            first["tools"][0]["strict"] = json!(false);
        }
        let answer = post(&model, &path, &first).json();
        let mut second = first.clone();
        let messages = second[list(wire)].as_array_mut().unwrap();
        messages.extend(returned(wire, &answer));
        messages.extend(results(wire, &answer));
        Self { model, path, first, second }
    }

    /// Sends the second request, and returns all findings.
    pub fn send(&self) -> Vec<&'static str> {
        post(&self.model, &self.path, &self.second);
        found(&self.model)
    }

    /// Sends a second request that was changed.
    pub fn send_changed(mut self, change: impl FnOnce(&mut Value)) -> Vec<&'static str> {
        change(&mut self.second);
        self.send()
    }
}

/// The items or messages with which an answer comes back.
fn returned(wire: Wire, answer: &Value) -> Vec<Value> {
    match wire {
        Wire::Responses => answer["output"].as_array().unwrap().clone(),
        Wire::Chat => vec![answer["choices"][0]["message"].clone()],
        Wire::Messages => vec![json!({"role": "assistant", "content": answer["content"]})],
        Wire::Gemini => {
            let parts = answer["candidates"][0]["content"]["parts"].as_array().unwrap().iter();
            let parts: Vec<&Value> = parts.filter(|part| part.get("thought").is_none()).collect();
            vec![json!({"role": "model", "parts": parts})]
        }
    }
}

/// The results of all calls, or a message of the user if there are none.
fn results(wire: Wire, answer: &Value) -> Vec<Value> {
    let of = |list: &Value, field: &str, value: &str| -> Vec<Value> {
        let items = list.as_array().cloned().unwrap_or_default().into_iter();
        items.filter(|item| item[field] == json!(value)).collect()
    };
    let results: Vec<Value> = match wire {
        Wire::Responses => of(&answer["output"], "type", "function_call")
            .iter()
            .map(|call| {
                json!({
                    "type": "function_call_output", "call_id": call["call_id"], "output": "sunny",
                })
            })
            .collect(),
        Wire::Chat => of(&answer["choices"][0]["message"]["tool_calls"], "type", "function")
            .iter()
            .map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "sunny"}))
            .collect(),
        Wire::Messages => {
            let calls = of(&answer["content"], "type", "tool_use");
            let result = |call: &Value| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "sunny"});
            let results: Vec<Value> = calls.iter().map(result).collect();
            if results.is_empty() {
                vec![]
            } else {
                vec![json!({"role": "user", "content": results})]
            }
        }
        Wire::Gemini => {
            let parts = answer["candidates"][0]["content"]["parts"].as_array().unwrap().iter();
            let results: Vec<Value> = parts
                .filter_map(|part| part.get("functionCall"))
                .map(|call| {
                    let mut result = json!({"name": call["name"], "response": {"output": "sunny"}});
                    if let Some(id) = call.get("id") {
                        result["id"] = id.clone();
                    }
                    json!({"functionResponse": result})
                })
                .collect();
            if results.is_empty() {
                vec![]
            } else {
                vec![json!({"role": "user", "parts": results})]
            }
        }
    };
    if !results.is_empty() {
        return results;
    }
    vec![match wire {
        Wire::Gemini => json!({"role": "user", "parts": [{"text": "Thanks."}]}),
        _ => json!({"role": "user", "content": "Thanks."}),
    }]
}
