//! Tool calls, and what they did to files.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// A tool was called.
    pub struct ToolStarted<'a> {
        /// The call's id, unique in the session.
        pub call: Text<'a>,
        /// The agent's own id for the call, where it was used before: what an answer to the agent must
        /// name.
        pub native_call: Option<Text<'a>>,
        /// The tool's name, as the agent gives it.
        pub name: Text<'a>,
        /// What kind of work it is.
        pub kind: ToolKind,
        /// Who runs it.
        pub executor: Executor,
        /// The message that called it.
        pub message: Option<Text<'a>>,
        /// Its input, if all of it is known; otherwise one [`ToolInput`] follows.
        pub input: Option<Json<'a>>,
    }
}

payload! {
    /// The next piece of a call's input.
    pub struct ToolInputDelta<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// JSON text, cut anywhere.
        pub text: Text<'a>,
    }
}

payload! {
    /// The whole input of a call.
    pub struct ToolInput<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// The tool's name; the grammar repeats it.
        pub name: Text<'a>,
        /// What kind of work it is; the grammar repeats it.
        pub kind: ToolKind,
        /// Who runs it; the grammar repeats it.
        pub executor: Executor,
        /// The message that called it.
        pub message: Option<Text<'a>>,
        /// The input; absent where it never became known.
        pub input: Option<Json<'a>>,
    }
}

payload! {
    /// A running call showed a sign of life.
    pub struct ToolProgress<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// A piece of its output.
        pub output: Option<Text<'a>>,
        /// How long it has been running.
        pub elapsed_ms: Option<u64>,
    }
}

payload! {
    /// A call was answered.
    pub struct ToolEnded<'a> {
        /// The call's id.
        pub call: Text<'a>,
        /// The tool's name; the grammar repeats it.
        pub name: Text<'a>,
        /// What kind of work it was; the grammar repeats it.
        pub kind: ToolKind,
        /// Who ran it; the grammar repeats it.
        pub executor: Executor,
        /// How it went.
        pub status: ToolStatus,
        /// What it gave back: a JSON string, or an array of content blocks, or another value. Of a
        /// call that was stopped or given up it may be the end of what it showed before.
        pub output: Option<Json<'a>>,
        /// The same for a program, where the agent gives it.
        pub structured: Option<Json<'a>>,
        /// The exit code of a command, where the agent gives it.
        pub exit_code: Option<i64>,
        /// What went wrong, where the agent says it apart from the output.
        pub error: Option<Text<'a>>,
    }
}

payload! {
    /// Files changed.
    pub struct FilesChanged<'a> {
        /// The call that changed them.
        pub call: Option<Text<'a>>,
        /// Which files, and how.
        pub changes: Vec<FileChange<'a>>,
    }
}

payload! {
    /// One file changed.
    pub listed struct FileChange<'a> {
        /// The file.
        pub path: Text<'a>,
        /// Where it was before.
        pub old_path: Option<Text<'a>>,
        /// What happened to it.
        pub kind: FileChangeKind,
        /// The difference, where the agent gives one, as the agent wrote it.
        pub diff: Option<Json<'a>>,
    }
}

payload! {
    /// A file was made for the user.
    pub struct Artifact<'a> {
        /// The file.
        pub path: Text<'a>,
        /// What to call it.
        pub label: Option<Text<'a>>,
        /// Its media type.
        pub media_type: Option<Text<'a>>,
        /// Its size in bytes.
        pub size: Option<u64>,
    }
}

payload! {
    /// An agent started another one.
    pub struct SubagentStarted<'a> {
        /// The other agent's id.
        pub id: Option<Text<'a>>,
        /// The call that started it.
        pub call: Option<Text<'a>>,
        /// What kind of agent it is, in the agent's word.
        pub kind: Option<Text<'a>>,
        /// What it is for.
        pub description: Option<Text<'a>>,
        /// What it was told.
        pub prompt: Option<Text<'a>>,
    }
}

payload! {
    /// The other agent is done.
    pub struct SubagentEnded<'a> {
        /// The other agent's id.
        pub id: Option<Text<'a>>,
        /// The call that started it.
        pub call: Option<Text<'a>>,
        /// How it went, in the agent's word.
        pub status: Option<Text<'a>>,
        /// What it came back with.
        pub summary: Option<Text<'a>>,
    }
}

open_enum! {
    /// What kind of work a tool does.
    #[derive(Default)]
    pub enum ToolKind {
        /// Reads a file.
        Read = "read",
        /// Writes a whole file.
        Write = "write",
        /// Changes a part of a file.
        Edit = "edit",
        /// Runs a command.
        Execute = "execute",
        /// Looks for text in files.
        Search = "search",
        /// Looks for files by name.
        Glob = "glob",
        /// Lists a folder.
        List = "list",
        /// Fetches a page.
        Fetch = "fetch",
        /// Searches the web.
        WebSearch = "web_search",
        /// Keeps the plan.
        Plan = "plan",
        /// Starts or drives another agent.
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
        /// The client, who must answer.
        Client = "client",
        /// The model's provider.
        Provider = "provider",
    }
}

open_enum! {
    /// How a call went.
    #[derive(Default)]
    pub enum ToolStatus {
        /// It did what it was asked.
        #[default]
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was not allowed to run.
        Denied = "denied",
        /// It was stopped.
        Cancelled = "cancelled",
        /// It took too long.
        TimedOut = "timed_out",
        /// Nobody ever answered it.
        Abandoned = "abandoned",
    }
}

open_enum! {
    /// What happened to a file.
    #[derive(Default)]
    pub enum FileChangeKind {
        /// It is new.
        Add = "add",
        /// Its content changed.
        #[default]
        Update = "update",
        /// It is gone.
        Delete = "delete",
        /// It has another name.
        Move = "move",
    }
}

owned!(ToolKind, Executor, ToolStatus, FileChangeKind);
