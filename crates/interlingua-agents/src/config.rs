//! The user's settings for every run, in a file:
//!
//! ```toml
//! [permissions]
//! mode = "default"
//! answer-within-seconds = 300
//!
//! [[permissions.rules]]
//! tool = "Bash"          # a name or a kind of work, with * and ?
//! pattern = "git *"      # the subject: a command, a path, an address
//! effect = "allow"       # or deny, or ask
//!
//! [client-tools]
//! answer-within-seconds = 86400
//! ```
//!
//! Deny beats ask, and ask beats allow; the order of the rules does not matter.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::error::Error;
use crate::permission::{BadRule, Effect, Mode, Rule, Rules};

/// The contents of a settings file.
#[derive(Debug, Default)]
pub struct Config {
    /// The permission mode, if the file sets one.
    pub mode: Option<Mode>,
    /// How long the user has to answer, if the file sets it.
    pub answer: Option<Duration>,
    /// How long a tool of the client may take, if the file sets it.
    pub client_tool: Option<Duration>,
    /// The permission rules.
    pub rules: Rules,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    permissions: Permissions,
    #[serde(default, rename = "client-tools")]
    client_tools: WrittenClientTools,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenClientTools {
    answer_within_seconds: Option<WrittenSeconds>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Permissions {
    mode: Option<WrittenMode>,
    answer_within_seconds: Option<WrittenSeconds>,
    #[serde(default)]
    rules: Vec<WrittenRule>,
}

/// Values are checked while they are read, so that an error has the line of the value.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct WrittenMode(Mode);

/// A time in which a person can answer. A session does not last longer than a year.
#[derive(Deserialize)]
#[serde(try_from = "toml::Value")]
struct WrittenSeconds(u64);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    tool: WrittenPattern,
    pattern: Option<WrittenPattern>,
    effect: Effect,
}

/// A pattern that a rule can have.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct WrittenPattern(String);

/// What to do about a file that cannot be read.
const ADVICE: &str = "Correct the file: [permissions] has the keys mode, answer-within-seconds and rules, a rule has tool, effect and, optionally, pattern; [client-tools] has the key answer-within-seconds.";

impl Config {
    /// Reads a settings file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bad =
            |problem: String| Error::InvalidFile { path: path.display().to_string(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        Self::parse(&text).map_err(bad)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| format!("{error}{ADVICE}"))?;
        let File { permissions, client_tools } = file;
        let Permissions { mode, answer_within_seconds, rules } = permissions;
        let time = |WrittenSeconds(time)| Duration::from_secs(time);
        let made = rules.iter().map(WrittenRule::made);
        let rules = made.collect::<Result<_, _>>().map_err(|bad| bad.to_string())?;
        Ok(Self {
            mode: mode.map(|WrittenMode(mode)| mode),
            answer: answer_within_seconds.map(time),
            client_tool: client_tools.answer_within_seconds.map(time),
            rules: Rules::new(rules),
        })
    }
}

impl TryFrom<String> for WrittenMode {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let found = Mode::ALL.into_iter().find(|mode| mode.as_str() == word);
        found.map(Self).ok_or_else(|| {
            let all: Vec<_> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
            format!("`{word}` is not a permission mode; the modes are {}", all.join(", "))
        })
    }
}

/// The longest time to answer, in seconds.
const LONGEST_ANSWER: u64 = 365 * 24 * 60 * 60;

impl TryFrom<toml::Value> for WrittenSeconds {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let seconds = value.as_integer().and_then(|seconds| u64::try_from(seconds).ok());
        let in_range = seconds.filter(|seconds| (1..=LONGEST_ANSWER).contains(seconds));
        in_range.map(Self).ok_or_else(|| {
            format!("this is not a time to answer; write a number from 1 to {LONGEST_ANSWER}")
        })
    }
}

impl TryFrom<String> for WrittenPattern {
    type Error = BadRule;

    fn try_from(text: String) -> Result<Self, BadRule> {
        Rule::new(&text, None, Effect::Ask).map(|_| Self(text))
    }
}

impl WrittenRule {
    fn made(&self) -> Result<Rule, BadRule> {
        let pattern = self.pattern.as_ref().map(|WrittenPattern(text)| text.as_str());
        Rule::new(&self.tool.0, pattern, self.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_or_the_problem_is_named() {
        let text = "[permissions]\nmode = 'deny'\nanswer-within-seconds = 7\n[[permissions.rules]]\ntool = 'Bash'\neffect = 'allow'";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.mode, config.answer), (Some(Mode::Deny), Some(Duration::from_secs(7))));
        let tools = Config::parse("[client-tools]\nanswer-within-seconds = 60\n").unwrap();
        assert_eq!(tools.client_tool, Some(Duration::from_secs(60)));
        let wrong = |text: &str| Config::parse(text).unwrap_err();
        assert!(wrong("[permissions]\nmode = 'yolo'").contains("accept-edits"));
        assert!(wrong("[permission]").contains("permission"));
        assert!(wrong("[[permissions.rules]]\ntool='['\neffect='deny'").contains("not a pattern"));
        for seconds in ["0", "-1", "31536001", "9223372036854775807", "1.5", "'soon'"] {
            let text = format!("[permissions]\nanswer-within-seconds = {seconds}\n");
            let problem = wrong(&text);
            assert!(problem.contains("write a number from 1 to 31536000"), "{problem}");
            assert!(problem.contains("line 2"), "{problem}");
        }
        let empty = "[[permissions.rules]]\ntool='Bash'\npattern=''\neffect='allow'";
        assert!(wrong(empty).contains("empty"));
    }

    /// A person has to find the place in the file.
    #[test]
    fn an_error_shows_the_line_that_has_to_be_corrected() {
        let wrong = |text| Config::parse(text).unwrap_err();
        let expected = "TOML parse error at line 3, column 1
  |
3 | answer-within = 3
  | ^^^^^^^^^^^^^
unknown field `answer-within`, expected one of `mode`, `answer-within-seconds`, `rules`
";
        let unknown = wrong("[permissions]\nmode = 'deny'\nanswer-within = 3\n");
        assert_eq!(unknown, format!("{expected}{ADVICE}"));
        let mode = wrong("[permissions]\nmode = 'yolo'\n");
        assert!(mode.starts_with("TOML parse error at line 2, column 8\n"), "{mode}");
        let rules = "[[permissions.rules]]\ntool='A'\neffect='deny'\n[[permissions.rules]]\ntool='['\neffect='deny'\n";
        let rule = wrong(rules);
        assert!(rule.starts_with("TOML parse error at line 5, column 6\n"), "{rule}");
    }
}
