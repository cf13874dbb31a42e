//! `gemini` to `giselle`. Field names and their order are those of Gemini CLI 0.61.0.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::{each_line, put, raw};

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    let time = stream.time();
    stream.line(&[
        r#"{"type":"init","timestamp":""#,
        &time,
        r#"","session_id":"dd03af0d-8be8-4a38-b52f-4cf5f5beeafa","model":"gemini-2.5-pro"}"#,
    ]);
    let (time, prompt) = (stream.time(), stream.text(60));
    stream.line(&[
        r#"{"type":"message","timestamp":""#,
        &time,
        r#"","role":"user","content":""#,
        &prompt,
        r#""}"#,
    ]);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                for _ in 0..DELTAS {
                    let length = 30 + stream.below(80);
                    gemini_delta(stream, length);
                }
                gemini_command(stream, 40);
            }
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                gemini_delta(stream, 1_000);
                gemini_write(stream, 900, 900);
            }
        }
        Shape::Huge => {
            gemini_delta(stream, size.line);
            gemini_write(stream, size.line, 40);
            gemini_command(stream, size.line);
            gemini_delta(stream, 100);
        }
    }
    let time = stream.time();
    stream.line(&[
        r#"{"type":"result","timestamp":""#,
        &time,
        r#"","status":"success","stats":{"total_tokens":2040,"input_tokens":2000,"#,
        r#""output_tokens":40,"cached":0,"input":2000,"duration_ms":224,"tool_calls":1,"models":{"#,
        r#""gemini-2.5-pro":{"total_tokens":2040,"input_tokens":2000,"output_tokens":40,"#,
        r#""cached":0,"input":2000}}}}"#,
    ]);
}

fn gemini_delta(stream: &mut Stream, length: usize) {
    let (time, text) = (stream.time(), stream.text(length));
    stream.line(&[
        r#"{"type":"message","timestamp":""#,
        &time,
        r#"","role":"assistant","content":""#,
        &text,
        r#"","delta":true}"#,
    ]);
}

fn gemini_command(stream: &mut Stream, length: usize) {
    let (call, words) = (stream.number(), stream.plain_words(5));
    let id = format!("run_shell_command__run_shell_command_{call}_0");
    let input = format!(r#"{{"command":"echo {words}; ls","description":"run echo"}}"#);
    gemini_call(stream, "run_shell_command", &id, &input, length);
}

fn gemini_write(stream: &mut Stream, length: usize, output: usize) {
    let (call, text) = (stream.number(), stream.text(length));
    let id = format!("write_file__write_file_{call}_0");
    let input = format!(r#"{{"file_path":"/srv/cap-b/proj/new.txt","content":"{text}"}}"#);
    gemini_call(stream, "write_file", &id, &input, output);
}

fn gemini_call(stream: &mut Stream, name: &str, id: &str, input: &str, output: usize) {
    let time = stream.time();
    stream.line(&[
        r#"{"type":"tool_use","timestamp":""#,
        &time,
        r#"","tool_name":""#,
        name,
        r#"","tool_id":""#,
        id,
        r#"","parameters":"#,
        input,
        "}",
    ]);
    let (time, output) = (stream.time(), stream.text(output));
    stream.line(&[
        r#"{"type":"tool_result","timestamp":""#,
        &time,
        r#"","tool_id":""#,
        id,
        r#"","status":"success","output":""#,
        &output,
        r#""}"#,
    ]);
}

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
pub(super) fn gemini_to_giselle(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
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
