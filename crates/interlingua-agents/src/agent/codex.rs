//! Codex: its app-server, which reports most; `exec --json` on request.

use super::{Agent, HostEnvironment, Plan, SignIn, absolute, arguments, words};
use crate::driver::{CodexDriver, Thread};
use crate::error::Error;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::Request;

pub(super) const AGENT: Agent = Agent {
    name: "codex",
    title: "Codex",
    program: "codex",
    install: "npm install --global @openai/codex",
    signed_in,
    plan,
    screen: None,
};

fn signed_in(host: &HostEnvironment) -> SignIn {
    host.sign_in(
        &["CODEX_API_KEY", "OPENAI_API_KEY"],
        &[".codex/auth.json"],
        "run `codex login`, or set CODEX_API_KEY",
    )
}

fn plan(request: &Request) -> Result<Plan, Error> {
    let sandbox = match request.mode {
        Mode::Ask | Mode::AcceptEdits => "workspace-write",
        Mode::Auto => "danger-full-access",
        Mode::Deny => "read-only",
        Mode::Plan => {
            let advice = "; use `deny`, which lets it read but change nothing";
            return Err(Error::NoMode { agent: "Codex", mode: request.mode, advice });
        }
    };
    if request.exec { exec(request, sandbox) } else { Ok(app_server(request, sandbox)) }
}

fn app_server(request: &Request, sandbox: &'static str) -> Plan {
    let thread = Thread {
        resume: request.resume.clone(),
        folder: absolute(&request.folder),
        model: request.model.clone(),
        approvals: match request.mode {
            Mode::Auto => "never",
            // Codex asks before every command and change, and the policy decides; with
            // `on-request` it would act unasked inside its sandbox.
            Mode::Ask | Mode::AcceptEdits => "untrusted",
            Mode::Deny | Mode::Plan => "on-request",
        },
        sandbox,
    };
    let driver = CodexDriver::new(request.prompt.clone(), thread);
    Plan::new("codex-app-server", words(&["app-server"]), Input::Open, driver)
}

/// An unattended run, which requests no permissions.
fn exec(request: &Request, sandbox: &'static str) -> Result<Plan, Error> {
    if request.mode == Mode::Ask {
        let advice = " with `exec`, which requests no permissions";
        return Err(Error::NoMode { agent: "Codex", mode: request.mode, advice });
    }
    let fixed = ["exec", "--json", "--skip-git-repo-check", "--sandbox", sandbox];
    let mut arguments = arguments(&fixed, &[("--model", &request.model)]);
    if let Some(session) = &request.resume {
        arguments.extend(words(&["resume", session]));
    }
    // The prompt is sent on standard input, because it may be long, and may look like a flag.
    arguments.push("-".into());
    Ok(Plan::stream("codex", arguments, Input::Text(request.prompt.clone())))
}
