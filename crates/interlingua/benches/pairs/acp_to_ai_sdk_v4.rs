//! `acp` to `ai-sdk-v4`. Field names and their order are those of `opencode acp` 1.18.33.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::{ai_sdk, each_line, put, raw};

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    start(stream);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                let id = stream.number();
                for _ in 0..DELTAS {
                    let length = 8 + stream.below(24);
                    text(stream, &id, length);
                }
                command(stream, 40);
            }
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                let id = stream.number();
                text(stream, &id, 1_400);
                // The output of a command is repeated three times in its line.
                command(stream, 600);
            }
        }
        Shape::Huge => {
            let id = stream.number();
            text(stream, &id, size.line);
            command(stream, size.line / 3);
        }
    }
    let id = stream.number();
    text(stream, &id, 100);
    update(stream, r#""sessionUpdate":"usage_update","used":1000,"size":128000"#);
    stream.line(&[
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"#,
        r#""inputTokens":1000,"outputTokens":20,"totalTokens":1020},"_meta":{}}}"#,
    ]);
}

fn start(stream: &mut Stream) {
    stream.line(&[
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"#,
        r#""loadSession":true},"authMethods":[],"agentInfo":{"name":"OpenCode","version":"1.18.33"}}}"#,
    ]);
    stream.line(&[
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"ses_e1f5b56c4ffeN2NL2LZ5vxC15H","#,
        r#""configOptions":[{"id":"model","name":"Model","category":"model","type":"select","#,
        r#""currentValue":"fake/fake-model","options":[{"value":"fake/fake-model","#,
        r#""name":"Fake/Fake Model"}]}]}}"#,
    ]);
}

fn update(stream: &mut Stream, update: &str) {
    stream.line(&[
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"#,
        r#""sessionId":"ses_e1f5b56c4ffeN2NL2LZ5vxC15H","update":{"#,
        update,
        "}}}",
    ]);
}

fn text(stream: &mut Stream, id: &str, length: usize) {
    let text = stream.text(length);
    let chunk = format!(
        r#""sessionUpdate":"agent_message_chunk","messageId":"msg_1e0a4af3f{id}","content":{{"type":"text","text":"{text}"}}"#,
    );
    update(stream, &chunk);
}

fn command(stream: &mut Stream, length: usize) {
    let (id, output) = (stream.number(), stream.text(length));
    let words = stream.plain_words(length.min(600) / 6);
    let call = format!(
        r#""sessionUpdate":"tool_call","toolCallId":"call_fake_{id}","title":"bash","kind":"execute","status":"pending","locations":[],"rawInput":{{}}"#,
    );
    update(stream, &call);
    let running = format!(
        r#""sessionUpdate":"tool_call_update","toolCallId":"call_fake_{id}","status":"in_progress","kind":"execute","title":"echo","locations":[{{"path":"/srv/cap-b/proj"}}],"rawInput":{{"command":"echo {words}; ls","cwd":"/srv/cap-b/proj"}}"#,
    );
    update(stream, &running);
    update(stream, &running);
    let ended = format!(
        r#""sessionUpdate":"tool_call_update","toolCallId":"call_fake_{id}","status":"completed","title":"echo","content":[{{"type":"content","content":{{"type":"text","text":"{output}"}}}}],"rawOutput":{{"output":"{output}","metadata":{{"output":"{output}","exit":0,"truncated":false}}}}"#,
    );
    update(stream, &ended);
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    params: Option<Params<'a>>,
    #[serde(borrow)]
    result: Option<Outcome<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    update: Option<Update<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    session_update: &'a str,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    status: Option<&'a str>,
    #[serde(borrow)]
    raw_input: Option<&'a RawValue>,
}

/// A block of content, which a call wraps in another one.
#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    content: Content<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    config_options: Vec<Setting<'a>>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<Usage<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Setting<'a> {
    #[serde(borrow)]
    current_value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
}

/// The state that the limit keeps between records.
#[derive(Default)]
struct State {
    blocks: u64,
    in_text: bool,
    /// The tool of the current call, and whether its input was written.
    tool: String,
    input_written: bool,
}

/// `acp` to `ai-sdk-v4`.
pub(super) fn limit(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let mut state = State::default();
    each_line(input, keep, |line: Line<'_>, out| {
        if let Some(update) = line.params.and_then(|params| params.update) {
            state.update(&update, out);
        } else if let Some(result) = line.result {
            state.result(&result, out);
        }
    });
}

impl State {
    fn update(&mut self, update: &Update<'_>, out: &mut Vec<u8>) {
        let id = raw(update.tool_call_id);
        match (update.session_update, update.status) {
            ("agent_message_chunk", _) => {
                if !std::mem::replace(&mut self.in_text, true) {
                    self.blocks += 1;
                    ai_sdk::part(out, "text-start", self.blocks, "}\n");
                }
                let content = update.content.and_then(|it| serde_json::from_str(it.get()).ok());
                let text = content.and_then(|Content { text }| text);
                ai_sdk::delta(out, self.blocks, raw(text));
            }
            ("tool_call", _) => {
                self.end_text(out);
                raw(update.title).clone_into(&mut self.tool);
                self.input_written = false;
                ai_sdk::input_start(out, id, &self.tool);
            }
            ("tool_call_update", Some("in_progress")) if !self.input_written => {
                self.input_written = true;
                ai_sdk::input_end(out, id);
                ai_sdk::call(out, id, &self.tool, raw(update.raw_input));
            }
            ("tool_call_update", Some("completed")) => {
                let content = update.content.and_then(|it| serde_json::from_str(it.get()).ok());
                let content: Vec<Wrapped<'_>> = content.unwrap_or_default();
                let text = content.first().and_then(|wrapped| wrapped.content.text);
                ai_sdk::answer(out, id, &self.tool, raw(text));
            }
            _ => {}
        }
    }

    fn end_text(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_text) {
            ai_sdk::part(out, "text-end", self.blocks, "}\n");
        }
    }

    fn result(&mut self, result: &Outcome<'_>, out: &mut Vec<u8>) {
        if let Some(session) = result.session_id {
            let model = result.config_options.first().and_then(|setting| setting.current_value);
            ai_sdk::start(out, session.get(), raw(model));
        } else if let (Some(reason), Some(usage)) = (result.stop_reason, &result.usage) {
            self.end_text(out);
            put!(out, "{\"type\":\"finish\",\"finishReason\":{\"unified\":\"stop\",\"raw\":");
            put!(out, reason.get(), "},\"usage\":{\"inputTokens\":{\"total\":");
            put!(out, raw(usage.input_tokens), "},\"outputTokens\":{\"total\":");
            put!(out, raw(usage.output_tokens), "}}}\n");
        }
    }
}
