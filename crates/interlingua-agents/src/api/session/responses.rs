//! Requests to the model, and their responses.

use std::time::{Duration, Instant};

use interlingua::event::{ErrorClass, Native, Outcome, TurnEnded, Withdrawn};
use interlingua::framing::FrameText;
use interlingua::json::{Json, Text, mend_surrogates};
use interlingua::{EntryRef, Flow, Sink, StreamEnd};

use super::outlets::Seen;
use super::{Live, StreamState, Work, after, jitter, now_ms};
use crate::api::estimate::{estimate, estimate_by_length};
use crate::api::failure::Failure;
use crate::api::http::{Exchange, Received};
use crate::api::model::{Collected, Collector, ModelApi};
use crate::api::resume::{ProviderId, StoredAnswer};
use crate::api::turns::Next;

/// A response that is being read.
pub(super) struct Response {
    exchange: Exchange,
    collector: Box<dyn Collector>,
}

/// A sink that also collects the answer, from the frames that the entries are read from.
struct Collecting<'r, S> {
    collector: &'r mut dyn Collector,
    sink: &'r mut S,
}

impl<S: Sink> Sink for Collecting<'_, S> {
    type Error = S::Error;

    fn begin(&mut self, id_seed: u64) -> Result<Flow, S::Error> {
        self.sink.begin(id_seed)
    }

    fn frame(&mut self, frame: &FrameText<'_>) {
        self.collector.record(frame.event, &mend_surrogates(frame.text));
    }

    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, S::Error> {
        self.sink.entry(entry)
    }
}

/// What arrives next of the response; without one, it waits forever.
pub(super) async fn next(work: &mut Work) -> Received {
    match work {
        Work::Responding(response) => response.next().await,
        Work::Compacting(compaction) => compaction.next().await,
        _ => std::future::pending().await,
    }
}

impl Response {
    /// What arrives next.
    pub(super) async fn next(&mut self) -> Received {
        self.exchange.next().await
    }

    /// A sink for the reader of the response, which collects the answer.
    pub(super) fn collecting<'r, S: Sink>(
        &'r mut self,
        sink: &'r mut S,
    ) -> impl Sink<Error = S::Error> {
        Collecting { collector: self.collector.as_mut(), sink }
    }

    /// What the response contributes to the history, once its stream was read to its end.
    pub(super) fn collect(&mut self, complete: bool) -> Collected {
        self.collector.answer(complete)
    }
}

impl Live {
    /// Sends the next request. A response that is continued keeps what it has.
    pub(super) fn send_request(&mut self, continued: Option<Box<Response>>) {
        let body = self.agent.body();
        self.outlets.seen = Seen::default();
        if self.stream == StreamState::Ended {
            let dialect = self.agent.settings().api.dialect();
            let next = dialect.and_then(|dialect| self.reader.next_stream(dialect.into()));
            // The dialects of model APIs are read, and the stream before has ended.
            debug_assert!(next.is_ok());
            self.stream = StreamState::Fresh;
        }
        let collector = continued.map(|response| response.collector);
        let response = self.open_response(body, collector);
        self.clock.output_seen(Instant::now());
        self.work = Work::Responding(Box::new(response));
    }

    /// Sends a request.
    pub(super) fn open_response(
        &self,
        body: String,
        collector: Option<Box<dyn Collector>>,
    ) -> Response {
        let kind = self.agent.settings().api;
        let api: &dyn ModelApi = kind.api();
        let path = api.path(&self.agent.settings().model);
        let exchange = self.client.send(&path, api.headers(self.client.key()), body);
        let collector = collector.unwrap_or_else(|| api.collector());
        Response { exchange, collector }
    }

    /// The delay before the next attempt has passed.
    pub(super) fn send_again(&mut self) {
        if let Work::Waiting(_, continued) = std::mem::replace(&mut self.work, Work::Idle) {
            self.send_request(continued);
        }
    }

    pub(super) async fn received(&mut self, received: Received) {
        if matches!(self.work, Work::Compacting(_)) {
            return self.received_of_compaction(received);
        }
        match received {
            Received::Bytes(bytes) => self.read(&bytes),
            Received::Ended => self.response_ended(None).await,
            Received::Failed(failure) => self.response_ended(Some(failure)).await,
            Received::Refused { status, headers, body } => {
                let api = self.agent.settings().api;
                let mut failure = Failure::of_http(api, status, &headers, &body);
                failure.message = self.without_key(&failure.message);
                let next = self.agent.failed(failure, None, jitter());
                self.follow_failure(next);
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let Work::Responding(response) = &mut self.work else { return };
        self.clock.output_seen(Instant::now());
        self.stream = StreamState::Used;
        if let Some(record) = &mut self.record {
            record.printed(bytes);
        }
        let mut sink = response.collecting(&mut self.outlets);
        let Ok(_) = self.reader.push(bytes, Some(now_ms()), &mut sink);
        drop(sink);
        if self.outlets.seen.content {
            self.clock.progressed();
        }
    }

    /// Ends the stream of the current response. Its last frame may end with it.
    pub(super) fn end_stream(&mut self, response: Option<&mut Response>) {
        if self.stream == StreamState::Used {
            let (end, now) = (StreamEnd::TurnGoesOn, Some(now_ms()));
            let Ok(_) = match response {
                Some(response) => {
                    let mut sink = response.collecting(&mut self.outlets);
                    self.reader.end_stream(end, now, &mut sink)
                }
                None => self.reader.end_stream(end, now, &mut self.outlets),
            };
            self.stream = StreamState::Ended;
        }
    }

    async fn response_ended(&mut self, failure: Option<Failure>) {
        let Work::Responding(mut response) = std::mem::replace(&mut self.work, Work::Running)
        else {
            return;
        };
        self.end_stream(Some(&mut response));
        let end = self.reader.take_response_end();
        let mut seen = std::mem::take(&mut self.outlets.seen);
        let has_content = seen.content;
        self.count(&mut seen).await;
        let next = match end {
            Some(end)
                if end.outcome == Outcome::WaitingForClient
                    && seen.calls.is_empty()
                    && let Some(token) = response.collector.continuation() =>
            {
                return match self.agent.continues(token) {
                    Next::Request => self.send_request(Some(response)),
                    next => self.follow(next),
                };
            }
            Some(end) if end.outcome != Outcome::Failed => {
                let collected = response.collect(end.outcome != Outcome::Refused);
                return self.responded(&end, collected, seen);
            }
            Some(end) => {
                let mut failure = Failure::of_response(&end);
                failure.message = self.without_key(&failure.message);
                self.agent.failed(failure, None, jitter())
            }
            None => {
                let mut failure = failure.unwrap_or_else(|| cut_off(&seen));
                failure.message = self.without_key(&failure.message);
                let continuation = response.collector.continuation();
                self.agent.failed(failure, continuation, jitter())
            }
        };
        self.outlets.seen.content = has_content;
        if let Next::Retry { continues: true, .. } = &next {
            self.work = Work::Responding(response);
        }
        self.follow_failure(next);
    }

    fn responded(&mut self, end: &TurnEnded<'_>, collected: Collected, mut seen: Seen) {
        self.clock.progressed();
        let settings = self.agent.settings();
        let calls = collected.answer.calls();
        let stored = StoredAnswer {
            api: settings.api.dialect_name().to_owned(),
            model: settings.model.clone(),
            messages: collected.messages.clone(),
            calls: calls.map(|it| ProviderId { id: it.id.clone(), unnamed: it.unnamed }).collect(),
        };
        let next = self.agent.responded(end, collected, seen.take_calls());
        if !stored.messages.is_empty() && end.outcome != Outcome::Refused {
            self.keep_native("answer", &stored);
        }
        self.follow(next);
    }

    /// Keeps what a resumed session needs, in the log of the session.
    pub(super) fn keep_native(&mut self, name: &'static str, value: &impl serde::Serialize) {
        if let Some(raw) = Json::from_serialize(value) {
            self.emit(Native { name: Text::plain(name), raw: Some(raw) });
        }
    }

    pub(super) fn keep_partial(&mut self, collected: Option<Collected>) {
        self.agent.interrupted(collected);
    }

    /// Follows what the loop decided about a failed request.
    fn follow_failure(&mut self, next: Next) {
        match next {
            Next::Retry { failure, delay, attempt, of, continues } => {
                self.retry(&failure, delay, attempt, of, continues);
            }
            Next::End(ended) => self.fail(&Failure::of_response(&ended)),
            Next::Compact { failure, body } => {
                self.withdraw(&failure.message);
                self.compact(failure, body);
            }
            Next::Request => {
                self.withdraw("the request is sent again in another form");
                self.send_request(None);
            }
            Next::Remind(_) | Next::Run(_) => {}
        }
    }

    /// Ends the turn, because a request failed for good.
    pub(super) fn fail(&mut self, failure: &Failure) {
        let ended = self.agent.ended(failure.to_turn_ended());
        self.emit(failure.to_error());
        self.end_stream(None);
        self.end_turn(ended);
    }

    pub(super) fn retry(
        &mut self,
        failure: &Failure,
        delay: Duration,
        attempt: u32,
        of: u32,
        continues: bool,
    ) {
        let continued = match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Responding(response) if continues => Some(response),
            _ => None,
        };
        if !continues {
            self.withdraw(&failure.message);
        }
        self.emit(failure.to_retry(attempt, of, delay));
        self.clock.retried(Instant::now());
        self.work = Work::Waiting(after(delay), continued);
    }

    /// Withdraws what a response showed that is requested again.
    fn withdraw(&mut self, why: &str) {
        if std::mem::take(&mut self.outlets.seen.content) {
            let reason = Some(Text::from(why.to_owned()));
            self.emit(Withdrawn { reason, ..Withdrawn::default() });
        }
    }

    /// Counts the tokens of a request. Those that the provider did not report are estimated.
    async fn count(&mut self, seen: &mut Seen) {
        let usage = match seen.reported() {
            Some(usage) => usage,
            None if seen.has_output() => {
                let (sent, received) = (self.agent.body(), std::mem::take(&mut seen.text));
                let counted = tokio::task::spawn_blocking(move || estimate(&sent, &received));
                let Ok(usage) = counted.await else { return };
                usage
            }
            None => return,
        };
        self.agent.count(&usage, now_ms());
    }

    /// Counts the tokens of a request whose response is not awaited any more.
    pub(super) fn count_interrupted(&mut self) {
        let seen = std::mem::take(&mut self.outlets.seen);
        let usage = match seen.reported() {
            Some(usage) => usage,
            None if seen.has_output() => estimate_by_length(&self.agent.body(), &seen.text),
            None => return,
        };
        self.agent.count(&usage, now_ms());
    }

    /// A message of the provider without the key, which some providers quote.
    fn without_key(&mut self, message: &str) -> String {
        crate::api::key::mask(&self.redactor.redact_text(message), self.client.key())
    }
}

/// Why a response has no end.
fn cut_off(seen: &Seen) -> Failure {
    match &seen.unreadable {
        Some(text) if !seen.message && !text.trim().is_empty() => {
            let shown: String = text.trim().chars().take(200).collect();
            let message = format!(
                "the answer is not a response of this API: check the address of the server. It begins with: {shown}"
            );
            Failure::new(ErrorClass::Configuration, message)
        }
        _ if !seen.message => {
            Failure::new(ErrorClass::Network, "the server sent an empty response")
        }
        _ => Failure::new(ErrorClass::Network, "the response was cut off before its end"),
    }
}
