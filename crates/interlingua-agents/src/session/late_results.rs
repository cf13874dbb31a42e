//! What a client answers to the calls of its tools, and how an agent learns of it that does not wait for
//! the answer any more, because its process was lost.

use std::borrow::Cow;
use std::fmt::Write as _;

use interlingua::event::{Event, ToolEnded, ToolStatus};
use interlingua::json::{Json, Text};
use serde_json::Value;

/// The introduction of results that are given as a prompt. Two agents suggest that the call is repeated, and
/// one has forgotten it.
const INTRODUCTION: &str = "Your last turn was cut off while it waited for tools that the user's client runs. The client \
                            has answered these calls. Whatever is recorded as their result is out of date. Do not make \
                            these calls again: take the following results, and continue.";

/// The longest result that an agent with a process gets whole, in bytes. It is one limit for all of them, below the
/// lowest of their own, which is Copilot's: of more than 20 KiB it gives the model 500 characters. Others drop the
/// middle, or give a file name only; Gemini repeats all of it with every request.
pub(crate) const LONGEST_RESULT: usize = 20_000;

/// The beginning of what such an agent gets of a longer result.
pub(crate) fn long_result_note(bytes: usize) -> String {
    format!("[This result has {bytes} bytes.")
}

/// How a client has answered a call of one of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The tool has run; its result.
    Output(Value),
    /// The tool has failed, or was not run; why.
    Failed(String),
    /// The call was refused; why.
    Denied(String),
    /// The call is not needed any more; why.
    Cancelled(String),
}

impl CallOutcome {
    /// What the model reads, and whether it is an error.
    pub fn text(&self) -> (Cow<'_, str>, bool) {
        match self {
            Self::Output(Value::String(text)) => (text.into(), false),
            // OpenCode cuts long results by lines.
            Self::Output(other) => (format!("{other:#}").into(), false),
            Self::Failed(why) | Self::Denied(why) | Self::Cancelled(why) => (why.into(), true),
        }
    }

    /// What is found of it where an agent with a process stores it. Such an agent gets a long one in another
    /// form, of which this is the beginning.
    pub fn trace(&self) -> Cow<'_, str> {
        let (text, _) = self.text();
        if text.len() > LONGEST_RESULT { long_result_note(text.len()).into() } else { text }
    }

    /// The event that ends a call, in which a text may be replaced: it may contain keys.
    pub(crate) fn to_event(
        &self,
        call: &str,
        mut redact: impl FnMut(&str) -> String,
    ) -> Event<'static> {
        let text = redact(&self.text().0);
        let call = Text::from(call.to_owned());
        let failed = |status| {
            let (call, error) = (call.clone(), Some(Text::from(text.clone())));
            ToolEnded { call, status, error, ..ToolEnded::default() }
        };
        Event::new(match self {
            Self::Output(value) => {
                let structured = match value {
                    Value::String(_) => None,
                    other => Json::from_text(redact(&other.to_string())),
                };
                let output = Json::from_serialize(&text);
                ToolEnded { call, output, structured, ..ToolEnded::default() }
            }
            Self::Failed(_) => failed(ToolStatus::Failed),
            Self::Denied(_) => failed(ToolStatus::Denied),
            Self::Cancelled(_) => failed(ToolStatus::Cancelled),
        })
    }
}

/// The answer to a call for an agent that was lost while it waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateResult {
    /// The emitted id of the call.
    pub call: String,
    /// The agent's own id of the call, if it is another one.
    pub native: Option<String>,
    /// The client's name of the tool.
    pub tool: String,
    /// The input, as JSON.
    pub input: String,
    /// The answer.
    pub outcome: CallOutcome,
    /// The agent was not lost, but has ended its turn itself because it waits for the client. An agent that
    /// does so makes the call again when its session is resumed.
    pub deferred: bool,
}

impl LateResult {
    /// The agent's own id of the call.
    pub(crate) fn native_id(&self) -> &str {
        self.native.as_deref().unwrap_or(&self.call)
    }

    /// The event that ends the call.
    pub fn to_event(&self) -> Event<'static> {
        self.outcome.to_event(&self.call, str::to_owned)
    }

    /// A prompt that gives results to an agent which cannot take them in the places of the calls.
    pub fn prompt(results: &[Self]) -> String {
        Self::prompt_with(results, |text| text)
    }

    /// What is found of that prompt where the agent stores it. Of a long result, which the agent gets in
    /// another form, it contains nothing.
    pub fn trace(results: &[Self]) -> String {
        Self::prompt_with(results, |text| if text.len() > LONGEST_RESULT { "" } else { text })
    }

    fn prompt_with(results: &[Self], shown: impl Fn(&str) -> &str) -> String {
        let mut prompt = INTRODUCTION.to_owned();
        for LateResult { tool, input, outcome, .. } in results {
            let (text, failed) = outcome.text();
            let text = shown(&text);
            let what = if failed { "It failed" } else { "Its result" };
            // Writing to a string does not fail.
            let _ = write!(prompt, "\n\nThe call of `{tool}` with {input}. {what}:\n{text}");
        }
        prompt
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn late(outcome: CallOutcome) -> LateResult {
        LateResult {
            call: "c1".to_owned(),
            native: None,
            tool: "ask".to_owned(),
            input: r#"{"a":1}"#.to_owned(),
            outcome,
            deferred: false,
        }
    }

    #[test]
    fn a_prompt_names_the_calls_with_their_results() {
        let results = [
            late(CallOutcome::Output(json!("Blue"))),
            late(CallOutcome::Failed("the page is gone".to_owned())),
        ];
        let expected = format!(
            "{INTRODUCTION}\n\nThe call of `ask` with {{\"a\":1}}. Its result:\nBlue\n\nThe call of `ask` with {{\"a\":1}}. It failed:\nthe page is gone"
        );
        assert_eq!(LateResult::prompt(&results), expected);
    }

    /// With a line that the agent was not given, it would seem not to have received the prompt, which
    /// would be sent again.
    #[test]
    fn a_trace_has_no_line_of_a_long_result() {
        let long = "x".repeat(LONGEST_RESULT + 1);
        let results =
            [late(CallOutcome::Output(json!("Blue"))), late(CallOutcome::Output(json!(long)))];
        let trace = LateResult::trace(&results);
        let other = late(CallOutcome::Output(json!("its beginning")));
        let given = LateResult::prompt(&[results[0].clone(), other]);
        assert!(trace.contains("Blue") && trace.len() < LONGEST_RESULT);
        assert!(trace.lines().all(|line| given.contains(line)), "{trace}");
        assert_eq!(LateResult::trace(&results[..1]), LateResult::prompt(&results[..1]));
    }

    #[test]
    fn every_answer_is_an_end_of_its_call() {
        let ended = |outcome: CallOutcome| {
            let event = outcome.to_event("c1", |text| text.replace("key", "[redacted]"));
            serde_json::to_value(event).unwrap()
        };
        let output = ended(CallOutcome::Output(json!({"key": 1})));
        assert_eq!(output["structured"], json!({"[redacted]": 1}));
        assert_eq!(output["output"], "{\n  \"[redacted]\": 1\n}");
        let denied = ended(CallOutcome::Denied("no key".to_owned()));
        assert_eq!(
            (&denied["status"], &denied["error"]),
            (&json!("denied"), &json!("no [redacted]"))
        );
    }
}
