//! A server for published clients of Durable Streams. It is not part of the package.
//!
//! It serves sessions as `interlingua-server` does. In addition,
//! `/v1/stream/NAME` is the log of a session that clients can write: `PUT` creates it, `POST` appends
//! an entry for each message, and `DELETE` deletes it. Everything else at that address is passed to
//! the server unchanged. So a suite of tests that writes through the protocol reads from a session.
//! `POST /v1/agent/ID?from=A&to=B` appends the entries A to B of what an agent printed, which is the
//! body, to the session ID; `&close` closes it.
//!
//!     server-adapter PATH_OF_DATABASE [PORT]
//!
//! With `-` as the path, sessions are kept in memory.
//! It prints its address, and runs until its standard input is closed.
#![allow(missing_docs, clippy::print_stdout)]

mod payload;
#[path = "../support/sessions.rs"]
mod sessions;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};
use interlingua_server::{Scope, Server, Settings, Token};
use interlingua_sessions::{
    Clock, Commit, Durability, Error, MemoryStore, Patch, SessionId, SessionRecord, SqliteStore,
    State as Doing, Store,
};
use tokio::io::AsyncReadExt;
use tower::ServiceExt;

use sessions::StoredSessions;

const TOKEN: &str = "adapter";

/// The largest payload.
const LIMIT: usize = 64 * 1024 * 1024;

#[derive(Clone)]
struct Adapter {
    server: Router,
    store: Arc<dyn Store>,
    clock: Clock,
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Problem> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: server-adapter PATH_OF_DATABASE [PORT]")?;
    let port: u16 = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let clock: Clock = Arc::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    });
    let store: Arc<dyn Store> = match &*path {
        "-" => Arc::new(MemoryStore::default()),
        path => Arc::new(SqliteStore::open(path.as_ref(), Durability::default())?),
    };
    let mut settings = Settings::default();
    settings.tokens = vec![Token::new(TOKEN, Scope::Admin)];
    settings.origins = vec!["https://example.com".to_owned()];
    settings.limits.requests_per_second = 1_000_000;
    settings.streams.long_poll = Duration::from_secs(2);
    settings.streams.sse_lifetime = Duration::from_secs(3);
    settings.dialects = vec![&payload::JSON, &payload::TEXT, &payload::BYTES];
    let sessions = StoredSessions { store: Arc::clone(&store), clock: Arc::clone(&clock) };
    let server = Server::new(Arc::new(sessions), settings);
    let adapter = Adapter { server: server.router(), store, clock };
    let server = server.with_router(Router::new().fallback(answer).with_state(adapter));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    let stopped = async {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    server.run(listener, stopped).await;
    Ok(())
}

async fn answer(State(adapter): State<Adapter>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if let Some(id) = path.strip_prefix("/v1/agent/") {
        return match print(&adapter, id, request).await {
            Ok(count) => count.to_string().into_response(),
            Err(problem) => (StatusCode::BAD_REQUEST, problem.to_string()).into_response(),
        };
    }
    let Some(name) = path.strip_prefix("/v1/stream/") else {
        return pass(&adapter, request).await;
    };
    let (parts, body) = request.into_parts();
    let headers = parts.headers.clone();
    let changed = match parts.method {
        Method::PUT => create(&adapter, name, &headers, body).await,
        Method::POST => append(&adapter, name, &headers, body).await,
        Method::DELETE => delete(&adapter, name).await,
        _ => return read(&adapter, name, Request::from_parts(parts, body)).await,
    };
    let mut response = match changed {
        Ok(response) => response,
        Err(Error::NotFound(_)) => StatusCode::NOT_FOUND.into_response(),
        Err(Error::Closed(id)) => closed(&adapter, &id).await,
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    };
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// Passes a request to the server, with a token.
async fn pass(adapter: &Adapter, mut request: Request) -> Response {
    let token = HeaderValue::from_static("Bearer adapter");
    request.headers_mut().entry(header::AUTHORIZATION).or_insert(token);
    match adapter.server.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Appends what an agent printed. Returns how many entries there are in all.
async fn print(adapter: &Adapter, id: &str, request: Request) -> Result<usize, Problem> {
    let id = SessionId::new(id)?;
    let query = request.uri().query().unwrap_or_default().to_owned();
    let number = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == name).and_then(|(_, value)| value.parse::<usize>().ok())
    };
    let body = to_bytes(request.into_body(), LIMIT).await?;
    let mut entries = Vec::new();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    let mut reader = Reader::new(Source::Recognise, ReadOptions::default())?;
    reader.push(&body, None, &mut keep)?;
    reader.finish(&Exit::default(), None, &mut keep)?;
    if adapter.store.load(&id).await?.is_none() {
        let record = SessionRecord::new(id.clone(), "adapter", (adapter.clock)());
        adapter.store.create(record).await?;
    }
    let count = entries.len();
    let to = number("to").unwrap_or(count).min(count);
    let entries = entries.drain(number("from").unwrap_or(0).min(to)..to).collect();
    let fence = adapter.store.claim(&id).await?;
    let state = query.split('&').any(|pair| pair == "close").then_some(Doing::Ended);
    let patch = Patch { state, ..Patch::default() };
    adapter.store.commit(&id, fence, Commit { entries, patch, ..Commit::default() }).await?;
    Ok(count)
}

async fn read(adapter: &Adapter, name: &str, mut request: Request) -> Response {
    let id = session_id(name);
    let record = adapter.store.load(&id).await.ok().flatten();
    let dialect = record.map_or("payload-text", |record| dialect(&media_type(&record)));
    let query = request.uri().query().map(|query| format!("{query}&")).unwrap_or_default();
    let path = format!("/v1/sessions/{id}/events?{query}dialect={dialect}");
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
    pass(adapter, request).await
}

async fn create(
    adapter: &Adapter,
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let id = session_id(name);
    let kind = text(headers, "content-type").unwrap_or("application/octet-stream");
    let kind = kind.to_ascii_lowercase();
    let ttl = match text(headers, "stream-ttl").map(seconds) {
        None => None,
        Some(Some(ttl)) => Some(ttl),
        Some(None) => return Ok(StatusCode::BAD_REQUEST.into_response()),
    };
    let closes = text(headers, "stream-closed") == Some("true");
    if let Some(known) = adapter.store.load(&id).await? {
        let is_same = media_type(&known) == kind
            && known.ttl_ms == ttl.map(|ttl| ttl * 1000)
            && (known.state == Doing::Ended) == closes;
        return match is_same {
            true => with_position(adapter, &id, StatusCode::OK, &kind).await,
            false => Ok(StatusCode::CONFLICT.into_response()),
        };
    }
    let metadata = [("contentType".to_owned(), kind.clone().into())];
    let record = SessionRecord {
        state: Doing::Idle,
        ttl_ms: ttl.map(|ttl| ttl * 1000),
        metadata: metadata.into_iter().collect(),
        ..SessionRecord::new(id.clone(), "adapter", (adapter.clock)())
    };
    adapter.store.create(record).await?;
    let body = to_bytes(body, LIMIT).await.unwrap_or_default();
    let messages = payload::messages(&kind, &body).unwrap_or_default();
    write(adapter, &id, messages, closes).await?;
    let mut response = with_position(adapter, &id, StatusCode::CREATED, &kind).await?;
    let host = text(headers, "host").unwrap_or("localhost");
    if let Ok(location) = HeaderValue::try_from(format!("http://{host}/v1/stream/{name}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

async fn append(
    adapter: &Adapter,
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Error> {
    let id = session_id(name);
    let record = adapter.store.load(&id).await?.ok_or_else(|| Error::NotFound(id.clone()))?;
    let kind = media_type(&record);
    let body = to_bytes(body, LIMIT).await.unwrap_or_default();
    let closes = text(headers, "stream-closed") == Some("true");
    if body.is_empty() {
        let is_closed = record.state == Doing::Ended;
        return match closes {
            true if is_closed => with_position(adapter, &id, StatusCode::NO_CONTENT, &kind).await,
            true => {
                write(adapter, &id, Vec::new(), true).await?;
                with_position(adapter, &id, StatusCode::NO_CONTENT, &kind).await
            }
            false => Ok(StatusCode::BAD_REQUEST.into_response()),
        };
    }
    match text(headers, "content-type").map(str::to_ascii_lowercase) {
        Some(sent) if sent == kind => {}
        Some(_) => return Ok(StatusCode::CONFLICT.into_response()),
        None => return Ok(StatusCode::BAD_REQUEST.into_response()),
    }
    let Some(messages) = payload::messages(&kind, &body).filter(|messages| !messages.is_empty())
    else {
        return Ok(StatusCode::BAD_REQUEST.into_response());
    };
    write(adapter, &id, messages, closes).await?;
    with_position(adapter, &id, StatusCode::NO_CONTENT, &kind).await
}

async fn delete(adapter: &Adapter, name: &str) -> Result<Response, Error> {
    let id = session_id(name);
    match adapter.store.delete(&id).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Error::NotFound(id)),
    }
}

/// Appends messages to the log of a session, as its owner does.
async fn write(
    adapter: &Adapter,
    id: &SessionId,
    messages: Vec<String>,
    closes: bool,
) -> Result<(), Error> {
    // Another request may have appended in between, or become the owner.
    loop {
        let fence = adapter.store.claim(id).await?;
        let next = adapter.store.read(id, u64::MAX, 0).await?.tail.next;
        let entries = (next..).zip(&messages).map(|(at, text)| payload::entry(at, text)).collect();
        let patch = Patch { state: closes.then_some(Doing::Ended), ..Patch::default() };
        let commit = Commit { entries, patch, ..Commit::default() };
        match adapter.store.commit(id, fence, commit).await {
            Err(Error::StaleOwner(_) | Error::Gap { .. }) => {}
            done => return done.map(|_| ()),
        }
    }
}

async fn with_position(
    adapter: &Adapter,
    id: &SessionId,
    status: StatusCode,
    kind: &str,
) -> Result<Response, Error> {
    let tail = adapter.store.read(id, u64::MAX, 0).await?.tail;
    let mut response = status.into_response();
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    set("stream-next-offset", &format!("{:020}", tail.next));
    set("content-type", kind);
    if tail.closed {
        set("stream-closed", "true");
    }
    Ok(response)
}

async fn closed(adapter: &Adapter, id: &SessionId) -> Response {
    match with_position(adapter, id, StatusCode::CONFLICT, "text/plain").await {
        Ok(response) => response,
        Err(_) => StatusCode::CONFLICT.into_response(),
    }
}

/// Names of streams have characters that ids of sessions have not.
fn session_id(name: &str) -> SessionId {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let id = format!("stream-{:016x}", hasher.finish());
    SessionId::new(id).unwrap_or_else(|_| unreachable!("letters and digits"))
}

fn media_type(record: &SessionRecord) -> String {
    record.metadata.get("contentType").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned()
}

fn dialect(kind: &str) -> &'static str {
    match kind {
        kind if payload::is_json(kind) => payload::JSON.name,
        kind if kind.starts_with("text/") => payload::TEXT.name,
        _ => payload::BYTES.name,
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A time to live: digits without a leading zero.
fn seconds(text: &str) -> Option<u64> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}
