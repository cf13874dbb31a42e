//! By which name the server was addressed, and which pages may address it.
//!
//! A page that a browser loaded from anywhere can send requests to loopback addresses. Its `Origin`
//! reveals where it came from, and after DNS rebinding the `Host` still does.

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, ORIGIN, VARY,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;

use crate::error::ApiError;

/// The names of the loopback interface.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The allowed names and origins.
#[derive(Debug)]
pub(super) struct Origins {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Origins {
    pub(super) fn new(hosts: &[String], origins: &[String]) -> Self {
        let lower = |texts: &[String]| texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        Self { hosts: lower(hosts), origins: lower(origins) }
    }

    /// Checks the name by which the server was addressed.
    pub(super) fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        let mut named = headers.get_all(HOST).iter();
        let host = match (named.next(), named.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
            (None, None) => uri.authority().cloned(),
            _ => None,
        };
        let Some(host): Option<Authority> = host else {
            let message = "the request has no valid `Host`: send exactly one";
            return Err(ApiError::bad_request("invalid_host", message));
        };
        let name = host.host().to_ascii_lowercase();
        let with_port = host.as_str().to_ascii_lowercase();
        let is_allowed = LOOPBACK.contains(&name.as_str())
            || self.hosts.iter().any(|allowed| *allowed == name || *allowed == with_port);
        if is_allowed {
            return Ok(());
        }
        Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host_not_allowed",
            "the server does not answer under this name: add it to the allowed hosts",
        ))
    }

    /// Checks where a page was loaded from. Programs that are no browsers send no origin.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        if self.is_allowed(origin) || is_same(origin, headers.get(HOST)) {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "origin_not_allowed",
            "pages of this origin may not send requests: add it to the allowed origins",
        ))
    }

    /// The answer to the question whether a page may send a request.
    pub(super) fn preflight(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        let methods = HeaderValue::from_static("GET, HEAD, POST, DELETE");
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        let allowed = "authorization, content-type, idempotency-key, if-none-match, last-event-id";
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        response
    }

    /// Lets the page of an allowed origin read a response. Returns whether it is one.
    pub(super) fn allow(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) -> bool {
        headers.append(VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = origin.filter(|origin| self.is_allowed(origin)) else { return false };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let exposed = "etag, location, retry-after, stream-closed, stream-cursor, stream-next-offset, stream-ttl, stream-up-to-date";
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
        true
    }

    fn is_allowed(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().map(str::to_ascii_lowercase);
        origin.is_ok_and(|origin| self.origins.contains(&origin))
    }
}

/// Whether a page was loaded from this server.
fn is_same(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let (Ok(origin), Some(Ok(host))) = (origin.to_str(), host.map(HeaderValue::to_str)) else {
        return false;
    };
    let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    named.is_some_and(|named| named.eq_ignore_ascii_case(host))
}
