//! Rules by tool and pattern: which wishes are granted or refused without asking.
//!
//! The first rule that fits decides. A pattern is compared with what the tool is about: its command,
//! its path, its address, or else its whole input.

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use super::Wish;

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It may.
    Allow,
    /// It may not.
    Deny,
    /// The user is asked, whatever the mode.
    Ask,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    tool: GlobMatcher,
    pattern: Option<GlobMatcher>,
    effect: Effect,
}

/// Why a rule cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{pattern:?} is not a pattern: {problem}")]
pub struct BadRule {
    pattern: String,
    problem: String,
}

impl Rule {
    /// A rule for the tools whose name, or kind of work, fits a pattern, and whose subject fits another.
    pub fn new(tool: &str, pattern: Option<&str>, effect: Effect) -> Result<Self, BadRule> {
        Ok(Self { tool: matcher(tool)?, pattern: pattern.map(matcher).transpose()?, effect })
    }

    fn fits(&self, wish: &Wish) -> bool {
        let tool = self.tool.is_match(&wish.tool) || self.tool.is_match(wish.kind.as_str());
        let subject = |pattern: &GlobMatcher| pattern.is_match(subject_of(wish));
        tool && self.pattern.as_ref().is_none_or(subject)
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, BadRule> {
    let glob = GlobBuilder::new(pattern).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|problem| BadRule { pattern: pattern.to_owned(), problem: problem.to_string() })
}

/// What a tool is about, as a rule sees it.
fn subject_of(wish: &Wish) -> String {
    let Some(input) = &wish.input else { return String::new() };
    let Ok(fields) = serde_json::from_str::<serde_json::Value>(input) else { return input.clone() };
    const SUBJECTS: [&str; 7] = ["command", "cmd", "file_path", "filePath", "path", "url", "query"];
    let subject = SUBJECTS.iter().find_map(|name| match fields.get(name)? {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Array(words) => {
            let words: Vec<_> = words.iter().filter_map(|word| word.as_str()).collect();
            Some(words.join(" "))
        }
        _ => None,
    });
    subject.unwrap_or_else(|| input.clone())
}

/// Rules, in their order.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Rules, of which the first that fits decides.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// What the first rule that fits says.
    pub fn judge(&self, wish: &Wish) -> Option<Effect> {
        self.rules.iter().find(|rule| rule.fits(wish)).map(|rule| rule.effect)
    }
}
