//! Decodes the program's requests to its host: permission requests, questions to the user, and forms
//! of MCP servers. Most are answered by the host, which only a stream of both directions contains;
//! else the answer follows from the result of the call.

use super::wire::{ControlRequest, ControlResponse, HostAnswer, Line, PermissionDecision};
use crate::dialect::Emitter;
use crate::dialect::questions::{AnswerKey, read_answers, read_questions};
use crate::event::{
    Decision, PermissionRequested, PermissionResolved, Question, QuestionAnswer, QuestionAnswered,
    QuestionAsked, QuestionOption, ToolEnded, ToolStatus,
};
use crate::json::read::{self, Fields};
use crate::json::{Json, Text, record};

/// The option that approves a plan. The host then allows the call of `ExitPlanMode`.
pub const APPROVE_PLAN: &str = "Approve";

/// The option that rejects a plan. The host then denies the call; its message is for the model.
pub const KEEP_PLANNING: &str = "Keep planning";

/// The id of the question whether a plan is approved.
const PLAN: &str = "plan";

/// The number of requests without an answer that are remembered.
const MAX_PENDING: usize = 256;

/// The requests without an answer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pending: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    id: Text<'static>,
    call: Option<Text<'static>>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Permission,
    Question(Vec<Question<'static>>),
    /// Whether a plan is approved.
    Plan,
    /// A form of an MCP server.
    Form,
}

/// The resolution of a request.
enum Resolution<'a> {
    Permission(PermissionResolved<'a>),
    Question(QuestionAnswered<'a>),
}

record! {
    /// The input of the tools that ask the user, and the structured result of one.
    struct QuestionInput<'a> {
        questions: json "questions",
        plan: text "plan",
        answers: json "answers",
        annotations: json "annotations",
    }
}

record! {
    /// What the user added to an answer.
    struct Annotation<'a> {
        notes: text "notes",
    }
}

impl Requests {
    /// Emits a request of the program to its host.
    pub(super) fn emit_request<'a>(&mut self, line: Line<'a>, out: &mut Emitter<'_, 'a>) {
        let request = line.request.unwrap_or_default();
        let id = line.request_id.unwrap_or_default();
        let tool = request.tool_name.as_ref().map_or("", Text::body);
        let kind = match (request.subtype.as_ref().map_or("", Text::body), tool) {
            ("can_use_tool", "AskUserQuestion") => {
                let input = request.input.as_ref().and_then(read::record_of::<QuestionInput<'_>>);
                let list = input.and_then(|input| input.questions);
                Kind::Question(read_questions(list.as_ref(), AnswerKey::Text, true))
            }
            ("can_use_tool", "ExitPlanMode") => Kind::Plan,
            ("can_use_tool", _) => Kind::Permission,
            ("elicitation", _) => Kind::Form,
            _ => {
                out.native("control_request");
                return;
            }
        };
        let call = request.tool_use_id.clone().map(Text::into_owned);
        match &kind {
            Kind::Permission => out.emit(PermissionRequested {
                native_call: None,
                request: id.clone(),
                call: request.tool_use_id,
                tool: request.tool_name,
                description: request.description,
                input: request.input,
                options: request.suggestions,
            }),
            Kind::Question(questions) => out.emit(QuestionAsked {
                request: id.clone(),
                call: request.tool_use_id,
                questions: questions.clone(),
                ..QuestionAsked::default()
            }),
            Kind::Plan => out.emit(plan_question(id.clone(), request)),
            Kind::Form => out.emit(QuestionAsked {
                request: id.clone(),
                message: request.message,
                server: request.server,
                schema: request.schema.filter(|_| request.url.is_none()),
                url: request.url,
                ..QuestionAsked::default()
            }),
        }
        if self.pending.len() == MAX_PENDING {
            self.pending.remove(0);
        }
        self.pending.push(Request { id: id.into_owned(), call, kind });
    }

    /// Emits the answer of the host, for a stream that also contains what the host sends. Returns
    /// whether it answers a pending request.
    pub(super) fn emit_host_answer<'a>(
        &mut self,
        response: Option<ControlResponse<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) -> bool {
        let Some(ControlResponse { request_id: Some(id), answer, error }) = response else {
            return false;
        };
        let Some(at) = self.pending.iter().position(|request| request.id == id) else {
            return false;
        };
        let answer = answer.map(|answer| answer.record).unwrap_or_default();
        if answer.behavior.is_none() && answer.action.is_none() && error.is_none() {
            return false;
        }
        match self.pending.remove(at).resolve_by_host(answer, error) {
            Resolution::Permission(resolved) => out.emit(resolved),
            Resolution::Question(answered) => out.emit(answered),
        }
        true
    }

    /// Emits that the program no longer waits for an answer.
    pub(super) fn emit_cancelled<'a>(&mut self, id: Option<Text<'a>>, out: &mut Emitter<'_, 'a>) {
        let at = self.pending.iter().position(|request| id.as_ref() == Some(&request.id));
        match at.map(|at| self.pending.remove(at)) {
            Some(Request { id, call, kind }) if !matches!(kind, Kind::Permission) => {
                out.emit(QuestionAnswered {
                    request: id,
                    call,
                    declined: true,
                    ..QuestionAnswered::default()
                });
            }
            request => out.emit(PermissionResolved {
                request: id,
                call: request.and_then(|request| request.call),
                decision: Decision::Withdrawn,
                ..PermissionResolved::default()
            }),
        }
    }

    /// Emits the resolution of the request of a call that was answered. Older versions do not state
    /// the decision, so it follows from the status of the answer.
    pub(super) fn emit_resolved_by_answer<'a>(
        &mut self,
        ended: &ToolEnded<'a>,
        decision: Option<PermissionDecision<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(at) = self.pending.iter().position(|it| it.call.as_ref() == Some(&ended.call))
        else {
            return;
        };
        let request = self.pending.remove(at);
        let decision = decision.unwrap_or_default();
        let accepted = match decision.decision.as_ref().map(Text::body) {
            Some(decision) => decision == "accept",
            None => ended.status != ToolStatus::Denied,
        };
        if matches!(request.kind, Kind::Permission) {
            out.emit(PermissionResolved {
                request: Some(request.id),
                call: request.call,
                tool: None,
                decision: if accepted { Decision::Allowed } else { Decision::Denied },
                by: decision.source,
                reason: decision.reason,
            });
        } else {
            let accepted = accepted && ended.status == ToolStatus::Completed;
            out.emit(request.answered_by_result(ended, accepted));
        }
    }
}

impl Request {
    fn resolve_by_host<'a>(
        self,
        answer: HostAnswer<'a>,
        error: Option<Text<'a>>,
    ) -> Resolution<'a> {
        let allowed = answer.behavior.as_ref().is_some_and(|behavior| *behavior == "allow");
        let accepted = answer.action.as_ref().is_some_and(|action| *action == "accept");
        let message = answer.message.or(error);
        let mut answered = QuestionAnswered {
            request: self.id.clone(),
            call: self.call.clone(),
            declined: !allowed && !accepted,
            ..QuestionAnswered::default()
        };
        match self.kind {
            Kind::Permission => {
                return Resolution::Permission(PermissionResolved {
                    request: Some(self.id),
                    call: self.call,
                    decision: if allowed { Decision::Allowed } else { Decision::Denied },
                    reason: message,
                    ..PermissionResolved::default()
                });
            }
            Kind::Question(questions) => {
                let input = answer.updated_input.unwrap_or_default();
                answered.answers = answers(
                    input.answers.as_ref().filter(|_| allowed),
                    input.annotations.as_ref(),
                    &questions,
                );
                // The program accepts an unanswered question.
                answered.declined |= answered.answers.is_empty();
            }
            Kind::Plan => (answered.answers, answered.declined) = (plan_answer(allowed), false),
            Kind::Form => answered.form = answer.content.filter(|_| accepted),
        }
        answered.reason = message.filter(|_| !allowed);
        Resolution::Question(answered)
    }

    /// The answer to a question, from the result of the tool that asked it.
    fn answered_by_result<'a>(self, ended: &ToolEnded<'a>, accepted: bool) -> QuestionAnswered<'a> {
        let mut answered = QuestionAnswered {
            request: self.id,
            call: self.call,
            declined: !accepted,
            ..QuestionAnswered::default()
        };
        match &self.kind {
            Kind::Plan => (answered.answers, answered.declined) = (plan_answer(accepted), false),
            Kind::Question(questions) if accepted => {
                let result =
                    ended.structured.as_ref().and_then(read::record_of::<QuestionInput<'_>>);
                let result = result.unwrap_or_default();
                answered.answers =
                    answers(result.answers.as_ref(), result.annotations.as_ref(), questions);
            }
            _ => {}
        }
        answered
    }
}

/// The question whether a plan is approved.
fn plan_question<'a>(id: Text<'a>, request: ControlRequest<'a>) -> QuestionAsked<'a> {
    let input = request.input.as_ref().and_then(read::record_of::<QuestionInput<'_>>);
    let option = |label| QuestionOption { label: Text::plain(label), ..QuestionOption::default() };
    let question = Question {
        id: Text::plain(PLAN),
        text: Text::plain("Approve the plan?"),
        options: vec![option(APPROVE_PLAN), option(KEEP_PLANNING)],
        // What is typed is for the model, which continues to plan.
        free_text: true,
        ..Question::default()
    };
    QuestionAsked {
        request: id,
        call: request.tool_use_id,
        message: input.and_then(|input| input.plan).map(Text::into_owned),
        questions: vec![question],
        ..QuestionAsked::default()
    }
}

fn plan_answer(approved: bool) -> Vec<QuestionAnswer<'static>> {
    let label = if approved { APPROVE_PLAN } else { KEEP_PLANNING };
    vec![QuestionAnswer { question: Text::plain(PLAN), values: vec![Text::plain(label)] }]
}

/// The answers to questions, each with what the user added to it.
fn answers(
    answers: Option<&Json<'_>>,
    annotations: Option<&Json<'_>>,
    questions: &[Question<'_>],
) -> Vec<QuestionAnswer<'static>> {
    let mut list = answers.map(|it| read_answers(it, questions)).unwrap_or_default();
    let annotations = annotations.and_then(read::record_of::<Fields<'_>>).unwrap_or_default();
    for (name, annotation) in &annotations.0 {
        let notes = read::record_of::<Annotation<'_>>(annotation).and_then(|it| it.notes);
        let answer = list.iter_mut().find(|answer| answer.question == **name);
        if let (Some(notes), Some(answer)) = (notes.filter(|notes| !notes.is_empty()), answer) {
            answer.values.push(notes.into_owned());
        }
    }
    list
}
