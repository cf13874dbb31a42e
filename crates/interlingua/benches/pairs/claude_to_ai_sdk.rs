//! `claude` to `ai-sdk`. Field names and their order are those of Claude Code 2.1.325.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::{ai_sdk, each_line, put, raw};

const CLAUDE_SESSION: &str = "cf2bb5f2-179d-433d-90f3-b384904b367a";
const CLAUDE_MODEL: &str = "claude-opus-5-5";

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    claude_start(stream);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                claude_deltas(stream);
                claude_deltas(stream);
                claude_streamed_call(stream);
            }
            claude_deltas(stream);
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                let id = claude_text(stream, 600);
                claude_command(stream, &id, 280);
            }
            claude_text(stream, 600);
        }
        Shape::Huge => {
            claude_text(stream, size.line);
            // The output of a command is repeated in its line.
            let id = stream.number();
            claude_command(stream, &id, size.line / 2);
            claude_write(stream, size.line);
            claude_text(stream, 600);
        }
    }
    claude_end(stream);
}

/// The common end of all records but the last.
fn claude_stamp(stream: &mut Stream) -> String {
    let (uuid, time) = (stream.uuid(), stream.time());
    format!(
        r#""parent_tool_use_id":null,"session_id":"{CLAUDE_SESSION}","uuid":"{uuid}","timestamp":"{time}""#,
    )
}

fn claude_assistant(stream: &mut Stream, id: &str, content: &str) {
    let stamp = claude_stamp(stream);
    stream.line(&[
        r#"{"type":"assistant","message":{"id":"msg_fake_"#,
        id,
        r#"","type":"message","role":"assistant","model":"claude-opus-5-5","content":["#,
        content,
        r#"],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"#,
        r#""cache_creation_input_tokens":10,"cache_read_input_tokens":40,"output_tokens":1,"#,
        r#""service_tier":"standard"},"context_management":null},"#,
        &stamp,
        r#","request_id":"req_fake_"#,
        id,
        r#""}"#,
    ]);
}

fn claude_text(stream: &mut Stream, length: usize) -> String {
    let (id, text) = (stream.number(), stream.text(length));
    claude_assistant(stream, &id, &format!(r#"{{"type":"text","text":"{text}"}}"#));
    id
}

fn claude_command(stream: &mut Stream, id: &str, length: usize) {
    let (call, words) = (stream.number(), stream.plain_words(length.min(600) / 6));
    let input = format!(
        r#"{{"type":"tool_use","id":"toolu_bash_{call}","name":"Bash","input":{{"command":"echo {words}; ls","description":"run"}}}}"#,
    );
    claude_assistant(stream, id, &input);
    claude_answer(stream, &call, length);
}

fn claude_write(stream: &mut Stream, length: usize) {
    let (id, call, text) = (stream.number(), stream.number(), stream.text(length));
    let input = format!(
        r#"{{"type":"tool_use","id":"toolu_bash_{call}","name":"Write","input":{{"file_path":"/srv/cap-a/new.txt","content":"{text}"}}}}"#,
    );
    claude_assistant(stream, &id, &input);
    claude_answer(stream, &call, 40);
}

fn claude_answer(stream: &mut Stream, call: &str, length: usize) {
    let (output, stamp) = (stream.text(length), claude_stamp(stream));
    stream.line(&[
        r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_bash_"#,
        call,
        r#"","type":"tool_result","content":""#,
        &output,
        r#"","is_error":false}]},"#,
        &stamp,
        r#","tool_use_result":{"stdout":""#,
        &output,
        r#"","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false},"#,
        r#""tool_result_meta":[{"id":"toolu_bash_"#,
        call,
        r#"","permission_decision":{"decision":"accept","source":"config","reason_type":"mode"}}]}"#,
    ]);
}

/// One `stream_event`.
fn claude_event(stream: &mut Stream, id: &str, event: &str) {
    let uuid = stream.uuid();
    stream.line(&[
        r#"{"type":"stream_event","event":"#,
        event,
        r#","session_id":"cf2bb5f2-179d-433d-90f3-b384904b367a","parent_tool_use_id":null,"uuid":""#,
        &uuid,
        r#"","api_message_id":"msg_fake_"#,
        id,
        r#""}"#,
    ]);
}

const CLAUDE_USAGE: &str = r#"{"input_tokens":100,"cache_creation_input_tokens":10,"cache_read_input_tokens":40,"output_tokens":1,"service_tier":"standard"}"#;

fn claude_message_start(stream: &mut Stream, id: &str) {
    let uuid = stream.uuid();
    stream.line(&[
        r#"{"type":"system","subtype":"status","status":"requesting","session_id":"#,
        r#""cf2bb5f2-179d-433d-90f3-b384904b367a","uuid":""#,
        &uuid,
        r#""}"#,
    ]);
    let start = format!(
        r#"{{"type":"message_start","message":{{"id":"msg_fake_{id}","type":"message","role":"assistant","model":"{CLAUDE_MODEL}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{CLAUDE_USAGE}}}}}"#,
    );
    claude_event(stream, id, &start);
}

fn claude_message_end(stream: &mut Stream, id: &str, reason: &str) {
    claude_event(stream, id, r#"{"type":"content_block_stop","index":0}"#);
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{CLAUDE_USAGE}}}"#,
    );
    claude_event(stream, id, &delta);
    claude_event(stream, id, r#"{"type":"message_stop"}"#);
}

fn claude_deltas(stream: &mut Stream) {
    let id = stream.number();
    claude_message_start(stream, &id);
    let start =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    claude_event(stream, &id, start);
    let mut complete = String::new();
    for _ in 0..DELTAS {
        let length = 8 + stream.below(24);
        let text = stream.text(length);
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#,
        );
        claude_event(stream, &id, &delta);
        complete.push_str(&text);
    }
    claude_assistant(stream, &id, &format!(r#"{{"type":"text","text":"{complete}"}}"#));
    claude_message_end(stream, &id, "end_turn");
}

fn claude_streamed_call(stream: &mut Stream) {
    let (id, call, words) = (stream.number(), stream.number(), stream.plain_words(6));
    claude_message_start(stream, &id);
    let start = format!(
        r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"toolu_bash_{call}","name":"Bash","input":{{}}}}}}"#,
    );
    claude_event(stream, &id, &start);
    for delta in [r#"{\"command\": \"echo "#, &words, r#"; ls\","#, r#" \"description\": \"run\"}"#]
    {
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{delta}"}}}}"#,
        );
        claude_event(stream, &id, &delta);
    }
    let input = format!(
        r#"{{"type":"tool_use","id":"toolu_bash_{call}","name":"Bash","input":{{"command":"echo {words}; ls","description":"run"}}}}"#,
    );
    claude_assistant(stream, &id, &input);
    claude_message_end(stream, &id, "tool_use");
    claude_answer(stream, &call, 40);
}

fn claude_start(stream: &mut Stream) {
    stream.line(&[
        r#"{"type":"system","subtype":"init","cwd":"/srv/cap-a/wsc/tool_single","session_id":"#,
        r#""cf2bb5f2-179d-433d-90f3-b384904b367a","tools":["Task","Bash","Edit","NotebookEdit","#,
        r#""Read","Skill","TaskStop","ToolSearch","WebFetch","WebSearch","Write"],"#,
        r#""mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"bypassPermissions","#,
        r#""slash_commands":["verify","debug","code-review"],"apiKeySource":"ANTHROPIC_API_KEY","#,
        r#""claude_code_version":"2.1.325","output_style":"default","agents":["claude","Explore"],"#,
        r#""skills":["verify","debug"],"plugins":[],"uuid":"7f7ca190-0aa5-46b0-b37b-4a6776853eb4"}"#,
    ]);
}

fn claude_end(stream: &mut Stream) {
    let uuid = stream.uuid();
    stream.line(&[
        r#"{"duration_api_ms":76,"stop_reason":"end_turn","session_id":"#,
        r#""cf2bb5f2-179d-433d-90f3-b384904b367a","total_cost_usd":0.001716,"usage":{"#,
        r#""input_tokens":200,"cache_creation_input_tokens":20,"cache_read_input_tokens":80,"#,
        r#""output_tokens":40,"output_tokens_details":{"thinking_tokens":0},"#,
        r#""service_tier":"standard"},"modelUsage":{"claude-opus-5-5":{"inputTokens":200,"#,
        r#""outputTokens":40,"costUSD":0.001716}},"permission_denials":[],"#,
        r#""terminal_reason":"completed","is_error":false,"num_turns":2,"subtype":"success","#,
        r#""api_error_status":null,"result":"Done.","type":"result","duration_ms":300,"uuid":""#,
        &uuid,
        r#""}"#,
    ]);
}

#[derive(Deserialize)]
struct ClaudeLine<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    message: Option<ClaudeMessage<'a>>,
    #[serde(borrow)]
    event: Option<ClaudeEvent<'a>>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<ClaudeUsage<'a>>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClaudeMessage<'a> {
    #[serde(borrow, default)]
    content: Vec<ClaudeContent<'a>>,
}

#[derive(Deserialize)]
struct ClaudeContent<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClaudeEvent<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    content_block: Option<ClaudeContent<'a>>,
    #[serde(borrow)]
    delta: Option<ClaudeDelta<'a>>,
}

#[derive(Deserialize)]
struct ClaudeDelta<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClaudeUsage<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_creation_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_read_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
}

/// `claude` to `ai-sdk`. A stream with deltas contains each block twice. The limit does not
/// remember what it has written, so `streamed` selects the records that it uses.
fn claude_to_ai_sdk(input: &[u8], streamed: bool, keep: &mut dyn FnMut(&[u8])) {
    let mut blocks = 0_u64;
    let (mut call, mut tool) = (String::new(), String::new());
    each_line(input, keep, |line: ClaudeLine<'_>, out| match line.r#type {
        "stream_event" => {
            if let Some(event) = &line.event {
                ai_sdk_delta(event, &mut blocks, &mut call, &mut tool, out);
            }
        }
        "assistant" => {
            for content in line.message.iter().flat_map(|message| &message.content) {
                if content.r#type == "text" && !streamed {
                    blocks += 1;
                    ai_sdk::text(out, blocks, raw(content.text));
                } else if content.r#type == "tool_use" {
                    tool.clear();
                    tool.push_str(raw(content.name));
                    if streamed {
                        ai_sdk::input_end(out, raw(content.id));
                    }
                    ai_sdk::call(out, raw(content.id), &tool, raw(content.input));
                }
            }
        }
        "user" => {
            for content in line.message.iter().flat_map(|message| &message.content) {
                ai_sdk::answer(out, raw(content.tool_use_id), &tool, raw(content.content));
            }
        }
        "system" if line.model.is_some() => {
            ai_sdk::start(out, raw(line.session_id), raw(line.model));
        }
        "result" => {
            if let Some(usage) = &line.usage {
                put!(out, "{\"type\":\"finish\",\"finishReason\":{\"unified\":\"stop\",\"raw\":");
                put!(out, raw(line.stop_reason), "},\"usage\":{\"inputTokens\":{\"noCache\":");
                put!(out, raw(usage.input_tokens), ",\"cacheRead\":");
                put!(out, raw(usage.cache_read_input_tokens), ",\"cacheWrite\":");
                put!(out, raw(usage.cache_creation_input_tokens), "},\"outputTokens\":{\"total\":");
                put!(out, raw(usage.output_tokens), "}}}\n");
            }
        }
        _ => {}
    });
}

pub(super) fn claude_complete_to_ai_sdk(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    claude_to_ai_sdk(input, false, keep);
}

pub(super) fn claude_deltas_to_ai_sdk(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    claude_to_ai_sdk(input, true, keep);
}

fn ai_sdk_delta(
    event: &ClaudeEvent<'_>,
    blocks: &mut u64,
    call: &mut String,
    tool: &mut String,
    out: &mut Vec<u8>,
) {
    match (event.r#type, &event.delta, &event.content_block) {
        ("content_block_delta", Some(ClaudeDelta { text: Some(text), .. }), _) => {
            ai_sdk::delta(out, *blocks, text.get());
        }
        ("content_block_delta", Some(ClaudeDelta { partial_json: Some(json), .. }), _) => {
            put!(out, "{\"type\":\"tool-input-delta\",\"id\":", call, ",\"delta\":");
            put!(out, json.get(), "}\n");
        }
        ("content_block_start", _, Some(block)) if block.r#type == "tool_use" => {
            call.clear();
            call.push_str(raw(block.id));
            tool.clear();
            tool.push_str(raw(block.name));
            ai_sdk::input_start(out, call, tool);
        }
        ("content_block_start", ..) => {
            call.clear();
            *blocks += 1;
            ai_sdk::part(out, "text-start", *blocks, "}\n");
        }
        ("content_block_stop", ..) if call.is_empty() => {
            ai_sdk::part(out, "text-end", *blocks, "}\n");
        }
        _ => {}
    }
}
