//! Gemini CLI: a JSON stream if no permission has to be requested, otherwise ACP.

use std::path::PathBuf;

use super::{Agent, HostEnvironment, Plan, SignIn, arguments, scratch_file, session};
use crate::driver::{AcpDriver, GeminiDriver, Session};
use crate::error::Error;
use crate::permission::Mode;
use crate::process::Input;
use crate::request::Request;

pub(super) const AGENT: Agent = Agent {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    install: "npm install --global @google/gemini-cli",
    signed_in,
    plan,
    screen: None,
};

/// Disables the relaunch as a child process, because the launcher does not forward signals to it.
const NO_RELAUNCH: &str = "GEMINI_CLI_NO_RELAUNCH";

fn signed_in(host: &HostEnvironment) -> SignIn {
    host.sign_in(
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        &[".gemini/oauth_creds.json"],
        "run `gemini` and choose a way to sign in, or set GEMINI_API_KEY",
    )
}

fn plan(request: &Request) -> Result<Plan, Error> {
    Ok(match request.mode {
        Mode::Ask | Mode::AcceptEdits | Mode::Deny if !request.exec => acp(request)?,
        Mode::Auto => stream(request, "yolo"),
        Mode::AcceptEdits => stream(request, "auto_edit"),
        Mode::Plan => stream(request, "plan"),
        // In this mode, tools that need a permission are not available.
        Mode::Ask | Mode::Deny => stream(request, "default"),
    })
}

fn stream(request: &Request, approvals: &str) -> Plan {
    let fixed = ["--output-format", "stream-json", "--approval-mode", approvals];
    let options = [("--model", &request.model), ("--resume", &request.resume)];
    let input = Input::Text(request.prompt.clone());
    let arguments = arguments(&fixed, &options);
    let plan = match logs(request) {
        Some(logs) => Plan::new("gemini", arguments, input, GeminiDriver::stream(logs)),
        None => Plan::stream("gemini", arguments, input),
    };
    plan.with(NO_RELAUNCH, "true")
}

/// The folder that contains the logs of its sessions.
fn logs(request: &Request) -> Option<PathBuf> {
    let home = ["GEMINI_CLI_HOME", "HOME", "USERPROFILE"].into_iter();
    let home = home.filter_map(|name| request.variable(name)).find(|home| !home.is_empty());
    home.map(|home| PathBuf::from(home).join(".gemini/tmp"))
}

/// A policy that makes Gemini ask before it uses these tools, whatever the settings of the project
/// allow.
fn policy(tools: &str) -> String {
    format!("[[rule]]\ntoolName = [{tools}]\ndecision = \"ask_user\"\npriority = 900\n")
}

fn acp(request: &Request) -> Result<Plan, Error> {
    let (mode, tools) = match request.mode {
        Mode::AcceptEdits => (Some("autoEdit"), r#""run_shell_command""#),
        _ => (None, r#""run_shell_command", "replace", "write_file""#),
    };
    let mut arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    let (scratch, policy) = scratch_file("policy.toml", &policy(tools))?;
    arguments.extend(["--policy".into(), policy.into_os_string()]);
    let resume = request.resume.as_deref().map(padded);
    let session = Session { mode, resume, late_history: true, ..session(request) };
    let plan = match logs(request) {
        Some(logs) => {
            let acp = AcpDriver::new(request.prompt.clone(), session);
            let driver = GeminiDriver::acp(logs, acp, request.resume.as_deref());
            Plan::new("acp", arguments, Input::Open, driver)
        }
        None => Plan::acp(request, arguments, session),
    };
    Ok(Plan { scratch: Some(scratch), ..plan.with(NO_RELAUNCH, "true") })
}

/// A session id that keeps Gemini from overwriting the session's file.
///
/// Before it loads a session, Gemini 0.61.0 creates a new file for the same id. Files are named
/// after the minute and the start of the id, so within the minute in which a session was created,
/// the new file replaces its own, and the history is lost. Gemini looks a session up by the trimmed
/// id, but names the file after the untrimmed one.
fn padded(session: &str) -> String {
    format!(" {session}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::testing::{replies, sent};

    #[test]
    fn a_session_is_loaded_without_overwriting_its_file() {
        let resume = Some("old".to_owned());
        let mut plan = plan(&Request { resume, ..Request::new("do it") }).unwrap();
        let loads = replies(plan.driver.as_mut(), r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
        assert_eq!(loads[0]["method"], "session/load");
        assert_eq!(loads[0]["params"]["sessionId"], " old");
        // Gemini knows the session by the requested id.
        replies(plan.driver.as_mut(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let mut steps = Vec::new();
        plan.driver.woken(&mut steps);
        assert_eq!(sent(&steps)[0]["params"]["sessionId"], " old");
    }
}
