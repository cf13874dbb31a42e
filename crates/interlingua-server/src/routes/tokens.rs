//! Tokens for one session.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body;
use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::security::Access;

/// How long a token is valid, unless stated.
const USUAL: u64 = 60 * 60;

/// The longest time for which a token is valid.
const LONGEST: u64 = 7 * 24 * 60 * 60;

/// What is wanted of a token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TokenRequest {
    /// For how many seconds it is valid; an hour unless stated, and a week at most.
    #[schema(minimum = 1, maximum = 604800)]
    expires_in: Option<u64>,
}

/// A token for one session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IssuedToken {
    /// It reads the session and sends commands to it, and does nothing else.
    token: String,
    /// When it expires, in milliseconds since 1970.
    expires_at: u64,
}

/// Issues a token for one session, which can be given to a page in a browser.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/tokens",
    tag = "sessions",
    params(("id" = String, Path, description = "The session.")),
    request_body = TokenRequest,
    responses(
        (status = 201, description = "The token.", body = IssuedToken),
        (status = 400, description = "Malformed JSON or id.", body = ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 403, description = "The token is for one session, or the server issues none.", body = ErrorBody),
        (status = 404, description = "No such session.", body = ErrorBody),
        (status = 413, description = "The body is too large.", body = ErrorBody),
        (status = 415, description = "The body is not JSON.", body = ErrorBody),
        (status = 422, description = "A field has the wrong type or value.", body = ErrorBody),
        (status = 429, description = "Too many requests.", body = ErrorBody),
    ),
)]
pub(crate) async fn issue(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<IssuedToken>), ApiError> {
    access.require_many_sessions()?;
    let record = app.session(&access, &id).await?;
    let request: TokenRequest = body::json(&headers, body, &app.settings.limits).await?;
    let seconds = request.expires_in.unwrap_or(USUAL);
    if !(1..=LONGEST).contains(&seconds) {
        let message = "`expiresIn` is a number of seconds from 1 to 604800";
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", message));
    }
    let Some(key) = &app.settings.token_key else {
        let message = "this server issues no tokens: it has no secret to sign them with";
        return Err(ApiError::forbidden("no_token_key", message));
    };
    let valid = u64::try_from(Duration::from_secs(seconds).as_millis()).unwrap_or(u64::MAX);
    let expires_at = app.settings.now_ms().saturating_add(valid);
    let token = key.issue(&record.id, expires_at);
    Ok((StatusCode::CREATED, Json(IssuedToken { token, expires_at })))
}
