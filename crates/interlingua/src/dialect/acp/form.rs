//! The form of the protocol (`elicitation/create`) for questions of an agent, and the answers in the
//! content of one.

use crate::event::{Question, QuestionAnswer, QuestionAsked, QuestionOption};
use crate::json::read::{self, Fields};
use crate::json::write::Object;
use crate::json::{Json, Text};

/// The text that introduces a form. It contains the text of all questions.
pub(super) fn message(asked: &QuestionAsked<'_>) -> Text<'static> {
    let introduction = asked.message.iter().map(Text::to_plain);
    let questions = asked.questions.iter().map(|question| question.text.to_plain());
    let lines: Vec<_> = introduction.chain(questions).filter(|line| !line.is_empty()).collect();
    Text::from(lines.join("\n"))
}

/// The fields of a form for questions, as a JSON schema.
pub(super) fn schema(questions: &[Question<'_>]) -> Json<'static> {
    Json::object(|form| {
        form.fixed(r#""type":"object""#).object("properties", |properties| {
            for (at, question) in questions.iter().enumerate() {
                let mut property = Object::open(properties.escaped_name(&field_name(question, at)));
                write_field(question, &mut property);
                property.close();
            }
        });
    })
}

/// The answers in the content of a form for questions.
pub(super) fn answers(
    content: &Json<'_>,
    questions: &[Question<'_>],
) -> Vec<QuestionAnswer<'static>> {
    let Fields(fields) = read::record_of::<Fields<'_>>(content).unwrap_or_default();
    let answer = |(at, question): (usize, &Question<'_>)| {
        let name = field_name(question, at);
        let (_, value) = fields.iter().find(|(field, _)| **field == *name)?;
        let values = match value.as_text() {
            Some(text) => vec![text.into_owned()],
            None => {
                let list: Vec<Text<'_>> = value.read()?;
                list.into_iter().map(Text::into_owned).collect()
            }
        };
        Some(QuestionAnswer { question: question.id.clone().into_owned(), values })
    };
    questions.iter().enumerate().filter_map(answer).collect()
}

/// The name of the field for an answer: the id of the question if it is a name, or else its
/// position.
fn field_name(question: &Question<'_>, at: usize) -> String {
    let id = question.id.to_plain();
    let is_name = id.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && id.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
    if is_name { id.into_owned() } else { format!("answer_{}", at + 1) }
}

/// Writes the field for an answer.
fn write_field(question: &Question<'_>, field: &mut Object<'_>) {
    field.string("type", if question.multiple { "array" } else { "string" });
    field.text_if("title", question.header.as_ref());
    field.text("description", &question.text);
    let write_option = |option: &mut Object<'_>, it: &QuestionOption<'_>| {
        option.text("const", &it.label).text("title", &it.label);
        option.text_if("description", it.description.as_ref());
    };
    if question.multiple {
        field.object("items", |items| {
            items.objects("anyOf", &question.options, write_option);
        });
    } else if !question.options.is_empty() {
        field.objects("oneOf", &question.options, write_option);
    }
    if question.secret {
        field.fixed(r#""format":"password","writeOnly":true"#);
    }
}
