//! Rules that allow or deny a request by its tool and its subject, without asking the user.
//!
//! The first rule that matches decides. A pattern is compared with the subject of a tool call: its
//! command, its path, its address, or else its complete input.

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use super::PermissionRequest;

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The request is allowed.
    Allow,
    /// The request is denied.
    Deny,
    /// The user is asked, regardless of the mode.
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
    /// Creates a rule for tools whose name or kind matches `tool`, and whose subject matches
    /// `pattern`.
    pub fn new(tool: &str, pattern: Option<&str>, effect: Effect) -> Result<Self, BadRule> {
        Ok(Self { tool: matcher(tool)?, pattern: pattern.map(matcher).transpose()?, effect })
    }

    fn matches(&self, request: &PermissionRequest) -> bool {
        let tool = self.tool.is_match(&request.tool) || self.tool.is_match(request.kind.as_str());
        let subject = |pattern: &GlobMatcher| pattern.is_match(subject_of(request));
        tool && self.pattern.as_ref().is_none_or(subject)
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, BadRule> {
    let glob = GlobBuilder::new(pattern).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|problem| BadRule { pattern: pattern.to_owned(), problem: problem.to_string() })
}

/// The subject of a tool call, which patterns are compared with.
fn subject_of(request: &PermissionRequest) -> String {
    let Some(input) = &request.input else { return String::new() };
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

/// An ordered list of rules.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Creates a list of rules, of which the first that matches decides.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// The effect of the first rule that matches.
    pub fn judge(&self, request: &PermissionRequest) -> Option<Effect> {
        self.rules.iter().find(|rule| rule.matches(request)).map(|rule| rule.effect)
    }
}
