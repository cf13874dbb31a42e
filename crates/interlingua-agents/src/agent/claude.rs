//! Claude Code: stream-json in both directions. Permissions are asked of us.

use super::{Agent, Plan, SignIn, Surroundings, words};
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

fn signed_in(here: &Surroundings) -> SignIn {
    here.sign_in(
        &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        &[".claude/.credentials.json"],
        "run `claude` and use /login, or set ANTHROPIC_API_KEY",
    )
}

fn plan(request: &Request) -> Result<Plan, Error> {
    let mut arguments = words(&[
        "--print",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        // Works, though --help does not name it: permissions become requests to us.
        "--permission-prompt-tool",
        "stdio",
    ]);
    let mode = match request.mode {
        Mode::AcceptEdits => "acceptEdits",
        Mode::Plan => "plan",
        // What it would do unasked is asked of us, and decided by the policy.
        Mode::Ask | Mode::Auto | Mode::Deny => "default",
    };
    arguments.extend(words(&["--permission-mode", mode]));
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    if let Some(session) = &request.resume {
        arguments.extend(words(&["--resume", session]));
    }
    let driver = ClaudeDriver::new(request.prompt.clone());
    Ok(Plan::new("claude", arguments, Input::Open, driver))
}
