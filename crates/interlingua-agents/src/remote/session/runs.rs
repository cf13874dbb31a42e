//! Runs: requests to the service, and what their responses stream.

use std::time::Instant;

use interlingua::event::{ErrorClass, Outcome, Severity};
use interlingua::{Stopped, StreamEnd, dialect};

use super::{GivenResult, Live, StreamState};
use crate::api::failure::Failure;
use crate::api::http::{Exchange, Received};
use crate::redaction::HeldBack;
use crate::remote::{Access, Contract, contract};
use crate::session::{CallOutcome, now_ms};

/// How many runs in a row may end before the agent has used the results that it had. An answer may be faster than
/// the end of the response that it answers, so that one or two mean nothing.
const MOST_UNUSED: u32 = 8;

/// What the session is doing.
pub(super) enum Work {
    /// Waits for a prompt.
    Idle,
    /// Reads a run.
    Running(Box<Run>),
    /// The response has ended, and the client has calls to answer.
    Paused,
    /// Waits before a request is sent again.
    Waiting { until: Instant, request: Request, attempt: u32 },
}

/// A request for a run.
#[derive(Clone)]
pub(super) struct Request {
    body: String,
    /// The results that the body contains.
    results: Vec<GivenResult>,
    /// It is the first one of its turn.
    begins_turn: bool,
    /// A service that knows idempotency keys handles a request once that is sent again.
    key: String,
}

/// A run that is being read.
pub(super) struct Run {
    exchange: Exchange,
    request: Request,
    attempt: u32,
    /// What may be the beginning of a key, at the end of what was received.
    held_back: HeldBack,
    /// The response has begun.
    has_begun: bool,
    /// The last line that was received is complete.
    line_ended: bool,
}

impl Request {
    /// Whether the service refuses a result in it that is no error.
    fn is_refused(&self, failure: &Failure) -> bool {
        let has_output = |it: &GivenResult| matches!(it.outcome, CallOutcome::Output(_));
        matches!(failure.http_status, Some(400 | 413 | 422)) && self.results.iter().any(has_output)
    }
}

impl Work {
    /// When it goes on without anything from outside.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Waiting { until, .. } => Some(*until),
            Self::Idle | Self::Running(_) | Self::Paused => None,
        }
    }
}

/// What arrives next of the run; without one, it waits forever.
pub(super) async fn next(work: &mut Work) -> Received {
    match work {
        Work::Running(run) => run.exchange.next().await,
        _ => std::future::pending().await,
    }
}

impl Live {
    /// Sends a run with the message of the turn, and with the results that wait for it.
    pub(super) fn send_run(&mut self, begins_turn: bool) {
        if let Some(why) = self.client.missing_key() {
            let failure = Failure::new(ErrorClass::Authentication, why);
            return self.fail(&failure);
        }
        let results = std::mem::take(&mut self.results);
        let (session, sandbox) = (self.access.session.as_deref(), self.access.sandbox.as_deref());
        let body = contract::run(&self.settings, session, sandbox, &self.message, &results);
        self.send(Request { body, results, begins_turn, key: crate::api::new_id() }, 1);
    }

    fn send(&mut self, request: Request, attempt: u32) {
        self.begin_stream();
        let mut headers = vec![("idempotency-key", request.key.clone())];
        if !self.client.key().is_empty() {
            headers.push(("authorization", format!("Bearer {}", self.client.key())));
        }
        let exchange = self.client.send(contract::RUN, headers, request.body.clone());
        self.clock.output_seen(Instant::now());
        (self.outlets.seen.pauses, self.outlets.seen.works) = (false, false);
        let held_back = HeldBack::default();
        let run = Run { exchange, request, attempt, held_back, has_begun: false, line_ended: true };
        self.work = Work::Running(Box::new(run));
    }

    /// The delay before the next attempt has passed.
    pub(super) fn send_again(&mut self) {
        match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Waiting { request, attempt, .. } => self.send(request, attempt),
            other => self.work = other,
        }
    }

    /// Lets the reader take the next run.
    pub(super) fn begin_stream(&mut self) {
        if self.stream == StreamState::Ended {
            let next = dialect::named("giselle").and_then(|it| self.reader.next_stream(it.into()));
            // The dialect can be read, and the stream before has ended.
            debug_assert!(next.is_ok());
            self.stream = StreamState::Fresh;
        }
    }

    pub(super) fn received(&mut self, received: Received) {
        match received {
            Received::Bytes(bytes) => self.read(&bytes),
            Received::Ended => self.run_ended(None),
            Received::Failed(failure) => self.run_ended(Some(failure)),
            Received::Refused { status, headers, body } => {
                self.run_ended(Some(contract::failure(status, &headers, &body)));
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let Work::Running(run) = &mut self.work else { return };
        (run.has_begun, run.line_ended) = (true, bytes.ends_with(b"\n"));
        self.forgotten = None;
        let bytes = self.redactor.redact_chunk(bytes, &mut run.held_back);
        self.clock.output_seen(Instant::now());
        self.push(&bytes);
        self.clock.progressed();
    }

    fn push(&mut self, bytes: &[u8]) {
        self.stream = StreamState::Used;
        if let Some(record) = &mut self.record {
            record.printed(bytes);
        }
        let Ok(_) = self.reader.push(bytes, Some(now_ms()), &mut self.outlets);
        let seen = &mut self.outlets.seen;
        if self.settings.contract == Contract::Relay {
            self.access.session = seen.session.clone().or(self.access.session.take());
        }
        self.access.sandbox = seen.sandbox.clone().or(self.access.sandbox.take());
        self.access.relay = seen.relay.clone().or(self.access.relay.take());
        self.take_calls();
    }

    /// The response has ended, or could not be read to its end.
    fn run_ended(&mut self, failure: Option<Failure>) {
        let Work::Running(run) = &mut self.work else { return };
        let line_ended = run.line_ended;
        let rest = self.redactor.redact_end(std::mem::take(&mut run.held_back));
        if !rest.is_empty() {
            self.push(&rest);
        }
        if failure.is_none() && !line_ended {
            // The last record may be a call, which decides how the turn goes on.
            self.push(b"\n");
        }
        let run = match std::mem::replace(&mut self.work, Work::Paused) {
            Work::Running(run) => run,
            // A call in what was left has ended the turn.
            ended => return self.work = ended,
        };
        match failure {
            Some(failure) if !run.has_begun && run.request.is_refused(&failure) => {
                self.send_without_results(run.request, &failure);
            }
            Some(failure) if !run.has_begun && self.is_forgotten(&run, &failure) => self.begin_again(),
            Some(failure) if !run.has_begun => self.retry(&run, failure),
            Some(failure) if !self.is_paused() => self.fail(&failure),
            _ if self.is_paused() && self.is_stuck() => self.fail(&Failure::new(
                ErrorClass::Process,
                "the service ended one run after another before its agent used the results that it had",
            )),
            _ if self.is_paused() => {
                // The turn goes on in the next run.
                let (end, now) = (StreamEnd::TurnGoesOn, Some(now_ms()));
                let Ok(_) = self.reader.end_stream(end, now, &mut self.outlets);
                self.stream = StreamState::Ended;
                self.go_on();
            }
            _ => self.end_turn(None),
        }
    }

    /// Whether the agent waits for results, or has not reacted to them yet. Of a result that it has reacted to, the
    /// relay's own answer may still be on its way.
    fn is_paused(&self) -> bool {
        !self.open.is_empty() || !self.results.is_empty() || self.outlets.seen.pauses
    }

    /// Whether the agent does nothing but call the client and end, so that no further run would help. A run that
    /// ends while its calls wait, as the contract has it, is not counted.
    fn is_stuck(&mut self) -> bool {
        let waits = !self.open.is_empty() || !self.results.is_empty();
        self.unused = if self.outlets.seen.works || waits { 0 } else { self.unused + 1 };
        self.unused > MOST_UNUSED
    }

    /// Whether the service does not know the session that a prompt was to continue. A turn that has begun cannot
    /// go on in another session.
    fn is_forgotten(&self, run: &Run, failure: &Failure) -> bool {
        failure.http_status == Some(404)
            && run.request.begins_turn
            && self.settings.contract == Contract::Relay
            && self.access.session.is_some()
    }

    /// Begins a new session at the service, which has forgotten the one before.
    fn begin_again(&mut self) {
        let sandbox = self.access.sandbox.clone();
        let known = std::mem::replace(&mut self.access, Access { sandbox, ..Access::default() });
        self.forgotten = Some(known);
        (self.outlets.seen.session, self.outlets.seen.relay) = (None, None);
        let text = "the service does not know the session any more, so a new one begins there, without what was said before";
        self.notify(Severity::Warning, text);
        self.send_run(true);
    }

    /// Goes on with the turn, once all calls of the client are answered.
    pub(super) fn go_on(&mut self) {
        let answered = self.open.is_empty() && self.in_flight == 0;
        if answered && matches!(self.work, Work::Paused) {
            self.send_run(false);
        }
    }

    /// Sends errors in place of results that the service cannot take, so that its agent does not wait for ever.
    fn send_without_results(&mut self, request: Request, failure: &Failure) {
        let why = self.without_key(failure.clone()).message;
        let text = format!("the service refused a result, so its agent gets an error: {why}");
        self.notify(Severity::Warning, &text);
        let outcome = CallOutcome::Failed(format!("the result was refused: {why}"));
        let failed = |result| GivenResult { outcome: outcome.clone(), ..result };
        self.results = request.results.into_iter().map(failed).collect();
        self.send_run(false);
    }

    /// A request that the service has not begun to handle is sent again. Of any other one it is not known
    /// whether the agent works on it.
    fn retry(&mut self, run: &Run, failure: Failure) {
        let failure = self.without_key(failure);
        let delay = match failure.is_unsent {
            true => self.settings.retries.delay(&failure, run.attempt, jitter()),
            false => None,
        };
        let Some(delay) = delay else {
            // Nothing has replaced the session, which a fault on the way may have hidden.
            self.access = self.forgotten.take().unwrap_or(std::mem::take(&mut self.access));
            return self.fail(&failure);
        };
        let (attempt, now) = (run.attempt + 1, Instant::now());
        self.emit(failure.to_retry(attempt, self.settings.retries.attempts, delay));
        self.clock.retried(now);
        let until = now.checked_add(delay).unwrap_or(now);
        self.work = Work::Waiting { until, request: run.request.clone(), attempt };
    }

    /// Ends the turn with a failure.
    pub(super) fn fail(&mut self, failure: &Failure) {
        let failure = self.without_key(failure.clone());
        self.emit(failure.to_error());
        let cause = failure.cause();
        let outcome = match failure.class {
            ErrorClass::TimedOut => Outcome::TimedOut,
            _ => Outcome::Failed,
        };
        self.end_turn(Some(Stopped { outcome, cause }));
    }

    fn without_key(&mut self, failure: Failure) -> Failure {
        let message = self.redactor.redact_text(&failure.message).into_owned();
        Failure { message: crate::api::key::mask(&message, self.client.key()), ..failure }
    }
}

/// A number between 0 and 1, to spread the requests of many clients.
fn jitter() -> f64 {
    (crate::session::fresh_seed() % 1024) as f64 / 1024.0
}
