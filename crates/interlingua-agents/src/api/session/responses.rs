//! Requests to the model, and their responses.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use interlingua::event::{ErrorClass, Outcome, Severity, TurnEnded, Withdrawn};
use interlingua::framing::FrameText;
use interlingua::json::Text;
use interlingua::{EntryRef, Flow, Sink, StreamEnd};

use super::outlets::Seen;
use super::{Again, Live, StreamState, Work, after, jitter, now_ms};
use crate::api::estimate::{completed, completed_by_length, estimate, estimate_by_length};
use crate::api::failure::Failure;
use crate::api::http::{Exchange, Received};
use crate::api::model::{AnswerEnd, Collected, Collector, ModelApi};
use crate::api::turns::{Next, NextAttempt};
use crate::redaction::{HeldBack, Redactor};

/// How long a server may keep the connection open after the end of its response.
pub(super) const CLOSING: Duration = Duration::from_millis(500);

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    /// The next answer.
    Answer,
    /// A summary of what is older.
    Summary,
}

/// A response that is being read.
pub(super) struct Response {
    /// It has ended, so that the connection should be closed by then.
    pub(super) closes_at: Option<Instant>,
    /// What may be the beginning of a key, at the end of what was received.
    held_back: HeldBack,
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
        self.collector.record(frame.event, frame.text);
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
    pub(super) fn collect(&mut self, end: AnswerEnd) -> Collected {
        self.collector.answer(end)
    }

    /// Takes bytes of the response, without keys. What may be the beginning of one is held back.
    pub(super) fn redact<'b>(&mut self, bytes: &'b [u8], redactor: &mut Redactor) -> Cow<'b, [u8]> {
        redactor.redact_chunk(bytes, &mut self.held_back)
    }

    /// What was held back, at the end of the response.
    pub(super) fn redact_end(&mut self, redactor: &mut Redactor) -> Vec<u8> {
        redactor.redact_end(std::mem::take(&mut self.held_back))
    }
}

impl Live {
    /// Sends the next request. A response that is continued keeps what it has.
    pub(super) fn send_request(&mut self, continued: Option<Box<Response>>) {
        if let Some(why) = self.client.missing_key() {
            let failure = Failure::new(ErrorClass::Authentication, why);
            return self.fail(&failure);
        }
        let body = self.agent.body();
        match continued {
            Some(_) => self.outlets.seen.continued(),
            None => self.outlets.seen = Seen::default(),
        }
        self.begin_stream(continued.is_some());
        let collector = continued.map(|response| response.collector);
        let response = self.open_response(body, collector);
        self.agent.requested();
        self.clock.output_seen(Instant::now());
        self.work = Work::Responding(Box::new(response));
    }

    /// Lets the reader take the next response, or what continues the one before.
    pub(super) fn begin_stream(&mut self, continues: bool) {
        if self.stream == StreamState::Continuing && !continues {
            // Nothing has come of it, and the next response has nothing to do with the one before.
            let (end, now) = (StreamEnd::TurnGoesOn, Some(now_ms()));
            let Ok(_) = self.reader.end_stream(end, now, &mut self.outlets);
            self.stream = StreamState::Ended;
        }
        if self.stream != StreamState::Ended {
            return;
        }
        let dialect = self.agent.settings().api.dialect();
        let next = dialect.and_then(|dialect| match continues {
            true => self.reader.continue_response(dialect.into()),
            false => self.reader.next_stream(dialect.into()),
        });
        // The dialects of model APIs are read, and the stream before has ended.
        debug_assert!(next.is_ok());
        self.stream = if continues { StreamState::Continuing } else { StreamState::Fresh };
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
        let collector = collector.unwrap_or_else(|| self.agent.collector());
        Response { closes_at: None, held_back: HeldBack::default(), exchange, collector }
    }

    /// The delay before the next attempt has passed.
    pub(super) fn send_again(&mut self) {
        match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Waiting(_, Again::Request(continued)) => self.send_request(continued),
            Work::Waiting(_, Again::Summary(overflow)) => self.request_summary(overflow),
            other => self.work = other,
        }
    }

    pub(super) async fn received(&mut self, received: Received) {
        if matches!(self.work, Work::Compacting(_)) {
            return self.received_of_compaction(received).await;
        }
        match received {
            Received::Bytes(bytes) => self.read(&bytes),
            Received::Ended => self.response_ended(None).await,
            Received::Failed(failure) => self.response_ended(Some(failure)).await,
            Received::Refused { status, headers, body } => {
                let api = self.agent.settings().api;
                let failure = self.without_key(Failure::of_http(api, status, &headers, &body));
                // A request that continues a response does so again.
                let continuation = match &self.work {
                    Work::Responding(response) => response.collector.continuation(),
                    _ => None,
                };
                let next = self.agent.failed(failure, continuation, jitter());
                self.follow(next);
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let Work::Responding(response) = &mut self.work else { return };
        let bytes = &*response.redact(bytes, &mut self.redactor);
        self.clock.output_seen(Instant::now());
        self.stream = StreamState::Used;
        if let Some(record) = &mut self.record {
            record.printed(bytes);
        }
        let mut sink = response.collecting(&mut self.outlets);
        let Ok(_) = self.reader.push(bytes, Some(now_ms()), &mut sink);
        drop(sink);
        if self.reader.has_response_end() && response.closes_at.is_none() {
            response.closes_at = Some(after(CLOSING));
        }
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
        let rest = response.redact_end(&mut self.redactor);
        if !rest.is_empty() {
            let mut sink = response.collecting(&mut self.outlets);
            let Ok(_) = self.reader.push(&rest, Some(now_ms()), &mut sink);
        }
        self.end_stream(Some(&mut response));
        let end = self.reader.take_response_end();
        let reported_usd = end.as_ref().and_then(|end| end.cost.as_ref()).map(|cost| cost.usd);
        let mut seen = std::mem::take(&mut self.outlets.seen);
        self.count(&mut seen, Asked::Answer, reported_usd).await;
        self.outlets.seen = seen;
        let next = match end {
            Some(end) if end.to_be_continued => {
                let (token, seen) = (response.collector.continuation(), &self.outlets.seen);
                let next = self.agent.continues(token, seen.has_advanced());
                match next {
                    Some(Next::Request) => return self.send_request(Some(response)),
                    Some(next) => next,
                    None => self.agent.failed(cut_off(seen), None, jitter()),
                }
            }
            Some(end) if end.outcome != Outcome::Failed || end.has_only_malformed_calls() => {
                let collected = response.collect(AnswerEnd::of(&end.outcome));
                return self.responded(&end, collected);
            }
            Some(end) => {
                let details = self.outlets.seen.error_details.take();
                let failure = Failure::of_response(&end, details.as_deref());
                let failure = self.without_key(failure);
                self.agent.failed(failure, None, jitter())
            }
            None => {
                let failure = failure.unwrap_or_else(|| cut_off(&self.outlets.seen));
                let failure = self.without_key(failure);
                let continuation = response.collector.continuation();
                self.agent.failed(failure, continuation, jitter())
            }
        };
        if let Next::Retry(NextAttempt { continues: true, .. }) = &next {
            self.work = Work::Responding(response);
        }
        self.follow(next);
    }

    fn responded(&mut self, end: &TurnEnded<'_>, collected: Collected) {
        self.clock.progressed();
        let calls = self.outlets.seen.take_calls(self.reader.response_calls());
        let calls = self.as_offered(calls);
        let next = self.agent.responded(end, collected, calls);
        self.follow(next);
    }

    pub(super) fn keep_partial(&mut self, collected: Option<Collected>) {
        self.agent.interrupted(collected);
    }

    /// Ends the turn, because it failed for good.
    pub(super) fn fail(&mut self, failure: &Failure) {
        let ended = self.agent.ended(failure.to_turn_ended());
        self.emit(failure.to_error());
        self.end_stream(None);
        self.end_turn(ended);
    }

    pub(super) fn retry(&mut self, retry: NextAttempt) {
        let continued = match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Responding(response) if retry.continues => Some(response),
            _ => None,
        };
        if !retry.continues {
            self.withdraw(&retry.failure.message);
        }
        self.wait_for(&retry, Again::Request(continued));
    }

    /// Sends a request at once in another form.
    pub(super) fn send_adapted(
        &mut self,
        failure: &Failure,
        notice: Option<&'static str>,
        attempt: u32,
        of: u32,
    ) {
        self.emit(failure.to_retry(attempt, of, Duration::ZERO));
        if let Some(notice) = notice {
            self.notify(Severity::Warning, notice);
        }
        self.send_request(None);
    }

    /// Waits before the next attempt.
    pub(super) fn wait_for(&mut self, retry: &NextAttempt, again: Again) {
        self.emit(retry.failure.to_retry(retry.attempt, retry.of, retry.delay));
        self.clock.retried(Instant::now());
        self.work = Work::Waiting(after(retry.delay), again);
    }

    /// Withdraws what a response showed that is requested again.
    pub(super) fn withdraw(&mut self, why: &str) {
        if std::mem::take(&mut self.outlets.seen.content) {
            let reason = Some(Text::from(why.to_owned()));
            self.emit(Withdrawn { reason, ..Withdrawn::default() });
        }
    }

    /// Counts the tokens of a request. Those that the provider did not report are estimated.
    pub(super) async fn count(&mut self, seen: &mut Seen, asked: Asked, reported_usd: Option<f64>) {
        let usage = match seen.take_reported() {
            Some(usage) => usage,
            None if seen.has_begun() => {
                let (begun, received) = (seen.begun.take(), std::mem::take(&mut seen.text));
                let sent = self.body_of(asked);
                let counted = tokio::task::spawn_blocking(move || match begun {
                    Some(begun) => completed(begun, &received),
                    None => estimate(&sent, &received),
                });
                let Ok(usage) = counted.await else { return };
                usage
            }
            None => return,
        };
        seen.counted();
        self.agent.count(&usage, reported_usd, now_ms());
    }

    /// Counts the tokens of a request whose response is not awaited any more.
    pub(super) fn count_interrupted(&mut self, mut seen: Seen, asked: Asked) {
        let usage = match seen.take_reported() {
            Some(usage) => usage,
            None if seen.has_begun() => match seen.begun.take() {
                Some(begun) => completed_by_length(begun, &seen.text),
                None => estimate_by_length(&self.body_of(asked), &seen.text),
            },
            None => return,
        };
        self.agent.count(&usage, None, now_ms());
    }

    /// The body of the request that was sent last.
    fn body_of(&mut self, asked: Asked) -> String {
        match asked {
            Asked::Answer => self.agent.body(),
            Asked::Summary => self.agent.summary_body().unwrap_or_default(),
        }
    }

    /// A failure without the key, which some providers quote.
    pub(super) fn without_key(&mut self, failure: Failure) -> Failure {
        let message = self.redactor.redact_text(&failure.message);
        Failure { message: crate::api::key::mask(&message, self.client.key()), ..failure }
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
