//! What is said *to* an agent, and when.
//!
//! A driver is a state machine without I/O: it is told what the agent printed, what was decided and
//! that the turn is over or to be stopped, and says what is to be sent. It reads of the agent's
//! protocol only what it has to answer; what the agent says to the user is read elsewhere.

mod acp;
mod claude;
mod codex;
mod lines;
mod plain;

pub use acp::{AcpDriver, Session};
pub use claude::ClaudeDriver;
pub use codex::{CodexDriver, Thread};
pub use plain::PlainDriver;

use crate::permission::Decision;

/// Something that a driver wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send a record to the agent: a line, without its end.
    Send(String),
    /// Say nothing more to the agent.
    CloseInput,
    /// Give up: the agent will not do what it was asked to do, for this reason.
    GiveUp(String),
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
}

/// What the tests of all drivers need.
#[cfg(test)]
mod testing {
    use serde_json::Value;

    use super::{Driver, Step};

    /// The records among some steps.
    pub(super) fn sent(steps: &[Step]) -> Vec<Value> {
        let records = steps.iter().filter_map(|step| match step {
            Step::Send(record) => serde_json::from_str(record).ok(),
            _ => None,
        });
        records.collect()
    }

    /// What a driver sends when the agent prints a record.
    pub(super) fn hears(driver: &mut dyn Driver, record: &str) -> Vec<Value> {
        let mut steps = Vec::new();
        driver.output(format!("{record}\n").as_bytes(), &mut steps);
        sent(&steps)
    }
}
