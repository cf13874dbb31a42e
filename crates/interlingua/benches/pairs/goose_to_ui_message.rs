//! `goose` to `ui-message`. Field names and their order are those of goose 1.41.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{DELTAS, Shape, Size, Stream};
use crate::limit::ui_message::{self, BY_THE_AGENT, Harmless, Steps};
use crate::limit::{each_line, put, raw};

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    stream.line(&["    __( O)>  ● new session · openai gpt-4o"]);
    stream.line(&["   \\____)    20261115_18 · /srv/cap-b/proj"]);
    stream.line(&["     L L     goose is ready"]);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                let id = stream.number();
                for _ in 0..DELTAS {
                    let length = 8 + stream.below(24);
                    text(stream, &id, length);
                }
                command(stream, &id, 40);
            }
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                let id = stream.number();
                text(stream, &id, 1_000);
                // The output of a command is repeated in its line.
                command(stream, &id, 500);
            }
        }
        Shape::Huge => {
            let id = stream.number();
            text(stream, &id, size.line);
            command(stream, &id, size.line / 2);
        }
    }
    let id = stream.number();
    text(stream, &id, 100);
    stream.line(&[
        r#"{"type":"complete","total_tokens":2040,"input_tokens":2000,"output_tokens":40}"#,
    ]);
}

fn message(stream: &mut Stream, id: &str, role: &str, content: &str) {
    stream.line(&[
        r#"{"type":"message","message":{"id":""#,
        id,
        r#"","role":""#,
        role,
        r#"","created":1794771451,"content":["#,
        content,
        r#"],"metadata":{"userVisible":true,"agentVisible":true}}}"#,
    ]);
}

fn text(stream: &mut Stream, id: &str, length: usize) {
    let text = stream.text(length);
    let content = format!(r#"{{"type":"text","text":"{text}"}}"#);
    message(stream, &format!("chatcmpl-fake{id}"), "assistant", &content);
}

fn command(stream: &mut Stream, id: &str, length: usize) {
    let (call, output) = (stream.number(), stream.text(length));
    let words = stream.plain_words(length.min(600) / 6);
    let content = format!(
        r#"{{"type":"toolRequest","id":"call_fake_{call}","toolCall":{{"status":"success","value":{{"name":"shell","arguments":{{"command":"echo {words}; ls"}}}}}},"_meta":{{"goose_extension":"developer"}}}}"#,
    );
    message(stream, &format!("chatcmpl-fake{id}"), "assistant", &content);
    let content = format!(
        r#"{{"type":"toolResponse","id":"call_fake_{call}","toolResult":{{"status":"success","value":{{"content":[{{"type":"text","text":"{output}","annotations":{{"priority":0.0}}}}],"structuredContent":{{"stdout":"{output}","stderr":"","exit_code":0}},"isError":false}}}}}}"#,
    );
    let id = format!("msg_{}", stream.uuid());
    message(stream, &id, "user", &content);
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    total_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
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
    #[serde(borrow, rename = "toolCall")]
    call: Option<Told<Call<'a>>>,
    #[serde(borrow, rename = "toolResult")]
    result: Option<Told<Given<'a>>>,
}

#[derive(Deserialize)]
struct Told<T> {
    value: Option<T>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Given<'a> {
    #[serde(rename = "isError")]
    is_error: Option<bool>,
    #[serde(borrow)]
    content: Vec<Shown<'a>>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Shown<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// `goose` to `ui-message`. The limit knows in which line of the banner the session is.
pub(super) fn limit(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    keep(b"data: {\"type\":\"start\",\"messageMetadata\":{\"sessionId\":\"20261115_18\"}}\n\n");
    keep(b"data: {\"type\":\"data-session\",\"data\":{\"id\":\"20261115_18\"},\"transient\":true}\n\n");
    let (mut steps, harmless) = (Steps::default(), Harmless::default());
    each_line(input, keep, |line: Line<'_>, out| {
        let Some(message) = line.message else {
            let (total, input) = (raw(line.total_tokens), raw(line.input_tokens));
            steps.end(out);
            ui_message::finish(out, input, raw(line.output_tokens), total);
            return;
        };
        for content in &message.content {
            match (content.r#type, &content.call, &content.result) {
                ("text", ..) => steps.delta(out, raw(content.text)),
                (_, Some(Told { value: Some(call) }), _) => {
                    steps.call(out, raw(content.id), raw(call.name));
                    if harmless.accepts(raw(call.arguments)) {
                        put!(out, raw(call.arguments), BY_THE_AGENT);
                    }
                }
                (_, _, Some(Told { value: Some(given) }))
                    if given.is_error != Some(true) && harmless.accepts(raw(given.structured)) =>
                {
                    // There is one block, and it is text.
                    let output = given.content.first().and_then(|shown| shown.text);
                    steps.answer(out, raw(content.id), raw(output));
                    put!(out, "data: {\"type\":\"data-tool-output\",\"data\":{\"call\":");
                    put!(out, raw(content.id), ",\"structured\":", raw(given.structured));
                    put!(out, "},\"transient\":true}\n\n");
                }
                _ => {}
            }
        }
    });
}
