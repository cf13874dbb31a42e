//! Questions to the user: may a call run, and which one.
//!
//! A question names a call by the name and the input with which the call was written, so that who
//! answers by them knows both. Claude Code asks about calls that it has told; agents that ask while
//! they still tell the input of a call have it told first, as the question has it.

use super::ClaudeEncoder;
use crate::dialect::claude::tools;
use crate::dialect::{Output, tools as any_agents};
use crate::event::{
    Decision, Event, PermissionRequested, PermissionResolved, QuestionAsked, ToolInput, ToolKind,
    ToolStarted,
};
use crate::json::read;
use crate::json::{Json, Text, record};

/// The tool with which Claude asks the user something.
static QUESTION: Text<'static> = Text::plain("AskUserQuestion");

/// How many calls are remembered whose input is not whole.
const REMEMBERED: usize = 64;

/// Calls whose input is not whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Announced {
    calls: Vec<AnnouncedCall>,
    /// Room that a call left.
    spare: Option<AnnouncedCall>,
}

#[derive(Debug, Clone, Default)]
struct AnnouncedCall {
    id: String,
    name: String,
    kind: ToolKind,
    /// The message that made it; empty where nobody said which.
    message: String,
    /// A question about it was asked, and it was written before that.
    written: bool,
}

impl Announced {
    pub(super) fn add(&mut self, started: &ToolStarted<'_>) {
        if self.calls.len() >= REMEMBERED {
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

    /// Forgets a call; says whether it was written.
    pub(super) fn take(&mut self, call: &Text<'_>) -> bool {
        let Some(at) = self.calls.iter().rposition(|known| *call == *known.id) else {
            return false;
        };
        let taken = self.calls.swap_remove(at);
        let written = taken.written;
        self.spare = Some(taken);
        written
    }

    /// A call that was not written.
    fn unwritten(&mut self, call: &Text<'_>) -> Option<&mut AnnouncedCall> {
        self.calls.iter_mut().rfind(|known| *call == *known.id && !known.written)
    }
}

impl AnnouncedCall {
    fn message(&self) -> Option<Text<'static>> {
        Some(Text::from(self.message.clone())).filter(|message| !message.is_empty())
    }

    /// Whether a request has the input of the call, and not only facts about it.
    fn is_whole_in(&self, request: &PermissionRequested<'_>) -> bool {
        let own = Text::plain(&self.name);
        let Some(input) = request.input.as_ref().filter(|input| input.get() != "{}") else {
            return false;
        };
        let (name, _) = tools::call(&own, &self.kind, Some(input));
        request.tool.as_ref().is_none_or(|tool| *tool == own)
            && name == tools::name(&own, &self.kind)
    }
}

impl ClaudeEncoder {
    /// The rest of the input of a call that was written with its question.
    pub(super) fn input_after_the_question(&self, input: &ToolInput<'_>, out: &mut Output) {
        let (_, whole) = tools::call(&input.name, &input.kind, input.input.as_ref());
        let told = self.calls.told(&input.call).and_then(|told| told.input);
        if input.input.is_some() && told.is_none_or(|told| told.get() != whole) {
            out.lost("inputs that differ from what the user was asked");
        }
    }

    pub(in crate::dialect::claude) fn permission_requested(
        &mut self,
        request: &PermissionRequested<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if let Some(call) = &request.call
            && let Some(announced) = self.announced.unwritten(call)
            && announced.is_whole_in(request)
        {
            announced.written = true;
            let (name, kind) = (Text::from(announced.name.clone()), announced.kind.clone());
            let (message, input) = (announced.message(), request.input.as_ref());
            self.call((call, &name, &kind), input, message.as_ref(), event, out);
        }
        let told = request.call.as_ref().and_then(|call| self.calls.told(call)).unwrap_or_default();
        let tool = told.name.clone().or(request.tool.clone()).unwrap_or(Text::plain("unknown"));
        let (name, mut input) =
            tools::call(&tool, &any_agents::kind_of(&tool), request.input.as_ref());
        // A call that was told without its input may have kept the agent's own name.
        let name = told.name.as_ref().unwrap_or(&name);
        if let Some(known) = &told.input
            && (request.input.is_none() || known.get() != "{}")
        {
            input = known.get().into();
        }
        let choices = request.options.as_ref();
        let suggestions = choices.filter(|choices| are_permission_updates(choices));
        if choices.is_some() && suggestions.is_none() {
            out.lost("choices of a request for permission");
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

    pub(in crate::dialect::claude) fn question_asked(
        &mut self,
        question: &QuestionAsked<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        let input = match &question.questions {
            Some(questions) if questions.is_object() => questions.borrowed(),
            questions => Json::object(|fields| {
                match questions {
                    Some(list) => fields.json("questions", list),
                    None => fields.raw("questions", "[]"),
                };
            }),
        };
        if let Some(call) = &question.call
            && let Some(announced) = self.announced.unwritten(call)
        {
            announced.written = true;
            let message = announced.message();
            let tool = (call, &QUESTION, &ToolKind::Unspecified);
            self.call(tool, Some(&input), message.as_ref(), event, out);
        }
        let mut record = out.record("control_request");
        record.text("request_id", &question.request);
        record.object("request", |fields| {
            fields.raw("subtype", "\"can_use_tool\"").text("tool_name", &QUESTION);
            fields.json("input", &input).text_if("tool_use_id", question.call.as_ref());
        });
        record.end();
    }

    pub(in crate::dialect::claude) fn permission_resolved(
        &mut self,
        resolved: &PermissionResolved<'_>,
        out: &mut Output,
    ) {
        match (&resolved.decision, &resolved.request) {
            (Decision::Denied, _) => {
                let tool = self.told_name(resolved.call.as_ref(), resolved.tool.as_ref());
                let usual = tool.as_ref().map(tools::refusal);
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
            _ => out.lost("permissions that were given"),
        }
    }

    /// The name under which the tool of a call was told, or else would be.
    fn told_name<'t>(
        &'t self,
        call: Option<&Text<'_>>,
        tool: Option<&'t Text<'_>>,
    ) -> Option<Text<'t>> {
        let told = call.and_then(|call| self.calls.told(call)).and_then(|told| told.name);
        told.or_else(|| tool.map(|tool| tools::name(tool, &any_agents::kind_of(tool))))
    }
}

record! {
    /// What Claude offers as an answer: a change of what may be done.
    struct PermissionUpdate<'a> {
        kind: text "type",
    }
}

/// Whether the choices are those that Claude offers, and a host can send back; those of other agents
/// are words of their own.
fn are_permission_updates(choices: &Json<'_>) -> bool {
    let is_update = |choice: &Json<'_>| {
        let update = read::record_of::<PermissionUpdate<'_>>(choice);
        update.is_some_and(|update| update.kind.is_some())
    };
    choices.read::<Vec<Json<'_>>>().is_some_and(|choices| choices.iter().all(is_update))
}
