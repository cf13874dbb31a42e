//! The tests of this crate, in one program with a module per behaviour; shell scripts play the
//! agents. The tests with real agents are a separate program, `real_agents`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is a test"
)]

mod support;

mod api;

#[cfg(target_os = "linux")]
mod client_tools;
#[cfg(target_os = "linux")]
mod consumers;
#[cfg(target_os = "linux")]
mod deadlines;
#[cfg(target_os = "linux")]
mod endings;
#[cfg(target_os = "linux")]
mod host_facts;
#[cfg(unix)]
mod live;
#[cfg(target_os = "linux")]
mod permissions;
#[cfg(target_os = "linux")]
mod real_shells;
#[cfg(target_os = "linux")]
mod redaction;
#[cfg(unix)]
mod remote;
#[cfg(unix)]
mod screens;
#[cfg(target_os = "linux")]
mod sent_records;
#[cfg(target_os = "linux")]
mod sidecar_files;
#[cfg(target_os = "linux")]
mod standard_streams;
#[cfg(target_os = "linux")]
mod stopping;
mod tools;
#[cfg(windows)]
mod windows;
