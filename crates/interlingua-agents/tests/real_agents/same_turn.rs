//! The same prompt and the same script result in the same turn, with every agent and protocol.
//!
//! The events of a run are reduced to a summary: the texts, the calls between them, and the
//! outcome. It is compared with the summary of the script itself, so all agents must agree. Then
//! the agent's own bytes are written in each dialect that can be read again, and must still result
//! in the same summary.

use std::path::{Path, PathBuf};

use fake_model::{Action, Reply, Script};
use interlingua::dialect::{self, Dialect};
use interlingua_agents::api::ApiKind;
use interlingua_agents::permission::Mode;
use serde_json::Value;

use crate::home::{AGENTS, Home, program};
use crate::model_apis::{self, APIS};
use crate::situations::{Outcome, modes, succeeded, translated};

/// An answer of the model: its text, and the commands that it then runs at once.
pub(crate) struct Answer {
    text: &'static str,
    runs: &'static [Run],
}

/// A command, the lines that it prints, and its exit code. The lines do not occur in the command,
/// so an agent that repeats the command does not appear to report its output.
pub(crate) struct Run {
    command: &'static str,
    prints: &'static [&'static str],
    exits: i64,
}

/// The turns to run.
pub(crate) const TURNS: &[(&str, &[Answer])] = &[
    (
        "a_command",
        &[
            Answer {
                text: "I look.",
                runs: &[Run {
                    command: "printf 'al''pha\\nbe''ta\\n'",
                    prints: &["alpha", "beta"],
                    exits: 0,
                }],
            },
            Answer { text: "I have looked.", runs: &[] },
        ],
    ),
    (
        "a_command_that_fails",
        &[
            Answer {
                text: "I try.",
                runs: &[Run { command: "echo gam''ma; exit 3", prints: &["gamma"], exits: 3 }],
            },
            Answer {
                text: "Once more.",
                runs: &[Run { command: "echo del''ta", prints: &["delta"], exits: 0 }],
            },
            Answer { text: "Now it works.", runs: &[] },
        ],
    ),
    (
        "two_commands_at_once",
        &[
            Answer {
                text: "Both — größer, \"quoted\" \\ and 🦀.",
                runs: &[
                    Run { command: "echo ep''silon", prints: &["epsilon"], exits: 0 },
                    Run { command: "echo ze''ta >&2; exit 4", prints: &["zeta"], exits: 4 },
                ],
            },
            Answer { text: "Both have run.", runs: &[] },
        ],
    ),
];

/// A fact about a call, in addition to its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Output,
    Exit,
}

/// The facts that an agent cannot report in the protocol of a mode. All agents report everything
/// else.
const CANNOT: &[(&str, Mode, Fact)] = &[
    // No protocol of Gemini has exit codes, and it reports a failed command as a success.
    ("gemini", Mode::Auto, Fact::Exit),
    ("gemini", Mode::Ask, Fact::Exit),
    // Over ACP it reports only that a command has finished, without content. A run emits both facts
    // from its log, but the recorded bytes do not contain them.
    ("gemini", Mode::Auto, Fact::Output),
    ("gemini", Mode::Ask, Fact::Output),
];

/// The content of a turn, as far as every agent can report it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Summary {
    parts: Vec<Part>,
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Calls without text between them, ordered by command: they run at once, in any order.
    Runs(Vec<Call>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    command: String,
    kind: String,
    /// Those lines of the script's commands that occur in the reported output.
    lines: Option<Vec<String>>,
    failed: Option<bool>,
}

/// Runs a turn with every installed agent, with and without permission requests.
pub(crate) async fn same_turn(folder: &Path, turn: &'static [Answer]) -> Outcome {
    let mut wrong = String::new();
    for agent in AGENTS {
        let program = folder.join(program(agent).0);
        for mode in modes(agent).into_iter().filter(|_| program.exists()) {
            if let Err(what) = check_agent(agent, program.clone(), mode, turn).await {
                wrong += &format!("{agent} in mode {mode}: {what}\n");
            }
        }
    }
    for api in APIS {
        if let Err(what) = check_api(api, turn).await {
            wrong += &format!("{}: {what}\n", api.dialect_name());
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Runs a turn with a model API, which has all facts in every dialect.
async fn check_api(api: ApiKind, turn: &[Answer]) -> Outcome {
    let bytes = model_apis::run(api, script(turn)).await?;
    let expected = Summary::expected(turn);
    for to in dialect::ALL.iter().copied() {
        if to.decoder.is_some() && to.encoder.is_some() {
            let again = events(&translated(&bytes, None, to)?, to)?;
            compare(to.name, &Summary::from_events(&again, turn), &expected)?;
        }
    }
    Ok(())
}

fn compare(from: &str, summary: &Summary, expected: &Summary) -> Outcome {
    let difference = || format!("\nread from {from}: {summary:#?}\nexpected: {expected:#?}");
    if summary == expected { Ok(()) } else { Err(difference()) }
}

async fn check_agent(
    agent: &'static str,
    program: PathBuf,
    mode: Mode,
    turn: &[Answer],
) -> Outcome {
    let home = Home::new(agent, program, script(turn))?;
    let record = home.work().join("record");
    let report = home.recorded(&home.request(mode), &record).await?;
    succeeded(&report, &home)?;
    let complete = Summary::expected(turn);
    let printed = complete.clone().without(agent, mode);
    compare("the run", &Summary::from_events(&report.events, turn), &complete)?;
    let bytes = std::fs::read(&record).map_err(|error| error.to_string())?;
    for to in dialect::ALL.iter().copied() {
        if to.decoder.is_some() && to.encoder.is_some() {
            let again = events(&translated(&bytes, None, to)?, to)?;
            let again = Summary::from_events(&again, turn).without(agent, mode);
            compare(to.name, &again, &printed)?;
        }
    }
    Ok(())
}

/// The events of a stream in some dialect.
fn events(bytes: &[u8], from: &'static Dialect) -> Result<Vec<Value>, String> {
    let own = dialect::find("events").ok_or("no events")?;
    let lines = translated(bytes, Some(from), own)?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| error.to_string())).collect()
}

/// The model streams each word separately, and then calls tools.
fn script(turn: &[Answer]) -> Script {
    turn.iter().fold(Script::new(), |script, answer| {
        let words = answer.text.split_inclusive(' ');
        let reply = words.fold(Reply::new(), Reply::then_text);
        let reply = answer.runs.iter().fold(reply, |reply, run| {
            reply.then_action(Action::Shell { command: run.command.to_owned() })
        });
        script.reply(reply)
    })
}

impl Summary {
    fn empty() -> Self {
        Self { parts: Vec::new(), outcome: "no end".to_owned() }
    }

    /// The summary of the script.
    fn expected(turn: &[Answer]) -> Self {
        let mut summary = Self { outcome: "completed".to_owned(), ..Self::empty() };
        for answer in turn {
            summary.add_text(answer.text);
            for run in answer.runs {
                summary.add_call(Call {
                    command: run.command.to_owned(),
                    kind: "execute".to_owned(),
                    lines: Some(run.prints.iter().map(|line| (*line).to_owned()).collect()),
                    failed: Some(run.exits != 0),
                });
            }
        }
        summary
    }

    /// The summary of some events.
    fn from_events(events: &[Value], turn: &[Answer]) -> Self {
        let mut summary = Self::empty();
        for event in events {
            match event["type"].as_str().unwrap_or_default() {
                "block" | "block_delta" if event["kind"] == "text" => {
                    summary.add_text(event["text"].as_str().unwrap_or_default());
                }
                "tool_started" => {
                    let same = |other: &&Value| other["call"] == event["call"];
                    let about: Vec<_> = events.iter().filter(same).collect();
                    summary.add_call(Call::from_events(&about, turn));
                }
                "turn_ended" => {
                    event["outcome"].as_str().unwrap_or_default().clone_into(&mut summary.outcome);
                }
                _ => {}
            }
        }
        summary
    }

    fn add_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }

    fn add_call(&mut self, call: Call) {
        match self.parts.last_mut() {
            Some(Part::Runs(calls)) => {
                calls.push(call);
                calls.sort();
            }
            _ => self.parts.push(Part::Runs(vec![call])),
        }
    }

    /// The summary without the facts that an agent cannot report.
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
    /// A call, from all events about it.
    fn from_events(events: &[&Value], turn: &[Answer]) -> Self {
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

/// Removes the shell with which Codex runs a command. Its words are quoted for a shell.
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

/// Collects the output lines that some command prints; an agent may put a prefix before the first
/// one.
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
