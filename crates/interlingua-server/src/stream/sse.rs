//! A stream as server-sent events: batches of records, each followed by its position.
//!
//! The next batch is read when the connection has taken the one before, so a slow reader takes no
//! memory for what it has not read. After a while the connection is closed, and the client continues
//! at the last position. One that takes nothing at all is disconnected (`stall.rs`).

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::cursor;
use super::feed::{Batch, Feed};
use super::query::Query;
use crate::app::App;
use crate::metrics::Gauge;

/// A live connection.
struct Connection {
    app: Arc<App>,
    feed: Feed,
    /// What was read before the response began.
    first: Option<Batch>,
    cursor: u64,
    closes_at: Instant,
    stopping: watch::Receiver<bool>,
    state: Progress,
    _reader: Gauge,
    /// Its place among the readers of its token.
    _place: Option<OwnedSemaphorePermit>,
}

#[derive(PartialEq)]
enum Progress {
    /// Nothing was sent. The position is sent even if there are no records.
    Begun,
    Running,
    Ended,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Control {
    stream_next_offset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_cursor: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    up_to_date: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream_closed: bool,
}

/// The response, whose body lasts as long as the connection.
pub(super) fn response(
    app: &Arc<App>,
    query: &Query,
    feed: Feed,
    first: Batch,
    place: Option<OwnedSemaphorePermit>,
) -> Response {
    let connection = Connection {
        app: Arc::clone(app),
        feed,
        first: Some(first),
        cursor: cursor::next(app.settings.now_ms(), query.cursor),
        closes_at: Instant::now() + app.settings.streams.sse_lifetime,
        stopping: app.stopping.clone(),
        state: Progress::Begun,
        _reader: app.metrics.reader(),
        _place: place,
    };
    let events = stream::unfold(connection, |mut connection| async {
        let events = connection.next().await?;
        Some((Ok::<_, Infallible>(events), connection))
    });
    let mut response = Response::new(Body::from_stream(events));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Connection {
    /// The next events, or nothing if the connection ends.
    async fn next(&mut self) -> Option<Bytes> {
        if self.state == Progress::Ended {
            return None;
        }
        let limit = self.app.settings.streams.event_bytes;
        let mut heartbeat_at = Instant::now() + self.app.settings.streams.heartbeat;
        loop {
            let is_over = Instant::now() >= self.closes_at || *self.stopping.borrow();
            if is_over && self.state != Progress::Begun {
                return None;
            }
            let offset = self.feed.offset();
            let read = match self.first.take() {
                Some(first) => Ok(first),
                None => self.feed.read(limit).await,
            };
            let batch = match read {
                Ok(batch) => batch,
                // The session was deleted, or has expired, and its stream is closed with it.
                Err(error) if error.status == StatusCode::NOT_FOUND => self.feed.closed_at(offset),
                // The client learns why when it connects again.
                Err(_) => return None,
            };
            if self.state == Progress::Begun || batch.next > batch.from || batch.closed {
                self.state = if batch.closed { Progress::Ended } else { Progress::Running };
                return Some(self.events(batch));
            }
            tokio::select! {
                () = self.feed.wait() => {}
                () = tokio::time::sleep_until(heartbeat_at.min(self.closes_at)) => {}
                () = App::stopped(&mut self.stopping) => {}
            }
            if Instant::now() >= heartbeat_at {
                heartbeat_at += self.app.settings.streams.heartbeat;
                return Some(Bytes::from_static(b":\n\n"));
            }
        }
    }

    /// A batch and its position. Both events carry the position behind the batch, so that a client which
    /// has received the first of them alone goes on behind it.
    fn events(&self, batch: Batch) -> Bytes {
        let offset = batch.next.to_string();
        let control = Control {
            stream_next_offset: offset.clone(),
            stream_cursor: (!batch.closed).then(|| self.cursor.to_string()),
            up_to_date: batch.up_to_date,
            stream_closed: batch.closed,
        };
        let mut out = Vec::with_capacity(batch.records.len() + 256);
        let mut event = |name: &str, data: &[u8]| {
            out.extend_from_slice(b"event: ");
            out.extend_from_slice(name.as_bytes());
            out.push(b'\n');
            data_lines(data, &mut out);
            out.extend_from_slice(b"id: ");
            out.extend_from_slice(offset.as_bytes());
            out.extend_from_slice(b"\n\n");
        };
        if !batch.records.is_empty() {
            event("data", &batch.records.into_body());
        }
        let control = serde_json::to_vec(&control).unwrap_or_default();
        event("control", &control);
        out.into()
    }
}

/// Data, one line for each of its own. Every kind of line break ends one; in JSON it can only be
/// white space between values that were passed through.
fn data_lines(data: &[u8], out: &mut Vec<u8>) {
    let mut line = |line: &[u8]| {
        out.extend_from_slice(b"data:");
        // A reader removes one space after the colon.
        if line.first() == Some(&b' ') {
            out.push(b' ');
        }
        out.extend_from_slice(line);
        out.push(b'\n');
    };
    let mut rest = data;
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
        line(rest.get(..end).unwrap_or_default());
        let is_pair = rest.get(end..end + 2) == Some(b"\r\n");
        rest = rest.get(end + 1 + usize::from(is_pair)..).unwrap_or_default();
    }
    line(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_an_event() {
        let lines = |text: &str| {
            let mut out = Vec::new();
            data_lines(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(lines("[1]"), "data:[1]\n");
        assert_eq!(lines(""), "data:\n");
        assert_eq!(lines("a\n"), "data:a\ndata:\n");
        assert_eq!(lines("a\r\n\r\nevent: x\rb"), "data:a\ndata:\ndata:event: x\ndata:b\n");
        assert_eq!(lines(" indented"), "data:  indented\n");
    }
}
