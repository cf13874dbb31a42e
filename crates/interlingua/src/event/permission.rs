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
    /// The agent asks the user a question.
    pub struct QuestionAsked<'a> {
        /// The request's id, which the answer has to contain.
        pub request: Text<'a>,
        /// The call that waits for the answer.
        pub call: Option<Text<'a>>,
        /// The agent's own id for the call, if the call was renamed.
        pub native_call: Option<Text<'a>>,
        /// The questions, as the agent wrote them.
        pub questions: Option<Json<'a>>,
    }
}

payload! {
    /// The user answered a question.
    pub struct QuestionAnswered<'a> {
        /// The request's id.
        pub request: Text<'a>,
        /// The answers.
        pub answers: Option<Json<'a>>,
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
