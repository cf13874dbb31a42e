//! Reads the body of a request, within a size and a time.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ApiError;
use crate::settings::Limits;

/// Reads a body of JSON.
pub(crate) async fn json<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
) -> Result<T, ApiError> {
    parse(&of_json(headers, body, limits).await?)
}

/// Reads a body of JSON, and returns it as its sender wrote it, too.
pub(crate) async fn json_as_sent<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
) -> Result<(T, Value), ApiError> {
    let bytes = of_json(headers, body, limits).await?;
    Ok((parse(&bytes)?, parse(&bytes)?))
}

async fn of_json(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_json",
            "the body must be JSON: send `Content-Type: application/json`",
        ));
    }
    whole(headers, body, limits).await
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|problem| match problem.classify() {
        serde_json::error::Category::Data => {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", shown(&problem))
        }
        _ => ApiError::bad_request("malformed_json", shown(&problem)),
    })
}

/// What is wrong with a body. The message names fields and types, which the client has sent.
fn shown(problem: &serde_json::Error) -> String {
    format!("the body cannot be used: {problem}; `/openapi.json` describes it")
}

async fn whole(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    check_length(headers, limits.body_bytes as u64)?;
    let collected = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_timeout, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(problem)) if problem.is::<LengthLimitError>() => {
            Err(too_large(limits.body_bytes as u64))
        }
        Ok(Err(_)) => {
            Err(ApiError::bad_request("incomplete_body", "the body was cut off: send it again"))
        }
        Err(_) => Err(too_slow()),
    }
}

/// Rejects a body whose length is known to be too large, before it is sent.
pub(super) fn check_length(headers: &HeaderMap, limit: u64) -> Result<(), ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > limit => Err(too_large(limit)),
        _ => Ok(()),
    }
}

pub(super) fn too_large(limit: u64) -> ApiError {
    let message = format!("the body has more than {limit} bytes: send less");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
}

fn too_slow() -> ApiError {
    let message = "the body took too long to arrive: send it faster";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message)
}
