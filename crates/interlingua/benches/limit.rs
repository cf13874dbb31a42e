//! The limit: what a translator for one pair costs that knows nothing but that pair.
//!
//! Each line is split off, validated once, parsed once into borrowed fields, and written with raw
//! slices into a buffer that is used again. There is no order to keep, no repeated text to find, no
//! id to make, and a record out of shape is skipped. This is the yardstick, so it is to be as fast
//! as it can be without being wrong on the corpora; it shares one thing with us, the escaping of
//! JSON inside a string, since a hand-written loop was slower.

use interlingua::json::write;
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Output is thrown away when there is this much of it.
const OUTPUT_KEPT: usize = 1 << 16;

/// Translates lines one by one; the output is thrown away, or handed to `keep` first.
fn each_line<'a, L: Deserialize<'a>>(
    mut input: &'a [u8],
    keep: &mut dyn FnMut(&[u8]),
    mut translate: impl FnMut(L, &mut Vec<u8>),
) {
    let mut out = Vec::new();
    while let Some(end) = memchr(b'\n', input) {
        let (line, rest) = input.split_at(end);
        input = rest.get(1..).unwrap_or_default();
        let Ok(text) = simdutf8::basic::from_utf8(line) else { continue };
        let Ok(line) = serde_json::from_str(text) else { continue };
        translate(line, &mut out);
        if out.len() > OUTPUT_KEPT {
            keep(&out);
            out.clear();
        }
    }
    keep(&out);
}

/// Writes fixed text and raw values in turn.
macro_rules! put {
    ($out:expr, $($part:expr),+ $(,)?) => {
        {$($out.extend_from_slice($part.as_bytes());)+}
    };
}

fn raw(value: Option<&RawValue>) -> &str {
    value.map_or("null", RawValue::get)
}

/// What stands between the quotes of a literal.
fn body(value: Option<&RawValue>) -> &str {
    let literal = raw(value);
    literal.get(1..literal.len() - 1).unwrap_or_default()
}

#[derive(Deserialize)]
struct CodexLine<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    thread_id: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<CodexItem<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CodexItem<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    aggregated_output: Option<&'a RawValue>,
}

/// `codex` to `claude`: whole blocks, as Claude prints them without partial messages.
pub(crate) fn codex_to_claude(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let mut session = String::new();
    let mut pieces: Vec<u8> = Vec::new();
    each_line(input, keep, |line: CodexLine<'_>, out| match (line.r#type, &line.item) {
        ("message.output_text.delta", _) => put!(pieces, body(line.delta)),
        ("message.output_text.done", _) => {
            put!(out, CLAUDE_MESSAGE, "\"msg\"", CLAUDE_TEXT, "\"");
            if pieces.is_empty() {
                put!(out, body(line.text));
            } else {
                out.append(&mut pieces);
            }
            put!(out, "\"}", CLAUDE_MESSAGE_END, session, "}\n");
        }
        ("item.completed", Some(item)) if item.r#type == "agent_message" => {
            put!(out, CLAUDE_MESSAGE, raw(item.id), CLAUDE_TEXT, raw(item.text), "}");
            put!(out, CLAUDE_MESSAGE_END, session, "}\n");
        }
        ("item.started", Some(item)) if item.r#type == "command_execution" => {
            put!(out, CLAUDE_MESSAGE, raw(item.id), CLAUDE_CALL, raw(item.id));
            put!(out, ",\"name\":\"Bash\",\"input\":{\"command\":", raw(item.command), "}}");
            put!(out, CLAUDE_MESSAGE_END, session, "}\n");
        }
        ("item.completed", Some(item)) if item.r#type == "command_execution" => {
            put!(out, CLAUDE_ANSWER, raw(item.id), ",\"type\":\"tool_result\",\"content\":");
            put!(out, raw(item.aggregated_output), CLAUDE_ANSWER_END, session, "}\n");
        }
        ("thread.started" | "session.created", _) => {
            session = raw(line.thread_id.or(line.id)).to_owned();
            put!(out, "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":", session, "}\n");
        }
        ("turn.completed" | "response.completed", _) => {
            put!(out, "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"usage\":");
            put!(out, raw(line.usage), ",\"session_id\":", session, "}\n");
        }
        _ => {}
    });
}

const CLAUDE_MESSAGE: &str = r#"{"type":"assistant","message":{"id":"#;
const CLAUDE_TEXT: &str =
    r#","type":"message","role":"assistant","content":[{"type":"text","text":"#;
const CLAUDE_CALL: &str =
    r#","type":"message","role":"assistant","content":[{"type":"tool_use","id":"#;
const CLAUDE_MESSAGE_END: &str =
    r#"],"stop_reason":null,"stop_sequence":null},"parent_tool_use_id":null,"session_id":"#;
const CLAUDE_ANSWER: &str = r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"#;
const CLAUDE_ANSWER_END: &str = r#"}]},"parent_tool_use_id":null,"session_id":"#;

#[derive(Deserialize)]
struct GeminiLine<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    delta: Option<bool>,
    #[serde(borrow)]
    tool_name: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_id: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    stats: Option<GeminiStats<'a>>,
}

#[derive(Deserialize)]
struct GeminiStats<'a> {
    #[serde(borrow)]
    total_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cached: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    duration_ms: Option<&'a RawValue>,
}

/// `gemini` to `giselle`.
pub(crate) fn gemini_to_giselle(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    each_line(input, keep, |line: GeminiLine<'_>, out| {
        let time = raw(line.timestamp);
        match line.r#type {
            "message" => {
                put!(out, "{\"type\":\"message\",\"timestamp\":", time);
                put!(out, ",\"role\":", raw(line.role), ",\"content\":", raw(line.content));
                put!(out, if line.delta == Some(true) { ",\"delta\":true}\n" } else { "}\n" });
            }
            "tool_use" => {
                put!(out, "{\"type\":\"tool_use\",\"timestamp\":", time);
                put!(out, ",\"tool_name\":", raw(line.tool_name), ",\"tool_id\":");
                put!(out, raw(line.tool_id), ",\"parameters\":", raw(line.parameters), "}\n");
            }
            "tool_result" => {
                put!(out, "{\"type\":\"tool_result\",\"timestamp\":", time, ",\"tool_id\":");
                put!(out, raw(line.tool_id), ",\"status\":", raw(line.status));
                put!(out, ",\"output\":", raw(line.output), "}\n");
            }
            "init" => {
                put!(out, "{\"type\":\"init\",\"timestamp\":", time, ",\"session_id\":");
                put!(out, raw(line.session_id), ",\"modelId\":", raw(line.model), "}\n");
            }
            "result" => {
                put!(out, "{\"type\":\"result\",\"timestamp\":", time);
                put!(out, ",\"status\":", raw(line.status));
                if let Some(stats) = &line.stats {
                    put!(out, ",\"stats\":{\"total_tokens\":", raw(stats.total_tokens));
                    put!(out, ",\"input_tokens\":", raw(stats.input_tokens));
                    put!(out, ",\"output_tokens\":", raw(stats.output_tokens));
                    put!(out, ",\"cached\":", raw(stats.cached), ",\"input\":", raw(stats.input));
                    put!(out, ",\"duration_ms\":", raw(stats.duration_ms), "}");
                }
                put!(out, "}\n");
            }
            _ => {}
        }
    });
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

/// `claude` to `ai-sdk`. A stream in pieces says each block twice; a limit has no memory of what was
/// said, so it is told which of the two to take.
fn claude_to_ai_sdk(input: &[u8], in_pieces: bool, keep: &mut dyn FnMut(&[u8])) {
    let mut blocks = 0_u64;
    let (mut call, mut tool) = (String::new(), String::new());
    each_line(input, keep, |line: ClaudeLine<'_>, out| match line.r#type {
        "stream_event" => {
            if let Some(event) = &line.event {
                ai_sdk_piece(event, &mut blocks, &mut call, &mut tool, out);
            }
        }
        "assistant" => {
            for content in line.message.iter().flat_map(|message| &message.content) {
                if content.r#type == "text" && !in_pieces {
                    blocks += 1;
                    ai_sdk_part(out, "text-start", blocks, "}\n");
                    ai_sdk_part(out, "text-delta", blocks, ",\"delta\":");
                    put!(out, raw(content.text), "}\n");
                    ai_sdk_part(out, "text-end", blocks, "}\n");
                } else if content.r#type == "tool_use" {
                    tool.clear();
                    tool.push_str(raw(content.name));
                    if in_pieces {
                        put!(out, "{\"type\":\"tool-input-end\",\"id\":", raw(content.id), "}\n");
                    }
                    put!(out, "{\"type\":\"tool-call\",\"toolCallId\":", raw(content.id));
                    put!(out, ",\"toolName\":", tool, ",\"input\":");
                    write::string(out, raw(content.input));
                    put!(out, ",\"providerExecuted\":true,\"dynamic\":true}\n");
                }
            }
        }
        "user" => {
            for content in line.message.iter().flat_map(|message| &message.content) {
                put!(out, "{\"type\":\"tool-result\",\"toolCallId\":", raw(content.tool_use_id));
                put!(out, ",\"toolName\":", tool, ",\"result\":", raw(content.content));
                put!(out, ",\"dynamic\":true}\n");
            }
        }
        "system" if line.model.is_some() => {
            put!(out, "{\"type\":\"stream-start\",\"warnings\":[]}\n");
            put!(out, "{\"type\":\"response-metadata\",\"id\":", raw(line.session_id));
            put!(out, ",\"modelId\":", raw(line.model), "}\n");
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

pub(crate) fn claude_whole_to_ai_sdk(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    claude_to_ai_sdk(input, false, keep);
}

pub(crate) fn claude_pieces_to_ai_sdk(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    claude_to_ai_sdk(input, true, keep);
}

fn ai_sdk_piece(
    event: &ClaudeEvent<'_>,
    blocks: &mut u64,
    call: &mut String,
    tool: &mut String,
    out: &mut Vec<u8>,
) {
    match (event.r#type, &event.delta, &event.content_block) {
        ("content_block_delta", Some(ClaudeDelta { text: Some(text), .. }), _) => {
            ai_sdk_part(out, "text-delta", *blocks, ",\"delta\":");
            put!(out, text.get(), "}\n");
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
            put!(out, "{\"type\":\"tool-input-start\",\"id\":", call, ",\"toolName\":", tool);
            put!(out, ",\"providerExecuted\":true,\"dynamic\":true}\n");
        }
        ("content_block_start", ..) => {
            call.clear();
            *blocks += 1;
            ai_sdk_part(out, "text-start", *blocks, "}\n");
        }
        ("content_block_stop", ..) if call.is_empty() => {
            ai_sdk_part(out, "text-end", *blocks, "}\n");
        }
        _ => {}
    }
}

/// Writes the start of a part of a block, and what follows its id.
fn ai_sdk_part(out: &mut Vec<u8>, kind: &str, block: u64, rest: &str) {
    put!(out, "{\"type\":\"", kind, "\",\"id\":\"b", itoa::Buffer::new().format(block), "\"", rest);
}
