//! Requests of all four protocols, from one description.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Responses,
    Chat,
    Messages,
    Gemini,
}

impl Wire {
    pub const ALL: [Self; 4] = [Self::Responses, Self::Chat, Self::Messages, Self::Gemini];
}

/// An entry of a conversation.
#[derive(Debug, Clone)]
pub enum Entry {
    User(&'static str),
    Model(&'static str),
    /// Calls of one reply: id and name.
    Calls(Vec<(&'static str, &'static str)>),
    /// An answer: id, name, text.
    Answer(&'static str, &'static str, &'static str),
}

/// A request that streams and offers a shell tool: its path and its body.
pub fn request(wire: Wire, entries: &[Entry]) -> (String, Value) {
    match wire {
        Wire::Responses => ("/v1/responses".to_owned(), responses(entries)),
        Wire::Chat => ("/v1/chat/completions".to_owned(), chat(entries)),
        Wire::Messages => ("/v1/messages".to_owned(), messages(entries)),
        Wire::Gemini => {
            ("/v1beta/models/m:streamGenerateContent?alt=sse".to_owned(), gemini(entries))
        }
    }
}

/// A request without a stream.
pub fn request_without_stream(wire: Wire, entries: &[Entry]) -> (String, Value) {
    let (path, mut body) = request(wire, entries);
    if wire == Wire::Gemini {
        return ("/v1beta/models/m:generateContent".to_owned(), body);
    }
    body["stream"] = json!(false);
    (path, body)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"command": {"type": "string"}}})
}

fn responses(entries: &[Entry]) -> Value {
    let items = entries.iter().flat_map(|entry| {
        match entry {
        Entry::User(text) => vec![json!({"type": "message", "role": "user", "content": text})],
        Entry::Model(text) => {
            vec![json!({"type": "message", "role": "assistant", "content": text})]
        }
        Entry::Calls(calls) => calls
            .iter()
            .map(|(id, name)| {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"})
            })
            .collect(),
        Entry::Answer(id, _, text) => {
            vec![json!({"type": "function_call_output", "call_id": id, "output": text})]
        }
    }
    });
    let tool = json!({"type": "function", "name": "bash", "parameters": schema()});
    let patch = json!({"type": "custom", "name": "apply_patch"});
    let items: Vec<Value> = items.collect();
    json!({"model": "m", "stream": true, "input": items, "tools": [tool, patch]})
}

fn chat(entries: &[Entry]) -> Value {
    let messages = entries.iter().map(|entry| match entry {
        Entry::User(text) => json!({"role": "user", "content": text}),
        Entry::Model(text) => json!({"role": "assistant", "content": text}),
        Entry::Calls(calls) => {
            let call = |(id, name): &(&str, &str)| {
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"role": "assistant", "content": null, "tool_calls": calls})
        }
        Entry::Answer(id, _, text) => {
            json!({"role": "tool", "tool_call_id": id, "content": text})
        }
    });
    let messages: Vec<Value> = messages.collect();
    let function = json!({"name": "bash", "parameters": schema()});
    json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": messages, "tools": [{"type": "function", "function": function}],
    })
}

fn messages(entries: &[Entry]) -> Value {
    let messages = entries.iter().map(|entry| match entry {
        Entry::User(text) => json!({"role": "user", "content": text}),
        Entry::Model(text) => {
            json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
        }
        Entry::Calls(calls) => {
            let call = |(id, name): &(&str, &str)| {
                json!({"type": "tool_use", "id": id, "name": name, "input": {}})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            json!({"role": "assistant", "content": calls})
        }
        Entry::Answer(id, _, text) => {
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
            json!({"role": "user", "content": [result]})
        }
    });
    let messages: Vec<Value> = messages.collect();
    json!({
        "model": "m", "stream": true, "max_tokens": 1000, "messages": messages,
        "tools": [{"name": "bash", "input_schema": schema()}],
    })
}

fn gemini(entries: &[Entry]) -> Value {
    let contents = entries.iter().map(|entry| match entry {
        Entry::User(text) => json!({"role": "user", "parts": [{"text": text}]}),
        Entry::Model(text) => json!({"role": "model", "parts": [{"text": text}]}),
        Entry::Calls(calls) => {
            let call = |(id, name): &(&str, &str)| {
                json!({"functionCall": {"id": id, "name": name, "args": {}}})
            };
            let parts: Vec<Value> = calls.iter().map(call).collect();
            json!({"role": "model", "parts": parts})
        }
        Entry::Answer(id, name, text) => {
            let answer = json!({"id": id, "name": name, "response": {"output": text}});
            json!({"role": "user", "parts": [{"functionResponse": answer}]})
        }
    });
    let contents: Vec<Value> = contents.collect();
    let function = json!({"name": "bash", "parametersJsonSchema": schema()});
    json!({"contents": contents, "tools": [{"functionDeclarations": [function]}]})
}
