//! Scripted model APIs on loopback, so that tests drive real coding agents without an account.
//!
//! A test writes a [`Script`], starts a [`FakeModel`], points an agent at its address, and later
//! inspects what the agent sent. One script works for every protocol: OpenAI Responses, OpenAI Chat
//! Completions, Anthropic Messages and Gemini.
//!
//! ```
//! use fake_model::{FakeModel, Reply, Script};
//!
//! # fn main() -> std::io::Result<()> {
//! let script = Script::new()
//!     .reply(Reply::shell("echo hello").usage(100, 20))
//!     .reply(Reply::text("All done."));
//! let model = FakeModel::start(script)?;
//! assert!(model.address().starts_with("http://127.0.0.1:"));
//! assert!(model.findings().is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! [`service::FakeService`] is a service with the HTTP contract of the Giselle API instead, which runs agents elsewhere.
//!
//! It knows the wire formats, the rules that a request must keep to be accepted, and the tools that
//! the agents offer. It does not know how to start an agent, nor anything outside loopback.

mod answer;
mod check;
mod conversation;
mod gate;
mod guide;
mod http;
mod keys;
mod play;
mod protocol;
mod record;
mod script;
mod server;
pub mod service;
mod side;
mod state;
mod strict;
mod tools;

pub use check::{Breach, Finding};
pub use gate::Gate;
pub use guide::guide;
pub use keys::Key;
pub use protocol::Protocol;
pub use record::{Kind, Outcome, Request, ToolResult};
pub use script::{
    Action, ApiError, AtEnd, Call, CallArguments, CallIndex, ChatForm, Cut, Ending, ErrorEvent,
    Failure, FailureClass, GeminiForm, MessagesForm, Part, RawAnswer, Reply, ResponsesForm, Script,
    Sending, SignaturePlace, Stop, Usage,
};
pub use server::FakeModel;
pub use tools::{Fill, Job, Row, TABLE};
