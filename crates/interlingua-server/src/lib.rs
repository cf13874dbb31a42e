//! Serves sessions of coding agents over HTTP.
//!
//! Programs create sessions, send commands to them, and read their logs. The log of a session is a
//! [Durable Stream](https://github.com/durable-streams/durable-streams): a reader begins anywhere,
//! waits for news by long-polls or server-sent events, and continues where it was after a
//! disconnect. It reads in any dialect that Interlingua writes, and positions are the same in all of
//! them.
//!
//! What the server keeps:
//!
//! - Nothing is lost, repeated or reordered, however slow a reader is: it reads the log.
//! - A response never ends inside an entry.
//! - A reader that joins at an offset receives exactly what the whole stream contains after it.
//! - Every request needs a token, except those for the health of the server. Sessions that a token
//!   does not cover do not exist for it.
//!
//! This crate knows HTTP, and no agent's protocol. [`Sessions`] runs the sessions.

mod agent_api;
mod app;
mod error;
mod lru;
mod metrics;
mod offset;
mod routes;
mod security;
mod serve;
mod sessions;
mod settings;
mod stall;
mod stream;

pub use error::{ErrorBody, ErrorDetail};
pub use routes::Session;
pub use security::{Scope, Seal, Token, TokenKey};
pub use serve::Server;
pub use sessions::Sessions;
pub use settings::{AgentApi, Allowed, Limits, Settings, Streams};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
