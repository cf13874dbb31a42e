//! One language for coding agents: reads every agent's stream, writes every consumer's.
//!
//! Coding agents and model APIs each stream in a protocol of their own, and the programs that show,
//! drive or record them each expect another. This crate reads any of them into one model of
//! [events](event) and writes any of them from it. It has no I/O, no threads, no async, no clock and
//! no randomness: bytes, time and ids come from the caller.
//!
//! ```text
//! bytes ─ framing ─▶ frames ─ decoder ─▶ events ─ grammar ─▶ well-formed events ─ encoder ─▶ bytes
//! ```
//!
//! Most people need one type, [`Translator`]:
//!
//! ```
//! use interlingua::{Exit, Options, Source, Translator, dialect};
//!
//! // What to read is recognised; what to write is chosen.
//! let to = dialect::named("ai-sdk")?;
//! let mut translator = Translator::new(Source::Recognise, to, Options::default())?;
//! let stdout = b"{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n";
//! let records = translator.push(stdout, None); // as often as bytes come, cut anywhere
//! assert!(records.starts_with(b"{\"type\":\"stream-start\""));
//! let last = translator.finish(&Exit { code: Some(0), ..Exit::default() }, None).bytes;
//! // The agent never said how its turn ended, so it did not succeed.
//! assert!(String::from_utf8_lossy(&last).contains("\"unified\":\"error\""));
//! # Ok::<(), interlingua::Error>(())
//! ```
//!
//! # The laws
//!
//! Each has a test that fails without the code that keeps it.
//!
//! 1. **Decoding never fails.** A line that is not JSON, a type nobody knows, a tail that was cut off:
//!    each becomes an event, and the stream goes on. One bad line costs one line.
//! 2. **No byte is unaccounted for.** Every event names the line and the bytes it came from; unknown
//!    records keep their JSON, unreadable lines their text. Every enum that mirrors a protocol is open.
//! 3. **Chunking does not matter.** Any split of the input, down to single bytes, gives the same events.
//! 4. **Cost is linear.** A line that is twice as long costs twice as much.
//! 5. **Memory is bounded.** A line over the [limit](framing::Limits) is reported and skipped.
//! 6. **Every turn ends exactly once,** with an outcome and a cause. If the agent did not say so, the
//!    [grammar] does, and marks it as synthetic. A success is never invented.
//! 7. **Every tool call is answered exactly once.** An orphan is closed as abandoned.
//! 8. **Nothing is said twice.** Pieces and the whole block that repeats them are one text; identity
//!    is the parent call, the message id and the block's index. What a retry takes back and says
//!    again is one text too, also where a target has no words for taking back.
//! 9. **Numbers are honest.** Counts have a scope, and cumulative ones become differences; estimates
//!    say that they are; what is unknown is absent.
//! 10. **Encoders rely on the grammar, and report what they cannot say** in [`dialect::Losses`].
//! 11. **The core is deterministic.** Same input, same bytes out.
//! 12. **The same protocol in and out is the identity,** for every record that is understood.

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
mod reader;
mod translate;
mod writer;

pub use account::{Account, EventCounts, FrameCounts};
pub use entry::{Entry, EntryRef, Flow, Origin, Raw, RawRef, Sink};
pub use error::Error;
pub use grammar::{Exit, Repair, RepairKind, Repairs, Stopped};
pub use reader::{RawRecords, ReadOptions, ReadReport, Reader, Source, StreamEnd};
pub use translate::{Finished, Options, Translator};
pub use writer::Writer;

/// Runs the examples of the README as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
