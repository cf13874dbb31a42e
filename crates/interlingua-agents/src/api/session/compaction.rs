//! Requests a summary of what is older, when the conversation exceeds the context window.

use std::time::{Duration, Instant};

use interlingua::event::{Compacted, ErrorClass, Outcome, Severity};
use interlingua::json::{Json, Text};
use interlingua::{EntryRef, ReadOptions, Reader, StreamEnd, TurnOwner};

use super::outlets::Seen;
use super::responses::{Asked, CLOSING, Response};
use super::{Again, Live, Work, after, jitter};
use crate::api::failure::Failure;
use crate::api::history::Content;
use crate::api::http::Received;
use crate::api::model::AnswerEnd;
use crate::api::turns::{Next, Shortening};

/// A request for a summary, and its response. It is no part of the session's stream.
pub(super) struct Compaction {
    response: Response,
    reader: Reader,
    /// What the response contains, so that it can be counted.
    pub(super) seen: Seen,
    /// The failure that made it necessary.
    overflow: Failure,
    /// The cost that the provider reported.
    reported_usd: Option<f64>,
}

/// Why there is no summary.
enum NoSummary {
    /// The request failed, and may be repeated.
    Failed(Box<Failure>),
    /// The model answered with something else.
    Unusable,
}

impl Compaction {
    /// When the connection should be closed, because the response has ended.
    pub(super) fn closes_at(&self) -> Option<Instant> {
        self.response.closes_at
    }

    pub(super) async fn next(&mut self) -> Received {
        self.response.next().await
    }

    fn push(&mut self, bytes: &[u8]) {
        let seen = &mut self.seen;
        let mut sink = |entry: EntryRef<'_>| seen.observe(entry);
        let Ok(_) = self.reader.push(bytes, None, &mut self.response.collecting(&mut sink));
        if self.reader.has_response_end() && self.response.closes_at.is_none() {
            self.response.closes_at = Some(after(CLOSING));
        }
    }

    /// The summary, if the response ended properly.
    fn summary(&mut self, failure: Option<Failure>) -> Result<String, NoSummary> {
        let seen = &mut self.seen;
        let mut sink = |entry: EntryRef<'_>| seen.observe(entry);
        let mut sink = self.response.collecting(&mut sink);
        let Ok(_) = self.reader.end_stream(StreamEnd::TurnGoesOn, None, &mut sink);
        drop(sink);
        let end = self.reader.take_response_end().ok_or_else(|| {
            let cut_off = || Failure::new(ErrorClass::Network, "the summary was cut off");
            NoSummary::Failed(Box::new(failure.unwrap_or_else(cut_off)))
        })?;
        self.reported_usd = end.cost.as_ref().map(|cost| cost.usd);
        if end.outcome == Outcome::Failed {
            let details = self.seen.error_details.take();
            let failure = Failure::of_response(&end, details.as_deref());
            return Err(NoSummary::Failed(Box::new(failure)));
        }
        let collected = self.response.collect(AnswerEnd::of(&end.outcome));
        let texts = collected.answer.content.into_iter().filter_map(|content| match content {
            Content::Text(text) => Some(text),
            Content::Call(_) => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let is_complete = end.outcome == Outcome::Completed && !text.trim().is_empty();
        if is_complete { Ok(text) } else { Err(NoSummary::Unusable) }
    }
}

impl Live {
    /// Summarises what is older, because of an overflow of the context window.
    pub(super) fn compact(&mut self, overflow: Failure) {
        self.notify(
            Severity::Info,
            "the conversation exceeds the context window: summarising it, without its reasoning",
        );
        self.request_summary(overflow);
    }

    /// Requests a summary of what is older.
    pub(super) fn request_summary(&mut self, overflow: Failure) {
        let api = self.agent.settings().api;
        let options = ReadOptions { turns: TurnOwner::Caller, ..ReadOptions::default() };
        let reader = api.dialect().and_then(|dialect| Reader::new(dialect.into(), options));
        let (Ok(reader), Some(body)) = (reader, self.agent.summary_body()) else {
            return self.fail(&overflow);
        };
        let response = self.open_response(body, None);
        let compaction =
            Compaction { response, reader, seen: Seen::default(), overflow, reported_usd: None };
        self.work = Work::Compacting(Box::new(compaction));
    }

    pub(super) async fn received_of_compaction(&mut self, received: Received) {
        let Work::Compacting(compaction) = &mut self.work else { return };
        if let Received::Bytes(bytes) = &received {
            let bytes = compaction.response.redact(bytes, &mut self.redactor);
            compaction.push(&bytes);
            self.clock.output_seen(Instant::now());
            return;
        }
        let Work::Compacting(mut compaction) = std::mem::replace(&mut self.work, Work::Running)
        else {
            return;
        };
        let rest = compaction.response.redact_end(&mut self.redactor);
        compaction.push(&rest);
        let summary = match received {
            Received::Failed(failure) => compaction.summary(Some(failure)),
            Received::Refused { status, headers, body } => {
                let api = self.agent.settings().api;
                let failure = Failure::of_http(api, status, &headers, &body);
                Err(NoSummary::Failed(Box::new(failure)))
            }
            Received::Ended | Received::Bytes(_) => compaction.summary(None),
        };
        let Compaction { mut seen, overflow, reported_usd, .. } = *compaction;
        self.count(&mut seen, Asked::Summary, reported_usd).await;
        match summary {
            Ok(summary) => self.compacted(&summary),
            Err(NoSummary::Failed(failure)) => {
                let failure = self.without_key(*failure);
                match self.agent.summary_failed(&failure, overflow.clone(), jitter()) {
                    Next::Retry(retry) => self.wait_for(&retry, Again::Summary(overflow)),
                    Next::Shorten(shortening) => self.shorten(*shortening),
                    next => self.follow(next),
                }
            }
            Err(NoSummary::Unusable) => self.fail(&overflow),
        }
    }

    /// The request for a summary exceeds the context window, too.
    pub(super) fn shorten(&mut self, shortening: Shortening) {
        let Shortening { overflow, failure, left_out, attempt, of } = shortening;
        self.emit(failure.to_retry(attempt, of, Duration::ZERO));
        let notice = format!(
            "the request for a summary exceeds the context window, too: it is made of less, without {left_out} bytes \
             of the conversation"
        );
        self.notify(Severity::Warning, &notice);
        self.request_summary(overflow);
    }

    /// What is older is replaced by a summary, and the turn goes on.
    fn compacted(&mut self, summary: &str) {
        let mut details = serde_json::json!({"summary": summary});
        let left_out = self.agent.left_out_of_summary();
        if let Some(details) = details.as_object_mut().filter(|_| left_out > 0) {
            details.insert("left_out_bytes".to_owned(), left_out.into());
        }
        let next = self.agent.compacted(summary);
        self.emit(Compacted {
            trigger: Some(Text::plain("context_overflow")),
            details: Json::from_serialize(&details),
            ..Compacted::default()
        });
        self.follow(next);
    }
}
