//! The records of `pi --mode json`, as they are on the wire.

use crate::json::read::{Field, Flaw, Record};
use crate::json::{Json, Shape, Text, known, record};

/// One line.
///
/// Messages are not parsed here: older versions repeat the complete message with every delta, and
/// most of them are skipped.
#[derive(Debug, Default, Clone)]
pub(super) struct Line<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) id: Option<Text<'a>>,
    pub(super) cwd: Option<Text<'a>>,
    pub(super) timestamp: Option<Json<'a>>,
    pub(super) message: Option<Json<'a>>,
    pub(super) update: Option<Update<'a>>,
    pub(super) call: Option<Text<'a>>,
    pub(super) tool: Option<Text<'a>>,
    pub(super) args: Option<Json<'a>>,
    pub(super) partial: Option<Outcome<'a>>,
    pub(super) result: Option<Outcome<'a>>,
    pub(super) is_error: Option<bool>,
    pub(super) will_retry: Option<bool>,
    pub(super) attempt: Option<u64>,
    pub(super) attempts: Option<u64>,
    pub(super) delay_ms: Option<u64>,
    pub(super) error: Option<Text<'a>>,
    pub(super) reason: Option<Text<'a>>,
    pub(super) aborted: Option<bool>,
}

impl<'a> Record<'a> for Line<'a> {
    #[inline]
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "type" => self.kind = value.text()?,
            "assistantMessageEvent" => value.record(&mut self.update)?,
            "message" => self.message = value.json()?,
            "id" => self.id = value.text()?,
            "cwd" => self.cwd = value.text()?,
            "timestamp" => self.timestamp = value.json()?,
            "toolCallId" => self.call = value.text()?,
            "toolName" => self.tool = value.text()?,
            "args" => self.args = value.json()?,
            "partialResult" => value.record(&mut self.partial)?,
            "result" => value.record(&mut self.result)?,
            "isError" => self.is_error = value.flag()?,
            "willRetry" => self.will_retry = value.flag()?,
            "attempt" => self.attempt = value.number()?,
            "maxAttempts" => self.attempts = value.number()?,
            "delayMs" => self.delay_ms = value.number()?,
            "errorMessage" | "error" => self.error = value.text()?,
            "reason" => self.reason = value.text()?,
            "aborted" => self.aborted = value.flag()?,
            _ => value.skip()?,
        }
        Ok(())
    }

    fn shape() -> Shape {
        known!(
            "type",
            "assistantMessageEvent" => Update,
            "message" => Message,
            "id",
            "cwd",
            "timestamp",
            "toolCallId",
            "toolName",
            "args",
            "partialResult" => Outcome,
            "result" => Outcome,
            "isError",
            "willRetry",
            "attempt",
            "maxAttempts",
            "delayMs",
            "errorMessage",
            "error",
            "reason",
            "aborted",
        )
    }
}

record! {
    /// The next delta of a message.
    pub(super) struct Update<'a> {
        kind: text "type",
        index: number "contentIndex",
        delta: text "delta",
        content: text "content",
        id: text "id",
        name: text "toolName",
        call: record<Content> "toolCall",
    }
}

record! {
    /// A message of the user, the model, a tool, or the system.
    pub(super) struct Message<'a> {
        role: text "role",
        content: shape<Content> "content",
        model: text "model",
        stop_reason: text "stopReason",
        error: text "errorMessage",
        usage: record<Usage> "usage",
        time: json "timestamp",
        tools: records<Tool> "toolsAdded",
    }
}

record! {
    /// A tool that the model can call.
    pub(super) struct Tool<'a> {
        name: text "name",
    }
}

record! {
    /// One block of a message.
    pub(super) struct Content<'a> {
        kind: text "type",
        text: text "text" | "thinking",
        signature: text "thinkingSignature",
        redacted: flag "redacted",
        id: text "id",
        name: text "name",
        arguments: json "arguments",
    }
}

record! {
    /// The output of a tool, complete or so far, or the result of a compaction.
    pub(super) struct Outcome<'a> {
        content: json "content",
        details: json "details",
        summary: text "summary",
        tokens_before: number "tokensBefore",
    }
}

record! {
    /// The details of a tool that changes files.
    pub(super) struct Details<'a> {
        diff: json "diff",
        patch: json "patch",
    }
}

record! {
    /// The input of a tool that changes files.
    pub(super) struct FileInput<'a> {
        path: text "path" | "file_path",
    }
}

record! {
    /// Tokens. The input does not include the cached ones.
    pub(super) struct Usage<'a> {
        input: number "input",
        output: number "output",
        cache_read: number "cacheRead",
        cache_write: number "cacheWrite",
        reasoning: number "reasoning",
        total: number "totalTokens",
        cost: record<Cost> "cost",
    }
}

record! {
    /// The cost, in US dollars.
    pub(super) struct Cost<'a> {
        total: float "total",
        _currency: text "currency",
        _input: float "input",
        _output: float "output",
        _cache_read: float "cacheRead",
        _cache_write: float "cacheWrite",
    }
}
