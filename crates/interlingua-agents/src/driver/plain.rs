//! An agent that receives everything when it is started.

use serde::Deserialize;

use super::{Driver, Step};
use crate::process::Signal;

/// The driver of an agent that takes no input while it runs.
#[derive(Debug, Default)]
pub struct PlainDriver {
    interrupt: Interrupt,
}

/// How such an agent is interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interrupt {
    /// With SIGINT, as by Ctrl-C at a terminal.
    #[default]
    Int,
    /// With SIGTERM, for a program that does not handle SIGINT.
    Term,
    /// By closing its standard input.
    CloseInput,
}

impl PlainDriver {
    /// Creates a driver that interrupts the agent in this way.
    pub fn new(interrupt: Interrupt) -> Self {
        Self { interrupt }
    }
}

impl Driver for PlainDriver {
    fn prompt(&mut self, _prompt: &str, _steps: &mut Vec<Step>) {}

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        steps.push(match self.interrupt {
            Interrupt::Int => Step::Signal(Signal::Interrupt),
            Interrupt::Term => Step::Signal(Signal::Terminate),
            Interrupt::CloseInput => Step::CloseInput,
        });
        true
    }
}
