//! Copilot CLI: the protocol of its SDK; its JSON stream or its screen on request.

use std::ffi::OsString;

use super::repository::{self, Loosening};
use super::session_files::{self, SessionFiles, SessionStorage};
use super::{
    ClientToolNeeds, Delivery, Folder, HostEnvironment, InputFraming, KnownAgent, PROMPT, Plan,
    absolute, arguments, words,
};
use crate::driver::{
    CopilotDriver, CopilotHeadlessDriver, CopilotScreenDriver, HeadlessSession, Provider,
};
use crate::error::Error;
use crate::permission::Mode;
use crate::request::Request;

pub(super) const AGENT: KnownAgent = KnownAgent {
    name: "copilot",
    title: "GitHub Copilot CLI",
    program: "copilot",
    install: "npm install --global @github/copilot",
    how_to_sign_in: "run `copilot login`, or set GH_TOKEN",
    signed_in,
    plan,
    screen: Some(screen),
    loosenings: LOOSENINGS,
    ignored: "the MCP servers and the skills of the folder",
    sessions: SessionStorage::Files(SessionFiles {
        folder: HOME,
        below: "session-state",
        is_session: session_files::within,
    }),
};

/// It starts these servers if the user has trusted the folder in Copilot.
const LOOSENINGS: &[Loosening] = &[Loosening { path: ".mcp.json", harmless: &[] }];

const HOME: Folder = Folder { variable: "COPILOT_HOME", default: ".copilot" };
const GITHUB_CLI: Folder = Folder { variable: "XDG_CONFIG_HOME", default: ".config" };

fn signed_in(host: &HostEnvironment) -> Option<String> {
    let tokens = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"];
    // The file exists from the first start on, signed in or not.
    let has_user = || {
        let users = host.setting(HOME, "config.json", "/loggedInUsers")?;
        users.as_array().is_some_and(|users| !users.is_empty()).then_some(())
    };
    host.variable(&tokens)
        .or_else(|| host.variable(&["COPILOT_PROVIDER_BASE_URL"]))
        .or_else(|| has_user().and_then(|()| host.file(HOME, "config.json")))
        .or_else(|| host.file(GITHUB_CLI, "gh/hosts.yml"))
}

fn plan(request: &Request) -> Result<Plan, Error> {
    match (request.exec, request.mode) {
        (true, Mode::Plan) => Err(no_plan()),
        (true, _) => Ok(stream(request)),
        (false, _) => Ok(headless(request)),
    }
}

fn stream(request: &Request) -> Plan {
    let fixed = ["--output-format", "json", "--no-color"];
    let mut arguments = arguments(&fixed, &[("--model", &request.model)]);
    // Joined to its flag in one argument, the prompt may look like a flag itself.
    arguments.push(format!("--prompt={PROMPT}").into());
    arguments.extend(allowed_and_resumed(request));
    // Without a folder for them there are no token counts; everything else still works.
    let Ok(scratch) = super::scratch_folder() else {
        return Plan::stream("copilot", arguments, Delivery::Argument);
    };
    let counts = scratch.path().join("usage.json");
    arguments.extend(["--usage-output-file".into(), counts.clone().into_os_string()]);
    let driver = CopilotDriver::new(counts, request.resume.is_some());
    let plan = Plan::stream("copilot", arguments, Delivery::Argument).driven_by(driver);
    Plan { scratch: Some(scratch), ..plan }
}

/// Its screen, for cases in which no protocol is available.
fn screen(request: &Request) -> Result<Plan, Error> {
    if request.mode == Mode::Plan {
        return Err(no_plan());
    }
    let mut arguments = arguments(&[], &[("--model", &request.model)]);
    arguments.push(format!("--interactive={PROMPT}").into());
    arguments.extend(allowed_and_resumed(request));
    let driver = CopilotScreenDriver::default();
    // The screen is parsed by its colours, which Copilot omits if it assumes that no user is
    // watching.
    Ok(Plan::screen(arguments, driver).with("FORCE_COLOR", "1"))
}

/// The flags for what it may do without asking, and for the session to resume. In a stream,
/// everything that needs a permission is denied.
fn allowed_and_resumed(request: &Request) -> Vec<OsString> {
    let mut arguments = match request.mode {
        Mode::Auto => words(&["--allow-all-tools", "--allow-all-paths"]),
        Mode::AcceptEdits => words(&["--allow-tool", "write"]),
        Mode::Ask | Mode::Interactive | Mode::Deny | Mode::Plan => Vec::new(),
    };
    arguments.extend(request.resume.iter().map(|id| OsString::from(format!("--resume={id}"))));
    arguments
}

fn no_plan() -> Error {
    let advice = "; use `deny`, which lets it change nothing";
    Error::NoMode { agent: "Copilot CLI", mode: Mode::Plan, advice }
}

/// The protocol of its SDK, which no other agent speaks. Its ACP has no questions, and does not pass
/// on the reason of a denial.
fn headless(request: &Request) -> Plan {
    let driver = CopilotHeadlessDriver::new(headless_session(request));
    let plan = Plan::live("copilot-headless", words(&["--headless", "--stdio"]), driver);
    let restricted = repository::restricts(LOOSENINGS, request);
    let plan = plan.calling_client(ClientToolNeeds::default());
    Plan { input_framing: InputFraming::ContentLength, restricted, ..plan }
}

/// The session of `copilot --headless --stdio`. Copilot does not read the variables for a provider
/// in this mode, so they are passed on through the protocol.
fn headless_session(request: &Request) -> HeadlessSession {
    let variable = |name: &str| {
        // As in the environment of the agent, the last of several values counts.
        let own = request.environment.iter().rfind(|(variable, _)| variable == name);
        own.map(|(_, value)| value.clone()).or_else(|| std::env::var(name).ok())
    };
    let provider = Provider::from_environment(variable);
    let configured = || {
        let names = ["COPILOT_MODEL", "COPILOT_PROVIDER_MODEL_ID"];
        names.iter().find_map(|name| variable(name).filter(|model| !model.is_empty()))
    };
    HeadlessSession {
        resume: request.resume.clone(),
        folder: absolute(&request.folder),
        model: request.model.clone().or_else(configured),
        mode: request.mode,
        trusts_folder: request.trusts_folder,
        provider,
        client_tools: request.tool_endpoint(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the protocol of its SDK has a mode for planning.
    #[test]
    fn it_is_driven_in_every_mode() {
        for mode in Mode::ALL {
            let request = Request { mode, ..Request::default() };
            let driven = plan(&request).unwrap();
            assert_eq!(driven.dialect, "copilot-headless");
            assert_eq!(driven.input_framing, InputFraming::ContentLength);
            assert_eq!(driven.arguments, ["--headless", "--stdio"]);
            let streamed = plan(&Request { exec: true, ..request });
            assert_eq!(streamed.is_ok(), mode != Mode::Plan);
        }
    }

    /// The key is passed on, and is neither an argument nor shown.
    #[test]
    fn the_provider_of_the_user_is_passed_on() {
        let environment = [
            ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1/v1"),
            ("COPILOT_PROVIDER_API_KEY", "sk-1"),
            ("COPILOT_MODEL", "m"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = Request { environment: environment.to_vec(), ..Request::default() };
        let session = headless_session(&request);
        assert!(session.provider.is_some());
        assert_eq!(session.model.as_deref(), Some("m"));
        assert!(!format!("{session:?}").contains("sk-1"));
        let request = Request { model: Some("other".to_owned()), ..request };
        assert_eq!(headless_session(&request).model.as_deref(), Some("other"));
    }
}
