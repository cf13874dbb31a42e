//! The messages of both sides, as they are on the wire.

use crate::dialect::copilot::wire::Line;
use crate::dialect::json_rpc;
use crate::json::record;

/// A message of either side.
pub(super) type Message<'a> = json_rpc::Message<'a, Params<'a>, Outcome<'a>>;

record! {
    /// The parameters of all methods.
    pub(super) struct Params<'a> {
        event: record<Line> "event",
        session: text "sessionId",
    }
}

record! {
    /// The results of all methods.
    pub(super) struct Outcome<'a> {
        /// The todo list.
        rows: json "rows",
    }
}

record! {
    /// An item of the todo list.
    pub(super) struct Todo<'a> {
        title: text "title",
        description: text "description",
        status: text "status",
    }
}
