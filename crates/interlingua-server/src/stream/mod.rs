//! The log of a session as a Durable Stream: catch-up, long-poll and server-sent events.
//!
//! This module knows the headers and the modes of the protocol. [`feed`] reads the log, and [`sse`]
//! writes it as events.

pub(crate) mod cursor;
pub(crate) mod feed;
mod query;
pub(crate) mod records;
mod sse;
pub(crate) mod turns;
pub(crate) mod writers;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use interlingua_sessions::SessionRecord;
use tokio::time::Instant;

use crate::app::App;
use crate::error::ApiError;
use crate::offset::{Begin, Offset};
use crate::security::Access;
pub(crate) use query::pairs as query_pairs;

use feed::{Batch, Feed};
use query::{Live, Query};
use records::Records;

/// Reads the log of a session as a Durable Stream, in any dialect.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/events",
    tag = "events",
    params(
        ("id" = String, Path, description = "The session."),
        ("offset" = Option<String>, Query, description = "Where to begin: an offset from `Stream-Next-Offset`, `-1` (the beginning) or `now` (the end). Required for live modes."),
        ("live" = Option<String>, Query, description = "`long-poll` or `sse`; without it, what there is."),
        ("cursor" = Option<String>, Query, description = "The last `Stream-Cursor`."),
        ("dialect" = Option<String>, Query, description = "The dialect of the records; `events` unless named."),
        ("turn" = Option<u64>, Query, minimum = 1, description = "Only this turn. The stream is closed at its end."),
        ("partial" = Option<bool>, Query, description = "Also write deltas, in dialects in which they are optional."),
        ("Last-Event-ID" = Option<String>, Header, description = "Wins over `offset`."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag`."),
    ),
    responses(
        (status = 200, description = "The records after the offset: a JSON array, text, or server-sent events.",
            headers(
                ("Stream-Next-Offset" = String, description = "Where to read on."),
                ("Stream-Up-To-Date" = String, description = "`true` if the response reaches the end."),
                ("Stream-Closed" = String, description = "`true` if nothing more will come."),
                ("Stream-Cursor" = String, description = "To be sent with the next live request."),
            ),
            content((Vec<Object> = "application/json"), (String = "text/plain"), (String = "text/event-stream"))),
        (status = 204, description = "Nothing new until the long-poll timed out, or nothing more will come."),
        (status = 304, description = "Nothing has changed since the `ETag`."),
        (status = 400, description = "A malformed parameter, or an offset beyond the end.", body = crate::ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = crate::ErrorBody),
        (status = 403, description = "The host or the origin is not allowed.", body = crate::ErrorBody),
        (status = 404, description = "No such session.", body = crate::ErrorBody),
        (status = 429, description = "Too many requests.", body = crate::ErrorBody),
    ),
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Query::parse(query.as_deref().unwrap_or_default(), &headers, &app.settings)?;
    let record = app.session(&access, &id).await?;
    let form = writers::Form {
        dialect: query.dialect,
        partial: query.partial,
        each_turn: query.turn.is_some(),
    };
    let begin = match query.begin {
        Some(Begin::At(offset)) => offset,
        _ => Offset::after(0),
    };
    let feeds = Arc::clone(&app.feeds);
    let mut feed = Feed::new(feeds, record.clone(), form, query.turn, begin);
    // A head is not live.
    let is_live = query.live.is_some() && method != Method::HEAD;
    let place = is_live.then(|| access.readers().enter()).transpose()?;
    if is_live {
        feed.subscribe();
    }
    if method == Method::HEAD {
        return head(&record, &query, &mut feed).await;
    }
    if query.begin == Some(Begin::Now) {
        feed.skip_to_end().await?;
    }
    app.touch(&record).await;
    match query.live {
        None => catch_up(&app, &headers, &query, &mut feed).await,
        Some(Live::LongPoll) => long_poll(&app, &headers, &query, &mut feed).await,
        Some(Live::Sse) => {
            // Its error is the answer. Behind the status, the stream could only break off.
            let first = feed.read(app.settings.streams.event_bytes).await?;
            Ok(sse::response(&app, &query, feed, first, place))
        }
    }
}

async fn head(
    record: &SessionRecord,
    query: &Query,
    feed: &mut Feed,
) -> Result<Response, ApiError> {
    let (next, closed) = feed.end().await?;
    let mut response = respond(StatusCode::OK, Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type(query));
    set_position(headers, Offset::after(next), true, closed);
    if let Some(ttl) = record.ttl_ms {
        headers.insert("stream-ttl", HeaderValue::from(ttl / 1000));
    }
    Ok(response)
}

async fn catch_up(
    app: &App,
    headers: &HeaderMap,
    query: &Query,
    feed: &mut Feed,
) -> Result<Response, ApiError> {
    let batch = feed.read(app.settings.streams.response_bytes).await?;
    Ok(answer(headers, query, feed, batch))
}

async fn long_poll(
    app: &App,
    headers: &HeaderMap,
    query: &Query,
    feed: &mut Feed,
) -> Result<Response, ApiError> {
    let _reader = app.metrics.reader();
    let deadline = Instant::now() + app.settings.streams.long_poll;
    let cursor = cursor::next(app.settings.now_ms(), query.cursor);
    let mut stopping = app.stopping.clone();
    let mut response = loop {
        let batch = feed.read(app.settings.streams.response_bytes).await?;
        if !batch.records.is_empty() || !batch.up_to_date {
            break answer(headers, query, feed, batch);
        }
        let is_last = batch.closed || *stopping.borrow() || Instant::now() >= deadline;
        if is_last {
            break nothing_new(batch.next, batch.closed);
        }
        tokio::select! {
            () = feed.wait() => {}
            () = tokio::time::sleep_until(deadline) => {}
            () = App::stopped(&mut stopping) => {}
        }
    };
    if !response.headers().contains_key("stream-closed") {
        response.headers_mut().insert("stream-cursor", HeaderValue::from(cursor));
    }
    Ok(response)
}

/// The answer with records, or 304 if nothing has changed.
fn answer(headers: &HeaderMap, query: &Query, feed: &Feed, batch: Batch) -> Response {
    let etag = etag(query, feed.created_at(), &batch);
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let is_known = known.filter_map(|value| value.to_str().ok()).any(|tags| {
        tags.split(',')
            .map(|tag| tag.trim().trim_start_matches("W/"))
            .any(|tag| tag == etag || tag == "*")
    });
    let Batch { records, next, up_to_date, closed, .. } = batch;
    let is_now = query.begin == Some(Begin::Now);
    let mut response = if is_known && !is_now {
        respond(StatusCode::NOT_MODIFIED, Body::empty())
    } else {
        let mut response = respond(StatusCode::OK, Body::from(records.into_body()));
        response.headers_mut().insert(header::CONTENT_TYPE, media_type(query));
        response
    };
    set_position(response.headers_mut(), next, up_to_date, closed);
    // The end of the log is somewhere else next time, so `now` has no tag.
    if let Ok(etag) = HeaderValue::try_from(etag)
        && !is_now
    {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}

fn nothing_new(next: Offset, closed: bool) -> Response {
    let mut response = respond(StatusCode::NO_CONTENT, Body::empty());
    set_position(response.headers_mut(), next, true, closed);
    response
}

fn respond(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn media_type(query: &Query) -> HeaderValue {
    HeaderValue::from_static(Records::media_type(query.dialect.written))
}

fn set_position(headers: &mut HeaderMap, next: Offset, up_to_date: bool, closed: bool) {
    if let Ok(next) = HeaderValue::try_from(next.to_string()) {
        headers.insert("stream-next-offset", next);
    }
    if up_to_date {
        headers.insert("stream-up-to-date", HeaderValue::from_static("true"));
    }
    if closed {
        headers.insert("stream-closed", HeaderValue::from_static("true"));
    }
}

/// Changes with everything that changes the response. An id may be used again after a session was
/// deleted.
fn etag(query: &Query, created_at: u64, batch: &Batch) -> String {
    let Batch { from, next, up_to_date, closed, .. } = batch;
    let end = match (up_to_date, closed) {
        (_, true) => "closed",
        (true, false) => "end",
        (false, false) => "more",
    };
    let (dialect, partial) = (query.dialect.name, if query.partial { "-partial" } else { "" });
    let turn = query.turn.map(|turn| format!("-turn{turn}")).unwrap_or_default();
    format!("\"{created_at}-{dialect}{partial}{turn}-{from}-{next}-{end}\"")
}
