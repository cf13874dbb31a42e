//! Starts coding agents, drives them through their own protocols, and reports truthfully how they
//! ended.
//!
//! | module | what it knows |
//! |---|---|
//! | [`api`] | model APIs as agents: requests, the loop of calls, retries, sessions |
//! | [`agent`] | how each agent is started: program, arguments, environment, protocol; one file per agent |
//! | [`driver`] | what is sent *to* an agent, and when: state machines without I/O, one file per protocol |
//! | [`permission`] | what an agent may do: modes, rules, decisions |
//! | [`process`] | processes: complete output, signals, no survivors. It knows nothing of agents or protocols |
//! | [`tool`] | the tools of an agent that is a model API: files, searches, commands. It knows no protocol |
//! | [`ClientToolServer`] | tools that the client of a session runs, and the MCP server by which agents call them |
//! | [`Config`] | the user's settings for every session, from a file |
//! | [`remote`] | remote agents: services that run an agent behind the contract of the Giselle API |
//! | [`Session`] | a live session: commands go in, entries come out. It knows no protocol and no process |
//! | [`ProcessAgent`] | a session with a process, from its first prompt to the end of its last process |
//!
//! The output of an agent is read by the crate `interlingua`. This crate parses only the requests that
//! a driver has to answer, and the files that an agent writes in addition to its stream.

pub mod agent;
pub mod api;
mod client_tool;
mod config;
pub mod driver;
mod error;
pub mod permission;
pub mod process;
mod process_agent;
mod record;
mod redaction;
pub mod remote;
mod request;
mod secret;
mod session;
mod tls;
pub mod tool;
mod watch;

pub use client_tool::{
    ClientTool, ClientToolOffer, ClientToolServer, ClientTools, Endpoint, StdioToolServer,
    ToolCommand,
};
pub use config::Config;
pub use error::Error;
pub use process_agent::ProcessAgent;
pub use record::Recorder;
pub use redaction::Redacted;
pub use request::Request;
pub use session::{
    Agent, CallOutcome, ClientCall, Deadlines, Ended, Entries, Handle, InputRequest, LateResult,
    Options, Prompt, Question, QuestionRequest, Receipt, Refused, Session, Starting, Stop, Wanted,
};
/// The variable with the token of a server. No program that an agent or a tool starts receives it.
pub const SERVER_TOKEN: &str = "INTERLINGUA_TOKEN";

/// The variables of this process that no program receives which it starts: secrets of other sessions.
const NOT_INHERITED: [&str; 3] = [SERVER_TOKEN, StdioToolServer::URL, StdioToolServer::TOKEN];

pub use tls::prepare as prepare_tls;

/// Compiles the example of the README as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
