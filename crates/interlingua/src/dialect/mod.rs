//! The protocols: one folder for each, with everything that is known of it.
//!
//! A dialect decodes records into [events](crate::event), encodes events as records, or both. It
//! knows no bytes, which [framing](crate::framing) reads, and no order, which the
//! [grammar](crate::grammar) keeps. A decoder states what each record means, and may emit the same
//! event twice; an encoder receives a well-formed stream, and counts what it cannot express.
//!
//! To add a dialect, add a folder here with a `DIALECT`, and its line in [`ALL`].

pub mod acp;
pub mod ag_ui;
pub mod agent_event;
pub mod ai_sdk;
pub mod anthropic_api;
pub mod claude;
pub mod codex;
pub mod codex_app_server;
pub mod copilot;
pub mod copilot_headless;
pub mod events;
pub mod gemini;
pub mod gemini_api;
pub mod giselle;
pub mod goose;
pub mod openai_chat;
pub mod openai_responses;
pub mod opencode;
pub mod pi;
pub mod qwen;
pub mod text;
pub mod ui_message;
pub mod yume;

mod ai_parts;
mod arguments;
mod content;
mod decode;
mod emitter;
mod encode;
mod held_errors;
mod json_rpc;
mod messages_api;
mod openai_error;
mod patch;
mod probe;
mod questions;
mod sse;
mod steps;
mod time;
mod tools;

use crate::error::Error;
use crate::event::{ErrorClass, ToolKind};
pub use crate::explain::Ignored;
pub use crate::framing::FramingKind;
use crate::grammar::Exit;
use crate::json::{Shape, Text};
pub use decode::{Decoder, EventSink};
pub(crate) use decode::{each_record, unknown};
pub(crate) use emitter::Emitter;
pub use encode::{
    CloneEncoder, EncodeOptions, Encoder, Identity, Losses, Output, Team, Uuid, Withdraws,
};
pub use probe::{Confidence, Probe};

/// All dialects, in the order in which they are listed.
pub static ALL: &[&Dialect] = &[
    &claude::DIALECT,
    &codex::DIALECT,
    &codex_app_server::DIALECT,
    &gemini::DIALECT,
    &copilot::DIALECT,
    &copilot_headless::DIALECT,
    &opencode::DIALECT,
    &qwen::DIALECT,
    &goose::DIALECT,
    &pi::DIALECT,
    &openai_chat::DIALECT,
    &openai_responses::DIALECT,
    &acp::DIALECT,
    &anthropic_api::DIALECT,
    &gemini_api::DIALECT,
    &giselle::DIALECT,
    &yume::DIALECT,
    &agent_event::DIALECT,
    &ai_sdk::DIALECT,
    &ai_sdk::DIALECT_V4,
    &ui_message::DIALECT,
    &ag_ui::DIALECT,
    &events::DIALECT,
    &text::DIALECT,
];

/// The dialect with this name, if it exists.
pub fn find(name: &str) -> Option<&'static Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name == name || dialect.aliases.contains(&name))
}

/// The dialect with this name, else an error.
pub fn named(name: &str) -> Result<&'static Dialect, Error> {
    find(name).ok_or_else(|| Error::UnknownDialect { name: name.to_owned() })
}

/// A protocol, and its decoder, encoder and rules.
#[derive(Debug)]
pub struct Dialect {
    /// Its name on the command line and in code.
    pub name: &'static str,
    /// Its aliases.
    pub aliases: &'static [&'static str],
    /// A description of one line.
    pub about: &'static str,
    /// Its framing.
    pub framing: FramingKind,
    /// The meaning of the end of a stream that did not report the end of its turn.
    pub ending: Ending,
    /// The meaning of a repeated start of the session.
    pub repeated_start: RepeatedStart,
    /// The prefix of ids generated for calls without one, if the protocol's documents prescribe it.
    pub unnamed_calls: Option<&'static str>,
    /// Classifies the failure that the agent's exit reports and its stream does not: some agents
    /// report only on standard error that the user is not signed in.
    pub exit_class: fn(&Exit) -> Option<ErrorClass>,
    /// Makes a decoder, if the dialect can be read.
    pub decoder: Option<MakeDecoder>,
    /// Makes an encoder, if the dialect can be written.
    pub encoder: Option<MakeEncoder>,
    /// The form of what the encoder writes.
    pub written: Written,
    /// The confidence, from one record, that a stream is in this dialect.
    pub recognise: fn(&Probe<'_>) -> Confidence,
    /// What the encoder cannot express, for the table in the documentation.
    pub cannot_express: &'static [&'static str],
    /// The kind of a tool, as far as its name alone tells: for a request whose call is not known.
    pub kind_of_tool: fn(&Text<'_>) -> ToolKind,
    /// The rules that a stream in this dialect must keep.
    pub rules: Option<MakeRules>,
    /// The fields that are read from a record.
    pub reads: fn() -> Shape,
    /// What is left out on purpose, and why.
    pub ignores: &'static [Ignored],
    /// The guide for people, as Markdown.
    pub guide: &'static str,
}

impl Dialect {
    /// A dialect without any capability, from which every dialect takes its defaults.
    pub const BLANK: Self = Self {
        name: "",
        aliases: &[],
        about: "",
        framing: FramingKind::Lines,
        ending: Ending::Explicit,
        repeated_start: RepeatedStart::SameRun,
        unnamed_calls: None,
        exit_class: |_| None,
        decoder: None,
        encoder: None,
        written: Written::Lines,
        recognise: |_| Confidence::No,
        cannot_express: &[],
        kind_of_tool: tools::kind_of,
        rules: None,
        reads: Shape::anything,
        ignores: &[],
        guide: "",
    };
}

/// Makes a decoder for the beginning of a stream.
pub type MakeDecoder = fn() -> Box<dyn Decoder>;

/// Makes an encoder for the beginning of a stream.
pub type MakeEncoder = fn(&EncodeOptions) -> Box<dyn Encoder>;

/// Makes the rules for the beginning of a stream.
pub type MakeRules = fn() -> Box<dyn crate::check::Rules>;

/// The form of what an encoder writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Written {
    /// One JSON record per line.
    #[default]
    Lines,
    /// One JSON record per server-sent event, and `[DONE]` at the end.
    ServerSentEvents,
    /// Text for a person, without records.
    Text,
}

/// The meaning of a repeated start of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepeatedStart {
    /// The same process continues: it reports a start for every turn.
    #[default]
    SameRun,
    /// Another process was started, and its output appended: native ids are reset.
    NewRun,
}

/// The meaning of the end of a stream that did not report the end of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The protocol has a record for the end of a turn. Without it, the turn did not complete.
    Explicit,
    /// The protocol has no such record. The end of the stream is the end of the turn.
    Implied,
}

impl PartialEq for Dialect {
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Dialect {}
