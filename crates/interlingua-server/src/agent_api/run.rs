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
    Acknowledgement, CommandState, Error, IdempotencyKey, SessionId, SessionRecord,
};

use super::attend::attend;
use super::calls::Calls;
use super::notes::Note;
use super::problem::Problem;
use super::request::RunRequest;
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
    let place = access.readers().enter()?;
    let key = idempotency_key(&headers)?;
    let record = session::of_request(&app, &enabled, &access, &request, key.as_ref()).await?;
    let sandbox = sandbox::named(&record)
        .ok_or_else(|| Problem::not_found("There is no such session of this interface."))?;
    // A session that was begun before the folder of all sandboxes was moved works elsewhere.
    let folder = sandbox::of(enabled.folder, &record).map(|(_, folder)| folder);
    let prelude = prelude(&app, &enabled, &headers, &record, sandbox)?;
    // A client that disconnects meanwhile does not end it: what it has asked for is followed to its end.
    let (of_task, session) = (Arc::clone(&app), record.clone());
    let acting = tokio::spawn(async move {
        let part = act(&of_task, &session, request, key).await?;
        attend(&of_task, &session.id, part.turn());
        Ok::<_, Problem>(part)
    });
    let part = acting.await.map_err(|problem| {
        let message = format!("The run has failed: {problem}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
    })??;
    Ok(run_stream::response(&app, (record, folder), prelude, part, place))
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
    let token = key.issue_for_relay(record, expires_at);
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
/// a prompt. A message while something waits supersedes it. What was answered already does not wait. A
/// request that is sent again with its key means the same as before.
async fn act(
    app: &App,
    record: &SessionRecord,
    request: RunRequest,
    key: Option<IdempotencyKey>,
) -> Result<Part, Problem> {
    let id = &record.id;
    if let Some(key) = &key
        && app.store().acknowledged(id, key).await?.is_some()
    {
        // A prompt that is sent again with its key is found wherever it is.
        return prompt(app, id, request.message, key.clone(), 0).await;
    }
    // Before the log: an answer that reaches the agent in between is in the log then.
    let answered = answered(app, id).await?;
    let calls = Calls::read(app.store(), id).await?;
    let is_again = match &key {
        Some(key) => Note::Resumed(key).is_there(app, id).await?,
        None => false,
    };
    let part = match is_again {
        true => again(&request, &calls, &answered),
        false => match resumed(app, id, &request, &calls, &answered).await? {
            None => unseen(app, id, &request, &calls).await?,
            part => part,
        },
    };
    if let Some(part) = part {
        Note::Shown(part.begin).make(app, id).await;
        if let Some(key) = &key {
            Note::Resumed(key).make(app, id).await;
        }
        return Ok(part);
    }
    app.settings.allowed.check_session(record).await?;
    let from = if key.is_some() { 0 } else { calls.next };
    let key = match key {
        Some(key) => key,
        None => IdempotencyKey::new(format!("agent-api-{}", SessionId::random()?))?,
    };
    prompt(app, id, request.message, key, from).await
}

/// Sends a prompt, whose announcement is searched from an entry on.
async fn prompt(
    app: &App,
    id: &SessionId,
    text: String,
    key: IdempotencyKey,
    from: u64,
) -> Result<Part, Problem> {
    let while_pending = WhilePending::Supersede;
    let command = Command::Prompt { text, while_pending, joins: false };
    accepted(app.sessions.command(id, key.clone(), command).await?)?;
    Ok(Part::of_prompt(from, key))
}

/// The part of a turn that a request resumes, by answering what waits, or joins.
async fn resumed(
    app: &App,
    id: &SessionId,
    request: &RunRequest,
    calls: &Calls,
    answered: &[String],
) -> Result<Option<Part>, Problem> {
    let answers: Vec<_> = calls
        .waiting()
        .filter_map(|call| Some((call.id.clone(), request.result(&call.id)?.given(call.tool))))
        .collect();
    if !answers.is_empty() {
        for (call, given) in &answers {
            accepted(answer(app, id, given.clone().command(call)).await?)?;
        }
        let paused = answers.iter().filter_map(|(call, _)| calls.paused_at(call)).max();
        let begin = paused.unwrap_or(calls.next);
        return Ok(Some(part(begin, calls.next, request, calls, answered)));
    }
    let waits = calls.waiting().find(|call| !answered.contains(&call.id));
    let last = request.results.last().map(|last| &*last.tool_call_id);
    if let (Some(waits), Some(last)) = (waits, last)
        && calls.paused_at(last).is_none()
        // Clients repeat all results of a chat, also those of a session that has expired. Only the message shows
        // that a resume is meant.
        && calls.is_last_prompt(&request.message)
    {
        return Err(Problem::conflict(format!("Missing tool result for {}", waits.id)));
    }
    let may_join = waits.is_none() && (last.is_some() || request.is_of_version_1());
    // Its calls were answered at the relay, or by a request whose response was lost.
    let begin = calls.pause_of_running(&request.message, last).filter(|_| may_join);
    Ok(begin.map(|begin| Part::from(begin, calls.next)))
}

/// The part that a request with the same key has got.
fn again(request: &RunRequest, calls: &Calls, answered: &[String]) -> Option<Part> {
    let named = request.results.iter().filter_map(|result| calls.paused_at(&result.tool_call_id));
    let begin = named.max().or_else(|| calls.last_pause(&request.message))?;
    Some(part(begin, calls.answered_at(begin), request, calls, answered))
}

/// The part of a turn that has ended, or that waits for another call, before its client, which has answered at the
/// relay, came back for it.
async fn unseen(
    app: &App,
    id: &SessionId,
    request: &RunRequest,
    calls: &Calls,
) -> Result<Option<Part>, Problem> {
    let pause = calls.last_answered_pause(&request.message);
    let Some(begin) = pause.filter(|_| request.is_of_version_1()) else { return Ok(None) };
    let is_shown = Note::Shown(begin).is_there(app, id).await?;
    Ok((!is_shown).then(|| Part::from(begin, calls.answered_at(begin))))
}

/// The part behind a pause. It ends at once if calls still wait, which the client answers next.
fn part(
    begin: u64,
    ends_from: u64,
    request: &RunRequest,
    calls: &Calls,
    answered: &[String],
) -> Part {
    let rest = calls.waiting().filter(|call| !answered.contains(&call.id));
    let rest: Vec<_> = rest.filter(|call| request.result(&call.id).is_none()).cloned().collect();
    match rest.is_empty() {
        true => Part::from(begin, ends_from),
        false => Part::still_waiting(begin, calls.next, &rest),
    }
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

/// Answers a call. The same answer has the same key, so that sending it again does nothing more. It may be refused.
pub(super) async fn answer(
    app: &App,
    id: &SessionId,
    command: Command,
) -> Result<Acknowledgement, Error> {
    let body = serde_json::to_string(&command).unwrap_or_default();
    let key = IdempotencyKey::new(format!("agent-api-answer-{}", sandbox::digest(&[&body])))?;
    let acknowledgement = app.sessions.command(id, key, command).await?;
    let is_given = acknowledgement.state == CommandState::Delivered;
    // The end of the call is about to be stored. Until then, the next request would find that the call waits.
    if let Some(ends_at) = acknowledgement.sequence.filter(|_| is_given) {
        let mut tail = app.store().watch(id);
        let stored = tail.wait_for(|tail| tail.next > ends_at || tail.closed);
        let _ = tokio::time::timeout(STORED, stored).await;
    }
    Ok(acknowledgement)
}

fn accepted(acknowledgement: Acknowledgement) -> Result<(), Problem> {
    match acknowledgement.state {
        CommandState::Refused { reason } => Err(Problem::conflict(reason)),
        _ => Ok(()),
    }
}
