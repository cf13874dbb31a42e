//! A conversation that exceeds the context window, and the summary that replaces what is older.

use fake_model::{Cut, FailureClass, Reply, Script};
use interlingua_agents::Ended;
use serde_json::{Value, json};

use super::resume::{earlier, history, last_turn, notices, storing};
use super::{APIS, Bench, KEY, of_kind, only, text};

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
async fn a_request_for_a_summary_is_retried() {
    for api in APIS {
        let replies = [
            Reply::text("The word is plum."),
            Reply::failure(FailureClass::ContextOverflow),
            Reply::failure(FailureClass::Overloaded),
            Reply::text("It is pl").then_text("um.").cut(Cut::InText),
            Reply::text("They asked for a word, and it is plum."),
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
        assert_eq!(of_kind(&events, "retry").len(), 2, "{api:?}");
        assert_eq!(of_kind(&events, "compacted").len(), 1, "{api:?}");
    }
}

/// Most runs have one prompt, and many calls.
#[tokio::test]
async fn an_overflow_in_the_first_turn_is_mended_by_a_summary() {
    for api in APIS {
        let read = |name: &str| Reply::call("Read", json!({"file_path": name}));
        let replies = [
            read("note.txt"),
            read("list.txt"),
            Reply::failure(FailureClass::ContextOverflow),
            Reply::text("The note says plum."),
            Reply::text("Plum, apple and birch."),
        ];
        // A strict script expects the first answers to come back.
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let mut bench = Bench::with_script(api, script);
        bench.settings.compact = true;
        bench.write("note.txt", "the secret word is plum");
        bench.write("list.txt", "apple and birch");
        let (ended, events) = bench.run("read both").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Plum, apple and birch.", "{api:?}");
        let requests = bench.model.main_requests();
        let [summary, last] = [&requests[3], &requests[4]].map(|it| it.body.to_string());
        assert!(summary.contains("secret word") && !summary.contains("birch"), "{summary}");
        let kept = ["read both", "The note says plum.", "birch"];
        assert!(kept.iter().all(|it| last.contains(it)), "{api:?}: {last}");
        assert!(!last.contains("secret word"), "{api:?}: {last}");
        bench.check("compacted-turn");
    }
}

#[tokio::test]
async fn an_overflow_that_no_summary_can_mend_states_so() {
    for api in APIS {
        let mut bench = Bench::new(api, [Reply::failure(FailureClass::ContextOverflow)]);
        bench.settings.compact = true;
        let (_, events) = bench.run("a very long prompt").await;
        let message = only(&events, "error")["message"].as_str().unwrap();
        assert!(message.contains("nothing older that --compact could summarise"), "{message}");
    }
}

/// A conversation whose second prompt exceeds the context window.
fn overflowing(summary: Reply) -> [Reply; 4] {
    let overflow = Reply::failure(FailureClass::ContextOverflow);
    [Reply::text("One."), overflow, summary, Reply::text("Two.")]
}

#[tokio::test]
async fn a_summary_without_counts_is_estimated() {
    for api in APIS {
        let summary = "They count. ".repeat(20);
        let mut bench = Bench::new(api, overflowing(Reply::text(&summary).without_usage()));
        bench.settings.compact = true;
        let session = bench.open().await;
        session.handle.prompt("one").await.unwrap();
        session.handle.prompt("two").await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, events) = session.end().await;
        let usage = &of_kind(&events, "turn_ended")[1]["usage"];
        // The answer itself has 20.
        assert!(usage["output"].as_u64().unwrap() > 20 + 40, "{api:?}: {usage}");
        assert_eq!(usage["estimated"], true, "{api:?}: {usage}");
    }
}

/// A model that repeats the key from the conversation must not bring it into the log.
#[tokio::test]
async fn a_key_in_a_summary_is_redacted() {
    for api in APIS {
        let summary = Reply::text(&format!("Their key is {KEY}, they said."));
        let mut bench = Bench::new(api, overflowing(summary));
        bench.settings.compact = true;
        let session = bench.open().await;
        session.handle.prompt("one").await.unwrap();
        session.handle.prompt("two").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let summary = &only(&events, "compacted")["details"]["summary"];
        assert!(summary.as_str().unwrap().ends_with(", they said."), "{api:?}: {summary}");
        assert!(!format!("{events:?}").contains(KEY), "{api:?}: {events:#?}");
    }
}

#[tokio::test]
async fn the_calls_of_the_running_turn_stay_and_a_resumed_session_has_the_summary() {
    for api in APIS {
        let think = || Reply::new().then_reasoning("Hm.");
        let replies = [
            think().then_text("The word is plum."),
            think().then_call("Read", json!({"file_path": "list.txt"})),
            Reply::failure(FailureClass::ContextOverflow),
            Reply::text("They asked for a word: plum."),
            think().then_text("Apple and birch."),
            last_turn(),
        ];
        let mut bench = storing(api, replies);
        bench.settings.compact = true;
        let session = bench.open().await;
        session.handle.prompt("a word, please").await.unwrap();
        session.handle.prompt("and the list").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert!(notices(&events).contains("without its reasoning"), "{api:?}");
        let compacted = history(&bench.model.main_requests()[4].body);
        let sent = format!("{compacted:?}");
        for kept in ["They asked for a word: plum.", "and the list", "list.txt", "birch"] {
            assert!(sent.contains(kept), "{api:?} {kept}: {sent}");
        }
        assert!(!sent.contains("The word is plum."), "{api:?}: {sent}");
        bench.settings.earlier = Some(earlier(&bench, &events));
        let (ended, events) = bench.run("which word was it?").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let resumed = history(&bench.model.main_requests()[5].body);
        assert_eq!(resumed[..compacted.len()], compacted, "{api:?}");
        assert!(resumed.len() > compacted.len(), "{api:?}");
        bench.check("compacted-resumed");
    }
}

/// A conversation whose summary is made of a long result, and the prompt that exceeds the window.
async fn with_a_long_result(bench: &Bench) -> (Ended, Vec<Value>) {
    bench.write("note.txt", &"The secret word is plum. ".repeat(400));
    let session = bench.open().await;
    session.handle.prompt("read the note").await.unwrap();
    session.handle.prompt("which word?").await.unwrap();
    session.handle.finish().await.unwrap();
    session.end().await
}

fn reads_the_note() -> [Reply; 2] {
    [Reply::call("Read", json!({"file_path": "note.txt"})), Reply::text(&"I read. ".repeat(300))]
}

/// The request for a summary was the second one that failed, and the turn with it.
#[tokio::test]
async fn a_summary_that_exceeds_the_window_is_made_of_less() {
    for api in APIS {
        let overflow = || Reply::failure(FailureClass::ContextOverflow);
        let [call, read] = reads_the_note();
        let summary = Reply::text("They read a note.");
        let replies = [call, read, overflow(), overflow(), summary, Reply::text("Plum.")];
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let mut bench = Bench::with_script(api, script);
        bench.settings.compact = true;
        let (ended, events) = with_a_long_result(&bench).await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let details = &only(&events, "compacted")["details"];
        assert_eq!(details["summary"], "They read a note.", "{api:?}");
        let left_out = details["left_out_bytes"].as_u64().unwrap();
        assert!(left_out > 2_000, "{api:?}: {left_out}");
        assert_eq!(only(&events, "retry")["class"], "context_overflow", "{api:?}");
        let noted = of_kind(&events, "notice").into_iter().map(|it| it["text"].to_string());
        let said = format!("without {left_out} bytes of the conversation");
        assert!(noted.into_iter().any(|text| text.contains(&said)), "{api:?}: {events:#?}");
        let requests = bench.model.main_requests();
        let [first, second] = [3, 4].map(|at: usize| requests[at].body.to_string());
        assert!(second.len() < first.len() * 2 / 3, "{api:?}: {} {}", first.len(), second.len());
        assert!(second.contains("read the note"), "{api:?}: {second}");
        bench.check("compacted-shorter");
    }
}

/// A server that takes nothing would be asked for ever.
#[tokio::test]
async fn a_summary_that_is_always_too_long_fails_the_turn() {
    for api in APIS {
        let [call, read] = reads_the_note();
        let script = Script::new().reply(call).reply(read);
        let overflow = Reply::failure(FailureClass::ContextOverflow);
        let mut bench = Bench::with_script(api, script.reply(overflow).repeat_last());
        bench.settings.compact = true;
        let (ended, events) = with_a_long_result(&bench).await;
        assert_eq!(ended.code(), 1, "{api:?}: {events:#?}");
        let error = only(&events, "error");
        assert_eq!(error["class"], "context_overflow", "{api:?}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("even a short excerpt exceeds"), "{api:?}: {message}");
        assert_eq!(of_kind(&events, "compacted").len(), 0, "{api:?}");
        let requests = bench.model.main_requests().len();
        assert!((5..10).contains(&requests), "{api:?}: {requests}");
    }
}
