//! The requests of the program that the user answers, and how an answer is written.

use interlingua::dialect::claude::{APPROVE_PLAN, KEEP_PLANNING};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::json_rpc::set;
use super::super::{Answer, Step};
use super::ControlRequest;

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct Pending {
    input: Box<RawValue>,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A permission for a tool.
    Tool,
    /// Questions, of which these are the texts; the answers are named by them.
    Questions(Vec<String>),
    /// A plan that the user may approve.
    Plan,
    /// A form or an address of an MCP server.
    Elicitation,
}

#[derive(Deserialize)]
struct Questions {
    #[serde(default)]
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    question: String,
}

impl Pending {
    pub(super) fn of(request: &ControlRequest<'_>) -> Option<Self> {
        let input = request.input.unwrap_or(RawValue::NULL);
        let kind = match (request.subtype.as_deref()?, request.tool_name.as_deref()) {
            ("can_use_tool", Some("AskUserQuestion")) => {
                let asked = serde_json::from_str::<Questions>(input.get());
                let questions = asked.map(|asked| asked.questions).unwrap_or_default();
                Kind::Questions(questions.into_iter().map(|it| it.question).collect())
            }
            ("can_use_tool", Some("ExitPlanMode")) => Kind::Plan,
            ("can_use_tool", _) => Kind::Tool,
            ("elicitation", _) => Kind::Elicitation,
            _ => return None,
        };
        Some(Self { input: input.to_owned(), kind })
    }

    /// The response that allows the tool, with a changed input.
    pub(super) fn allowed(&self, change: impl FnOnce(&mut Value)) -> Value {
        let mut input = serde_json::from_str(self.input.get()).unwrap_or_default();
        change(&mut input);
        json!({"behavior": "allow", "updatedInput": input})
    }

    pub(super) fn answer(&self, answer: &Answer) -> Value {
        match (&self.kind, answer) {
            (Kind::Elicitation, Answer::Form(content)) => {
                json!({"action": "accept", "content": content})
            }
            (Kind::Elicitation, Answer::Chosen(_)) => json!({"action": "accept", "content": {}}),
            (Kind::Elicitation, _) => json!({"action": "decline"}),
            (Kind::Questions(questions), Answer::Chosen(chosen)) => {
                let pairs = questions.iter().zip(chosen);
                let answers: Map<_, _> = pairs
                    .map(|(question, chosen)| (question.clone(), json!(chosen.join(", "))))
                    .collect();
                self.allowed(|input| set(input, "answers", answers))
            }
            (Kind::Plan, Answer::Chosen(chosen)) => {
                let words = chosen.iter().flatten().map(String::as_str).collect::<Vec<_>>();
                match words.as_slice() {
                    [APPROVE_PLAN] => self.allowed(|_| {}),
                    [] | [KEEP_PLANNING] => denied("the user wants to keep planning"),
                    words => denied(&words.join("; ")),
                }
            }
            (_, Answer::Declined(reason)) => denied(reason),
            (_, _) => denied("the answer does not fit the question"),
        }
    }
}

pub(super) fn denied(why: &str) -> Value {
    json!({"behavior": "deny", "message": why})
}

pub(super) fn respond(request: &str, answer: &Value) -> Step {
    Step::Send(response(request, &json!({"response": answer, "subtype": "success"})))
}

pub(super) fn refusal(id: &str, subtype: &str) -> String {
    let error = format!("{subtype} is not supported by this host");
    response(id, &json!({"subtype": "error", "error": error}))
}

fn response(id: &str, body: &Value) -> String {
    let mut response = json!({"request_id": id});
    if let (Some(into), Some(from)) = (response.as_object_mut(), body.as_object()) {
        into.extend(from.clone());
    }
    json!({"type": "control_response", "response": response}).to_string()
}
