//! Protocols: one folder each, with all that is known of it.
//!
//! A dialect reads records into [events](crate::event), writes events as records, or both. It knows
//! no bytes (that is [framing](crate::framing)) and no order (that is the
//! [grammar](crate::grammar)): a decoder says what each record means, and may say a thing twice; an
//! encoder is told a well-formed stream, and counts what it cannot say.
//!
//! To add one: a folder here with a `DIALECT`, and its line in [`ALL`].

pub mod acp;
pub mod ag_ui;
pub mod agent_event;
pub mod ai_sdk;
pub mod claude;
pub mod codex;
pub mod codex_app_server;
pub mod copilot;
pub mod events;
pub mod gemini;
pub mod giselle;
pub mod goose;
pub mod opencode;
pub mod pi;
pub mod qwen;
pub mod text;
pub mod ui_message;
pub mod yume;

mod ai_parts;
mod content;
mod decode;
mod encode;
mod held_errors;
mod patch;
mod probe;
mod sse;
mod steps;
mod time;
mod tools;

use crate::error::Error;
use crate::event::ErrorClass;
pub use crate::explain::Ignored;
pub use crate::framing::FramingKind;
use crate::grammar::Exit;
use crate::json::Shape;
pub use decode::{Decoder, EventSink};
pub(crate) use decode::{each_record, unknown};
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
    &opencode::DIALECT,
    &qwen::DIALECT,
    &goose::DIALECT,
    &pi::DIALECT,
    &acp::DIALECT,
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

/// The dialect of some name.
pub fn find(name: &str) -> Option<&'static Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name == name || dialect.aliases.contains(&name))
}

/// The dialect of some name, which must exist.
pub fn named(name: &str) -> Result<&'static Dialect, Error> {
    find(name).ok_or_else(|| Error::UnknownDialect { name: name.to_owned() })
}

/// A protocol, and what can be done with it.
#[derive(Debug)]
pub struct Dialect {
    /// Its name on the command line and in code.
    pub name: &'static str,
    /// Other names by which people look for it.
    pub aliases: &'static [&'static str],
    /// What it is, in one line.
    pub about: &'static str,
    /// How its records are cut out of bytes.
    pub framing: FramingKind,
    /// What happens at the end of a stream that did not say how its turn ended.
    pub ending: Ending,
    /// What it means when a stream says again that its session starts.
    pub repeated_start: RepeatedStart,
    /// How the ids begin that are made for calls without one, where the protocol's documents say so.
    pub unnamed_calls: Option<&'static str>,
    /// What kind of failure the exit of the agent reports, where its stream does not: some agents
    /// write to standard error alone that the user is not signed in.
    pub exit_class: fn(&Exit) -> Option<ErrorClass>,
    /// Makes a reader.
    pub decoder: Option<MakeDecoder>,
    /// Makes a writer.
    pub encoder: Option<MakeEncoder>,
    /// How sure one can be, from a record, that a stream is this.
    pub recognise: fn(&Probe<'_>) -> Confidence,
    /// What a writer cannot say, for the table that people read.
    pub cannot_say: &'static [&'static str],
    /// The rules that what is written must keep.
    pub rules: Option<MakeRules>,
    /// What is read of a record.
    pub reads: fn() -> Shape,
    /// What is left out on purpose, and why.
    pub ignores: &'static [Ignored],
    /// All that a person should know of it, as Markdown.
    pub guide: &'static str,
}

impl Dialect {
    /// A protocol of which nothing is known yet; a dialect names what it has, and takes the rest from
    /// here.
    pub const BLANK: Self = Self {
        name: "",
        aliases: &[],
        about: "",
        framing: FramingKind::Lines,
        ending: Ending::Told,
        repeated_start: RepeatedStart::SameRun,
        unnamed_calls: None,
        exit_class: |_| None,
        decoder: None,
        encoder: None,
        recognise: |_| Confidence::No,
        cannot_say: &[],
        rules: None,
        reads: Shape::anything,
        ignores: &[],
        guide: "",
    };
}

/// Makes a reader at the beginning of a stream.
pub type MakeDecoder = fn() -> Box<dyn Decoder>;

/// Makes a writer at the beginning of a stream.
pub type MakeEncoder = fn(&EncodeOptions) -> Box<dyn Encoder>;

/// Makes the rules for the beginning of a stream.
pub type MakeRules = fn() -> Box<dyn crate::check::Rules>;

/// What it means when a stream says again that its session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepeatedStart {
    /// The same process goes on: it says so for every turn.
    #[default]
    SameRun,
    /// Another process was started, and its output appended: native ids start anew.
    NewRun,
}

/// What the end of a stream means, where the stream does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The protocol has a record for the end of a turn: without it, the turn did not complete.
    Told,
    /// The protocol has none: the end of the stream is the end of the turn.
    Implied,
}

impl PartialEq for Dialect {
    /// There is one of each.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Dialect {}
