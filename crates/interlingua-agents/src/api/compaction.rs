//! Compaction: older turns are replaced by a summary, when the conversation exceeds the context
//! window of the model.
//!
//! The summary is requested from the same model, with a request of its own that contains the older
//! turns as text. The turn that is running stays as it is, without its reasoning: current models
//! bind it to everything before, which has changed.

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

    /// The older turns as text; `None` if there are none.
    pub(crate) fn to_summarise(&self) -> Option<String> {
        let older = self.items().get(..self.last_prompt()?)?;
        if older.is_empty() {
            return None;
        }
        let text: Vec<_> = older.iter().map(as_text).collect();
        Some(without_middle(&text.join("\n\n"), LONGEST))
    }

    /// Replaces the older turns by a summary.
    pub(super) fn compact(&mut self, summary: &str) {
        let Some(at) = self.last_prompt() else { return };
        let items = self.items_mut();
        items.drain(..at);
        for item in items.iter_mut() {
            if let Item::Answer(answer) = item {
                answer.native = None;
            }
        }
        if let Some(Item::User(parts)) = items.first_mut() {
            parts.insert(0, Part::Text(format!("{INTRODUCTION}\n\n{summary}")));
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
    use super::super::history::Record;
    use super::*;

    fn history(prompts: &[&str]) -> History {
        let mut history = History::default();
        for prompt in prompts {
            history.record(Record::User(vec![Part::Text((*prompt).to_owned())]));
        }
        history
    }

    #[test]
    fn the_first_turn_cannot_be_compacted() {
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
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(without_middle("äöü", 6), "äöü");
        assert_eq!(without_middle("äöüß", 6), "ä\n(4 bytes are left out here)\nß");
    }
}
