//! An agent has lost its own record of a session: it goes on with the history from the log.

use std::sync::atomic::Ordering;

use interlingua::event::{Outcome, ToolStatus};
use interlingua_sessions::Store;
use interlingua_sessions::host::{Command, NewSession, Received};
use serde_json::json;

use crate::late_answers::{INTRODUCTION, answer, ended, ends, killed, next_host, paused, waits};
use crate::talker::{Fixture, outcomes, prompt, texts, within};

/// What introduces the history to the agent.
const HISTORY: &str = "This continues an earlier conversation";

/// What an agent gets at most of a result.
const SHOWN: usize = 20_000;

fn forgets(fixture: &Fixture) {
    fixture.scripts.has_forgotten.store(true, Ordering::SeqCst);
}

/// The places of texts in what the agent received last.
fn places(fixture: &Fixture, texts: &[&str]) -> Vec<Option<usize>> {
    let received = fixture.scripts.last_received();
    texts.iter().map(|text| received.find(text)).collect()
}

fn are_in_order(places: &[Option<usize>]) -> bool {
    places.iter().all(Option::is_some) && places.is_sorted()
}

#[tokio::test]
async fn the_history_of_the_session_that_is_continued_comes_first() {
    let fixture = Fixture::new().await;
    let id = fixture.create("the first question").await;
    fixture.until_turns(&id, 1).await;
    fixture.send(&id, "close", Command::Close).await;
    let prompt_of = |text: &str| Some(text.to_owned());
    let continues = Some(id);
    let new =
        NewSession { continues, prompt: prompt_of("the second one"), ..NewSession::default() };
    forgets(&fixture);
    let next = within(fixture.host.create(new)).await.unwrap().id;
    fixture.until_turns(&next, 1).await;
    let known = [HISTORY, "the first question", "the second one"];
    assert!(are_in_order(&places(&fixture, &known)), "{}", fixture.scripts.last_received());
    // It is the same after further turns of its own.
    within(fixture.host.shutdown()).await;
    let fixture = next_host(&fixture.store, Received::Unknown).await;
    forgets(&fixture);
    fixture.send(&next, "third", prompt("the third one")).await;
    let log = fixture.until_turns(&next, 2).await;
    assert_eq!(outcomes(&log), [Outcome::Completed, Outcome::Completed], "{:?}", texts(&log));
    let known = [HISTORY, "the first question", "the second one", "the third one"];
    assert!(are_in_order(&places(&fixture, &known)), "{}", fixture.scripts.last_received());
}

/// A late result, with the history before it. The long one was given whole: its prompt was too long.
#[tokio::test]
async fn a_late_result_is_given_with_the_history() {
    for result in ["blue".to_owned(), "long ".repeat(1_000_000)] {
        let mut events = paused(&["c1"]);
        events.push(waits());
        let (store, id) = killed(events, None).await;
        let patch = interlingua_sessions::Patch {
            native_id: Some("lost".to_owned()),
            ..interlingua_sessions::Patch::default()
        };
        store.update(&id, patch).await.unwrap();
        let fixture = next_host(&store, Received::Unknown).await;
        forgets(&fixture);
        fixture.send(&id, "a", answer("c1", &result)).await;
        let log = fixture.until_turns(&id, 2).await;
        assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Completed]);
        assert_eq!(ends(&log), [ended("c1", ToolStatus::Completed)]);
        let received = fixture.scripts.last_received();
        let is_long = result.len() > SHOWN;
        let given = if is_long { "all of it is in the file" } else { "blue" };
        assert!(are_in_order(&places(&fixture, &[HISTORY, INTRODUCTION, given])), "{received}");
        assert!(received.len() < SHOWN + 2000, "{}", received.len());
        let has_result = |entry: &interlingua::Entry| {
            let event = serde_json::to_value(&entry.event).unwrap();
            event["type"] == "tool_ended" && event["output"] == json!(result)
        };
        assert!(log.iter().any(has_result), "the log has all of it");
    }
}
