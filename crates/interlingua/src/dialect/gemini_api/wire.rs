//! The records of the `generateContent` API as they are on the wire. It knows no meaning of them.

use crate::json::read::{Field, Flaw, Record};
use crate::json::{Json, Shape, Text, known, record};

record! {
    /// One chunk of a response, a whole response, or an error.
    pub(super) struct Chunk<'a> {
        candidates: records<Candidate> "candidates",
        usage: record<UsageMetadata> "usageMetadata",
        model: text "modelVersion",
        id: text "responseId",
        prompt: record<PromptFeedback> "promptFeedback",
        error: record<Failure> "error",
    }
}

record! {
    /// One answer of the model. Unless more were requested, there is one.
    pub(super) struct Candidate<'a> {
        content: record<Content> "content",
        index: number "index",
        finish_reason: text "finishReason",
        finish_message: text "finishMessage",
        continuation: json "continuationToken",
        grounding: json "groundingMetadata",
        citations: json "citationMetadata",
        urls: json "urlContextMetadata",
    }
}

record! {
    /// The content of a candidate.
    pub(super) struct Content<'a> {
        parts: records<Part> "parts",
    }
}

/// One part of a content, which has one of several fields with data.
#[derive(Debug, Default, Clone)]
pub(super) struct Part<'a> {
    pub(super) text: Option<Text<'a>>,
    pub(super) thought: Option<bool>,
    pub(super) signature: Option<Text<'a>>,
    pub(super) call: Option<FunctionCall<'a>>,
    pub(super) code: Option<ExecutableCode<'a>>,
    pub(super) code_result: Option<CodeExecutionResult<'a>>,
    pub(super) inline_data: Option<InlineData<'a>>,
    pub(super) file_data: Option<Json<'a>>,
    /// A field that is not known, with its name.
    pub(super) unknown: Option<(Box<str>, Json<'a>)>,
}

impl<'a> Record<'a> for Part<'a> {
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "text" => self.text = value.text()?,
            "thought" => self.thought = value.flag()?,
            "thoughtSignature" => self.signature = value.text()?,
            "functionCall" => value.record(&mut self.call)?,
            "executableCode" => value.record(&mut self.code)?,
            "codeExecutionResult" => value.record(&mut self.code_result)?,
            "inlineData" => value.record(&mut self.inline_data)?,
            "fileData" => self.file_data = value.json()?,
            "videoMetadata" | "mediaResolution" | "partMetadata" => value.skip()?,
            name => self.unknown = Some((name.into(), value.raw()?)),
        }
        Ok(())
    }

    fn shape() -> Shape {
        known!(
            "text",
            "thought",
            "thoughtSignature",
            "functionCall" => FunctionCall,
            "executableCode" => ExecutableCode,
            "codeExecutionResult" => CodeExecutionResult,
            "inlineData" => InlineData,
            "fileData",
            "videoMetadata",
            "mediaResolution",
            "partMetadata",
        )
    }
}

record! {
    /// A call of one of the client's tools.
    pub(super) struct FunctionCall<'a> {
        id: text "id",
        name: text "name",
        args: json "args",
        // Pieces of arguments, which only Vertex AI sends, and only on request.
        partial_args: json "partialArgs",
        will_continue: flag "willContinue",
    }
}

record! {
    /// Code that the provider runs.
    pub(super) struct ExecutableCode<'a> {
        id: text "id",
        language: text "language",
        code: text "code",
    }
}

record! {
    /// The result of the code before it.
    pub(super) struct CodeExecutionResult<'a> {
        id: text "id",
        outcome: text "outcome",
        output: text "output",
    }
}

record! {
    /// Data of another kind than text.
    pub(super) struct InlineData<'a> {
        mime_type: text "mimeType",
        data: text "data",
    }
}

record! {
    /// The tokens so far.
    pub(super) struct UsageMetadata<'a> {
        prompt: number "promptTokenCount",
        cached: number "cachedContentTokenCount",
        candidates: number "candidatesTokenCount",
        thoughts: number "thoughtsTokenCount",
        tool_use_prompt: number "toolUsePromptTokenCount",
        total: number "totalTokenCount",
        _traffic: text "trafficType",
    }
}

record! {
    /// Why the prompt was blocked.
    pub(super) struct PromptFeedback<'a> {
        block_reason: text "blockReason",
        block_message: text "blockReasonMessage",
    }
}

record! {
    /// Why a request failed.
    pub(super) struct Failure<'a> {
        code: number "code",
        message: text "message",
        status: text "status",
        details: json "details",
    }
}

record! {
    /// One detail of a failure.
    pub(super) struct Detail<'a> {
        reason: text "reason",
        retry_delay: text "retryDelay",
        violations: records<Violation> "violations",
    }
}

record! {
    /// A quota that is exceeded.
    pub(super) struct Violation<'a> {
        quota: text "quotaId",
    }
}
