//! `qwen` to `ai-sdk-v4`. Field names and their order are those of Qwen Code 0.24.4.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::{ai_sdk, each_line, put, raw};

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    start(stream);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                deltas(stream);
                deltas(stream);
                command(stream, 40);
            }
            deltas(stream);
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                text(stream, 700);
                command(stream, 1_000);
            }
            text(stream, 700);
        }
        Shape::Huge => {
            text(stream, size.line);
            command(stream, size.line);
            write(stream, size.line);
            text(stream, 100);
        }
    }
    end(stream);
}

/// A record; only its type, its uuid and its last fields vary.
fn record(stream: &mut Stream, kind: &str, uuid: &str, rest: &str) {
    stream.line(&[
        r#"{"type":""#,
        kind,
        r#"","uuid":""#,
        uuid,
        r#"","session_id":"2861a0b7-6675-4736-97e4-b989d47800e7","#,
        rest,
        "}",
    ]);
}

fn start(stream: &mut Stream) {
    stream.line(&[
        r#"{"type":"system","subtype":"init","uuid":"2861a0b7-6675-4736-97e4-b989d47800e7","#,
        r#""session_id":"2861a0b7-6675-4736-97e4-b989d47800e7","cwd":"/srv/cap-b/proj","#,
        r#""tools":["read_file","edit","write_file","run_shell_command"],"mcp_servers":[],"#,
        r#""model":"fake-model","permission_mode":"yolo","slash_commands":["auth","clear"],"#,
        r#""qwen_code_version":"0.24.4","agents":["general-purpose"]}"#,
    ]);
    event(stream, r#"{"type":"goal_state","goal_state":{"v":2,"goal":null,"activity":"idle"}}"#);
}

fn end(stream: &mut Stream) {
    let uuid = stream.uuid();
    stream.line(&[
        r#"{"type":"result","subtype":"success","uuid":""#,
        &uuid,
        r#"","session_id":"2861a0b7-6675-4736-97e4-b989d47800e7","is_error":false,"#,
        r#""duration_ms":562,"duration_api_ms":288,"num_turns":1,"result":"Done.","usage":{"#,
        r#""input_tokens":3200,"output_tokens":52,"cache_read_input_tokens":200,"#,
        r#""total_tokens":3252},"permission_denials":[]}"#,
    ]);
}

fn event(stream: &mut Stream, event: &str) {
    let uuid = stream.uuid();
    let rest = format!(r#""parent_tool_use_id":null,"event":{event}"#);
    record(stream, "stream_event", &uuid, &rest);
}

fn assistant(stream: &mut Stream, id: &str, content: &str, reason: &str) {
    let rest = format!(
        r#""parent_tool_use_id":null,"message":{{"id":"{id}","type":"message","role":"assistant","model":"fake-model","content":[{content}],"stop_reason":{reason},"usage":{{"input_tokens":1200,"output_tokens":12,"cache_read_input_tokens":200,"total_tokens":1212}}}}"#,
    );
    record(stream, "assistant", id, &rest);
}

fn deltas(stream: &mut Stream) {
    let id = stream.uuid();
    let start = format!(
        r#"{{"type":"message_start","message":{{"id":"{id}","role":"assistant","model":"fake-model","content":[]}}}}"#,
    );
    event(stream, &start);
    let block =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    event(stream, block);
    let mut complete = String::new();
    for _ in 0..DELTAS {
        let length = 8 + stream.below(24);
        let text = stream.text(length);
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#,
        );
        event(stream, &delta);
        complete.push_str(&text);
    }
    event(stream, r#"{"type":"content_block_stop","index":0}"#);
    assistant(stream, &id, &format!(r#"{{"type":"text","text":"{complete}"}}"#), "null");
    event(stream, r#"{"type":"message_stop"}"#);
}

fn text(stream: &mut Stream, length: usize) {
    let (id, text) = (stream.uuid(), stream.text(length));
    assistant(stream, &id, &format!(r#"{{"type":"text","text":"{text}"}}"#), "null");
}

fn command(stream: &mut Stream, length: usize) {
    let (words, output) = (stream.plain_words(4), stream.text(length));
    let input = format!(r#"{{"command":"echo {words}; ls","is_background":false}}"#);
    call(stream, "run_shell_command", &input, &output);
}

fn write(stream: &mut Stream, length: usize) {
    let text = stream.text(length);
    let input = format!(r#"{{"file_path":"/srv/cap-b/proj/new.txt","content":"{text}"}}"#);
    call(stream, "write_file", &input, "Wrote it.");
}

fn call(stream: &mut Stream, tool: &str, input: &str, output: &str) {
    let (id, call) = (stream.uuid(), stream.number());
    let content = format!(
        r#"{{"type":"tool_use","id":"call_fake_{call}","name":"{tool}","input":{input}}}"#,
    );
    assistant(stream, &id, &content, r#""tool_use""#);
    let uuid = stream.uuid();
    let rest = format!(
        r#""parent_tool_use_id":null,"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"call_fake_{call}","is_error":false,"content":"{output}"}}]}}"#,
    );
    record(stream, "user", &uuid, &rest);
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    event: Option<Event<'a>>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<Usage<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
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
struct Event<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_read_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
}

/// `qwen` to `ai-sdk-v4`.
pub(super) fn limit(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let (mut blocks, mut streamed) = (0_u64, false);
    let mut tool = String::new();
    each_line(input, keep, |line: Line<'_>, out| match line.r#type {
        "stream_event" => match (&line.event, line.event.as_ref().map(|event| event.r#type)) {
            (Some(event), Some("content_block_delta")) => {
                let text = event.delta.as_ref().and_then(|delta| delta.text);
                ai_sdk::delta(out, blocks, raw(text));
            }
            (_, Some("content_block_start")) => {
                (blocks, streamed) = (blocks + 1, true);
                ai_sdk::part(out, "text-start", blocks, "}\n");
            }
            (_, Some("content_block_stop")) => ai_sdk::part(out, "text-end", blocks, "}\n"),
            _ => {}
        },
        "assistant" => {
            let repeats = std::mem::take(&mut streamed);
            for content in line.message.iter().flat_map(|message| &message.content) {
                if content.r#type == "tool_use" {
                    raw(content.name).clone_into(&mut tool);
                    ai_sdk::call(out, raw(content.id), &tool, raw(content.input));
                } else if !repeats {
                    blocks += 1;
                    ai_sdk::text(out, blocks, raw(content.text));
                }
            }
        }
        "user" => {
            for content in line.message.iter().flat_map(|message| &message.content) {
                ai_sdk::answer(out, raw(content.tool_use_id), &tool, raw(content.content));
            }
        }
        "system" => ai_sdk::start(out, raw(line.session_id), raw(line.model)),
        "result" => {
            if let Some(usage) = &line.usage {
                put!(out, "{\"type\":\"finish\",\"finishReason\":{\"unified\":\"stop\",\"raw\":");
                put!(out, "\"success\"},\"usage\":{\"inputTokens\":{\"total\":");
                put!(out, raw(usage.input_tokens), ",\"cacheRead\":");
                put!(out, raw(usage.cache_read_input_tokens), "},\"outputTokens\":{\"total\":");
                put!(out, raw(usage.output_tokens), "}}}\n");
            }
        }
        _ => {}
    });
}
