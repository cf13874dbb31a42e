//! The server over real connections.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod agent_api;
mod bad_input;
mod catch_up;
mod commands;
mod description;
mod joining;
mod limits;
mod live;
mod origins;
mod other_processes;
mod reconnecting;
mod secrets;
#[path = "../support/sessions.rs"]
mod sessions;
mod stalling;
mod stopping;
mod support;
mod tokens;
mod translate;
mod turns;
