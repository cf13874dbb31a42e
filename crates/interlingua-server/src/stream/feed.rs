//! Reads the log of a session in one dialect, from a position on.
//!
//! A feed subscribes to the log before it reads, and it reads pages from the store. So it skips
//! nothing, and a reader that is slow reads later. It knows no HTTP.

use std::sync::Arc;

use interlingua::{Entry, Writer, dialect};
use interlingua_sessions::{SessionId, SessionRecord, Store, Tail};
use tokio::sync::watch;

use super::records::{Records, lines};
use super::turns::{TurnIndex, Window};
use super::writers::{Form, Placed, WriterKey, Writers};
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::offset::Offset;

/// How many bytes of the log are read for each byte of a response, before the response is sent
/// with what there is. Most entries are written in some form by every dialect.
const SEARCHED_PER_SERVED: usize = 8;

/// How many bytes are read at a time while a writer is advanced.
const REPLAY_PAGE: usize = 256 * 1024;

/// What all feeds share.
pub(crate) struct Feeds {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) writers: Writers,
    pub(crate) turns: TurnIndex,
    pub(crate) metrics: Arc<Metrics>,
}

impl Feeds {
    /// The writer at a position of a log: a cached one, or one that replays the log.
    pub(crate) async fn writer_at(
        &self,
        record: &SessionRecord,
        form: Form,
        position: u64,
    ) -> Result<Writer, ApiError> {
        let Self { store, writers, metrics, .. } = self;
        let key = WriterKey::new(record, form);
        let Placed { position: mut at, mut writer } = match writers.nearest(&key, position, metrics)
        {
            Some(placed) => placed,
            None => {
                let first = key.first_writer(form.dialect);
                let writer = first
                    .map_err(|error| ApiError::bad_request("unknown_dialect", error.to_string()))?;
                Placed { position: 0, writer }
            }
        };
        while at < position {
            let page = store.read(&record.id, at, REPLAY_PAGE).await?;
            let skipped = page.next.min(position) - at;
            if skipped == 0 {
                break;
            }
            for line in lines(first_lines(&page.lines, skipped)) {
                writer.advance(parse(line, &record.id, at)?.borrowed());
                at += 1;
            }
            tokio::task::consume_budget().await;
        }
        Ok(writer)
    }
}

/// A reader of a log.
pub(crate) struct Feed {
    feeds: Arc<Feeds>,
    record: SessionRecord,
    form: Form,
    turn: Option<u64>,
    key: WriterKey,
    /// Wakes a live reader.
    tail: Option<watch::Receiver<Tail>>,
    position: u64,
    /// What the stream ends with at the position was read, too.
    ended: bool,
    /// The writer, at the position. It is not needed for `events`.
    writer: Option<Writer>,
}

/// The records of a range of entries.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) records: Records,
    /// Where the range begins.
    pub(crate) from: Offset,
    /// Where the reader goes on.
    pub(crate) next: Offset,
    /// The range reaches the end of the log.
    pub(crate) up_to_date: bool,
    /// The range reaches the end of the log, which will not grow.
    pub(crate) closed: bool,
}

/// The end of what a feed can read.
struct Limit {
    next: u64,
    closed: bool,
}

impl Feed {
    /// A feed that begins after what was read before.
    pub(crate) fn new(
        feeds: Arc<Feeds>,
        record: SessionRecord,
        form: Form,
        turn: Option<u64>,
        Offset { entries: position, ended }: Offset,
    ) -> Self {
        let key = WriterKey::new(&record, form);
        Self { feeds, record, form, turn, key, tail: None, position, ended, writer: None }
    }

    /// Where the next records begin.
    pub(crate) fn offset(&self) -> Offset {
        Offset { entries: self.position, ended: self.ended }
    }

    /// The end of a stream whose log is gone, for a reader that has read up to an offset.
    pub(crate) fn closed_at(&self, offset: Offset) -> Batch {
        let records = Records::new(self.form.dialect.written);
        Batch { records, from: offset, next: offset, up_to_date: true, closed: true }
    }

    /// When the session was created.
    pub(crate) fn created_at(&self) -> u64 {
        self.record.created_at
    }

    /// Subscribes to the log, before it is read.
    pub(crate) fn subscribe(&mut self) {
        self.tail = Some(self.feeds.store.watch(&self.record.id));
    }

    /// The end of what can be read, and whether it is final.
    pub(crate) async fn end(&mut self) -> Result<(u64, bool), ApiError> {
        let page = self.feeds.store.read(&self.record.id, u64::MAX, 0).await?;
        let limit = Limit::new(page.tail, self.window().await?);
        Ok((limit.next, limit.closed))
    }

    /// Continues at the end.
    pub(crate) async fn skip_to_end(&mut self) -> Result<(), ApiError> {
        let (end, closed) = self.end().await?;
        // What a dialect writes at the end of a stream is a part of what is skipped.
        (self.position, self.ended) = (end, closed && !self.passes_lines());
        Ok(())
    }

    /// An offset that the log has not reached belongs to another session.
    fn check_against(&self, tail: Tail) -> Result<(), ApiError> {
        if self.position <= tail.next {
            return Ok(());
        }
        Err(ApiError::bad_request(
            "offset_beyond_end",
            "the offset is beyond the end of this session: use one from its own `Stream-Next-Offset`",
        ))
    }

    /// Waits until the log may have grown, or was closed or deleted.
    pub(crate) async fn wait(&mut self) {
        let is_awake = match &mut self.tail {
            Some(tail) => tail.changed().await.is_ok(),
            None => false,
        };
        if !is_awake {
            // No one reports changes: the caller's time limit ends the wait.
            std::future::pending::<()>().await;
        }
    }

    /// Reads on, until about `limit` bytes are collected or the end is reached.
    pub(crate) async fn read(&mut self, limit: usize) -> Result<Batch, ApiError> {
        // What is committed from here on wakes the next `wait`.
        if let Some(tail) = &mut self.tail {
            tail.mark_unchanged();
        }
        let window = self.window().await?;
        let mut records = Records::new(self.form.dialect.written);
        let from = self.offset();
        // A stream that is not closed there has not ended, whatever the reader has read elsewhere.
        self.ended = false;
        let mut budget = limit.saturating_mul(SEARCHED_PER_SERVED);
        let end = loop {
            if let Some(window) = window {
                self.skip_to(window.start);
            }
            let missing = limit.saturating_sub(records.len()).max(1);
            let page = self.feeds.store.read(&self.record.id, self.position, missing).await?;
            self.check_against(page.tail)?;
            let end = Limit::new(page.tail, window);
            let wanted = end.next.saturating_sub(self.position);
            let read =
                first_lines(&page.lines, wanted.min(page.next.saturating_sub(self.position)));
            budget = budget.saturating_sub(read.len());
            self.write(read, &mut records, limit).await?;
            if self.position >= end.next || records.len() >= limit || budget == 0 {
                break end;
            }
            tokio::task::consume_budget().await;
        };
        let up_to_date = self.position >= end.next;
        let closed = up_to_date && end.closed;
        if closed && self.position == end.next {
            let was_read = from == Offset { entries: self.position, ended: true };
            self.ended = was_read || self.finish(&mut records).await?;
        }
        let next = self.offset();
        self.feeds.metrics.served(next.entries.saturating_sub(from.entries), records.len());
        Ok(Batch { records, from, next, up_to_date, closed })
    }

    async fn window(&mut self) -> Result<Option<Window>, ApiError> {
        let Some(turn) = self.turn else { return Ok(None) };
        let Feeds { store, turns, .. } = &*self.feeds;
        Ok(Some(turns.window(&**store, &self.record, turn).await?))
    }

    /// Leaves out entries that are not wanted.
    fn skip_to(&mut self, position: u64) {
        if position > self.position {
            self.park();
            self.position = position;
        }
    }

    /// Whether the stored lines are the records.
    fn passes_lines(&self) -> bool {
        self.form.dialect == &dialect::events::DIALECT
    }

    /// Writes entries, until the records are long enough.
    async fn write(
        &mut self,
        page: &[u8],
        records: &mut Records,
        limit: usize,
    ) -> Result<(), ApiError> {
        // The fast path. A store keeps entries as records of `events`, so they need not be parsed.
        if self.passes_lines() {
            records.append(page);
            self.position += count_lines(page);
            return Ok(());
        }
        if page.is_empty() {
            return Ok(());
        }
        let mut writer = self.take_writer().await?;
        let mut bytes = Vec::new();
        for line in lines(page) {
            let entry = parse(line, &self.record.id, self.position)?;
            bytes.clear();
            writer.write(entry.borrowed(), &mut bytes);
            records.append(&bytes);
            self.position += 1;
            if records.len() >= limit {
                break;
            }
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// Writes what the writer held back, and returns whether that was something. The writer itself is
    /// kept as it was, since a reader may read the end again.
    async fn finish(&mut self, records: &mut Records) -> Result<bool, ApiError> {
        if self.passes_lines() {
            return Ok(false);
        }
        let writer = self.take_writer().await?;
        self.writer = Some(writer.clone());
        let mut bytes = Vec::new();
        writer.finish(&mut bytes);
        let before = records.len();
        records.append(&bytes);
        Ok(records.len() > before)
    }

    /// The writer at the position: the one of this feed, a cached one, or one that replays the log.
    async fn take_writer(&mut self) -> Result<Writer, ApiError> {
        if let Some(writer) = self.writer.take() {
            return Ok(writer);
        }
        self.feeds.writer_at(&self.record, self.form, self.position).await
    }

    /// Keeps the writer for the next reader.
    fn park(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.feeds.writers.keep(&self.key, Placed { position: self.position, writer });
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.park();
    }
}

impl Limit {
    fn new(tail: Tail, window: Option<Window>) -> Self {
        match window {
            None => Self { next: tail.next, closed: tail.closed },
            Some(Window { end: Some(end), .. }) => Self { next: end, closed: true },
            Some(Window { searched, .. }) => {
                Self { next: searched, closed: tail.closed && searched >= tail.next }
            }
        }
    }
}

/// Parses a stored entry. What is wrong with it is not logged, since it may quote the entry.
pub(crate) fn parse(line: &[u8], id: &SessionId, number: u64) -> Result<Entry, ApiError> {
    serde_json::from_slice(line).map_err(|_| {
        let problem = format!("entry {number} of the session {id} cannot be read");
        ApiError::internal("a stored entry", &problem)
    })
}

/// The first lines, with their line feeds.
fn first_lines(bytes: &[u8], count: u64) -> &[u8] {
    let Some(last) = usize::try_from(count).ok().and_then(|count| count.checked_sub(1)) else {
        return &[];
    };
    let end = memchr::memchr_iter(b'\n', bytes).nth(last);
    end.and_then(|end| bytes.get(..=end)).unwrap_or(bytes)
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
