//! Decodes errors: the body of a failed request, or a chunk of a stream, which are the same.

use super::wire::{Detail, Failure};
use crate::event::{Error, ErrorClass};
use crate::json::Text;
use crate::json::read;

/// The error that ends a response.
pub(super) fn error<'a>(failure: &Failure<'a>) -> Error<'a> {
    let message = failure.message.clone().or_else(|| failure.status.clone());
    Error {
        class: class_of(failure),
        message: message.unwrap_or_else(|| Text::plain("the request failed")),
        code: failure.status.clone(),
        http_status: failure.code,
        fatal: true,
        ..Error::default()
    }
}

fn class_of(failure: &Failure<'_>) -> ErrorClass {
    let details: Vec<Detail<'_>> =
        failure.details.as_ref().and_then(read::records_of).unwrap_or_default();
    let mut reasons = details.iter().filter_map(|detail| detail.reason.as_ref());
    // A wrong key is an invalid argument by its status.
    if reasons.any(|reason| reason.body().starts_with("API_KEY_")) {
        return ErrorClass::Authentication;
    }
    let message = failure.message.as_ref().map(Text::to_plain).unwrap_or_default();
    match failure.status.as_ref().map_or("", Text::body) {
        "RESOURCE_EXHAUSTED" => class_of_exhaustion(&details),
        "INVALID_ARGUMENT" if message.contains("exceeds the maximum number of tokens") => {
            ErrorClass::ContextOverflow
        }
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" => ErrorClass::BadRequest,
        // The region or the billing of the account.
        "FAILED_PRECONDITION" | "PERMISSION_DENIED" => ErrorClass::Permission,
        "UNAUTHENTICATED" => ErrorClass::Authentication,
        "NOT_FOUND" => ErrorClass::NotFound,
        "CANCELLED" => ErrorClass::Cancelled,
        "INTERNAL" => ErrorClass::Internal,
        "UNAVAILABLE" => ErrorClass::Overloaded,
        "DEADLINE_EXCEEDED" => ErrorClass::TimedOut,
        _ => failure.code.map_or(ErrorClass::Unspecified, ErrorClass::of_http_status),
    }
}

/// The quota of a day does not come back soon, and a failure that names no quota is an overload.
fn class_of_exhaustion(details: &[Detail<'_>]) -> ErrorClass {
    let quotas = || details.iter().flat_map(|detail| &detail.violations);
    let of_day = quotas().filter_map(|violation| violation.quota.as_ref());
    if of_day.into_iter().any(|quota| quota.body().contains("PerDay")) {
        ErrorClass::Quota
    } else if quotas().next().is_some() || details.iter().any(|it| it.retry_delay.is_some()) {
        ErrorClass::RateLimit
    } else {
        ErrorClass::Overloaded
    }
}
