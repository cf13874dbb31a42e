//! Commands for a session as JSON lines on standard input.
//!
//! ```text
//! {"prompt":"fix the test"}                        another prompt; "join":true adds it to the running turn
//! {"request":"ID","decision":"allow"}              also "deny" with a "reason", or "always" with a "pattern" or "tool":true
//! {"request":"ID","answer":"Blue"}                 the answer to a question; null declines it
//! {"interrupt":true}                               stops the turn
//! {"model":"NAME"}, {"mode":"plan"}                for what follows
//! {"close":true}                                   ends the session now
//! ```
//!
//! A request may be named by the id of its tool call. A mode that is not known is the default one,
//! which a notice states: a program of another version may know further ones. A line that is not a command costs only that
//! line, and a command that is not accepted is reported.

use std::io::{self, BufRead};
use std::path::PathBuf;

use interlingua::event::{Event, Notice, Severity};
use interlingua::json::Text;
use interlingua_agents::permission::{Always, Decision, Mode};
use interlingua_agents::{Handle, Prompt, Refused};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

/// A command for a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Prompt(Prompt),
    Decide {
        request: String,
        decision: Decision,
    },
    AllowAlways {
        request: String,
        always: Always,
    },
    Answer {
        request: String,
        answer: Value,
    },
    Decline {
        request: String,
        reason: String,
    },
    Interrupt,
    Model(String),
    Mode(Mode),
    /// A mode that is not known.
    UnknownMode(String),
    Close,
}

/// The form of a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    prompt: Option<String>,
    #[serde(default)]
    join: bool,
    #[serde(default)]
    files: Vec<PathBuf>,
    #[serde(alias = "call")]
    request: Option<String>,
    decision: Option<Word>,
    reason: Option<String>,
    pattern: Option<String>,
    #[serde(default)]
    tool: bool,
    #[serde(default, deserialize_with = "present")]
    answer: Option<Value>,
    #[serde(default)]
    interrupt: bool,
    model: Option<String>,
    mode: Option<String>,
    #[serde(default)]
    close: bool,
}

/// Tells a value that is `null` from one that is missing.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Deny,
    Always,
}

const FORMS: &str = "write {\"prompt\":…}, {\"request\":\"ID\",\"decision\":\"allow\"}, {\"request\":\"ID\",\"answer\":…}, {\"interrupt\":true} or {\"close\":true}";

impl Command {
    /// Reads a line. The error explains what is wrong with it.
    pub(crate) fn read(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| "it is not valid UTF-8".to_owned())?;
        let line = serde_json::from_str::<Line>(text)
            .map_err(|error| format!("it is not a command ({error}); {FORMS}"))?;
        line.command()
    }

    /// Sends the command to a session.
    pub(crate) async fn send(self, handle: &Handle) -> Result<(), Refused> {
        match self {
            Self::Prompt(prompt) => handle.prompt(prompt).await,
            Self::Decide { request, decision } => handle.decide(&request, decision).await.map(drop),
            Self::AllowAlways { request, always } => {
                handle.allow_always(&request, always).await.map(drop)
            }
            Self::Answer { request, answer } => handle.answer(&request, answer).await.map(drop),
            Self::Decline { request, reason } => handle.decline(&request, &reason).await.map(drop),
            Self::Interrupt => handle.interrupt().await.map(drop),
            Self::Model(model) => handle.set_model(&model).await,
            Self::Mode(mode) => handle.set_mode(mode).await,
            Self::UnknownMode(name) => {
                let mode = Mode::default();
                handle.set_mode(mode).await?;
                let all: Vec<_> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
                let text = format!(
                    "`{name}` is not a permission mode, so the mode is `{}`; the modes are {}",
                    mode.as_str(),
                    all.join(", ")
                );
                let notice = Notice { severity: Severity::Warning, text: Text::from(text) };
                handle.emit(Event::new(notice)).await
            }
            Self::Close => handle.close().await,
        }
    }
}

impl Line {
    fn command(self) -> Result<Command, String> {
        let Self { prompt, join, files, request, decision, reason, pattern, answer, .. } = self;
        let reason_or = |default: &str| reason.clone().unwrap_or_else(|| default.to_owned());
        let mut commands = Vec::new();
        if let Some(text) = prompt {
            let prompt = if join { Prompt::joining(text) } else { Prompt::new(text) };
            commands.push(Command::Prompt(prompt.with_files(files)));
        }
        match (request, decision, answer) {
            (None, None, None) => {}
            (Some(request), Some(Word::Allow), None) => {
                commands.push(Command::Decide { request, decision: Decision::Allow });
            }
            (Some(request), Some(Word::Deny), None) => {
                let decision = Decision::Deny(reason_or("the user denied it"));
                commands.push(Command::Decide { request, decision });
            }
            (Some(request), Some(Word::Always), None) => {
                let always = match (pattern, self.tool) {
                    (None, false) => Always::Same,
                    (None, true) => Always::Tool,
                    (Some(pattern), false) => Always::Matching(pattern),
                    (Some(_), true) => {
                        return Err("\"pattern\" and \"tool\" exclude each other".to_owned());
                    }
                };
                commands.push(Command::AllowAlways { request, always });
            }
            (Some(request), None, Some(Value::Null)) => {
                let reason = reason_or("the user did not want to answer");
                commands.push(Command::Decline { request, reason });
            }
            (Some(request), None, Some(answer)) => {
                commands.push(Command::Answer { request, answer });
            }
            (None, ..) => return Err("it names no request; add \"request\":\"ID\"".to_owned()),
            (Some(_), ..) => {
                return Err("a request needs either a decision or an answer".to_owned());
            }
        }
        if self.interrupt {
            commands.push(Command::Interrupt);
        }
        commands.extend(self.model.map(Command::Model));
        if let Some(name) = self.mode {
            let mode = Mode::ALL.into_iter().find(|mode| mode.as_str() == name);
            commands.push(mode.map_or(Command::UnknownMode(name), Command::Mode));
        }
        if self.close {
            commands.push(Command::Close);
        }
        match (commands.pop(), commands.is_empty()) {
            (Some(command), true) => Ok(command),
            (None, _) => Err(format!("it has no command; {FORMS}")),
            (Some(_), false) => Err("it has several commands; write one per line".to_owned()),
        }
    }
}

/// Reads commands from standard input, in a thread of its own. The channel is closed at the end of
/// the input.
pub(crate) fn from_stdin() -> mpsc::Receiver<Result<Command, String>> {
    let (commands, received) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            match stdin.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => {
                    let command = Command::read(line.trim_ascii());
                    if commands.blocking_send(command).is_err() {
                        return;
                    }
                }
            }
        }
    });
    received
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        Command::read(line.as_bytes())
    }

    #[test]
    fn every_command_is_read() {
        let request = || "r".to_owned();
        let expected = [
            (r#"{"prompt":"go on"}"#, Command::Prompt(Prompt::new("go on"))),
            (r#"{"prompt":"also","join":true}"#, Command::Prompt(Prompt::joining("also"))),
            (
                r#"{"request":"r","decision":"allow"}"#,
                Command::Decide { request: request(), decision: Decision::Allow },
            ),
            (
                r#"{"call":"r","decision":"deny","reason":"no"}"#,
                Command::Decide { request: request(), decision: Decision::Deny("no".into()) },
            ),
            (
                r#"{"request":"r","decision":"always","pattern":"git *"}"#,
                Command::AllowAlways {
                    request: request(),
                    always: Always::Matching("git *".into()),
                },
            ),
            (
                r#"{"request":"r","decision":"always","tool":true}"#,
                Command::AllowAlways { request: request(), always: Always::Tool },
            ),
            (
                r#"{"request":"r","answer":{"colour":"Blue"}}"#,
                Command::Answer { request: request(), answer: json!({"colour": "Blue"}) },
            ),
            (
                r#"{"request":"r","answer":null,"reason":"later"}"#,
                Command::Decline { request: request(), reason: "later".into() },
            ),
            (r#"{"interrupt":true}"#, Command::Interrupt),
            (r#"{"model":"m"}"#, Command::Model("m".into())),
            (r#"{"mode":"plan"}"#, Command::Mode(Mode::Plan)),
            (r#"{"mode":"yolo"}"#, Command::UnknownMode("yolo".into())),
            (r#"{"close":true}"#, Command::Close),
        ];
        for (line, command) in expected {
            assert_eq!(read(line), Ok(command), "{line}");
        }
    }

    #[test]
    fn the_problem_of_a_line_is_named() {
        let bad = [
            ("nonsense", "not a command"),
            ("{}", "no command"),
            (r#"{"promt":"x"}"#, "promt"),
            (r#"{"decision":"allow"}"#, "names no request"),
            (r#"{"request":"r"}"#, "either a decision or an answer"),
            (r#"{"request":"r","decision":"maybe"}"#, "maybe"),
            (r#"{"prompt":"x","close":true}"#, "several commands"),
            (r#"{"interrupt":false}"#, "no command"),
        ];
        for (line, problem) in bad {
            let refused = read(line).unwrap_err();
            assert!(refused.contains(problem), "{line}: {refused}");
        }
        assert!(Command::read(b"{\"prompt\":\"\xff\"}").unwrap_err().contains("UTF-8"));
    }
}
