//! Qwen Code: ACP; its JSON stream on request.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::repository::{self, Loosening};
use super::session_files::{self, SessionFiles, SessionStorage};
use super::{
    ClientToolNeeds, Delivery, Folder, HostEnvironment, KnownAgent, Plan, arguments, scratch_file,
    session,
};
use crate::client_tool::{Endpoint, LONGEST_WAIT, SERVER_NAME};
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
    sessions: SessionStorage::Files(SessionFiles {
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
    // An administrator's own settings take precedence.
    let has_settings = request.variable(SYSTEM_SETTINGS).is_some();
    let plan = if request.exec { stream(request) } else { acp(request, has_settings) };
    if has_settings {
        let lax = plan.asks.then(|| {
            format!(
                "{SYSTEM_SETTINGS} is set, so Qwen Code asks only where its settings make it ask"
            )
        });
        return Ok(Plan { lax, ..plan });
    }
    let restricted = repository::restricts(LOOSENINGS, request);
    if !restricted && request.exec {
        // No one can be asked.
        return Ok(plan);
    }
    let settings = settings(restricted, request.tool_endpoint().as_ref());
    let (scratch, settings) = scratch_file("settings.json", &settings.to_string())?;
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

/// The tools before which Qwen asks, even if the settings of the project allow them: those that read or
/// change something, and those that make something run later. It makes branches and folders unasked.
const ASK: [&str; 17] = [
    "Bash",
    "Edit",
    "Write",
    "Read",
    "Grep",
    "Glob",
    "ListFiles",
    "WebFetch",
    "WebSearch",
    "enter_worktree",
    "exit_worktree",
    "cron_create",
    "cron_delete",
    "loop_wakeup",
    "monitor",
    "save_memory",
    "workflow",
];

/// Makes Qwen ask, and ignore the settings of a folder that the user has not trusted. It does not ask
/// before it calls tools of the client, which can refuse.
fn settings(restricted: bool, tools: Option<&Endpoint>) -> Value {
    let mut settings = Map::from_iter([("permissions".to_owned(), json!({"ask": ASK}))]);
    if restricted {
        settings.insert("security".to_owned(), json!({"folderTrust": {"enabled": true}}));
    }
    if let Some(tools) = tools {
        let wait = LONGEST_WAIT.as_millis() as u64;
        let server = json!({
            "httpUrl": tools.url,
            "headers": tools.headers(),
            "timeout": wait,
            "trust": true,
        });
        settings.insert("mcp".to_owned(), json!({"toolIdleTimeoutMs": wait}));
        settings.insert("mcpServers".to_owned(), json!({SERVER_NAME: server}));
    }
    settings.into()
}

/// The limit for a call of a server that is not in its settings, less some seconds.
const CALL_LIMIT: Duration = Duration::from_secs(590);

/// Its own default mode is `auto`, in which a model decides instead of the user.
const MODES: ModeNames = ModeNames { ask: "default", plan: "plan", starts_asking: false };

/// If its settings are those of an administrator, it learns of the client's tools by the protocol.
fn acp(request: &Request, has_settings: bool) -> Plan {
    let arguments = arguments(&["--acp"], &[("--model", &request.model)]);
    let (mode_names, restarts_for_model) = (Some(MODES), true);
    let mut session = AcpSession { mode_names, restarts_for_model, ..session(request) };
    session.client_tools.take_if(|_| !has_settings);
    // A prompt is taken before the tools are known, and fails to call them.
    let limit = has_settings.then_some(CALL_LIMIT);
    let needs = ClientToolNeeds { late: true, limit, passes_ids: false };
    Plan::acp(arguments, session).calling_client(needs)
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
