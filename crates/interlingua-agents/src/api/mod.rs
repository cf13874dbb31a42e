//! Model APIs as agents: they stream, call tools, ask for permissions and retry.
//!
//! | module | what it knows |
//! |---|---|
//! | [`ApiAgent`], [`ApiSettings`] | what a session with a model API needs |
//! | `provider` | the providers: names, addresses, variables with keys |
//! | `model` | what each API takes and returns; one file per API, without I/O |
//! | `history` | the history of a conversation, which every request repeats |
//! | `turns` | the loop, a state machine without I/O: request, response, calls, results |
//! | `attachment` | files that are sent with a prompt |
//! | `compaction` | summaries of older turns, for a conversation that exceeds the context window |
//! | `failure` | which requests failed, and when they are repeated |
//! | `limits` | what a turn may use, and what it has used |
//! | `estimate` | the tokens of a request for which the provider reported none |
//! | `http` | requests and what arrives of their responses |
//! | `session` | the event loop of a session, which does the I/O |
//! | `tools` | the tools of a session |
//! | `client_tools` | the tools that the client of the session runs, as the model sees them |
//! | [`mcp`] | MCP servers, and their tools |
//! | `store`, `resume` | what is stored of a session, and the history that is read from it |
//! | `instructions` | the system prompt |
//! | `structured` | answers that have to fit a schema |
//!
//! What a response means is known to the dialects of the crate `interlingua`.

mod agent;
mod attachment;
mod client_tools;
mod compaction;
mod estimate;
pub(crate) mod failure;
mod history;
pub(crate) mod http;
mod instructions;
pub(crate) mod key;
mod limits;
pub mod mcp;
mod model;
pub mod provider;
mod resume;
mod session;
mod store;
mod structured;
mod tools;
mod turns;

pub(crate) use agent::new_id;
pub use agent::{ApiAgent, ApiSettings};
pub use failure::RetryPolicy;
pub use http::Connection;
pub use instructions::system_prompt;
pub use limits::Limits;
pub use model::ApiKind;
pub use resume::Earlier;
pub use store::{SessionLog, SessionStore, StoredRun};
