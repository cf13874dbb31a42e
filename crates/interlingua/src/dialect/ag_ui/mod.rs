//! `ag-ui`: events of the Agent-User Interaction protocol, as server-sent events.
//!
//! The encoder follows protocol 1.0, as implemented in `@ag-ui/client` 1.0.0, whose agent reads the
//! output in tests. The client reads `data: {json}` followed by an empty line, or protobuf
//! according to the media type. It does not read JSON lines, and fails on `[DONE]`.
//!
//! A turn is a run: `RUN_STARTED`, then all other events, then `RUN_FINISHED` or `RUN_ERROR`. A
//! stream may have several runs. No event may be sent between runs, so events that occur there are
//! written in the next run; those after the last run are written in an additional one, if they are
//! of interest to a user. Before a run ends, its messages, calls, steps and sub-agents must be
//! closed. A message is one block of text, and a call refers to the message that made it. Events of
//! a sub-agent have a `subagentRunId`, which is the id of the call that started it.
//!
//! The client strips unknown fields with a warning, and drops unknown events, so the encoder adds
//! none. Events without a counterpart in the protocol are `CUSTOM`, with the name and the payload
//! that they have in the dialect `events`. Native records of the agent are `RAW`.
//!
//! The dialect can only be written: a client sends a request to run, not a stream.

mod calls;
mod encode;
mod rules;
mod runs;

use super::{Dialect, FramingKind, Written};

pub use encode::AgUiEncoder;

/// The dialect `ag-ui`.
pub static DIALECT: Dialect = Dialect {
    name: "ag-ui",
    aliases: &["agui"],
    about: "AG-UI: agent-user interaction events, server-sent",
    framing: FramingKind::Sse,
    encoder: Some(|options| Box::new(AgUiEncoder::new(options))),
    written: Written::ServerSentEvents,
    cannot_express: &[
        "text that the agent retracted",
        "replayed turns",
        "pictures in tool outputs",
        "the end of the process, unless it ends a turn",
    ],
    rules: Some(|| Box::<rules::AgUiRules>::default()),
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};
