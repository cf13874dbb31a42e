//! The records of one run: NDJSON of the dialect `giselle`, from where the run begins in the log.
//!
//! A run ends with its turn, or when the session waits for the client. A client that disconnects ends
//! nothing but its own stream.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use interlingua::event::Data;
use interlingua::json::{Json, Text};
use interlingua::{Entry, Writer, dialect};
use interlingua_sessions::{IdempotencyKey, SessionRecord, Tail};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::attend::Turn;
use super::calls::Call;
use super::files;
use super::prompt::{LOOKED_UP, Prompt};
use crate::app::App;
use crate::error::ApiError;
use crate::metrics::Gauge;
use crate::stream::feed::parse;
use crate::stream::records::lines;
use crate::stream::writers::Form;

/// How many bytes of a log are read at a time.
const PAGE: usize = 64 * 1024;

/// What the first lines of a run state.
pub(super) struct Prelude {
    pub(super) url: String,
    pub(super) session: String,
    pub(super) token: String,
    pub(super) expires_at: u64,
    pub(super) sandbox: String,
}

/// The part of a log that is a run.
pub(super) struct Part {
    /// The number of the first entry.
    pub(super) begin: u64,
    /// What ends or suspends a turn before this entry was known when the run began.
    ends_from: u64,
    /// The run ends before this entry, since the session still waits.
    until: Option<u64>,
    /// Requests that still wait, and precede the first entry.
    again: Vec<Value>,
    /// The run begins with this prompt, which was not announced yet.
    prompt: Option<Prompt>,
}

impl Part {
    /// From an entry on. Ends before another one are known.
    pub(super) fn from(begin: u64, ends_from: u64) -> Self {
        Self { begin, ends_from, until: None, again: Vec::new(), prompt: None }
    }

    /// Up to what is known, because some calls still wait.
    pub(super) fn still_waiting(begin: u64, known: u64, waiting: &[Call]) -> Self {
        let before = waiting.iter().filter(|call| call.at < begin);
        let again = before.map(Call::request).collect();
        Self { until: Some(known), again, ..Self::from(begin, known) }
    }

    /// From the announcement of a prompt on, which is searched from an entry on.
    pub(super) fn of_prompt(from: u64, key: IdempotencyKey) -> Self {
        Self { prompt: Some(Prompt(key)), ..Self::from(from, from) }
    }

    /// The turn that it is a part of.
    pub(super) fn turn(&self) -> Turn {
        Turn { begin: self.begin, ends_from: self.ends_from, prompt: self.prompt.clone() }
    }
}

/// A stream that is open.
struct Run {
    app: Arc<App>,
    record: SessionRecord,
    /// Where its files are, if they may be served.
    folder: Option<PathBuf>,
    prelude: Option<Prelude>,
    part: Part,
    /// The entry that is read next.
    position: u64,
    writer: Option<Writer>,
    tail: watch::Receiver<Tail>,
    stopping: watch::Receiver<bool>,
    ended: bool,
    _reader: Gauge,
    /// Its place among the readers of its token.
    _place: OwnedSemaphorePermit,
}

/// The response, whose body lasts as long as the run.
pub(super) fn response(
    app: &Arc<App>,
    (record, folder): (SessionRecord, Option<PathBuf>),
    prelude: Prelude,
    part: Part,
    place: OwnedSemaphorePermit,
) -> Response {
    let run = Run {
        tail: app.store().watch(&record.id),
        stopping: app.stopping.clone(),
        position: part.begin,
        app: Arc::clone(app),
        record,
        folder,
        prelude: Some(prelude),
        part,
        writer: None,
        ended: false,
        _reader: app.metrics.reader(),
        _place: place,
    };
    let records = stream::unfold(run, |mut run| async {
        let bytes = run.next().await?;
        Some((Ok::<_, Infallible>(bytes), run))
    });
    let mut response = Response::new(Body::from_stream(records));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/x-ndjson; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    let uncached = HeaderValue::from_static("no-cache, no-transform");
    headers.insert(header::CACHE_CONTROL, uncached);
    response
}

impl Run {
    /// The next records, or nothing if the run has ended.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(prelude) = self.prelude.take() {
            return Some(prelude.lines());
        }
        while !self.ended {
            self.tail.mark_unchanged();
            let mut out = Vec::new();
            if let Err(error) = self.read(&mut out).await {
                // The status was sent already. The message has nothing that the client may not know.
                failure(&error.message, &mut out);
                self.ended = true;
            }
            if !out.is_empty() {
                return Some(out.into());
            }
            if self.ended {
                break;
            }
            let is_awaited = self.part.prompt.is_some();
            let refused = tokio::select! {
                changed = self.tail.changed() => { self.ended |= changed.is_err(); None }
                () = App::stopped(&mut self.stopping) => { self.ended = true; None }
                () = tokio::time::sleep(LOOKED_UP), if is_awaited => self.refused().await,
            };
            if let Some(reason) = refused {
                self.ended = true;
                let mut out = Vec::new();
                failure(&reason, &mut out);
                return Some(out.into());
            }
        }
        None
    }

    /// Why the prompt of the run is refused, if it is.
    async fn refused(&mut self) -> Option<String> {
        self.part.prompt.as_ref()?.refused(&self.app, &self.record.id).await
    }

    /// Writes what there is.
    async fn read(&mut self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        loop {
            if self.part.until.is_some_and(|until| self.position >= until) {
                self.part.again.drain(..).for_each(|request| line(&request, out));
                self.ended = true;
                return Ok(());
            }
            let page = self.app.store().read(&self.record.id, self.position, PAGE).await?;
            if page.lines.is_empty() {
                self.ended = page.tail.closed;
                return Ok(());
            }
            for entry in lines(&page.lines) {
                if self.part.until.is_some_and(|until| self.position >= until) {
                    break;
                }
                self.entry(entry, out).await?;
                if self.ended {
                    return Ok(());
                }
            }
            tokio::task::consume_budget().await;
            if out.len() >= PAGE {
                return Ok(());
            }
        }
    }

    /// Takes the next entry.
    async fn entry(&mut self, stored: &[u8], out: &mut Vec<u8>) -> Result<(), ApiError> {
        if let Some(prompt) = &self.part.prompt {
            if prompt.begins(&self.app, &self.record.id, (self.position, stored)).await? {
                self.part.prompt = None;
                self.part.ends_from = self.position;
            } else {
                self.position += 1;
                return Ok(());
            }
        }
        let mut entry = parse(stored, &self.record.id, self.position)?;
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let dialect = &dialect::giselle::DIALECT;
                let form = Form { dialect, partial: false, each_turn: false };
                self.app.feeds.writer_at(&self.record, form, self.position).await?
            }
        };
        let ends = self.position >= self.part.ends_from && self.is_end(&entry);
        self.rename(&mut entry);
        writer.write(entry.borrowed(), out);
        self.writer = Some(writer);
        self.position += 1;
        if ends {
            self.ended = true;
            if let (Data::TurnEnded(_), Some(folder)) = (&entry.event.data, &self.folder) {
                files::artifacts(folder).await.iter().for_each(|made| line(made, out));
            }
        }
        Ok(())
    }

    fn is_end(&self, entry: &Entry) -> bool {
        match &entry.event.data {
            Data::TurnEnded(ended) => !ended.replay,
            Data::Suspended(_) => true,
            _ => false,
        }
    }

    /// Names the session by our id, by which a follow-up finds it. The agent's own changes.
    fn rename(&self, entry: &mut Entry) {
        let own = || Some(Text::from(self.record.id.to_string()));
        match &mut entry.event.data {
            Data::SessionStarted(started) if started.id.is_some() => started.id = own(),
            Data::SessionUpdated(updated) if updated.id.is_some() => updated.id = own(),
            _ => {}
        }
    }
}

impl Prelude {
    fn lines(self) -> Bytes {
        let Self { url, session, token, expires_at, sandbox } = self;
        let mut out = Vec::new();
        let relay = json!({
            "type": "relay.session", "relayUrl": url, "sessionId": session, "token": token,
            "expiresAt": expires_at,
        });
        line(&relay, &mut out);
        line(&json!({"type": "sandbox", "sandbox_id": sandbox}), &mut out);
        out.into()
    }
}

/// Writes why a run could not be completed: the status was sent already.
fn failure(message: &str, out: &mut Vec<u8>) {
    line(&json!({"type": "stderr", "content": format!("[error] {message}")}), out);
    let error = json!({"type": "failed", "message": message});
    line(&json!({"type": "result", "status": "error", "error": error}), out);
}

/// Writes a record of this interface's own.
fn line(record: &Value, out: &mut Vec<u8>) {
    if let Some(json) = Json::from_serialize(record) {
        out.extend_from_slice(json.get().as_bytes());
        out.push(b'\n');
    }
}
