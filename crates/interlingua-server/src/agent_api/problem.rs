//! Errors as clients of this contract know them: `ok`, a code and a message.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::error::ApiError;

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
    retry_after: Option<u64>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    /// The request is not one of the contract.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message)
    }

    /// The request does not fit the state of the session.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "CONFLICT", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    /// The response to a reader of the relay, which has no `ok`.
    pub(super) fn without_ok(self) -> Response {
        let body = json!({"errorCode": self.code, "message": self.message});
        (self.status, Json(body)).into_response()
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        let ApiError { status, message, retry_after, .. } = error;
        let (status, code) = match status {
            StatusCode::UNPROCESSABLE_ENTITY => (StatusCode::BAD_REQUEST, "INVALID_REQUEST"),
            StatusCode::UNAUTHORIZED => (status, "UNAUTHORIZED"),
            StatusCode::FORBIDDEN => (status, "FORBIDDEN"),
            StatusCode::NOT_FOUND => (status, "NOT_FOUND"),
            StatusCode::CONFLICT => (status, "CONFLICT"),
            StatusCode::TOO_MANY_REQUESTS => (status, "TOO_MANY_REQUESTS"),
            status if status.is_client_error() => (status, "INVALID_REQUEST"),
            status => (status, "INTERNAL_ERROR"),
        };
        Self { status, code, message, retry_after }
    }
}

impl From<interlingua_sessions::Error> for Problem {
    fn from(error: interlingua_sessions::Error) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({"ok": false, "errorCode": self.code, "message": self.message});
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
