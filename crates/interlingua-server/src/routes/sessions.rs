//! Creating, listing, showing and deleting sessions.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use interlingua_sessions::host::NewSession;
use interlingua_sessions::{
    ClientTool, ClientTools, Filter, IdempotencyKey, Place, SessionId, SessionRecord,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::body;
use super::commands::check_prompt;
use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::security::{Access, resolve_folder};
use crate::stream::query_pairs;

/// The most sessions that a list contains.
const LONGEST_LIST: usize = 1000;

/// A new session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateSession {
    /// The agent.
    agent: String,
    /// The first prompt.
    prompt: Option<String>,
    /// The folder in which the agent works.
    cwd: Option<String>,
    /// The model.
    model: Option<String>,
    /// The permission mode.
    permission_mode: Option<String>,
    /// Anything, which is returned with the session.
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// Tools that the client runs, which the agent can call: definitions, or the names `getFormSnapshot`
    /// and `executeFormActions` of those that are built in. Without any, a session has those of the one
    /// that it continues.
    #[serde(default)]
    #[schema(value_type = Vec<ClientTool>)]
    tools: ClientTools,
    /// A session that this one continues.
    continue_from: Option<String>,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    id: String,
    agent: String,
    /// The beginning of the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    /// The agent's own ids for the session, the newest last.
    native_ids: Vec<String>,
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// The tools that the client runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ClientTool>,
    /// `starting`, `working`, `waiting`, `idle` or `ended`.
    state: String,
    /// What a waiting session waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    waiting: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// The session that this one continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    continues: Option<String>,
    /// The session that continues this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    continued_by: Option<String>,
    /// How long it is kept after its last use, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    /// The seed of the ids that writers generate: with it, the events are written in any dialect as the
    /// server writes them.
    id_seed: u64,
    /// When it was created, in milliseconds since 1970.
    created_at: u64,
    /// When it changed last.
    updated_at: u64,
    /// When it was used last.
    used_at: u64,
    /// Where its log is read.
    events: String,
}

/// A list of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    sessions: Vec<Session>,
    /// Names the next part of the list, if there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<SessionRecord> for Session {
    fn from(record: SessionRecord) -> Self {
        // The JSON form of a state is an object with its name and what it waits for.
        let state = serde_json::to_value(&record.state).unwrap_or_default();
        let name = state.get("state").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            events: format!("/v1/sessions/{}/events", record.id),
            id: record.id.into(),
            agent: record.agent,
            title: record.title,
            id_seed: record.id_seed,
            model: record.model,
            cwd: record.folder,
            permission_mode: record.mode,
            native_ids: record.native_ids,
            metadata: record.metadata,
            tools: record.tools,
            state: name,
            waiting: state.get("waiting").cloned(),
            owner: record.owner,
            continues: record.continues.map(String::from),
            continued_by: record.continued_by.map(String::from),
            ttl: record.ttl_ms.map(|ttl| ttl / 1000),
            created_at: record.created_at,
            updated_at: record.updated_at,
            used_at: record.used_at,
        }
    }
}

/// The idempotency key of a request.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    Ok(Some(IdempotencyKey::new(key.to_str().unwrap_or_default())?))
}

/// Creates a session, and sends it a prompt if there is one.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    tag = "sessions",
    params(("Idempotency-Key" = Option<String>, Header, max_length = 255, description = "With the same key, the same request creates nothing more.")),
    request_body = CreateSession,
    responses(
        (status = 201, description = "The session.", body = Session, headers(("Location" = String, description = "Its address."))),
        (status = 400, description = "Malformed JSON, a malformed key, id or folder.", body = ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 403, description = "The agent, the folder, the mode, the host or the origin is not allowed.", body = ErrorBody),
        (status = 404, description = "There is no session to continue.", body = ErrorBody),
        (status = 409, description = "The session cannot be continued or created.", body = ErrorBody),
        (status = 413, description = "The body is too large.", body = ErrorBody),
        (status = 415, description = "The body is not JSON.", body = ErrorBody),
        (status = 422, description = "A field is missing or has the wrong type, the prompt is blank, or the key was used for another request.", body = ErrorBody),
        (status = 429, description = "Too many requests.", body = ErrorBody),
    ),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    access.require_many_sessions()?;
    let key = idempotency_key(&headers)?;
    let (request, sent): (CreateSession, Value) =
        body::json_as_sent(&headers, body, &app.settings.limits).await?;
    request.prompt.as_deref().map_or(Ok(()), check_prompt)?;
    let known = match &key {
        Some(key) => app.sessions.created(access.owner(), key).await?,
        None => None,
    };
    // A session that exists was permitted when it was created, perhaps by other settings.
    let folder = match known {
        Some(known) => known.folder,
        None => permitted_folder(&app, &access, &request).await?,
    };
    let record = app
        .sessions
        .create(NewSession {
            agent: request.agent,
            prompt: request.prompt,
            key,
            folder,
            model: request.model,
            mode: request.permission_mode,
            metadata: request.metadata,
            tools: request.tools.0,
            continues: request.continue_from.map(SessionId::new).transpose()?,
            owner: access.owner().map(str::to_owned),
            ttl: app.settings.session_ttl,
            request: Some(sent),
        })
        .await?;
    let location = HeaderValue::try_from(format!("/v1/sessions/{}", record.id));
    let mut response = (StatusCode::CREATED, Json(Session::from(record))).into_response();
    if let Ok(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Checks what a request for a new session asks for, and returns the folder of the session.
async fn permitted_folder(
    app: &App,
    access: &Access,
    request: &CreateSession,
) -> Result<Option<String>, ApiError> {
    let allowed = &app.settings.allowed;
    allowed.check_agent(&request.agent)?;
    let metadata = serde_json::to_vec(&request.metadata).unwrap_or_default();
    if metadata.len() > app.settings.limits.metadata_bytes {
        let limit = app.settings.limits.metadata_bytes;
        let message =
            format!("`metadata` has at most {limit} bytes: store what is larger elsewhere");
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", message));
    }
    let earlier = match &request.continue_from {
        Some(id) => Some(app.session(access, id).await?),
        None => None,
    };
    let inherited = earlier.as_ref().and_then(|earlier| earlier.mode.as_deref());
    allowed.check_mode(request.permission_mode.as_deref().or(inherited))?;
    let inherited = earlier.as_ref().and_then(|earlier| earlier.folder.as_deref());
    resolve_folder(request.cwd.as_deref().or(inherited), &allowed.folders).await
}

/// Lists sessions, the ones that were used last first.
#[utoipa::path(
    get,
    path = "/v1/sessions",
    tag = "sessions",
    params(
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "At most this many; 100 unless stated."),
        ("after" = Option<String>, Query, description = "The `next` of the part before."),
    ),
    responses(
        (status = 200, description = "The sessions.", body = SessionList),
        (status = 400, description = "A malformed limit or part.", body = ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 429, description = "Too many requests.", body = ErrorBody),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Json<SessionList>, ApiError> {
    let pairs = query_pairs(query.as_deref().unwrap_or_default())?;
    let value = |wanted: &str| {
        pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    let after = value("after").map(place).transpose()?;
    let limit = match value("limit").map(str::parse::<usize>) {
        None => 100,
        Some(Ok(limit)) if (1..=LONGEST_LIST).contains(&limit) => limit,
        Some(_) => {
            let message = "`limit` is a number from 1 to 1000";
            return Err(ApiError::bad_request("invalid_limit", message));
        }
    };
    let records: Vec<_> = match access.only_session() {
        Some(id) => app.store().load(id).await?.into_iter().collect(),
        None => {
            let owner = access.owner().map(str::to_owned);
            app.store().list(&Filter { owner, limit: Some(limit), after }).await?
        }
    };
    let last = records.last().filter(|_| records.len() == limit && access.only_session().is_none());
    let next = last.map(|last| format!("{}-{}", last.used_at, last.id));
    Ok(Json(SessionList { sessions: records.into_iter().map(Session::from).collect(), next }))
}

/// The place that `next` names: the last use of a session, and its id.
fn place(next: &str) -> Result<Place, ApiError> {
    let read = |(used_at, id): (&str, &str)| {
        Some(Place { used_at: used_at.parse().ok()?, id: SessionId::new(id).ok()? })
    };
    next.split_once('-').and_then(read).ok_or_else(|| {
        let message = "`after` is the `next` of the part of the list before";
        ApiError::bad_request("invalid_place", message)
    })
}

/// Shows a session.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    responses(
        (status = 200, description = "The session.", body = Session),
        (status = 400, description = "A malformed id.", body = ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 404, description = "No such session.", body = ErrorBody),
        (status = 429, description = "Too many requests.", body = ErrorBody),
    ),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Json<Session>, ApiError> {
    let record = app.session(&access, &id).await?;
    app.touch(&record).await;
    Ok(Json(record.into()))
}

/// Ends a session and deletes it with its log.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    responses(
        (status = 204, description = "The session was deleted."),
        (status = 400, description = "A malformed id.", body = ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 403, description = "The token is for one session.", body = ErrorBody),
        (status = 404, description = "No such session.", body = ErrorBody),
        (status = 409, description = "The session is in use by another process.", body = ErrorBody),
        (status = 429, description = "Too many requests.", body = ErrorBody),
    ),
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    access.require_many_sessions()?;
    let record: SessionRecord = app.session(&access, &id).await?;
    let id: SessionId = record.id;
    match app.sessions.delete(&id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::no_session()),
    }
}
