//! Rules that allow or deny a request by its tool and its subject, without asking the user.
//!
//! Deny beats ask, and ask beats allow, in any order. A pattern is compared with the subject of a
//! tool call: each of its commands, each of its paths, its address, or else its complete input.

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

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
    /// The same, in any case.
    in_any_case: GlobMatcher,
    pattern: Option<Pattern>,
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
    ///
    /// `*` stands for any text, also for none, and `?` for one character; a pattern that ends in
    /// ` *` also matches without them, so `git *` matches `git`.
    pub fn new(tool: &str, pattern: Option<&str>, effect: Effect) -> Result<Self, BadRule> {
        Self::with(tool, pattern.map(Pattern::new).transpose()?, effect)
    }

    /// Creates a rule that allows exactly one subject, which may be empty.
    pub(super) fn allow_exactly(tool: &str, subject: &str) -> Result<Self, BadRule> {
        let text = globset::escape(subject);
        let pattern = Pattern { glob: compile(&text)?, text, of_input: false };
        Self::with(tool, Some(pattern), Effect::Allow)
    }

    fn with(tool: &str, pattern: Option<Pattern>, effect: Effect) -> Result<Self, BadRule> {
        let (matcher, in_any_case) = (matcher(tool)?, compile_in_case(tool, true)?);
        Ok(Self { tool: matcher, in_any_case, pattern, effect })
    }

    /// Creates a rule that allows a tool with exactly this input.
    pub(super) fn allow_input(tool: &str, input: &str) -> Result<Self, BadRule> {
        let mut rule = Self::allow_exactly(tool, input)?;
        rule.pattern.iter_mut().for_each(|pattern| pattern.of_input = true);
        Ok(rule)
    }

    pub(super) fn effect(&self) -> Effect {
        self.effect
    }

    /// Whether the rule is about a tool with one of these names. A rule that denies or asks compares them in
    /// any case: agents call the same tool `Bash` and `bash`.
    pub(super) fn is_for(&self, names: &[&str]) -> bool {
        match self.effect {
            Effect::Allow => names.iter().any(|name| self.tool.is_match(name)),
            Effect::Deny | Effect::Ask => names.iter().any(|name| self.in_any_case.is_match(name)),
        }
    }
}

/// What a rule compares with the subject of a tool call.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    glob: GlobMatcher,
    /// It is compared with the complete input of a tool, and with nothing else.
    of_input: bool,
}

impl Pattern {
    fn new(text: &str) -> Result<Self, BadRule> {
        Ok(Self { text: text.to_owned(), glob: matcher(text)?, of_input: false })
    }

    /// Whether it is about this complete input.
    pub(super) fn matches_input(&self, input: &str) -> bool {
        self.of_input && self.glob.is_match(input)
    }

    /// Whether a subject that is completely known matches.
    pub(super) fn matches(&self, subject: &str) -> bool {
        let without_arguments = || self.text.strip_suffix(" *") == Some(subject);
        !self.of_input && (self.glob.is_match(subject) || without_arguments())
    }

    /// Whether a subject of which only the start is known could match.
    pub(super) fn could_match(&self, start: &str) -> bool {
        let fixed = self.text.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
        fixed.starts_with(start) || start.starts_with(fixed) || start == fixed.trim_end()
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, BadRule> {
    if pattern.trim().is_empty() {
        let problem = "it is empty, and would match nothing; leave it out, or use `*`".to_owned();
        return Err(BadRule { pattern: pattern.to_owned(), problem });
    }
    compile(pattern)
}

fn compile(pattern: &str) -> Result<GlobMatcher, BadRule> {
    compile_in_case(pattern, false)
}

fn compile_in_case(pattern: &str, any_case: bool) -> Result<GlobMatcher, BadRule> {
    let bad = |problem: String| BadRule { pattern: pattern.to_owned(), problem };
    let builder = &mut GlobBuilder::new(pattern);
    let glob = builder.literal_separator(false).case_insensitive(any_case).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|problem| bad(problem.to_string()))
}

/// Whether a pattern matches a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// The subject is not known well enough to rule it out.
    Maybe,
    Yes,
}

/// What the rules say about a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ruling {
    /// A rule denies it; with the rule's pattern.
    Denied(Option<String>),
    /// A rule could deny it, but the subject is not known well enough.
    MayBeDenied,
    /// A rule asks the user, or could.
    Asked,
    /// A rule allows it.
    Allowed,
    /// No rule matches.
    Unmatched,
}

/// A set of rules.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Creates a set of rules. Their order does not matter.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Adds rules.
    pub(super) fn extend(&mut self, rules: Vec<Rule>) {
        self.rules.extend(rules);
    }

    /// Applies the rules that are `relevant`. A rule without a pattern matches everything that it
    /// is relevant for.
    pub(super) fn apply(
        &self,
        relevant: impl Fn(&Rule) -> bool,
        compare: impl Fn(Effect, &Pattern) -> Match,
    ) -> Ruling {
        let mut ruling = Ruling::Unmatched;
        for rule in self.rules.iter().filter(|rule| relevant(rule)) {
            let found = match &rule.pattern {
                Some(pattern) => compare(rule.effect, pattern),
                None => Match::Yes,
            };
            let says = match (rule.effect, found) {
                (_, Match::No) | (Effect::Allow, Match::Maybe) => Ruling::Unmatched,
                (Effect::Allow, Match::Yes) => Ruling::Allowed,
                (Effect::Ask, Match::Maybe | Match::Yes) => Ruling::Asked,
                (Effect::Deny, Match::Maybe) => Ruling::MayBeDenied,
                (Effect::Deny, Match::Yes) => {
                    Ruling::Denied(rule.pattern.as_ref().map(|pattern| pattern.text.clone()))
                }
            };
            if says.rank() > ruling.rank() {
                ruling = says;
            }
        }
        ruling
    }
}

impl Ruling {
    fn rank(&self) -> u8 {
        match self {
            Self::Unmatched => 0,
            Self::Allowed => 1,
            Self::Asked => 2,
            Self::MayBeDenied => 3,
            Self::Denied(_) => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).unwrap()
    }

    #[test]
    fn a_star_matches_any_text_and_none() {
        let git = pattern("git *");
        for subject in ["git", "git status", "git log a\nb", "git a/b", "git "] {
            assert!(git.matches(subject), "{subject:?}");
        }
        for subject in ["gitfoo", "agit x", " git x", ""] {
            assert!(!git.matches(subject), "{subject:?}");
        }
        assert!(pattern("git*").matches("gitfoo"));
        assert!(pattern("git").matches("git") && !pattern("git").matches("git x"));
    }

    #[test]
    fn an_unknown_end_could_match() {
        let push = pattern("git push*");
        for start in ["", "g", "git ", "git push ", "git push --f"] {
            assert!(push.could_match(start), "{start:?}");
        }
        for start in ["rm", "git status ", "git pull"] {
            assert!(!push.could_match(start), "{start:?}");
        }
        assert!(pattern("*").could_match("x") && pattern("git *").could_match("git"));
    }

    #[test]
    fn the_order_of_rules_does_not_matter() {
        let rule = |effect| Rule::new("Bash", Some("a*"), effect).unwrap();
        let (allow, ask, deny) = (rule(Effect::Allow), rule(Effect::Ask), rule(Effect::Deny));
        let apply = |rules: &[&Rule], found| {
            let rules = Rules::new(rules.iter().map(|rule| (*rule).clone()).collect());
            rules.apply(|rule| rule.is_for(&["Bash"]), |_, _| found)
        };
        let denied = Ruling::Denied(Some("a*".to_owned()));
        for rules in [[&allow, &ask, &deny], [&deny, &ask, &allow], [&ask, &deny, &allow]] {
            assert_eq!(apply(&rules, Match::Yes), denied);
            assert_eq!(apply(&rules, Match::Maybe), Ruling::MayBeDenied);
            assert_eq!(apply(&rules, Match::No), Ruling::Unmatched);
        }
        assert_eq!(apply(&[&allow, &ask], Match::Yes), Ruling::Asked);
        assert_eq!(apply(&[&ask, &allow], Match::Maybe), Ruling::Asked);
        assert_eq!(apply(&[&allow], Match::Yes), Ruling::Allowed);
        assert_eq!(apply(&[&allow], Match::Maybe), Ruling::Unmatched);
    }

    /// A rule for `bash` did not deny what Claude does with `Bash`.
    #[test]
    fn only_a_rule_that_allows_compares_the_case_of_a_tool() {
        for (effect, expected) in
            [(Effect::Deny, true), (Effect::Ask, true), (Effect::Allow, false)]
        {
            let rule = Rule::new("bash", None, effect).unwrap();
            assert_eq!(rule.is_for(&["Bash"]), expected, "{effect:?}");
            assert!(rule.is_for(&["bash"]) && !rule.is_for(&["Bash2"]), "{effect:?}");
        }
    }

    #[test]
    fn an_empty_pattern_is_rejected() {
        for text in ["", " ", "\t\n"] {
            let bad = Rule::new("Bash", Some(text), Effect::Allow).unwrap_err().to_string();
            assert!(bad.contains("empty"), "{bad}");
            assert!(Rule::new(text, None, Effect::Deny).is_err());
        }
    }
}
