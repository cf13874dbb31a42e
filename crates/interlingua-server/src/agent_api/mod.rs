//! The HTTP contract of the Giselle API, versions 1 and 3, for clients that were written for it.
//!
//! A run is a part of a session's log in the dialect `giselle`; the relay shows the calls that wait
//! in the same log. So both survive a disconnect and a restart, and neither keeps a state of its own.
//!
//! | module | what it knows |
//! |---|---|
//! | `request`, `results` | what clients send |
//! | `session` | the session of a request |
//! | `run`, `run_stream` | what a request means, and the records of its run |
//! | `calls` | the calls of the form tools in a log |
//! | `notes` | which requests have resumed a turn |
//! | `prompt` | where a prompt is announced in a log |
//! | `attend` | what no client can decide, which is denied |
//! | `relay`, `dispatch` | what browsers get and answer |
//! | `sandbox`, `files` | the working folders, and the files in them |
//! | `problem` | errors in the form of the contract |

mod attend;
mod calls;
mod dispatch;
mod files;
mod notes;
mod problem;
mod prompt;
mod relay;
mod request;
mod results;
mod run;
mod run_stream;
mod sandbox;
mod session;

use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::{Value, json};

pub(crate) use attend::Attendance;
pub(crate) use dispatch::Relay;
use problem::Problem;

use crate::app::App;
use crate::error::ApiError;

/// Where all of it is.
const BASE: &str = "/agent-api";

/// All routes. Clients append a slash to some of them.
pub(crate) fn router() -> Router<Arc<App>> {
    let mut routes = Router::new();
    for slash in ["", "/"] {
        routes = routes
            .route(&format!("{BASE}/run{slash}"), post(run::run).fallback(no_route))
            .route(&format!("{BASE}/auth{slash}"), post(auth).fallback(no_route))
            .route(&format!("{BASE}/build{slash}"), post(build).fallback(no_route))
            .route(&format!("{BASE}/files{slash}"), get(files::serve).fallback(no_route))
            .route(&format!("{BASE}/relay{slash}"), relay_methods());
    }
    routes.route(&format!("{BASE}/{{*rest}}"), any(no_route))
}

fn relay_methods() -> axum::routing::MethodRouter<Arc<App>> {
    get(relay::events).post(relay::message).options(relay::options).fallback(no_route)
}

/// Whether a path belongs to this contract.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a path is that of the relay, which takes no other token than its own.
pub(crate) fn is_relay(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| matches!(rest, "/relay" | "/relay/"))
}

/// An error that was found before the route, in the form of this contract.
pub(crate) fn rejected(error: ApiError) -> Response {
    Problem::from(error).into_response()
}

/// What a server needs to serve this contract.
struct Enabled<'a> {
    folder: &'a Path,
    agent: Option<&'a String>,
    mode: &'a Option<String>,
    relay_url: &'a Option<String>,
}

impl<'a> Enabled<'a> {
    fn of(app: &'a App) -> Result<Self, Problem> {
        let folder = app.settings.allowed.sandboxes.as_deref().ok_or_else(|| {
            Problem::not_found("This server does not serve the agent API: it has no folder for it.")
        })?;
        let settings = &app.settings.agent_api;
        let agent = settings.agent.as_ref().or(app.settings.allowed.agents.first());
        Ok(Self { folder, agent, mode: &settings.mode, relay_url: &settings.relay_url })
    }
}

async fn auth() -> Json<Value> {
    Json(json!({"ok": true}))
}

async fn build() -> Problem {
    let message = "This server builds no snapshots: agents run on the machine of the server. Leave the build out, \
                   and send any `snapshot_id`.";
    Problem::new(StatusCode::NOT_IMPLEMENTED, "NOT_IMPLEMENTED", message)
}

async fn no_route() -> Problem {
    Problem::not_found("Not found.")
}
