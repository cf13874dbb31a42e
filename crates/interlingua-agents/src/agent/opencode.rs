//! OpenCode: a JSON stream if no permission has to be requested, otherwise ACP.

use super::{Agent, HostEnvironment, Plan, SignIn, arguments, session};
use crate::driver::Session;
use crate::error::Error;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::Request;

pub(super) const AGENT: Agent = Agent {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    install: "npm install --global opencode-ai",
    signed_in,
    plan,
    screen: None,
};

fn signed_in(host: &HostEnvironment) -> SignIn {
    host.sign_in(
        &["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
        &[".local/share/opencode/auth.json"],
        "run `opencode auth login`",
    )
}

/// By default it runs commands without asking; this setting makes it ask.
const ASK: &str = r#"{"edit":"ask","bash":"ask","webfetch":"ask","external_directory":"ask"}"#;

fn plan(request: &Request) -> Result<Plan, Error> {
    Ok(match request.mode {
        Mode::Auto => stream(request, None),
        Mode::Plan => stream(request, Some("plan")),
        Mode::Ask | Mode::AcceptEdits | Mode::Deny => acp(request),
    })
}

fn stream(request: &Request, agent: Option<&str>) -> Plan {
    let agent = agent.map(str::to_owned);
    let options =
        [("--agent", &agent), ("--model", &request.model), ("--session", &request.resume)];
    let arguments = arguments(&["run", "--format", "json", "--thinking"], &options);
    Plan::stream("opencode", arguments, Input::Text(request.prompt.clone()))
}

fn acp(request: &Request) -> Plan {
    let session = Session { model: request.model.clone(), ..session(request) };
    Plan::acp(request, arguments(&["acp"], &[]), session).with("OPENCODE_PERMISSION", ASK)
}
