//! The records of opencode, as they are on the wire: lines of `opencode run --format json`, and
//! events of the server.

use crate::json::record;

record! {
    /// A line, or an event: an event has all but its type in `properties`.
    pub(super) struct Line<'a> {
        kind: text "type",
        properties: record<Properties> "properties",
        id: text "id",
        time: json "timestamp",
        session: text "sessionID",
        part: record<Part> "part",
        error: record<Failure> "error",
    }
}

record! {
    /// What an event says.
    pub(super) struct Properties<'a> {
        session: text "sessionID",
        message: text "messageID",
        part_id: text "partID",
        field: text "field",
        delta: text "delta",
        part: record<Part> "part",
        time: json "time",
        info: record<Info> "info",
        status: record<Status> "status",
        error: record<Failure> "error",
        todos: json "todos",
        id: text "id",
        request: text "requestID" | "permissionID",
        reply: text "reply" | "response",
        permission: text "permission",
        patterns: json "patterns",
        metadata: json "metadata",
        always: json "always",
        tool: record<ToolReference> "tool",
        questions: json "questions",
        answers: json "answers",
    }
}

record! {
    /// What is known of a session, or of a message.
    pub(super) struct Info<'a> {
        id: text "id",
        parent: text "parentID",
        version: text "version",
        directory: text "directory",
        model: record<Model> "model",
        role: text "role",
        model_id: text "modelID",
        time: record<Time> "time",
        error: record<Failure> "error",
        finish: text "finish",
        summary: flag "summary",
    }
}

record! {
    /// A model, under one of the names that it has.
    pub(super) struct Model<'a> {
        id: text "id" | "modelID",
    }
}

record! {
    /// When something began and ended.
    pub(super) struct Time<'a> {
        created: json "created" | "start",
        ended: json "completed" | "end",
    }
}

record! {
    /// How a session is doing.
    pub(super) struct Status<'a> {
        kind: text "type",
        attempt: number "attempt",
        message: text "message",
        next: number "next",
    }
}

record! {
    /// Which call something is about.
    pub(super) struct ToolReference<'a> {
        call: text "callID",
    }
}

record! {
    /// A part of a message, as it is by now.
    pub(super) struct Part<'a> {
        id: text "id",
        kind: text "type",
        message: text "messageID",
        text: text "text",
        synthetic: flag "synthetic",
        time: record<Time> "time",
        tool: text "tool",
        call: text "callID",
        state: record<State> "state",
        reason: text "reason",
        tokens: record<Tokens> "tokens",
        cost: float "cost",
        files: json "files",
        auto: flag "auto",
    }
}

record! {
    /// How far a tool call is.
    pub(super) struct State<'a> {
        status: text "status",
        input: json "input",
        output: json "output",
        error: text "error",
        metadata: whole<Metadata> "metadata",
    }
}

record! {
    /// What is read of what a tool tells the program's own screen.
    pub(super) struct Metadata<'a> {
        output: text "output",
        exit: integer "exit",
        session: text "sessionId" | "sessionID",
        path: text "filepath",
        exists: flag "exists",
        diff: json "diff",
        filediff: record<FileDiff> "filediff",
        files: records<PatchedFile> "files",
    }
}

record! {
    /// A file that was changed.
    pub(super) struct FileDiff<'a> {
        file: text "file",
    }
}

record! {
    /// A file of a patch.
    pub(super) struct PatchedFile<'a> {
        path: text "filePath",
        to: text "movePath",
        kind: text "type",
        diff: json "patch" | "diff",
    }
}

record! {
    /// What is read of the input of a call.
    pub(super) struct Input<'a> {
        tool: text "tool",
        error: text "error",
        todos: json "todos",
        path: text "filePath",
        description: text "description",
        prompt: text "prompt",
        agent: text "subagent_type",
    }
}

record! {
    /// Tokens of one request; the output does not count the reasoning, the input not the cache.
    pub(super) struct Tokens<'a> {
        total: number "total",
        input: number "input",
        output: number "output",
        reasoning: number "reasoning",
        cache: record<Cache> "cache",
    }
}

record! {
    /// Tokens that were read from a cache, or written to it.
    pub(super) struct Cache<'a> {
        read: number "read",
        _scope: text "scope",
        write: number "write",
    }
}

record! {
    /// What went wrong.
    pub(super) struct Failure<'a> {
        name: text "name",
        data: record<FailureData> "data",
    }
}

record! {
    /// What is told of it.
    pub(super) struct FailureData<'a> {
        message: text "message",
        status: number "statusCode",
    }
}
