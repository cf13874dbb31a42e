//! Tracks the calls of todo tools, which are written only as lists. A call without a list is
//! counted as lost.

use crate::dialect::Output;
use crate::event::{ToolEnded, ToolStatus};
use crate::json::Text;

/// The calls of a turn that keep the todo list.
#[derive(Debug, Clone, Default)]
pub(super) struct TodoCalls {
    /// The calls that are not answered yet and whose list was not written.
    open: Vec<String>,
    /// The number of answered calls whose list was not written. It may still follow.
    answered: usize,
}

impl TodoCalls {
    pub(super) fn started(&mut self, call: &Text<'_>) {
        self.open.push(call.to_plain().into_owned());
    }

    /// Notes that a list was written, and attributes it to its call if the call is known.
    pub(super) fn list_written(&mut self, call: Option<&Text<'_>>) {
        let by = match call {
            Some(call) => self.open.iter().position(|open| *call == **open),
            None if self.answered > 0 => {
                self.answered -= 1;
                None
            }
            None => (!self.open.is_empty()).then_some(0),
        };
        if let Some(at) = by {
            self.open.remove(at);
        }
    }

    pub(super) fn answered(&mut self, ended: &ToolEnded<'_>, out: &mut Output) {
        let at = self.open.iter().position(|open| ended.call == **open);
        if ended.status != ToolStatus::Completed {
            out.lost("failures of a todo tool");
        } else if at.is_some() {
            self.answered += 1;
        }
        if let Some(at) = at {
            self.open.remove(at);
        }
    }

    /// Counts the calls whose list was not written.
    pub(super) fn end_turn(&mut self, out: &mut Output) {
        for _ in 0..self.answered {
            out.lost("calls of a todo tool without a list");
        }
        *self = Self::default();
    }
}
