//! Responses that break off anywhere, and servers that fall silent. No call runs before its response
//! has ended properly.

use std::time::Duration;

use fake_model::{Cut, Reply, Script, Stop};
use serde_json::json;

use super::{APIS, Bench, of_kind, only};

#[tokio::test]
async fn a_call_of_a_response_without_an_end_is_not_run() {
    let cuts =
        [Cut::BeforeFirstByte, Cut::AfterCalls, Cut::BeforeLastEvent, Cut::QuietBeforeLastEvent];
    for api in APIS {
        for cut in cuts {
            let write = || Reply::call("Write", json!({"file_path": "out.txt", "content": "new"}));
            let replies = [write().cut(cut), write().hold("retried"), Reply::text("Done.")];
            let bench = Bench::new(api, replies);
            let mut session = bench.open().await;
            session.handle.prompt("write").await.unwrap();
            session.handle.finish().await.unwrap();
            let retry = session.until(|event| event["type"] == "retry").await;
            assert_eq!(retry["class"], "network", "{api:?} {cut:?}: {retry}");
            assert!(!bench.path("out.txt").exists(), "{api:?} {cut:?}");
            bench.model.gate("retried").open();
            let (ended, events) = session.end().await;
            assert_eq!(ended.code(), 0, "{api:?} {cut:?}: {events:#?}");
            assert!(bench.path("out.txt").exists(), "{api:?} {cut:?}");
            let (started, finished) = (only(&events, "tool_started"), only(&events, "tool_ended"));
            assert_eq!(started["call"], finished["call"], "{api:?} {cut:?}");
            assert_eq!(finished["status"], "completed", "{api:?} {cut:?}");
            bench.check("cut-without-end");
        }
    }
}

/// The first call keeps its id, and the second one starts in the response that is requested again:
/// their order was taken for another one than that of the answer, and the turn failed.
#[tokio::test]
async fn a_call_that_is_generated_again_keeps_its_place_before_a_new_one() {
    let write = |name: &str| json!({"file_path": name, "content": name});
    for api in APIS {
        let first = || Reply::call("Write", write("first.txt"));
        let both = || first().then_call("Write", write("second.txt"));
        let cases = [
            vec![first().cut(Cut::AfterCalls), both()],
            vec![first().cut(Cut::AfterCalls), both().cut(Cut::AfterCalls), both()],
            vec![first().cut(Cut::AfterCalls), both().then_call("Write", write("third.txt"))],
            // Only the second call is one of the first response.
            vec![
                Reply::call("Read", write("first.txt"))
                    .then_call("Write", write("second.txt"))
                    .cut(Cut::AfterCalls),
                both(),
            ],
        ];
        for (case, replies) in cases.into_iter().enumerate() {
            let calls = if case == 2 { 3 } else { 2 };
            let bench = Bench::new(api, replies.into_iter().chain([Reply::text("Done.")]));
            let (ended, events) = bench.run("write").await;
            assert_eq!(ended.code(), 0, "{api:?} {case}: {events:#?}");
            let ends = of_kind(&events, "tool_ended");
            let completed = ends.iter().filter(|end| end["status"] == "completed");
            assert_eq!(completed.count(), calls, "{api:?} {case}: {ends:#?}");
            for name in ["first.txt", "second.txt", "third.txt"].iter().take(calls) {
                assert_eq!(std::fs::read_to_string(bench.path(name)).unwrap(), *name, "{api:?}");
            }
            bench.check("cut-between-calls");
        }
    }
}

/// A connection that stays open without a byte is the most common way in which a proxy fails.
#[tokio::test]
async fn a_server_that_falls_silent_is_asked_again() {
    for api in APIS {
        let stalls = || Reply::text("One, ").then_gate("never").then_text("two.");
        let script = Script::new().reply(stalls()).reply(Reply::text("Hi.").hold("never"));
        let mut bench = Bench::with_script(api, script);
        bench.settings.retries.attempts = 2;
        // The time that passes is what is tested.
        bench.settings.connection.silence = Duration::from_millis(300);
        let (ended, events) = bench.run("count").await;
        assert_eq!(ended.code(), 124, "{api:?}: {events:#?}");
        let timed_out = json!("timed_out");
        assert_eq!(only(&events, "retry")["class"], timed_out, "{api:?}");
        assert_eq!(only(&events, "withdrawn")["blocks"][0]["text"], "One, ", "{api:?}");
        let error = only(&events, "error");
        assert_eq!((&error["class"], &error["retryable"]), (&timed_out, &json!(true)), "{api:?}");
        let end = only(&events, "turn_ended");
        assert_eq!((&end["outcome"], &end["class"]), (&timed_out, &timed_out), "{api:?}");
        assert_eq!(of_kind(&events, "interrupted").len(), 0, "{api:?}");
    }
}

/// A complete call before one that was cut off is not run either: the model may have wanted both.
#[tokio::test]
async fn of_several_calls_none_is_run_if_the_last_was_cut_off_by_the_limit_of_tokens() {
    for api in APIS {
        let write = |name: &str| json!({"file_path": name, "content": "x"});
        let calls = Reply::call("Write", write("a.txt")).then_call("Write", write("b.txt"));
        let calls = calls.truncated_call().stop(Stop::Length);
        // Chat Completions does not tell which call is complete, so none of them comes back, and the
        // model misses it.
        let script = Script::new().reply(calls).reply(Reply::text("Again."));
        let bench = Bench::with_script(api, script);
        let session = bench.open().await;
        session.handle.prompt("write").await.unwrap();
        session.handle.prompt("go on").await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, events) = session.end().await;
        let outcomes: Vec<_> =
            of_kind(&events, "turn_ended").iter().map(|end| end["outcome"].clone()).collect();
        assert_eq!(outcomes, ["limit_reached", "completed"], "{api:?}: {events:#?}");
        assert!(!bench.path("a.txt").exists() && !bench.path("b.txt").exists(), "{api:?}");
        let ends = of_kind(&events, "tool_ended");
        assert!(ends.iter().all(|end| end["status"] != "completed"), "{api:?}: {ends:#?}");
    }
}
