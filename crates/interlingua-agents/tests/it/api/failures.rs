//! Requests that fail, responses that are cut off, and what the user sees of it.

use std::io::{Read, Write};
use std::path::Path;

use fake_model::{ChatForm, Cut, FailureClass, MessagesForm, Reply, Script, Stop};
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
            assert!(!format!("{events:?}").contains("sk-abc"), "{api:?} {class:?}");
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

/// Compatible servers and newer models name the same limit differently.
#[tokio::test]
async fn a_call_is_cut_off_by_any_limit_that_the_dialect_knows() {
    let half = || {
        let call = Reply::call("Write", json!({"file_path": "out.txt", "content": "half"}));
        call.truncated_call()
    };
    let window = MessagesForm {
        stop_reason: Some("model_context_window_exceeded".to_owned()),
        ..MessagesForm::default()
    };
    let tokens = ChatForm { finish_reason: Some("max_tokens".to_owned()), ..ChatForm::default() };
    let cases =
        [(ApiKind::Anthropic, half().messages(window)), (ApiKind::Chat, half().chat(tokens))];
    for (api, reply) in cases {
        let bench = Bench::new(api, [reply]);
        let (_, events) = bench.run("write").await;
        assert_eq!(only(&events, "turn_ended")["outcome"], "limit_reached", "{api:?}");
        assert_eq!(bench.model.main_requests().len(), 1, "{api:?}: {events:#?}");
        assert!(!bench.path("out.txt").exists(), "{api:?}");
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

/// A call is part of what was streamed before the checkpoint.
#[tokio::test]
async fn a_continued_stream_of_gemini_keeps_its_calls() {
    let reads = || {
        let call = Reply::text("I read.").then_call("Read", json!({"file_path": "note.txt"}));
        call.then_checkpoint().then_text("Then I go on.")
    };
    for reply in [reads().cut(Cut::AfterCheckpoint), reads().continued()] {
        let bench = Bench::new(ApiKind::Gemini, [reply, Reply::text("Done.")]);
        bench.write("note.txt", "plum");
        let (ended, events) = bench.run("read").await;
        assert_eq!(ended.code(), 0, "{events:#?}");
        assert_eq!(text(&events), "I read.|Then I go on.|Done.");
        assert_eq!(only(&events, "tool_ended")["status"], "completed");
        assert!(of_kind(&events, "withdrawn").is_empty());
        bench.check("continued-calls");
    }
}

/// The request that continues a response may fail too. What was shown is not generated again.
#[tokio::test]
async fn a_continuation_that_fails_is_continued_again() {
    let counts = Reply::text("One ").then_checkpoint().then_text("two.");
    let script = Script::new()
        .reply(counts.cut(Cut::AfterCheckpoint).continuation_failure(FailureClass::Overloaded));
    let bench = Bench::with_script(ApiKind::Gemini, script);
    let (ended, events) = bench.run("count").await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    assert_eq!(text(&events), "One |two.");
    assert_eq!(of_kind(&events, "retry").len(), 2, "{events:#?}");
    assert!(of_kind(&events, "withdrawn").is_empty());
}

#[tokio::test]
async fn a_call_with_malformed_arguments_is_an_error_for_the_model() {
    let read = || json!({"file_path": "note.txt"});
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        for (alone, malformed) in [(true, "{\"file_path\": note.txt}"), (false, "[1]")] {
            let mut reply = Reply::new().then_reasoning("Hm.");
            if !alone {
                reply = reply.then_call("Read", read());
            }
            let reply = reply.then_call("Read", json!({})).raw_arguments(malformed);
            // What comes back is not what was sent, so the script is not strict.
            let replies = [reply, Reply::call("Read", read()), Reply::text("Done.")];
            let script = replies.into_iter().fold(Script::new(), Script::reply);
            let bench = Bench::with_script(api, script);
            bench.write("note.txt", "plum");
            let (ended, events) = bench.run("read").await;
            assert_eq!(ended.code(), 0, "{api:?} {alone}: {events:#?}");
            assert!(of_kind(&events, "retry").is_empty(), "{api:?} {alone}: {events:#?}");
            let statuses: Vec<_> =
                of_kind(&events, "tool_ended").iter().map(|it| it["status"].clone()).collect();
            let count = |status| statuses.iter().filter(|it| *it == status).count();
            assert_eq!((count("abandoned"), count("completed")), (1, 2 - usize::from(alone)));
            let body = bench.model.main_requests()[1].body.to_string();
            assert_eq!(body.matches("are not a JSON object").count(), 1, "{api:?}: {body}");
            assert_eq!(bench.model.findings(), [], "{api:?} {alone}");
        }
    }
}

#[tokio::test]
async fn a_model_that_only_writes_malformed_calls_fails() {
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        let broken = || Reply::call("Read", json!({})).raw_arguments("{no");
        let script = (0..4).fold(Script::new(), |script, _| script.reply(broken()));
        let bench = Bench::with_script(api, script);
        let (ended, events) = bench.run("read").await;
        assert_eq!(ended.code(), 1, "{api:?}: {events:#?}");
        let cause = only(&events, "turn_ended")["cause"].as_str().unwrap();
        assert!(cause.contains("no JSON object"), "{api:?}: {cause}");
        assert_eq!(bench.model.main_requests().len(), 4, "{api:?}");
    }
}

/// Some servers and proxies keep the connection open after the last event.
#[tokio::test]
async fn a_response_ends_when_it_says_so() {
    let cases = [
        (ApiKind::Anthropic, "anthropic-api/text"),
        (ApiKind::Responses, "openai-responses/plain"),
        (ApiKind::Chat, "openai-chat/plain"),
        (ApiKind::Gemini, "gemini-api/text"),
    ];
    for (api, case) in cases {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts").join(case);
        let body = std::fs::read(path.join("input.jsonl")).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (close, closed) = std::sync::mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = [0; 1 << 16];
            let _ = connection.read(&mut request).unwrap();
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            connection.write_all(head).unwrap();
            connection.write_all(&body).unwrap();
            // It stays open until the session has ended.
            let _ = closed.recv();
        });
        let mut bench = Bench::new(api, []);
        bench.settings.connection.base_url = address;
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        drop(close);
        server.join().unwrap();
    }
}

/// Current models bind their reasoning to everything before it, and providers check that.
#[tokio::test]
async fn reasoning_that_the_provider_rejects_is_dropped_once() {
    let rejections = [
        (
            ApiKind::Anthropic,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation"}}"#,
        ),
        (
            ApiKind::Responses,
            r#"{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#,
        ),
        (
            ApiKind::Gemini,
            r#"{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}"#,
        ),
    ];
    for (api, body) in rejections {
        let rejected = Reply::raw(400, &[("content-type", "application/json")], body);
        let thoughtful = Reply::new().then_reasoning("Hm.").then_text("One.");
        // A strict script expects the signatures to come back.
        let replies = [thoughtful, rejected, Reply::text("Two."), Reply::text("Three.")];
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let bench = Bench::with_script(api, script);
        let session = bench.open().await;
        for prompt in ["count", "go on", "and on"] {
            session.handle.prompt(prompt).await.unwrap();
        }
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "One.|Two.|Three.", "{api:?}");
        assert_eq!(only(&events, "retry")["class"], "bad_request", "{api:?}");
        let told = of_kind(&events, "notice")
            .iter()
            .any(|it| it["text"].as_str().unwrap().contains("the reasoning of earlier answers"));
        assert!(told, "{api:?}: {events:#?}");
        let last = bench.model.main_requests().last().unwrap().body.to_string();
        assert!(!last.contains("fakeSign0000"), "{api:?}: {last}");
    }
}

/// Every repeated request is visible, also one that is sent again at once.
#[tokio::test]
async fn an_empty_answer_is_a_retry_that_can_be_seen() {
    for api in APIS {
        let bench = Bench::new(api, [Reply::new(), Reply::text("Hello.")]);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(only(&events, "retry")["message"], "the response is empty", "{api:?}");
    }
}

#[tokio::test]
async fn an_error_states_whether_it_may_be_retried() {
    for api in APIS {
        let mut bench = Bench::new(api, [Reply::failure(FailureClass::Overloaded)]);
        bench.settings.retries.attempts = 1;
        let (_, events) = bench.run("hi").await;
        assert_eq!(only(&events, "error")["retryable"], true, "{api:?}");
        let bench = Bench::new(api, [Reply::failure(FailureClass::Quota)]);
        let (_, events) = bench.run("hi").await;
        assert_eq!(only(&events, "error")["retryable"], false, "{api:?}");
    }
}

/// The server asks for a delay, which is longer than that of the policy.
#[tokio::test]
async fn the_delay_is_the_one_that_the_provider_asks_for() {
    for api in APIS {
        let limited = Reply::failure(FailureClass::RateLimit).retry_after_ms(30);
        let bench = Bench::new(api, [limited, Reply::text("Hello.")]);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        // Up to a quarter is added at random.
        let delay = only(&events, "retry")["delay_ms"].as_u64().unwrap();
        assert!((30..=38).contains(&delay), "{api:?}: {delay}");
    }
}

/// A redirect would send the key, and the conversation, to another host.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    for api in APIS {
        for status in [301, 302, 303, 307, 308] {
            let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            other.set_nonblocking(true).unwrap();
            let location = format!("http://{}/elsewhere", other.local_addr().unwrap());
            let redirect = Reply::raw(status, &[("location", &location)], "");
            let bench = Bench::new(api, [redirect]);
            let (ended, events) = bench.run("hi").await;
            assert_eq!(ended.code(), 1, "{api:?} {status}: {events:#?}");
            let end = only(&events, "turn_ended");
            assert_eq!(end["class"], "configuration", "{api:?} {status}");
            assert!(of_kind(&events, "retry").is_empty(), "{api:?} {status}");
            let cause = end["cause"].as_str().unwrap();
            assert!(cause.contains("redirects"), "{api:?} {status}: {cause}");
            // The kernel accepts connections before the program does, so that one would be waiting.
            let connection = other.accept().unwrap_err();
            assert_eq!(connection.kind(), std::io::ErrorKind::WouldBlock, "{api:?} {status}");
        }
    }
}

/// A run that takes too long ends with an error of its own class.
#[tokio::test]
async fn a_run_that_takes_too_long_is_an_error() {
    for api in APIS {
        let long = Reply::text("One, ").then_gate("never").then_text("two.");
        let bench = Bench::with_script(api, Script::new().reply(long));
        let limit = std::time::Duration::from_millis(300);
        let (ended, events) = bench.run_within("count", limit).await;
        assert_eq!(ended.code(), 124, "{api:?}: {events:#?}");
        let end = only(&events, "turn_ended");
        let class = json!("timed_out");
        assert_eq!((&end["outcome"], &end["class"]), (&class, &class), "{api:?}");
        assert_eq!(only(&events, "error")["class"], class, "{api:?}");
    }
}

/// Models sometimes stop after their reasoning. What was shown of it comes a second time.
#[tokio::test]
async fn reasoning_without_an_answer_is_withdrawn_and_generated_again() {
    for api in APIS {
        let again = Reply::new().then_reasoning("Hm.").then_text("Hello.");
        let script = Script::new().reply(Reply::new().then_reasoning("Hm.")).reply(again);
        let bench = Bench::with_script(api, script);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(only(&events, "retry")["message"], "the response is empty", "{api:?}");
        assert_eq!(only(&events, "withdrawn")["blocks"][0]["text"], "Hm.", "{api:?}");
    }
}
