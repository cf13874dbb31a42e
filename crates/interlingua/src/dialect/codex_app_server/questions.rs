//! Questions of the agent and forms of MCP servers, and the client's answers.

use super::wire::{Params, ResponseResult};
use crate::dialect::questions::{AnswerKey, read_questions};
use crate::event::{QuestionAnswer, QuestionAnswered, QuestionAsked};
use crate::json::read::{self, Fields};
use crate::json::{Json, Text, record};

record! {
    /// The answer to one question.
    struct Answer<'a> {
        answers: json "answers",
    }
}

/// The questions of the agent, or the form of an MCP server.
pub(super) fn asked<'a>(request: Text<'a>, params: &Params<'a>) -> QuestionAsked<'a> {
    QuestionAsked {
        request,
        call: params.item_id.clone(),
        native_call: None,
        message: params.message.clone(),
        server: params.server.clone(),
        questions: read_questions(params.questions.as_ref(), AnswerKey::Id, false),
        schema: params.schema.clone().filter(|_| params.url.is_none()),
        url: params.url.clone(),
    }
}

/// The client's answers to the questions, or the content of the form.
pub(super) fn answered<'a>(request: Text<'a>, result: &ResponseResult<'a>) -> QuestionAnswered<'a> {
    let answers = result.answers.as_ref().map(answers).unwrap_or_default();
    let declined = match result.action.as_ref().map(Text::body) {
        Some(action) => action != "accept",
        None => answers.is_empty(),
    };
    QuestionAnswered {
        request,
        answers,
        form: result.content.clone().filter(|_| !declined),
        declined,
        ..QuestionAnswered::default()
    }
}

fn answers(answers: &Json<'_>) -> Vec<QuestionAnswer<'static>> {
    let Fields(fields) = read::record_of::<Fields<'_>>(answers).unwrap_or_default();
    let answer = |(name, value): &(Box<str>, Json<'_>)| {
        let answer = read::record_of::<Answer<'_>>(value).unwrap_or_default();
        let values = answer.answers.as_ref().and_then(Json::read::<Vec<Text<'_>>>);
        QuestionAnswer {
            question: Text::from(name.to_string()),
            values: values.unwrap_or_default().into_iter().map(Text::into_owned).collect(),
        }
    };
    fields.iter().map(answer).collect()
}
