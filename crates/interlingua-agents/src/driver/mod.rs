//! What is said *to* an agent, and when.
//!
//! A driver is a state machine without I/O: it is told what the agent printed, what was decided and
//! that the turn is over or to be stopped, and says what is to be sent. It reads of the agent's
//! protocol only what it has to answer; what the agent says to the user is read elsewhere. Two drivers
//! also know what their agent writes beside its stream, and put it where it belongs.

mod acp;
mod claude;
mod codex;
mod copilot;
mod copilot_screen;
mod gemini;
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

/// Something that a driver wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send a record to the agent: a line, without its end.
    Send(String),
    /// Type this at the agent's terminal.
    Type(Vec<u8>),
    /// Say nothing more to the agent.
    CloseInput,
    /// Send a signal to the agent and to all that it started.
    Signal(Signal),
    /// Give up: the agent will not do what it was asked to do, for this reason.
    GiveUp(String),
    /// Translate this part of what was printed, which the driver held back.
    Pass(Vec<u8>),
    /// Tell an event that is not in what the agent prints.
    Tell(Box<Event<'static>>),
    /// Read what is new in a file that the agent writes; the driver is told it at once.
    Read(Beside),
}

impl Step {
    /// Passes on some bytes, together with those that are passed on just before: every piece costs.
    fn pass(mut bytes: Vec<u8>, steps: &mut Vec<Self>) {
        match steps.last_mut() {
            Some(Self::Pass(before)) => before.append(&mut bytes),
            _ => steps.push(Self::Pass(bytes)),
        }
    }

    /// Tells what the agent wrote elsewhere, and marks it so.
    fn tell(data: impl Into<Data<'static>>) -> Self {
        Self::Tell(Box::new(Event::new(data).because(Some(Reason::Elsewhere))))
    }
}

/// A file that an agent writes beside its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beside {
    /// The file of this name.
    File(PathBuf),
    /// The file in `FOLDER/*/below` whose name ends so.
    Below {
        /// The folder.
        folder: PathBuf,
        /// A folder in each of its folders.
        below: &'static str,
        /// How the file's name ends.
        ending: String,
    },
}

/// What is sent to an agent, in answer to what it says.
pub trait Driver: Send + std::fmt::Debug {
    /// The agent was started.
    fn start(&mut self, _steps: &mut Vec<Step>) {}

    /// The agent printed something, in any split.
    fn output(&mut self, _chunk: &[u8], _steps: &mut Vec<Step>) {}

    /// It was decided what a request asked for.
    fn decide(&mut self, _request: &str, _decision: &Decision, _steps: &mut Vec<Step>) {}

    /// The turn is over.
    fn turn_ended(&mut self, _steps: &mut Vec<Step>) {}

    /// The turn is to be stopped. Gives whether the agent was told so in its own way; if not, a signal
    /// has to say it.
    fn interrupt(&mut self, _steps: &mut Vec<Step>) -> bool {
        false
    }

    /// Whether what the agent prints is translated only when the driver [passes](Step::Pass) it on.
    fn holds_back(&self) -> bool {
        false
    }

    /// After how long without news the driver wants to be woken.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// There was no news for as long as the driver has patience.
    fn woken(&mut self, _steps: &mut Vec<Step>) {}

    /// This is new in the file that was to be read; nothing, where there is no such file.
    fn beside(&mut self, _bytes: &[u8], _steps: &mut Vec<Step>) {}

    /// The agent has ended, with an exit code, and all that it printed was told: nothing may be held
    /// back any more.
    fn ended(&mut self, _code: Option<i64>, _steps: &mut Vec<Step>) {}
}

/// What the tests of all drivers need, and of those who choose one.
#[cfg(test)]
pub(crate) mod testing {
    use serde_json::Value;

    use super::{Driver, Step};

    /// The records among some steps.
    pub(crate) fn sent(steps: &[Step]) -> Vec<Value> {
        let records = steps.iter().filter_map(|step| match step {
            Step::Send(record) => serde_json::from_str(record).ok(),
            _ => None,
        });
        records.collect()
    }

    /// What a driver sends when the agent prints a record.
    pub(crate) fn hears(driver: &mut dyn Driver, record: &str) -> Vec<Value> {
        let mut steps = Vec::new();
        driver.output(format!("{record}\n").as_bytes(), &mut steps);
        sent(&steps)
    }
}
