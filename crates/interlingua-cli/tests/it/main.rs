//! Runs the command as a process, and checks its output and its exit code. One program, with a
//! module per behaviour.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

#[cfg(target_os = "linux")]
mod asking;
mod checking;
mod inputs;
mod listing;
mod outcomes;
mod running;
mod streaming;
