//! Answers of all four protocols, read back into one description.

use serde_json::{Value, json};

use super::{Response, Wire};

/// What an answer said.
#[derive(Debug, Default, PartialEq)]
pub struct Story {
    pub reasoning: String,
    pub text: String,
    /// Id, name, input.
    pub calls: Vec<(String, String, Value)>,
    /// Input, output, cached, reasoning, as the protocol counts.
    pub usage: Vec<u64>,
    pub stop: String,
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn counts(value: &Value, pointers: &[&str]) -> Vec<u64> {
    pointers.iter().map(|at| value.pointer(at).and_then(Value::as_u64).unwrap_or(0)).collect()
}

fn parsed(input: &str) -> Value {
    serde_json::from_str(input).unwrap_or_else(|_| json!(input))
}

/// Reads a stream.
pub fn story(wire: Wire, response: &Response) -> Story {
    let mut story = Story::default();
    let mut inputs: Vec<String> = Vec::new();
    for (name, data) in response.events() {
        if data == "[DONE]" {
            continue;
        }
        let event: Value = serde_json::from_str(&data).unwrap();
        match wire {
            Wire::Responses => responses(&name, &event, &mut story, &mut inputs),
            Wire::Chat => chat(&event, &mut story, &mut inputs),
            Wire::Messages => messages(&name, &event, &mut story, &mut inputs),
            Wire::Gemini => gemini(&event, &mut story),
        }
    }
    for (call, input) in story.calls.iter_mut().zip(inputs) {
        call.2 = parsed(&input);
    }
    story
}

fn responses(name: &str, event: &Value, story: &mut Story, inputs: &mut Vec<String>) {
    assert_eq!(text(event, "/type"), name);
    match name {
        "response.output_text.delta" => story.text += &text(event, "/delta"),
        "response.reasoning_summary_text.delta" => story.reasoning += &text(event, "/delta"),
        "response.output_item.added" if event.pointer("/item/call_id").is_some() => {
            story.calls.push((text(event, "/item/call_id"), text(event, "/item/name"), json!(0)));
            inputs.push(String::new());
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            *inputs.last_mut().unwrap() += &text(event, "/delta");
        }
        "response.function_call_arguments.done" => {
            assert_eq!(&text(event, "/arguments"), inputs.last().unwrap());
        }
        "response.custom_tool_call_input.done" => {
            assert_eq!(&text(event, "/input"), inputs.last().unwrap());
        }
        "response.completed" | "response.incomplete" => {
            story.stop = text(event, "/response/status");
            story.stop += &text(event, "/response/incomplete_details/reason");
            let usage = &event["response"]["usage"];
            story.usage = counts(
                usage,
                &[
                    "/input_tokens",
                    "/output_tokens",
                    "/input_tokens_details/cached_tokens",
                    "/output_tokens_details/reasoning_tokens",
                ],
            );
        }
        _ => {}
    }
}

fn chat(event: &Value, story: &mut Story, inputs: &mut Vec<String>) {
    story.text += &text(event, "/choices/0/delta/content");
    story.reasoning += &text(event, "/choices/0/delta/reasoning_content");
    story.stop += &text(event, "/choices/0/finish_reason");
    if let Some(call) = event.pointer("/choices/0/delta/tool_calls/0") {
        let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
        if index == story.calls.len() {
            story.calls.push((text(call, "/id"), text(call, "/function/name"), json!(0)));
            inputs.push(String::new());
        }
        inputs[index] += &text(call, "/function/arguments");
    }
    if event["usage"].is_object() {
        assert_eq!(event["choices"], json!([]));
        story.usage = counts(
            &event["usage"],
            &[
                "/prompt_tokens",
                "/completion_tokens",
                "/prompt_tokens_details/cached_tokens",
                "/completion_tokens_details/reasoning_tokens",
            ],
        );
    }
}

fn messages(name: &str, event: &Value, story: &mut Story, inputs: &mut Vec<String>) {
    assert_eq!(text(event, "/type"), name);
    story.text += &text(event, "/delta/text");
    story.reasoning += &text(event, "/delta/thinking");
    if text(event, "/content_block/type") == "tool_use" {
        let block = &event["content_block"];
        story.calls.push((text(block, "/id"), text(block, "/name"), json!(0)));
        inputs.push(String::new());
    }
    if text(event, "/delta/type") == "input_json_delta" {
        *inputs.last_mut().unwrap() += &text(event, "/delta/partial_json");
    }
    if name == "message_delta" {
        story.stop = text(event, "/delta/stop_reason");
        story.usage = counts(
            event,
            &["/usage/input_tokens", "/usage/output_tokens", "/usage/cache_read_input_tokens"],
        );
    }
}

fn gemini(event: &Value, story: &mut Story) {
    for part in event.pointer("/candidates/0/content/parts").unwrap().as_array().unwrap() {
        if part["thought"] == json!(true) {
            story.reasoning += &text(part, "/text");
        } else if let Some(call) = part.get("functionCall") {
            story.calls.push((text(call, "/id"), text(call, "/name"), call["args"].clone()));
        } else {
            story.text += &text(part, "/text");
        }
    }
    story.stop += &text(event, "/candidates/0/finishReason");
    story.usage = counts(
        &event["usageMetadata"],
        &[
            "/promptTokenCount",
            "/candidatesTokenCount",
            "/cachedContentTokenCount",
            "/thoughtsTokenCount",
        ],
    );
}
