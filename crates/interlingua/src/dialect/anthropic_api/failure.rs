//! Decodes errors: the body of a failed request, or an event of a stream, which are the same.

use super::wire::Failure;
use crate::event::{Error, ErrorClass};
use crate::json::Text;

/// The error that ends a response.
pub(super) fn error(failure: Failure<'_>) -> Error<'_> {
    let class = class_of(&failure);
    let Failure { kind, message, details } = failure;
    let message = message.or_else(|| kind.clone());
    Error {
        class,
        message: message.unwrap_or_else(|| Text::plain("the request failed")),
        code: details.and_then(|details| details.code).or(kind),
        http_status: None,
        fatal: true,
        ..Error::default()
    }
}

/// The class of a failure: by its code, which is stable, else by its type. Only failures that have
/// no code of their own are recognised by their message.
fn class_of(failure: &Failure<'_>) -> ErrorClass {
    let code = failure.details.as_ref().and_then(|details| details.code.as_ref());
    // It is a rate limit by its type, but lasts until the end of the month.
    if code.is_some_and(|code| *code == "enforced_spend_limit_reached") {
        return ErrorClass::Quota;
    }
    let message = failure.message.as_ref().map(Text::to_plain).unwrap_or_default();
    match failure.kind.as_ref().map_or("", Text::body) {
        "authentication_error" => ErrorClass::Authentication,
        "permission_error" => ErrorClass::Permission,
        "billing_error" => ErrorClass::Quota,
        "not_found_error" => ErrorClass::NotFound,
        "rate_limit_error" => ErrorClass::RateLimit,
        "overloaded_error" => ErrorClass::Overloaded,
        "timeout_error" => ErrorClass::TimedOut,
        // A conflict with another request passes, as a failure of the provider does.
        "api_error" | "conflict_error" => ErrorClass::Internal,
        "request_too_large" => ErrorClass::ContextOverflow,
        "invalid_request_error" if message.starts_with("prompt is too long") => {
            ErrorClass::ContextOverflow
        }
        "invalid_request_error"
            if message.starts_with("You have reached your specified API usage limits") =>
        {
            ErrorClass::Quota
        }
        "invalid_request_error" => ErrorClass::BadRequest,
        _ => ErrorClass::Unspecified,
    }
}
