//! Drivers: what is sent *to* an agent, and when.
//!
//! A driver is one side of a conversation, as a state machine without I/O. The session passes it
//! prompts, decisions and answers, reports to it what the agent printed, and that a turn has ended
//! or has to be stopped; the driver returns the steps to take. It parses only those records of the
//! protocol that it has to answer; everything that the agent reports to the user is read by the
//! core. Two drivers also know the files that their agent writes in addition to its stream, and emit
//! their contents at the right place.

mod acp;
mod claude;
mod codex;
mod copilot;
mod copilot_headless;
mod copilot_screen;
mod gemini;
mod json_rpc;
mod lines;
mod opencode;
mod plain;
mod plain_screen;
mod terminal;

use std::path::PathBuf;
use std::time::Duration;

pub use acp::{AcpDriver, AcpSession, ModeNames};
pub use claude::ClaudeDriver;
pub(crate) use claude::mode_name as claude_mode_name;
pub use codex::{CodexDriver, Thread};
pub use copilot::CopilotDriver;
pub use copilot_headless::{CopilotHeadlessDriver, HeadlessSession, Provider};
pub use copilot_screen::CopilotScreenDriver;
pub use gemini::GeminiDriver;
use interlingua::event::{Data, Event, Notice, Reason, Severity};
use interlingua::json::Text;
pub(crate) use opencode::permission_setting;
pub use opencode::{OpencodeDriver, ServerSession};
pub use plain::{Interrupt, PlainDriver};
pub use plain_screen::PlainScreenDriver;
pub(crate) use terminal::{SCREEN, SIZE};

use crate::permission::{Decision, Mode};
use crate::process::Signal;
use crate::session::LateResult;

/// A step that a driver requests from the session.
#[derive(Clone, PartialEq)]
pub enum Step {
    /// Send a record to the agent, without its line ending or header.
    Send(String),
    /// Send a record that contains a secret.
    SendSecret {
        /// The record.
        record: String,
        /// The same record without the secret, which is read and recorded in its place.
        redacted: String,
    },
    /// Type these bytes at the agent's terminal.
    Type(Vec<u8>),
    /// Close the agent's standard input.
    CloseInput,
    /// Send a signal to the agent and to every process that it started.
    Signal(Signal),
    /// Terminate the agent, which does not exit by itself, after its work has ended: first with
    /// SIGTERM, and in the end with SIGKILL. How it exits is then no failure.
    Terminate,
    /// Give up: the agent cannot do what was requested, for this reason.
    GiveUp(String),
    /// The user approved the agent's plan, so the session leaves the mode `plan`.
    LeavePlanMode,
    /// The agent did not add this prompt to its turn, so it is the next one to have a turn.
    Queue(String),
    /// The agent begins another turn by itself, for a prompt that it could not add to the last one.
    ExpectTurn,
    /// The agent calls a tool of the client.
    CallClient(Box<ClientToolCall>),
    /// The agent does not wait for the answer to this call any more.
    WithdrawCall(u64),
    /// Translate this part of the output, which the driver had held back.
    Pass(Vec<u8>),
    /// Emit an event that is not part of the agent's output.
    Emit(Box<Event<'static>>),
    /// Read the new part of a file that the agent writes. The driver receives it at once, through
    /// [`Driver::sidecar_read`].
    Read(SidecarFile),
}

impl Step {
    /// Passes bytes on. They are merged with a preceding `Pass`, because every step has a cost.
    fn pass(mut bytes: Vec<u8>, steps: &mut Vec<Self>) {
        match steps.last_mut() {
            Some(Self::Pass(before)) => before.append(&mut bytes),
            _ => steps.push(Self::Pass(bytes)),
        }
    }

    /// Hides secrets, given as JSON literals, in what is read and recorded of a sent record.
    pub(crate) fn hide(&mut self, secrets: &[String]) {
        let Self::Send(record) = self else { return };
        let mut redacted = record.clone();
        for secret in secrets {
            redacted = redacted.replace(&**secret, "\"[secret]\"");
        }
        if redacted != *record {
            *self = Self::SendSecret { record: std::mem::take(record), redacted };
        }
    }

    /// Warns the user, for example that a change was not accepted.
    fn warn(text: String) -> Self {
        let notice = Notice { severity: Severity::Warning, text: Text::from(text) };
        Self::Emit(Box::new(Event::new(notice)))
    }

    /// Queues a prompt that could not join the running turn, and warns the user.
    fn queue(prompt: String, problem: &str, steps: &mut Vec<Self>) {
        steps.push(Self::warn(format!(
            "the prompt was not added to the running turn, and is the next one: {problem}"
        )));
        steps.push(Self::Queue(prompt));
    }

    /// Emits a fact that the agent wrote to a file, and marks it as such.
    fn emit(data: impl Into<Data<'static>>) -> Self {
        Self::Emit(Box::new(Event::new(data).because(Some(Reason::Elsewhere))))
    }
}

/// A record to the agent contains prompts and may contain keys, so only its length is shown, and so
/// is that of what is typed.
impl std::fmt::Debug for Step {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Send(record) => write!(out, "Send({} bytes)", record.len()),
            Self::SendSecret { record, .. } => write!(out, "SendSecret({} bytes)", record.len()),
            Self::Type(keys) => write!(out, "Type({} bytes)", keys.len()),
            Self::CloseInput => out.write_str("CloseInput"),
            Self::Signal(signal) => out.debug_tuple("Signal").field(signal).finish(),
            Self::GiveUp(why) => out.debug_tuple("GiveUp").field(why).finish(),
            Self::Terminate => out.write_str("Terminate"),
            Self::LeavePlanMode => out.write_str("LeavePlanMode"),
            Self::Queue(prompt) => write!(out, "Queue({} bytes)", prompt.len()),
            Self::ExpectTurn => out.write_str("ExpectTurn"),
            Self::CallClient(call) => write!(out, "CallClient({})", call.tool),
            Self::WithdrawCall(number) => write!(out, "WithdrawCall({number})"),
            Self::Pass(bytes) => write!(out, "Pass({} bytes)", bytes.len()),
            Self::Emit(event) => out.debug_tuple("Emit").field(event).finish(),
            Self::Read(file) => out.debug_tuple("Read").field(file).finish(),
        }
    }
}

/// A call of a tool of the client, which an agent makes through its own protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientToolCall {
    /// Its number, by which it is answered.
    pub number: u64,
    /// The agent's own id of the call.
    pub native: Option<String>,
    /// The client's name of the tool.
    pub tool: String,
    /// The input, as JSON.
    pub input: String,
}

/// A file that an agent writes in addition to its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SidecarFile {
    /// The file at this path.
    File(PathBuf),
    /// The file in `FOLDER/*/below` whose name has this ending.
    Below {
        /// The outer folder.
        folder: PathBuf,
        /// The name of a folder inside each of its subfolders.
        below: &'static str,
        /// The ending of the file's name.
        ending: String,
    },
}

/// Whether a change has reached the running agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It was sent to the agent.
    Now,
    /// The agent has to be restarted, with its own session id, before its next prompt.
    AtRestart,
}

/// The answer to a question of the agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// For each question, in order, the chosen labels or the free text.
    Chosen(Vec<Vec<String>>),
    /// The content of a form: an object that fits the requested schema.
    Form(serde_json::Value),
    /// The user did not answer. The model receives this reason, where the protocol can carry it.
    Declined(String),
}

/// The part of a session that speaks an agent's protocol: it returns what to send in answer to what
/// the agent prints and the user wants.
pub trait Driver: Send + std::fmt::Debug {
    /// The agent was started.
    fn start(&mut self, _steps: &mut Vec<Step>) {}

    /// The agent printed a chunk, which may be split anywhere.
    fn output(&mut self, _chunk: &[u8], _steps: &mut Vec<Step>) {}

    /// Sends a prompt. It is called only while no turn is running. A driver whose agent is not ready
    /// keeps the prompt until it is. An agent that receives its prompt when it is started has it
    /// already.
    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>);

    /// Gives the agent results for which it waited when its process was lost, in the places of their
    /// calls. Returns whether the agent can take them so; `prompt` is for the case that it does not in the
    /// end.
    fn resume(&mut self, _results: &[LateResult], _prompt: &str, _steps: &mut Vec<Step>) -> bool {
        false
    }

    /// Adds a prompt to the running turn, where the agent can. Returns whether it was sent.
    fn join(&mut self, _prompt: &str, _steps: &mut Vec<Step>) -> bool {
        false
    }

    /// The client has answered a call that was [passed on](Step::CallClient): with what the model reads,
    /// and whether it is an error.
    fn client_answered(&mut self, _call: u64, _text: &str, _failed: bool, _steps: &mut Vec<Step>) {}

    /// The session is continued later, and a call waits for the client. Returns whether the agent can end
    /// its turn so that it makes the call again when its session is resumed; then it does so now.
    fn defer(&mut self, _steps: &mut Vec<Step>) -> bool {
        false
    }

    /// A permission request was decided.
    fn decide(&mut self, _request: &str, _decision: &Decision, _steps: &mut Vec<Step>) {}

    /// Whether the model receives the reason of a denial. If it does not, the session adds the
    /// reason to the next prompt.
    fn conveys_reasons(&self) -> bool {
        false
    }

    /// A question was answered.
    fn answer(&mut self, _request: &str, _answer: &Answer, _steps: &mut Vec<Step>) {}

    /// The turn has to be stopped, with the commands that it runs. Returns whether the driver
    /// interrupted the agent in the agent's own way; if not, the session sends a signal.
    fn interrupt(&mut self, _steps: &mut Vec<Step>) -> bool {
        false
    }

    /// Changes the model for the following turns.
    fn set_model(&mut self, _model: &str, _steps: &mut Vec<Step>) -> Applied {
        Applied::AtRestart
    }

    /// Changes the permission mode. The session's own policy enforces it; the driver only passes on
    /// what the agent has to know: that it should plan, or the limits of its sandbox.
    fn set_mode(&mut self, _mode: Mode, _steps: &mut Vec<Step>) -> Applied {
        Applied::Now
    }

    /// A live turn has ended.
    fn turn_ended(&mut self, _steps: &mut Vec<Step>) {}

    /// No further prompt follows, so the agent should exit.
    fn close(&mut self, steps: &mut Vec<Step>) {
        steps.push(Step::CloseInput);
    }

    /// Whether output is translated only when the driver [passes](Step::Pass) it on. A driver may do so at
    /// the beginning only.
    fn holds_back(&self) -> bool {
        false
    }

    /// The period without any call after which the driver wants to be [woken](Driver::woken).
    fn wake_after(&self) -> Option<Duration> {
        None
    }

    /// No call was made for the period of [`Driver::wake_after`].
    fn woken(&mut self, _steps: &mut Vec<Step>) {}

    /// The new bytes of the file that a [`Step::Read`] named; empty if there is no such file.
    fn sidecar_read(&mut self, _bytes: &[u8], _steps: &mut Vec<Step>) {}

    /// The agent exited with this code, and all of its output was delivered. The driver must
    /// release whatever it still holds back.
    fn ended(&mut self, _code: Option<i64>, _steps: &mut Vec<Step>) {}
}

/// Helpers for the tests of drivers, and of the code that selects one.
#[cfg(test)]
pub(crate) mod testing {
    use serde_json::Value;

    use super::{Driver, Step};

    /// The records that some steps send.
    pub(crate) fn sent(steps: &[Step]) -> Vec<Value> {
        let records = steps.iter().filter_map(|step| match step {
            Step::Send(record) | Step::SendSecret { record, .. } => {
                serde_json::from_str(record).ok()
            }
            _ => None,
        });
        records.collect()
    }

    /// Feeds one record of the agent to a driver, and returns the records that it sends in answer.
    pub(crate) fn replies(driver: &mut dyn Driver, record: &str) -> Vec<Value> {
        let mut steps = Vec::new();
        driver.output(format!("{record}\n").as_bytes(), &mut steps);
        sent(&steps)
    }
}

#[cfg(test)]
mod tests {
    use super::Step;

    /// Records contain prompts and keys, and steps may be printed anywhere.
    #[test]
    fn a_step_does_not_show_what_it_sends() {
        let (record, redacted) = ("sk-1".to_owned(), String::new());
        let steps = [
            Step::Send(record.clone()),
            Step::Type(record.clone().into_bytes()),
            Step::SendSecret { record, redacted },
        ];
        assert_eq!(format!("{steps:?}"), "[Send(4 bytes), Type(4 bytes), SendSecret(4 bytes)]");
    }

    #[test]
    fn a_secret_answer_is_neither_read_nor_recorded() {
        let mut step = Step::Send(r#"{"id":7,"answers":{"key":"s3\"cret"}}"#.to_owned());
        step.hide(&[r#""s3\"cret""#.to_owned()]);
        let Step::SendSecret { record, redacted } = step else { panic!("{step:?}") };
        assert!(record.contains("s3"));
        assert_eq!(redacted, r#"{"id":7,"answers":{"key":"[secret]"}}"#);
        let mut step = Step::Send("{}".to_owned());
        step.hide(&["\"x\"".to_owned()]);
        assert_eq!(step, Step::Send("{}".to_owned()));
    }
}
