//! Codex: its app-server, which reports most; `exec --json` on request.

use super::session_files::{self, SessionFiles, SessionStorage};
use super::{
    ClientToolNeeds, Delivery, Folder, HostEnvironment, KnownAgent, Plan, absolute, arguments,
    words,
};
use crate::driver::{CodexDriver, Thread};
use crate::error::Error;
use crate::permission::Mode;
use crate::request::Request;

pub(super) const AGENT: KnownAgent = KnownAgent {
    name: "codex",
    title: "Codex",
    program: "codex",
    install: "npm install --global @openai/codex",
    how_to_sign_in: "run `codex login`, or `printenv OPENAI_API_KEY | codex login --with-api-key`",
    signed_in,
    plan,
    screen: None,
    loosenings: &[],
    ignored: "",
    sessions: SessionStorage::Files(SessionFiles {
        folder: HOME,
        below: "sessions",
        is_session: session_files::ends_with,
    }),
};

const HOME: Folder = Folder { variable: "CODEX_HOME", default: ".codex" };

/// Its app-server uses no key of the environment, and `exec` only `CODEX_API_KEY`.
fn signed_in(host: &HostEnvironment) -> Option<String> {
    host.file(HOME, "auth.json")
}

fn plan(request: &Request) -> Result<Plan, Error> {
    if request.exec { exec(request) } else { Ok(app_server(request)) }
}

/// Makes its tool for questions available outside of its plan mode.
const QUESTIONS: &str = "features.default_mode_request_user_input=true";

/// The warning about features under development, which would appear in every session.
const NO_WARNING: &str = "suppress_unstable_features_warning=true";

fn app_server(request: &Request) -> Plan {
    let thread = Thread {
        resume: request.resume.clone(),
        folder: absolute(&request.folder),
        model: request.model.clone(),
        mode: request.mode,
        client_tools: request.tool_endpoint(),
    };
    let arguments = words(&["-c", QUESTIONS, "-c", NO_WARNING, "app-server"]);
    let plan = Plan::live("codex-app-server", arguments, CodexDriver::new(thread));
    plan.calling_client(ClientToolNeeds { passes_ids: true, ..ClientToolNeeds::default() })
}

/// An unattended run, which requests no permissions.
fn exec(request: &Request) -> Result<Plan, Error> {
    let sandbox = match request.mode {
        Mode::AcceptEdits => "workspace-write",
        Mode::Auto => "danger-full-access",
        Mode::Deny => "read-only",
        Mode::Ask | Mode::Interactive | Mode::Plan => {
            let advice = " with `exec`, which requests no permissions";
            return Err(Error::NoMode { agent: "Codex", mode: request.mode, advice });
        }
    };
    let fixed = ["exec", "--json", "--skip-git-repo-check", "--sandbox", sandbox];
    let mut arguments = arguments(&fixed, &[("--model", &request.model)]);
    if let Some(session) = &request.resume {
        arguments.extend(words(&["resume", session]));
    }
    // The prompt is sent on standard input, because it may be long, and may look like a flag.
    arguments.push("-".into());
    Ok(Plan::stream("codex", arguments, Delivery::Input))
}
