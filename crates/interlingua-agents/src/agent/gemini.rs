//! Gemini CLI: a JSON stream where nobody has to be asked, ACP where somebody has.

use super::{Agent, Plan, SignIn, Surroundings, absolute, words};
use crate::driver::{AcpDriver, PlainDriver, Session};
use crate::permission::Mode;
use crate::process::Input;
use crate::request::{Refused, Request};

pub(super) const AGENT: Agent = Agent {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    install: "npm install --global @google/gemini-cli",
    signed_in,
    plan,
};

fn signed_in(here: &Surroundings) -> SignIn {
    here.sign_in(
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        &[".gemini/oauth_creds.json"],
        "run `gemini` and choose a way to sign in, or set GEMINI_API_KEY",
    )
}

fn plan(request: &Request) -> Result<Plan, Refused> {
    Ok(match request.mode {
        Mode::Ask | Mode::AcceptEdits | Mode::Deny if !request.exec => acp(request),
        Mode::Auto => stream(request, "yolo"),
        Mode::AcceptEdits => stream(request, "auto_edit"),
        Mode::Plan => stream(request, "plan"),
        // Here the tools that would need a permission do not exist.
        Mode::Ask | Mode::Deny => stream(request, "default"),
    })
}

fn stream(request: &Request, approvals: &str) -> Plan {
    let mut arguments = words(&["--output-format", "stream-json", "--approval-mode", approvals]);
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    if let Some(session) = &request.resume {
        arguments.extend(words(&["--resume", session]));
    }
    Plan {
        arguments,
        // Its launcher starts it a second time, and keeps signals from it.
        environment: vec![("GEMINI_CLI_NO_RELAUNCH", "true".to_owned())],
        input: Input::Text(request.prompt.clone()),
        dialect: "gemini",
        driver: Box::new(PlainDriver),
    }
}

fn acp(request: &Request) -> Plan {
    let mut arguments = words(&["--acp"]);
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    let mode = (request.mode == Mode::AcceptEdits).then_some("autoEdit");
    let (resume, folder) = (request.resume.clone(), absolute(&request.folder));
    let session = Session { resume, folder, model: None, mode };
    Plan {
        arguments,
        environment: vec![("GEMINI_CLI_NO_RELAUNCH", "true".to_owned())],
        input: Input::Open,
        dialect: "acp",
        driver: Box::new(AcpDriver::new(request.prompt.clone(), session)),
    }
}
