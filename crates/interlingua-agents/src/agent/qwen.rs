//! Qwen Code: ACP; its JSON stream on request.

use super::repository::Loosening;
use super::{
    Delivery, HostEnvironment, KnownAgent, Plan, SignIn, arguments, scratch_file, session,
};
use crate::driver::{AcpSession, ModeNames};
use crate::error::Error;
use crate::permission::Mode;
use crate::request::Request;

pub(super) const AGENT: KnownAgent = KnownAgent {
    name: "qwen",
    title: "Qwen Code",
    program: "qwen",
    install: "npm install --global @qwen-code/qwen-code",
    signed_in,
    plan,
    screen: None,
    loosenings: &[
        Loosening { path: ".mcp.json", settings: &[] },
        Loosening {
            path: ".qwen/settings.json",
            settings: &["hooks", "mcpServers", "allow", "approvalMode"],
        },
    ],
};

fn signed_in(host: &HostEnvironment) -> SignIn {
    host.sign_in(
        &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
        &[".qwen/oauth_creds.json"],
        "run `qwen` and sign in, or set OPENAI_API_KEY and OPENAI_BASE_URL",
    )
}

fn plan(request: &Request) -> Result<Plan, Error> {
    if request.exec { Ok(stream(request)) } else { acp(request) }
}

fn stream(request: &Request) -> Plan {
    let approvals = match request.mode {
        Mode::Auto => "yolo",
        Mode::AcceptEdits => "auto-edit",
        Mode::Plan => "plan",
        Mode::Ask | Mode::Deny => "default",
    };
    let form = ["--output-format", "stream-json", "--include-partial-messages"];
    let fixed = [&form[..], &["--approval-mode", approvals]].concat();
    let options = [("--model", &request.model), ("--resume", &request.resume)];
    Plan::stream("qwen", arguments(&fixed, &options), Delivery::Input)
}

/// The variable that names the settings which take precedence over those of a project.
const SYSTEM_SETTINGS: &str = "QWEN_CODE_SYSTEM_SETTINGS_PATH";

/// Makes Qwen ask, even if the settings of the project allow the tool. In Qwen Code 0.24.4 a project
/// can still allow edits.
const ASK: &str = r#"{"permissions":{"ask":["Bash","Edit","Write"]}}"#;

/// Its own default mode is `auto`, in which a model decides instead of the user.
const MODES: ModeNames = ModeNames { ask: "default", plan: "plan", starts_asking: false };

fn acp(request: &Request) -> Result<Plan, Error> {
    let arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    let (mode_names, restarts_for_model) = (Some(MODES), true);
    let session = AcpSession { mode_names, restarts_for_model, ..session(request) };
    let plan = Plan::acp(arguments, session);
    // An administrator's own settings take precedence.
    if request.variable(SYSTEM_SETTINGS).is_some() {
        return Ok(plan);
    }
    let (scratch, settings) = scratch_file("settings.json", ASK)?;
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
        let modes = [(Mode::Ask, "default"), (Mode::Auto, "default"), (Mode::Plan, "plan")];
        for (mode, word) in modes {
            let mut plan = plan(&Request { mode, ..Request::default() }).unwrap();
            plan.driver.prompt("do it", &mut Vec::new());
            replies(plan.driver.as_mut(), r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
            let opened = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"auto"}}}"#;
            let sent = replies(plan.driver.as_mut(), opened);
            assert_eq!(sent.len(), 1, "{mode}: the prompt waits until the mode is set");
            assert_eq!(sent[0]["method"], "session/set_mode", "{mode}");
            assert_eq!(sent[0]["params"]["modeId"], word, "{mode}");
        }
    }
}
