//! Claude Code: stream-json in both directions, with permission requests to the host.

use super::{Agent, HostEnvironment, Plan, SignIn, words};
use crate::driver::ClaudeDriver;
use crate::error::Error;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::Request;

pub(super) const AGENT: Agent = Agent {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    install: "npm install --global @anthropic-ai/claude-code",
    signed_in,
    plan,
    screen: None,
};

fn signed_in(host: &HostEnvironment) -> SignIn {
    host.sign_in(
        &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        &[".claude/.credentials.json"],
        "run `claude` and use /login, or set ANTHROPIC_API_KEY",
    )
}

/// Makes Claude ask, even if a hook in the settings of the project allows the tool.
const ASK: &str = r#"{"permissions":{"ask":["Bash","Edit","Write","NotebookEdit"]}}"#;

fn plan(request: &Request) -> Result<Plan, Error> {
    let mut arguments = words(&[
        "--print",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        // This flag works although `--help` does not list it: permissions become control requests.
        "--permission-prompt-tool",
        "stdio",
    ]);
    let mode = match request.mode {
        Mode::Plan => "plan",
        // The agent asks before every action, and the policy decides. Claude's own `acceptEdits`
        // also runs commands such as `rm` inside the folder.
        Mode::Ask | Mode::AcceptEdits | Mode::Auto | Mode::Deny => "default",
    };
    arguments.extend(words(&["--permission-mode", mode]));
    if request.mode != Mode::Auto {
        arguments.extend(words(&["--settings", ASK]));
    }
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    if let Some(session) = &request.resume {
        arguments.extend(words(&["--resume", session]));
    }
    let driver = ClaudeDriver::new(request.prompt.clone());
    Ok(Plan::new("claude", arguments, Input::Open, driver))
}
