//! The tools as they are offered to a model.

use interlingua::event::ToolKind;
use serde_json::{Value, json};

use super::{Failure, Settings, schema};

/// A tool that the model may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// The JSON schema of its input.
    pub input_schema: Value,
    /// The kind of work that it does.
    pub kind: ToolKind,
    /// Whether it changes nothing, so that it may run at the same time as others that only read.
    pub only_reads: bool,
    /// Whether it skips secrets in what it searches, for the
    /// [permission request](crate::permission::PermissionRequest::skips_secrets).
    pub skips_secrets: bool,
    /// Whether a call has to be permitted in every mode. The others affect only the session: its list
    /// of tasks, and commands that were permitted when they were started. In the modes `interactive`
    /// and `deny`, they have to be permitted, too.
    pub needs_permission: bool,
}

impl Definition {
    /// Checks an input. The error names what the tool takes.
    pub(super) fn check(&self, input: &Value) -> Result<(), Failure> {
        let Some(problem) = schema::problem(&self.input_schema, input) else { return Ok(()) };
        let fields = schema::summary(&self.input_schema);
        Err(Failure(format!("{}: {problem}. It takes {fields}.", self.name)))
    }
}

/// Whether there is a tool of this name, also if it is not offered.
pub(crate) fn is_known(name: &str) -> bool {
    every().any(|tool| tool.name == name)
}

fn every() -> impl Iterator<Item = Definition> {
    file_tools().into_iter().chain(search_tools()).chain(shell_tools()).chain(others())
}

/// The tools that are offered and can run.
pub(super) fn all(settings: &Settings, has_shell: bool) -> Vec<Definition> {
    let can_run =
        |tool: &Definition| has_shell || !matches!(tool.name, "Bash" | "BashOutput" | "KillShell");
    every().filter(|tool| can_run(tool) && settings.offers(tool.name)).collect()
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn tool(
    name: &'static str,
    kind: ToolKind,
    description: &'static str,
    schema: Value,
) -> Definition {
    let only_reads = matches!(
        kind,
        ToolKind::Read | ToolKind::Search | ToolKind::Glob | ToolKind::List | ToolKind::Fetch
    );
    let skips_secrets = matches!(kind, ToolKind::Search | ToolKind::Glob);
    let needs_permission = !matches!(name, "TodoWrite" | "BashOutput" | "KillShell");
    let input_schema = schema;
    Definition {
        name,
        description,
        input_schema,
        kind,
        only_reads,
        skips_secrets,
        needs_permission,
    }
}

fn file_tools() -> Vec<Definition> {
    let path = || text("The path of the file, absolute or relative to the working folder");
    let old = || text("The text to replace, exactly as in the file, without line numbers");
    let new = || text("The text that takes its place");
    let all = || flag("Replace every occurrence instead of exactly one");
    vec![
        tool(
            "Read",
            ToolKind::Read,
            "Reads a file. Text is returned with line numbers (`N→line`), up to 2000 lines at a \
             time; use `offset` and `limit` for more. Images (PNG, JPEG, GIF, WebP), PDFs and \
             notebooks are understood. A file has to be read before it can be edited or \
             overwritten.",
            object(
                json!({
                    "file_path": path(),
                    "offset": number("The first line to return, counted from 1"),
                    "limit": number("How many lines to return"),
                }),
                &["file_path"],
            ),
        ),
        tool(
            "Write",
            ToolKind::Write,
            "Writes a whole file, and creates missing folders. An existing file has to be read \
             first. Prefer Edit for changes of an existing file.",
            object(
                json!({"file_path": path(), "content": text("The whole content of the file")}),
                &["file_path", "content"],
            ),
        ),
        tool(
            "Edit",
            ToolKind::Edit,
            "Replaces text in a file that was read. `old_string` has to occur exactly once, \
             including all white space, unless `replace_all` is set: add lines around it until \
             it is unique.",
            object(
                json!({
                    "file_path": path(),
                    "old_string": old(),
                    "new_string": new(),
                    "replace_all": all(),
                }),
                &["file_path", "old_string", "new_string"],
            ),
        ),
        tool(
            "MultiEdit",
            ToolKind::Edit,
            "Makes several replacements in a file that was read, one after another, each as Edit \
             would. If one of them fails, none is made.",
            object(
                json!({
                    "file_path": path(),
                    "edits": {
                        "type": "array",
                        "description": "The replacements in their order",
                        "items": object(
                            json!({
                                "old_string": old(),
                                "new_string": new(),
                                "replace_all": all(),
                            }),
                            &["old_string", "new_string"],
                        ),
                    },
                }),
                &["file_path", "edits"],
            ),
        ),
    ]
}

fn search_tools() -> Vec<Definition> {
    let folder = || text("The folder to search; the working folder if absent");
    vec![
        tool(
            "Glob",
            ToolKind::Glob,
            "Finds files by a pattern such as `**/*.rs` or `src/**/*.{ts,tsx}`, newest first. A \
             pattern without `/` matches names in all folders. Files that git ignores, and files \
             that usually contain secrets, are left out.",
            object(
                json!({"pattern": text("The pattern of the paths"), "path": folder()}),
                &["pattern"],
            ),
        ),
        tool(
            "Grep",
            ToolKind::Search,
            "Searches the contents of files for a regular expression (syntax of ripgrep). Files \
             that git ignores, binary files, and files that usually contain secrets are left out \
             unless `path` names them.",
            grep_schema(),
        ),
        tool(
            "LS",
            ToolKind::List,
            "Lists the entries of a folder. Names of folders end in a separator.",
            object(
                json!({
                    "path": text("The folder"),
                    "ignore": {
                        "type": "array",
                        "description": "Patterns of names to leave out",
                        "items": {"type": "string"},
                    },
                }),
                &["path"],
            ),
        ),
    ]
}

fn grep_schema() -> Value {
    object(
        json!({
            "pattern": text("The regular expression"),
            "path": text("The file or folder to search; the working folder if absent"),
            "glob": text("A pattern of the files to search, such as `*.{ts,tsx}`"),
            "type": text("A type of files to search, such as `rust`, `js` or `py`"),
            "output_mode": {
                "type": "string",
                "enum": ["content", "files_with_matches", "count"],
                "description": "The matching lines, the paths of files that match (the default), \
                                or the number of matching lines of each file",
            },
            "-A": number("How many lines to show after each match (content only)"),
            "-B": number("How many lines to show before each match (content only)"),
            "-C": number("How many lines to show before and after each match (content only)"),
            "-n": flag("Show line numbers (content only); true if absent"),
            "-i": flag("Ignore the case"),
            "head_limit": number("Return at most this many lines or files; 250 if absent"),
            "offset": number("Skip this many lines or files"),
            "multiline": flag("Let the pattern match across lines, and `.` match line ends"),
        }),
        &["pattern"],
    )
}

fn shell_tools() -> Vec<Definition> {
    vec![
        tool(
            "Bash",
            ToolKind::Execute,
            "Runs a command with bash in the working folder. Every call starts there: a changed \
             folder, variables and functions do not persist, so use `cd folder && command`. There \
             is no input and no terminal. All processes end with the call, unless it runs in the \
             background. Of a long output, the beginning and the end are returned, with the path \
             of a file that has all of it. Use Read, Grep and Glob instead of cat, grep and find. \
             Write temporary files to $TMPDIR.",
            object(
                json!({
                    "command": text("The command"),
                    "timeout": number("The time limit in milliseconds: 120000 if absent, at most 600000"),
                    "description": text("What the command does, in a few words"),
                    "run_in_background": flag("Return at once; BashOutput returns the output"),
                }),
                &["command"],
            ),
        ),
        tool(
            "BashOutput",
            ToolKind::Unspecified,
            "Returns what a background command has printed since the last call, and whether it \
             still runs.",
            object(
                json!({
                    "bash_id": text("The id of the background command, such as `bash_1`"),
                    "filter": text("A regular expression; only lines that match it are returned, \
                                    and the others are dropped"),
                }),
                &["bash_id"],
            ),
        ),
        tool(
            "KillShell",
            ToolKind::Unspecified,
            "Ends a background command and all its processes.",
            object(
                json!({"shell_id": text("The id of the background command, such as `bash_1`")}),
                &["shell_id"],
            ),
        ),
    ]
}

fn others() -> Vec<Definition> {
    vec![
        tool(
            "TodoWrite",
            ToolKind::Plan,
            "Replaces the list of tasks that is shown to the user. At most one task is in \
             progress at a time.",
            object(
                json!({
                    "todos": {
                        "type": "array",
                        "description": "The whole list",
                        "items": object(
                            json!({
                                "content": text("The task, such as `Run the tests`"),
                                "status": {
                                    "type": "string",
                                    "enum": ["pending", "in_progress", "completed"],
                                },
                                "activeForm": text("The same while it is done, such as `Running the tests`"),
                            }),
                            &["content", "status", "activeForm"],
                        ),
                    },
                }),
                &["todos"],
            ),
        ),
        tool(
            "WebFetch",
            ToolKind::Fetch,
            "Fetches a page over http or https, and returns it as text. A redirect to another \
             host is reported instead of followed.",
            object(
                json!({
                    "url": text("The address"),
                    "prompt": text("What you want to know from the page"),
                }),
                &["url", "prompt"],
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_run_is_offered() {
        let names = |settings: &Settings, shell| {
            all(settings, shell).into_iter().map(|tool| tool.name).collect::<Vec<_>>()
        };
        let mut settings = Settings::new("/");
        let files = ["Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS"];
        assert_eq!(names(&settings, false), [&files[..], &["TodoWrite"]].concat());
        let shell = ["Bash", "BashOutput", "KillShell"];
        assert_eq!(names(&settings, true), [&files[..], &shell, &["TodoWrite"]].concat());
        settings.web_fetch = true;
        assert!(names(&settings, true).contains(&"WebFetch"));
        settings.network = false;
        assert!(!names(&settings, true).contains(&"WebFetch"));
        settings.tools = Some(vec!["Read".to_owned(), "Bash".to_owned()]);
        assert_eq!(names(&settings, true), ["Read", "Bash"]);
    }
}
