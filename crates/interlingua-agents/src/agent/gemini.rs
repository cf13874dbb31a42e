//! Gemini CLI: ACP; its JSON stream on request.

use std::path::PathBuf;
use std::time::Duration;

use super::repository::Loosening;
use super::session_files::{self, SessionFiles, SessionStorage};
use super::{
    ClientToolNeeds, Delivery, Folder, HostEnvironment, KnownAgent, Plan, arguments, scratch_file,
    session,
};
use crate::client_tool::SERVER_NAME;
use crate::driver::{AcpDriver, AcpSession, GeminiDriver, ModeNames};
use crate::error::Error;
use crate::permission::Mode;
use crate::request::Request;

pub(super) const AGENT: KnownAgent = KnownAgent {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    install: "npm install --global @google/gemini-cli",
    how_to_sign_in: "set GEMINI_API_KEY, or run `gemini` and choose a way to sign in",
    signed_in,
    plan,
    screen: None,
    loosenings: LOOSENINGS,
    ignored: "",
    sessions: SessionStorage::Files(SessionFiles {
        folder: CONFIG,
        below: "tmp",
        is_session: session_files::ends_with_start,
    }),
};

/// It reads them only if the user has trusted the folder in Gemini, which then cannot be undone.
const LOOSENINGS: &[Loosening] =
    &[Loosening { path: ".gemini/settings.json", harmless: &["$schema", "model", "ui"] }];

/// Disables the relaunch as a child process, because the launcher does not forward signals to it.
const NO_RELAUNCH: &str = "GEMINI_CLI_NO_RELAUNCH";

const CONFIG: Folder = Folder { variable: "", default: ".gemini" };

/// It uses `GOOGLE_API_KEY` only for Vertex AI.
fn signed_in(host: &HostEnvironment) -> Option<String> {
    host.variable(&["GEMINI_API_KEY"])
        .or_else(|| host.variables(&["GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"]))
        .or_else(|| host.file(CONFIG, "oauth_creds.json"))
}

fn plan(request: &Request) -> Result<Plan, Error> {
    let plan = if request.exec { stream(request) } else { acp(request)? };
    Ok(plan.with(NO_RELAUNCH, "true"))
}

fn stream(request: &Request) -> Plan {
    let approvals = match request.mode {
        Mode::Auto => "yolo",
        Mode::AcceptEdits => "auto_edit",
        Mode::Plan => "plan",
        // In this mode, tools that need a permission are not available.
        Mode::Ask | Mode::Interactive | Mode::Deny => "default",
    };
    let fixed = ["--output-format", "stream-json", "--approval-mode", approvals];
    let options = [("--model", &request.model), ("--resume", &request.resume)];
    let plan = Plan::stream("gemini", arguments(&fixed, &options), Delivery::Input);
    match logs(request) {
        Some(logs) => plan.driven_by(GeminiDriver::stream(logs)),
        None => plan,
    }
}

/// The folder that contains the logs of its sessions.
fn logs(request: &Request) -> Option<PathBuf> {
    let home = ["GEMINI_CLI_HOME", "HOME", "USERPROFILE"].into_iter();
    let home = home.filter_map(|name| request.variable(name)).find(|home| !home.is_empty());
    home.map(|home| PathBuf::from(home).join(".gemini/tmp"))
}

/// A policy that makes Gemini ask before it uses these tools, whatever the settings of the project
/// allow.
///
/// Gemini 0.61.0 does not pass on what a sub-agent asks: it waits for an answer forever. A rule can name one
/// sub-agent, but not all of them. So the model is not offered the tool that starts them.
const POLICY: &str = r#"[[rule]]
toolName = [
    "run_shell_command", "replace", "write_file",
    "read_file", "read_many_files", "grep_search", "search_file_content", "glob", "list_directory",
    "google_web_search", "web_fetch",
]
decision = "ask_user"
priority = 900

[[rule]]
toolName = "invoke_agent"
decision = "deny"
priority = 900
"#;

/// Allows the tools of the client, which can refuse.
fn client_tool_rule() -> String {
    format!(
        "[[rule]]\nmcpName = \"{SERVER_NAME}\"\ntoolName = \"*\"\ndecision = \"allow\"\npriority = 500\n"
    )
}

/// Gemini gives a call up after 10 minutes, which cannot be configured over ACP. The call ends before,
/// so that the model learns that it may wait on.
const CALL_LIMIT: Duration = Duration::from_secs(590);

const MODES: ModeNames = ModeNames { ask: "default", plan: "plan", starts_asking: true };

fn acp(request: &Request) -> Result<Plan, Error> {
    let mut arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    let mut policy = POLICY.to_owned();
    if request.client_tools.is_some() {
        policy.push_str(&client_tool_rule());
    }
    let (scratch, policy) = scratch_file("policy.toml", &policy)?;
    arguments.extend(["--policy".into(), policy.into_os_string()]);
    let resume = request.resume.as_deref().map(padded);
    let mode_names = Some(MODES);
    let session = AcpSession { resume, mode_names, late_history: true, ..session(request) };
    let acp = AcpDriver::new(session);
    let plan = match logs(request) {
        Some(logs) => {
            let driver = GeminiDriver::acp(logs, acp, request.resume.as_deref());
            Plan::live("acp", arguments, driver)
        }
        None => Plan::live("acp", arguments, acp),
    };
    let needs = ClientToolNeeds { limit: Some(CALL_LIMIT), ..ClientToolNeeds::default() };
    Ok(Plan { scratch: Some(scratch), ..plan.calling_client(needs) })
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
        let mut plan = plan(&Request { resume, ..Request::default() }).unwrap();
        plan.driver.prompt("do it", &mut Vec::new());
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
