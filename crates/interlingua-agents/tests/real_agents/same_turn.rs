//! The same prompt and the same script are the same turn, whoever runs it, in whatever protocol it is told.
//!
//! What a run told is made into a story: the texts, the calls between them, and how it ended. It is compared
//! with the story that the script itself tells, so that all agents tell the same one. Then the agent's own
//! bytes are written in each dialect that can be read again, and have to tell it still.

use std::path::{Path, PathBuf};

use fake_model::{Action, Reply, Script};
use interlingua::dialect::{self, Dialect};
use interlingua_agents::permission::Mode;
use serde_json::Value;

use crate::home::{AGENTS, Home, program};
use crate::situations::{Outcome, modes, translated, went_well};

/// An answer of the model: what it says, and the commands that it then runs at once.
pub(crate) struct Answer {
    says: &'static str,
    runs: &'static [Run],
}

/// A command, the lines that it prints, and how it exits. The lines are not in the command, so that an agent
/// that repeats the command does not seem to tell its output.
pub(crate) struct Run {
    command: &'static str,
    prints: &'static [&'static str],
    exits: i64,
}

/// The turns that are run.
pub(crate) const TURNS: &[(&str, &[Answer])] = &[
    (
        "a_command",
        &[
            Answer {
                says: "I look.",
                runs: &[Run {
                    command: "printf 'al''pha\\nbe''ta\\n'",
                    prints: &["alpha", "beta"],
                    exits: 0,
                }],
            },
            Answer { says: "I have looked.", runs: &[] },
        ],
    ),
    (
        "a_command_that_fails",
        &[
            Answer {
                says: "I try.",
                runs: &[Run { command: "echo gam''ma; exit 3", prints: &["gamma"], exits: 3 }],
            },
            Answer {
                says: "Once more.",
                runs: &[Run { command: "echo del''ta", prints: &["delta"], exits: 0 }],
            },
            Answer { says: "Now it works.", runs: &[] },
        ],
    ),
    (
        "two_commands_at_once",
        &[
            Answer {
                says: "Both — größer, \"quoted\" \\ and 🦀.",
                runs: &[
                    Run { command: "echo ep''silon", prints: &["epsilon"], exits: 0 },
                    Run { command: "echo ze''ta >&2; exit 4", prints: &["zeta"], exits: 4 },
                ],
            },
            Answer { says: "Both have run.", runs: &[] },
        ],
    ),
];

/// What a call tells beside its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Output,
    Exit,
}

/// What an agent cannot print in the protocol of a mode. Whatever is not here, all of them print.
const CANNOT: &[(&str, Mode, Fact)] = &[
    // In no protocol of Gemini is there an exit code, and a command that failed is a success.
    ("gemini", Mode::Auto, Fact::Exit),
    ("gemini", Mode::Ask, Fact::Exit),
    // By ACP it tells that a command is over, with no content at all. What its log says of both is told
    // in a run; it is not among the bytes that are recorded.
    ("gemini", Mode::Ask, Fact::Output),
];

/// What a turn was, as far as every agent can tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Story {
    parts: Vec<Part>,
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Says(String),
    /// Calls that no text parts, in the order of their commands: they run at once, and any may be told first.
    Runs(Vec<Call>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    command: String,
    kind: String,
    /// The lines that the script's commands print, out of all that the agent says of it.
    lines: Option<Vec<String>>,
    failed: Option<bool>,
}

/// Runs a turn with every agent that is here, where nobody is asked and where somebody is.
pub(crate) async fn same_turn(folder: &Path, turn: &'static [Answer]) -> Outcome {
    let mut wrong = String::new();
    for agent in AGENTS {
        let program = folder.join(program(agent).0);
        for mode in modes(agent).into_iter().filter(|_| program.exists()) {
            if let Err(what) = told_by(agent, program.clone(), mode, turn).await {
                wrong += &format!("{agent} in the mode {mode}: {what}\n");
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

async fn told_by(agent: &'static str, program: PathBuf, mode: Mode, turn: &[Answer]) -> Outcome {
    let home = Home::new(agent, program, script(turn))?;
    let record = home.work().join("record");
    let told = home.recorded(&home.request(mode), &record).await?;
    went_well(&told, &home)?;
    let whole = Story::expected(turn);
    let printed = whole.clone().without(agent, mode);
    let compare = |from: &str, story: Story, expected: &Story| {
        let told = || format!("\nread from {from}: {story:#?}\nexpected: {expected:#?}");
        if story == *expected { Ok(()) } else { Err(told()) }
    };
    compare("the run", Story::told(&told.events, turn), &whole)?;
    let bytes = std::fs::read(&record).map_err(|error| error.to_string())?;
    for to in dialect::ALL.iter().copied() {
        if to.decoder.is_some() && to.encoder.is_some() {
            let again = events(&translated(&bytes, None, to)?, to)?;
            compare(to.name, Story::told(&again, turn).without(agent, mode), &printed)?;
        }
    }
    Ok(())
}

/// What a dialect says, as events.
fn events(bytes: &[u8], from: &'static Dialect) -> Result<Vec<Value>, String> {
    let own = dialect::find("events").ok_or("no events")?;
    let lines = translated(bytes, Some(from), own)?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| error.to_string())).collect()
}

/// The model says each word by itself, and then calls.
fn script(turn: &[Answer]) -> Script {
    turn.iter().fold(Script::new(), |script, answer| {
        let words = answer.says.split_inclusive(' ');
        let reply = words.fold(Reply::new(), Reply::then_text);
        let reply = answer.runs.iter().fold(reply, |reply, run| {
            reply.then_action(Action::Shell { command: run.command.to_owned() })
        });
        script.reply(reply)
    })
}

impl Story {
    fn empty() -> Self {
        Self { parts: Vec::new(), outcome: "no end".to_owned() }
    }

    /// The story that the script tells.
    fn expected(turn: &[Answer]) -> Self {
        let mut story = Self { outcome: "completed".to_owned(), ..Self::empty() };
        for answer in turn {
            story.says(answer.says);
            for run in answer.runs {
                story.runs(Call {
                    command: run.command.to_owned(),
                    kind: "execute".to_owned(),
                    lines: Some(run.prints.iter().map(|line| (*line).to_owned()).collect()),
                    failed: Some(run.exits != 0),
                });
            }
        }
        story
    }

    /// The story that events tell.
    fn told(events: &[Value], turn: &[Answer]) -> Self {
        let mut story = Self::empty();
        for event in events {
            match event["type"].as_str().unwrap_or_default() {
                "block" | "block_delta" if event["kind"] == "text" => {
                    story.says(event["text"].as_str().unwrap_or_default());
                }
                "tool_started" => {
                    let same = |other: &&Value| other["call"] == event["call"];
                    let about: Vec<_> = events.iter().filter(same).collect();
                    story.runs(Call::told(&about, turn));
                }
                "turn_ended" => {
                    event["outcome"].as_str().unwrap_or_default().clone_into(&mut story.outcome);
                }
                _ => {}
            }
        }
        story
    }

    fn says(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Says(said)) => said.push_str(text),
            _ => self.parts.push(Part::Says(text.to_owned())),
        }
    }

    fn runs(&mut self, call: Call) {
        match self.parts.last_mut() {
            Some(Part::Runs(calls)) => {
                calls.push(call);
                calls.sort();
            }
            _ => self.parts.push(Part::Runs(vec![call])),
        }
    }

    /// The story without what an agent cannot say.
    fn without(mut self, agent: &str, mode: Mode) -> Self {
        let cannot = |fact| CANNOT.contains(&(agent, mode, fact));
        for part in &mut self.parts {
            let Part::Runs(calls) = part else { continue };
            for call in calls {
                call.lines.take_if(|_| cannot(Fact::Output));
                call.failed.take_if(|_| cannot(Fact::Exit));
            }
        }
        self
    }
}

impl Call {
    /// A call, as all events about it tell it.
    fn told(events: &[&Value], turn: &[Answer]) -> Self {
        let find = |kind: &str| events.iter().find(|event| event["type"] == kind).copied();
        let (started, ended) = (find("tool_started"), find("tool_ended"));
        let (started, ended) = (started.unwrap_or(&Value::Null), ended.unwrap_or(&Value::Null));
        let command = events.iter().find_map(|event| event["input"]["command"].as_str());
        let failed =
            ended["status"] != "completed" || ended["exit_code"].as_i64().unwrap_or(0) != 0;
        let mut lines = Vec::new();
        known_lines(&ended["output"], turn, &mut lines);
        Self {
            command: inner(command.unwrap_or_default()),
            kind: started["kind"].as_str().unwrap_or_default().to_owned(),
            lines: Some(lines),
            failed: Some(failed),
        }
    }
}

/// A command without the shell that Codex tells to run it. Its words are quoted for a shell.
fn inner(command: &str) -> String {
    let quoted = command.strip_prefix("/bin/bash -lc ");
    let Some(inner) = quoted.and_then(|it| it.strip_prefix('"')?.strip_suffix('"')) else {
        return command.to_owned();
    };
    let (mut plain, mut escaped) = (String::new(), false);
    for letter in inner.chars() {
        escaped = letter == '\\' && !escaped;
        if !escaped {
            plain.push(letter);
        }
    }
    plain
}

/// The lines of an output that some command prints; an agent may put a word before the first of them.
fn known_lines(output: &Value, turn: &[Answer], lines: &mut Vec<String>) {
    match output {
        Value::String(text) => {
            let known = || turn.iter().flat_map(|answer| answer.runs).flat_map(|run| run.prints);
            let last_words = text.lines().filter_map(|line| line.trim_end().rsplit(' ').next());
            lines.extend(last_words.filter(|word| known().any(|it| it == word)).map(str::to_owned));
        }
        Value::Array(list) => list.iter().for_each(|value| known_lines(value, turn, lines)),
        Value::Object(fields) => fields.values().for_each(|value| known_lines(value, turn, lines)),
        _ => {}
    }
}
