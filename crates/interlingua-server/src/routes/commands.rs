//! Commands for a session.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use interlingua_sessions::host::Command;
use interlingua_sessions::{Acknowledgement, CommandState};
use serde_json::Value;

use super::body;
use super::sessions::idempotency_key;
use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::security::Access;

/// Sends a command to a session: a prompt, a decision, an answer, an interrupt, or its end.
///
/// A prompt is acknowledged as soon as it is stored; everything else when it took effect. Sending a
/// command again with the same key returns its current state, and does nothing more.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/commands",
    tag = "sessions",
    params(
        ("id" = String, Path, description = "The session."),
        ("Idempotency-Key" = String, Header, min_length = 1, max_length = 255, description = "Identifies the command. Sent again, it is acknowledged in the same way."),
    ),
    request_body = Command,
    responses(
        (status = 202, description = "The acknowledgement: `key`, `status` (`accepted`, `delivering`, `delivered` or `unknown`), and the `sequence` number of the entry at which it took effect.", body = Object),
        (status = 400, description = "Malformed JSON, id or key.", body = ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 403, description = "The agent, the folder or the mode of the session is not allowed on this server, or the host or the origin is not allowed.", body = ErrorBody),
        (status = 404, description = "No such session.", body = ErrorBody),
        (status = 409, description = "The session is closed or in use by another process, or the command was refused, for example because its request has been answered.", body = ErrorBody),
        (status = 413, description = "The body is too large.", body = ErrorBody),
        (status = 415, description = "The body is not JSON.", body = ErrorBody),
        (status = 422, description = "A field is missing or has the wrong type, the prompt is blank, or the key was used for another command.", body = ErrorBody),
        (status = 429, description = "Too many requests.", body = ErrorBody),
    ),
)]
pub(crate) async fn send(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Acknowledgement>), ApiError> {
    let record = app.session(&access, &id).await?;
    let key = idempotency_key(&headers)?.ok_or_else(|| {
        let message = "a command needs an `Idempotency-Key`: send a new one with each command, and the same one when you send it again";
        ApiError::bad_request("missing_idempotency_key", message)
    })?;
    let command: Command = body::json(&headers, body, &app.settings.limits.of_answers()).await?;
    check(&command)?;
    let is_new = app.store().acknowledged(&record.id, &key).await?.is_none();
    if matches!(command, Command::Prompt { .. }) && is_new {
        app.settings.allowed.check_session(&record).await?;
    }
    let acknowledgement = app.sessions.command(&record.id, key, command).await?;
    if let CommandState::Refused { reason } = acknowledgement.state {
        return Err(ApiError::new(StatusCode::CONFLICT, "command_refused", reason));
    }
    Ok((StatusCode::ACCEPTED, Json(acknowledgement)))
}

/// A prompt has words, and an answer either answers or declines.
fn check(command: &Command) -> Result<(), ApiError> {
    let Command::Answer { answer, decline, .. } = command else {
        return match command {
            Command::Prompt { text, .. } => check_prompt(text),
            _ => Ok(()),
        };
    };
    let answers = answer.as_ref().is_some_and(|answer| *answer != Value::Null);
    if answers != decline.is_some() {
        return Ok(());
    }
    let message = "an answer has either `answer` or `decline`, with the reason";
    Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", message))
}

/// A prompt describes something.
pub(super) fn check_prompt(text: &str) -> Result<(), ApiError> {
    if !text.trim().is_empty() {
        return Ok(());
    }
    let message = "the prompt is empty: describe what the agent should do";
    Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", message))
}
