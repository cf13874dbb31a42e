//! The history of a conversation: what every request repeats.
//!
//! It is append-only. Current models bind their reasoning to everything before it, so nothing that
//! was sent is ever changed. An answer of the model is kept twice: as the provider wrote it, which
//! is sent back unchanged to the same model API, and as text and calls, which any other one can take.
//!
//! It is a sequence of [records](Record), which are stored in the log of the session. A resumed
//! session applies them again, so that it sends exactly what the session before would have sent:
//! events alone do not tell what became of an answer that was refused, interrupted or cut off.

use interlingua::json::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::model::ApiKind;
/// A part of what the user or a tool contributes.
pub(crate) use crate::tool::Content as Part;

/// A step of the history, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// A prompt of the user.
    User(Vec<Part>),
    /// An answer of the model.
    Answer(Answer),
    /// The result of a call of the answer before it. Results are stored as they become known.
    Result(CallResult),
    /// The older turns were replaced by this summary.
    Compacted(String),
    /// The system prompt or the tools have changed, so that the reasoning so far is not valid.
    ReasoningDropped,
}

/// An item of the history.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A prompt of the user.
    User(Vec<Part>),
    /// An answer of the model.
    Answer(Answer),
    /// The results of all calls of the answer before it, in their order.
    Results(Vec<CallResult>),
}

/// An answer of the model.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Its text and its calls, in order.
    pub(crate) content: Vec<Content>,
    /// The answer as the provider wrote it, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) native: Option<NativeAnswer>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    /// Text for the user.
    Text(String),
    /// A call of a tool.
    Call(AnswerCall),
}

/// A call in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AnswerCall {
    /// The provider's id, by which the result is found; made up if the provider gave none.
    pub(crate) id: String,
    /// The provider gave no id.
    #[serde(default)]
    pub(crate) unnamed: bool,
    pub(crate) name: String,
    pub(crate) input: Value,
    /// The model wrote arguments that are no JSON object, so that the call cannot be run. Its input
    /// is empty, because not every server takes them back.
    #[serde(default)]
    pub(crate) malformed: bool,
}

/// An answer as the provider wrote it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NativeAnswer {
    pub(crate) api: ApiKind,
    pub(crate) model: String,
    /// Messages, or items, in the form in which a request repeats them.
    pub(crate) messages: Vec<Box<RawValue>>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallResult {
    /// The id of the call, as in its answer.
    pub(crate) call: String,
    /// The provider gave the call no id.
    #[serde(default)]
    pub(crate) unnamed: bool,
    pub(crate) name: String,
    pub(crate) content: Vec<Part>,
    pub(crate) is_error: bool,
}

impl CallResult {
    /// The result of a call that was not run, or not to its end.
    pub(crate) fn refused(call: &AnswerCall, why: &str) -> Self {
        Self {
            call: call.id.clone(),
            unnamed: call.unnamed,
            name: call.name.clone(),
            content: vec![Part::Text(why.to_owned())],
            is_error: true,
        }
    }

    /// The texts of the result, joined by line ends.
    pub(crate) fn text(&self) -> String {
        text_of(&self.content)
    }
}

/// The texts among some parts, joined by line ends.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
        Part::Image { .. } | Part::Document { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Answer {
    pub(crate) fn calls(&self) -> impl Iterator<Item = &AnswerCall> {
        self.content.iter().filter_map(|content| match content {
            Content::Call(call) => Some(call),
            Content::Text(_) => None,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.content.is_empty() && self.native.is_none()
    }

    /// The provider's own form, if it is of this API and model. Another model cannot take the
    /// signatures in it.
    pub(crate) fn native_for(&self, api: ApiKind, model: &str) -> Option<&[Box<RawValue>]> {
        let native = self.native.as_ref()?;
        (native.api == api && native.model == model).then_some(&*native.messages)
    }
}

/// The result of a call that was open when the next prompt came.
const NO_RESULT: &str = "The result of this call is not known.";

/// The history of a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    items: Vec<Item>,
    /// The results so far of the calls of the last answer.
    results: Vec<Option<CallResult>>,
    /// The number of answers, including those that a summary replaced.
    answers: u64,
    /// What has to be stored.
    unstored: Vec<Json<'static>>,
}

impl History {
    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn items_mut(&mut self) -> &mut Vec<Item> {
        &mut self.items
    }

    /// The number of answers so far, which no later answer has.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }

    /// Adds a record, which has to be stored.
    pub(crate) fn record(&mut self, record: Record) {
        self.unstored.extend(Json::from_serialize(&record));
        self.apply(record);
    }

    /// Takes what has to be stored since the last call.
    pub(crate) fn take_unstored(&mut self) -> Vec<Json<'static>> {
        std::mem::take(&mut self.unstored)
    }

    /// Stores the whole history once more, for a log that does not contain it.
    pub(crate) fn store_all(&mut self) {
        self.unstored.clear();
        for item in &self.items {
            let records = match item {
                Item::User(parts) => vec![Record::User(parts.clone())],
                Item::Answer(answer) => vec![Record::Answer(answer.clone())],
                Item::Results(results) => results.iter().cloned().map(Record::Result).collect(),
            };
            self.unstored.extend(records.iter().filter_map(Json::from_serialize));
        }
    }

    /// Adds a record that is stored already.
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::User(parts) => {
                self.answer_open_calls();
                self.items.push(Item::User(parts));
            }
            Record::Answer(answer) => {
                self.answers += 1;
                self.results = answer.calls().map(|_| None).collect();
                self.items.push(Item::Answer(answer));
            }
            Record::Result(result) => self.add_result(result),
            Record::Compacted(summary) => self.compact(&summary),
            Record::ReasoningDropped => {
                for item in &mut self.items {
                    if let Item::Answer(answer) = item {
                        answer.native = None;
                    }
                }
            }
        }
    }

    /// Answers what is open before a prompt: no API takes a prompt between a call and its result. What is
    /// stored leads to the same results, so they are not stored.
    fn answer_open_calls(&mut self) {
        for call in self.open_calls() {
            self.add_result(CallResult::refused(&call, NO_RESULT));
        }
    }

    /// Adds the result of a call. Once all calls have one, the results are an item, in the order of
    /// the calls.
    fn add_result(&mut self, result: CallResult) {
        let Self { items, results, .. } = self;
        let Some(Item::Answer(answer)) = items.last() else { return };
        let waits = |(call, known): &(&AnswerCall, &mut Option<_>)| {
            known.is_none() && call.id == result.call
        };
        if let Some((_, known)) = answer.calls().zip(&mut *results).find(waits) {
            *known = Some(result);
        }
        if results.iter().all(Option::is_some) {
            let results = std::mem::take(results).into_iter().flatten();
            items.push(Item::Results(results.collect()));
        }
    }

    /// The calls of the last answer that have no results.
    pub(crate) fn open_calls(&self) -> Vec<AnswerCall> {
        match self.items.last() {
            Some(Item::Answer(answer)) => {
                let calls = answer.calls().zip(&self.results);
                calls.filter(|(_, known)| known.is_none()).map(|(call, _)| call.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Answers the calls that have no results, so that the history is valid: they were cut off by an
    /// interrupt, or by the end of the program.
    pub(crate) fn close_calls(&mut self, why: &str) {
        self.close_calls_unless(why, |_| false);
    }

    /// Answers the calls that have no results, but for those that can still get one.
    pub(crate) fn close_calls_unless(
        &mut self,
        why: &str,
        stays_open: impl Fn(&AnswerCall) -> bool,
    ) {
        for call in self.open_calls().iter().filter(|call| !stays_open(call)) {
            self.record(Record::Result(CallResult::refused(call, why)));
        }
    }

    /// The number of answers in the form of a provider.
    pub(crate) fn native_answers(&self) -> impl Iterator<Item = &Answer> {
        self.items.iter().filter_map(|item| match item {
            Item::Answer(answer) if answer.native.is_some() => Some(answer),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> AnswerCall {
        let (name, input) = ("Read".to_owned(), serde_json::json!({}));
        AnswerCall { id: id.to_owned(), unnamed: false, name, input, malformed: false }
    }

    fn result(id: &str, text: &str) -> Record {
        Record::Result(CallResult {
            content: vec![Part::Text(text.to_owned())],
            ..CallResult::refused(&call(id), "")
        })
    }

    fn texts(item: &Item) -> Vec<String> {
        match item {
            Item::Results(results) => results.iter().map(CallResult::text).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Results become known in any order, and two calls of an answer may have the same id.
    #[test]
    fn results_are_in_the_order_of_the_calls() {
        let mut history = History::default();
        let calls = ["a", "b", "a"].map(|id| Content::Call(call(id)));
        let answer = Answer { content: calls.to_vec(), native: None };
        history.record(Record::Answer(answer));
        history.record(result("b", "second"));
        history.record(result("a", "first"));
        assert_eq!(history.open_calls(), [call("a")]);
        assert_eq!(history.items().len(), 1);
        history.close_calls("third");
        assert_eq!(texts(&history.items()[1]), ["first", "second", "third"]);
        // A result that no call waits for changes nothing.
        history.record(result("a", "fourth"));
        assert_eq!(history.items().len(), 2);
    }

    /// A prompt between a call and its result is rejected by every provider, with every later request.
    #[test]
    fn a_prompt_answers_the_calls_that_are_open() {
        let mut history = History::default();
        let calls = ["a", "b"].map(|id| Content::Call(call(id)));
        history.record(Record::Answer(Answer { content: calls.to_vec(), native: None }));
        history.record(result("b", "second"));
        history.record(Record::User(vec![Part::Text("and?".to_owned())]));
        assert_eq!(texts(&history.items()[1]), [NO_RESULT, "second"]);
        assert!(matches!(&history.items()[2..], [Item::User(_)]));
        let mut again = History::default();
        let stored = history.take_unstored();
        stored.iter().for_each(|it| again.apply(serde_json::from_str(it.get()).unwrap()));
        assert_eq!(format!("{:?}", again.items()), format!("{:?}", history.items()));
    }

    #[test]
    fn the_stored_records_are_the_same_history() {
        let mut history = History::default();
        let image = Part::Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
        history.record(Record::User(vec![Part::Text("look".to_owned()), image]));
        let message = RawValue::from_string(r#"{"role":"assistant","n":1.0}"#.to_owned()).unwrap();
        let (api, model, messages) = (ApiKind::Chat, "m".to_owned(), vec![message]);
        let native = Some(NativeAnswer { api, model, messages });
        let content = vec![Content::Text("I look.".to_owned()), Content::Call(call("a"))];
        history.record(Record::Answer(Answer { content, native }));
        history.record(result("a", "seen"));
        history.record(Record::User(vec![Part::Text("and?".to_owned())]));
        let shown = format!("{:?}", history.items());
        let again = |stored: Vec<Json<'_>>| {
            let mut again = History::default();
            stored.iter().for_each(|it| again.apply(serde_json::from_str(it.get()).unwrap()));
            format!("{:?}", again.items())
        };
        assert_eq!(again(history.take_unstored()), shown);
        history.store_all();
        assert_eq!(again(history.take_unstored()), shown);
    }
}
