//! Permission requests and questions to the user.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// The agent requests permission for a call or another action.
    pub struct PermissionRequested<'a> {
        /// The request's id, which the answer has to contain.
        pub request: Text<'a>,
        /// The call that waits for the answer.
        pub call: Option<Text<'a>>,
        /// The agent's own id for the call, if the call was renamed.
        pub native_call: Option<Text<'a>>,
        /// The tool; completed by the grammar.
        pub tool: Option<Text<'a>>,
        /// The text to show to the user.
        pub description: Option<Text<'a>>,
        /// The input of the call; completed by the grammar.
        pub input: Option<Json<'a>>,
        /// The possible answers, as the agent offers them.
        pub options: Option<Json<'a>>,
    }
}

payload! {
    /// A permission request was allowed or denied.
    pub struct PermissionResolved<'a> {
        /// The request's id, if there was a request.
        pub request: Option<Text<'a>>,
        /// The call.
        pub call: Option<Text<'a>>,
        /// The tool; completed by the grammar.
        pub tool: Option<Text<'a>>,
        /// The decision.
        pub decision: Decision,
        /// Who decided, as the agent names it.
        pub by: Option<Text<'a>>,
        /// The cause, for a person to read.
        pub reason: Option<Text<'a>>,
    }
}

payload! {
    /// The agent asks the user one or several questions, or to fill in a form.
    pub struct QuestionAsked<'a> {
        /// The request's id, which the answer has to contain.
        pub request: Text<'a>,
        /// The call that waits for the answer.
        pub call: Option<Text<'a>>,
        /// The agent's own id for the call, if the call was renamed.
        pub native_call: Option<Text<'a>>,
        /// The text that introduces all questions, if there is one: the message of an MCP server, or
        /// a plan to approve.
        pub message: Option<Text<'a>>,
        /// Who asks, if it is not the agent itself: the name of an MCP server.
        pub server: Option<Text<'a>>,
        /// The questions, in the order in which they are asked.
        pub questions: Vec<Question<'a>>,
        /// The JSON schema of a form. The answer is then an object that fits it.
        pub schema: Option<Json<'a>>,
        /// The address that the user has to open.
        pub url: Option<Text<'a>>,
    }
}

impl QuestionAsked<'_> {
    /// The fields of the form that its schema marks as secret.
    #[must_use]
    pub fn secret_fields(&self) -> Vec<Box<str>> {
        self.schema.as_ref().map(crate::grammar::secret_fields).unwrap_or_default()
    }
}

payload! {
    /// One question.
    pub struct Question<'a> {
        /// The key under which the agent expects the answer: an id, the text of the question, or its
        /// index.
        pub id: Text<'a>,
        /// A title of a few words.
        pub header: Option<Text<'a>>,
        /// The question.
        pub text: Text<'a>,
        /// The possible answers. Without any, the answer is free text.
        pub options: Vec<QuestionOption<'a>>,
        /// Several options can be chosen.
        pub multiple: bool,
        /// An answer outside the options is allowed.
        pub free_text: bool,
        /// The answer is a secret, which is neither shown nor part of an event.
        pub secret: bool,
    }
}

payload! {
    /// A possible answer to a question.
    pub struct QuestionOption<'a> {
        /// The text to choose, which is also the answer.
        pub label: Text<'a>,
        /// What the option means.
        pub description: Option<Text<'a>>,
        /// An example of what the option leads to.
        pub preview: Option<Text<'a>>,
    }
}

payload! {
    /// The user answered questions, or declined to.
    pub struct QuestionAnswered<'a> {
        /// The request's id.
        pub request: Text<'a>,
        /// The call that waited for the answer; completed by the grammar.
        pub call: Option<Text<'a>>,
        /// The answers, in the order of the questions, as far as they are known.
        pub answers: Vec<QuestionAnswer<'a>>,
        /// The content of a form, without the fields that its schema marks as secret.
        pub form: Option<Json<'a>>,
        /// The questions were not answered: the user declined, or the agent no longer asks.
        pub declined: bool,
        /// The cause, for a person to read.
        pub reason: Option<Text<'a>>,
    }
}

payload! {
    /// The answer to one question.
    pub struct QuestionAnswer<'a> {
        /// The id of the question.
        pub question: Text<'a>,
        /// What was chosen or typed; left out if the answer is a secret.
        pub values: Vec<Text<'a>>,
    }
}

open_enum! {
    /// The decision.
    #[derive(Default)]
    pub enum Decision {
        /// Allowed.
        Allowed = "allowed",
        /// Denied.
        #[default]
        Denied = "denied",
        /// The request was cancelled.
        Withdrawn = "withdrawn",
    }
}

owned!(Decision);
