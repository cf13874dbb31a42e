//! The command as people use it: started as a process, fed, and judged by what it prints and by its
//! exit code. One program, with a module for each behaviour.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

mod checking;
mod inputs;
mod listing;
mod outcomes;
mod running;
mod streaming;
