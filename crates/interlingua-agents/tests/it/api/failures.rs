//! Requests that fail, responses that are cut off, and what the user sees of it.

use fake_model::{Cut, FailureClass, Reply, Stop};
use interlingua_agents::api::ApiKind;
use serde_json::json;

use super::{APIS, Bench, of_kind, only, text};

#[tokio::test]
async fn a_failed_request_is_retried() {
    for api in APIS {
        for class in [FailureClass::RateLimit, FailureClass::Overloaded, FailureClass::Internal] {
            let bench = Bench::new(api, [Reply::failure(class), Reply::text("Hello.")]);
            let (ended, events) = bench.run("hi").await;
            assert_eq!(ended.code(), 0, "{api:?} {class:?}: {events:#?}");
            assert_eq!(text(&events), "Hello.");
            let retry = only(&events, "retry");
            assert_eq!(retry["attempt"], 2, "{api:?} {class:?}");
            bench.check("retried");
        }
    }
}

#[tokio::test]
async fn a_failure_that_a_retry_cannot_mend_ends_the_turn() {
    let expected = [
        (FailureClass::Quota, "quota"),
        (FailureClass::InvalidKey, "authentication"),
        (FailureClass::ContextOverflow, "context_overflow"),
        (FailureClass::NotFound, "not_found"),
    ];
    for api in APIS {
        for (class, name) in expected {
            let bench = Bench::new(api, [Reply::failure(class)]);
            let (ended, events) = bench.run("hi").await;
            assert_eq!(ended.code(), 1, "{api:?} {class:?}");
            assert!(of_kind(&events, "retry").is_empty(), "{api:?} {class:?}: {events:#?}");
            let end = only(&events, "turn_ended");
            assert_eq!(
                (&end["outcome"], &end["class"]),
                (&json!("failed"), &json!(name)),
                "{api:?}"
            );
            assert_eq!(only(&events, "error")["class"], name);
            assert!(!format!("{events:?}").contains("dummy"), "{api:?} {class:?}");
        }
    }
}

#[tokio::test]
async fn a_text_that_was_cut_off_is_withdrawn_and_generated_again() {
    for api in APIS {
        let cut = Reply::text("The answer is fo").then_text("rty").cut(Cut::InText);
        let bench = Bench::new(api, [cut, Reply::text("The answer is 42.")]);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "The answer is 42.");
        assert_eq!(only(&events, "withdrawn")["blocks"][0]["text"], "The answer is fo", "{api:?}");
        assert_eq!(only(&events, "retry")["class"], "network");
        bench.check("cut-in-text");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_run_and_keeps_its_id() {
    let write = |text: &str| json!({"file_path": "out.txt", "content": text});
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        let cut = Reply::call("Write", write("half of the content")).cut(Cut::InCall);
        let replies = [cut, Reply::call("Write", write("whole")), Reply::text("Done.")];
        let bench = Bench::new(api, replies);
        let (ended, events) = bench.run("write").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(std::fs::read_to_string(bench.path("out.txt")).unwrap(), "whole");
        let (started, finished) = (only(&events, "tool_started"), only(&events, "tool_ended"));
        assert_eq!(started["call"], finished["call"], "{api:?}");
        assert_eq!(only(&events, "tool_input")["input"], write("whole"));
        bench.check("cut-in-call");
    }
}

#[tokio::test]
async fn a_call_that_the_limit_of_tokens_cut_off_is_not_run() {
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        let call = Reply::call("Write", json!({"file_path": "out.txt", "content": "half"}));
        let bench = Bench::new(api, [call.truncated_call().stop(Stop::Length), Reply::text("Ok.")]);
        let session = bench.open().await;
        session.handle.prompt("write").await.unwrap();
        session.handle.prompt("go on").await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, events) = session.end().await;
        assert!(!bench.path("out.txt").exists(), "{api:?}");
        assert_eq!(
            of_kind(&events, "turn_ended")[0]["outcome"],
            "limit_reached",
            "{api:?}: {events:#?}"
        );
        assert_eq!(of_kind(&events, "turn_ended")[1]["outcome"], "completed", "{api:?}");
        bench.check("cut-by-length");
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_an_error() {
    for api in APIS {
        let fails = Reply::text("So f").failure_in_stream(FailureClass::Overloaded);
        let bench = Bench::new(api, [fails, Reply::text("Hello.")]);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Hello.");
        assert_eq!(only(&events, "retry")["class"], "overloaded", "{api:?}");
        bench.check("error-in-stream");
    }
}

#[tokio::test]
async fn what_is_no_response_is_no_success() {
    for api in APIS {
        let bench = Bench::new(api, [Reply::html()]);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 1, "{api:?}: {events:#?}");
        let cause = only(&events, "turn_ended")["cause"].as_str().unwrap();
        assert!(cause.contains("check the address"), "{api:?}: {cause}");
        let bench = Bench::new(api, [Reply::empty_body(), Reply::text("Hello.").whole_json()]);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Hello.");
    }
}

#[tokio::test]
async fn a_refusal_is_no_success_and_not_repeated_to_the_model() {
    for api in APIS {
        let bench =
            Bench::new(api, [Reply::new().then_refusal("I will not."), Reply::text("Hello.")]);
        let session = bench.open().await;
        session.handle.prompt("bad").await.unwrap();
        session.handle.prompt("good").await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, events) = session.end().await;
        let ends = of_kind(&events, "turn_ended");
        assert_eq!(
            (&ends[0]["outcome"], &ends[1]["outcome"]),
            (&json!("refused"), &json!("completed")),
            "{api:?}: {events:#?}"
        );
        bench.check("refusal");
    }
}

#[tokio::test]
async fn an_overflow_is_mended_by_a_summary() {
    for api in APIS {
        let replies = [
            Reply::new().then_reasoning("Hm.").then_text("The word is plum."),
            Reply::failure(FailureClass::ContextOverflow),
            Reply::text("They asked for a word, and it is plum.").usage(50, 9),
            Reply::text("Plum again."),
        ];
        let mut bench = Bench::new(api, replies);
        bench.settings.compact = true;
        let session = bench.open().await;
        session.handle.prompt("a word, please").await.unwrap();
        session.handle.prompt("again").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "The word is plum.|Plum again.");
        assert_eq!(only(&events, "compacted")["trigger"], "context_overflow");
        let ends = of_kind(&events, "turn_ended");
        assert_eq!(ends[1]["usage"]["output"], 29, "{api:?}: the summary counts too");
        let last = bench.model.requests().last().unwrap().body.to_string();
        assert!(last.contains("it is plum.") && last.contains("again"), "{api:?}");
        assert!(!last.contains("The word is plum."), "{api:?}");
        bench.check("compacted");
    }
}

#[tokio::test]
async fn a_cut_stream_of_gemini_continues_where_it_stopped() {
    let counts = || Reply::text("One ").then_checkpoint().then_text("two.");
    for reply in [counts().cut(Cut::AfterCheckpoint), counts().continued()] {
        let bench = Bench::new(ApiKind::Gemini, [reply, Reply::text("Three.")]);
        let session = bench.open().await;
        session.handle.prompt("count").await.unwrap();
        session.handle.prompt("go on").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{events:#?}");
        assert_eq!(text(&events), "One |two.|Three.");
        assert!(of_kind(&events, "withdrawn").is_empty());
        bench.check("continued");
    }
}

#[tokio::test]
async fn an_empty_or_malformed_answer_of_gemini_is_requested_again() {
    let replies = [Reply::empty_stop(), Reply::malformed_call("print(1)"), Reply::text("Hello.")];
    let bench = Bench::new(ApiKind::Gemini, replies);
    let (ended, events) = bench.run("hi").await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    assert_eq!(text(&events), "Hello.");
    bench.check("malformed");
}
