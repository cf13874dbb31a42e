//! Copilot CLI: a JSON stream if no permission has to be requested, otherwise ACP; its screen on
//! request.

use std::ffi::OsString;

use super::{Agent, HostEnvironment, Plan, SignIn, arguments, session, words};
use crate::driver::{CopilotDriver, CopilotScreenDriver};
use crate::error::Error;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::Request;

pub(super) const AGENT: Agent = Agent {
    name: "copilot",
    title: "GitHub Copilot CLI",
    program: "copilot",
    install: "npm install --global @github/copilot",
    signed_in,
    plan,
    screen: Some(screen),
};

fn signed_in(host: &HostEnvironment) -> SignIn {
    host.sign_in(
        &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"],
        &[".copilot/config.json", ".config/gh/hosts.yml"],
        "run `copilot` and use /login, or set GH_TOKEN",
    )
}

/// The system limits a single argument to 128 KiB.
const LONGEST_ARGUMENT: usize = 100 << 10;

fn plan(request: &Request) -> Result<Plan, Error> {
    if request.mode == Mode::Plan {
        return Err(no_plan());
    }
    let unattended = request.exec || request.mode == Mode::Auto;
    let fits = request.prompt.len() < LONGEST_ARGUMENT;
    Ok(if unattended && fits { stream(request) } else { acp(request) })
}

fn stream(request: &Request) -> Plan {
    let fixed = ["--output-format", "json", "--no-color"];
    let mut arguments = arguments(&fixed, &[("--model", &request.model)]);
    // Joined to its flag in one argument, the prompt may look like a flag itself.
    arguments.push(format!("--prompt={}", request.prompt).into());
    arguments.extend(allowed_and_resumed(request));
    // Without a folder for them there are no token counts; everything else still works.
    let Ok(scratch) = tempfile::tempdir() else {
        return Plan::stream("copilot", arguments, Input::Closed);
    };
    let counts = scratch.path().join("usage.json");
    arguments.extend(["--usage-output-file".into(), counts.clone().into_os_string()]);
    let driver = CopilotDriver::new(counts, request.resume.is_some());
    Plan { scratch: Some(scratch), ..Plan::new("copilot", arguments, Input::Closed, driver) }
}

/// Its screen, for cases in which no protocol is available.
fn screen(request: &Request) -> Result<Plan, Error> {
    if request.mode == Mode::Plan {
        return Err(no_plan());
    }
    let mut arguments = arguments(&[], &[("--model", &request.model)]);
    arguments.push(format!("--interactive={}", request.prompt).into());
    arguments.extend(allowed_and_resumed(request));
    let driver = CopilotScreenDriver::new(request.prompt.clone());
    // The screen is parsed by its colours, which Copilot omits if it assumes that no user is
    // watching.
    Ok(Plan::screen(arguments, driver).with("FORCE_COLOR", "1"))
}

/// The flags for what it may do without asking, and for the session to resume. In a stream,
/// everything that needs a permission is denied.
fn allowed_and_resumed(request: &Request) -> Vec<OsString> {
    let mut arguments = match request.mode {
        Mode::Auto => words(&["--allow-all-tools", "--allow-all-paths"]),
        Mode::AcceptEdits => words(&["--allow-tool", "write"]),
        Mode::Ask | Mode::Deny | Mode::Plan => Vec::new(),
    };
    arguments.extend(request.resume.iter().map(|id| OsString::from(format!("--resume={id}"))));
    arguments
}

fn no_plan() -> Error {
    let advice = "; use `deny`, which lets it change nothing";
    Error::NoMode { agent: "Copilot CLI", mode: Mode::Plan, advice }
}

fn acp(request: &Request) -> Plan {
    let arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    Plan::acp(request, arguments, session(request))
}
