//! What goes wrong in Copilot's stream, and how a turn ends.

use super::thread::RequestFailure;
use super::wire::Details;
use crate::dialect::time;
use crate::event::{Error, ErrorClass, Outcome, Retry, TurnEnded};
use crate::json::read;
use crate::json::{Json, Text, record};

/// How the turn at hand is going.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) open: bool,
    pub(super) steps: u64,
    /// When the prompt came, in milliseconds.
    began_at: Option<u64>,
    /// How long the requests took that were answered.
    requests_ms: u64,
    /// In what word it was stopped, if it was.
    pub(super) stopped: Option<Text<'static>>,
    /// What a person is told of that.
    pub(super) stopped_text: Option<Text<'static>>,
    /// An error ended it, unless something is said after that.
    pub(super) failed: bool,
    /// The HTTP status of the request that ended it.
    pub(super) http_status: Option<u64>,
}

impl Course {
    /// Begins with a prompt; says whether that is news.
    pub(super) fn begin(&mut self, time: Option<&Json<'_>>) -> bool {
        let news = !std::mem::replace(&mut self.open, true);
        if news {
            self.began_at = time.and_then(time::milliseconds);
        }
        news
    }

    /// Notes that somebody says something: where it is the main agent, no error was the end.
    pub(super) fn goes_on(&mut self, parent: &Option<Text<'_>>) {
        self.failed &= parent.is_some();
    }

    /// Counts a request that is over. One that failed is not counted, as in the agent's own total.
    pub(super) fn requested(&mut self, details: &Details<'_>) {
        if details.outcome.as_ref().is_some_and(|outcome| *outcome == "success") {
            self.requests_ms += details.request_ms.unwrap_or(0);
        }
    }

    /// How it ended, once that is known. The durations that `result` tells are those of the session,
    /// with all that was before this turn and between the processes, so they are not told.
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
    /// What a provider says of a request that failed.
    struct ProviderError<'a> {
        message: text "message",
    }
}

/// Why a request failed, as far as it is told before it is tried again or given up.
pub(super) fn request_failure(details: &mut Details<'_>) -> RequestFailure {
    let told = details.error_message.take();
    let plain = told.as_ref().map(Text::to_plain);
    // The provider's answer as a rule, as JSON in a string.
    let message = plain.as_ref().and_then(|body| {
        let mut error = ProviderError::default();
        read::record(body, &mut error).ok()?;
        error.message.map(Text::into_owned)
    });
    RequestFailure {
        http_status: details.status_code,
        attempt: details.retry_attempt,
        message: message.or_else(|| told.clone().map(Text::into_owned)),
        in_transport: details.failure_kind.as_ref().is_some_and(|kind| *kind == "transport"),
    }
}

/// A request that is tried again.
pub(super) fn retry(reason: Option<Text<'_>>, failure: Option<RequestFailure>) -> Retry<'_> {
    let failure = failure.unwrap_or_default();
    let word = reason.as_ref().map_or("", Text::body);
    let class = match failure.http_status {
        Some(status) => ErrorClass::of_http_status(status),
        None if failure.in_transport => ErrorClass::Network,
        None => class_of(word),
    };
    Retry {
        // The first try has the number zero.
        attempt: failure.attempt.map(|attempt| attempt + 1),
        class,
        http_status: failure.http_status,
        message: failure.message.or(reason),
        ..Retry::default()
    }
}

/// What ended the work on a prompt.
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
