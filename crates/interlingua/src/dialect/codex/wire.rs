//! The fields of the records of `codex exec --json` that are read.

use crate::json::read::{Field, Flaw, Record};
use crate::json::{Json, Shape, Text, known, record};

record! {
    /// A line.
    pub(super) struct Line<'a> {
        kind: text "type",
        thread_id: text "thread_id",
        id: text "id",
        model: text "model",
        delta: text "delta",
        text: text "text",
        item_id: text "item_id",
        message: text "message",
        item: record<Item> "item",
        usage: record<Usage> "usage",
        error: record<Failure> "error",
        response: record<Response> "response",
    }
}

record! {
    /// A response, in the older form.
    pub(super) struct Response<'a> {
        usage: record<Usage> "usage",
    }
}

record! {
    /// Why a turn failed.
    pub(super) struct Failure<'a> {
        message: text "message",
    }
}

record! {
    /// Counts of tokens. The input includes cached tokens.
    pub(super) struct Usage<'a> {
        input: number "input_tokens",
        cached: number "cached_input_tokens",
        cache_write: number "cache_write_input_tokens",
        output: number "output_tokens",
        reasoning: number "reasoning_output_tokens",
        _scope: text "scope",
    }
}

/// An item. The first `id` is its position in the stream; a second one is ignored.
#[derive(Debug, Default, Clone)]
pub(super) struct Item<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) kind: Option<Text<'a>>,
    pub(super) status: Option<Text<'a>>,
    pub(super) text: Option<Text<'a>>,
    pub(super) message: Option<Text<'a>>,
    pub(super) command: Option<Json<'a>>,
    pub(super) output: Option<Json<'a>>,
    pub(super) exit_code: Option<i64>,
    pub(super) changes: Option<Json<'a>>,
    pub(super) server: Option<Text<'a>>,
    pub(super) tool: Option<Text<'a>>,
    pub(super) arguments: Option<Json<'a>>,
    pub(super) result: Option<McpResult<'a>>,
    pub(super) error: Option<Failure<'a>>,
    pub(super) query: Option<Json<'a>>,
    pub(super) action: Option<Json<'a>>,
    pub(super) items: Option<Json<'a>>,
    pub(super) prompt: Option<Json<'a>>,
    pub(super) receivers: Option<Json<'a>>,
    pub(super) states: Option<Json<'a>>,
}

impl<'a> Record<'a> for Item<'a> {
    #[inline]
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "id" => {
                let id = value.text()?;
                self.id = self.id.take().or(id);
            }
            "type" => self.kind = value.text()?,
            "status" => self.status = value.text()?,
            "text" => self.text = value.text()?,
            "message" => self.message = value.text()?,
            "command" => self.command = value.json()?,
            "aggregated_output" => self.output = value.json()?,
            "exit_code" => self.exit_code = value.integer()?,
            "changes" => self.changes = value.json()?,
            "server" => self.server = value.text()?,
            "tool" => self.tool = value.text()?,
            "arguments" => self.arguments = value.json()?,
            "result" => value.record(&mut self.result)?,
            "error" => value.record(&mut self.error)?,
            "query" => self.query = value.json()?,
            "action" => self.action = value.json()?,
            "items" => self.items = value.json()?,
            "prompt" => self.prompt = value.json()?,
            "receiver_thread_ids" => self.receivers = value.json()?,
            "agents_states" => self.states = value.json()?,
            _ => value.skip()?,
        }
        Ok(())
    }

    fn shape() -> Shape {
        known!(
            "id",
            "type",
            "status",
            "text",
            "message",
            "command",
            "aggregated_output",
            "exit_code",
            "changes",
            "server",
            "tool",
            "arguments",
            "result" => McpResult,
            "error" => Failure,
            "query",
            "action",
            "items",
            "prompt",
            "receiver_thread_ids",
            "agents_states",
        )
    }
}

record! {
    /// The result of an MCP server.
    pub(super) struct McpResult<'a> {
        content: json "content",
        structured: json "structured_content",
    }
}

record! {
    /// A changed file.
    pub(super) struct Change<'a> {
        path: text "path",
        kind: text "kind",
    }
}

record! {
    /// The state of a sub-agent.
    pub(super) struct AgentState<'a> {
        status: text "status",
        message: text "message",
    }
}
