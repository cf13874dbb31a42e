//! `pi` to `ag-ui`. Field names and their order are those of pi's JSON mode, session version 3.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::ag_ui::{self, Run};
use crate::limit::{each_line, put, raw};

const USAGE: &str = r#""usage":{"input":1000,"output":20,"cacheRead":0,"cacheWrite":0,"reasoning":0,"totalTokens":1020,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    start(stream);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                let deltas: Vec<_> = (0..DELTAS).map(|_| 8 + stream.below(24)).collect();
                text(stream, &deltas);
                call(stream, 40);
            }
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                text(stream, &[1_000]);
                call(stream, 1_400);
            }
        }
        Shape::Huge => {
            text(stream, &[size.line]);
            call(stream, size.line);
        }
    }
    text(stream, &[100]);
    stream.line(&[r#"{"type":"agent_end","messages":[]}"#]);
    stream.line(&[r#"{"type":"agent_settled"}"#]);
}

fn start(stream: &mut Stream) {
    stream.line(&[
        r#"{"type":"session","version":3,"id":"01a1e0b7-7351-75c1-b37a-89aba8d7d70a","#,
        r#""timestamp":"2026-11-15T19:38:01.426Z","cwd":"/srv/cap-b/proj"}"#,
    ]);
    stream.line(&[r#"{"type":"agent_start"}"#]);
    let prompt = r#"{"role":"user","content":[{"type":"text","text":"do the thing"}],"timestamp":1794771481487}"#;
    stream.line(&[r#"{"type":"message_start","message":"#, prompt, "}"]);
    stream.line(&[r#"{"type":"message_end","message":"#, prompt, "}"]);
}

fn update(stream: &mut Stream, event: &str) {
    stream.line(&[
        r#"{"type":"message_update","#,
        USAGE,
        r#","assistantMessageEvent":{"#,
        event,
        "}}",
    ]);
}

fn assistant(content: &str, reason: &str, time: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":[{content}],"api":"openai-completions","provider":"fake","model":"fake-model",{USAGE},"stopReason":"{reason}","timestamp":{time}}}"#,
    )
}

fn message_start(stream: &mut Stream) {
    stream.line(&[r#"{"type":"turn_start"}"#]);
    let time = stream.millis();
    let message = assistant("", "pending", &time);
    stream.line(&[r#"{"type":"message_start","message":"#, &message, "}"]);
}

fn text(stream: &mut Stream, deltas: &[usize]) {
    message_start(stream);
    update(stream, r#""type":"text_start","contentIndex":0"#);
    let mut complete = String::new();
    for length in deltas {
        let text = stream.text(*length);
        update(stream, &format!(r#""type":"text_delta","contentIndex":0,"delta":"{text}""#));
        complete.push_str(&text);
    }
    update(stream, &format!(r#""type":"text_end","contentIndex":0,"content":"{complete}""#));
    let time = stream.millis();
    let message = assistant(&format!(r#"{{"type":"text","text":"{complete}"}}"#), "stop", &time);
    stream.line(&[r#"{"type":"message_end","message":"#, &message, "}"]);
    stream.line(&[r#"{"type":"turn_end","message":"#, &message, r#","toolResults":[]}"#]);
}

fn call(stream: &mut Stream, length: usize) {
    let (id, words, output) = (stream.number(), stream.plain_words(4), stream.text(length));
    let id = format!("call_fake_{id}");
    message_start(stream);
    let start =
        format!(r#""type":"toolcall_start","contentIndex":0,"id":"{id}","toolName":"bash""#);
    update(stream, &start);
    for delta in [r#"{\"command\":\"echo "#, &words, r#"; ls\"}"#] {
        update(stream, &format!(r#""type":"toolcall_delta","contentIndex":0,"delta":"{delta}""#));
    }
    let arguments = format!(r#"{{"command":"echo {words}; ls"}}"#);
    let made =
        format!(r#"{{"type":"toolCall","id":"{id}","name":"bash","arguments":{arguments}}}"#);
    update(stream, &format!(r#""type":"toolcall_end","contentIndex":0,"toolCall":{made}"#));
    let time = stream.millis();
    let message = assistant(&made, "toolUse", &time);
    stream.line(&[r#"{"type":"message_end","message":"#, &message, "}"]);
    let of_call = format!(r#""toolCallId":"{id}","toolName":"bash""#);
    let of_input = format!(r#"{of_call},"args":{arguments}"#);
    stream.line(&[r#"{"type":"tool_execution_start","#, &of_input, "}"]);
    let content = format!(r#""content":[{{"type":"text","text":"{output}"}}],"details":{{}}"#);
    stream.line(&[
        r#"{"type":"tool_execution_update","#,
        &of_input,
        r#","partialResult":{"#,
        &content,
        "}}",
    ]);
    stream.line(&[
        r#"{"type":"tool_execution_end","#,
        &of_call,
        r#","result":{"#,
        &content,
        r#"},"isError":false}"#,
    ]);
    let result = format!(
        r#"{{"role":"toolResult",{of_call},{content},"isError":false,"timestamp":{time}}}"#,
    );
    stream.line(&[r#"{"type":"message_start","message":"#, &result, "}"]);
    stream.line(&[r#"{"type":"message_end","message":"#, &result, "}"]);
    let ended =
        [r#"{"type":"turn_end","message":"#, &message, r#","toolResults":["#, &result, "]}"];
    stream.line(&ended);
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    assistant_message_event: Option<Update<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_result: Option<Given<'a>>,
    #[serde(borrow)]
    result: Option<Given<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_name: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: &'a str,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    content: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// `pi` to `ag-ui`. The output of a call is in one update, so nothing has to be subtracted.
pub(super) fn limit(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let (mut run, mut model_written) = (Run::default(), false);
    let (mut session, mut call) = (String::new(), String::new());
    each_line(input, keep, |line: Line<'_>, out| match (line.r#type, &line.message) {
        ("message_update", _) => {
            if let Some(event) = &line.assistant_message_event {
                update_of(event, &mut run, &mut call, out);
            }
        }
        ("message_start", Some(message)) if message.role == "assistant" && !model_written => {
            model_written = true;
            ag_ui::snapshot(out, &session);
        }
        ("message_start", Some(message)) if message.role == "user" => prompt(message, out),
        ("tool_execution_update", _) => {
            put!(out, "data: {\"type\":\"CUSTOM\",\"name\":\"tool_progress\",\"value\":{\"call\":");
            put!(out, raw(line.tool_call_id));
            put!(out, ",\"output\":", printed(line.partial_result.as_ref()), "}}\n\n");
        }
        ("tool_execution_end", _) => {
            run.step_has_ended();
            run.answer(out, raw(line.tool_call_id), printed(line.result.as_ref()));
        }
        ("session", _) => {
            raw(line.id).clone_into(&mut session);
            ag_ui::start(out, &session);
        }
        ("agent_settled", _) => {
            run.finish(out, &session);
        }
        _ => {}
    });
}

fn printed<'a>(given: Option<&Given<'a>>) -> &'a str {
    raw(given.and_then(|given| given.content.first()).and_then(|content| content.text))
}

fn update_of(event: &Update<'_>, run: &mut Run, call: &mut String, out: &mut Vec<u8>) {
    match event.r#type {
        "text_delta" => run.delta(out, raw(event.delta)),
        "text_start" => run.begin_text(out),
        "text_end" => run.end_text(out),
        "toolcall_start" => {
            raw(event.id).clone_into(call);
            run.call(out, call, raw(event.tool_name));
        }
        "toolcall_delta" => ag_ui::input_delta(out, call, raw(event.delta)),
        "toolcall_end" => ag_ui::input_end(out, call),
        _ => {}
    }
}

fn prompt(message: &Message<'_>, out: &mut Vec<u8>) {
    let content = message.content.and_then(|it| serde_json::from_str(it.get()).ok());
    let content: Vec<Content<'_>> = content.unwrap_or_default();
    put!(out, "data: {\"type\":\"CUSTOM\",\"name\":\"user_message\",\"value\":{\"text\":");
    put!(out, raw(content.first().and_then(|content| content.text)), "}}\n\n");
}
