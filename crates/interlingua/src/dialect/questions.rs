//! Questions to the user in the shape that most agents share: a text, a header, and options with
//! labels. Agents differ in the key of an answer, and in what it may be.

use crate::event::{Question, QuestionAnswer, QuestionOption};
use crate::json::read::{self, Fields};
use crate::json::{Json, Text, record};

record! {
    /// A question, as agents write it.
    pub(super) struct WireQuestion<'a> {
        id: text "id",
        text: text "question",
        header: text "header",
        options: records<WireOption> "options",
        multiple: flag "multiSelect" | "multiple",
        free_text: flag "isOther" | "custom",
        secret: flag "isSecret",
    }
}

record! {
    /// A possible answer.
    pub(super) struct WireOption<'a> {
        label: text "label",
        description: text "description",
        preview: text "preview",
    }
}

/// The key under which an agent expects the answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKey {
    /// The id that the question has.
    Id,
    /// The text of the question.
    Text,
    /// The index of the question, from zero.
    Index,
}

/// Reads a list of questions. `free_text` is what an agent allows that does not state it.
pub(super) fn read_questions(
    questions: Option<&Json<'_>>,
    key: AnswerKey,
    free_text: bool,
) -> Vec<Question<'static>> {
    let list = questions.and_then(read::records_of::<WireQuestion<'_>>).unwrap_or_default();
    let question = |(index, question): (usize, WireQuestion<'_>)| {
        let text = question.text.unwrap_or_default().into_owned();
        let options: Vec<_> = question.options.into_iter().filter_map(option).collect();
        Question {
            id: match (key, question.id) {
                (AnswerKey::Id, Some(id)) => id.into_owned(),
                (AnswerKey::Text, _) => text.clone(),
                _ => Text::from(index.to_string()),
            },
            header: question.header.map(Text::into_owned),
            text,
            multiple: question.multiple.unwrap_or_default(),
            free_text: options.is_empty() || question.free_text.unwrap_or(free_text),
            options,
            secret: question.secret.unwrap_or_default(),
        }
    };
    list.into_iter().enumerate().map(question).collect()
}

fn option(option: WireOption<'_>) -> Option<QuestionOption<'static>> {
    Some(QuestionOption {
        label: option.label?.into_owned(),
        description: option.description.map(Text::into_owned),
        preview: option.preview.map(Text::into_owned),
    })
}

/// Reads answers that are the fields of an object, each a text or a list of texts. Several chosen
/// labels may be one text, separated by commas.
pub(super) fn read_answers(
    answers: &Json<'_>,
    questions: &[Question<'_>],
) -> Vec<QuestionAnswer<'static>> {
    let Fields(fields) = read::record_of::<Fields<'_>>(answers).unwrap_or_default();
    let answer = |(name, value): &(Box<str>, Json<'_>)| {
        let question = questions.iter().find(|question| question.id == **name);
        QuestionAnswer { question: Text::from(name.to_string()), values: values(value, question) }
    };
    fields.iter().map(answer).collect()
}

/// The answer to each question, from a list with a list of texts for each.
pub(super) fn read_answer_lists(answers: &Json<'_>) -> Vec<QuestionAnswer<'static>> {
    let lists = answers.read::<Vec<Json<'_>>>().unwrap_or_default();
    let answer = |(index, list): (usize, &Json<'_>)| QuestionAnswer {
        question: Text::from(index.to_string()),
        values: values(list, None),
    };
    lists.iter().enumerate().map(answer).collect()
}

/// The values of one answer.
fn values(value: &Json<'_>, question: Option<&Question<'_>>) -> Vec<Text<'static>> {
    let Some(text) = value.as_text() else {
        let list = value.read::<Vec<Json<'_>>>().unwrap_or_default();
        let texts = list.iter().filter_map(Json::as_text).filter(|text| !text.is_empty());
        return texts.map(Text::into_owned).collect();
    };
    if text.is_empty() {
        return Vec::new();
    }
    let labels = question.filter(|question| question.multiple);
    let labels = labels.and_then(|question| split_labels(&text.to_plain(), &question.options));
    labels.unwrap_or_else(|| vec![text.into_owned()])
}

/// Splits labels that are separated by commas; `None` if a part is not a label. A label may contain
/// a comma, so the longest one is tried first.
fn split_labels(text: &str, options: &[QuestionOption<'_>]) -> Option<Vec<Text<'static>>> {
    let mut labels: Vec<_> = options.iter().map(|option| option.label.to_plain()).collect();
    labels.sort_unstable_by_key(|label| std::cmp::Reverse(label.len()));
    let mut rest = text;
    let mut chosen = Vec::new();
    loop {
        let label = labels.iter().filter(|label| !label.is_empty()).find(|label| {
            let after = rest.strip_prefix(&***label);
            after.is_some_and(|after| after.is_empty() || after.starts_with(", "))
        })?;
        chosen.push(Text::from(label.to_string()));
        match rest.strip_prefix(&**label)?.strip_prefix(", ") {
            Some(more) => rest = more,
            None => return Some(chosen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'static> {
        Json::from_text(text.to_owned()).unwrap()
    }

    fn question() -> Vec<Question<'static>> {
        let list = r#"[{"question":"Which?","multiSelect":true,"options":[{"label":"A"},{"label":"A, B"},{"label":"C"}]}]"#;
        read_questions(Some(&json(list)), AnswerKey::Text, true)
    }

    fn chosen(answer: &str) -> Vec<String> {
        let answers = json(&format!(r#"{{"Which?":{answer}}}"#));
        let [answer] = &*read_answers(&answers, &question()) else { panic!() };
        answer.values.iter().map(Text::to_string).collect()
    }

    #[test]
    fn chosen_labels_are_told_apart() {
        assert_eq!(chosen(r#""A, C""#), ["A", "C"]);
        assert_eq!(chosen(r#""A, B, C""#), ["A, B", "C"]);
        assert_eq!(chosen(r#"["A","C"]"#), ["A", "C"]);
        assert_eq!(chosen(r#""""#), [""; 0]);
    }

    #[test]
    fn typed_text_is_one_answer() {
        assert_eq!(chosen(r#""A, or not""#), ["A, or not"]);
        assert_eq!(chosen(r#""A, ""#), ["A, "]);
    }

    #[test]
    fn a_question_without_options_takes_free_text() {
        let free = |list| {
            read_questions(Some(&json(list)), AnswerKey::Id, false).first().map(|it| it.free_text)
        };
        assert_eq!(free(r#"[{"question":"a","options":[{"label":"A"}]}]"#), Some(false));
        assert_eq!(
            free(r#"[{"question":"a","isOther":true,"options":[{"label":"A"}]}]"#),
            Some(true)
        );
        assert_eq!(free(r#"[{"question":"a","isOther":false,"options":null}]"#), Some(true));
        assert_eq!(free("{}"), None);
    }
}
