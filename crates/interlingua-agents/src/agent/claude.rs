//! Claude Code: stream-json in both directions, with permission requests to the host.

use serde_json::json;

use super::repository::{self, Loosening};
use super::session_files::{self, SessionFiles, SessionStorage};
use super::{ClientToolNeeds, Folder, HostEnvironment, KnownAgent, Plan, words};
use crate::client_tool::{LONGEST_WAIT, SERVER_NAME};
use crate::driver::{ClaudeDriver, claude_mode_name};
use crate::error::Error;
use crate::request::Request;

pub(super) const AGENT: KnownAgent = KnownAgent {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    install: "npm install --global @anthropic-ai/claude-code",
    how_to_sign_in: "run `claude auth login`, or set ANTHROPIC_API_KEY",
    signed_in,
    plan,
    screen: None,
    loosenings: LOOSENINGS,
    ignored: "the settings, instructions, commands, agents and skills of the folder",
    sessions: SessionStorage::Files(SessionFiles {
        folder: CONFIG,
        below: "projects",
        is_session: session_files::named,
    }),
};

const LOOSENINGS: &[Loosening] = &[
    Loosening { path: ".claude/settings.json", harmless: HARMLESS },
    Loosening { path: ".claude/settings.local.json", harmless: HARMLESS },
    // Their front matter can name hooks, MCP servers, a permission mode and allowed tools.
    Loosening { path: ".claude/agents", harmless: &[] },
    Loosening { path: ".claude/commands", harmless: &[] },
    Loosening { path: ".claude/skills", harmless: &[] },
    Loosening { path: ".mcp.json", harmless: &[] },
];

/// Permissions that deny or ask are harmless. [`ASK`] does not cover all tools that others could allow.
const HARMLESS: &[&str] = &[
    "$schema",
    "attribution",
    "includeCoAuthoredBy",
    "language",
    "model",
    "outputStyle",
    "permissions.ask",
    "permissions.deny",
];

const CONFIG: Folder = Folder { variable: "CLAUDE_CONFIG_DIR", default: ".claude" };

fn signed_in(host: &HostEnvironment) -> Option<String> {
    host.variable(&["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"])
        .or_else(|| host.file(CONFIG, ".credentials.json"))
}

/// Makes Claude ask, even if a hook in the settings of the project allows the tool. It also asks before
/// it reads, since it knows no secrets; what else is inside the folder is allowed here at once. In every
/// mode, it would make branches and folders, and plan prompts for later, without asking.
const ASK: &str = r#"{"permissions":{"ask":["Bash","Edit","Write","NotebookEdit","Read","Grep","Glob","LS","WebFetch","WebSearch","EnterWorktree","ExitWorktree","CronCreate","CronDelete","ScheduleWakeup"]}}"#;

fn plan(request: &Request) -> Result<Plan, Error> {
    let mut arguments = words(&[
        "--print",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        // Its output then contains the prompts, and so does a recording of it.
        "--replay-user-messages",
        // This flag works although `--help` does not list it: permissions become control requests.
        "--permission-prompt-tool",
        "stdio",
    ]);
    arguments.extend(words(&["--permission-mode", claude_mode_name(request.mode)]));
    arguments.extend(words(&["--settings", ASK]));
    let restricted = repository::restricts(LOOSENINGS, request);
    if restricted {
        // Hooks and helpers that the folder defines would run unasked. To disable all hooks would
        // not do: a repository could switch off the hooks by which the user denies something.
        arguments.extend(words(&["--setting-sources", "user"]));
    }
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    if let Some(session) = &request.resume {
        arguments.extend(words(&["--resume", session]));
    }
    let mut driver = ClaudeDriver::default();
    if request.resume.is_some() {
        driver = driver.resuming();
    }
    if let Some(tools) = &request.client_tools {
        arguments.extend(words(&["--mcp-config", &client_tools()]));
        arguments.extend(words(&["--allowedTools", &format!("mcp__{SERVER_NAME}")]));
        driver = driver.with_client_tools(tools.tools());
    }
    let needs = ClientToolNeeds { passes_ids: true, ..ClientToolNeeds::default() };
    let plan = Plan::live("claude", arguments, driver).calling_client(needs);
    // Without it, a session that waits for a tool which is gone could not be resumed.
    let plan = plan.with("CLAUDE_CODE_DROP_UNAVAILABLE_DEFERRED_TOOL", "1");
    Ok(Plan { restricted, ..plan })
}

/// The server of the client's tools, whose messages travel over the control channel. The tools are listed
/// from the start, instead of being searched for.
fn client_tools() -> String {
    let wait = LONGEST_WAIT.as_millis() as u64;
    let server = json!({"type": "sdk", "name": SERVER_NAME, "alwaysLoad": true, "timeout": wait});
    json!({"mcpServers": {SERVER_NAME: server}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of these alone can run a program, or allow something, without a question.
    #[test]
    fn what_a_repository_loads_without_settings_restricts_it() {
        let restricted = |path: &str, text: Option<&str>| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join(".git")).unwrap();
            let path = folder.path().join(path);
            match text {
                Some(text) => {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                }
                None => std::fs::create_dir_all(path).unwrap(),
            }
            let request = Request { folder: folder.path().to_owned(), ..Request::default() };
            let plan = plan(&request).unwrap();
            assert_eq!(plan.arguments.contains(&"--setting-sources".into()), plan.restricted);
            plan.restricted
        };
        assert!(restricted(".mcp.json", Some(r#"{"mcpServers":{"a":{"command":"b"}}}"#)));
        for folder in [".claude/agents", ".claude/commands", ".claude/skills"] {
            assert!(restricted(folder, None), "{folder}");
        }
        for settings in [
            r#"{"permissions":{"allow":["WebFetch"]}}"#,
            r#"{"permissions":{"deny":[],"defaultMode":"bypassPermissions"}}"#,
            r#"{"permissions":["allow"]}"#,
        ] {
            assert!(restricted(".claude/settings.json", Some(settings)), "{settings}");
        }
        let harmless = r#"{"permissions":{"deny":["Read(x)"],"ask":["Bash"]},"model":"a"}"#;
        assert!(!restricted(".claude/settings.json", Some(harmless)));
    }

    #[test]
    fn it_asks_before_it_uses_the_web() {
        let plan = plan(&Request::default()).unwrap();
        let settings = plan.arguments.iter().find(|it| it.to_string_lossy().starts_with('{'));
        let settings = settings.unwrap().to_string_lossy();
        assert!(settings.contains("WebFetch") && settings.contains("WebSearch"), "{settings}");
    }

    /// Without it, a recording would not contain the prompts.
    #[test]
    fn it_repeats_the_prompts() {
        let plan = plan(&Request::default()).unwrap();
        assert!(plan.arguments.contains(&"--replay-user-messages".into()));
    }
}
