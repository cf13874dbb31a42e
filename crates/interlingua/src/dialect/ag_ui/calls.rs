//! Encodes tool calls.

use super::encode::{AgUiEncoder, message_id, of_subagent};
use crate::dialect::ai_parts::call_failure;
use crate::dialect::content::answer_text;
use crate::dialect::{Output, sse};
use crate::event::{Executor, ToolEnded, ToolInput, ToolInputDelta, ToolStarted, ToolStatus};
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

impl AgUiEncoder {
    pub(super) fn tool_started(
        &mut self,
        started: &ToolStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.step(started.message.as_ref(), parent, out);
        self.steps.called();
        if started.executor == Executor::Client {
            self.of_client.push((started.call.clone().into_owned(), false));
        }
        let message = self.message_of_call(started.message.as_ref(), parent);
        sse::event_of_text(out, "TOOL_CALL_START", |event| {
            event.text("toolCallId", &started.call).text("toolCallName", &started.name);
            if let Some(message) = message {
                message.write(event.name("parentMessageId"));
            }
            event.object("metadata", |metadata| {
                metadata.string("kind", started.kind.as_str());
                metadata.string("executor", started.executor.as_str());
            });
            of_subagent(event, parent);
        });
        match &started.input {
            Some(input) => {
                complete_arguments(&started.call, input, parent, out);
                call_end(&started.call, parent, out);
            }
            None => self.inputs.push((started.call.clone().into_owned(), false)),
        }
    }

    pub(super) fn tool_input_delta(
        &mut self,
        delta: &ToolInputDelta<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let input = self.inputs.iter_mut().find(|(call, _)| *call == delta.call);
        let Some((_, has_deltas)) = input.filter(|_| !delta.text.is_empty()) else { return };
        *has_deltas = true;
        sse::event_of_text(out, "TOOL_CALL_ARGS", |event| {
            event.text("toolCallId", &delta.call).text("delta", &delta.text);
            of_subagent(event, parent);
        });
    }

    pub(super) fn tool_input(
        &mut self,
        input: &ToolInput<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let Some(at) = self.inputs.iter().position(|(call, _)| *call == input.call) else { return };
        let (_, has_deltas) = self.inputs.swap_remove(at);
        if !has_deltas {
            let nothing = Json::read_from("{}");
            complete_arguments(&input.call, input.input.as_ref().unwrap_or(&nothing), parent, out);
        }
        call_end(&input.call, parent, out);
    }

    pub(super) fn tool_ended(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.steps.answered();
        self.write_survived_errors(out);
        if ended.executor == Executor::Client && ended.status == ToolStatus::Abandoned {
            // The client still has to answer it.
            return;
        }
        let client_call = self.of_client.iter().position(|(call, _)| *call == ended.call);
        if client_call.is_some_and(|at| self.of_client.swap_remove(at).1) {
            out.lost("answers of the client");
            return;
        }
        let failed = ended.status != ToolStatus::Completed;
        let (text, others) = if failed { call_failure(ended) } else { answer_text(ended) };
        for _ in 0..others {
            out.lost("parts of tool answers that are not text");
        }
        // Without any text, the structured output is written in its place.
        let structured = ended.structured.as_ref();
        let text = match structured {
            Some(structured) if text.is_empty() && ended.output.is_none() => {
                structured.as_text().unwrap_or(Text::plain(structured.get()))
            }
            _ => text,
        };
        let id = self.identity.uuid();
        sse::event_of_text(out, "TOOL_CALL_RESULT", |event| {
            message_id(event, id);
            event.text("toolCallId", &ended.call).text("content", &text);
            event.fixed(r#""role":"tool""#);
            metadata(event, ended);
            of_subagent(event, parent);
        });
        if let Some(structured) = structured.filter(|_| ended.output.is_some()) {
            self.custom_with("tool_output", parent, out, |value| {
                value.text("call", &ended.call).json("structured", structured);
            });
        }
    }
}

fn complete_arguments(
    call: &Text<'_>,
    input: &Json<'_>,
    parent: Option<&Text<'_>>,
    out: &mut Output,
) {
    sse::event_of_text(out, "TOOL_CALL_ARGS", |event| {
        event.text("toolCallId", call);
        write::quoted_json(event.name("delta"), input);
        of_subagent(event, parent);
    });
}

fn call_end(call: &Text<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
    sse::event_of_text(out, "TOOL_CALL_END", |event| {
        event.text("toolCallId", call);
        of_subagent(event, parent);
    });
}

/// Writes the status and the exit code of a call, for which the protocol has no fields.
fn metadata(event: &mut Object<'_>, ended: &ToolEnded<'_>) {
    event.object("metadata", |metadata| {
        metadata.string("status", ended.status.as_str());
        if let Some(code) = ended.exit_code {
            metadata.raw("exitCode", itoa::Buffer::new().format(code));
        }
    });
}
