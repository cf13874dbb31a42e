//! Encodes tool calls, and events without a part as calls.

use super::encode::AiSdkEncoder;
use crate::dialect::Output;
use crate::dialect::ai_parts::{Facts, UNKNOWN_INPUT, call_failure, harmless_json};
use crate::event::{
    Artifact, Compacted, Event, Executor, FileChange, FilesChanged, PlanUpdated, Reason, ToolEnded,
    ToolInput, ToolInputDelta, ToolStarted, ToolStatus,
};
use crate::json::write::{self, Object};
use crate::json::{Json, Text};

impl AiSdkEncoder {
    pub(super) fn tool_started(
        &mut self,
        started: &ToolStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if self.hides(&started.executor) {
            out.lost("tool calls of the agent");
            return;
        }
        if started.executor == Executor::Client {
            self.client_calls.push(started.call.clone().into_owned());
        }
        let (call, name, executor) = (&started.call, &started.name, &started.executor);
        if let Some(input) = &started.input {
            self.tool_call(call, name, executor, Some(input), parent, out);
            return;
        }
        self.inputs.push(call.clone().into_owned());
        let mut part = out.record("tool-input-start");
        part.text("id", call).text("toolName", name);
        if *executor != Executor::Client {
            part.flag("providerExecuted", true).flag("dynamic", true);
        }
        Facts { parent, ..Facts::default() }.write(&mut part);
        part.end();
    }

    pub(super) fn tool_input_delta(&mut self, delta: &ToolInputDelta<'_>, out: &mut Output) {
        if delta.text.is_empty() || !self.inputs.contains(&delta.call) {
            return;
        }
        let mut part = out.record("tool-input-delta");
        part.text("id", &delta.call).text("delta", &delta.text);
        part.end();
    }

    pub(super) fn tool_input(
        &mut self,
        input: &ToolInput<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let Some(at) = self.inputs.iter().position(|call| *call == input.call) else { return };
        self.inputs.swap_remove(at);
        let mut part = out.record("tool-input-end");
        part.text("id", &input.call);
        part.end();
        let ToolInput { call, name, executor, input, .. } = input;
        self.tool_call(call, name, executor, input.as_ref(), parent, out);
    }

    fn tool_call(
        &self,
        call: &Text<'_>,
        name: &Text<'_>,
        executor: &Executor,
        input: Option<&Json<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let object = input.filter(|input| input.is_object());
        if input.is_some_and(|input| !input.is_object() && !input.is_null()) {
            out.lost("tool inputs that are not objects");
        }
        let mut part = out.record("tool-call");
        part.text("toolCallId", call).text("toolName", name);
        match object {
            Some(input) => write::quoted_json(part.name("input"), input),
            // A client would run a call with an empty input.
            None if *executor == Executor::Client => {
                write::string(part.name("input"), UNKNOWN_INPUT);
            }
            None => write::string(part.name("input"), "{}"),
        }
        if *executor != Executor::Client {
            part.flag("providerExecuted", true).flag("dynamic", true);
        }
        Facts { session: self.session.as_ref(), parent, ..Facts::default() }.write(&mut part);
        part.end();
    }

    pub(super) fn tool_ended(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if self.hides(&ended.executor) {
            return;
        }
        let of_client = ended.executor == Executor::Client;
        if of_client {
            if ended.status == ToolStatus::Abandoned {
                // The client still has to answer it.
                return;
            }
            self.client_calls.retain(|call| *call != ended.call);
        }
        let failed = ended.status != ToolStatus::Completed;
        let mut part = out.record("tool-result");
        part.text("toolCallId", &ended.call).text("toolName", &ended.name);
        let mut others = 0;
        if failed {
            let (text, no_text) = call_failure(ended);
            part.text("result", &text);
            others = no_text;
            part.flag("isError", true);
        } else {
            result(&mut part, ended);
        }
        if !of_client {
            part.flag("dynamic", true);
        }
        let status = Some(ended.status.as_str())
            .filter(|_| !matches!(ended.status, ToolStatus::Completed | ToolStatus::Failed));
        Facts { parent, status, exit_code: ended.exit_code, ..Facts::default() }.write(&mut part);
        part.end();
        for _ in 0..others {
            out.lost("outputs of failed calls that are not text");
        }
        if ended.structured.is_some() && (failed || ended.output.is_some()) {
            out.lost("structured tool outputs");
        }
        if ended.error.is_some() && !failed {
            out.lost("error of a call that did not fail");
        }
    }

    /// Whether a call is not written, since the agent answers it itself.
    fn hides(&self, executor: &Executor) -> bool {
        self.hides_agent_tools && *executor != Executor::Client
    }

    /// Writes an event without a part as a call that the agent made and answered.
    fn pair(
        &mut self,
        (tool, kind): (&'static str, &'static str),
        input: &Json<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if self.hides_agent_tools {
            out.lost(tool);
            return;
        }
        let call = self.generated_id(kind);
        let name = Text::plain(tool);
        self.tool_call(&call, &name, &Executor::Agent, Some(input), parent, out);
        let mut part = out.record("tool-result");
        part.text("toolCallId", &call).text("toolName", &name);
        part.string("result", "ok").flag("dynamic", true);
        Facts { parent, ..Facts::default() }.write(&mut part);
        part.end();
    }

    pub(super) fn plan(&mut self, plan: &PlanUpdated<'_>, event: &Event<'_>, out: &mut Output) {
        // The call that wrote the plan, or that failed to write another, is in the stream.
        if plan.call.is_some() || event.synthetic == Some(Reason::Refused) {
            return;
        }
        let input = Json::object(|fields| {
            fields.objects("plan", &plan.items, |step, item| {
                step.text("step", &item.text).string("status", item.status.as_str());
            });
        });
        self.pair(("updatePlan", "plan"), &input, event.parent.as_ref(), out);
    }

    pub(super) fn files(
        &mut self,
        files: &FilesChanged<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if files.call.is_some() {
            return;
        }
        let change = |file: &mut Object<'_>, change: &FileChange<'_>| {
            file.text("path", &change.path).text_if("oldPath", change.old_path.as_ref());
            file.string("kind", change.kind.as_str()).json_if("diff", change.diff.as_ref());
        };
        let input = Json::object(|fields| {
            fields.objects("changes", &files.changes, change);
        });
        self.pair(("fileChange", "file-change"), &input, parent, out);
    }

    pub(super) fn compacted(
        &mut self,
        compacted: &Compacted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let input = Json::object(|fields| {
            fields.text_if("trigger", compacted.trigger.as_ref());
            fields.number_if("tokensBefore", compacted.tokens_before);
            fields.number_if("tokensAfter", compacted.tokens_after);
        });
        self.pair(("compaction", "compaction"), &input, parent, out);
    }

    pub(super) fn artifact(
        &mut self,
        artifact: &Artifact<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let input = Json::object(|fields| {
            fields.text("path", &artifact.path).number_if("size_bytes", artifact.size);
            fields.text_if("mime_type", artifact.media_type.as_ref());
            fields.text_if("label", artifact.label.as_ref());
        });
        self.pair(("artifact", "artifact"), &input, parent, out);
    }
}

/// Writes the result of a call. It is never `null`, which consumers take for a missing answer.
fn result(part: &mut Object<'_>, ended: &ToolEnded<'_>) {
    let output = ended.output.as_ref().or(ended.structured.as_ref());
    match output.filter(|output| !output.is_null()) {
        None => {
            part.string("result", "");
        }
        Some(output) => harmless_json(part, "result", output),
    }
}
