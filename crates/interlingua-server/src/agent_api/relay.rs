//! `/agent-api/relay`: the requests that wait for a browser, and its responses.
//!
//! Only the token of the relay counts here. A request of an agent is read from the session's log, so that
//! a browser which connects again gets it again. One that a program dispatches is kept in memory for as
//! long as the program waits (`dispatch.rs`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use interlingua_sessions::{Acknowledgement, CommandState, Error, SessionId, SessionRecord, Tail};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::attend::{Turn, attend};
use super::calls::Calls;
use super::dispatch::Browser;
use super::problem::Problem;
use super::results::{FormTool, Given, fits};
use super::run;
use crate::app::App;
use crate::metrics::Gauge;
use crate::routes::body;
use crate::security::RelayAccess;
use crate::stream::query_pairs;

/// How often a connection without news receives a comment.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// How long a dispatched request waits, unless stated, and at most.
const WAIT_MS: u64 = 20_000;
const LONGEST_WAIT_MS: u64 = 55_000;

/// A message of the relay.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum Message {
    #[serde(rename = "relay.dispatch", rename_all = "camelCase")]
    Dispatch { session_id: String, token: String, timeout_ms: Option<u64>, request: Value },
    #[serde(rename = "relay.respond", rename_all = "camelCase")]
    Respond { session_id: String, token: String, response: Value },
}

/// A connection of a browser.
struct Connection {
    app: Arc<App>,
    session: SessionId,
    /// When the token expires.
    expires_at: u64,
    calls: Calls,
    /// The requests that were sent. One that is dispatched again has another number.
    sent: Vec<(String, u64)>,
    /// The number of the last event.
    events: u64,
    tail: watch::Receiver<Tail>,
    browser: Browser,
    stopping: watch::Receiver<bool>,
    ended: bool,
    _reader: Gauge,
    /// Its place among the readers of its session.
    _place: OwnedSemaphorePermit,
}

pub(super) fn invalid(message: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_RESPONSE", message)
}

fn malformed() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "INVALID_RESPONSE", "Invalid request payload.")
}

/// What a token permits, if it is for this session, and the record of that.
async fn authorised(
    app: &App,
    session: &str,
    token: &str,
) -> Result<(RelayAccess, SessionRecord), Problem> {
    let invalid = || {
        let message = "Invalid relay session credentials.";
        Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
    };
    let found = app.guard.relay_access(token);
    let access = found.filter(|access| access.session.as_str() == session).ok_or_else(invalid)?;
    if !access.is_within_rate {
        let message = "This session has sent too many requests: wait a second.";
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", message));
    }
    let record = app.store().load(&access.session).await?;
    let record =
        record.ok_or_else(|| Problem::not_found("The session was deleted or has expired."))?;
    match access.is_for(&record) {
        true => Ok((access, record)),
        false => Err(invalid()),
    }
}

/// Streams the requests that wait, and every later one.
pub(super) async fn events(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    match connect(app, query.as_deref().unwrap_or_default()).await {
        Ok(response) => response,
        Err(problem) => problem.without_ok(),
    }
}

async fn connect(app: Arc<App>, query: &str) -> Result<Response, Problem> {
    let pairs = query_pairs(query)?;
    let named = |name: &str| {
        let found = pairs.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    };
    let (Some(session), Some(token)) = (named("sessionId"), named("token")) else {
        let message = "sessionId and token are required.";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message));
    };
    let (access, record) = authorised(&app, session, token).await?;
    let RelayAccess { session, expires_at, readers, .. } = access;
    let place = readers.enter()?;
    app.touch(&record).await;
    let connection = Connection {
        tail: app.store().watch(&session),
        browser: app.relay.connect(&session),
        stopping: app.stopping.clone(),
        expires_at,
        calls: Calls::default(),
        sent: Vec::new(),
        events: 0,
        ended: false,
        _reader: app.metrics.reader(),
        _place: place,
        app,
        session,
    };
    let events = stream::unfold(connection, |mut connection| async {
        let events = connection.next().await?;
        Some((Ok::<_, Infallible>(events), connection))
    });
    let mut response = Response::new(Body::from_stream(events));
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache, no-transform"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
        ("content-encoding", "none"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

impl Connection {
    /// The next events, or nothing if the connection ends.
    async fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        if self.events == 0 {
            out.extend_from_slice(b": connected\n\n");
            let ready = json!({"type": "ready", "sessionId": self.session.as_str()});
            self.event(&ready, &mut out);
            return Some(out.into());
        }
        let keepalive = Instant::now() + KEEPALIVE;
        while !self.ended {
            self.tail.mark_unchanged();
            self.browser.mark_seen();
            // A session that is gone has no more requests.
            let closed = self.calls.read_on(self.app.store(), &self.session).await;
            self.ended = closed.unwrap_or(true);
            let of_agent = self.calls.waiting().map(|call| ((call.id.clone(), 0), call.request()));
            let waiting: Vec<_> = of_agent.chain(self.browser.waiting()).collect();
            self.sent.retain(|sent| waiting.iter().any(|(mark, _)| mark == sent));
            for (mark, request) in waiting {
                if !self.sent.contains(&mark) {
                    self.event(&request, &mut out);
                    self.sent.push(mark);
                }
            }
            if !out.is_empty() {
                return Some(out.into());
            }
            if self.ended || self.app.settings.now_ms() >= self.expires_at {
                return None;
            }
            tokio::select! {
                changed = self.tail.changed() => self.ended |= changed.is_err(),
                () = self.browser.changed() => {}
                () = App::stopped(&mut self.stopping) => return None,
                () = tokio::time::sleep_until(keepalive) => {
                    return Some(Bytes::from_static(b": keepalive\n\n"));
                }
            }
        }
        None
    }

    fn event(&mut self, data: &Value, out: &mut Vec<u8>) {
        self.events += 1;
        out.extend_from_slice(format!("id: {}\ndata: {data}\n\n", self.events).as_bytes());
    }
}

/// Takes a response of a browser, or a request of a program.
pub(super) async fn message(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let read = body::json(&headers, body, &app.settings.limits.of_answers()).await;
    let message: Message = read.map_err(|error| match error.status {
        StatusCode::BAD_REQUEST
        | StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::UNSUPPORTED_MEDIA_TYPE => malformed(),
        _ => error.into(),
    })?;
    match message {
        Message::Respond { session_id, token, response } => {
            let session = authorised(&app, &session_id, &token).await?.1.id;
            respond(&app, &session, response).await?;
            Ok(Json(json!({"ok": true})).into_response())
        }
        Message::Dispatch { session_id, token, timeout_ms, request } => {
            let session = authorised(&app, &session_id, &token).await?.1.id;
            let wait = timeout_ms.unwrap_or(WAIT_MS);
            let id = request_id(&request).filter(|_| (1..=LONGEST_WAIT_MS).contains(&wait));
            let (id, tool) = id.zip(requested(&request)).ok_or_else(malformed)?;
            let wait = Duration::from_millis(wait);
            let response = app.relay.dispatch(&session, &id, tool, request, wait).await?;
            Ok(Json(json!({"ok": true, "response": response})).into_response())
        }
    }
}

fn request_id(message: &Value) -> Option<String> {
    let id = message.get("requestId")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// The tool of a request, if the request is one of the contract.
fn requested(request: &Value) -> Option<FormTool> {
    let is_list = |name: &str| request.get(name).is_some_and(Value::is_array);
    match request.get("type")?.as_str()? {
        "snapshot_request" => {
            let instruction = request.get("instruction")?.as_str()?;
            (!instruction.is_empty()).then_some(FormTool::Snapshot)
        }
        "execute_request" => (is_list("actions") && is_list("fields")).then_some(FormTool::Execute),
        _ => None,
    }
}

/// A response, once it is one of the contract.
pub(super) enum BrowserResponse {
    Of(FormTool, Value),
    Error(String),
}

impl BrowserResponse {
    fn parse(response: &Value) -> Option<Self> {
        let of = |tool: FormTool| {
            let result = response.get(tool.field())?;
            fits(tool, result).then(|| Self::Of(tool, result.clone()))
        };
        match response.get("type")?.as_str()? {
            "snapshot_response" => of(FormTool::Snapshot),
            "execute_response" => of(FormTool::Execute),
            "error_response" => {
                let message = response.get("message")?.as_str().filter(|text| !text.is_empty())?;
                Some(Self::Error(message.to_owned()))
            }
            _ => None,
        }
    }

    /// What is given to who waits for the response of a tool, and whether the response was a wrong one.
    fn given(self, called: FormTool) -> (Given, Option<Problem>) {
        match self {
            Self::Of(tool, result) if tool == called => (Given::Output(tool.output(result)), None),
            Self::Of(tool, _) => {
                let (expected, received) = (called.response(), tool.response());
                let message = format!("Expected {expected}, but received {received}.");
                (Given::Error(message.clone()), Some(invalid(message)))
            }
            Self::Error(message) => (Given::Error(message), None),
        }
    }
}

/// Passes a response on to who waits for it.
async fn respond(app: &Arc<App>, session: &SessionId, response: Value) -> Result<(), Problem> {
    let id = request_id(&response).ok_or_else(malformed)?;
    let parsed = BrowserResponse::parse(&response).ok_or_else(malformed)?;
    if let Some(tool) = app.relay.tool_of(session, &id) {
        let (given, problem) = parsed.given(tool);
        let answered = app.relay.answer(session, &id, given, response);
        return problem.map_or(answered, Err);
    }
    let none = || Problem::not_found(format!("Pending request was not found: {id}"));
    let calls = match Calls::read(app.store(), session).await {
        Err(error) if error.status == StatusCode::NOT_FOUND => return Err(none()),
        calls => calls?,
    };
    let call = calls.waiting().find(|call| call.id == id).ok_or_else(none)?;
    let (given, problem) = parsed.given(call.tool);
    let answered = match run::answer(app, session, given.command(&id)).await {
        // Someone else may have answered meanwhile.
        Ok(Acknowledgement { state: CommandState::Refused { .. }, .. }) => Err(none()),
        Err(Error::Closed(_) | Error::NotFound(_)) => Err(none()),
        // A session that another process holds takes the response later.
        answered => answered.map(drop).map_err(Problem::from),
    };
    if answered.is_ok() {
        // An agent that was lost goes on in another turn, without another request for a run.
        attend(app, session, Turn { begin: calls.next, ends_from: calls.next, prompt: None });
    }
    problem.map_or(answered, Err)
}

/// Answers the question of a browser whether a page may send a message. Whether it comes from an allowed
/// origin was checked before.
pub(super) async fn options() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let names = HeaderValue::from_static(
        "Content-Type, Authorization, x-vercel-protection-bypass, x-giselle-protection-bypass",
    );
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}
