//! Starts coding agents, drives them by their own protocols, and ends them truthfully.
//!
//! | module | what it knows |
//! |---|---|
//! | [`agent`] | how each agent is started: program, arguments, environment, protocol; one file an agent |
//! | [`driver`] | what is said *to* an agent, and when: state machines without I/O, one file a protocol |
//! | [`permission`] | what an agent may do: modes, rules, decisions |
//! | [`process`] | processes: complete output, signals, no survivors. Nothing of agents or protocols |
//! | [`Config`] | what a person wants of every run, from a file |
//! | [`run()`] | one run, from the first byte to the last survivor: all of the above and the translation |
//!
//! What an agent says is read by the crate `interlingua`; nothing here reads a protocol but for the
//! requests that a driver has to answer, and what an agent writes elsewhere than into its stream.

pub mod agent;
mod config;
pub mod driver;
mod error;
pub mod permission;
pub mod process;
mod request;
mod run;
mod watch;

pub use config::Config;
pub use error::Error;
pub use request::Request;
pub use run::{Consumer, Control, Deadlines, Ended, Options, Question, Recorder, Stop, run};

/// Compiles the example of the README as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
