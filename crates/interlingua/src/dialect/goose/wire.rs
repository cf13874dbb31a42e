//! The records of `goose run --output-format stream-json`, as they are on the wire.

use crate::json::record;

record! {
    /// One line.
    pub(super) struct Line<'a> {
        kind: text "type",
        message: record<Message> "message",
        total: number "total_tokens",
        input: number "input_tokens",
        output: number "output_tokens",
        error: text "error",
        model: text "model",
        extension: text "extension_id",
    }
}

record! {
    /// A delta of a message.
    pub(super) struct Message<'a> {
        id: text "id",
        role: text "role",
        content: records<Content> "content",
    }
}

record! {
    /// One block of a message: a text delta, a call or an answer.
    pub(super) struct Content<'a> {
        kind: text "type",
        text: text "text" | "thinking" | "msg",
        signature: text "signature",
        data: json "data",
        media_type: text "mimeType",
        id: text "id",
        call: record<Call> "toolCall",
        answer: record<Answer> "toolResult",
        name: text "toolName",
        arguments: json "arguments",
        prompt: text "prompt",
    }
}

record! {
    /// A call, or why the model's call is invalid.
    pub(super) struct Call<'a> {
        value: record<Request> "value",
        error: text "error",
        _status: text "status",
    }
}

record! {
    /// The tool and the input of a call.
    pub(super) struct Request<'a> {
        name: text "name",
        arguments: json "arguments",
    }
}

record! {
    /// An answer, or why there is none.
    pub(super) struct Answer<'a> {
        status: text "status",
        value: record<ToolOutput> "value",
        error: text "error",
    }
}

record! {
    /// The output of a tool.
    pub(super) struct ToolOutput<'a> {
        content: json "content",
        structured: whole<CommandOutput> "structuredContent",
        is_error: flag "isError",
    }
}

record! {
    /// The structured output of a command.
    pub(super) struct CommandOutput<'a> {
        exit_code: integer "exit_code",
        _output: text "stdout",
    }
}

record! {
    /// The input of the tool that writes the plan.
    pub(super) struct PlanInput<'a> {
        content: text "content",
    }
}
