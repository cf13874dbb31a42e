//! Answers of all four protocols, parsed into one description.

use serde_json::{Value, json};

use super::{Response, Wire};

/// The content of an answer.
#[derive(Debug, Default, PartialEq)]
pub struct ParsedAnswer {
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

/// Parses a stream.
pub fn parsed_answer(wire: Wire, response: &Response) -> ParsedAnswer {
    let mut parsed_answer = ParsedAnswer::default();
    let mut inputs: Vec<String> = Vec::new();
    for (name, data) in response.events() {
        if data == "[DONE]" {
            continue;
        }
        let event: Value = serde_json::from_str(&data).unwrap();
        match wire {
            Wire::Responses => responses(&name, &event, &mut parsed_answer, &mut inputs),
            Wire::Chat => chat(&event, &mut parsed_answer, &mut inputs),
            Wire::Messages => messages(&name, &event, &mut parsed_answer, &mut inputs),
            Wire::Gemini => gemini(&event, &mut parsed_answer),
        }
    }
    for (call, input) in parsed_answer.calls.iter_mut().zip(inputs) {
        call.2 = parsed(&input);
    }
    parsed_answer
}

fn responses(
    name: &str,
    event: &Value,
    parsed_answer: &mut ParsedAnswer,
    inputs: &mut Vec<String>,
) {
    assert_eq!(text(event, "/type"), name);
    match name {
        "response.output_text.delta" => parsed_answer.text += &text(event, "/delta"),
        "response.reasoning_summary_text.delta" => {
            parsed_answer.reasoning += &text(event, "/delta")
        }
        "response.output_item.added" if event.pointer("/item/call_id").is_some() => {
            parsed_answer.calls.push((
                text(event, "/item/call_id"),
                text(event, "/item/name"),
                json!(0),
            ));
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
            parsed_answer.stop = text(event, "/response/status");
            parsed_answer.stop += &text(event, "/response/incomplete_details/reason");
            let usage = &event["response"]["usage"];
            parsed_answer.usage = counts(
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

fn chat(event: &Value, parsed_answer: &mut ParsedAnswer, inputs: &mut Vec<String>) {
    parsed_answer.text += &text(event, "/choices/0/delta/content");
    parsed_answer.reasoning += &text(event, "/choices/0/delta/reasoning_content");
    parsed_answer.stop += &text(event, "/choices/0/finish_reason");
    if let Some(call) = event.pointer("/choices/0/delta/tool_calls/0") {
        let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
        if index == parsed_answer.calls.len() {
            parsed_answer.calls.push((text(call, "/id"), text(call, "/function/name"), json!(0)));
            inputs.push(String::new());
        }
        inputs[index] += &text(call, "/function/arguments");
    }
    if event["usage"].is_object() {
        assert_eq!(event["choices"], json!([]));
        parsed_answer.usage = counts(
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

fn messages(name: &str, event: &Value, parsed_answer: &mut ParsedAnswer, inputs: &mut Vec<String>) {
    assert_eq!(text(event, "/type"), name);
    parsed_answer.text += &text(event, "/delta/text");
    parsed_answer.reasoning += &text(event, "/delta/thinking");
    if text(event, "/content_block/type") == "tool_use" {
        let block = &event["content_block"];
        parsed_answer.calls.push((text(block, "/id"), text(block, "/name"), json!(0)));
        inputs.push(String::new());
    }
    if text(event, "/delta/type") == "input_json_delta" {
        *inputs.last_mut().unwrap() += &text(event, "/delta/partial_json");
    }
    if name == "message_delta" {
        parsed_answer.stop = text(event, "/delta/stop_reason");
        parsed_answer.usage = counts(
            event,
            &["/usage/input_tokens", "/usage/output_tokens", "/usage/cache_read_input_tokens"],
        );
    }
}

fn gemini(event: &Value, parsed_answer: &mut ParsedAnswer) {
    for part in event.pointer("/candidates/0/content/parts").unwrap().as_array().unwrap() {
        if part["thought"] == json!(true) {
            parsed_answer.reasoning += &text(part, "/text");
        } else if let Some(call) = part.get("functionCall") {
            parsed_answer.calls.push((
                text(call, "/id"),
                text(call, "/name"),
                call["args"].clone(),
            ));
        } else {
            parsed_answer.text += &text(part, "/text");
        }
    }
    parsed_answer.stop += &text(event, "/candidates/0/finishReason");
    parsed_answer.usage = counts(
        &event["usageMetadata"],
        &[
            "/promptTokenCount",
            "/candidatesTokenCount",
            "/cachedContentTokenCount",
            "/thoughtsTokenCount",
        ],
    );
}
