//! What goes wrong, in the agent's typed words, and what kind of thing that is.

use std::collections::BTreeMap;

use super::wire::{Failure, HttpFailure};
use crate::dialect::json_rpc;
use crate::event::{Error, ErrorClass, Outcome, Retry};
use crate::json::read;
use crate::json::{Json, Text};

/// What a failure is.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// The agent's word for it.
    pub(super) code: Option<String>,
    pub(super) class: ErrorClass,
    pub(super) http_status: Option<u64>,
}

impl Verdict {
    pub(super) fn of(failure: &Failure<'_>) -> Self {
        let (code, http_status) = failure.info.as_ref().map(word_and_status).unwrap_or_default();
        let class = match code.as_deref().unwrap_or_default() {
            "contextWindowExceeded" => ErrorClass::ContextOverflow,
            "sessionBudgetExceeded" => ErrorClass::Limit,
            "usageLimitExceeded" => ErrorClass::Quota,
            "rateLimitExceeded" | "modelCap" => ErrorClass::RateLimit,
            "serverOverloaded" => ErrorClass::Overloaded,
            "internalServerError" => ErrorClass::Internal,
            "unauthorized" => ErrorClass::Authentication,
            "badRequest" | "unsupportedInputModality" => ErrorClass::BadRequest,
            "cyberPolicy" | "misalignmentPolicyViolation" => ErrorClass::Refusal,
            "sandboxError" => ErrorClass::Tool,
            _ => match http_status {
                Some(status) => ErrorClass::of_http_status(status),
                None => of_words(failure, code.as_deref()),
            },
        };
        Self { code, class, http_status }
    }

    /// Whether the turn goes on although nothing is tried again.
    pub(super) fn spares_the_turn(&self) -> bool {
        matches!(self.code.as_deref(), Some("activeTurnNotSteerable" | "threadRollbackFailed"))
    }

    /// How a turn ended that failed with this.
    pub(super) fn outcome(&self) -> Outcome {
        match self.class {
            ErrorClass::Limit => Outcome::LimitReached,
            ErrorClass::Refusal => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }
}

/// The word of a failure, which may stand alone or be the name of its details.
fn word_and_status(info: &Json<'_>) -> (Option<String>, Option<u64>) {
    if let Some(word) = info.as_text() {
        return (Some(word.to_plain().into_owned()), None);
    }
    let details: BTreeMap<String, Json<'_>> = info.read().unwrap_or_default();
    let Some((word, details)) = details.into_iter().next() else { return (None, None) };
    let status = read::record_of::<HttpFailure<'_>>(&details).and_then(|details| details.status);
    (Some(word), status)
}

/// What the words of a failure say, where its type does not.
fn of_words(failure: &Failure<'_>, code: Option<&str>) -> ErrorClass {
    let message = failure.message.as_ref().map(Text::to_plain).unwrap_or_default();
    let details = failure.details.as_ref().map(Text::to_plain).unwrap_or_default();
    let says = |words: &str| message.contains(words) || details.contains(words);
    if says("max_output_tokens") {
        ErrorClass::Limit
    } else if says("idle timeout") {
        ErrorClass::TimedOut
    } else if says("high demand") || says("at capacity") {
        ErrorClass::Overloaded
    } else if says("context window") {
        ErrorClass::ContextOverflow
    } else if says("usage limit") || says("quota") || says("Quota") {
        ErrorClass::Quota
    } else if says("rate limit") {
        ErrorClass::RateLimit
    } else if says("Missing environment variable") || says("Not logged in") {
        ErrorClass::Authentication
    } else {
        match code {
            Some(
                "httpConnectionFailed"
                | "responseStreamConnectionFailed"
                | "responseStreamDisconnected"
                | "responseTooManyFailedAttempts",
            ) => ErrorClass::Network,
            _ if says("stream disconnected") || says("waiting for network") => ErrorClass::Network,
            _ => ErrorClass::Unspecified,
        }
    }
}

/// The message of a failure, with its details behind it.
pub(super) fn message<'a>(failure: &Failure<'a>) -> Text<'a> {
    match (&failure.message, &failure.details) {
        (Some(message), Some(details)) if !details.is_empty() => {
            Text::from(format!("{message} ({details})"))
        }
        (message, details) => message.clone().or_else(|| details.clone()).unwrap_or_default(),
    }
}

/// A failure after which the agent tries again: `Reconnecting... 1/5`.
pub(super) fn retry<'a>(failure: &Failure<'a>) -> Retry<'a> {
    let verdict = Verdict::of(failure);
    let plain = failure.message.as_ref().map(Text::to_plain).unwrap_or_default();
    let numbers = plain.strip_prefix("Reconnecting... ").and_then(|rest| rest.split(' ').next());
    let (attempt, of) = match numbers.and_then(|numbers| numbers.split_once('/')) {
        Some((attempt, of)) => (attempt.parse().ok(), of.parse().ok()),
        None => (None, None),
    };
    Retry {
        attempt,
        of,
        delay_ms: None,
        class: verdict.class,
        http_status: verdict.http_status,
        message: Some(message(failure)),
    }
}

/// A request that the agent refused.
pub(super) fn refusal<'a>(refusal: &json_rpc::Failure<'a>) -> Error<'a> {
    let class = match refusal.code {
        Some(-32001) => ErrorClass::Overloaded,
        Some(-32602..=-32600) => ErrorClass::BadRequest,
        Some(-32603) => ErrorClass::Internal,
        _ => ErrorClass::Unspecified,
    };
    Error {
        class,
        message: refusal.message.clone().unwrap_or_default(),
        code: refusal.code.map(|code| Text::from(code.to_string())),
        ..Error::default()
    }
}
