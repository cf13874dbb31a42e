//! Converts the questions of an agent to a form of the protocol (`elicitation/create`).

use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// A form for the user to fill in.
pub(super) struct Form<'a> {
    pub(super) message: Text<'a>,
    /// The fields of the form, as a JSON schema.
    pub(super) schema: Bytes,
}

record! {
    /// A form of an MCP server or of this protocol, which needs no conversion.
    struct Elicitation<'a> {
        message: text "message",
        schema: json "requestedSchema",
        params: record<ElicitationParams> "params",
    }
}

record! {
    struct ElicitationParams<'a> {
        message: text "message",
        schema: json "requestedSchema",
    }
}

record! {
    /// A question in the shape that coding agents use.
    struct Question<'a> {
        id: text "id",
        question: text "question",
        header: text "header",
        options: records<Choice> "options",
        choices: json "choices",
        several: flag "multiple" | "multiSelect",
    }
}

record! {
    struct Choice<'a> {
        label: text "label",
        description: text "description",
    }
}

impl<'a> Form<'a> {
    /// Converts questions to a form; `None` if their shape is unknown.
    pub(super) fn of(questions: &'a Json<'_>) -> Option<Self> {
        if let Some(list) = read::records_of::<Question<'a>>(questions) {
            return Self::from_questions(list);
        }
        let elicitation = read::record_of::<Elicitation<'a>>(questions)?;
        let ElicitationParams { message, schema } = elicitation.params.unwrap_or_default();
        let schema = elicitation.schema.or(schema).filter(Json::is_object);
        if let (Some(message), Some(schema)) = (elicitation.message.or(message), schema) {
            return Some(Self { message, schema: schema.get().into() });
        }
        Self::from_questions(vec![read::record_of::<Question<'a>>(questions)?])
    }

    fn from_questions(questions: Vec<Question<'a>>) -> Option<Self> {
        let texts: Vec<_> = questions.iter().filter_map(|it| it.question.clone()).collect();
        if texts.is_empty() || texts.len() < questions.len() {
            return None;
        }
        let mut schema = Bytes::new();
        let mut form = Object::open(&mut schema);
        form.fixed(r#""type":"object""#).object("properties", |properties| {
            for (at, question) in questions.iter().enumerate() {
                let mut property = Object::open(properties.escaped_name(&question.name(at)));
                question.write(&mut property);
                property.close();
            }
        });
        form.close();
        let message = match &*texts {
            [only] => only.clone(),
            several => {
                let lines: Vec<_> = several.iter().map(Text::to_plain).collect();
                Text::from(lines.join("\n"))
            }
        };
        Some(Self { message, schema })
    }
}

impl Question<'_> {
    /// The name of the answer: the id of the question, or else its position.
    fn name(&self, at: usize) -> String {
        match &self.id {
            Some(id) => id.to_string(),
            None => format!("answer_{}", at + 1),
        }
    }

    fn write(&self, property: &mut Object<'_>) {
        let several = self.several == Some(true);
        property.string("type", if several { "array" } else { "string" });
        property.text_if("title", self.header.as_ref());
        property.text_if("description", self.question.as_ref());
        let labels_only =
            self.choices.as_ref().and_then(Json::read::<Vec<Text<'_>>>).unwrap_or_default();
        let labels = self.options.iter().filter_map(|it| Some((it.label.as_ref()?, it)));
        let labels = labels.map(|(label, it)| (label, it.description.as_ref()));
        let choices: Vec<_> = labels.chain(labels_only.iter().map(|label| (label, None))).collect();
        let write_choice =
            |option: &mut Object<'_>, (label, description): (_, Option<&Text<'_>>)| {
                option.text("const", label).text("title", label);
                option.text_if("description", description);
            };
        if several {
            property.object("items", |items| {
                items.objects("anyOf", choices, write_choice);
            });
        } else if !choices.is_empty() {
            property.objects("oneOf", choices, write_choice);
        }
    }
}
