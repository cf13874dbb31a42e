//! Questions that the agent puts to the user: may I, and which one.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// The agent asks whether it may.
    pub struct PermissionRequested<'a> {
        /// The request's id: what the answer must name.
        pub request: Text<'a>,
        /// The call that waits.
        pub call: Option<Text<'a>>,
        /// The agent's own id for the call, where it was used before.
        pub native_call: Option<Text<'a>>,
        /// The tool; the grammar repeats it.
        pub tool: Option<Text<'a>>,
        /// What to tell the user.
        pub description: Option<Text<'a>>,
        /// What the tool would be given; the grammar repeats it.
        pub input: Option<Json<'a>>,
        /// What may be answered, as the agent offers it.
        pub options: Option<Json<'a>>,
    }
}

payload! {
    /// It may, or may not.
    pub struct PermissionResolved<'a> {
        /// The request's id, where there was a request.
        pub request: Option<Text<'a>>,
        /// The call.
        pub call: Option<Text<'a>>,
        /// The tool; the grammar repeats it.
        pub tool: Option<Text<'a>>,
        /// What was decided.
        pub decision: Decision,
        /// Who decided, in the agent's word.
        pub by: Option<Text<'a>>,
        /// Why, for a person to read.
        pub reason: Option<Text<'a>>,
    }
}

payload! {
    /// The agent asks the user something.
    pub struct QuestionAsked<'a> {
        /// The request's id: what the answer must name.
        pub request: Text<'a>,
        /// The call that waits.
        pub call: Option<Text<'a>>,
        /// The agent's own id for the call, where it was used before.
        pub native_call: Option<Text<'a>>,
        /// The questions, as the agent puts them.
        pub questions: Option<Json<'a>>,
    }
}

payload! {
    /// The user answered.
    pub struct QuestionAnswered<'a> {
        /// The request's id.
        pub request: Text<'a>,
        /// The answers.
        pub answers: Option<Json<'a>>,
    }
}

open_enum! {
    /// What was decided.
    #[derive(Default)]
    pub enum Decision {
        /// It may.
        Allowed = "allowed",
        /// It may not.
        #[default]
        Denied = "denied",
        /// The question was taken back.
        Withdrawn = "withdrawn",
    }
}

owned!(Decision);
