//! Copilot CLI: ACP, which takes the prompt in a record; a JSON stream on request.

use super::{Agent, Plan, SignIn, Surroundings, arguments, session, words};
use crate::driver::CopilotDriver;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::{Refused, Request};

pub(super) const AGENT: Agent = Agent {
    name: "copilot",
    title: "GitHub Copilot CLI",
    program: "copilot",
    install: "npm install --global @github/copilot",
    signed_in,
    plan,
};

fn signed_in(here: &Surroundings) -> SignIn {
    here.sign_in(
        &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"],
        &[".copilot/config.json", ".config/gh/hosts.yml"],
        "run `copilot` and use /login, or set GH_TOKEN",
    )
}

/// The system takes no argument that is longer than 128 KiB.
const LONGEST_ARGUMENT: usize = 100 << 10;

fn plan(request: &Request) -> Result<Plan, Refused> {
    if request.mode == Mode::Plan {
        let advice = "; `deny` lets it change nothing";
        return Err(Refused::NoMode { agent: "Copilot CLI", mode: request.mode, advice });
    }
    let unattended = request.exec || request.mode == Mode::Auto;
    let fits = request.prompt.len() < LONGEST_ARGUMENT;
    Ok(if unattended && fits { stream(request) } else { acp(request) })
}

fn stream(request: &Request) -> Plan {
    let fixed = ["--output-format", "json", "--no-color"];
    let mut arguments = arguments(&fixed, &[("--model", &request.model)]);
    // In one word with its flag, the prompt may look like a flag.
    arguments.push(format!("--prompt={}", request.prompt).into());
    match request.mode {
        Mode::Auto => arguments.extend(words(&["--allow-all-tools", "--allow-all-paths"])),
        Mode::AcceptEdits => arguments.extend(words(&["--allow-tool", "write"])),
        // What needs a permission is then refused.
        Mode::Ask | Mode::Deny | Mode::Plan => {}
    }
    if let Some(session) = &request.resume {
        arguments.push(format!("--resume={session}").into());
    }
    // Without a place for them there are no counts, and that is all.
    let Ok(scratch) = tempfile::tempdir() else {
        return Plan::stream("copilot", arguments, Input::Closed);
    };
    let counts = scratch.path().join("usage.json");
    arguments.extend(["--usage-output-file".into(), counts.clone().into_os_string()]);
    let driver = CopilotDriver::new(counts, request.resume.is_some());
    Plan { scratch: Some(scratch), ..Plan::new("copilot", arguments, Input::Closed, driver) }
}

fn acp(request: &Request) -> Plan {
    let arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    Plan::acp(request, arguments, session(request))
}
