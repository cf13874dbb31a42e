//! The calls of todo tools: their lists tell them, and nothing else does. One that tells no list is
//! counted as lost.

use crate::dialect::Output;
use crate::event::{ToolEnded, ToolStatus};
use crate::json::Text;

/// The calls of a turn that keep the todo list.
#[derive(Debug, Clone, Default)]
pub(super) struct TodoCalls {
    /// Those that wait for their answers, and have told no list.
    open: Vec<String>,
    /// How many were answered, and have told none: it may still come.
    answered: usize,
}

impl TodoCalls {
    pub(super) fn made(&mut self, call: &Text<'_>) {
        self.open.push(call.to_plain().into_owned());
    }

    /// A list was told, by a call where one is named.
    pub(super) fn list_told(&mut self, call: Option<&Text<'_>>) {
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
            out.lost("failure of a todo tool");
        } else if at.is_some() {
            self.answered += 1;
        }
        if let Some(at) = at {
            self.open.remove(at);
        }
    }

    /// Counts the calls that nothing tells.
    pub(super) fn end_turn(&mut self, out: &mut Output) {
        for _ in 0..self.answered {
            out.lost("call of a todo tool without a list");
        }
        *self = Self::default();
    }
}
