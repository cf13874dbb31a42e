//! Decodes errors and retries of Copilot's stream, and determines how a turn ended.

use super::thread::RequestFailure;
use super::wire::Details;
use crate::dialect::time;
use crate::event::{Error, ErrorClass, Outcome, Retry, TurnEnded};
use crate::json::read;
use crate::json::{Json, Text, record};

/// The state of the current turn.
#[derive(Debug, Default)]
pub(super) struct TurnState {
    pub(super) open: bool,
    pub(super) steps: u64,
    /// The time of the prompt, in milliseconds.
    began_at: Option<u64>,
    /// The duration of all successful requests.
    requests_ms: u64,
    /// The reason for which it was stopped, if it was.
    pub(super) stopped: Option<Text<'static>>,
    /// The message about the interruption, for a person to read.
    pub(super) stopped_text: Option<Text<'static>>,
    /// An error was reported, and the main agent has not continued since.
    pub(super) failed: bool,
    /// The HTTP status of the request that ended it.
    pub(super) http_status: Option<u64>,
}

impl TurnState {
    /// Begins the turn with a prompt; returns whether it was not open yet.
    pub(super) fn begin(&mut self, time: Option<&Json<'_>>) -> bool {
        let begun = !std::mem::replace(&mut self.open, true);
        if begun {
            self.began_at = time.and_then(time::milliseconds);
        }
        begun
    }

    /// Notes a new message. If the main agent wrote it, an earlier error did not end the turn.
    pub(super) fn note_progress(&mut self, parent: &Option<Text<'_>>) {
        self.failed &= parent.is_some();
    }

    /// Counts a finished request. Failed requests are not counted, as in the agent's own total.
    pub(super) fn add_request(&mut self, details: &Details<'_>) {
        if details.outcome.as_ref().is_some_and(|outcome| *outcome == "success") {
            // Some are printed with a fraction.
            self.requests_ms += details.request_ms.unwrap_or(0.0).max(0.0).round() as u64;
        }
    }

    /// The end of the turn. The durations in `result` are not used: they cover the whole session,
    /// with earlier turns and the time between the processes.
    pub(super) fn ended(
        &mut self,
        exit_code: Option<i64>,
        time: Option<&Json<'_>>,
    ) -> TurnEnded<'static> {
        let Self {
            steps, began_at, requests_ms, stopped, stopped_text, failed, http_status, ..
        } = std::mem::take(self);
        let outcome = match exit_code {
            _ if stopped.is_some() => Outcome::Cancelled,
            Some(0) if !failed => Outcome::Completed,
            _ => Outcome::Failed,
        };
        let ended_at = time.and_then(time::milliseconds);
        TurnEnded {
            http_status: http_status.filter(|_| outcome == Outcome::Failed),
            outcome,
            cause: stopped.as_ref().map(|_| {
                stopped_text.unwrap_or_else(|| Text::plain("the turn was stopped by the user"))
            }),
            reason: stopped,
            steps: Some(steps).filter(|steps| *steps > 0),
            duration_ms: ended_at.zip(began_at).and_then(|(end, start)| end.checked_sub(start)),
            api_duration_ms: Some(requests_ms).filter(|ms| *ms > 0),
            ..TurnEnded::default()
        }
    }
}

record! {
    /// The error that a provider returned for a request.
    struct ProviderError<'a> {
        message: text "message",
    }
}

/// Why a request failed, as reported before it is retried or given up.
pub(super) fn request_failure(details: &mut Details<'_>) -> RequestFailure {
    let text = details.error_message.take();
    let plain = text.as_ref().map(Text::to_plain);
    // Usually the provider's response, as JSON in a string.
    let message = plain.as_ref().and_then(|body| {
        let mut error = ProviderError::default();
        read::record(body, &mut error).ok()?;
        error.message.map(Text::into_owned)
    });
    RequestFailure {
        http_status: details.status_code,
        attempt: details.retry_attempt,
        message: message.or_else(|| text.clone().map(Text::into_owned)),
        in_transport: details.failure_kind.as_ref().is_some_and(|kind| *kind == "transport"),
    }
}

/// A request that is retried.
pub(super) fn retry(reason: Option<Text<'_>>, failure: Option<RequestFailure>) -> Retry<'_> {
    let failure = failure.unwrap_or_default();
    let word = reason.as_ref().map_or("", Text::body);
    let class = match failure.http_status {
        Some(status) => ErrorClass::of_http_status(status),
        None if failure.in_transport => ErrorClass::Network,
        None => class_of(word),
    };
    Retry {
        // Copilot counts attempts from zero.
        attempt: failure.attempt.map(|attempt| attempt + 1),
        class,
        http_status: failure.http_status,
        message: failure.message.or(reason),
        ..Retry::default()
    }
}

/// The error that ended the work on a prompt.
pub(super) fn error<'a>(details: &mut Details<'a>) -> Error<'a> {
    let code = details.error_type.take();
    let word = code.as_ref().map_or("", Text::body);
    let class = match (class_of(word), details.status_code) {
        (ErrorClass::Unspecified, Some(status)) => ErrorClass::of_http_status(status),
        (class, _) => class,
    };
    Error {
        class,
        message: details.message_text.take().unwrap_or_default(),
        http_status: details.status_code,
        fatal: true,
        code,
        ..Error::default()
    }
}

fn class_of(word: &str) -> ErrorClass {
    match word {
        "authentication" | "transient_auth_error" => ErrorClass::Authentication,
        "authorization" => ErrorClass::Permission,
        "quota" => ErrorClass::Quota,
        "rate_limit" => ErrorClass::RateLimit,
        "context_limit" => ErrorClass::ContextOverflow,
        "timeout" => ErrorClass::TimedOut,
        "streaming_error" | "network" | "connection_error" => ErrorClass::Network,
        "api_error" => ErrorClass::Internal,
        _ => ErrorClass::Unspecified,
    }
}
