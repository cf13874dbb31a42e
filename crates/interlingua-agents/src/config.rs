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
//! ```
//!
//! Deny beats ask, and ask beats allow; the order of the rules does not matter.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::error::Error;
use crate::permission::{Effect, Mode, Rule, Rules};

/// The contents of a settings file.
#[derive(Debug, Default)]
pub struct Config {
    /// The permission mode, if the file sets one.
    pub mode: Option<Mode>,
    /// How long the user has to answer, if the file sets it.
    pub answer: Option<Duration>,
    /// The permission rules.
    pub rules: Rules,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    permissions: Permissions,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Permissions {
    mode: Option<String>,
    answer_within_seconds: Option<u64>,
    #[serde(default)]
    rules: Vec<WrittenRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    tool: String,
    pattern: Option<String>,
    effect: Effect,
}

impl Config {
    /// Reads a settings file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bad =
            |problem: String| Error::InvalidFile { path: path.display().to_string(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        Self::parse(&text).map_err(bad)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let Permissions { mode, answer_within_seconds, rules } = file.permissions;
        let mode = mode.map(|word| parse_mode(&word)).transpose()?;
        let made =
            rules.iter().map(|rule| Rule::new(&rule.tool, rule.pattern.as_deref(), rule.effect));
        let rules = made.collect::<Result<_, _>>().map_err(|bad| bad.to_string())?;
        let answer = answer_within_seconds.map(Duration::from_secs);
        Ok(Self { mode, answer, rules: Rules::new(rules) })
    }
}

fn parse_mode(word: &str) -> Result<Mode, String> {
    let found = Mode::ALL.into_iter().find(|mode| mode.as_str() == word);
    found.ok_or_else(|| {
        let all: Vec<_> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
        format!("`{word}` is not a permission mode; the modes are {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_or_the_problem_is_named() {
        let text = "[permissions]\nmode = 'deny'\nanswer-within-seconds = 7\n[[permissions.rules]]\ntool = 'Bash'\neffect = 'allow'";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.mode, config.answer), (Some(Mode::Deny), Some(Duration::from_secs(7))));
        let wrong = |text| Config::parse(text).unwrap_err();
        assert!(wrong("[permissions]\nmode = 'yolo'").contains("accept-edits"));
        assert!(wrong("[permission]").contains("permission"));
        assert!(wrong("[[permissions.rules]]\ntool='['\neffect='deny'").contains("not a pattern"));
        let empty = "[[permissions.rules]]\ntool='Bash'\npattern=''\neffect='allow'";
        assert!(wrong(empty).contains("empty"));
    }
}
