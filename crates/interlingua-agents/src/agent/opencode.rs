//! OpenCode: a JSON stream where nobody has to be asked, ACP where somebody has.

use super::{Agent, Plan, SignIn, Surroundings, absolute, words};
use crate::driver::{AcpDriver, PlainDriver, Session};
use crate::permission::Mode;
use crate::process::Input;
use crate::request::{Refused, Request};

pub(super) const AGENT: Agent = Agent {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    install: "npm install --global opencode-ai",
    signed_in,
    plan,
};

fn signed_in(here: &Surroundings) -> SignIn {
    here.sign_in(
        &["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
        &[".local/share/opencode/auth.json"],
        "run `opencode auth login`",
    )
}

/// By default it runs commands without asking anybody: this makes it ask.
const ASK: &str = r#"{"edit":"ask","bash":"ask","webfetch":"ask","external_directory":"ask"}"#;

fn plan(request: &Request) -> Result<Plan, Refused> {
    Ok(match request.mode {
        Mode::Auto => stream(request, None),
        Mode::Plan => stream(request, Some("plan")),
        Mode::Ask | Mode::AcceptEdits | Mode::Deny => acp(request),
    })
}

fn stream(request: &Request, agent: Option<&str>) -> Plan {
    let mut arguments = words(&["run", "--format", "json", "--thinking"]);
    if let Some(agent) = agent {
        arguments.extend(words(&["--agent", agent]));
    }
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    if let Some(session) = &request.resume {
        arguments.extend(words(&["--session", session]));
    }
    Plan {
        arguments,
        environment: Vec::new(),
        input: Input::Text(request.prompt.clone()),
        dialect: "opencode",
        driver: Box::new(PlainDriver),
    }
}

fn acp(request: &Request) -> Plan {
    let (resume, folder) = (request.resume.clone(), absolute(&request.folder));
    let session = Session { resume, folder, model: request.model.clone(), mode: None };
    Plan {
        arguments: words(&["acp"]),
        environment: vec![("OPENCODE_PERMISSION", ASK.to_owned())],
        input: Input::Open,
        dialect: "acp",
        driver: Box::new(AcpDriver::new(request.prompt.clone(), session)),
    }
}
