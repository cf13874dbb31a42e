//! Reads the stream of every coding agent into one event model, and writes it in any consumer's
//! protocol.
//!
//! Coding agents and model APIs each stream in a protocol of their own, and the programs that show,
//! drive or record them each expect another. This crate calls these protocols [dialects](dialect). It
//! decodes those of agents into one model of [events](event), and encodes events in those of
//! consumers. It has no I/O, no threads, no async, no clock and no randomness: bytes, time and ids
//! come from the caller.
//!
//! # The way of the data
//!
//! ```text
//! bytes ─ framing ─▶ frames ─ decoder ─▶ events ─ grammar ─▶ entries ─ fit, encoder ─▶ bytes
//!       └────────────────────── Reader ───────────────────┘         └──── Writer ────┘
//! ```
//!
//! - A [`Reader`] turns the bytes of an agent into well-formed events: [framing] cuts them into
//!   frames, the [decoder](dialect::Decoder) of a dialect states what each record means, and the
//!   [grammar] adds what is missing and drops what is repeated. It emits [entries](Entry): an
//!   event, its place in the session, and on request the agent's own record.
//! - A [`Writer`] turns entries into the bytes of a dialect, through its
//!   [encoder](dialect::Encoder), and counts what the dialect cannot express.
//! - Entries can be stored in between, and any number of writers can read them, each from any place
//!   on. [`Entry`] has a stable JSON form.
//! - A [`Translator`] is a reader and a writer in a row, which is all that most callers need:
//!
//! ```
//! use interlingua::{Exit, Options, Source, Translator, dialect};
//!
//! // The dialect of the input is recognised; that of the output is chosen.
//! let to = dialect::named("ai-sdk")?;
//! let mut translator = Translator::new(Source::Recognise, to, Options::default())?;
//! let stdout = b"{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n";
//! let records = translator.push(stdout, None); // as often as bytes arrive, cut anywhere
//! assert!(records.starts_with(b"{\"type\":\"stream-start\""));
//! let last = translator.finish(&Exit { code: Some(0), ..Exit::default() }, None).bytes;
//! // The agent never reported how its turn ended, so the turn did not succeed.
//! assert!(String::from_utf8_lossy(&last).contains("\"unified\":\"error\""));
//! # Ok::<(), interlingua::Error>(())
//! ```
//!
//! # Sessions, epochs and ids
//!
//! A session has one sequence of entries, without gaps. It consists of one or more *epochs*, and an
//! epoch is one run of an agent: a process, or a response of a model API. Agents number their calls
//! anew in every process, so a native id is unique within its epoch at best. Emitted call ids are
//! unique within the session: a call whose native id is already taken is renamed, the repair is
//! reported, and the event also carries the native id. A caller begins an epoch with
//! [`Reader::next_stream`]; where the output of two runs is appended to one stream, the dialect
//! declares whether a repeated start means a new run ([`RepeatedStart`](dialect::RepeatedStart)).
//!
//! Ids that no agent gave are made of the session's seed and the sequence number of an entry. The
//! seed is the caller's ([`ReadOptions::id_seed`]), else a hash of the first frame.
//!
//! # The laws
//!
//! Each law has a test that fails without the code that keeps it.
//!
//! 1. **Decoding never fails.** A line that is not JSON, a record of an unknown type, a tail that
//!    was cut off: each becomes an event, and the stream goes on. One bad line costs one line.
//! 2. **Every frame is accounted for.** It has exactly one fate: it emitted at least one event, or
//!    it was a repeat, ignored by a rule of its dialect, unknown, or unreadable. Every event of a
//!    decoder is likewise emitted, merged into another one, or counted as a repeat. [`Account`] has
//!    the numbers, and they add up. Every entry names the line and the bytes that it comes from;
//!    unknown records keep their JSON, and unreadable lines their text. Every enum that mirrors a
//!    protocol is open.
//! 3. **Chunking does not matter.** Any split of the input, down to single bytes, gives the same events.
//! 4. **Cost is linear.** A line that is twice as long costs twice as much.
//! 5. **Memory is bounded.** A line over the [limit](framing::Limits) is reported and skipped.
//! 6. **Every turn ends exactly once,** with an outcome and a cause. If the agent does not report
//!    the end, the [grammar] adds it and marks it as synthetic. A success is never invented.
//! 7. **Every tool call is answered exactly once.** A call without an answer is closed as
//!    abandoned. Every permission request and every question to the user is resolved exactly once:
//!    by its answer, by the end of its call, or by the end of its turn, which withdraws it.
//! 8. **Nothing is emitted twice, and nothing is dropped because its id was used before.** Deltas
//!    and the whole block that repeats them are one text. A block is identified by its parent call,
//!    message id and index within an epoch, and it repeats another one only if its whole content
//!    has the same fingerprint. Text that a retry retracts and streams again is one text too, even
//!    in a dialect that has no record for a retraction.
//! 9. **Numbers are honest.** Counts have a scope, and cumulative ones become differences, also
//!    across epochs; estimates are marked as such; an unknown number is absent.
//! 10. **Encoders rely on the grammar, and report what they cannot express** in
//!     [`dialect::Losses`].
//! 11. **The core is deterministic.** The same input, times and seed give the same bytes. What a
//!     writer
//!     writes is a function of the entries alone: its times are theirs, and its ids are made of the
//!     seed and their sequence numbers.
//! 12. **The same dialect in and out is the identity,** as JSON values, for every record that is
//!     understood. A writer passes on the raw records of its own dialect, from a log too.
//! 13. **A reader can join anywhere.** A writer that is [advanced](Writer::advance) over the first
//!     N
//!     entries of a log without writing then writes exactly what the whole stream contains after them.

mod account;
pub mod check;
pub mod dialect;
mod entry;
mod error;
pub mod event;
pub mod explain;
mod fingerprint;
mod fit;
pub mod framing;
pub mod grammar;
pub mod json;
pub mod mapper;
pub mod price;
mod reader;
mod translate;
mod writer;

pub use account::{Account, EventCounts, FrameCounts};
pub use entry::{Batch, Entry, EntryRef, Flow, Origin, Raw, RawRef, Sink};
pub use error::{Error, Fault};
pub use grammar::{Exit, Repair, RepairKind, Repairs, Stopped};
pub use reader::{
    ClientCall, ClientTools, Continuation, HostFacts, RawRecords, ReadOptions, ReadReport, Reader,
    Source, StreamEnd, TurnOwner,
};
pub use translate::{Finished, Options, Translator};
pub use writer::Writer;

/// Runs the examples of the README as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
