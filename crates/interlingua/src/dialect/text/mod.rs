//! `text`: a readable log of an agent's work, for a person at a terminal.
//!
//! It can only be written. Text is streamed unchanged, delta by delta. A tool call is one line with
//! the most important value of its input, and its answer is one more line. Notices start with `!`,
//! and input that could not be read with `?`. The log is abridged on purpose, and what it leaves
//! out is counted. Control characters and escape sequences are removed, so that an agent's text
//! cannot control the terminal.
//!
//! The parts from which its lines are made are public, for programs that show entries themselves.

mod encode;
mod line;
mod notes;
mod screen;

use super::{Dialect, Written};

pub use super::content::answer_text;
pub use encode::TextEncoder;
pub use line::{KeyValue, duration, key_value, tokens};
pub use screen::TerminalFilter;

/// The dialect `text`.
pub static DIALECT: Dialect = Dialect {
    name: "text",
    aliases: &["terminal", "plain"],
    about: "For a person at a terminal",
    encoder: Some(|_| Box::<TextEncoder>::default()),
    written: Written::Text,
    cannot_express: &[
        "tool inputs beyond one value",
        "tool outputs beyond one line",
        "diffs",
        "pictures",
        "host facts (sandbox, relay)",
    ],
    rules: None,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};
