//! Writes requests to the user: permission requests, and questions.
//!
//! A request repeats the name and the input with which its call was written, so that a host can
//! match them. Claude Code writes a call before the request about it. Some agents send the request
//! while they still stream the input of the call; the call is then written first, with the input
//! that the request states.

use super::ClaudeEncoder;
use crate::dialect::claude::{APPROVE_PLAN, KEEP_PLANNING, tools};
use crate::dialect::{Output, tools as any_agents};
use crate::event::{
    Decision, Event, PermissionRequested, PermissionResolved, QuestionAsked, ToolInput, ToolKind,
    ToolStarted,
};
use crate::json::read;
use crate::json::{Json, Text, record};

/// Claude's tool for questions to the user.
static QUESTION: Text<'static> = Text::plain("AskUserQuestion");

/// Claude's tool that asks the user to approve a plan.
static PLAN: Text<'static> = Text::plain("ExitPlanMode");

/// The number of remembered calls whose input is incomplete.
const MAX_PENDING: usize = 64;

/// The calls whose input is incomplete.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingCalls {
    calls: Vec<PendingCall>,
    /// The allocation of a removed call, for reuse.
    spare: Option<PendingCall>,
}

#[derive(Debug, Clone, Default)]
struct PendingCall {
    id: String,
    name: String,
    kind: ToolKind,
    /// The message that contains it; empty if unknown.
    message: String,
    /// It was written before the request about it.
    written: bool,
}

impl PendingCalls {
    pub(super) fn add(&mut self, started: &ToolStarted<'_>) {
        if self.calls.len() >= MAX_PENDING {
            return;
        }
        let mut call = self.spare.take().unwrap_or_default();
        call.id.clear();
        call.id.push_str(&started.call.to_plain());
        call.name.clear();
        call.name.push_str(&started.name.to_plain());
        call.kind = started.kind.clone();
        call.message.clear();
        call.message.push_str(&started.message.as_ref().map(Text::to_plain).unwrap_or_default());
        call.written = false;
        self.calls.push(call);
    }

    /// Removes a call; returns whether it was written.
    pub(super) fn take(&mut self, call: &Text<'_>) -> bool {
        let Some(at) = self.calls.iter().rposition(|known| *call == *known.id) else {
            return false;
        };
        let taken = self.calls.swap_remove(at);
        let written = taken.written;
        self.spare = Some(taken);
        written
    }

    /// A call that was not written yet.
    fn unwritten_mut(&mut self, call: &Text<'_>) -> Option<&mut PendingCall> {
        self.calls.iter_mut().rfind(|known| *call == *known.id && !known.written)
    }
}

impl PendingCall {
    fn message(&self) -> Option<Text<'static>> {
        Some(Text::from(self.message.clone())).filter(|message| !message.is_empty())
    }

    /// Whether a request states the complete input of the call, and not only details of it.
    fn is_complete_in(&self, request: &PermissionRequested<'_>) -> bool {
        let own = Text::plain(&self.name);
        let Some(input) = request.input.as_ref().filter(|input| input.get() != "{}") else {
            return false;
        };
        let (name, _) = tools::translate_call(&own, &self.kind, Some(input));
        request.tool.as_ref().is_none_or(|tool| *tool == own)
            && name == tools::translate_name(&own, &self.kind)
    }
}

impl ClaudeEncoder {
    /// Checks the complete input of a call that was written before the request about it.
    pub(super) fn check_late_input(&self, input: &ToolInput<'_>, out: &mut Output) {
        let (_, complete) = tools::translate_call(&input.name, &input.kind, input.input.as_ref());
        let written = self.calls.written(&input.call).and_then(|written| written.input);
        if input.input.is_some() && written.is_none_or(|written| written.get() != complete) {
            out.lost("inputs that differ from their permission request");
        }
    }

    pub(super) fn write_permission_request(
        &mut self,
        request: &PermissionRequested<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if let Some(call) = &request.call
            && let Some(pending) = self.pending.unwritten_mut(call)
            && pending.is_complete_in(request)
        {
            pending.written = true;
            let (name, kind) = (Text::from(pending.name.clone()), pending.kind.clone());
            let (message, input) = (pending.message(), request.input.as_ref());
            self.write_call((call, &name, &kind), input, message.as_ref(), event, out);
        }
        let written =
            request.call.as_ref().and_then(|call| self.calls.written(call)).unwrap_or_default();
        let tool = written.name.clone().or(request.tool.clone()).unwrap_or(Text::plain("unknown"));
        let (name, mut input) =
            tools::translate_call(&tool, &any_agents::kind_of(&tool), request.input.as_ref());
        // A call that was written without its input may have the agent's own name.
        let name = written.name.as_ref().unwrap_or(&name);
        if let Some(known) = &written.input
            && (request.input.is_none() || known.get() != "{}")
        {
            input = known.get().into();
        }
        let options = request.options.as_ref();
        let suggestions = options.filter(|options| are_permission_updates(options));
        if options.is_some() && suggestions.is_none() {
            out.lost("options of a permission request");
        }
        let mut record = out.record("control_request");
        record.text("request_id", &request.request);
        record.object("request", |fields| {
            fields.raw("subtype", "\"can_use_tool\"").text("tool_name", name).raw("input", &input);
            fields.text_if("description", request.description.as_ref());
            fields.json_if("permission_suggestions", suggestions);
            fields.text_if("tool_use_id", request.call.as_ref());
        });
        record.end();
    }

    /// Writes questions as a call of Claude's tool, and the form of an MCP server as its request.
    pub(super) fn write_question(
        &mut self,
        asked: &QuestionAsked<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if asked.schema.is_some() || asked.url.is_some() {
            write_form(asked, out);
            return;
        }
        let (tool, input) = match plan_of(asked) {
            Some(plan) => (
                &PLAN,
                Json::object(|fields| {
                    fields.text("plan", plan);
                }),
            ),
            None => (&QUESTION, question_input(asked, out)),
        };
        if let Some(call) = &asked.call
            && let Some(pending) = self.pending.unwritten_mut(call)
        {
            pending.written = true;
            let message = pending.message();
            let called = (call, tool, &ToolKind::Unspecified);
            self.write_call(called, Some(&input), message.as_ref(), event, out);
        }
        let mut record = out.record("control_request");
        record.text("request_id", &asked.request);
        record.object("request", |fields| {
            fields.raw("subtype", "\"can_use_tool\"").text("tool_name", tool);
            fields.json("input", &input).text_if("tool_use_id", asked.call.as_ref());
            fields.raw("requires_user_interaction", "true");
        });
        record.end();
    }

    pub(super) fn write_decision(&mut self, resolved: &PermissionResolved<'_>, out: &mut Output) {
        match (&resolved.decision, &resolved.request) {
            (Decision::Denied, _) => {
                let tool = self.written_name(resolved.call.as_ref(), resolved.tool.as_ref());
                let usual = tool.as_ref().map(tools::denial_message);
                let mut record = out.record("system");
                record.string("subtype", "permission_denied");
                record.text_if("tool_name", tool.as_ref());
                record.text_if("tool_use_id", resolved.call.as_ref());
                record.text_if("message", resolved.reason.as_ref().or(usual.as_ref()));
                self.stamp.end(record);
            }
            (Decision::Withdrawn, Some(request)) => {
                let mut record = out.record("control_cancel_request");
                record.text("request_id", request);
                record.end();
            }
            _ => out.lost("allowed permission requests"),
        }
    }

    /// The written name of the tool of a call, or else the name that it would have.
    fn written_name<'t>(
        &'t self,
        call: Option<&Text<'_>>,
        tool: Option<&'t Text<'_>>,
    ) -> Option<Text<'t>> {
        let written =
            call.and_then(|call| self.calls.written(call)).and_then(|written| written.name);
        written.or_else(|| tool.map(|tool| tools::translate_name(tool, &any_agents::kind_of(tool))))
    }
}

/// The plan that a question asks to approve, if it is Claude's question for that.
fn plan_of<'q>(asked: &'q QuestionAsked<'_>) -> Option<&'q Text<'q>> {
    let [question] = &*asked.questions else { return None };
    let [first, second] = &*question.options else { return None };
    let is_own = first.label == APPROVE_PLAN && second.label == KEEP_PLANNING;
    asked.message.as_ref().filter(|_| is_own)
}

/// The input of Claude's tool for questions.
fn question_input(asked: &QuestionAsked<'_>, out: &mut Output) -> Json<'static> {
    if asked.message.is_some() {
        out.lost("introductions of questions");
    }
    if asked.questions.iter().any(|question| question.secret) {
        out.lost("marks of secret answers");
    }
    Json::object(|fields| {
        fields.objects("questions", &asked.questions, |field, question| {
            field.text("question", &question.text).text_if("header", question.header.as_ref());
            field.objects("options", &question.options, |field, option| {
                field.text("label", &option.label);
                field.text_if("description", option.description.as_ref());
                field.text_if("preview", option.preview.as_ref());
            });
            if question.multiple {
                field.flag("multiSelect", true);
            }
        });
    })
}

/// Writes the form of an MCP server, or the address that it asks the user to open.
fn write_form(asked: &QuestionAsked<'_>, out: &mut Output) {
    let mut record = out.record("control_request");
    record.text("request_id", &asked.request);
    record.object("request", |fields| {
        fields.raw("subtype", "\"elicitation\"");
        fields.text("mcp_server_name", asked.server.as_ref().unwrap_or(&Text::plain("")));
        fields.text("message", asked.message.as_ref().unwrap_or(&Text::plain("")));
        fields.string("mode", if asked.url.is_some() { "url" } else { "form" });
        fields.text_if("url", asked.url.as_ref());
        fields.json_if("requested_schema", asked.schema.as_ref());
    });
    record.end();
}

record! {
    /// An option of Claude's permission requests: a change of the permission rules.
    struct PermissionUpdate<'a> {
        kind: text "type",
    }
}

/// Whether the options are permission updates, which a host can return to Claude Code. Other agents
/// have options of other forms.
fn are_permission_updates(options: &Json<'_>) -> bool {
    let is_update = |option: &Json<'_>| {
        let update = read::record_of::<PermissionUpdate<'_>>(option);
        update.is_some_and(|update| update.kind.is_some())
    };
    options.read::<Vec<Json<'_>>>().is_some_and(|options| options.iter().all(is_update))
}
