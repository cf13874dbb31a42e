//! The stores of sessions, with one suite of tests for all of them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[macro_use]
mod stores;

mod acknowledging;
mod contract;
mod forgotten_sessions;
mod giving_way;
mod holding;
mod host;
mod late_answers;
mod live_answers;
mod recorder;
mod recovery;
mod sqlite;
mod support;
mod talker;
mod unsteady;
