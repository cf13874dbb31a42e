//! What an agent wants from the user: a permission, or an answer to a question.

use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::sync::mpsc;

use super::Refused;
use crate::driver::Answer;
use crate::permission::PermissionRequest;

/// Something that the user has to decide or to answer.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// What the agent wants.
    pub wanted: Wanted,
    /// The sequence number of the entry that requests it.
    pub sequence: u64,
    /// Alive for as long as the session waits.
    pending: Weak<()>,
}

impl InputRequest {
    /// Whether the session still waits: the request may time out, or be withdrawn.
    pub fn is_pending(&self) -> bool {
        self.pending.strong_count() > 0
    }

    /// The id of the request.
    pub fn id(&self) -> &str {
        self.wanted.id()
    }
}

/// What an agent wants from the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Wanted {
    /// A decision.
    Permission(PermissionRequest),
    /// An answer.
    Answer(QuestionRequest),
    /// The result of a tool that the client runs. It is answered with any value, or declined with a
    /// reason, which the model sees as an error.
    Call(ClientCall),
}

impl Wanted {
    /// The id of the request.
    pub fn id(&self) -> &str {
        match self {
            Self::Permission(request) => &request.id,
            Self::Answer(request) => &request.id,
            Self::Call(call) => &call.id,
        }
    }

    fn is_called(&self, name: &str) -> bool {
        let (id, call) = match self {
            Self::Permission(request) => (&request.id, &request.call),
            Self::Answer(request) => (&request.id, &request.call),
            Self::Call(call) => return call.id == name,
        };
        id == name || call.iter().any(|call| call == name)
    }
}

/// A call of a tool that the client runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCall {
    /// The id of the call.
    pub id: String,
    /// The client's own name of the tool.
    pub tool: String,
    /// The input, as JSON.
    pub input: String,
}

/// One or more questions of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuestionRequest {
    /// The id of the request, which the answer must carry.
    pub id: String,
    /// The tool call that waits for the answer, by its emitted and its native id.
    pub call: Vec<String>,
    /// The text that introduces the questions.
    pub message: Option<String>,
    /// The MCP server that asks, if it is not the agent itself.
    pub server: Option<String>,
    /// The questions.
    pub questions: Vec<Question>,
    /// The JSON schema of a form, if the answer is an object that has to fit it.
    pub schema: Option<Value>,
    /// The fields of the form whose values are secrets.
    pub secret_fields: Vec<String>,
    /// An address that the user has to open.
    pub url: Option<String>,
}

/// One question of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The key under which the agent expects the answer.
    pub id: String,
    /// A short title.
    pub header: Option<String>,
    /// The question.
    pub text: String,
    /// The answers that the agent offers, with their descriptions.
    pub options: Vec<(String, Option<String>)>,
    /// Several options may be chosen.
    pub multiple: bool,
    /// An answer that is not one of the options is possible.
    pub free_text: bool,
    /// The answer is a secret.
    pub secret: bool,
}

impl QuestionRequest {
    /// Reads an answer. The error states what is needed.
    pub fn read(&self, answer: &Value) -> Result<Answer, String> {
        if self.schema.is_some() {
            return match answer {
                Value::Object(_) => Ok(Answer::Form(answer.clone())),
                _ => Err("an object that fits the requested schema".to_owned()),
            };
        }
        match (&*self.questions, answer) {
            ([], _) => Ok(Answer::Chosen(Vec::new())),
            (questions, Value::Object(fields)) => {
                let by_name = |question: &Question| {
                    fields.get(&question.id).or_else(|| fields.get(&question.text))
                };
                let named = questions.iter().map(|question| {
                    let given = by_name(question)
                        .ok_or_else(|| format!("an answer to {:?}", question.text))?;
                    question.read(given)
                });
                named.collect::<Result<_, _>>().map(Answer::Chosen)
            }
            ([question], given) => Ok(Answer::Chosen(vec![question.read(given)?])),
            (questions, Value::Array(given)) if given.len() == questions.len() => {
                let both = questions.iter().zip(given);
                let read = both.map(|(question, given)| question.read(given));
                read.collect::<Result<_, _>>().map(Answer::Chosen)
            }
            (questions, _) => {
                let ids: Vec<_> = questions.iter().map(|question| &*question.id).collect();
                Err(format!("an object with the answers to {}", ids.join(", ")))
            }
        }
    }
}

impl QuestionRequest {
    /// The secrets in an answer, as JSON literals.
    pub(crate) fn secrets(&self, answer: &Answer) -> Vec<String> {
        match answer {
            Answer::Chosen(chosen) => {
                let both =
                    self.questions.iter().zip(chosen).filter(|(question, _)| question.secret);
                both.flat_map(|(_, texts)| texts)
                    .map(|text| Value::from(&**text).to_string())
                    .collect()
            }
            Answer::Form(form) => {
                let values = self.secret_fields.iter().filter_map(|name| form.get(name));
                values.map(ToString::to_string).collect()
            }
            Answer::Declined(_) => Vec::new(),
        }
    }
}

impl Question {
    /// Reads the answer to this question: a text, or a list of texts.
    fn read(&self, answer: &Value) -> Result<Vec<String>, String> {
        let labels = || {
            let labels: Vec<_> =
                self.options.iter().map(|(label, _)| format!("{label:?}")).collect();
            labels.join(", ")
        };
        let chosen = match answer {
            Value::String(text) => vec![text.clone()],
            Value::Array(texts) => {
                let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<_>>>().ok_or("a list of texts")?
            }
            _ => return Err(format!("a text for {:?}", self.text)),
        };
        if chosen.len() != 1 && !self.multiple {
            return Err(format!("one answer to {:?}", self.text));
        }
        let is_offered = |text: &String| self.options.iter().any(|(label, _)| label == text);
        if !self.free_text && !self.options.is_empty() && !chosen.iter().all(is_offered) {
            return Err(format!("one of {}", labels()));
        }
        Ok(chosen)
    }
}

impl ClientCall {
    /// The answer to a call that no client can run.
    pub(crate) const NO_CLIENT: &str = "no client is connected that could run this tool";

    /// The answer to a call that was refused without a reason.
    pub(crate) const REFUSED: &str = "the user refused it";

    /// The answer to a call that the client has not answered in time.
    pub(crate) const OVERDUE: &str = "the user has not answered in time";
}

/// The requests that wait for the user.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    open: Vec<(Wanted, Arc<()>)>,
}

impl PendingRequests {
    /// Adds a request. The result is for the user.
    pub(crate) fn add(&mut self, wanted: Wanted, sequence: u64) -> InputRequest {
        let alive = Arc::new(());
        let pending = Arc::downgrade(&alive);
        self.open.push((wanted.clone(), alive));
        InputRequest { wanted, sequence, pending }
    }

    /// Finds a request by its id, or by that of its tool call.
    pub(crate) fn find(&self, name: &str) -> Result<&Wanted, Refused> {
        let by_id = self.open.iter().find(|(wanted, _)| wanted.id() == name);
        let found = by_id.or_else(|| self.open.iter().find(|(wanted, _)| wanted.is_called(name)));
        found.map(|(wanted, _)| wanted).ok_or_else(|| Refused::UnknownRequest {
            id: name.to_owned(),
            pending: self.open.iter().map(|(wanted, _)| wanted.id().to_owned()).collect(),
        })
    }

    /// Removes a request that was answered or withdrawn.
    pub(crate) fn remove(&mut self, id: &str) {
        self.open.retain(|(wanted, _)| wanted.id() != id);
    }

    /// All requests that wait.
    pub(crate) fn all(&self) -> Vec<Wanted> {
        self.open.iter().map(|(wanted, _)| wanted.clone()).collect()
    }

    /// The permission requests that wait.
    pub(crate) fn permissions(&self) -> impl Iterator<Item = &PermissionRequest> {
        self.open.iter().filter_map(|(wanted, _)| match wanted {
            Wanted::Permission(request) => Some(request),
            Wanted::Answer(_) | Wanted::Call(_) => None,
        })
    }

    /// Forgets everything, because the agent that asked is gone.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

/// Waits until the user is not available any more.
pub(crate) async fn no_user(requests: Option<&mpsc::UnboundedSender<InputRequest>>) {
    match requests {
        Some(requests) => requests.closed().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(id: &str, multiple: bool, free_text: bool) -> Question {
        Question {
            id: id.to_owned(),
            text: format!("Which {id}?"),
            options: vec![("Red".to_owned(), None), ("Blue".to_owned(), None)],
            multiple,
            free_text,
            ..Question::default()
        }
    }

    fn asked(questions: Vec<Question>) -> QuestionRequest {
        QuestionRequest { id: "q".to_owned(), questions, ..QuestionRequest::default() }
    }

    fn chosen(answers: &[&[&str]]) -> Answer {
        let texts = |texts: &&[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Answer::Chosen(answers.iter().map(texts).collect())
    }

    #[test]
    fn an_answer_is_read_in_every_form() {
        let one = asked(vec![question("colour", false, false)]);
        for given in [json!("Blue"), json!(["Blue"]), json!({"colour": "Blue"})] {
            assert_eq!(one.read(&given), Ok(chosen(&[&["Blue"]])), "{given}");
        }
        let two = asked(vec![question("colour", false, false), question("shape", true, true)]);
        let given = [
            json!({"Which colour?": "Red", "shape": ["Dot", "Blue"]}),
            json!(["Red", ["Dot", "Blue"]]),
        ];
        for given in given {
            assert_eq!(two.read(&given), Ok(chosen(&[&["Red"], &["Dot", "Blue"]])), "{given}");
        }
    }

    #[test]
    fn a_wrong_answer_is_explained() {
        let one = asked(vec![question("colour", false, false)]);
        assert_eq!(one.read(&json!("Green")), Err("one of \"Red\", \"Blue\"".to_owned()));
        assert!(one.read(&json!(7)).is_err() && one.read(&json!(["Red", "Blue"])).is_err());
        let two = asked(vec![question("a", false, true), question("b", false, true)]);
        assert_eq!(two.read(&json!("x")), Err("an object with the answers to a, b".to_owned()));
        assert!(two.read(&json!({"a": "x"})).unwrap_err().contains("Which b?"));
        let form = QuestionRequest { schema: Some(json!({})), ..asked(Vec::new()) };
        assert!(form.read(&json!("x")).is_err());
        assert_eq!(form.read(&json!({"x": 1})), Ok(Answer::Form(json!({"x": 1}))));
    }

    #[test]
    fn secrets_are_found_in_every_form_of_an_answer() {
        let secret = Question { secret: true, ..question("key", false, true) };
        let asked = asked(vec![question("colour", false, true), secret]);
        assert_eq!(asked.secrets(&chosen(&[&["Red"], &["a\"b"]])), [r#""a\"b""#]);
        let form = QuestionRequest {
            schema: Some(json!({})),
            secret_fields: vec!["pin".to_owned()],
            ..QuestionRequest::default()
        };
        assert_eq!(form.secrets(&Answer::Form(json!({"name": "x", "pin": 1234}))), ["1234"]);
        assert!(form.secrets(&Answer::Declined("no".to_owned())).is_empty());
    }

    #[test]
    fn a_request_is_found_by_its_id_or_its_call() {
        let mut pending = PendingRequests::default();
        let wanted = QuestionRequest { call: vec!["c1".to_owned()], ..asked(Vec::new()) };
        let request = pending.add(Wanted::Answer(wanted), 3);
        assert!(pending.find("q").is_ok() && pending.find("c1").is_ok());
        let refused = pending.find("x").unwrap_err().to_string();
        assert!(refused.contains("`x`") && refused.contains('q'), "{refused}");
        assert!(request.is_pending());
        pending.remove("q");
        assert!(!request.is_pending() && pending.find("c1").is_err());
    }
}
