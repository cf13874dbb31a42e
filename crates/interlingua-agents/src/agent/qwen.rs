//! Qwen Code: a JSON stream where nobody has to be asked, ACP where somebody has.

use super::{Agent, Plan, SignIn, Surroundings, absolute, words};
use crate::driver::{AcpDriver, PlainDriver, Session};
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
    let mut arguments = words(&[
        "--output-format",
        "stream-json",
        "--include-partial-messages",
        "--approval-mode",
        approvals,
    ]);
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    if let Some(session) = &request.resume {
        arguments.extend(words(&["--resume", session]));
    }
    Plan {
        arguments,
        environment: Vec::new(),
        input: Input::Text(request.prompt.clone()),
        dialect: "qwen",
        driver: Box::new(PlainDriver),
    }
}

fn acp(request: &Request) -> Plan {
    let mut arguments = words(&["--acp"]);
    if let Some(model) = &request.model {
        arguments.extend(words(&["--model", model]));
    }
    let mode = (request.mode == Mode::AcceptEdits).then_some("auto-edit");
    let (resume, folder) = (request.resume.clone(), absolute(&request.folder));
    let session = Session { resume, folder, model: None, mode };
    Plan {
        arguments,
        environment: Vec::new(),
        input: Input::Open,
        dialect: "acp",
        driver: Box::new(AcpDriver::new(request.prompt.clone(), session)),
    }
}
