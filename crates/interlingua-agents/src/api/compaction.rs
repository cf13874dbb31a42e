//! Compaction: what is older is replaced by a summary, when the conversation exceeds the context
//! window of the model.
//!
//! The summary is requested from the same model, with a request of its own that contains what is
//! older as text. That is the turns before the running one; without any, it is the running turn
//! between its prompt and its last answer. The rest stays as it is, without its reasoning: current
//! models bind it to everything before, which has changed.
//!
//! A request for a summary may exceed the context window, too. It is then made of less: results and
//! inputs of calls are shortened first, the longest ones most.

use std::ops::Range;

use super::history::{Content, History, Item, Part, text_of};

/// The longest result of a call that a summary is made of, in bytes.
const LONGEST_RESULT: usize = 2_000;

/// To what length results and inputs of calls are shortened before anything else is left out, in
/// bytes.
const SHORTEST_RESULT: usize = 100;

/// The longest conversation that a summary is made of, in bytes, unless that is too long.
pub(crate) const LONGEST: usize = 400_000;

/// The shortest conversation that is worth a request for a summary, in bytes. A model that does not
/// take it does not take the summary either.
pub(crate) const SHORTEST: usize = 2_000;

/// The system prompt of the request for a summary.
pub(crate) const SYSTEM: &str = "\
You summarise a conversation between a user and a coding agent, so that the agent can go on without it. State what \
the user wants, what was decided and why, which files matter and how they were changed, what failed, and what is left \
to do. Keep names, paths and numbers exactly. Write only the summary.";

/// What the history begins with after a compaction.
const INTRODUCTION: &str = "This is a summary of the conversation so far:";

/// What a summary is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// How much of the conversation it leaves out, in bytes.
    pub(crate) left_out: usize,
}

impl History {
    /// The index of the prompt of the running turn.
    fn last_prompt(&self) -> Option<usize> {
        self.items().iter().rposition(|item| matches!(item, Item::User(_)))
    }

    /// The items that a summary replaces; `None` if there are none.
    fn older(&self) -> Option<Range<usize>> {
        let items = self.items();
        let prompt = self.last_prompt()?;
        if prompt > 0 {
            return Some(0..prompt);
        }
        // The results of the last answer are what the model waits for.
        let answer = items.iter().rposition(|item| matches!(item, Item::Answer(_)))?;
        Some(prompt + 1..answer).filter(|older| !older.is_empty())
    }

    /// What is older as text of a limited length; `None` if there is nothing.
    pub(crate) fn to_summarise(&self, longest: usize) -> Option<Excerpt> {
        // The prompt of the running turn stays, since it states the task.
        let older = self.items().get(..self.older()?.end)?;
        let all = as_text(older, usize::MAX, usize::MAX).len();
        let usual = as_text(older, LONGEST_RESULT, usize::MAX);
        let limits = std::iter::successors(Some(LONGEST_RESULT), |limit| Some(limit / 2));
        let limits = limits.take_while(|limit| *limit >= SHORTEST_RESULT);
        let shortened = limits.map(|limit| as_text(older, limit, limit));
        let fits = |text: &String| text.len() <= longest;
        let found = std::iter::once(usual).chain(shortened).find(fits);
        let text = found.unwrap_or_else(|| {
            without_middle(&as_text(older, SHORTEST_RESULT, SHORTEST_RESULT), longest)
        });
        let left_out = all.saturating_sub(text.len());
        Some(Excerpt { text, left_out })
    }

    /// Replaces what is older by a summary.
    pub(super) fn compact(&mut self, summary: &str) {
        let Some(older) = self.older() else { return };
        let is_running_turn = older.start > 0;
        let items = self.items_mut();
        items.drain(older);
        for item in items.iter_mut() {
            if let Item::Answer(answer) = item {
                answer.native = None;
            }
        }
        let summary = Part::Text(format!("{INTRODUCTION}\n\n{summary}"));
        if let Some(Item::User(parts)) = items.first_mut() {
            let at = if is_running_turn { parts.len() } else { 0 };
            parts.insert(at, summary);
        }
    }
}

/// Some items as text, with results and inputs of calls of a limited length.
fn as_text(items: &[Item], longest_result: usize, longest_input: usize) -> String {
    let texts = items.iter().map(|item| match item {
        Item::User(parts) => format!("User: {}", text_of(parts)),
        Item::Answer(answer) => {
            let content = answer.content.iter().map(|content| match content {
                Content::Text(text) => format!("Agent: {text}"),
                Content::Call(call) => {
                    let input = without_middle(&call.input.to_string(), longest_input);
                    format!("Agent calls {} with {input}", call.name)
                }
            });
            content.collect::<Vec<_>>().join("\n")
        }
        Item::Results(results) => {
            let results = results.iter().map(|result| {
                let text = without_middle(&result.text(), longest_result);
                format!("Result of {}: {text}", result.name)
            });
            results.collect::<Vec<_>>().join("\n")
        }
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// A text with the middle left out, if it is longer than a limit. The result is hardly longer.
fn without_middle(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let half = longest / 2;
    let start = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let end = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    let left_out = text.len() - start.len() - end.len();
    format!("{start}\n({left_out} bytes are left out here)\n{end}")
}

#[cfg(test)]
mod tests {
    use super::super::history::{Answer, AnswerCall, CallResult, Record};
    use super::*;

    fn summarised(history: &History) -> Option<String> {
        history.to_summarise(LONGEST).map(|excerpt| excerpt.text)
    }

    fn history(prompts: &[&str]) -> History {
        let mut history = History::default();
        for prompt in prompts {
            history.record(Record::User(vec![Part::Text((*prompt).to_owned())]));
        }
        history
    }

    #[test]
    fn a_prompt_alone_cannot_be_compacted() {
        assert_eq!(summarised(&history(&["go"])), None);
    }

    #[test]
    fn the_running_turn_stays() {
        let mut history = history(&["one", "two"]);
        assert_eq!(summarised(&history).as_deref(), Some("User: one"));
        history.compact("They said one.");
        let [Item::User(parts)] = history.items() else { panic!("{history:?}") };
        assert_eq!(text_of(parts), format!("{INTRODUCTION}\n\nThey said one.\ntwo"));
    }

    #[test]
    fn the_running_turn_keeps_its_prompt_and_its_last_answer() {
        let mut history = history(&["go"]);
        for text in ["one", "two", "three"] {
            let content = vec![Content::Text(text.to_owned())];
            history.record(Record::Answer(Answer { content, native: None }));
            let kept = history.items().len();
            assert_eq!(summarised(&history).is_some(), kept > 2, "{text}");
        }
        assert_eq!(summarised(&history).as_deref(), Some("User: go\n\nAgent: one\n\nAgent: two"));
        history.compact("They counted.");
        let [Item::User(parts), Item::Answer(last)] = history.items() else {
            panic!("{history:?}")
        };
        assert_eq!(text_of(parts), format!("go\n{INTRODUCTION}\n\nThey counted."));
        assert_eq!(last.content, [Content::Text("three".to_owned())]);
        assert_eq!(summarised(&history), None, "nothing is summarised twice");
    }

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(without_middle("äöü", 6), "äöü");
        assert_eq!(without_middle("äöüß", 6), "ä\n(4 bytes are left out here)\nß");
    }

    /// A turn with a call, its result and a text, and the prompt of the running turn.
    fn history_with_a_call(input: &str, result: &str, text: &str) -> History {
        let mut history = history(&["begin"]);
        let input = serde_json::json!({"content": input});
        let (id, name) = ("1".to_owned(), "Write".to_owned());
        let call = AnswerCall { id, unnamed: false, name, input, malformed: false };
        let content = vec![Content::Call(call.clone())];
        history.record(Record::Answer(Answer { content, native: None }));
        let content = vec![Part::Text(result.to_owned())];
        let result = CallResult { content, is_error: false, ..CallResult::refused(&call, "") };
        history.record(Record::Result(result));
        let content = vec![Content::Text(text.to_owned())];
        history.record(Record::Answer(Answer { content, native: None }));
        history.record(Record::User(vec![Part::Text("go on".to_owned())]));
        history
    }

    #[test]
    fn results_and_inputs_are_shortened_before_texts() {
        let (input, result, text) = ("i".repeat(5_000), "r".repeat(5_000), "t".repeat(1_000));
        let history = history_with_a_call(&input, &result, &text);
        // Only the result is shortened, as in every summary.
        let usual = history.to_summarise(LONGEST).unwrap();
        assert!(usual.text.contains(&input) && usual.text.contains(&text));
        assert!(!usual.text.contains(&result) && usual.left_out > 2_900, "{}", usual.left_out);
        let short = history.to_summarise(2_000).unwrap();
        assert!(short.text.len() <= 2_000, "{}", short.text.len());
        assert!(short.text.contains("User: begin") && short.text.contains(&text));
        assert!(short.text.contains("rr\n(") && short.text.contains("ii\n("), "{}", short.text);
        assert!(short.left_out > 9_000 && short.left_out < 11_100, "{}", short.left_out);
        // Then the text is, too.
        let shortest = history.to_summarise(500).unwrap();
        assert!(shortest.text.len() < 600, "{}", shortest.text.len());
        assert!(shortest.text.starts_with("User: begin") && shortest.text.ends_with("tt"));
    }
}
