//! Encodes tool calls.

use super::encode::UiMessageEncoder;
use crate::dialect::ai_parts::{
    Facts, UNKNOWN_INPUT, call_failure, harmless_json, names_a_prototype,
};
use crate::dialect::{Output, sse};
use crate::event::{Executor, ToolEnded, ToolInput, ToolInputDelta, ToolStarted, ToolStatus};
use crate::json::write::Object;
use crate::json::{Json, Text, read, record};

impl UiMessageEncoder {
    pub(super) fn tool_started(
        &mut self,
        started: &ToolStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.step(started.message.as_ref(), parent, out);
        self.steps.called();
        let (call, name, executor) = (&started.call, &started.name, &started.executor);
        if *executor == Executor::Client {
            self.client_calls.push(call.clone().into_owned());
        }
        if let Some(input) = &started.input {
            self.input_available(call, name, executor, Some(input), parent, out);
            return;
        }
        self.inputs.push(call.clone().into_owned());
        sse::event(out, "tool-input-start", |chunk| {
            chunk.text("toolCallId", call).text("toolName", name);
            flags(chunk, executor);
            Facts { parent, ..Facts::default() }.write(chunk);
        });
    }

    pub(super) fn tool_input_delta(&mut self, delta: &ToolInputDelta<'_>, out: &mut Output) {
        if delta.text.is_empty() || !self.inputs.contains(&delta.call) {
            return;
        }
        sse::event(out, "tool-input-delta", |chunk| {
            chunk.text("toolCallId", &delta.call).text("inputTextDelta", &delta.text);
        });
    }

    pub(super) fn tool_input(
        &mut self,
        input: &ToolInput<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let Some(at) = self.inputs.iter().position(|call| *call == input.call) else { return };
        self.inputs.swap_remove(at);
        let ToolInput { call, name, executor, input, .. } = input;
        self.input_available(call, name, executor, input.as_ref(), parent, out);
    }

    fn input_available(
        &self,
        call: &Text<'_>,
        name: &Text<'_>,
        executor: &Executor,
        input: Option<&Json<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let is_known = input.is_some_and(|input| !input.is_null());
        if !is_known && *executor == Executor::Client {
            return self.input_unknown(call, name, parent, out);
        }
        sse::event(out, "tool-input-available", |chunk| {
            chunk.text("toolCallId", call).text("toolName", name);
            match input.filter(|input| !input.is_null()) {
                Some(input) => harmless_json(chunk, "input", input),
                None => {
                    chunk.raw("input", "{}");
                }
            }
            flags(chunk, executor);
            Facts { session: self.session.id.as_ref(), parent, ..Facts::default() }.write(chunk);
        });
    }

    /// A call of the client whose input never became known. A client would run it with an empty one.
    fn input_unknown(
        &self,
        call: &Text<'_>,
        name: &Text<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        sse::event(out, "tool-input-error", |chunk| {
            chunk.text("toolCallId", call).text("toolName", name);
            chunk.raw("input", "null").string("errorText", UNKNOWN_INPUT);
            Facts { session: self.session.id.as_ref(), parent, ..Facts::default() }.write(chunk);
        });
    }

    pub(super) fn tool_ended(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.steps.answered();
        self.write_survived_errors(out);
        if ended.executor == Executor::Client {
            if ended.status == ToolStatus::Abandoned {
                // The client still has to answer it.
                return;
            }
            self.client_calls.retain(|call| *call != ended.call);
        }
        if ended.status == ToolStatus::Completed {
            output_available(ended, parent, out);
        } else {
            output_error(ended, parent, out);
        }
        if let (Some(structured), Some(_)) = (&ended.structured, &ended.output) {
            sse::event(out, "data-tool-output", |chunk| {
                let fields = |data: &mut Object<'_>| {
                    data.text("call", &ended.call).json("structured", structured);
                };
                if names_a_prototype(structured) {
                    chunk.string("data", Json::object(fields).get());
                } else {
                    chunk.object("data", fields);
                }
                chunk.flag("transient", true);
            });
        }
    }
}

fn output_available(ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
    let output = ended.output.as_ref().or(ended.structured.as_ref());
    sse::event(out, "tool-output-available", |chunk| {
        chunk.text("toolCallId", &ended.call);
        match (output.filter(|output| !output.is_null()), &ended.error) {
            (Some(output), _) => match only_text(output) {
                Some(text) => {
                    chunk.text("output", &text);
                }
                None => harmless_json(chunk, "output", output),
            },
            (None, Some(error)) => {
                chunk.text("output", error);
            }
            (None, None) => {
                chunk.string("output", "");
            }
        }
        flags(chunk, &ended.executor);
        facts(chunk, ended, parent);
    });
}

record! {
    /// A content block, as Claude and MCP servers write them.
    struct ContentBlock<'a> {
        kind: text "type",
        text: text "text",
    }
}

impl<'a> ContentBlock<'a> {
    fn only_text(self) -> Option<Text<'a>> {
        self.text.filter(|_| self.kind.is_some_and(|kind| kind == *"text"))
    }
}

/// The text of an output whose blocks are all text. Clients treat it like a string.
fn only_text<'a>(output: &'a Json<'_>) -> Option<Text<'a>> {
    let list = output.get().strip_prefix('[')?.trim_start();
    // Usually there is one block, and its literal is passed on unchanged.
    let mut only = ContentBlock::default();
    if let Ok((_, rest)) = read::record(list, &mut only)
        && rest.trim() == "]"
    {
        return only.only_text();
    }
    let blocks: Vec<Json<'_>> = output.read()?;
    let text_of = |block: &Json<'_>| {
        let text = read::record_of::<ContentBlock<'_>>(block)?.only_text()?;
        Some(text.to_plain().into_owned())
    };
    let lines: Vec<String> = blocks.iter().map(text_of).collect::<Option<_>>()?;
    Some(Text::from(lines.join("\n")))
}

fn output_error(ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
    let (text, others) = call_failure(ended);
    for _ in 0..others {
        out.lost("parts of tool answers that are not text");
    }
    sse::event(out, "tool-output-error", |chunk| {
        chunk.text("toolCallId", &ended.call).text("errorText", &text);
        flags(chunk, &ended.executor);
        facts(chunk, ended, parent);
    });
}

/// Writes who runs the tool. Every chunk of a call has the same flags, since clients would
/// otherwise take it for another call.
fn flags(chunk: &mut Object<'_>, executor: &Executor) {
    if *executor != Executor::Client {
        chunk.flag("providerExecuted", true).flag("dynamic", true);
    }
}

fn facts(chunk: &mut Object<'_>, ended: &ToolEnded<'_>, parent: Option<&Text<'_>>) {
    let plain = matches!(ended.status, ToolStatus::Completed | ToolStatus::Failed);
    let status = Some(ended.status.as_str()).filter(|_| !plain);
    Facts { parent, status, exit_code: ended.exit_code, ..Facts::default() }.write(chunk);
}
