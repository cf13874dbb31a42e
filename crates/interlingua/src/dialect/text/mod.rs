//! `text`: what an agent says and does, for a person at a terminal.
//!
//! It is only written. Text comes as it is and as soon as it comes; a tool call is one line with
//! its most telling value, its answer one more; whatever else happened is a line that starts with
//! `!`, and what could not be read one that starts with `?`. It abridges on purpose, and counts what
//! it leaves out. Nothing an agent says reaches the terminal as a control character: an agent can
//! write on the screen, but not steer it.

mod encode;
mod line;
mod notes;
mod screen;

use super::Dialect;

pub use encode::TextEncoder;

/// The dialect `text`.
pub static DIALECT: Dialect = Dialect {
    name: "text",
    aliases: &["terminal", "plain"],
    about: "For a person at a terminal",
    encoder: Some(|_| Box::<TextEncoder>::default()),
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
