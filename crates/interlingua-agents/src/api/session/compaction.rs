//! Requests a summary of older turns, when the conversation exceeds the context window.

use interlingua::event::{Compacted, Data, Outcome, Scope, Severity, Usage};
use interlingua::json::{Json, Text};
use interlingua::{EntryRef, ReadOptions, Reader, StreamEnd, TurnOwner};

use super::responses::Response;
use super::{Live, Work};
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

impl Compaction {
    pub(super) async fn next(&mut self) -> Received {
        self.response.next().await
    }

    fn push(&mut self, bytes: &[u8]) {
        let usage = &mut self.usage;
        let mut sink = |entry: EntryRef<'_>| keep_usage(entry, usage);
        let Ok(_) = self.reader.push(bytes, None, &mut self.response.collecting(&mut sink));
    }

    /// The summary, if the response ended properly.
    fn summary(&mut self) -> Option<String> {
        let usage = &mut self.usage;
        let mut sink = |entry: EntryRef<'_>| keep_usage(entry, usage);
        let mut sink = self.response.collecting(&mut sink);
        let Ok(_) = self.reader.end_stream(StreamEnd::TurnGoesOn, None, &mut sink);
        drop(sink);
        let end = self.reader.take_response_end()?;
        let collected = self.response.collect(true);
        let texts = collected.answer.content.into_iter().filter_map(|content| match content {
            Content::Text(text) => Some(text),
            Content::Call(_) => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let is_complete = end.outcome == Outcome::Completed && !text.trim().is_empty();
        is_complete.then_some(text)
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
    /// Requests a summary of the older turns.
    pub(super) fn compact(&mut self, overflow: Failure, body: String) {
        let api = self.agent.settings().api;
        let options = ReadOptions { turns: TurnOwner::Caller, ..ReadOptions::default() };
        let reader = api.dialect().and_then(|dialect| Reader::new(dialect.into(), options));
        let Ok(reader) = reader else { return self.fail(&overflow) };
        let response = self.open_response(body, None);
        self.notify(Severity::Info, "the conversation exceeds the context window: summarising it");
        let compaction = Compaction { response, reader, usage: None, overflow };
        self.work = Work::Compacting(Box::new(compaction));
    }

    pub(super) fn received_of_compaction(&mut self, received: Received) {
        let Work::Compacting(compaction) = &mut self.work else { return };
        if let Received::Bytes(bytes) = &received {
            compaction.push(bytes);
            self.clock.output_seen(std::time::Instant::now());
            return;
        }
        let Work::Compacting(mut compaction) = std::mem::replace(&mut self.work, Work::Running)
        else {
            return;
        };
        let summary = match received {
            Received::Ended => compaction.summary(),
            _ => None,
        };
        if let Some(usage) = &compaction.usage {
            self.agent.count(usage, super::now_ms());
        }
        match summary {
            Some(summary) => {
                self.agent.compacted(&summary);
                self.emit(Compacted {
                    trigger: Some(Text::plain("context_overflow")),
                    details: Json::from_serialize(&serde_json::json!({"summary": summary})),
                    ..Compacted::default()
                });
                self.send_request(None);
            }
            None => self.fail(&compaction.overflow),
        }
    }
}
