//! `codex-app-server` to `ui-message`. Field names and their order are those of Codex 0.166.0.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::ui_message::{self, BY_THE_AGENT, Steps};
use crate::limit::{each_line, put, raw};

/// The fields that every notification about the turn has.
const PLACE: &str = r#""threadId":"01a1e091-be57-72b3-960c-b9cf750ae505","turnId":"01a1e091-be8e-7030-8f1b-3c443c45a915""#;

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    start(stream);
    let mut requests = 0;
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                streamed_message(stream);
                streamed_message(stream);
                command(stream, 40);
                usage(stream, &mut requests);
            }
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                message(stream, 700);
                command(stream, 1_200);
                command(stream, 1_200);
                usage(stream, &mut requests);
            }
        }
        Shape::Huge => {
            message(stream, size.line);
            command(stream, size.line);
            message(stream, 100);
            usage(stream, &mut requests);
        }
    }
    end(stream);
}

fn start(stream: &mut Stream) {
    const THREAD: &str = r#""thread":{"id":"01a1e091-be57-72b3-960c-b9cf750ae505","sessionId":"01a1e091-be57-72b3-960c-b9cf750ae505","forkedFromId":null,"preview":"","ephemeral":false,"modelProvider":"fake","model":"gpt-5.5","createdAt":1794769010,"updatedAt":1794769010,"status":{"type":"idle"},"cwd":"/srv/cap-a/wsapp/tool_single","cliVersion":"0.166.0","originator":"capture","source":"vscode","gitInfo":null,"name":null,"turns":[]}"#;
    const TURN: &str = r#""turn":{"id":"01a1e091-be8e-7030-8f1b-3c443c45a915","items":[],"itemsView":"notLoaded","status":"inProgress","error":null,"startedAt":null,"completedAt":null,"durationMs":null}"#;
    stream.line(&[
        r#"{"id":0,"result":{"userAgent":"capture/0.166.0 (Debian 12.0.0; x86_64) dumb","#,
        r#""codexHome":"/srv/cap-a/chapp","platformFamily":"unix","platformOs":"linux"}}"#,
    ]);
    stream.line(&[
        r#"{"id":1,"result":{"#,
        THREAD,
        r#","model":"gpt-5.5","modelProvider":"fake","serviceTier":null,"#,
        r#""cwd":"/srv/cap-a/wsapp/tool_single","approvalPolicy":"never","#,
        r#""sandbox":{"type":"dangerFullAccess"},"reasoningEffort":null}}"#,
    ]);
    let params = format!("{{{THREAD}}}");
    notification(stream, "thread/started", &params);
    stream.line(&[r#"{"id":2,"result":{"#, TURN, "}}"]);
    let params = format!(r#"{{"threadId":"01a1e091-be57-72b3-960c-b9cf750ae505",{TURN}}}"#);
    notification(stream, "turn/started", &params);
    let message = r#"{"type":"userMessage","id":"01a1e091-befb-7321-93a7-3962991be251","clientId":null,"content":[{"type":"text","text":"do the thing","text_elements":[]}]}"#;
    item(stream, "item/started", message);
    item(stream, "item/completed", message);
}

fn end(stream: &mut Stream) {
    notification(
        stream,
        "turn/completed",
        r#"{"threadId":"01a1e091-be57-72b3-960c-b9cf750ae505","turn":{"id":"01a1e091-be8e-7030-8f1b-3c443c45a915","items":[],"itemsView":"summary","status":"completed","error":null,"startedAt":1794769010,"completedAt":1794769010,"durationMs":283}}"#,
    );
}

fn notification(stream: &mut Stream, method: &str, params: &str) {
    let time = stream.millis();
    stream.line(&[
        r#"{"method":""#,
        method,
        r#"","params":"#,
        params,
        r#","emittedAtMs":"#,
        &time,
        "}",
    ]);
}

fn item(stream: &mut Stream, method: &str, item: &str) {
    let time = stream.millis();
    let params = format!(r#"{{"item":{item},{PLACE},"startedAtMs":{time}}}"#);
    notification(stream, method, &params);
}

fn agent_message(stream: &mut Stream, method: &str, id: &str, text: &str) {
    let message = format!(
        r#"{{"type":"agentMessage","id":"msg_fake_{id}","text":"{text}","phase":"commentary","memoryCitation":null,"delivery":null,"questions":null}}"#,
    );
    item(stream, method, &message);
}

fn delta(stream: &mut Stream, id: &str, text: &str) {
    let params = format!(r#"{{{PLACE},"itemId":"msg_fake_{id}","delta":"{text}"}}"#);
    notification(stream, "item/agentMessage/delta", &params);
}

fn streamed_message(stream: &mut Stream) {
    let (id, mut complete) = (stream.number(), String::new());
    agent_message(stream, "item/started", &id, "");
    for _ in 0..DELTAS {
        let length = 8 + stream.below(24);
        let text = stream.text(length);
        delta(stream, &id, &text);
        complete.push_str(&text);
    }
    agent_message(stream, "item/completed", &id, &complete);
}

fn message(stream: &mut Stream, length: usize) {
    let (id, text) = (stream.number(), stream.text(length));
    agent_message(stream, "item/started", &id, "");
    delta(stream, &id, &text);
    agent_message(stream, "item/completed", &id, &text);
}

fn command(stream: &mut Stream, length: usize) {
    let (id, words, output) = (stream.number(), stream.plain_words(4), stream.text(length));
    let call = |state: &str| {
        format!(
            r#"{{"type":"commandExecution","id":"call_fake_{id}","pluginId":null,"scriptPath":null,"command":"/bin/bash -lc 'echo {words}; ls'","cwd":"/srv/cap-a/wsapp/tool_single","processId":"27527","source":"unifiedExecStartup",{state}}}"#,
        )
    };
    let actions = r#""commandActions":[{"type":"listFiles","command":"ls","path":null}]"#;
    let state = format!(
        r#""status":"inProgress",{actions},"aggregatedOutput":null,"exitCode":null,"durationMs":null"#,
    );
    item(stream, "item/started", &call(&state));
    let state = format!(
        r#""status":"completed",{actions},"aggregatedOutput":"{output}","exitCode":0,"durationMs":5"#,
    );
    item(stream, "item/completed", &call(&state));
}

/// The counts that Codex reports after each request to the model: of the request, and in total.
fn usage(stream: &mut Stream, requests: &mut u64) {
    *requests += 1;
    let counts = |requests: u64| {
        let [total, input, cached, output, thought] = [120, 100, 40, 20, 5].map(|it| it * requests);
        format!(
            r#"{{"totalTokens":{total},"inputTokens":{input},"cachedInputTokens":{cached},"cacheWriteInputTokens":0,"outputTokens":{output},"reasoningOutputTokens":{thought}}}"#,
        )
    };
    let (total, last) = (counts(*requests), counts(1));
    let params = format!(
        r#"{{{PLACE},"tokenUsage":{{"total":{total},"last":{last},"modelContextWindow":258400}}}}"#,
    );
    notification(stream, "thread/tokenUsage/updated", &params);
}

#[derive(Deserialize)]
struct Line<'a> {
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    thread: Option<Thread<'a>>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, rename = "tokenUsage")]
    usage: Option<Usage<'a>>,
}

#[derive(Deserialize)]
struct Thread<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Vec<Content<'a>>>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    cwd: Option<&'a RawValue>,
    #[serde(borrow, rename = "aggregatedOutput")]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(borrow)]
    last: Counts<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cached_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_output_tokens: Option<&'a RawValue>,
}

/// `codex-app-server` to `ui-message`.
pub(super) fn limit(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let mut steps = Steps::default();
    each_line(input, keep, |line: Line<'_>, out| {
        let (Some(method), Some(params)) = (line.method, line.params) else { return };
        match (method, &params.item) {
            ("item/agentMessage/delta", _) => steps.delta(out, raw(params.delta)),
            ("item/started", Some(item)) => started(item, &mut steps, out),
            ("item/completed", Some(item)) if item.r#type == "agentMessage" => steps.end_text(out),
            ("item/completed", Some(item)) if item.r#type == "commandExecution" => {
                steps.answer(out, raw(item.id), raw(item.output));
            }
            ("thread/tokenUsage/updated", _) => {
                if let Some(Usage { last }) = &params.usage {
                    put!(out, "data: {\"type\":\"data-usage\",\"data\":{\"scope\":\"request\"");
                    put!(out, ",\"input\":", raw(last.input_tokens), ",\"cache_read\":");
                    put!(out, raw(last.cached_input_tokens), ",\"output\":");
                    put!(out, raw(last.output_tokens), ",\"reasoning\":");
                    put!(out, raw(last.reasoning_output_tokens), "},\"transient\":true}\n\n");
                }
            }
            ("thread/started", _) => {
                if let Some(thread) = &params.thread {
                    let (id, model) = (raw(thread.id), raw(thread.model));
                    put!(out, "data: {\"type\":\"start\",\"messageMetadata\":{\"sessionId\":", id);
                    put!(out, ",\"model\":", model, "}}\n\ndata: {\"type\":\"data-session\"");
                    put!(out, ",\"data\":{\"id\":", id, ",\"model\":", model);
                    put!(out, "},\"transient\":true}\n\n");
                }
            }
            ("turn/completed", _) => {
                steps.end(out);
                ui_message::finish(out, "0", "0", "0");
            }
            _ => {}
        }
    });
}

fn started(item: &Item<'_>, steps: &mut Steps, out: &mut Vec<u8>) {
    match item.r#type {
        "agentMessage" => steps.begin_text(out),
        "commandExecution" => {
            steps.call(out, raw(item.id), "\"command_execution\"");
            put!(out, "{\"command\":", raw(item.command), ",\"cwd\":", raw(item.cwd), "}");
            put!(out, BY_THE_AGENT);
        }
        "userMessage" => {
            let content = item.content.as_ref().and_then(|content| content.first());
            put!(out, "data: {\"type\":\"data-user-message\",\"data\":{\"text\":");
            put!(out, raw(content.and_then(|content| content.text)), "},\"transient\":true}\n\n");
        }
        _ => {}
    }
}
