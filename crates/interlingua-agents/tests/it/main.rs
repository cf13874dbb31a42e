//! The tests of this crate, in one program: a module for each behaviour, with shell scripts in the place
//! of agents. The real agents are a program of their own, `real_agents`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is a test"
)]

mod support;

#[cfg(target_os = "linux")]
mod beside;
#[cfg(target_os = "linux")]
mod consumers;
#[cfg(target_os = "linux")]
mod deadlines;
#[cfg(target_os = "linux")]
mod endings;
#[cfg(target_os = "linux")]
mod permissions;
#[cfg(unix)]
mod screens;
#[cfg(target_os = "linux")]
mod stopping;
#[cfg(windows)]
mod windows;
