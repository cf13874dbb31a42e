//! What the MCP server over standard streams and the process that runs the session send each other.
//!
//! It is not MCP, whose connections have a state, but HTTP in which each request stands for itself:
//!
//! | request | answer |
//! |---|---|
//! | `GET tools` | the tools, as an [`Offer`] |
//! | `PUT calls/KEY` with a [`Call`] | the [`Answer`], when there is one |
//! | `DELETE calls/KEY` | nothing. The call is cancelled, or its answer has arrived |
//!
//! The key is random, and chosen by who calls. A `PUT` with a key that is known attaches to its call
//! instead of making another one, so a request whose connection was lost is sent again.

use std::borrow::Cow;

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ClientResult;

/// Where the tools are, below the address of the MCP server.
pub(super) const TOOLS: &str = "tools";
/// Where the calls are, below the address of the MCP server.
pub(super) const CALLS: &str = "calls/";

/// The largest call, and the largest answer. Standard input has lines of this size, too.
pub(super) const LARGEST: usize = 64 << 20;

/// The longest key, which ours have.
const LONGEST_KEY: usize = 64;

/// The tools of a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offer<'o> {
    /// The process of the agent, which calls have to name.
    pub(super) generation: u64,
    pub(super) tools: Cow<'o, [Tool]>,
}

/// A call of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Call {
    /// The process of the agent.
    pub(super) generation: u64,
    pub(super) tool: String,
    pub(super) input: Map<String, Value>,
    /// What the agent added to the call.
    pub(super) meta: Map<String, Value>,
}

/// The answer to a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer<'a> {
    /// The tool has run; its output.
    Output(Cow<'a, str>),
    /// It has not run, or has failed; why.
    Error(Cow<'a, str>),
}

impl<'a> From<&'a ClientResult> for Answer<'a> {
    fn from(result: &'a ClientResult) -> Self {
        match result {
            ClientResult::Output(text) => Self::Output(text.into()),
            ClientResult::Error(text) => Self::Error(text.into()),
        }
    }
}

impl From<Answer<'_>> for ClientResult {
    fn from(answer: Answer<'_>) -> Self {
        match answer {
            Answer::Output(text) => Self::Output(text.into_owned()),
            Answer::Error(text) => Self::Error(text.into_owned()),
        }
    }
}

/// Whether this can be the key of a call.
pub(super) fn is_key(key: &str) -> bool {
    (16..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
