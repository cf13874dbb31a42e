//! `opencode` to `ag-ui`. Field names and their order are those of `opencode run --format json` 1.18.33.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::corpus::{Shape, Size, Stream};
use crate::limit::ag_ui::{self, Run};
use crate::limit::{each_line, put, raw};

const SESSION: &str = "ses_e1f5edfd9ffeytAZa616xEGtwD";

pub(super) fn corpus(stream: &mut Stream, shape: Shape, size: Size) {
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                step(stream, &[Content::Text(40), Content::Text(40), Content::Call(20)]);
            }
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                // The output of a command is repeated in its line.
                step(stream, &[Content::Text(1_400), Content::Call(700), Content::Call(700)]);
            }
        }
        Shape::Huge => {
            step(stream, &[Content::Text(size.line), Content::Call(size.line / 2)]);
            step(stream, &[Content::Script(size.line)]);
        }
    }
    step(stream, &[Content::Text(100)]);
}

/// The content of one step of the model.
enum Content {
    Text(usize),
    Call(usize),
    Script(usize),
}

fn step(stream: &mut Stream, contents: &[Content]) {
    let message = format!("msg_1e0a12337{}", stream.number());
    let snapshot = "1bfd93524aa7819a2fd2ee46cab4e07656a804be";
    let part = format!(
        r#""messageID":"{message}","sessionID":"{SESSION}","snapshot":"{snapshot}","type":"step-start""#,
    );
    record(stream, "step_start", &part);
    let mut reason = "stop";
    for content in contents {
        reason = if let Content::Text(_) = content { "stop" } else { "tool-calls" };
        match content {
            Content::Text(length) => {
                let (text, time) = (stream.text(*length), stream.millis());
                let part = format!(
                    r#""messageID":"{message}","sessionID":"{SESSION}","type":"text","text":"{text}","time":{{"start":{time},"end":{time}}}"#,
                );
                record(stream, "text", &part);
            }
            Content::Call(length) => {
                let (words, output) = (stream.plain_words(4), stream.text(*length));
                let input = format!(r#"{{"command":"echo {words}; ls","description":"run"}}"#);
                call(stream, &message, "bash", &input, &output);
            }
            Content::Script(length) => {
                let text = stream.text(*length);
                let input =
                    format!(r#"{{"command":"cat > new.txt <<EOF {text}","description":"run"}}"#);
                call(stream, &message, "bash", &input, "");
            }
        }
    }
    let part = format!(
        r#""reason":"{reason}","snapshot":"{snapshot}","messageID":"{message}","sessionID":"{SESSION}","type":"step-finish","tokens":{{"total":1020,"input":1000,"output":20,"reasoning":0,"cache":{{"write":0,"read":0}}}},"cost":0"#,
    );
    record(stream, "step_finish", &part);
}

fn call(stream: &mut Stream, message: &str, tool: &str, input: &str, output: &str) {
    let (id, time) = (stream.number(), stream.millis());
    let part = format!(
        r#""type":"tool","tool":"{tool}","callID":"call_fake_{id}","state":{{"status":"completed","input":{input},"output":"{output}","metadata":{{"output":"{output}","exit":0,"truncated":false}},"title":"run","time":{{"start":{time},"end":{time}}}}},"sessionID":"{SESSION}","messageID":"{message}""#,
    );
    record(stream, "tool_use", &part);
}

fn record(stream: &mut Stream, kind: &str, part: &str) {
    let (id, time) = (stream.number(), stream.millis());
    stream.line(&[
        r#"{"type":""#,
        kind,
        r#"","timestamp":"#,
        &time,
        r#","sessionID":"ses_e1f5edfd9ffeytAZa616xEGtwD","part":{"id":"prt_1e0a1265c"#,
        &id,
        r#"","#,
        part,
        "}}",
    ]);
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow, rename = "sessionID")]
    session: Option<&'a RawValue>,
    #[serde(borrow)]
    part: Option<Part<'a>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Option<&'a RawValue>,
    #[serde(borrow, rename = "callID")]
    call: Option<&'a RawValue>,
    #[serde(borrow)]
    state: Option<State<'a>>,
}

#[derive(Deserialize)]
struct State<'a> {
    status: &'a str,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

/// The fields that are read from the metadata of a command.
#[derive(Deserialize)]
struct Ran {
    exit: Option<i64>,
}

/// Whether a call succeeded: it reports no error, and its command did not fail.
fn is_done(state: &State<'_>) -> bool {
    let ran = state.metadata.and_then(|metadata| serde_json::from_str::<Ran>(metadata.get()).ok());
    state.status == "completed" && ran.and_then(|ran| ran.exit).is_none_or(|exit| exit == 0)
}

/// `opencode` to `ag-ui`.
pub(super) fn limit(input: &[u8], keep: &mut dyn FnMut(&[u8])) {
    let mut run = Run::default();
    let mut session = String::new();
    each_line(input, keep, |line: Line<'_>, out| {
        let Some(part) = &line.part else { return };
        if session.is_empty() {
            raw(line.session).clone_into(&mut session);
            ag_ui::start(out, &session);
        }
        match line.r#type {
            "text" => {
                run.begin_text(out);
                run.delta(out, raw(part.text));
                run.end_text(out);
            }
            "tool_use" => {
                let Some(state) = &part.state else { return };
                let id = raw(part.call);
                run.call(out, id, raw(part.tool));
                ag_ui::input(out, id, raw(state.input));
                ag_ui::input_end(out, id);
                if !is_done(state) {
                    return;
                }
                run.answer(out, id, raw(state.output));
                put!(
                    out,
                    "data: {\"type\":\"CUSTOM\",\"name\":\"tool_output\",\"value\":{\"call\":"
                );
                put!(out, id, ",\"structured\":", raw(state.metadata), "}}\n\n");
            }
            "step_finish" => run.step_has_ended(),
            _ => {}
        }
    });
    let mut out = Vec::new();
    run.finish(&mut out, &session);
    keep(&out);
}
