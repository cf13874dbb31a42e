//! The errors of OpenAI's APIs and of servers that are compatible with them: the body of a response
//! with an HTTP error, and errors within a stream.
//!
//! The official form is `{"error":{message,type,param,code}}`. Compatible servers also send a text in
//! place of the object, the same fields without the object around them, an HTTP status as the code, or
//! the `detail` of a web framework. None of them reports in a uniform way what went wrong, so the class
//! is taken from the code, then from the type, the status and at last the words of the message.

use crate::event::{Error, ErrorClass, Outcome, TurnEnded};
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text, record};

record! {
    /// An error. Its code is a word, or the HTTP status of the server's own request.
    pub(crate) struct ErrorFields<'a> {
        message: text "message",
        kind: text "type",
        code: json "code",
        status: number "status" | "status_code" | "http_status",
        _param: json "param",
        metadata: record<Metadata> "metadata",
    }
}

record! {
    /// What a router of requests adds: which provider failed, and what that provider reported.
    pub(crate) struct Metadata<'a> {
        provider: text "provider_name",
        raw: json "raw",
    }
}

record! {
    /// One flaw of a request, as a web framework lists it.
    struct Flaw<'a> {
        message: text "msg" | "message",
    }
}

/// An error that ended a response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure<'a> {
    pub(crate) class: ErrorClass,
    pub(crate) message: Text<'a>,
    /// The code, else the type.
    pub(crate) code: Option<Text<'a>>,
    pub(crate) http_status: Option<u64>,
}

impl<'a> Failure<'a> {
    /// The error in a field that is an object, or only its message.
    pub(crate) fn of_shape(error: Shaped<'a, ErrorFields<'a>>) -> Option<Self> {
        match error {
            Shaped::Record(fields) => Some(Self::of(fields)),
            Shaped::Text(message) => {
                Some(Self::of(ErrorFields { message: Some(message), ..ErrorFields::default() }))
            }
            // An empty list is no error.
            Shaped::List(list) => list.into_iter().next().map(Self::of),
            Shaped::Other => None,
        }
    }

    /// The `detail` of a web framework: a text, or a list of flaws of the request.
    pub(crate) fn of_detail(detail: &Json<'_>) -> Self {
        let flaws = read::records_of::<Flaw<'_>>(detail).unwrap_or_default();
        let flaws: Vec<_> = flaws.into_iter().filter_map(|flaw| flaw.message).collect();
        let texts: Vec<_> = flaws.iter().map(Text::to_plain).collect();
        let message = match detail.as_text() {
            Some(text) => text.to_string(),
            None if texts.is_empty() => detail.get().to_owned(),
            None => texts.join("; "),
        };
        let message = Some(Text::from(message));
        Self::of(ErrorFields { message, ..ErrorFields::default() })
    }

    pub(crate) fn of(fields: ErrorFields<'a>) -> Self {
        let number = fields.code.as_ref().and_then(|code| code.get().parse::<u64>().ok());
        let word = fields.code.as_ref().and_then(|code| code.as_text().map(|it| it.to_string()));
        // Some servers write the status as a text.
        let digits = word.as_ref().and_then(|word| word.parse::<u64>().ok());
        let is_status = |status: &u64| (400..600).contains(status);
        let http_status = fields.status.or(number).or(digits).filter(is_status);
        let word = word.filter(|word| !word.is_empty() && digits.is_none());
        let kind = fields.kind.filter(|kind| !kind.is_empty());
        let code = word.map(Text::from).or(kind.clone());
        let message = message_of(fields.message, fields.metadata, code.as_ref());
        let class = classify(code.as_ref(), kind.as_ref(), http_status, &message);
        Self { class, message, code, http_status }
    }

    /// The event that reports it.
    pub(crate) fn to_error(&self) -> Error<'_> {
        Error {
            class: self.class.clone(),
            message: self.message.borrowed(),
            code: self.code.as_ref().map(Text::borrowed),
            http_status: self.http_status,
            fatal: true,
            ..Error::default()
        }
    }

    /// The end of the turn that it causes. A prompt or an answer that the provider blocks is refused.
    pub(crate) fn to_turn_ended(&self) -> TurnEnded<'_> {
        let refused = self.class == ErrorClass::Refusal;
        TurnEnded {
            outcome: if refused { Outcome::Refused } else { Outcome::Failed },
            cause: Some(self.message.borrowed()),
            class: Some(self.class.clone()).filter(|class| *class != ErrorClass::Unspecified),
            reason: self.code.as_ref().map(Text::borrowed),
            http_status: self.http_status,
            ..TurnEnded::default()
        }
    }
}

/// The message, followed by what the provider behind a router reported.
fn message_of<'a>(
    message: Option<Text<'a>>,
    metadata: Option<Metadata<'a>>,
    code: Option<&Text<'a>>,
) -> Text<'a> {
    let metadata = metadata.unwrap_or_default();
    let raw = metadata.raw.as_ref().map(|raw| match raw.as_text() {
        Some(text) => text.to_string(),
        None => raw.get().to_owned(),
    });
    let cause = match (metadata.provider, raw) {
        (Some(provider), Some(raw)) => Some(format!("{provider}: {raw}")),
        (Some(provider), None) => Some(provider.to_string()),
        (None, raw) => raw,
    };
    let message = message.filter(|message| !message.is_empty());
    let message = message.or_else(|| code.cloned());
    match (message, cause) {
        (Some(message), Some(cause)) => Text::from(format!("{message} ({cause})")),
        (Some(message), None) => message,
        (None, Some(cause)) => Text::from(cause),
        (None, None) => Text::plain("the provider reported an error without a message"),
    }
}

fn classify(
    code: Option<&Text<'_>>,
    kind: Option<&Text<'_>>,
    http_status: Option<u64>,
    message: &Text<'_>,
) -> ErrorClass {
    let by_name = |name: Option<&Text<'_>>| name.and_then(|name| class_of_name(&name.to_plain()));
    let message = message.to_plain().to_ascii_lowercase();
    let named = by_name(code).or_else(|| by_name(kind));
    let by_status = http_status.map(ErrorClass::of_http_status);
    let specific = |class: &ErrorClass| !matches!(class, ErrorClass::BadRequest);
    match named.clone().filter(specific) {
        // A single request above the limit of a minute never succeeds.
        Some(ErrorClass::RateLimit) if message.starts_with("request too large") => {
            ErrorClass::ContextOverflow
        }
        Some(class) => class,
        // Overflows have no common code, and come with several statuses.
        None if is_overflow(&message) => ErrorClass::ContextOverflow,
        None => by_status
            .or(named)
            .filter(|class| *class != ErrorClass::Unspecified)
            .unwrap_or_else(|| class_of_words(&message)),
    }
}

/// The class of a code or a type, if it is known.
fn class_of_name(name: &str) -> Option<ErrorClass> {
    Some(match name {
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "string_above_max_length"
        | "request_too_large" => ErrorClass::ContextOverflow,
        "invalid_api_key"
        | "authentication_error"
        | "invalid_authentication"
        | "AuthenticationError"
        | "invalid_organization" => ErrorClass::Authentication,
        "insufficient_quota"
        | "credit_balance_exhausted"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "billing_error"
        | "insufficient_balance"
        | "exceeded_quota" => ErrorClass::Quota,
        "permission_error"
        | "unsupported_country_region_territory"
        | "PermissionDeniedError"
        | "permission_denied" => ErrorClass::Permission,
        "rate_limit_exceeded" | "rate_limit_error" | "RateLimitError" | "too_many_requests" => {
            ErrorClass::RateLimit
        }
        "server_is_overloaded"
        | "slow_down"
        | "overloaded_error"
        | "overloaded"
        | "service_unavailable"
        | "unavailable_error"
        | "insufficient_system_resource" => ErrorClass::Overloaded,
        "timeout" | "timeout_error" | "request_timeout" | "vector_store_timeout" => {
            ErrorClass::TimedOut
        }
        "invalid_prompt"
        | "content_policy_violation"
        | "content_filter"
        | "bio_policy"
        | "cyber_policy"
        | "misalignment_policy_violation"
        | "image_content_policy_violation" => ErrorClass::Refusal,
        "model_not_found" | "not_found_error" | "NotFoundError" => ErrorClass::NotFound,
        "server_error"
        | "api_error"
        | "internal_error"
        | "internal_server_error"
        | "InternalServerError" => ErrorClass::Internal,
        "invalid_request_error"
        | "BadRequestError"
        | "unsupported_value"
        | "unsupported_parameter"
        | "invalid_function_parameters"
        | "invalid_value"
        | "missing_required_parameter"
        | "data_residency_mismatch" => ErrorClass::BadRequest,
        _ => return None,
    })
}

fn is_overflow(message: &str) -> bool {
    let words = [
        "maximum context length",
        "context window",
        "context length",
        "context size",
        "too many tokens",
        "prompt is too long",
        "input is too long",
    ];
    words.iter().any(|words| message.contains(words))
}

/// The class of an error that has neither a known code nor a status.
fn class_of_words(message: &str) -> ErrorClass {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&["rate limit", "too many requests", "try again in"]) {
        ErrorClass::RateLimit
    } else if has(&["overloaded", "at capacity", "unavailable"]) {
        ErrorClass::Overloaded
    } else if has(&["quota", "billing", "insufficient balance", "credit balance"]) {
        ErrorClass::Quota
    } else if has(&["api key", "unauthorized", "authentication"]) {
        ErrorClass::Authentication
    } else if has(&["timed out", "timeout"]) {
        ErrorClass::TimedOut
    } else if has(&["connection", "network"]) {
        ErrorClass::Network
    } else if has(&["not found"]) {
        ErrorClass::NotFound
    } else {
        ErrorClass::Unspecified
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(fields: &str) -> (ErrorClass, Option<u64>, String) {
        let json = Json::from_text(fields.to_owned()).unwrap();
        let failure = Failure::of(read::record_of(&json).unwrap());
        (failure.class, failure.http_status, failure.message.to_string())
    }

    #[test]
    fn a_quota_is_not_a_rate_limit() {
        let class = |fields| failure(fields).0;
        let rate = r#"{"message":"m","type":"requests","code":"rate_limit_exceeded"}"#;
        let quota = r#"{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}"#;
        let size = r#"{"message":"Request too large for m on tokens per min (TPM)","code":"rate_limit_exceeded"}"#;
        assert_eq!(class(rate), ErrorClass::RateLimit);
        assert_eq!(class(quota), ErrorClass::Quota);
        assert_eq!(class(size), ErrorClass::ContextOverflow);
        assert!(!ErrorClass::Quota.may_be_retried() && ErrorClass::RateLimit.may_be_retried());
    }

    #[test]
    fn an_overflow_is_recognised_by_its_words() {
        let openai =
            r#"{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}"#;
        let vllm = r#"{"message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}"#;
        let gateway = r#"{"message":"prompt is too long","code":"500"}"#;
        assert_eq!(failure(openai).0, ErrorClass::ContextOverflow);
        assert_eq!((failure(vllm).0, failure(vllm).1), (ErrorClass::ContextOverflow, Some(400)));
        assert_eq!(failure(gateway).0, ErrorClass::ContextOverflow);
    }

    #[test]
    fn a_router_adds_the_provider_and_its_report() {
        let fields = r#"{"message":"Provider returned error","code":502,"metadata":{"provider_name":"P","raw":"busy"}}"#;
        let expected =
            (ErrorClass::Internal, Some(502), "Provider returned error (P: busy)".into());
        assert_eq!(failure(fields), expected);
    }

    #[test]
    fn a_wrong_key_is_no_bad_request() {
        let fields = r#"{"message":"m","type":"invalid_request_error","param":null,"code":"invalid_api_key"}"#;
        assert_eq!(failure(fields).0, ErrorClass::Authentication);
    }
}
