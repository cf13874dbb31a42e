//! What the error of a turn that failed states: its class, and whether and when to try again.

use fake_model::{FailureClass, Reply, Script};
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::{APIS, Bench, only};

/// The class of the error, which is also that of the end, and whether it may be retried.
fn error(events: &[Value]) -> (Value, Value) {
    let (error, end) = (only(events, "error"), only(events, "turn_ended"));
    assert_eq!(error["class"], end["class"], "{events:#?}");
    (error["class"].clone(), error["retryable"].clone())
}

/// An hour is longer than a session waits, but not longer than its user may.
#[tokio::test]
async fn the_delay_that_was_too_long_to_wait_for_is_stated() {
    for api in APIS {
        let limited = Reply::failure(FailureClass::RateLimit).retry_after_ms(3_600_000);
        let bench = Bench::new(api, [limited]);
        let (_, events) = bench.run("hi").await;
        assert_eq!(error(&events), (json!("rate_limit"), json!(true)), "{api:?}");
        assert_eq!(only(&events, "error")["retry_after_ms"], 3_600_000, "{api:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_want_a_retry_is_believed() {
    // Gemini has no such header.
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        let overloaded = Reply::failure(FailureClass::Overloaded).should_retry(false);
        let bench = Bench::new(api, [overloaded]);
        let (_, events) = bench.run("hi").await;
        assert_eq!(error(&events), (json!("overloaded"), json!(false)), "{api:?}");
    }
}

#[tokio::test]
async fn a_refusal_in_a_response_is_an_error() {
    for api in APIS {
        let bench = Bench::new(api, [Reply::new().then_refusal("I will not.")]);
        let (_, events) = bench.run("bad").await;
        assert_eq!(error(&events), (json!("refusal"), json!(false)), "{api:?}");
        assert_eq!(only(&events, "turn_ended")["outcome"], "refused", "{api:?}");
    }
}

#[tokio::test]
async fn calls_that_stay_malformed_are_an_error() {
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        let broken = || Reply::call("Read", json!({})).raw_arguments("{no");
        let script = (0..4).fold(Script::new(), |script, _| script.reply(broken()));
        let bench = Bench::with_script(api, script);
        let (_, events) = bench.run("read").await;
        assert_eq!(error(&events), (json!("internal"), json!(true)), "{api:?}");
    }
}

#[tokio::test]
async fn an_answer_that_never_fits_the_schema_is_an_error() {
    for api in APIS {
        let mut bench = Bench::new(api, ["One.", "Two.", "Three."].map(Reply::text));
        bench.settings.schema = Some(json!({"type": "object", "properties": {}}));
        let (ended, events) = bench.run("count").await;
        assert_eq!(ended.code(), 1, "{api:?}");
        assert_eq!(error(&events), (json!("internal"), json!(true)), "{api:?}");
        let cause = only(&events, "turn_ended")["cause"].as_str().unwrap();
        assert!(cause.contains("fits the schema"), "{api:?}: {cause}");
        assert_eq!(only(&events, "turn_ended")["steps"], 3, "{api:?}");
    }
}

#[tokio::test]
async fn a_response_that_is_incomplete_for_an_unknown_reason_is_requested_again() {
    for details in ["null", r#"{"reason":"tired"}"#] {
        let body = format!(
            "event: response.incomplete\ndata: {{\"type\":\"response.incomplete\",\"response\":{{\"id\":\"r\",\"status\":\"incomplete\",\"incomplete_details\":{details},\"output\":[]}}}}\n\n"
        );
        let incomplete = Reply::raw(200, &[("content-type", "text/event-stream")], &body);
        let script = Script::new().reply(incomplete).reply(Reply::text("Hello."));
        let bench = Bench::with_script(ApiKind::Responses, script);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{details}: {events:#?}");
        assert_eq!(only(&events, "retry")["class"], "internal", "{details}");
    }
}
