//! `POST /agent-api/run`: decides what the request means for its session, and streams the run.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use interlingua_sessions::host::{Command, WhilePending};
use interlingua_sessions::{
    Acknowledgement, CommandState, IdempotencyKey, SessionId, SessionRecord,
};

use super::attend::attend;
use super::calls::{Call, Calls};
use super::problem::Problem;
use super::request::{RunRequest, Subject};
use super::run_stream::{self, Part, Prelude};
use super::{Enabled, sandbox, session};
use crate::app::App;
use crate::routes::body;
use crate::security::Access;

/// How long an answer that was given waits for its entry, at most: the store may fail.
const STORED: Duration = Duration::from_secs(5);

/// How long a token for the relay is valid: as long as a call waits for its answer.
const RELAY_TTL_MS: u64 = 24 * 60 * 60 * 1000;

pub(super) async fn run(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    access.require_many_sessions()?;
    let enabled = Enabled::of(&app)?;
    let body = body::json(&headers, body, &app.settings.limits.of_answers()).await?;
    let request = RunRequest::parse(body)?;
    let record = session::of_request(&app, &enabled, &access, &request).await?;
    let sandbox = sandbox::named(&record)
        .ok_or_else(|| Problem::not_found("There is no such session of this interface."))?;
    // A session that was begun before the folder of all sandboxes was moved works elsewhere.
    let folder = sandbox::of(enabled.folder, &record).map(|(_, folder)| folder);
    let key = idempotency_key(&headers)?;
    let prelude = prelude(&app, &enabled, &headers, &record, sandbox)?;
    let part = act(&app, &record, request, key).await?;
    attend(&app, &record.id, part.turn());
    Ok(run_stream::response(&app, record, folder, prelude, part))
}

/// What the first lines of a run state.
fn prelude(
    app: &App,
    enabled: &Enabled<'_>,
    headers: &HeaderMap,
    record: &SessionRecord,
    sandbox: String,
) -> Result<Prelude, Problem> {
    let Some(key) = &app.settings.token_key else {
        let message = "This server issues no relay tokens: it has no secret to sign them with.";
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message));
    };
    let expires_at = app.settings.now_ms().saturating_add(RELAY_TTL_MS);
    let token = key.issue_for_relay(&record.id, expires_at);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let url = enabled.relay_url.clone().unwrap_or_else(|| format!("http://{host}/agent-api/relay"));
    Ok(Prelude { url, session: record.id.to_string(), token, expires_at, sandbox })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    Ok(Some(IdempotencyKey::new(key.to_str().unwrap_or_default())?))
}

/// Does what a request means, and returns the part of the log that is its run.
///
/// It is a resume if something waits, and the results answer it. Without anything that waits, a result
/// belongs to a turn that goes on or has ended: a turn that goes on is shown, and otherwise the message is
/// a prompt. A message while something waits supersedes it. What was answered already does not wait.
async fn act(
    app: &App,
    record: &SessionRecord,
    request: RunRequest,
    key: Option<IdempotencyKey>,
) -> Result<Part, Problem> {
    // Before the log: an answer that reaches the agent in between is in the log then.
    let answered = answered(app, &record.id).await?;
    let calls = Calls::read(app.store(), &record.id).await?;
    let is_open = |call: &&Call| !answered.contains(&call.id);
    let matching = |id: &str| request.results.iter().rev().find(|result| result.tool_call_id == id);
    let answers: Vec<_> = calls
        .waiting()
        .filter_map(|call| Some((call.id.clone(), matching(&call.id)?.given(call.tool))))
        .collect();
    if !answers.is_empty() {
        for (id, given) in &answers {
            answer(app, &record.id, given.clone().command(id)).await?;
        }
        let paused = answers.iter().filter_map(|(id, _)| calls.paused_at(id)).max();
        let begin = paused.unwrap_or(calls.next);
        let rest = calls.waiting().filter(is_open).filter(|call| matching(&call.id).is_none());
        let rest: Vec<_> = rest.cloned().collect();
        return Ok(match rest.is_empty() {
            true => Part::from(begin, calls.next),
            // The client answers these next.
            false => Part::still_waiting(begin, calls.next, &rest),
        });
    }
    let waits = calls.waiting().find(is_open);
    if let (Some(waits), Some(last)) = (waits, request.results.last())
        && calls.paused_at(&last.tool_call_id).is_none()
        // Clients repeat all results of a chat, also those of a session that has expired. Only the message shows
        // that a resume is meant.
        && calls.is_last_prompt(&request.message)
    {
        return Err(Problem::conflict(format!("Missing tool result for {}", waits.id)));
    }
    let named = request.results.last().map(|last| &*last.tool_call_id);
    let may_join = named.is_some() || matches!(request.subject, Subject::Session(_));
    // Its calls were answered at the relay, or by a request whose response was lost.
    if waits.is_none()
        && may_join
        && let Some(begin) = calls.pause_of_running(&request.message, named)
    {
        return Ok(Part::from(begin, calls.next));
    }
    // Sent again with its key, a prompt is found wherever it is.
    let from = if key.is_some() { 0 } else { calls.next };
    let key = match key {
        Some(key) => key,
        None => IdempotencyKey::new(format!("agent-api-{}", SessionId::random()?))?,
    };
    if app.store().acknowledged(&record.id, &key).await?.is_none() {
        app.settings.allowed.check_session(record).await?;
    }
    let command = Command::Prompt {
        text: request.message,
        while_pending: WhilePending::Supersede,
        joins: false,
    };
    accepted(app.sessions.command(&record.id, key.clone(), command).await?)?;
    Ok(Part::of_prompt(from, key))
}

/// The calls whose answer was taken, and has not reached their agent: it was lost, and gets the answer when it has
/// been started again. Until then, the log states that they wait.
async fn answered(app: &App, id: &SessionId) -> Result<Vec<String>, Problem> {
    let open = app.store().open_commands(id).await?.into_iter();
    let commands = open.filter_map(|stored| serde_json::from_value(stored.body).ok());
    let answered = commands.filter_map(|command| match command {
        Command::Answer { request, .. } => Some(request),
        _ => None,
    });
    Ok(answered.collect())
}

/// Answers a call. The same answer has the same key, so that sending it again does nothing more.
pub(super) async fn answer(app: &App, id: &SessionId, command: Command) -> Result<(), Problem> {
    let body = serde_json::to_string(&command).unwrap_or_default();
    let key = IdempotencyKey::new(format!("agent-api-answer-{}", sandbox::digest(&[&body])))?;
    let acknowledgement = app.sessions.command(id, key, command).await?;
    let ends_at = acknowledgement.sequence;
    accepted(acknowledgement)?;
    // The end of the call is about to be stored. Until then, the next request would find that the call waits.
    if let Some(ends_at) = ends_at {
        let mut tail = app.store().watch(id);
        let stored = tail.wait_for(|tail| tail.next > ends_at || tail.closed);
        let _ = tokio::time::timeout(STORED, stored).await;
    }
    Ok(())
}

fn accepted(acknowledgement: Acknowledgement) -> Result<(), Problem> {
    match acknowledgement.state {
        CommandState::Refused { reason } => Err(Problem::conflict(reason)),
        _ => Ok(()),
    }
}
