//! `codex` to `claude`. Field names and their order are those of Codex 0.166.0.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::{body, each_line, put, raw};

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    match shape {
        // The record names of the older design, which has deltas, around real items.
        Shape::Small => {
            stream.line(&[
                r#"{"type":"session.created","id":"01a1e08d-5012-7d03-850c-34523f084bee","#,
                r#""model":"gpt-5.3-codex"}"#,
            ]);
            stream.line(&[r#"{"type":"turn.started"}"#]);
            while stream.bytes.len() < size.stream {
                codex_deltas(stream);
                for _ in 0..4 {
                    codex_command(stream, 40);
                }
            }
            stream.line(&[
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":200,"#,
                r#""cached_input_tokens":80,"output_tokens":40}}}"#,
            ]);
        }
        Shape::Kilobyte => {
            codex_start(stream);
            while stream.bytes.len() < size.stream {
                codex_message(stream, 1_000);
                codex_command(stream, 1_000);
                codex_message(stream, 1_000);
            }
            codex_end(stream);
        }
        Shape::Huge => {
            codex_start(stream);
            codex_message(stream, size.line);
            codex_command(stream, size.line);
            let text = stream.text(size.line);
            stream.line(&[r#"{"type":"message.output_text.done","text":""#, &text, r#""}"#]);
            codex_message(stream, 100);
            codex_end(stream);
        }
    }
}

fn codex_start(stream: &mut Stream) {
    stream
        .line(&[r#"{"type":"thread.started","thread_id":"01a1e08d-5012-7d03-850c-34523f084bee"}"#]);
    stream.line(&[r#"{"type":"turn.started"}"#]);
}

fn codex_end(stream: &mut Stream) {
    stream.line(&[
        r#"{"type":"turn.completed","usage":{"input_tokens":200,"cached_input_tokens":80,"#,
        r#""cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":10}}"#,
    ]);
}

fn codex_deltas(stream: &mut Stream) {
    let mut complete = String::new();
    for _ in 0..DELTAS {
        let length = 60 + stream.below(120);
        let delta = stream.text(length);
        stream.line(&[r#"{"type":"message.output_text.delta","delta":""#, &delta, r#""}"#]);
        complete.push_str(&delta);
    }
    stream.line(&[r#"{"type":"message.output_text.done","text":""#, &complete, r#""}"#]);
}

fn codex_message(stream: &mut Stream, length: usize) {
    let (id, text) = (stream.number(), stream.text(length));
    stream.line(&[
        r#"{"type":"item.completed","item":{"id":"item_"#,
        &id,
        r#"","type":"agent_message","text":""#,
        &text,
        r#""}}"#,
    ]);
}

fn codex_command(stream: &mut Stream, length: usize) {
    let (id, words, output) = (stream.number(), stream.plain_words(4), stream.text(length));
    let call = |kind: &str, output: &str, status: &str| {
        format!(
            r#"{{"type":"{kind}","item":{{"id":"item_{id}","type":"command_execution","command":"/bin/bash -lc 'echo {words}; ls'","aggregated_output":"{output}",{status}}}}}"#,
        )
    };
    stream.line(&[&call("item.started", "", r#""exit_code":null,"status":"in_progress""#)]);
    stream.line(&[&call("item.completed", &output, r#""exit_code":0,"status":"completed""#)]);
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

/// `codex` to `claude`: complete blocks, as Claude prints them without partial messages.
pub(super) fn codex_to_claude(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let mut session = String::new();
    let mut deltas: Vec<u8> = Vec::new();
    each_line(input, keep, |line: CodexLine<'_>, out| match (line.r#type, &line.item) {
        ("message.output_text.delta", _) => put!(deltas, body(line.delta)),
        ("message.output_text.done", _) => {
            put!(out, CLAUDE_MESSAGE, "\"msg\"", CLAUDE_TEXT, "\"");
            if deltas.is_empty() {
                put!(out, body(line.text));
            } else {
                out.append(&mut deltas);
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
