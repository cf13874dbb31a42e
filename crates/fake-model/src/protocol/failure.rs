//! HTTP errors by their class, in the status, headers and body of each API.
//!
//! The headers are those of the real APIs: the id of the request, hints for a retry, and the state
//! of the rate limits. Gemini sends no such headers; its hints are in the body.

use serde_json::{Value, json};

use super::{Protocol, set};
use crate::http::Header;
use crate::script::{Failure, FailureClass};

/// An HTTP error, ready to be sent.
#[derive(Debug)]
pub(crate) struct ErrorAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Value,
}

/// The id of a request, which headers and errors contain.
pub(crate) fn request_id(number: usize) -> String {
    format!("req_{number:04}")
}

impl Protocol {
    /// The headers that the API adds to every answer.
    pub(crate) fn headers(self, number: usize) -> Vec<Header> {
        match self {
            Self::Responses | Self::Chat => vec![header("x-request-id", &request_id(number))],
            Self::Messages => vec![header("request-id", &request_id(number))],
            Self::Gemini => Vec::new(),
        }
    }

    /// An error of a class, as the API reports it.
    pub(crate) fn failure(self, failure: &Failure, number: usize) -> ErrorAnswer {
        let (status, body) = match self {
            Self::Responses | Self::Chat => openai(failure),
            Self::Messages => anthropic(failure, number),
            Self::Gemini => gemini(failure),
        };
        let mut headers = self.headers(number);
        if self != Self::Gemini {
            headers.extend(self.hints(failure));
        }
        ErrorAnswer { status, headers, body }
    }

    fn hints(self, failure: &Failure) -> Vec<Header> {
        let mut headers = Vec::new();
        // The monthly cap of Anthropic has no hint: that is how it differs from a rate limit.
        let capped = self == Self::Messages && failure.class == FailureClass::Quota;
        let seconds = failure.retry_after.filter(|_| !capped);
        headers.extend(seconds.map(|seconds| header("retry-after", &seconds.to_string())));
        let milliseconds = failure.retry_after_ms.filter(|_| !capped);
        headers.extend(milliseconds.map(|count| header("retry-after-ms", &count.to_string())));
        let retry = failure.should_retry;
        headers.extend(retry.map(|retry| header("x-should-retry", &retry.to_string())));
        if failure.class == FailureClass::RateLimit {
            let limits: &[(&str, &str)] = match self {
                Self::Messages => &[
                    ("anthropic-ratelimit-requests-limit", "50"),
                    ("anthropic-ratelimit-requests-remaining", "0"),
                    ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:00Z"),
                ],
                _ => &[
                    ("x-ratelimit-limit-requests", "60"),
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-requests", "1s"),
                ],
            };
            headers.extend(limits.iter().map(|(name, value)| header(name, value)));
        }
        headers
    }
}

fn header(name: &str, value: &str) -> Header {
    (name.to_owned(), value.to_owned())
}

fn message<'a>(failure: &'a Failure, usual: &'a str) -> &'a str {
    failure.message.as_deref().unwrap_or(usual)
}

fn openai(failure: &Failure) -> (u16, Value) {
    let invalid = "invalid_request_error";
    let (status, kind, code, usual) = match failure.class {
        FailureClass::RateLimit => {
            (429, "requests", json!("rate_limit_exceeded"), "Rate limit reached for requests.")
        }
        FailureClass::Quota => (
            429,
            "insufficient_quota",
            json!("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        // The real API quotes the key like this; a client must not show it.
        FailureClass::InvalidKey => (
            401,
            invalid,
            json!("invalid_api_key"),
            "Incorrect API key provided: sk-abcde*****vwxyz.",
        ),
        FailureClass::Permission => {
            (403, invalid, json!("model_not_verified"), "The project has no access to the model.")
        }
        FailureClass::NotFound => {
            (404, invalid, json!("model_not_found"), "The model does not exist.")
        }
        FailureClass::ContextOverflow => (
            400,
            invalid,
            json!("context_length_exceeded"),
            "Your input exceeds the context window of this model.",
        ),
        FailureClass::TooLarge => (413, invalid, Value::Null, "The request is too large."),
        FailureClass::Overloaded => (
            503,
            "server_error",
            json!("server_is_overloaded"),
            "The server is overloaded. Please try again later.",
        ),
        FailureClass::Internal => (500, "server_error", json!("server_error"), "Server error."),
    };
    let error = json!({
        "message": message(failure, usual), "type": kind, "param": null, "code": code,
    });
    (status, json!({"error": error}))
}

fn anthropic(failure: &Failure, number: usize) -> (u16, Value) {
    let (status, kind, code, usual) = match failure.class {
        FailureClass::RateLimit => {
            (429, "rate_limit_error", None, "This request would exceed your rate limit.")
        }
        FailureClass::Quota => (
            429,
            "rate_limit_error",
            Some("enforced_spend_limit_reached"),
            "You have reached the monthly spend limit of your tier.",
        ),
        FailureClass::InvalidKey => (401, "authentication_error", None, "invalid x-api-key"),
        FailureClass::Permission => {
            (403, "permission_error", None, "Your key has no permission to use this resource.")
        }
        FailureClass::NotFound => (404, "not_found_error", None, "model: fake-model"),
        FailureClass::ContextOverflow => (
            400,
            "invalid_request_error",
            None,
            "prompt is too long: 200001 tokens > 200000 maximum",
        ),
        FailureClass::TooLarge => {
            (413, "request_too_large", None, "Request exceeds the maximum size")
        }
        FailureClass::Overloaded => (529, "overloaded_error", None, "Overloaded"),
        FailureClass::Internal => (500, "api_error", None, "Internal server error"),
    };
    let mut error = json!({"type": kind, "message": message(failure, usual)});
    if let Some(code) = code {
        set(&mut error, "details", json!({"error_code": code}));
    }
    (status, json!({"type": "error", "error": error, "request_id": request_id(number)}))
}

fn gemini(failure: &Failure) -> (u16, Value) {
    let exhausted = "RESOURCE_EXHAUSTED";
    let invalid = "INVALID_ARGUMENT";
    let (code, status, usual) = match failure.class {
        FailureClass::RateLimit | FailureClass::Quota => {
            (429, exhausted, "You exceeded your current quota.")
        }
        FailureClass::InvalidKey => {
            (400, invalid, "API key not valid. Please pass a valid API key.")
        }
        FailureClass::Permission => (403, "PERMISSION_DENIED", "The caller has no permission."),
        FailureClass::NotFound => (404, "NOT_FOUND", "models/fake-model is not found."),
        FailureClass::ContextOverflow => (
            400,
            invalid,
            "The input token count (1048577) exceeds the maximum number of tokens allowed \
             (1048576).",
        ),
        FailureClass::TooLarge => (413, invalid, "Request payload size exceeds the limit."),
        FailureClass::Overloaded => (503, "UNAVAILABLE", "The model is overloaded."),
        FailureClass::Internal => (500, "INTERNAL", "An internal error has occurred."),
    };
    let mut error = json!({"code": code, "message": message(failure, usual), "status": status});
    let details = gemini_details(failure);
    if !details.is_empty() {
        set(&mut error, "details", json!(details));
    }
    (code, json!({"error": error}))
}

fn gemini_details(failure: &Failure) -> Vec<Value> {
    let quota = |per: &str| {
        let id = format!("GenerateRequestsPer{per}PerProjectPerModel");
        let metric = "generativelanguage.googleapis.com/generate_content_requests";
        let violation = json!({"quotaMetric": metric, "quotaId": id, "quotaValue": "50"});
        json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation],
        })
    };
    let mut details = match failure.class {
        FailureClass::RateLimit => vec![quota("Minute")],
        FailureClass::Quota => vec![quota("Day")],
        FailureClass::InvalidKey => vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
            "metadata": {"service": "generativelanguage.googleapis.com"},
        })],
        _ => Vec::new(),
    };
    let milliseconds = failure.retry_after.map(|seconds| seconds.saturating_mul(1000));
    if let Some(milliseconds) = failure.retry_after_ms.or(milliseconds) {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        details.push(json!({"@type": kind, "retryDelay": delay(milliseconds)}));
    }
    details
}

/// A duration as Google writes it: `34s`, `34.070s`.
fn delay(milliseconds: u64) -> String {
    match (milliseconds / 1000, milliseconds % 1000) {
        (seconds, 0) => format!("{seconds}s"),
        (seconds, rest) => format!("{seconds}.{rest:03}s"),
    }
}
