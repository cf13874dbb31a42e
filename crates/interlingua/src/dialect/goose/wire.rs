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
    /// A piece of a message.
    pub(super) struct Message<'a> {
        id: text "id",
        role: text "role",
        content: records<Content> "content",
    }
}

record! {
    /// One block of a message: a piece of text, a call, an answer.
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
    /// A call, or why what the model said is none.
    pub(super) struct Call<'a> {
        value: record<Request> "value",
        error: text "error",
        _status: text "status",
    }
}

record! {
    /// What is called.
    pub(super) struct Request<'a> {
        name: text "name",
        arguments: json "arguments",
    }
}

record! {
    /// An answer, or why there is none.
    pub(super) struct Answer<'a> {
        status: text "status",
        value: record<Given> "value",
        error: text "error",
    }
}

record! {
    /// What a tool gave back.
    pub(super) struct Given<'a> {
        content: json "content",
        structured: whole<Ran> "structuredContent",
        is_error: flag "isError",
    }
}

record! {
    /// What is read of the structured output of a command.
    pub(super) struct Ran<'a> {
        exit_code: integer "exit_code",
        _output: text "stdout",
    }
}

record! {
    /// What is read of the input of a tool that keeps the plan.
    pub(super) struct PlanInput<'a> {
        content: text "content",
    }
}
