//! Qwen Code: a JSON stream where nobody has to be asked, ACP where somebody has.

use super::{Agent, Plan, SignIn, Surroundings, arguments, session};
use crate::driver::Session;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::{Refused, Request};

pub(super) const AGENT: Agent = Agent {
    name: "qwen",
    title: "Qwen Code",
    program: "qwen",
    install: "npm install --global @qwen-code/qwen-code",
    signed_in,
    plan,
    screen: None,
};

fn signed_in(here: &Surroundings) -> SignIn {
    here.sign_in(
        &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
        &[".qwen/oauth_creds.json"],
        "run `qwen` and sign in, or set OPENAI_API_KEY and OPENAI_BASE_URL",
    )
}

fn plan(request: &Request) -> Result<Plan, Refused> {
    Ok(match request.mode {
        Mode::Ask | Mode::AcceptEdits | Mode::Deny if !request.exec => acp(request),
        Mode::Auto => stream(request, "yolo"),
        Mode::AcceptEdits => stream(request, "auto-edit"),
        Mode::Plan => stream(request, "plan"),
        Mode::Ask | Mode::Deny => stream(request, "default"),
    })
}

fn stream(request: &Request, approvals: &str) -> Plan {
    let form = ["--output-format", "stream-json", "--include-partial-messages"];
    let fixed = [&form[..], &["--approval-mode", approvals]].concat();
    let said = [("--model", &request.model), ("--resume", &request.resume)];
    Plan::stream("qwen", arguments(&fixed, &said), Input::Text(request.prompt.clone()))
}

fn acp(request: &Request) -> Plan {
    let mode = (request.mode == Mode::AcceptEdits).then_some("auto-edit");
    let arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    Plan::acp(request, arguments, Session { mode, ..session(request) })
}
