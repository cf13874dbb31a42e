//! Whether the server works, and its numbers.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::metrics;
use crate::security::Access;

/// Answers as long as the process runs.
#[utoipa::path(get, path = "/healthz", tag = "operation", security(()), responses((status = 200, description = "The server runs.")))]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// Answers if the store works.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operation",
    security(()),
    responses(
        (status = 200, description = "The server can serve sessions."),
        (status = 503, description = "It is stopping, or its store fails.", body = ErrorBody),
    ),
)]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, ApiError> {
    let unavailable = |message: &str| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message).retry_after(1)
    };
    if *app.stopping.borrow() {
        return Err(unavailable("the server is stopping: connect to another one"));
    }
    if let Err(problem) = app.probe().await {
        tracing::error!(%problem, "the store of sessions fails");
        return Err(unavailable("the store of sessions fails: look into the log of the server"));
    }
    Ok("ok\n")
}

/// The numbers of the server, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    responses(
        (status = 200, description = "The numbers, in the text format of Prometheus.", body = String, content_type = "text/plain"),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 403, description = "This needs the token of an administrator.", body = ErrorBody),
    ),
)]
pub(crate) async fn metrics(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
) -> Result<Response, ApiError> {
    access.require_admin()?;
    let mut numbers = app.metrics.render();
    metrics::render_agents(app.sessions.live_agents(), &mut numbers);
    match app.store().counts().await {
        Ok(counts) => metrics::render_sessions(&counts, &mut numbers),
        // The other numbers show more of what is wrong than none.
        Err(problem) => tracing::warn!(%problem, "the sessions were not counted"),
    }
    let mut response = numbers.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
