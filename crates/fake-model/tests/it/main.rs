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
mod call_inputs;
mod checkpoints;
mod checks;
mod complete_answers;
mod cuts;
mod errors;
mod failures;
mod forms_of_chat;
mod forms_of_gemini;
mod gates;
mod http_forms;
mod program;
mod raw_answers;
mod recorded_requests;
mod refusals;
mod script_json;
mod side_requests;
mod signatures;
mod streams;
mod strict_history;
mod strict_rules;
mod usage;
