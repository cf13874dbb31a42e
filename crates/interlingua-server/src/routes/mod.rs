//! The routes, one file for each subject.

pub(crate) mod body;
mod commands;
mod health;
mod sessions;
mod tokens;
mod translate;

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

pub use sessions::Session;

use crate::app::App;
use crate::error::ApiError;
use crate::{agent_api, security, stream};

/// All routes with their checks.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/sessions", get(sessions::list).post(sessions::create))
        .route("/v1/sessions/{id}", get(sessions::show).delete(sessions::delete))
        .route("/v1/sessions/{id}/commands", post(commands::send))
        .route("/v1/sessions/{id}/events", get(stream::read))
        .route("/v1/sessions/{id}/tokens", post(tokens::issue))
        .route("/v1/translate", post(translate::translate))
        .route("/openapi.json", get(openapi))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .merge(agent_api::router())
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), security::check))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), observe))
        .with_state(app)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Interlingua",
        description = "Sessions of coding agents: commands, and their logs as Durable Streams in any dialect.",
    ),
    paths(
        sessions::create,
        sessions::list,
        sessions::show,
        sessions::delete,
        commands::send,
        tokens::issue,
        stream::read,
        translate::translate,
        health::alive,
        health::ready,
        health::metrics,
    ),
    security(("token" = [])),
)]
struct Description;

/// The description of the interface.
pub(crate) fn description() -> utoipa::openapi::OpenApi {
    let mut description = Description::openapi();
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    description
}

async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(description())
}

async fn no_route() -> ApiError {
    let message = "there is nothing at this address: `/openapi.json` lists what there is";
    ApiError::new(StatusCode::NOT_FOUND, "no_such_route", message)
}

async fn wrong_method() -> ApiError {
    let message = "this address does not take that method: `Allow` lists those that it takes";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// Counts and logs a request. The log has no header, no query and no body, which may be secret.
async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or_else(|| "unmatched".to_owned(), |path| path.as_str().to_owned());
    let method = known_method(request.method());
    let started = std::time::Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    app.metrics.answered(method, &route, status);
    let microseconds = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::info!(method, route, status, microseconds, "answered");
    response
}

/// The name of a method. A client can invent others, which would be counted without a bound.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}
