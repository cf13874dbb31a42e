//! Requests a summary of older turns, when the conversation exceeds the context window.

use std::time::Instant;

use interlingua::event::{Compacted, Data, ErrorClass, Outcome, Scope, Severity, Usage};
use interlingua::json::{Json, Text};
use interlingua::{EntryRef, ReadOptions, Reader, StreamEnd, TurnOwner};

use super::responses::{CLOSING, Response};
use super::{Again, Live, Work, after, jitter};
use crate::api::failure::Failure;
use crate::api::history::Content;
use crate::api::http::Received;

/// A request for a summary, and its response. It is no part of the session's stream.
pub(super) struct Compaction {
    response: Response,
    reader: Reader,
    usage: Option<Usage<'static>>,
    /// The failure that made it necessary.
    overflow: Failure,
}

/// Why there is no summary.
enum NoSummary {
    /// The request failed, and may be repeated.
    Failed(Failure),
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
        let usage = &mut self.usage;
        let mut sink = |entry: EntryRef<'_>| keep_usage(entry, usage);
        let Ok(_) = self.reader.push(bytes, None, &mut self.response.collecting(&mut sink));
        if self.reader.has_response_end() && self.response.closes_at.is_none() {
            self.response.closes_at = Some(after(CLOSING));
        }
    }

    /// The summary, if the response ended properly.
    fn summary(&mut self, failure: Option<Failure>) -> Result<String, NoSummary> {
        let usage = &mut self.usage;
        let mut sink = |entry: EntryRef<'_>| keep_usage(entry, usage);
        let mut sink = self.response.collecting(&mut sink);
        let Ok(_) = self.reader.end_stream(StreamEnd::TurnGoesOn, None, &mut sink);
        drop(sink);
        let end = self.reader.take_response_end().ok_or_else(|| {
            let cut_off = || Failure::new(ErrorClass::Network, "the summary was cut off");
            NoSummary::Failed(failure.unwrap_or_else(cut_off))
        })?;
        if end.outcome == Outcome::Failed {
            return Err(NoSummary::Failed(Failure::of_end(&end)));
        }
        let collected = self.response.collect(true);
        let texts = collected.answer.content.into_iter().filter_map(|content| match content {
            Content::Text(text) => Some(text),
            Content::Call(_) => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let is_complete = end.outcome == Outcome::Completed && !text.trim().is_empty();
        if is_complete { Ok(text) } else { Err(NoSummary::Unusable) }
    }
}

fn keep_usage(entry: EntryRef<'_>, usage: &mut Option<Usage<'static>>) {
    if let Data::MessageEnded(ended) = &entry.event.data
        && let Some(counts) = ended.usage.as_ref().filter(|it| it.scope == Scope::Request)
    {
        *usage = Some(super::outlets::owned(counts));
    }
}

impl Live {
    /// Summarises the older turns, because of an overflow of the context window.
    pub(super) fn compact(&mut self, overflow: Failure) {
        self.notify(
            Severity::Info,
            "the conversation exceeds the context window: summarising it, without its reasoning",
        );
        self.request_summary(overflow);
    }

    /// Requests a summary of the older turns.
    pub(super) fn request_summary(&mut self, overflow: Failure) {
        let api = self.agent.settings().api;
        let options = ReadOptions { turns: TurnOwner::Caller, ..ReadOptions::default() };
        let reader = api.dialect().and_then(|dialect| Reader::new(dialect.into(), options));
        let (Ok(reader), Some(body)) = (reader, self.agent.summary_body()) else {
            return self.fail(&overflow);
        };
        let response = self.open_response(body, None);
        let compaction = Compaction { response, reader, usage: None, overflow };
        self.work = Work::Compacting(Box::new(compaction));
    }

    pub(super) fn received_of_compaction(&mut self, received: Received) {
        let Work::Compacting(compaction) = &mut self.work else { return };
        if let Received::Bytes(bytes) = &received {
            compaction.push(bytes);
            self.clock.output_seen(Instant::now());
            return;
        }
        let Work::Compacting(mut compaction) = std::mem::replace(&mut self.work, Work::Running)
        else {
            return;
        };
        let summary = match received {
            Received::Failed(failure) => compaction.summary(Some(failure)),
            Received::Refused { status, headers, body } => {
                let api = self.agent.settings().api;
                Err(NoSummary::Failed(Failure::of_http(api, status, &headers, &body)))
            }
            Received::Ended | Received::Bytes(_) => compaction.summary(None),
        };
        if let Some(usage) = &compaction.usage {
            self.agent.count(usage, None, super::now_ms());
        }
        match summary {
            Ok(summary) => self.compacted(&summary),
            Err(NoSummary::Failed(failure)) => {
                let failure = self.without_key(failure);
                match self.agent.next_attempt(&failure, jitter()) {
                    Some(retry) => self.wait_for(&retry, Again::Summary(compaction.overflow)),
                    None => self.fail(&compaction.overflow),
                }
            }
            Err(NoSummary::Unusable) => self.fail(&compaction.overflow),
        }
    }

    /// The older turns are replaced by a summary, and the turn goes on.
    fn compacted(&mut self, summary: &str) {
        self.agent.compacted(summary);
        self.emit(Compacted {
            trigger: Some(Text::plain("context_overflow")),
            details: Json::from_serialize(&serde_json::json!({"summary": summary})),
            ..Compacted::default()
        });
        self.send_request(None);
    }
}
