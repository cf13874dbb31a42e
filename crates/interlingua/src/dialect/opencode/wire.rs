//! The fields of the records of opencode that are read: lines of `opencode run --format json`, and
//! events of the server.

use crate::json::record;

record! {
    /// A line, an event, or a request that was sent to the server. An event has all fields but its
    /// type and its id in `properties`.
    pub(super) struct Line<'a> {
        kind: text "type",
        properties: record<Properties> "properties",
        id: text "id",
        time: json "timestamp",
        session: text "sessionID",
        part: record<Part> "part",
        error: record<Failure> "error",
        method: text "method",
        path: text "path",
        body: record<Body> "body",
    }
}

record! {
    /// The body of a request that was sent to the server. Other fields of it are reported by the
    /// server.
    pub(super) struct Body<'a> {
        reason: text "message",
    }
}

record! {
    /// The properties of an event.
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
    /// The facts of a session or a message.
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
    /// A model. Its id has one of two names.
    pub(super) struct Model<'a> {
        id: text "id" | "modelID",
    }
}

record! {
    /// The start and the end of something.
    pub(super) struct Time<'a> {
        created: json "created" | "start",
        ended: json "completed" | "end",
    }
}

record! {
    /// The status of a session.
    pub(super) struct Status<'a> {
        kind: text "type",
        attempt: number "attempt",
        message: text "message",
        next: number "next",
    }
}

record! {
    /// A reference to a call.
    pub(super) struct ToolReference<'a> {
        call: text "callID",
    }
}

record! {
    /// The current state of a part of a message.
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
    /// The state of a tool call.
    pub(super) struct State<'a> {
        status: text "status",
        input: json "input",
        output: json "output",
        error: text "error",
        metadata: whole<Metadata> "metadata",
    }
}

record! {
    /// The metadata of a call, which the tool writes for the program's own display.
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
    /// The diff of a changed file.
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
    /// The fields of the input of a call that are read.
    pub(super) struct Input<'a> {
        tool: text "tool",
        error: text "error",
        todos: json "todos",
        path: text "filePath",
        folder: text "workdir",
        description: text "description",
        prompt: text "prompt",
        agent: text "subagent_type",
    }
}

record! {
    /// The tokens of a request. The output does not include the reasoning, nor the input the cached
    /// tokens.
    pub(super) struct Tokens<'a> {
        total: number "total",
        input: number "input",
        output: number "output",
        reasoning: number "reasoning",
        cache: record<Cache> "cache",
    }
}

record! {
    /// The tokens that were read from a cache or written to it.
    pub(super) struct Cache<'a> {
        read: number "read",
        _scope: text "scope",
        write: number "write",
    }
}

record! {
    /// An error.
    pub(super) struct Failure<'a> {
        name: text "name",
        data: record<FailureData> "data",
    }
}

record! {
    /// The details of an error.
    pub(super) struct FailureData<'a> {
        message: text "message",
        status: number "statusCode",
    }
}
