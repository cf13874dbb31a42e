//! Qwen Code: ACP; its JSON stream on request.

use super::repository::{self, Loosening};
use super::session_files::{self, SessionFiles};
use super::{
    Delivery, Folder, HostEnvironment, KnownAgent, Plan, arguments, scratch_file, session,
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
    how_to_sign_in: "set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL, or run `qwen` and choose a way to sign in",
    signed_in,
    plan,
    screen: None,
    loosenings: LOOSENINGS,
    ignored: "the settings of the folder",
    session_files: Some(SessionFiles {
        folder: CONFIG,
        below: "projects",
        is_session: session_files::named,
    }),
};

const LOOSENINGS: &[Loosening] = &[
    Loosening { path: ".mcp.json", harmless: &[] },
    Loosening { path: ".qwen/settings.json", harmless: &["$schema", "$version", "model", "ui"] },
];

const CONFIG: Folder = Folder { variable: "", default: ".qwen" };

/// It uses a key only if the settings choose its kind, or if the server and the model are set, too.
fn signed_in(host: &HostEnvironment) -> Option<String> {
    let chosen = host.setting(CONFIG, "settings.json", "/security/auth/selectedType");
    match chosen.as_ref().and_then(|chosen| chosen.as_str()) {
        Some("openai" | "openai-responses") => host.variable(&["OPENAI_API_KEY"]),
        Some("anthropic") => host.variable(&["ANTHROPIC_API_KEY"]),
        Some("gemini") => host.variable(&["GEMINI_API_KEY"]),
        Some("qwen-oauth") => host.file(CONFIG, "oauth_creds.json"),
        _ => host.variables(&["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"]).or_else(|| {
            host.variables(&["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"])
        }),
    }
}

fn plan(request: &Request) -> Result<Plan, Error> {
    let plan = if request.exec { stream(request) } else { acp(request) };
    // An administrator's own settings take precedence.
    if request.variable(SYSTEM_SETTINGS).is_some() {
        let lax = plan.asks.then(|| {
            format!(
                "{SYSTEM_SETTINGS} is set, so Qwen Code asks only where its settings make it ask"
            )
        });
        return Ok(Plan { lax, ..plan });
    }
    let restricted = repository::restricts(LOOSENINGS, request);
    let settings = match (restricted, request.exec) {
        (true, _) => ASK_AND_DISTRUST,
        (false, false) => ASK,
        // No one can be asked.
        (false, true) => return Ok(plan),
    };
    let (scratch, settings) = scratch_file("settings.json", settings)?;
    let settings = settings.to_string_lossy().into_owned();
    Ok(Plan { scratch: Some(scratch), restricted, ..plan.with(SYSTEM_SETTINGS, &settings) })
}

fn stream(request: &Request) -> Plan {
    let approvals = match request.mode {
        Mode::Auto => "yolo",
        Mode::AcceptEdits => "auto-edit",
        Mode::Plan => "plan",
        Mode::Ask | Mode::Interactive | Mode::Deny => "default",
    };
    let form = ["--output-format", "stream-json", "--include-partial-messages"];
    let fixed = [&form[..], &["--approval-mode", approvals]].concat();
    let options = [("--model", &request.model), ("--resume", &request.resume)];
    Plan::stream("qwen", arguments(&fixed, &options), Delivery::Input)
}

/// The variable that names the settings which take precedence over those of a project.
const SYSTEM_SETTINGS: &str = "QWEN_CODE_SYSTEM_SETTINGS_PATH";

/// Makes Qwen ask, even if the settings of the project allow the tool.
const ASK: &str =
    r#"{"permissions":{"ask":["Bash","Edit","Write","Read","Grep","Glob","ListFiles"]}}"#;

/// The same, and the folder is not trusted, unless the user has trusted it: its settings are ignored.
const ASK_AND_DISTRUST: &str = r#"{"permissions":{"ask":["Bash","Edit","Write","Read","Grep","Glob","ListFiles"]},"security":{"folderTrust":{"enabled":true}}}"#;

/// Its own default mode is `auto`, in which a model decides instead of the user.
const MODES: ModeNames = ModeNames { ask: "default", plan: "plan", starts_asking: false };

fn acp(request: &Request) -> Plan {
    let arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    let (mode_names, restarts_for_model) = (Some(MODES), true);
    let session = AcpSession { mode_names, restarts_for_model, ..session(request) };
    Plan::acp(arguments, session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::testing::replies;

    /// Without our settings, those of the folder could allow everything.
    #[test]
    fn settings_of_an_administrator_are_kept_and_reported() {
        let environment = vec![(SYSTEM_SETTINGS.to_owned(), "/etc/qwen.json".to_owned())];
        let own = plan(&Request { environment, ..Request::default() }).unwrap();
        assert!(own.scratch.is_none() && own.environment.is_empty());
        assert!(own.lax.unwrap().contains(SYSTEM_SETTINGS));
        assert_eq!(plan(&Request::default()).unwrap().lax, None);
    }

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
