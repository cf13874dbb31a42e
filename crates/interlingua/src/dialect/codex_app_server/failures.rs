//! The errors of the agent, and their classification.

use std::collections::BTreeMap;

use super::wire::{Failure, HttpFailure};
use crate::dialect::json_rpc;
use crate::event::{Error, ErrorClass, Outcome, Retry};
use crate::json::read;
use crate::json::{Json, Text};

/// The classification of a failure.
#[derive(Debug, Default)]
pub(super) struct Classification {
    /// The code that the agent states.
    pub(super) code: Option<String>,
    pub(super) class: ErrorClass,
    pub(super) http_status: Option<u64>,
}

impl Classification {
    pub(super) fn of(failure: &Failure<'_>) -> Self {
        let (code, http_status) = failure.info.as_ref().map(code_and_status).unwrap_or_default();
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
                None => classify_text(failure, code.as_deref()),
            },
        };
        Self { code, class, http_status }
    }

    /// Whether the turn continues although nothing is retried.
    pub(super) fn leaves_turn_open(&self) -> bool {
        matches!(self.code.as_deref(), Some("activeTurnNotSteerable" | "threadRollbackFailed"))
    }

    /// The outcome of a turn that failed with this error.
    pub(super) fn outcome(&self) -> Outcome {
        match self.class {
            ErrorClass::Limit => Outcome::LimitReached,
            ErrorClass::Refusal => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }
}

/// The code of a failure, which is a string, or the name of the field with its details.
fn code_and_status(info: &Json<'_>) -> (Option<String>, Option<u64>) {
    if let Some(code) = info.as_text() {
        return (Some(code.to_plain().into_owned()), None);
    }
    let details: BTreeMap<String, Json<'_>> = info.read().unwrap_or_default();
    let Some((code, details)) = details.into_iter().next() else { return (None, None) };
    let status = read::record_of::<HttpFailure<'_>>(&details).and_then(|details| details.status);
    (Some(code), status)
}

/// Classifies a failure by its text, if its code does not identify it.
fn classify_text(failure: &Failure<'_>, code: Option<&str>) -> ErrorClass {
    let message = failure.message.as_ref().map(Text::to_plain).unwrap_or_default();
    let details = failure.details.as_ref().map(Text::to_plain).unwrap_or_default();
    let contains = |words: &str| message.contains(words) || details.contains(words);
    if contains("max_output_tokens") {
        ErrorClass::Limit
    } else if contains("idle timeout") {
        ErrorClass::TimedOut
    } else if contains("high demand") || contains("at capacity") {
        ErrorClass::Overloaded
    } else if contains("context window") {
        ErrorClass::ContextOverflow
    } else if contains("usage limit") || contains("quota") || contains("Quota") {
        ErrorClass::Quota
    } else if contains("rate limit") {
        ErrorClass::RateLimit
    } else if contains("Missing environment variable") || contains("Not logged in") {
        ErrorClass::Authentication
    } else {
        match code {
            Some(
                "httpConnectionFailed"
                | "responseStreamConnectionFailed"
                | "responseStreamDisconnected"
                | "responseTooManyFailedAttempts",
            ) => ErrorClass::Network,
            _ if contains("stream disconnected") || contains("waiting for network") => {
                ErrorClass::Network
            }
            _ => ErrorClass::Unspecified,
        }
    }
}

/// The message of a failure, followed by its details.
pub(super) fn message_of<'a>(failure: &Failure<'a>) -> Text<'a> {
    match (&failure.message, &failure.details) {
        (Some(message), Some(details)) if !details.is_empty() => {
            Text::from(format!("{message} ({details})"))
        }
        (message, details) => message.clone().or_else(|| details.clone()).unwrap_or_default(),
    }
}

/// The retry after a failure: `Reconnecting... 1/5`.
pub(super) fn retry<'a>(failure: &Failure<'a>) -> Retry<'a> {
    let classification = Classification::of(failure);
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
        class: classification.class,
        http_status: classification.http_status,
        message: Some(message_of(failure)),
    }
}

/// The error response to a request that the agent refused.
pub(super) fn response_error<'a>(failure: &json_rpc::Failure<'a>) -> Error<'a> {
    let class = match failure.code {
        Some(-32001) => ErrorClass::Overloaded,
        Some(-32602..=-32600) => ErrorClass::BadRequest,
        Some(-32603) => ErrorClass::Internal,
        _ => ErrorClass::Unspecified,
    };
    Error {
        class,
        message: failure.message.clone().unwrap_or_default(),
        code: failure.code.map(|code| Text::from(code.to_string())),
        ..Error::default()
    }
}
