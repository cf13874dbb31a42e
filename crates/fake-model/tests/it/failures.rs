//! Errors by class, with the status, the body and the headers of each API.

use fake_model::{FailureClass, Reply};
use serde_json::{Value, json};

use crate::support::{Response, Wire, ask, model};

fn fail(wire: Wire, reply: Reply) -> Response {
    ask(&model([reply]), wire)
}

fn header(response: &Response, name: &str) -> Option<String> {
    let lines = response.headers.lines();
    let mut found = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.next().map(str::to_owned)
}

#[test]
fn each_class_has_the_status_and_the_code_of_the_api() {
    use FailureClass::{
        ContextOverflow, Internal, InvalidKey, NotFound, Overloaded, Permission, Quota, RateLimit,
        TooLarge,
    };
    let table = [
        (RateLimit, 429, "rate_limit_exceeded", 429, "rate_limit_error", 429, "RESOURCE_EXHAUSTED"),
        (Quota, 429, "insufficient_quota", 429, "rate_limit_error", 429, "RESOURCE_EXHAUSTED"),
        (InvalidKey, 401, "invalid_api_key", 401, "authentication_error", 400, "INVALID_ARGUMENT"),
        (Permission, 403, "model_not_verified", 403, "permission_error", 403, "PERMISSION_DENIED"),
        (NotFound, 404, "model_not_found", 404, "not_found_error", 404, "NOT_FOUND"),
        (
            ContextOverflow,
            400,
            "context_length_exceeded",
            400,
            "invalid_request_error",
            400,
            "INVALID_ARGUMENT",
        ),
        (TooLarge, 413, "", 413, "request_too_large", 413, "INVALID_ARGUMENT"),
        (Overloaded, 503, "server_is_overloaded", 529, "overloaded_error", 503, "UNAVAILABLE"),
        (Internal, 500, "server_error", 500, "api_error", 500, "INTERNAL"),
    ];
    for (class, openai, code, anthropic, kind, google, status) in table {
        for (wire, http, pointer, value) in [
            (Wire::Responses, openai, "/error/code", code),
            (Wire::Chat, openai, "/error/code", code),
            (Wire::Messages, anthropic, "/error/type", kind),
            (Wire::Gemini, google, "/error/status", status),
        ] {
            let response = fail(wire, Reply::failure(class));
            let found = response.json().pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            let found = (response.status, found.unwrap_or_default());
            assert_eq!(found, (http, value.to_owned()), "{wire:?} {class:?}");
        }
    }
}

#[test]
fn hints_for_a_retry_are_headers_and_for_gemini_in_the_body() {
    for wire in Wire::ALL {
        let reply = Reply::failure(FailureClass::RateLimit).retry_after_ms(70).should_retry(true);
        let response = fail(wire, reply.clone());
        let google = wire == Wire::Gemini;
        let expected = (!google).then(|| "70".to_owned());
        assert_eq!(header(&response, "retry-after-ms"), expected, "{wire:?}");
        let expected = (!google).then(|| "true".to_owned());
        assert_eq!(header(&response, "x-should-retry"), expected, "{wire:?}");
        assert_eq!(response.body.contains("\"retryDelay\":\"0.070s\""), google);
        let response = fail(wire, Reply::failure(FailureClass::RateLimit).retry_after(34));
        let expected = (!google).then(|| "34".to_owned());
        assert_eq!(header(&response, "retry-after"), expected, "{wire:?}");
        assert_eq!(response.body.contains("\"retryDelay\":\"34s\""), google);
    }
}

#[test]
fn every_answer_has_the_id_of_its_request() {
    for (wire, name) in [
        (Wire::Responses, "x-request-id"),
        (Wire::Chat, "x-request-id"),
        (Wire::Messages, "request-id"),
    ] {
        for reply in [Reply::failure(FailureClass::Internal), Reply::text("hi")] {
            let response = fail(wire, reply);
            assert_eq!(header(&response, name).as_deref(), Some("req_0000"), "{wire:?}");
        }
    }
    let body = fail(Wire::Messages, Reply::failure(FailureClass::Internal)).json();
    assert_eq!(body["request_id"], "req_0000");
}

/// A retry cannot succeed before the next month; without the code, it looks like a rate limit.
#[test]
fn the_spend_limit_of_anthropic_has_a_code_and_no_hint() {
    let reply = Reply::failure(FailureClass::Quota).retry_after(1).retry_after_ms(1);
    let response = fail(Wire::Messages, reply);
    let code = response.json()["error"]["details"]["error_code"].clone();
    assert_eq!(code, "enforced_spend_limit_reached");
    assert!(!response.headers.contains("retry-after"));
}

#[test]
fn gemini_states_the_quota_of_the_day_and_a_wrong_key_in_its_details() {
    for (class, pointer, value) in [
        (
            FailureClass::Quota,
            "/error/details/0/violations/0/quotaId",
            "GenerateRequestsPerDayPerProjectPerModel",
        ),
        (
            FailureClass::RateLimit,
            "/error/details/0/violations/0/quotaId",
            "GenerateRequestsPerMinutePerProjectPerModel",
        ),
        (FailureClass::InvalidKey, "/error/details/0/reason", "API_KEY_INVALID"),
    ] {
        let body = fail(Wire::Gemini, Reply::failure(class)).json();
        assert_eq!(body.pointer(pointer), Some(&json!(value)), "{class:?}");
    }
}

#[test]
fn a_failure_in_the_stream_replaces_its_end() {
    for (wire, pointer, value) in [
        (Wire::Responses, "/response/error/code", "server_is_overloaded"),
        (Wire::Chat, "/error/code", "server_is_overloaded"),
        (Wire::Messages, "/error/type", "overloaded_error"),
        (Wire::Gemini, "/error/status", "UNAVAILABLE"),
    ] {
        let response = fail(wire, Reply::text("Hi").failure_in_stream(FailureClass::Overloaded));
        let events = response.events();
        let last: Value = serde_json::from_str(&events.last().unwrap().1).unwrap();
        assert_eq!(
            (response.status, last.pointer(pointer)),
            (200, Some(&json!(value))),
            "{wire:?}"
        );
    }
}

#[test]
fn an_error_event_of_responses_may_be_flat_or_nested() {
    use fake_model::{ErrorEvent, ResponsesForm};
    for (error_event, pointer) in [(ErrorEvent::Flat, "/code"), (ErrorEvent::Nested, "/error/code")]
    {
        let form = ResponsesForm { error_event, ..ResponsesForm::default() };
        let reply = Reply::text("Hi").failure_in_stream(FailureClass::RateLimit).responses(form);
        let (name, data) = fail(Wire::Responses, reply).events().last().unwrap().clone();
        let event: Value = serde_json::from_str(&data).unwrap();
        assert_eq!(name, "error");
        assert_eq!(event.pointer(pointer), Some(&json!("rate_limit_exceeded")));
    }
}
