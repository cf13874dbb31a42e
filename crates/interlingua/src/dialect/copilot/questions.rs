//! Decodes Copilot's questions to the user, and the answers.

use super::wire::Details;
use crate::event::{Question, QuestionAnswer, QuestionAnswered, QuestionAsked, QuestionOption};
use crate::json::{Json, Text};

/// The id of the question of a request, which has no key of its own.
const ONLY_QUESTION: &str = "0";

/// A question, of which a request has only one.
pub(super) fn asked<'a>(details: &mut Details<'a>) -> QuestionAsked<'a> {
    let choices = details.choices.as_ref().and_then(Json::read::<Vec<Text<'_>>>);
    let option =
        |label: Text<'_>| QuestionOption { label: label.into_owned(), ..QuestionOption::default() };
    let options: Vec<_> = choices.unwrap_or_default().into_iter().map(option).collect();
    let question = Question {
        id: Text::plain(ONLY_QUESTION),
        text: details.question.take().unwrap_or_default(),
        free_text: options.is_empty() || details.free_text.unwrap_or(true),
        options,
        ..Question::default()
    };
    QuestionAsked {
        request: details.request.take().unwrap_or_default(),
        call: details.call.take(),
        questions: vec![question],
        ..QuestionAsked::default()
    }
}

/// The answer to a question. Without one, the user declined.
pub(super) fn answered<'a>(details: &mut Details<'a>) -> QuestionAnswered<'a> {
    let answer = details.answer.take();
    let values: Vec<_> =
        answer.as_ref().and_then(Json::as_text).map(Text::into_owned).into_iter().collect();
    let declined = values.is_empty();
    let answer = QuestionAnswer { question: Text::plain(ONLY_QUESTION), values };
    QuestionAnswered {
        request: details.request.take().unwrap_or_default(),
        answers: if declined { Vec::new() } else { vec![answer] },
        declined,
        ..QuestionAnswered::default()
    }
}
