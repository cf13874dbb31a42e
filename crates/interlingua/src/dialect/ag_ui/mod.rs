//! `ag-ui`: events of the Agent-User Interaction protocol, as server-sent events.
//!
//! Seen in `@ag-ui/client` 1.0.0 (protocol 1.0), whose agent reads what we write in our tests. The
//! client reads `data: {json}` with an empty line behind it, or protobuf by its media type; loose
//! lines it does not read, and `[DONE]` would kill it.
//!
//! A turn is a run: `RUN_STARTED`, then all else, then `RUN_FINISHED` or `RUN_ERROR`. A stream may have
//! several runs; between them nothing can be said, so what happens there is told in the next one, and
//! after the last one in a run of its own, if it is something to show.
//! Before a run ends, all messages, calls, steps and sub-agents of it must be closed. A message is one
//! block of text; calls hang on the message that made them. What a sub-agent says carries
//! `subagentRunId`, which is the id of the call that started it.
//!
//! The client strips fields it does not know, with a warning, and drops such events: so there are none
//! of ours. What has no event of its own is `CUSTOM`, with the name and the payload of our own event;
//! records of the agent's own are `RAW`.
//!
//! Events are only written. What a client sends is a request to run, not a stream.

mod calls;
mod encode;
mod rules;
mod runs;

use super::{Dialect, FramingKind};

pub use encode::AgUiEncoder;

/// The dialect `ag-ui`.
pub static DIALECT: Dialect = Dialect {
    name: "ag-ui",
    aliases: &["agui"],
    about: "AG-UI: agent-user interaction events, server-sent",
    framing: FramingKind::Sse,
    encoder: Some(|options| Box::new(AgUiEncoder::new(options))),
    cannot_express: &[
        "text that the agent took back",
        "turns of the past",
        "pictures in what a tool gave back",
        "how the process ended, after a turn that ended before",
    ],
    rules: Some(|| Box::<rules::AgUiRules>::default()),
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};
