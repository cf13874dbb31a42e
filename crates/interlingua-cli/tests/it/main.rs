//! Runs the command as a process, and checks its output and its exit code. One program, with a
//! module per behaviour.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this is a test")]

mod support;

#[cfg(target_os = "linux")]
#[path = "../support/http.rs"]
mod http;
#[cfg(target_os = "linux")]
#[path = "../support/log.rs"]
mod log;
#[cfg(target_os = "linux")]
#[path = "../support/random.rs"]
mod random;
#[cfg(target_os = "linux")]
#[path = "../support/reader.rs"]
mod reader;

#[cfg(target_os = "linux")]
mod asking;
#[cfg(target_os = "linux")]
mod certificates;
#[cfg(target_os = "linux")]
mod chatting;
mod checking;
#[cfg(target_os = "linux")]
mod commanding;
#[cfg(unix)]
mod completing;
#[cfg(target_os = "linux")]
mod disks;
#[cfg(target_os = "linux")]
mod guarding;
#[cfg(target_os = "linux")]
mod huge_folders;
mod inputs;
#[cfg(target_os = "linux")]
mod isolation;
mod listing;
#[cfg(target_os = "linux")]
mod mcp;
mod model_api_arguments;
mod model_apis;
mod outcomes;
#[cfg(target_os = "linux")]
mod querying;
mod running;
#[cfg(target_os = "linux")]
mod sandboxing;
#[cfg(unix)]
mod screens;
#[cfg(target_os = "linux")]
mod serving;
mod settings;
#[cfg(target_os = "linux")]
mod shells;
#[cfg(unix)]
mod signing_in;
mod streaming;
