//! Errors as clients see them: a status, a code for programs, and a message for people.
//!
//! A message names what to do next, and contains nothing that the client did not send or may not
//! know. What the server itself failed at is in its log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlingua_sessions::Error;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// After how many seconds the request may succeed.
    pub(crate) retry_after: Option<u64>,
}

/// The body of every error.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// What went wrong, and what to do next.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// A stable name of the error.
    #[schema(example = "session_not_found")]
    pub code: String,
    /// An explanation for a person.
    pub message: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// A session that does not exist, or that the caller may not know of.
    pub(crate) fn no_session() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "session_not_found",
            "there is no such session: it was deleted, has expired, or never existed; `GET /v1/sessions` lists yours",
        )
    }

    pub(crate) fn internal(what: &str, problem: &dyn std::fmt::Display) -> Self {
        tracing::error!(what, %problem, "a request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the server failed: try again, and look into its log if it persists",
        )
    }

    /// A limit of a token is reached.
    pub(crate) fn too_many(code: &'static str, message: &str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message).retry_after(1)
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::InvalidId => Self::bad_request("invalid_id", message),
            Error::InvalidKey => Self::bad_request("invalid_idempotency_key", message),
            Error::NotFound(_) => Self::no_session(),
            Error::Exists(_) => Self::new(StatusCode::CONFLICT, "session_exists", message),
            Error::Held(_) => {
                let message = "the session is in use by another process: wait for its end, and send the command again";
                Self::new(StatusCode::CONFLICT, "session_in_use", message)
            }
            Error::Closed(_) => Self::new(StatusCode::CONFLICT, "session_closed", message),
            Error::KeyReused(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", message)
            }
            Error::StaleOwner(_) | Error::InUse(_) => {
                let message = "another process has taken over the session: try again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "owner_changed", message).retry_after(1)
            }
            Error::NotClosed(_) => Self::new(StatusCode::CONFLICT, "session_not_closed", message),
            Error::Continued { .. } => {
                Self::new(StatusCode::CONFLICT, "session_continued", message)
            }
            Error::NotLaunched(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "agent_not_available", message)
            }
            error => Self::internal("the store", &error),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, code, message, retry_after } = self;
        let body = ErrorBody { error: ErrorDetail { code: code.to_owned(), message } };
        let mut response = (status, Json(body)).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
