//! Qwen Code: a JSON stream if no permission has to be requested, otherwise ACP.

use super::{Agent, HostEnvironment, Plan, SignIn, arguments, scratch_file, session};
use crate::driver::Session;
use crate::error::Error;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::Request;

pub(super) const AGENT: Agent = Agent {
    name: "qwen",
    title: "Qwen Code",
    program: "qwen",
    install: "npm install --global @qwen-code/qwen-code",
    signed_in,
    plan,
    screen: None,
};

fn signed_in(host: &HostEnvironment) -> SignIn {
    host.sign_in(
        &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
        &[".qwen/oauth_creds.json"],
        "run `qwen` and sign in, or set OPENAI_API_KEY and OPENAI_BASE_URL",
    )
}

fn plan(request: &Request) -> Result<Plan, Error> {
    Ok(match request.mode {
        Mode::Ask | Mode::AcceptEdits | Mode::Deny if !request.exec => acp(request)?,
        Mode::Auto => stream(request, "yolo"),
        Mode::AcceptEdits => stream(request, "auto-edit"),
        Mode::Plan => stream(request, "plan"),
        Mode::Ask | Mode::Deny => stream(request, "default"),
    })
}

fn stream(request: &Request, approvals: &str) -> Plan {
    let form = ["--output-format", "stream-json", "--include-partial-messages"];
    let fixed = [&form[..], &["--approval-mode", approvals]].concat();
    let options = [("--model", &request.model), ("--resume", &request.resume)];
    Plan::stream("qwen", arguments(&fixed, &options), Input::Text(request.prompt.clone()))
}

/// The variable that names the settings which take precedence over those of a project.
const SYSTEM_SETTINGS: &str = "QWEN_CODE_SYSTEM_SETTINGS_PATH";

/// Makes Qwen ask, even if the settings of the project allow the tool. In Qwen Code 0.24.4 a project
/// can still allow edits.
const ASK: &str = r#"{"permissions":{"ask":["Bash","Edit","Write"]}}"#;
const ASK_ABOUT_COMMANDS: &str = r#"{"permissions":{"ask":["Bash"]}}"#;

fn acp(request: &Request) -> Result<Plan, Error> {
    // Its default mode is `auto`, in which a model decides instead of the user.
    let (mode, asks) = match request.mode {
        Mode::AcceptEdits => (Some("auto-edit"), ASK_ABOUT_COMMANDS),
        _ => (Some("default"), ASK),
    };
    let arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    let plan = Plan::acp(request, arguments, Session { mode, ..session(request) });
    // An administrator's own settings take precedence.
    if request.variable(SYSTEM_SETTINGS).is_some() {
        return Ok(plan);
    }
    let (scratch, settings) = scratch_file("settings.json", asks)?;
    let settings = settings.to_string_lossy().into_owned();
    Ok(Plan { scratch: Some(scratch), ..plan.with(SYSTEM_SETTINGS, &settings) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::testing::replies;

    /// Qwen Code 0.24.4 opened its sessions in `auto`, and requested no permissions.
    #[test]
    fn a_session_is_set_to_a_mode_that_requests_permissions() {
        let modes =
            [(Mode::Ask, "default"), (Mode::Deny, "default"), (Mode::AcceptEdits, "auto-edit")];
        for (mode, word) in modes {
            let mut plan = plan(&Request { mode, ..Request::new("do it") }).unwrap();
            replies(plan.driver.as_mut(), r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
            let opened = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"auto"}}}"#;
            let sent = replies(plan.driver.as_mut(), opened);
            assert_eq!(sent.len(), 1, "{mode}: the prompt waits until the mode is set");
            assert_eq!(sent[0]["method"], "session/set_mode", "{mode}");
            assert_eq!(sent[0]["params"]["modeId"], word, "{mode}");
        }
    }
}
