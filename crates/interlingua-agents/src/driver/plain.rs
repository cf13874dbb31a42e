//! An agent that is told everything when it is started.

use serde::Deserialize;

use super::{Driver, Step};
use crate::process::Signal;

/// The driver of an agent to which nothing is said while it runs.
#[derive(Debug, Default)]
pub struct PlainDriver {
    interrupt: Interrupt,
}

/// How such an agent is interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interrupt {
    /// As by Ctrl-C at a terminal.
    #[default]
    Int,
    /// By the signal that asks a program to end, where it does not know the other one.
    Term,
    /// By the end of its standard input.
    CloseInput,
}

impl PlainDriver {
    /// A driver that interrupts so.
    pub fn new(interrupt: Interrupt) -> Self {
        Self { interrupt }
    }
}

impl Driver for PlainDriver {
    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        steps.push(match self.interrupt {
            Interrupt::Int => Step::Signal(Signal::Interrupt),
            Interrupt::Term => Step::Signal(Signal::Terminate),
            Interrupt::CloseInput => Step::CloseInput,
        });
        true
    }
}
