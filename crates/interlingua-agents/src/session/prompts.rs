//! Prompts, and the queue in which they wait for the end of the turns before them.
//!
//! Agents disagree about a prompt that arrives during a turn: three cancel the turn, others merge
//! the prompt into it. So it is kept here until the turn has ended.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::{LateResult, Refused};

/// A prompt for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// What the agent reads before the text or the results, because its session has not begun with it.
    pub preamble: Option<String>,
    /// Adds the prompt to the running turn, where the agent can, instead of queueing it.
    pub joins: bool,
    /// Files that are sent with it, to agents that are model APIs.
    pub files: Vec<PathBuf>,
    /// The answers to calls of the client's tools for which the agent does not wait any more.
    /// With a text, they only end the calls, whose results the agent does not need any more.
    pub results: Vec<LateResult>,
    receipt: Option<Receipt>,
}

/// Shows when a prompt was given to the agent, and so which turn is its own. An agent may begin a turn by
/// itself while a prompt waits, for example because a command in the background has ended.
#[derive(Debug, Clone, Default)]
pub struct Receipt(Arc<OnceLock<u64>>);

impl Receipt {
    /// The number of the first entry after the prompt was given to the agent; nothing while it waits.
    /// What that entry and those behind it show may be an effect of the prompt.
    pub fn sequence(&self) -> Option<u64> {
        self.0.get().copied()
    }

    /// Notes that the prompt is given to the agent now, before this entry.
    pub fn note(&self, next_entry: u64) {
        // A prompt is given to an agent once.
        let _ = self.0.set(next_entry);
    }
}

/// Receipts are equal if they are for the same prompt.
impl PartialEq for Receipt {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Receipt {}

impl Prompt {
    /// A prompt that waits for its turn.
    pub fn new(text: impl Into<String>) -> Self {
        let (text, preamble, receipt) = (text.into(), None, None);
        Self { text, preamble, joins: false, files: Vec::new(), results: Vec::new(), receipt }
    }

    /// A prompt that is added to the running turn. Without a running turn, it starts one.
    pub fn joining(text: impl Into<String>) -> Self {
        Self { joins: true, ..Self::new(text) }
    }

    /// The same prompt, with files.
    #[must_use]
    pub fn with_files(mut self, files: Vec<PathBuf>) -> Self {
        self.files = files;
        self
    }

    /// A prompt that gives an agent the results for which it waited when its process was lost.
    pub fn resuming(results: Vec<LateResult>) -> Self {
        Self { results, ..Self::new("") }
    }

    /// The same prompt for an agent that has to read something else before it.
    #[must_use]
    pub fn after(mut self, preamble: impl Into<String>) -> Self {
        self.preamble = Some(preamble.into());
        self
    }

    /// Whether it has results and nothing else, so that an agent may take them in the places of their calls. One
    /// with a preamble does not know of these calls.
    pub(crate) fn only_resumes(&self) -> bool {
        self.text.is_empty() && !self.results.is_empty() && self.preamble.is_none()
    }

    /// What an agent reads that does not take results in the places of their calls.
    pub fn written(&self) -> Cow<'_, str> {
        let written: Cow<'_, str> = match self.text.is_empty() && !self.results.is_empty() {
            true => LateResult::prompt(&self.results).into(),
            false => self.text.as_str().into(),
        };
        match &self.preamble {
            Some(preamble) => format!("{preamble}\n\n{written}").into(),
            None => written,
        }
    }

    /// The same prompt, with a receipt. A prompt that joins a turn begins none, and needs no receipt.
    #[must_use]
    pub fn with_receipt(mut self, receipt: &Receipt) -> Self {
        self.receipt = Some(receipt.clone());
        self
    }

    pub(crate) fn check(&self) -> Result<(), Refused> {
        let is_empty = self.text.trim().is_empty() && self.results.is_empty();
        if is_empty { Err(Refused::EmptyPrompt) } else { Ok(()) }
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// The prompts that wait, and what the model has to learn with the next one.
#[derive(Debug, Default)]
pub(crate) struct PromptQueue {
    waiting: VecDeque<Prompt>,
    /// Reasons of denials that the agent's protocol could not carry.
    reasons: Vec<String>,
}

impl PromptQueue {
    pub(crate) fn push(&mut self, prompt: Prompt) {
        self.waiting.push_back(prompt);
    }

    /// Adds a prompt before all others.
    pub(crate) fn push_first(&mut self, prompt: Prompt) {
        self.waiting.push_front(prompt);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Adds the reason of a denial to the next prompt.
    pub(crate) fn explain_denial(&mut self, what: &str, reason: &str) {
        self.reasons.push(format!("The user denied {what}, for this reason: {reason}"));
    }

    /// The next prompt, with the reasons that belong before it. It is given to the agent now, before this
    /// entry.
    pub(crate) fn next(&mut self, next_entry: u64) -> Option<Prompt> {
        let mut prompt = self.waiting.pop_front()?;
        prompt.receipt.iter().for_each(|receipt| receipt.note(next_entry));
        // Results may be given without a text, and the reasons wait for one.
        if !self.reasons.is_empty() && !prompt.text.is_empty() {
            let reasons = std::mem::take(&mut self.reasons).join("\n");
            prompt.text = format!("{reasons}\n\n{}", prompt.text);
        }
        Some(prompt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_given_once_with_the_next_prompt() {
        let mut queue = PromptQueue::default();
        queue.explain_denial("Bash", "use the other branch");
        assert_eq!(queue.next(0), None);
        queue.push(Prompt::new("go on"));
        queue.push(Prompt::new("and then"));
        let first = "The user denied Bash, for this reason: use the other branch\n\ngo on";
        let mut next = || queue.next(0).map(|prompt| prompt.text);
        assert_eq!(next().as_deref(), Some(first));
        assert_eq!(next().as_deref(), Some("and then"));
        assert!(queue.is_empty());
    }

    #[test]
    fn an_empty_prompt_is_refused() {
        assert_eq!(Prompt::new(" \n").check(), Err(Refused::EmptyPrompt));
        assert_eq!(Prompt::new("--help me").check(), Ok(()));
    }
}
