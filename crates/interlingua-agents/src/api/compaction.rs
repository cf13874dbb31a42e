//! Compaction: what is older is replaced by a summary, when the conversation exceeds the context
//! window of the model.
//!
//! The summary is requested from the same model, with a request of its own that contains what is
//! older as text. That is the turns before the running one; without any, it is the running turn
//! between its prompt and its last answer. The rest stays as it is, without its reasoning: current
//! models bind it to everything before, which has changed.

use std::ops::Range;

use super::history::{Content, History, Item, Part, text_of};

/// The longest result of a call that a summary is made of, in bytes.
const LONGEST_RESULT: usize = 2_000;

/// The longest conversation that a summary is made of, in bytes. Of a longer one, the middle is left
/// out.
const LONGEST: usize = 400_000;

/// The system prompt of the request for a summary.
pub(crate) const SYSTEM: &str = "\
You summarise a conversation between a user and a coding agent, so that the agent can go on without it. State what \
the user wants, what was decided and why, which files matter and how they were changed, what failed, and what is left \
to do. Keep names, paths and numbers exactly. Write only the summary.";

/// What the history begins with after a compaction.
const INTRODUCTION: &str = "This is a summary of the conversation so far:";

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

    /// What is older as text; `None` if there is nothing.
    pub(crate) fn to_summarise(&self) -> Option<String> {
        // The prompt of the running turn stays, since it states the task.
        let older = self.items().get(..self.older()?.end)?;
        let text: Vec<_> = older.iter().map(as_text).collect();
        Some(without_middle(&text.join("\n\n"), LONGEST))
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

fn as_text(item: &Item) -> String {
    match item {
        Item::User(parts) => format!("User: {}", text_of(parts)),
        Item::Answer(answer) => {
            let content = answer.content.iter().map(|content| match content {
                Content::Text(text) => format!("Agent: {text}"),
                Content::Call(call) => format!("Agent calls {} with {}", call.name, call.input),
            });
            content.collect::<Vec<_>>().join("\n")
        }
        Item::Results(results) => {
            let results = results.iter().map(|result| {
                let text = without_middle(&result.text(), LONGEST_RESULT);
                format!("Result of {}: {text}", result.name)
            });
            results.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A text with the middle left out, if it is longer than a limit.
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
    use super::super::history::{Answer, Record};
    use super::*;

    fn history(prompts: &[&str]) -> History {
        let mut history = History::default();
        for prompt in prompts {
            history.record(Record::User(vec![Part::Text((*prompt).to_owned())]));
        }
        history
    }

    #[test]
    fn a_prompt_alone_cannot_be_compacted() {
        assert_eq!(history(&["go"]).to_summarise(), None);
    }

    #[test]
    fn the_running_turn_stays() {
        let mut history = history(&["one", "two"]);
        assert_eq!(history.to_summarise().as_deref(), Some("User: one"));
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
            assert_eq!(history.to_summarise().is_some(), kept > 2, "{text}");
        }
        assert_eq!(history.to_summarise().as_deref(), Some("User: go\n\nAgent: one\n\nAgent: two"));
        history.compact("They counted.");
        let [Item::User(parts), Item::Answer(last)] = history.items() else {
            panic!("{history:?}")
        };
        assert_eq!(text_of(parts), format!("go\n{INTRODUCTION}\n\nThey counted."));
        assert_eq!(last.content, [Content::Text("three".to_owned())]);
        assert_eq!(history.to_summarise(), None, "nothing is summarised twice");
    }

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(without_middle("äöü", 6), "äöü");
        assert_eq!(without_middle("äöüß", 6), "ä\n(4 bytes are left out here)\nß");
    }
}
