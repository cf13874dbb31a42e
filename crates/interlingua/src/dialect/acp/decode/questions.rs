//! Questions of the agent: the forms of the protocol, and those of Qwen, which have the form of a
//! permission request.

use super::calls::OpenCall;
use super::permissions::{Choice, choices};
use super::{AcpDecoder, AgentRequest, meta_of, request_id};
use crate::dialect::EventSink;
use crate::dialect::acp::form;
use crate::dialect::acp::wire::{Params, ResponseResult, Selected};
use crate::dialect::acp::wire_meta::Meta;
use crate::dialect::questions::{AnswerKey, read_answers, read_questions};
use crate::event::{Event, Question, QuestionAnswered, QuestionAsked, own_questions};
use crate::json::{Json, Text};

/// Questions that have no answer yet.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PendingQuestion {
    request: Text<'static>,
    call: Option<Text<'static>>,
    questions: Vec<Question<'static>>,
    /// The options of the permission request in which they were asked.
    choices: Vec<Choice>,
}

impl AcpDecoder {
    /// Reads a form, or an address that the user has to open.
    pub(super) fn read_form(
        &mut self,
        id: Option<&Json<'_>>,
        params: Params<'_>,
        sink: &mut dyn EventSink,
    ) {
        self.release_held_text(sink);
        self.enter_turn(false, false, params.session.as_ref(), sink);
        self.end_block(sink);
        let ours = meta_of(&params.meta).and_then(|meta| meta.ours).unwrap_or_default();
        let questions = ours.questions.as_ref().and_then(Json::read::<Vec<Question<'_>>>);
        let questions = questions.unwrap_or_default();
        // The form of Interlingua's own encoder is made of the questions.
        let is_own_form = !questions.is_empty();
        let asked = QuestionAsked {
            request: ours.request.or(id.map(request_id)).unwrap_or_default(),
            call: params.call_id,
            native_call: None,
            message: if is_own_form { ours.message } else { params.message },
            server: ours.server,
            schema: params.schema.filter(|_| !is_own_form && params.url.is_none()),
            url: params.url,
            questions,
        };
        if let Some(id) = id {
            let pending = PendingQuestion {
                request: asked.request.clone().into_owned(),
                call: asked.call.clone().map(Text::into_owned),
                questions: own_questions(asked.questions.clone()),
                choices: Vec::new(),
            };
            self.remember_agent_request(id, AgentRequest::Question(pending));
        }
        sink.event(Event::new(asked));
    }

    /// Whether a permission request is a question.
    pub(super) fn is_question(&self, meta: &Meta<'_>) -> bool {
        meta.interaction.as_ref().is_some_and(|kind| *kind == "user_question")
    }

    /// Emits the questions of a permission request that is none.
    pub(super) fn ask(
        &mut self,
        id: Option<&Json<'_>>,
        call: OpenCall,
        meta: &Meta<'_>,
        options: Option<&Json<'_>>,
        sink: &mut dyn EventSink,
    ) {
        let request = id.map(request_id).unwrap_or_default().into_owned();
        let questions = read_questions(meta.questions.as_ref(), AnswerKey::Index, true);
        let asked = QuestionAsked {
            request: request.borrowed(),
            call: Some(call.id.borrowed()),
            questions: questions.clone(),
            ..QuestionAsked::default()
        };
        sink.event(Event::new(asked).within(call.parent.clone()));
        if let Some(id) = id {
            let pending = PendingQuestion {
                request,
                call: Some(call.id.clone()),
                questions,
                choices: choices(options),
            };
            self.remember_agent_request(id, AgentRequest::Question(pending));
        }
        self.calls.open.insert(call.id.to_plain().into_owned(), call);
    }

    /// Reads the answers to the questions of a permission request.
    pub(super) fn read_question_response(
        &mut self,
        question: PendingQuestion,
        selected: &Selected<'_>,
        answers: Option<&Json<'_>>,
        sink: &mut dyn EventSink,
    ) {
        let PendingQuestion { request, call, questions, choices } = question;
        let is_selected = selected.outcome.as_ref().is_some_and(|outcome| *outcome == "selected");
        let denied = choices.iter().any(|choice| choice.denies(selected.option.as_ref()));
        let answers = answers.filter(|_| is_selected && !denied);
        let answers = answers.map(|it| read_answers(it, &questions)).unwrap_or_default();
        if let Some(call) = &call {
            self.calls.record_decision(call, is_selected && !denied);
        }
        sink.event(Event::new(QuestionAnswered {
            request,
            call,
            declined: answers.is_empty(),
            answers,
            ..QuestionAnswered::default()
        }));
    }
}

impl PendingQuestion {
    /// Emits the user's answer to a form.
    pub(super) fn emit_form_answer(self, result: &ResponseResult<'_>, sink: &mut dyn EventSink) {
        let accepted = result.action.as_ref().is_some_and(|action| *action == "accept");
        let content = result.content.as_ref().filter(|_| accepted);
        let answers = content.map(|content| form::answers(content, &self.questions));
        let form = content.filter(|_| self.questions.is_empty());
        sink.event(Event::new(QuestionAnswered {
            request: self.request,
            call: self.call,
            answers: answers.unwrap_or_default(),
            form: form.map(Json::borrowed),
            declined: !accepted,
            reason: None,
        }));
    }
}
