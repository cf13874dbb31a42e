//! Tool calls, changes of files, and sub-agents.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// A tool was called.
    pub struct ToolStarted<'a> {
        /// The call's id, which is unique in the session.
        pub call: Text<'a>,
        /// The agent's own id for the call, if the call was renamed. An answer to the agent has to
        /// contain it.
        pub native_call: Option<Text<'a>>,
        /// The tool's name, as the agent wrote it.
        pub name: Text<'a>,
        /// The kind of tool.
        pub kind: ToolKind,
        /// Who runs it.
        pub executor: Executor,
        /// The id of the message that contains the call.
        pub message: Option<Text<'a>>,
        /// The whole input, if it is known; otherwise one [`ToolInput`] follows.
        pub input: Option<Json<'a>>,
    }
}

payload! {
    /// The next piece of a call's input.
    pub struct ToolInputDelta<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// A piece of JSON text, cut anywhere.
        pub text: Text<'a>,
    }
}

payload! {
    /// The whole input of a call.
    pub struct ToolInput<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// The tool's name; completed by the grammar.
        pub name: Text<'a>,
        /// The kind of tool; completed by the grammar.
        pub kind: ToolKind,
        /// Who runs it; completed by the grammar.
        pub executor: Executor,
        /// The id of the message that contains the call.
        pub message: Option<Text<'a>>,
        /// The input; absent if it never became known.
        pub input: Option<Json<'a>>,
    }
}

payload! {
    /// A running call reported progress.
    pub struct ToolProgress<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// The next piece of its output.
        pub output: Option<Text<'a>>,
        /// The time for which it has been running.
        pub elapsed_ms: Option<u64>,
    }
}

payload! {
    /// A call was answered.
    pub struct ToolEnded<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// The tool's name; completed by the grammar.
        pub name: Text<'a>,
        /// The kind of tool; completed by the grammar.
        pub kind: ToolKind,
        /// Who ran it; completed by the grammar.
        pub executor: Executor,
        /// The status.
        pub status: ToolStatus,
        /// The output: a JSON string, an array of content blocks, or another value. If the call was
        /// cancelled or abandoned, it may be the end of its streamed output.
        pub output: Option<Json<'a>>,
        /// The output in a structured form, if the agent reports one.
        pub structured: Option<Json<'a>>,
        /// The exit code of a command, if the agent reports it.
        pub exit_code: Option<i64>,
        /// The error, if the agent reports it apart from the output.
        pub error: Option<Text<'a>>,
    }
}

payload! {
    /// Files changed.
    pub struct FilesChanged<'a> {
        /// The call that changed them.
        pub call: Option<Text<'a>>,
        /// The changes.
        pub changes: Vec<FileChange<'a>>,
    }
}

payload! {
    /// The change of one file.
    pub listed struct FileChange<'a> {
        /// The path of the file.
        pub path: Text<'a>,
        /// The previous path of a renamed file.
        pub old_path: Option<Text<'a>>,
        /// The kind of change.
        pub kind: FileChangeKind,
        /// The diff, if the agent reports one, as the agent wrote it.
        pub diff: Option<Json<'a>>,
    }
}

payload! {
    /// A file was created for the user.
    pub struct Artifact<'a> {
        /// The path of the file.
        pub path: Text<'a>,
        /// The name to show.
        pub label: Option<Text<'a>>,
        /// Its media type.
        pub media_type: Option<Text<'a>>,
        /// Its size in bytes.
        pub size: Option<u64>,
    }
}

payload! {
    /// A sub-agent started.
    pub struct SubagentStarted<'a> {
        /// The sub-agent's id.
        pub id: Option<Text<'a>>,
        /// The call that started it.
        pub call: Option<Text<'a>>,
        /// The kind of sub-agent, as the agent names it.
        pub kind: Option<Text<'a>>,
        /// A description of its task.
        pub description: Option<Text<'a>>,
        /// Its prompt.
        pub prompt: Option<Text<'a>>,
    }
}

payload! {
    /// A sub-agent ended.
    pub struct SubagentEnded<'a> {
        /// The sub-agent's id.
        pub id: Option<Text<'a>>,
        /// The call that started it.
        pub call: Option<Text<'a>>,
        /// The status, as the agent names it.
        pub status: Option<Text<'a>>,
        /// Its result.
        pub summary: Option<Text<'a>>,
    }
}

open_enum! {
    /// A kind of tool.
    #[derive(Default)]
    pub enum ToolKind {
        /// Reads a file.
        Read = "read",
        /// Writes a whole file.
        Write = "write",
        /// Edits a part of a file.
        Edit = "edit",
        /// Runs a command.
        Execute = "execute",
        /// Searches files for text.
        Search = "search",
        /// Searches for files by name.
        Glob = "glob",
        /// Lists a directory.
        List = "list",
        /// Fetches a page.
        Fetch = "fetch",
        /// Searches the web.
        WebSearch = "web_search",
        /// Updates the plan.
        Plan = "plan",
        /// Starts or controls a sub-agent.
        Task = "task",
        /// Takes the answer of a turn, in the shape that was asked for.
        Answer = "answer",
        /// Belongs to an MCP server.
        Mcp = "mcp",
        /// Anything else.
        #[default]
        Unspecified = "other",
    }
}

open_enum! {
    /// Who runs a tool.
    #[derive(Default)]
    pub enum Executor {
        /// The agent, on its own machine.
        #[default]
        Agent = "agent",
        /// The client, which has to answer the call.
        Client = "client",
        /// The model's provider.
        Provider = "provider",
    }
}

open_enum! {
    /// The status of an answered call.
    #[derive(Default)]
    pub enum ToolStatus {
        /// It succeeded.
        #[default]
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was denied permission to run.
        Denied = "denied",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It timed out.
        TimedOut = "timed_out",
        /// It was never answered.
        Abandoned = "abandoned",
    }
}

open_enum! {
    /// A kind of change to a file.
    #[derive(Default)]
    pub enum FileChangeKind {
        /// The file was created.
        Add = "add",
        /// The content changed.
        #[default]
        Update = "update",
        /// The file was deleted.
        Delete = "delete",
        /// The file was renamed.
        Move = "move",
    }
}

owned!(ToolKind, Executor, ToolStatus, FileChangeKind);
