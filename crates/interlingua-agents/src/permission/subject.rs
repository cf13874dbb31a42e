//! The subject of a request: the command, the files or the address that it is about.
//!
//! Agents name the fields of a tool's input differently. The names that are known are collected
//! here; a request that has none of them has an unknown subject.

use std::path::{Path, PathBuf};

use interlingua::event::ToolKind;
use serde_json::{Map, Value};

use super::PermissionRequest;
use super::paths::{Reader, may_name_git};
use super::shell::{self, Script, SimpleCommand, Word};

/// What a request is about.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    /// A command line.
    Command(CommandLine),
    /// Files that are read, searched, listed or changed.
    Files {
        access: Access,
        /// The paths; absent if they are not known completely.
        paths: Option<Vec<String>>,
    },
    /// Anything else.
    Other(Input),
}

/// The input of a tool of which little is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    /// Its address, its query or its files; the complete input if it has none.
    pub(super) named: Vec<String>,
    /// All of it.
    pub(super) whole: String,
}

/// A command line, with the folder that the request names for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommandLine {
    pub(super) script: Script,
    /// `bash -c SCRIPT` around the script, if the agent chose to use it.
    pub(super) wrapper: Option<SimpleCommand>,
    pub(super) folder: CommandFolder,
}

/// The folder in which a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandFolder {
    /// The one in which the agent works.
    Agent,
    /// The one that the request names.
    Named(String),
    /// Any: the request does not tell.
    Unknown,
}

impl CommandFolder {
    fn of(fields: &Map<String, Value>, request: &PermissionRequest) -> Self {
        const NAMES: [&str; 5] = ["cwd", "workdir", "directory", "dir_path", "working_directory"];
        let given = NAMES.iter().filter_map(|name| fields.get(*name));
        let mut given = given.filter(|it| !it.is_null());
        match given.next() {
            // Which of several the agent would use is not known.
            Some(first) if given.any(|other| other != first) => Self::Unknown,
            Some(Value::String(folder)) => Self::Named(folder.clone()),
            Some(_) => Self::Unknown,
            None if request.may_lack_input => Self::Unknown,
            None => Self::Agent,
        }
    }

    /// Its path, if it is known.
    pub(super) fn path(&self, of_agent: &Path) -> Option<PathBuf> {
        match self {
            Self::Agent => Some(of_agent.to_owned()),
            Self::Named(folder) => Some(of_agent.join(folder)),
            Self::Unknown => None,
        }
    }
}

/// What is done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Their contents are read.
    Read,
    /// Everything below them that the tool reads is searched.
    Search(Reader),
    /// Their names are listed.
    List,
    /// They are changed.
    Write,
}

/// The names by which agents call the tool that runs commands. Those of MCP servers have a prefix.
const SHELL_TOOLS: [&str; 5] = ["Bash", "bash", "command_execution", "run_shell_command", "shell"];

impl Subject {
    pub(super) fn of(request: &PermissionRequest) -> Self {
        let text = request.input.as_deref().unwrap_or_default();
        let fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let access = match request.kind {
            ToolKind::Execute => return Self::Command(command_line(&fields, request)),
            // A request may come before its call is known.
            ToolKind::Unspecified if SHELL_TOOLS.contains(&&*request.tool) => {
                return Self::Command(command_line(&fields, request));
            }
            ToolKind::Read => Access::Read,
            ToolKind::Search => Access::Search(searcher(&fields)),
            ToolKind::Glob | ToolKind::List => Access::List,
            ToolKind::Write | ToolKind::Edit => Access::Write,
            // Tools of which nothing is known may run commands too, and may do more: in another place,
            // or something else.
            _ if command_of(&fields).is_some() => {
                let mut line = command_line(&fields, request);
                line.script.unresolved.get_or_insert("its tool may do more than run this command");
                return Self::Command(line);
            }
            _ => return Self::Other(other(fields, text)),
        };
        Self::Files { access, paths: paths(&fields, access) }
    }
}

fn other(fields: Map<String, Value>, text: &str) -> Input {
    let names = ["file_path", "filePath", "path", "url", "query"];
    // An empty field does not describe the call.
    let given = |name: &&str| fields.get(*name)?.as_str().filter(|it| !it.trim().is_empty());
    let mut named: Vec<_> = names.iter().filter_map(given).map(str::to_owned).collect();
    if named.is_empty() {
        named.push(text.to_owned());
    }
    let whole = if fields.is_empty() { text.to_owned() } else { Value::Object(fields).to_string() };
    Input { named, whole }
}

fn command_of(fields: &Map<String, Value>) -> Option<&Value> {
    let command = fields.get("command").or_else(|| fields.get("cmd"));
    command.filter(|command| command.is_string() || command.is_array())
}

/// The command of a request as the agent wrote it.
pub(super) fn command_text(request: &PermissionRequest) -> Option<String> {
    let fields = serde_json::from_str::<Map<_, _>>(request.input.as_deref()?).ok()?;
    Some(match command_of(&fields)? {
        Value::String(line) => line.clone(),
        words => words.to_string(),
    })
}

fn command_line(fields: &Map<String, Value>, request: &PermissionRequest) -> CommandLine {
    let folder = CommandFolder::of(fields, request);
    let script = match command_of(fields) {
        Some(Value::String(line)) => shell::parse(line),
        Some(Value::Array(words)) => program(words),
        _ => unknown("the request does not tell its command"),
    };
    if let Some(shell) = other_shell(fields, request) {
        return CommandLine { script: unknown(shell), wrapper: None, folder };
    }
    // Codex wraps every command. Other agents do so only if their model wrote it.
    let by_agent = request.tool == "command_execution";
    let (mut script, wrapper) = match unwrapped(&script) {
        Some(inner) => (inner, script.commands.into_iter().next().filter(|_| !by_agent)),
        None => (script, None),
    };
    script.unresolved = script.unresolved.or_else(|| beyond_command(fields));
    CommandLine { script, wrapper, folder }
}

/// Why a request allows more than what its command shows. The fields are those of Codex and of Claude.
fn beyond_command(fields: &Map<String, Value>) -> Option<&'static str> {
    let has = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    if fields.get("kind").is_some_and(|kind| kind == "writeStdin") {
        Some("it types into a program that is running")
    } else if has("networkApprovalContext") {
        Some("it lets the command use the network")
    } else if has("additionalPermissions") {
        Some("it lifts a part of the sandbox for the command")
    } else if fields.get("dangerouslyDisableSandbox").is_some_and(|it| *it != Value::Bool(false)) {
        Some("it runs the command without the sandbox")
    } else {
        None
    }
}

fn unknown(reason: &'static str) -> Script {
    Script { commands: Vec::new(), unresolved: Some(reason) }
}

/// A program and its arguments, which no shell reads.
fn program(words: &[Value]) -> Script {
    let literal = |word: &Value| word.as_str().map(|word| Word::Literal(word.to_owned()));
    match words.iter().map(literal).collect::<Option<Vec<_>>>() {
        Some(words) if !words.is_empty() => {
            let command = SimpleCommand { words, ..SimpleCommand::default() };
            Script { commands: vec![command], unresolved: None }
        }
        _ => unknown("the request does not tell its command"),
    }
}

/// Whether the request names a shell whose language is not known here.
fn other_shell(fields: &Map<String, Value>, request: &PermissionRequest) -> Option<&'static str> {
    const REASON: &str = "it is for a shell other than sh and bash";
    let known = |shell: &str| matches!(shell::base_name(shell), "sh" | "bash");
    match fields.get("shell") {
        Some(Value::String(shell)) if known(shell) => return None,
        Some(Value::String(_)) => return Some(REASON),
        _ => {}
    }
    let tool = request.tool.to_ascii_lowercase();
    let others = ["powershell", "pwsh", "zsh", "fish", "cmd.exe"];
    // On Windows, agents use PowerShell or cmd unless they name another shell.
    let windows = cfg!(windows) && request.tool != "Bash";
    (windows || others.iter().any(|other| tool.contains(other)) || tool == "cmd").then_some(REASON)
}

/// The script of `bash -c SCRIPT` or `bash -lc SCRIPT`, if that is the whole line.
fn unwrapped(script: &Script) -> Option<Script> {
    let [command] = &*script.commands else { return None };
    if script.unresolved.is_some() || command.assigns || !command.redirections.is_empty() {
        return None;
    }
    match &*command.literal_words()? {
        [shell, "-c" | "-lc", line] => match *shell {
            "bash" | "sh" | "/bin/bash" | "/bin/sh" | "/usr/bin/bash" | "/usr/bin/sh" => {
                Some(shell::parse(line))
            }
            "zsh" | "/bin/zsh" | "/usr/bin/zsh" => {
                Some(unknown("it is for a shell other than sh and bash"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What a tool for searching reads. Those of agents skip `.git`, unless a pattern for names includes it,
/// or an option makes them search what they otherwise ignore.
fn searcher(fields: &Map<String, Value>) -> Reader {
    const OTHERS: [&str; 4] = ["pattern", "query", "regex", "description"];
    let includes_git = |value: &Value| match value {
        Value::String(globs) => globs_of(globs).iter().any(|glob| may_name_git(glob)),
        Value::Array(globs) => globs.iter().any(|it| it.as_str().is_none_or(may_name_git)),
        _ => false,
    };
    let all = fields.iter().any(|(name, value)| {
        let is_other = OTHERS.contains(&&**name) || PATH_FIELDS.contains(&&**name);
        let ignores_nothing = name.to_ascii_lowercase().contains("ignore") || name == "hidden";
        (ignores_nothing && !value.is_null()) || (!is_other && includes_git(value))
    });
    if all { Reader::Everything } else { Reader::IgnoreRules }
}

/// The patterns of a text, without those that exclude files. Agents split it at blanks, and at commas outside of
/// braces.
fn globs_of(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c.is_whitespace() || (c == ',' && depth == 0)
    });
    // One agent takes the text as a whole.
    parts.chain([text]).filter(|glob| !glob.is_empty() && !glob.starts_with('!')).collect()
}

/// The fields with the path of a file or a folder.
const PATH_FIELDS: [&str; 10] = [
    "file_path",
    "filePath",
    "filepath",
    "path",
    "fileName",
    "absolute_path",
    "notebook_path",
    "dir_path",
    "directory",
    "target_file",
];

/// The paths that a request names; absent if some of them may be missing.
fn paths(fields: &Map<String, Value>, access: Access) -> Option<Vec<String>> {
    let given = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    // Codex asks to write anything below this folder for the rest of the session.
    if given("grantRoot") {
        return None;
    }
    // OpenCode's patches name each file in `files`, and all of them as one text in `filepath`.
    let names = PATH_FIELDS.iter().filter(|name| **name != "filepath" || !given("files"));
    let mut paths = Vec::new();
    for name in names {
        match fields.get(*name) {
            Some(Value::String(path)) => paths.push(path.clone()),
            Some(Value::Null) | None => {}
            Some(_) => return None,
        }
    }
    for name in ["paths", "include", "file_paths"] {
        match fields.get(name) {
            // A search with `include` filters the names of files.
            Some(Value::String(_)) if name == "include" && access != Access::Read => {}
            Some(Value::Array(several)) => {
                for path in several {
                    // Some agents read all files that match a pattern.
                    let literal = path.as_str().filter(|path| !path.contains(['*', '?', '[', '{']));
                    paths.push(literal?.to_owned());
                }
            }
            Some(Value::Null) | None => {}
            Some(_) => return None,
        }
    }
    for name in ["changes", "fileChanges", "files"] {
        if let Some(changes) = fields.get(name) {
            collect_changes(changes, &mut paths)?;
        }
    }
    let pattern = fields.get("pattern").and_then(Value::as_str).filter(|_| access == Access::List);
    if pattern.is_some_and(may_lead_out) {
        return None;
    }
    match access {
        // Without a path, the working folder is searched.
        Access::Search(_) | Access::List if paths.is_empty() => Some(vec![".".to_owned()]),
        _ if paths.is_empty() => None,
        _ => Some(paths),
    }
}

/// The number of alternatives in a pattern that are looked at.
const MAX_ALTERNATIVES: usize = 256;

/// Whether the pattern of a search for names may lead out of the folder that is searched, also by one of
/// several alternatives: `{/etc/*,x}`, or `{.,x}./y`.
fn may_lead_out(pattern: &str) -> bool {
    leads_out(pattern, &mut MAX_ALTERNATIVES.clone())
}

fn leads_out(pattern: &str, left: &mut usize) -> bool {
    let is_absolute =
        pattern.starts_with(['/', '~', '\\']) || (cfg!(windows) && pattern.contains(':'));
    if is_absolute || pattern.contains("..") {
        return true;
    }
    let Some((before, rest)) = pattern.split_once('{') else { return false };
    // Programs disagree about a backslash, and about braces without an end.
    let (Some((alternatives, after)), false) = (alternatives(rest), pattern.contains('\\')) else {
        return true;
    };
    *left = left.saturating_sub(alternatives.len());
    *left == 0 || alternatives.iter().any(|it| leads_out(&format!("{before}{it}{after}"), left))
}

/// The alternatives up to the brace that ends them, and what follows it.
fn alternatives(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b',' if depth == 0 => {
                found.push(text.get(start..at)?);
                start = at + 1;
            }
            b'}' if depth == 0 => {
                found.push(text.get(start..at)?);
                return Some((found, text.get(at + 1..)?));
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The paths of a list of changes, or of changes by path.
fn collect_changes(changes: &Value, paths: &mut Vec<String>) -> Option<()> {
    match changes {
        Value::Array(changes) => {
            for change in changes {
                let path = change.get("path").or_else(|| change.get("filePath"))?;
                paths.push(path.as_str()?.to_owned());
                collect_destination(change, paths);
            }
        }
        Value::Object(changes) => {
            for (path, change) in changes {
                paths.push(path.clone());
                collect_destination(change, paths);
            }
        }
        Value::Null => {}
        _ => return None,
    }
    Some(())
}

/// The path that a change moves a file to, at any depth of its description.
fn collect_destination(change: &Value, paths: &mut Vec<String>) {
    let Value::Object(fields) = change else { return };
    for (name, value) in fields {
        match value {
            Value::String(path) if matches!(&**name, "move_path" | "movePath" | "newPath") => {
                paths.push(path.clone());
            }
            value => collect_destination(value, paths),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(tool: &str, kind: ToolKind, input: &str) -> Subject {
        let (id, tool, folder) = ("1".to_owned(), tool.to_owned(), "/w".into());
        let input = Some(input.to_owned());
        let request = PermissionRequest { id, tool, kind, input, folder, ..Default::default() };
        Subject::of(&request)
    }

    fn command(tool: &str, input: &str) -> CommandLine {
        match subject(tool, ToolKind::Execute, input) {
            Subject::Command(line) => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    #[cfg(not(windows))]
    fn the_shell_around_a_script_is_removed() {
        let plain = shell::parse("git status; rm x");
        let wrapped = [
            r#"{"command":"/bin/bash -lc 'git status; rm x'","cwd":"/w"}"#,
            r#"{"command":"bash -c \"git status; rm x\""}"#,
            r#"{"command":["bash","-lc","git status; rm x"]}"#,
        ];
        for input in wrapped {
            assert_eq!(command("command_execution", input).script, plain, "{input}");
            assert!(command("command_execution", input).wrapper.is_none());
            assert!(command("Bash", input).wrapper.is_some());
        }
        let others = [
            r#"{"command":"./bash -c 'git status; rm x'"}"#,
            r#"{"command":"bash -c 'git status; rm x' y"}"#,
            r#"{"command":"bash -ic 'git status; rm x'"}"#,
            r#"{"command":"x=1 bash -c 'git status; rm x'"}"#,
            r#"{"command":"bash -c \"$x\""}"#,
        ];
        for input in others {
            assert_ne!(command("Bash", input).script, plain, "{input}");
        }
    }

    /// An approval may allow more than its command: then no rule for the command allows it.
    #[test]
    fn what_a_request_allows_beyond_its_command_is_unresolved() {
        let unresolved = |more: &str| {
            let input = format!(r#"{{"command":"/bin/bash -lc ls",{more}}}"#);
            command("command_execution", &input).script.unresolved.is_some()
        };
        assert!(unresolved(r#""kind":"writeStdin""#));
        assert!(unresolved(r#""networkApprovalContext":{"host":"a","protocol":"https"}"#));
        assert!(unresolved(r#""additionalPermissions":{"network":{"enabled":true}}"#));
        assert!(unresolved(r#""dangerouslyDisableSandbox":true"#));
        assert!(!unresolved(r#""dangerouslyDisableSandbox":false"#));
        assert!(!unresolved(r#""kind":"command","additionalPermissions":null"#));
        let grant = r#"{"changes":[{"path":"a"}],"grantRoot":"/"}"#;
        let unknown = Subject::Files { access: Access::Write, paths: None };
        assert_eq!(subject("file_change", ToolKind::Edit, grant), unknown);
    }

    #[test]
    fn other_shells_are_unresolved() {
        let unresolved = |tool, input| command(tool, input).script.unresolved.is_some();
        assert!(unresolved("Bash", r#"{"command":"zsh -lc ls"}"#));
        assert!(unresolved("PowerShell", r#"{"command":"ls"}"#));
        assert!(unresolved("Bash", r#"{"command":"ls","shell":"/usr/bin/fish"}"#));
        assert!(unresolved("Bash", "{}"));
        assert!(unresolved("Bash", r#"{"command":7}"#));
        assert!(unresolved("Bash", r#"{"command":["a",1]}"#));
        assert!(!unresolved("Bash", r#"{"command":"ls","shell":"/bin/bash"}"#));
    }

    #[test]
    fn the_paths_of_file_tools_are_found() {
        let inputs = [
            (r#"{"file_path":"a"}"#, Some(vec!["a"])),
            (r#"{"path":"a","content":"b"}"#, Some(vec!["a"])),
            (r#"{"changes":[{"path":"a","kind":{"move_path":"b"}}]}"#, Some(vec!["a", "b"])),
            (r#"{"fileChanges":{"a":{},"b":{}}}"#, Some(vec!["a", "b"])),
            (
                r#"{"filepath":"a, b","files":[{"filePath":"/w/a"},{"filePath":"/w/b","movePath":"/w/c"}]}"#,
                Some(vec!["/w/a", "/w/b", "/w/c"]),
            ),
            (r#"{"filepath":"a","files":[]}"#, None),
            (r#"{"filepath":"a","files":[{"name":"a"}]}"#, None),
            (r#"{"filepath":"a"}"#, Some(vec!["a"])),
            (r#"{"patch":"x"}"#, None),
            (r#"{"path":["a"]}"#, None),
            ("{}", None),
        ];
        for (input, expected) in inputs {
            let expected = expected.map(|it| it.into_iter().map(str::to_owned).collect());
            let files = Subject::Files { access: Access::Write, paths: expected };
            assert_eq!(subject("Edit", ToolKind::Edit, input), files, "{input}");
        }
        let access = Access::Search(Reader::IgnoreRules);
        let search = Subject::Files { access, paths: Some(vec![".".to_owned()]) };
        assert_eq!(subject("Grep", ToolKind::Search, r#"{"pattern":"x"}"#), search);
        let many = Subject::Files { access: Access::Read, paths: None };
        assert_eq!(subject("read", ToolKind::Read, r#"{"paths":["*.rs"]}"#), many);
    }

    /// `{/etc/host*,x}` was free, since it does not start with a slash.
    #[test]
    fn the_pattern_of_a_search_for_names_does_not_lead_out() {
        let access = Access::List;
        let judged = |pattern: &str| {
            let input = serde_json::json!({"pattern": pattern}).to_string();
            subject("Glob", ToolKind::Glob, &input)
        };
        let many = "{a,b}".repeat(9);
        for pattern in [
            "/etc/*",
            "~/x",
            "a/../../x",
            "{/etc/host*,x}",
            "{x,/etc/*}",
            "{{a,~/b},c}",
            "{,x}/etc/*",
            "{.,x}./y",
            ".{.,x}/y",
            "{x",
            "{\\/etc,x}",
            &many,
        ] {
            assert_eq!(judged(pattern), Subject::Files { access, paths: None }, "{pattern}");
        }
        let inside = Subject::Files { access, paths: Some(vec![".".to_owned()]) };
        for pattern in ["**/*.{ts,tsx}", "{src,tests}/**/*.rs", "a/{b,{c,d}/e}.x", "*"] {
            assert_eq!(judged(pattern), inside, "{pattern}");
        }
    }

    /// The tools of agents skip `.git` by a rule that another one may override.
    #[test]
    fn a_search_may_include_the_data_of_a_repository() {
        let reader = |input: serde_json::Value| match subject(
            "Grep",
            ToolKind::Search,
            &input.to_string(),
        ) {
            Subject::Files { access: Access::Search(reader), .. } => reader,
            other => panic!("{other:?}"),
        };
        for input in [
            serde_json::json!({"pattern": "*", "path": ".", "output_mode": "content"}),
            serde_json::json!({"pattern": "x", "glob": "*.rs", "type": "rust", "-n": true}),
            serde_json::json!({"pattern": "x", "glob": "!.git"}),
            serde_json::json!({"pattern": "x", "glob": "*.{ts,tsx} src/*.rs, !target"}),
        ] {
            assert_eq!(reader(input.clone()), Reader::IgnoreRules, "{input}");
        }
        for input in [
            serde_json::json!({"pattern": "x", "glob": "*"}),
            serde_json::json!({"pattern": "x", "glob": "!x .git config"}),
            serde_json::json!({"pattern": "x", "glob": "*.rs,.git,config"}),
            serde_json::json!({"pattern": "x", "include": ["*.rs", ".git"]}),
            serde_json::json!({"pattern": "x", "no_ignore": true}),
        ] {
            assert_eq!(reader(input.clone()), Reader::Everything, "{input}");
        }
    }
}
