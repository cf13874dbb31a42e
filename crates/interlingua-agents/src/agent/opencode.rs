//! OpenCode: its server; its JSON stream on request.

use serde_json::{Map, Value, json};

use super::repository::{self, Loosening};
use super::session_files::SessionStorage;
use super::{ClientToolNeeds, Delivery, Folder, HostEnvironment, KnownAgent, Plan, arguments};
use crate::client_tool::{Endpoint, LONGEST_WAIT, SERVER_NAME};
use crate::driver::{OpencodeDriver, ServerSession, permission_setting};
use crate::error::Error;
use crate::permission::Mode;
use crate::process::{Input, Server};
use crate::request::Request;

pub(super) const AGENT: KnownAgent = KnownAgent {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    install: "npm install --global opencode-ai",
    how_to_sign_in: "run `opencode auth login`",
    signed_in,
    plan,
    screen: None,
    loosenings: LOOSENINGS,
    ignored: "the configuration and the instructions of the folder",
    sessions: SessionStorage::Database(DATA, "opencode"),
};

const LOOSENINGS: &[Loosening] = &[
    Loosening { path: "opencode.json", harmless: HARMLESS },
    Loosening { path: "opencode.jsonc", harmless: HARMLESS },
    Loosening { path: ".opencode/opencode.json", harmless: HARMLESS },
    Loosening { path: ".opencode/opencode.jsonc", harmless: HARMLESS },
    Loosening { path: ".opencode/plugin", harmless: &[] },
    Loosening { path: ".opencode/plugins", harmless: &[] },
    Loosening { path: ".opencode/tool", harmless: &[] },
    Loosening { path: ".opencode/tools", harmless: &[] },
];

const HARMLESS: &[&str] = &["$schema", "model", "small_model", "theme"];

/// Makes it ignore `opencode.json`, `.opencode` and `AGENTS.md` in the folder and above it.
const NO_PROJECT_CONFIG: &str = "OPENCODE_DISABLE_PROJECT_CONFIG";

const DATA: Folder = Folder { variable: "XDG_DATA_HOME", default: ".local/share" };

/// It uses the keys of many providers.
fn signed_in(host: &HostEnvironment) -> Option<String> {
    let keys = [
        "OPENCODE_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "DASHSCOPE_API_KEY",
    ];
    host.variable(&keys).or_else(|| host.file(DATA, "opencode/auth.json"))
}

const SERVER: Server = Server {
    announcement: "opencode server listening on ",
    events: "/event",
    heartbeat: "server.heartbeat",
    user: "opencode",
    password_variable: "OPENCODE_SERVER_PASSWORD",
};

fn plan(request: &Request) -> Result<Plan, Error> {
    let mut plan = if request.exec { stream(request) } else { serve(request) };
    if repository::restricts(LOOSENINGS, request) {
        plan.overrides.push((NO_PROJECT_CONFIG, "1".to_owned()));
        plan.restricted = true;
    }
    Ok(plan)
}

fn stream(request: &Request) -> Plan {
    let agent = (request.mode == Mode::Plan).then(|| "plan".to_owned());
    let options =
        [("--agent", &agent), ("--model", &request.model), ("--session", &request.resume)];
    let arguments = arguments(&["run", "--format", "json", "--thinking"], &options);
    Plan::stream("opencode", arguments, Delivery::Input)
}

fn serve(request: &Request) -> Plan {
    let driver = OpencodeDriver::new(ServerSession {
        resume: request.resume.clone(),
        model: request.model.clone(),
        plan: request.mode == Mode::Plan,
    });
    let arguments = arguments(&["serve", "--hostname", "127.0.0.1", "--port", "0"], &[]);
    let mut plan = Plan::live("opencode", arguments, driver)
        // By default it runs commands without asking.
        .with("OPENCODE_PERMISSION", &permission_setting())
        .with("OPENCODE_ENABLE_QUESTION_TOOL", "1");
    plan.overrides.push(("OPENCODE_SERVER_USERNAME", SERVER.user.to_owned()));
    if let Some(settings) = settings(request) {
        plan.overrides.push((SETTINGS, settings));
        plan.client_tools = Some(ClientToolNeeds::default());
    }
    Plan { server: Some(SERVER), input: Input::Closed, ..plan }
}

/// The variable with settings that take precedence over those in files.
const SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

/// Our settings, added to those that the user has in the environment. If the latter are not plain
/// JSON, they are left as they are.
fn settings(request: &Request) -> Option<String> {
    let user = request.variable(SETTINGS).filter(|text| !text.is_empty());
    let mut settings: Map<String, Value> = match user {
        Some(text) => serde_json::from_str(text.to_str()?).ok()?,
        None => Map::new(),
    };
    // A refusal, also one without a reason, must not end the turn.
    let experimental = settings.entry("experimental").or_insert_with(|| Map::new().into());
    experimental.as_object_mut()?.insert("continue_loop_on_deny".to_owned(), true.into());
    if let Some(tools) = request.tool_endpoint() {
        let servers = settings.entry("mcp").or_insert_with(|| Map::new().into());
        servers.as_object_mut()?.insert(SERVER_NAME.to_owned(), mcp_server(&tools));
    }
    serde_json::to_string(&settings).ok()
}

/// The server of the client's tools.
fn mcp_server(tools: &Endpoint) -> Value {
    let wait = LONGEST_WAIT.as_millis() as u64;
    let more = json!({"type": "remote", "enabled": true, "oauth": false, "timeout": wait});
    tools.http(&more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_with(user: &str) -> Option<Value> {
        let environment = vec![(SETTINGS.to_owned(), user.to_owned())];
        let settings = settings(&Request { environment, ..Request::default() })?;
        serde_json::from_str(&settings).ok()
    }

    #[test]
    fn the_settings_of_the_user_are_kept() {
        let ours = json!({"continue_loop_on_deny": true});
        assert_eq!(settings_with(""), Some(json!({"experimental": ours})));
        let user =
            r#"{"model":"a/b","experimental":{"mcp_timeout":5,"continue_loop_on_deny":false}}"#;
        let both = json!({"mcp_timeout": 5, "continue_loop_on_deny": true});
        assert_eq!(settings_with(user), Some(json!({"model": "a/b", "experimental": both})));
        assert_eq!(settings_with("{} // a comment"), None);
    }

    #[test]
    fn merged_settings_replace_those_of_the_request() {
        let environment = vec![(SETTINGS.to_owned(), r#"{"model":"a/b"}"#.to_owned())];
        let request = Request { environment, ..Request::default() };
        let launch = serve(&request).launch("opencode".into(), &request).unwrap();
        let all = launch.command.environment.iter().rev();
        let last = all.into_iter().find(|(name, _)| name == SETTINGS).unwrap();
        assert!(last.1.contains("a/b") && last.1.contains("continue_loop_on_deny"), "{last:?}");
    }

    #[test]
    fn only_unattended_runs_do_without_the_server() {
        for mode in Mode::ALL {
            for exec in [false, true] {
                let plan = plan(&Request { mode, exec, ..Request::default() }).unwrap();
                assert_eq!(plan.server.is_some(), !exec, "{mode:?}");
            }
        }
    }
}
