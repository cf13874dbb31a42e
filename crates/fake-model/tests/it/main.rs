//! The tests of this crate, in one program: a module for each behaviour.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is a test"
)]

mod support;

mod actions;
mod checks;
mod complete_answers;
mod cuts;
mod errors;
mod gates;
mod http_forms;
mod program;
mod script_json;
mod side_requests;
mod streams;
