//! Errors in the form of each protocol, before the answer and inside it.

use fake_model::{Kind, Reply};
use serde_json::{Value, json};

use crate::support::{self, Wire, ask, model};

#[test]
fn http_errors_have_the_form_of_the_protocol() {
    let openai = |kind: &str, code: Value| json!({"error": {"message": "no", "type": kind, "param": null, "code": code}});
    let anthropic = |kind: &str| {
        let error = json!({"type": kind, "message": "no"});
        json!({"type": "error", "error": error, "request_id": "req_0000"})
    };
    let gemini = |code: u16, status: &str| json!({"error": {"code": code, "message": "no", "status": status}});
    let invalid = "invalid_request_error";
    for (status, kind, code, anthropic_kind, gemini_status) in [
        (400, invalid, Value::Null, invalid, "INVALID_ARGUMENT"),
        (401, invalid, json!("invalid_api_key"), "authentication_error", "UNAUTHENTICATED"),
        (403, "permission_error", Value::Null, "permission_error", "PERMISSION_DENIED"),
        (
            429,
            "rate_limit_error",
            json!("rate_limit_exceeded"),
            "rate_limit_error",
            "RESOURCE_EXHAUSTED",
        ),
        (500, "server_error", Value::Null, "api_error", "INTERNAL"),
        (529, "server_error", Value::Null, "overloaded_error", "UNAVAILABLE"),
    ] {
        for wire in Wire::ALL {
            let response = ask(&model([Reply::error(status, "no")]), wire);
            let expected = match wire {
                Wire::Responses | Wire::Chat => openai(kind, code.clone()),
                Wire::Messages => anthropic(anthropic_kind),
                Wire::Gemini => gemini(status, gemini_status),
            };
            assert_eq!((response.status, response.json()), (status, expected), "{wire:?}");
        }
    }
}

#[test]
fn retry_after_is_a_header_and_for_gemini_also_in_the_body() {
    for wire in Wire::ALL {
        let response = ask(&model([Reply::error(429, "slow down").retry_after(7)]), wire);
        assert!(response.headers.contains("\r\nretry-after: 7\r\n"), "{wire:?}");
        assert_eq!(response.body.contains("\"retryDelay\":\"7s\""), wire == Wire::Gemini);
    }
}

#[test]
fn an_error_takes_one_reply_and_the_next_request_the_next() {
    for wire in Wire::ALL {
        let model = model([Reply::error(500, "no"), Reply::text("yes")]);
        assert_eq!(ask(&model, wire).status, 500);
        assert_eq!(support::parsed_answer(wire, &ask(&model, wire)).text, "yes");
        let kinds: Vec<Kind> = model.requests().into_iter().map(|request| request.kind).collect();
        assert_eq!(kinds, [Kind::Main(Some(0)), Kind::Main(Some(1))]);
    }
}

#[test]
fn an_error_in_the_stream_replaces_its_end() {
    for wire in Wire::ALL {
        let reply = Reply::text("Hel").then_text("lo").error_in_stream(529, "too much");
        let response = ask(&model([reply]), wire);
        let (name, data) = response.events().last().unwrap().clone();
        let error: Value = serde_json::from_str(&data).unwrap();
        let (expected_name, message, kind) = match wire {
            Wire::Responses => {
                ("response.failed", "/response/error/message", "/response/error/code")
            }
            Wire::Chat => ("", "/error/message", "/error/type"),
            Wire::Messages => ("error", "/error/message", "/error/type"),
            Wire::Gemini => ("", "/error/message", "/error/status"),
        };
        assert!(response.complete && response.status == 200, "{wire:?}");
        assert_eq!(name, expected_name);
        assert_eq!(error.pointer(message), Some(&json!("too much")), "{wire:?}");
        assert!(error.pointer(kind).is_some_and(Value::is_string), "{wire:?}");
        assert!(response.body.contains("Hel"));
        for end in ["response.completed", "\"stop\"", "end_turn", "[DONE]", "\"STOP\""] {
            assert!(!response.body.contains(end), "{wire:?} has {end}");
        }
    }
}
