//! What a person wants of every run, in a file:
//!
//! ```toml
//! [permissions]
//! mode = "default"
//! answer-within-seconds = 300
//!
//! [[permissions.rules]]
//! tool = "Bash"          # a name or a kind of work, with * and ?
//! pattern = "git *"      # what it is about: a command, a path, an address
//! effect = "allow"       # or deny, or ask
//! ```

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::error::Error;
use crate::permission::{Effect, Mode, Rule, Rules};

/// What a file says.
#[derive(Debug, Default)]
pub struct Config {
    /// The mode, where the file has one.
    pub mode: Option<Mode>,
    /// How long a user has to answer, where the file says it.
    pub answer: Option<Duration>,
    /// The rules.
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
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bad =
            |problem: String| Error::BadDescription { path: path.display().to_string(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        Self::parse(&text).map_err(bad)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let Permissions { mode, answer_within_seconds, rules } = file.permissions;
        let mode = mode.map(|word| mode_of(&word)).transpose()?;
        let made =
            rules.iter().map(|rule| Rule::new(&rule.tool, rule.pattern.as_deref(), rule.effect));
        let rules = made.collect::<Result<_, _>>().map_err(|bad| bad.to_string())?;
        let answer = answer_within_seconds.map(Duration::from_secs);
        Ok(Self { mode, answer, rules: Rules::new(rules) })
    }
}

fn mode_of(word: &str) -> Result<Mode, String> {
    let found = Mode::ALL.into_iter().find(|mode| mode.as_str() == word);
    found.ok_or_else(|| {
        let all: Vec<_> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
        format!("there is no permission mode `{word}`; there are {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_or_says_what_is_wrong() {
        let text = "[permissions]\nmode = 'deny'\nanswer-within-seconds = 7\n[[permissions.rules]]\ntool = 'Bash'\neffect = 'allow'";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.mode, config.answer), (Some(Mode::Deny), Some(Duration::from_secs(7))));
        let wrong = |text| Config::parse(text).unwrap_err();
        assert!(wrong("[permissions]\nmode = 'yolo'").contains("accept-edits"));
        assert!(wrong("[permission]").contains("permission"));
        assert!(wrong("[[permissions.rules]]\ntool='['\neffect='deny'").contains("not a pattern"));
    }
}
