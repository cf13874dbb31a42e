//! The requests of MCP servers over standard streams to the process that runs the session.

use std::borrow::Cow;
use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use super::exchange::{Answer, CALLS, Call, LARGEST, Offer, TOOLS, is_key};
use super::keyed::{KeyedCalls, NotAttached};

/// The body of a response.
pub(super) type Body = BoxBody<Bytes, Infallible>;

/// Answers a request for what is below the address of the MCP server. If the connection is lost
/// meanwhile, this is dropped, and the call waits for the next request.
pub(super) async fn respond(
    request: Request<Incoming>,
    below: &str,
    calls: &KeyedCalls,
) -> Response<Body> {
    if below == TOOLS && request.method() == Method::GET {
        let (generation, tools) = (calls.handler().generation(), calls.handler().list());
        return json(&Offer { generation, tools: Cow::Owned(tools) });
    }
    let Some(key) = below.strip_prefix(CALLS).filter(|key| is_key(key)) else {
        return plain(StatusCode::NOT_FOUND, "there are tools and calls");
    };
    match *request.method() {
        Method::PUT => put(request, key, calls).await,
        Method::DELETE => {
            calls.end(key);
            plain(StatusCode::NO_CONTENT, "")
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "a call takes PUT and DELETE"),
    }
}

async fn put(request: Request<Incoming>, key: &str, calls: &KeyedCalls) -> Response<Body> {
    let body = match Limited::new(request.into_body(), LARGEST).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "the call is too large"),
    };
    let call: Call = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(_) => return plain(StatusCode::BAD_REQUEST, "the body is not a call"),
    };
    drop(body);
    match calls.attach(key, call) {
        Ok(attached) => match attached.answer().await {
            Some(answer) => json(&Answer::from(&*answer)),
            None => plain(StatusCode::GONE, "the call has ended without an answer"),
        },
        Err(NotAttached::NotMade(problem)) => json(&Answer::Error(problem.into())),
        Err(NotAttached::Ended(why)) => plain(StatusCode::GONE, why),
    }
}

fn json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(json) => {
            let mut response = Response::new(Full::new(Bytes::from(json)).boxed());
            let json = hyper::header::HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"),
    }
}

/// A response that only says what it is.
pub(super) fn plain(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
