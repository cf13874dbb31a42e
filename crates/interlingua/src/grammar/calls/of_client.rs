//! Calls of tools that the host offers for the client, which the server of these tools reports, too.

use super::Calls;
use super::call::{Call, key};
use crate::event::{Executor, ToolKind};
use crate::json::Text;

impl Calls {
    /// Notes that a call, given by its emitted id, is one of a tool that the host offers for the client.
    pub(in crate::grammar) fn note_client_tool(&mut self, id: &str) {
        self.of_client_tools.insert(key(&Text::plain(id)));
    }

    /// An id that no call has.
    pub(in crate::grammar) fn fresh_id(&mut self) -> String {
        self.ids.next(|id| !self.calls.contains_key(&key(&Text::plain(id))))
    }

    /// The input of an open call, as far as it is known.
    pub(in crate::grammar) fn input_so_far(&self, id: &str) -> &str {
        match self.calls.get(&key(&Text::plain(id))) {
            Some(Call::Open(open)) if open.input_known => &open.input,
            Some(Call::Open(open)) => &open.streamed_input,
            _ => "",
        }
    }

    /// Whether a call is open, and one of this tool that the client runs.
    pub(in crate::grammar) fn is_open_call_of(&self, id: &str, tool: &str) -> bool {
        match self.calls.get(&key(&Text::plain(id))) {
            Some(Call::Open(open)) => open.executor == Executor::Client && open.name == tool,
            _ => false,
        }
    }

    /// Whether the input of a call was emitted.
    pub(in crate::grammar) fn has_input(&self, id: &str) -> bool {
        match self.calls.get(&key(&Text::plain(id))) {
            Some(Call::Open(open)) => open.input_known,
            Some(Call::Closed(_)) => true,
            None => false,
        }
    }

    /// Whether the agent works on a call of its own. A sub-agent does not count: it may be what waits for
    /// the client.
    pub(in crate::grammar) fn has_running(&self) -> bool {
        self.has_open()
            && self.calls.values().any(|call| match call {
                Call::Open(open) => {
                    open.executor != Executor::Client && open.kind != ToolKind::Task
                }
                Call::Closed(_) => false,
            })
    }

    /// The ids of the open calls of the client, in the order in which they started.
    pub(in crate::grammar) fn open_of_client(&self) -> Vec<String> {
        let open = self.calls.values().filter_map(|call| match call {
            Call::Open(open) if open.executor == Executor::Client => Some((open.order, &open.id)),
            _ => None,
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable();
        open.into_iter().map(|(_, id)| id.clone()).collect()
    }
}
