//! `copilot` to `acp`. Field names and their order are those of Copilot CLI 1.0.102.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::{each_line, put, raw};

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    start(stream);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                step(stream, &[Content::Pieces]);
                step(stream, &[Content::Pieces, Content::CallInPieces(40)]);
            }
            step(stream, &[Content::Pieces]);
        }
        // Without deltas, as with `--stream off`.
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                step(stream, &[Content::Text(2_400)]);
                step(stream, &[Content::Call(1_500)]);
            }
            step(stream, &[Content::Text(1_000)]);
        }
        Shape::Huge => {
            step(stream, &[Content::Text(size.line)]);
            // The output of a tool is repeated in its line.
            step(stream, &[Content::Call(size.line / 2)]);
            step(stream, &[Content::Text(100)]);
        }
    }
    end(stream);
}

/// The content of one step of the model.
enum Content {
    Pieces,
    CallInPieces(usize),
    Text(usize),
    Call(usize),
}

fn record(stream: &mut Stream, kind: &str, data: &str, ephemeral: bool) {
    let (id, parent, time) = (stream.uuid(), stream.uuid(), stream.time());
    stream.line(&[
        r#"{"type":""#,
        kind,
        r#"","data":"#,
        data,
        if ephemeral { r#","ephemeral":true,"id":""# } else { r#","id":""# },
        &id,
        r#"","timestamp":""#,
        &time,
        r#"","parentId":""#,
        &parent,
        r#""}"#,
    ]);
}

fn start(stream: &mut Stream) {
    record(stream, "session.skills_loaded", r#"{"skills":[]}"#, true);
    record(stream, "session.mcp_servers_loaded", r#"{"servers":[]}"#, true);
    record(stream, "session.tools_updated", r#"{"model":"fake-model"}"#, true);
    let content = r#"{"content":"do the thing","transformedContent":"do the thing","messageId":"c7957af4-f723-4775-9247-2b8718b9d138","supportedNativeDocumentMimeTypes":[],"delivery":"idle","interactionId":"d999934c-4069-4761-8036-d2fb52eac0e1","turnId":"0","parentAgentTaskId":"41805193-eace-4805-8112-45aec5d692dd"}"#;
    record(stream, "user.message", content, false);
}

fn end(stream: &mut Stream) {
    record(stream, "assistant.idle", "{}", true);
    let time = stream.time();
    stream.line(&[
        r#"{"type":"result","timestamp":""#,
        &time,
        r#"","sessionId":"ade96cc9-e11f-46e2-aafe-5fd3d97ec7db","exitCode":0,"usage":{"#,
        r#""premiumRequests":0,"totalApiDurationMs":32,"sessionDurationMs":381,"codeChanges":{"#,
        r#""linesAdded":0,"linesRemoved":0,"filesModified":[]}}}"#,
    ]);
}

/// One request to the model, and the tool that it calls.
fn step(stream: &mut Stream, contents: &[Content]) {
    let turn = r#"{"turnId":"0","interactionId":"d999934c-4069-4761-8036-d2fb52eac0e1"}"#;
    record(stream, "assistant.turn_start", turn, false);
    record(stream, "model.call_start", r#"{"turnId":"0","model":"fake-model"}"#, true);
    let (id, call, words) = (stream.uuid(), stream.number(), stream.plain_words(5));
    let (mut complete, mut output) = (String::new(), None);
    for content in contents {
        match content {
            Content::Pieces => complete = deltas(stream, &id),
            Content::Text(length) => complete = stream.text(*length),
            Content::CallInPieces(length) => {
                for delta in [r#"{\"command\":\"echo "#, &words, r#"; ls\",\"mode\":\"sync\"}"#] {
                    let delta = format!(
                        r#"{{"toolCallId":"call_fake_{call}","toolName":"bash","toolType":"function","inputDelta":"{delta}"}}"#,
                    );
                    record(stream, "assistant.tool_call_delta", &delta, true);
                }
                output = Some(stream.text(*length));
            }
            Content::Call(length) => output = Some(stream.text(*length)),
        }
    }
    let finished = r#"{"turnId":"0","dispatchDurationMs":27,"outcome":"success","editClassifierVersion":1,"interactionId":"d999934c-4069-4761-8036-d2fb52eac0e1","containsBuiltInFileEditRequest":false}"#;
    record(stream, "model.call_finished", finished, true);
    let arguments = format!(r#"{{"command":"echo {words}; ls","mode":"sync"}}"#);
    let request = format!(
        r#"{{"toolCallId":"call_fake_{call}","name":"bash","arguments":{arguments},"type":"function","intentionSummary":"run","toolTitle":"Running command"}}"#,
    );
    let requests = if output.is_some() { &request } else { "" };
    let message = format!(
        r#"{{"messageId":"{id}","originatingMessageId":"c7957af4-f723-4775-9247-2b8718b9d138","model":"fake-model","content":"{complete}","toolRequests":[{requests}],"interactionId":"d999934c-4069-4761-8036-d2fb52eac0e1","turnId":"0","rte":false,"apiCallId":"chatcmpl-fake1"}}"#,
    );
    record(stream, "assistant.message", &message, false);
    if let Some(output) = output {
        run(stream, &call, &arguments, &output);
    }
    record(stream, "assistant.turn_end", r#"{"turnId":"0"}"#, false);
}

fn deltas(stream: &mut Stream, id: &str) -> String {
    record(stream, "assistant.message_start", &format!(r#"{{"messageId":"{id}"}}"#), true);
    let mut complete = String::new();
    for _ in 0..DELTAS {
        let length = 8 + stream.below(24);
        let text = stream.text(length);
        let delta = format!(r#"{{"messageId":"{id}","deltaContent":"{text}"}}"#);
        record(stream, "assistant.message_delta", &delta, true);
        complete.push_str(&text);
    }
    complete
}

fn run(stream: &mut Stream, call: &str, arguments: &str, output: &str) {
    let started = format!(
        r#"{{"toolCallId":"call_fake_{call}","toolName":"bash","arguments":{arguments},"turnId":"0","model":"fake-model","toolTitle":"Running command","shellToolInfo":{{"possiblePaths":[],"hasWriteFileRedirection":false}}}}"#,
    );
    record(stream, "tool.execution_start", &started, false);
    let result = r#"{"model":"fake-model","isByok":true,"result":"success"}"#;
    record(stream, "model.call_final_result", result, true);
    record(stream, "session.background_tasks_changed", "{}", true);
    let ended = format!(
        r#"{{"toolCallId":"call_fake_{call}","model":"fake-model","interactionId":"d999934c-4069-4761-8036-d2fb52eac0e1","turnId":"0","rte":false,"shellExecution":{{"exitCode":0}},"success":true,"result":{{"content":"{output}","detailedContent":"{output}"}},"toolTelemetry":{{"properties":{{"customTimeout":"true","executionMode":"sync"}},"metrics":{{"commandTimeout":30000,"result_token_count":19}}}}}}"#,
    );
    record(stream, "tool.execution_complete", &ended, false);
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    data: Option<Details<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    delta_content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_requests: Vec<Request<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":""#;

/// `copilot` to `acp`. The session has no id until the end, so the limit gives it one.
pub(super) fn limit(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let mut streamed = false;
    let mut call = String::new();
    each_line(input, keep, |line: Line<'_>, out| {
        let Some(data) = &line.data else {
            if line.r#type == "result" {
                put!(out, UPDATE, "session_info_update\"}}}\n");
                put!(
                    out,
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"stopReason\":\"end_turn\"}}\n"
                );
            }
            return;
        };
        match line.r#type {
            "assistant.message_delta" => {
                streamed = true;
                chunk(out, "agent_message_chunk", data.delta_content, data.message_id);
            }
            "assistant.tool_call_delta" if *call != *raw(data.tool_call_id) => {
                raw(data.tool_call_id).clone_into(&mut call);
                put!(out, UPDATE, "tool_call\",\"toolCallId\":", call, ",\"title\":");
                put!(out, raw(data.tool_name), ",\"name\":", raw(data.tool_name));
                put!(out, ",\"kind\":\"execute\",\"status\":\"pending\"}}}\n");
            }
            "assistant.message" => {
                let text = data.content.filter(|text| !streamed && text.get() != "\"\"");
                if text.is_some() {
                    chunk(out, "agent_message_chunk", text, data.message_id);
                }
                streamed = false;
                for request in &data.tool_requests {
                    requested(request, *call == *raw(request.tool_call_id), out);
                }
            }
            "tool.execution_complete" => {
                // This is as fast as a nested record, and also handles results that are text.
                let result = data.result.and_then(|it| serde_json::from_str(it.get()).ok());
                let output = result.and_then(|Outcome { content }| content);
                put!(out, UPDATE, "tool_call_update\",\"toolCallId\":", raw(data.tool_call_id));
                put!(
                    out,
                    ",\"status\":\"completed\",\"content\":[{\"type\":\"content\",\"content\":"
                );
                put!(out, "{\"type\":\"text\",\"text\":", raw(output), "}}]}}}\n");
            }
            "session.tools_updated" => {
                put!(out, UPDATE, "session_info_update\",\"_meta\":{\"model\":", raw(data.model));
                put!(out, "}}}}\n");
            }
            _ => {}
        }
    });
}

fn chunk(out: &mut Vec<u8>, kind: &str, text: Option<&RawValue>, message: Option<&RawValue>) {
    put!(out, UPDATE, kind, "\",\"content\":{\"type\":\"text\",\"text\":", raw(text), "}");
    if let Some(message) = message {
        put!(out, ",\"messageId\":", message.get());
    }
    put!(out, "}}}\n");
}

fn requested(request: &Request<'_>, begun: bool, out: &mut Vec<u8>) {
    let kind = if begun { "tool_call_update" } else { "tool_call" };
    put!(out, UPDATE, kind, "\",\"toolCallId\":", raw(request.tool_call_id), ",\"rawInput\":");
    put!(out, raw(request.arguments));
    if !begun {
        put!(out, ",\"title\":", raw(request.name), ",\"name\":", raw(request.name));
        put!(out, ",\"kind\":\"execute\"");
    }
    put!(out, ",\"status\":\"in_progress\"}}}\n");
}
