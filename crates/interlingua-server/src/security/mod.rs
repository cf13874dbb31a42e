//! Who may send a request, from where, and how often.
//!
//! Every request passes these checks before its route is found, except those for the health of the
//! server, which need no token.

mod allowed;
mod folders;
mod issued;
mod origin;
mod rate;
mod seal;
mod token;

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use interlingua_sessions::{Clock, SessionId, SessionRecord};

pub(crate) use folders::resolve as resolve_folder;
pub use issued::TokenKey;
pub use seal::Seal;
pub(crate) use token::Access;
pub use token::{Scope, Token};

use crate::agent_api;
use crate::app::App;
use crate::error::ApiError;
use crate::lru::Lru;
use crate::settings::{Limits, Settings};
use origin::Origins;
use rate::{Allowance, Readers};

/// The number of sessions whose issued tokens are counted.
const ISSUED: usize = 4096;

/// The checks, and what they need.
pub(crate) struct Guard {
    tokens: Vec<(Token, Allowance)>,
    /// What the issued tokens of each session may use.
    issued: Mutex<Lru<SessionId, Allowance>>,
    token_key: Option<TokenKey>,
    clock: Clock,
    limits: Limits,
    origins: Origins,
}

/// What a token for the relay permits.
pub(crate) struct RelayAccess {
    pub(crate) session: SessionId,
    instance: String,
    /// When the token expires.
    pub(crate) expires_at: u64,
    /// It may be used again now.
    pub(crate) is_within_rate: bool,
    /// The places of the live readers that have a token for the session.
    pub(crate) readers: Readers,
}

impl RelayAccess {
    /// Whether the token was issued for this session, and not for an earlier one with the same id.
    pub(crate) fn is_for(&self, record: &SessionRecord) -> bool {
        self.instance == issued::instance(record)
    }
}

impl Guard {
    pub(crate) fn new(settings: &Settings) -> Self {
        let limits = settings.limits;
        let limited = |token: &Token| (token.clone(), Allowance::new(&limits));
        Self {
            tokens: settings.tokens.iter().map(limited).collect(),
            issued: Mutex::new(Lru::new(ISSUED)),
            token_key: settings.token_key.clone(),
            clock: settings.clock.clone(),
            limits,
            origins: Origins::new(&settings.hosts, &settings.origins),
        }
    }

    /// Finds out what the sender of a request may do.
    fn access(&self, headers: &HeaderMap) -> Result<Access, ApiError> {
        let unauthorized = || {
            let message = "the token is missing or unknown: send `Authorization: Bearer TOKEN`";
            ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
        };
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, secret) =
            value.and_then(|value| value.split_once(' ')).ok_or_else(unauthorized)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(unauthorized());
        }
        let hash = token::hash(secret.trim());
        // All tokens are compared, so that the time does not depend on which one it is.
        let mut found = None;
        for (token, allowance) in &self.tokens {
            if token.is(&hash) {
                found = Some((token, allowance));
            }
        }
        let (scope, (is_within_rate, readers)) = match found {
            Some((token, Allowance { rate, readers })) => {
                (token.scope().clone(), (rate.take(), readers.clone()))
            }
            None => {
                let session = self.issued_for(secret.trim()).ok_or_else(unauthorized)?;
                let used = self.use_issued(&session);
                (Scope::Session(session), used)
            }
        };
        if !is_within_rate {
            let message = "this token has sent too many requests: wait a second";
            return Err(ApiError::too_many("too_many_requests", message));
        }
        Ok(Access::new(scope, readers))
    }

    /// The session for which a token was issued.
    fn issued_for(&self, token: &str) -> Option<SessionId> {
        self.token_key.as_ref()?.session(token, (self.clock)())
    }

    /// What a token for the relay permits, if it is one of ours.
    pub(crate) fn relay_access(&self, token: &str) -> Option<RelayAccess> {
        let (session, instance, expires_at) =
            self.token_key.as_ref()?.relay_session(token, (self.clock)())?;
        let (is_within_rate, readers) = self.use_issued(&session);
        Some(RelayAccess { session, instance, expires_at, is_within_rate, readers })
    }

    /// All issued tokens of a session share what they may use. Returns whether they may be used now.
    fn use_issued(&self, session: &SessionId) -> (bool, Readers) {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Allowance { rate, readers }) = issued.get_mut(session) {
            return (rate.take(), readers.clone());
        }
        let new = Allowance::new(&self.limits);
        let used = (new.rate.take(), new.readers.clone());
        issued.insert(session.clone(), new);
        used
    }
}

/// Paths that answer without a token, or check one of their own.
fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz") || agent_api::is_relay(path)
}

/// Checks a request, and adds the headers that every response has.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let is_head = request.method() == Method::HEAD;
    let is_agent_api = agent_api::is_path(request.uri().path());
    let mut response = match admit(&app, request) {
        Ok(Admitted::Request(request)) => next.run(*request).await,
        Ok(Admitted::Preflight) => app.guard.origins.preflight(),
        Err(error) if is_agent_api => agent_api::rejected(error),
        Err(error) => error.into_response(),
    };
    // The answer to `HEAD` has no body. Clients that see a type parse one, and fail.
    if is_head && !response.status().is_success() {
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    let headers = response.headers_mut();
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    let is_cross_origin = app.guard.origins.allow(origin.as_ref(), headers);
    let policy = if is_cross_origin { "cross-origin" } else { "same-origin" };
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static(policy));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

enum Admitted {
    Request(Box<Request>),
    Preflight,
}

fn admit(app: &App, mut request: Request) -> Result<Admitted, ApiError> {
    let guard = &app.guard;
    guard.origins.check_host(request.headers(), request.uri())?;
    guard.origins.check_origin(request.headers())?;
    let is_preflight = request.method() == Method::OPTIONS
        && !agent_api::is_relay(request.uri().path())
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if is_preflight {
        return Ok(Admitted::Preflight);
    }
    if !is_public(request.uri().path()) {
        let access = guard.access(request.headers())?;
        request.extensions_mut().insert(access);
    }
    Ok(Admitted::Request(Box::new(request)))
}
