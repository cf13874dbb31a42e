//! Drivers: what is sent *to* an agent, and when.
//!
//! A driver is a state machine without I/O. The run reports to it what the agent printed, what was
//! decided, and that the turn has ended or has to be stopped; the driver returns the steps to take.
//! It parses only those records of the protocol that it has to answer; everything that the agent
//! reports to the user is read by the core. Two drivers also know the files that their agent writes
//! in addition to its stream, and emit their contents at the right place.

mod acp;
mod claude;
mod codex;
mod copilot;
mod copilot_screen;
mod gemini;
mod json_rpc;
mod lines;
mod plain;
mod plain_screen;
mod terminal;

use std::path::PathBuf;
use std::time::Duration;

pub use acp::{AcpDriver, Session};
pub use claude::ClaudeDriver;
pub use codex::{CodexDriver, Thread};
pub use copilot::CopilotDriver;
pub use copilot_screen::CopilotScreenDriver;
pub use gemini::GeminiDriver;
use interlingua::event::{Data, Event, Reason};
pub use plain::{Interrupt, PlainDriver};
pub use plain_screen::PlainScreenDriver;
pub(crate) use terminal::{SCREEN, SIZE};

use crate::permission::Decision;
use crate::process::Signal;

/// A step that a driver requests from the run.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send a record to the agent: one line, without its line ending.
    Send(String),
    /// Type these bytes at the agent's terminal.
    Type(Vec<u8>),
    /// Close the agent's standard input.
    CloseInput,
    /// Send a signal to the agent and to every process that it started.
    Signal(Signal),
    /// Give up: the agent cannot do what was requested, for this reason.
    GiveUp(String),
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

    /// Emits a fact that the agent wrote to a file, and marks it as such.
    fn emit(data: impl Into<Data<'static>>) -> Self {
        Self::Emit(Box::new(Event::new(data).because(Some(Reason::Elsewhere))))
    }
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

/// The part of a run that speaks an agent's protocol: it returns what to send in answer to what the
/// agent prints.
pub trait Driver: Send + std::fmt::Debug {
    /// The agent was started.
    fn start(&mut self, _steps: &mut Vec<Step>) {}

    /// The agent printed a chunk, which may be split anywhere.
    fn output(&mut self, _chunk: &[u8], _steps: &mut Vec<Step>) {}

    /// A permission request was decided.
    fn decide(&mut self, _request: &str, _decision: &Decision, _steps: &mut Vec<Step>) {}

    /// The turn has ended.
    fn turn_ended(&mut self, _steps: &mut Vec<Step>) {}

    /// The turn has to be stopped. Returns whether the driver interrupted the agent in the agent's
    /// own way; if not, the run sends a signal.
    fn interrupt(&mut self, _steps: &mut Vec<Step>) -> bool {
        false
    }

    /// Whether output is translated only when the driver [passes](Step::Pass) it on.
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
            Step::Send(record) => serde_json::from_str(record).ok(),
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
