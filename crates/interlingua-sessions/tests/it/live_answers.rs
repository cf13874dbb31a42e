//! The client answers a call of one of its tools while its agent waits, and something ends in this moment. The answer
//! reaches an agent once.

use std::sync::Arc;

use interlingua::Entry;
use interlingua::event::{Event, Outcome, ToolEnded, ToolStatus};
use interlingua::json::{Json, Text};
use interlingua_sessions::host::{Command, HostLimits, Received};
use interlingua_sessions::{
    Acknowledgement, CommandState, Host, MemoryStore, SessionId, State, Store,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::late_answers::{
    ANNOUNCED, INTRODUCTION, answer, ended, ends, intent, killed, next_host, paused, waiting, waits,
};
use crate::support::key;
use crate::talker::{Fixture, Scripts, kinds, outcomes, prompt, texts, within};
use crate::unsteady::Unsteady;

fn is_unknown(state: &CommandState) -> bool {
    matches!(state, CommandState::Unknown { reason } if reason.starts_with("delivery unknown"))
}

/// The process was killed while the agent was given the answer. Nobody looked into the agent's own files, so that an
/// agent which had the answer got it again.
#[tokio::test]
async fn an_answer_that_was_being_given_is_given_at_most_once() {
    for received in [Received::No, Received::Yes, Received::Unknown] {
        let (store, id) = killed(paused(&["c1"]), Some(answer("c1", "blue"))).await;
        let fixture = next_host(&store, received).await;
        let is_given = received == Received::No;
        let log = fixture.until_turns(&id, if is_given { 2 } else { 1 }).await;
        let expected = match is_given {
            true => vec![Outcome::WaitingForClient, Outcome::Completed],
            false => vec![Outcome::Failed],
        };
        assert_eq!(outcomes(&log), expected, "{received:?}");
        assert_eq!(ends(&log), [ended("c1", ToolStatus::Completed)], "{received:?}");
        assert_eq!(*fixture.scripts.looked_since.lock().unwrap(), [ANNOUNCED], "the call");
        fixture.until_record(&id, |record| record.state == State::Idle).await;
        let state = fixture.send(&id, "once", answer("c1", "blue")).await.state;
        match received {
            Received::Unknown => assert!(is_unknown(&state), "{state:?}"),
            _ => assert_eq!(state, CommandState::Delivered, "{received:?}"),
        }
        let other = fixture.send(&id, "other", answer("c1", "crimson")).await.state;
        assert!(matches!(other, CommandState::Refused { .. }), "{received:?}: {other:?}");
        assert_eq!(fixture.scripts.times("blue"), usize::from(is_given), "{received:?}");
    }
}

/// The agent had the answer to one of two calls. The session goes on waiting for the other one.
#[tokio::test]
async fn another_call_waits_on_when_an_answer_was_being_given() {
    for received in [Received::Yes, Received::Unknown] {
        let (store, id) = killed(paused(&["c1", "c2"]), Some(answer("c1", "blue"))).await;
        let fixture = next_host(&store, received).await;
        fixture.until_record(&id, |record| record.state == waiting(&["c2"])).await;
        fixture.send(&id, "second", answer("c2", "green")).await;
        let log = fixture.until_turns(&id, 2).await;
        assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Completed]);
        let completed = |call| ended(call, ToolStatus::Completed);
        assert_eq!(ends(&log), [completed("c1"), completed("c2")]);
        let times = |text| fixture.scripts.times(text);
        assert_eq!((times("blue"), times("green")), (0, 1), "{received:?}");
    }
}

/// The process was killed between storing the end of the call and storing what became of its command.
#[tokio::test]
async fn an_answer_that_is_in_the_log_was_delivered() {
    for (given, delivered) in [("blue", true), ("crimson", false)] {
        let mut events = paused(&["c1"]);
        let (call, output) = (Text::plain("c1"), Json::from_serialize("blue"));
        let executor = interlingua::event::Executor::Client;
        events.push(Event::new(ToolEnded { call, output, executor, ..ToolEnded::default() }));
        let (store, id) = killed(events, Some(answer("c1", given))).await;
        let fixture = next_host(&store, Received::Unknown).await;
        let log = fixture.until_turns(&id, 1).await;
        assert_eq!(outcomes(&log), [Outcome::Failed], "{given}");
        assert_eq!(ends(&log), [ended("c1", ToolStatus::Completed)], "{given}");
        let state = fixture.send(&id, "once", answer("c1", given)).await.state;
        // The other one was too late, or is the one of which only a part is in the log.
        assert_eq!(state == CommandState::Delivered, delivered, "{given}: {state:?}");
    }
}

/// Results that an agent may have taken in the places of their calls. That the files do not decide it was taken for
/// their absence, and of a long one the agent has another form.
#[tokio::test]
async fn a_late_result_that_may_be_in_the_place_of_its_call_is_not_given_again() {
    let long = "x".repeat(20_001);
    for (given, sought) in [("blue", "blue"), (&*long, "[This result has 20001 bytes.")] {
        let mut events = paused(&["c1"]);
        events.extend([waits(), intent("once")]);
        let (store, id) = killed(events, Some(answer("c1", given))).await;
        let scripts = Scripts::new(Received::No);
        *scripts.has.lock().unwrap() = Some((sought, Received::Unknown));
        let host = Host::open(store.clone(), scripts.clone(), HostLimits::default()).await.unwrap();
        let fixture = Fixture { host, store, scripts };
        let log = fixture.until_turns(&id, 2).await;
        assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Failed], "{sought}");
        let state = fixture.send(&id, "once", answer("c1", given)).await.state;
        assert!(is_unknown(&state), "{sought}: {state:?}");
        assert_eq!(fixture.scripts.times(INTRODUCTION), 0, "{sought}");
    }
}

fn has_end(log: &[Entry]) -> bool {
    kinds(log).contains(&"tool_ended")
}

/// A host with the script, and a store that stores when the test lets it.
async fn unsteady() -> (Fixture, Arc<Unsteady>) {
    let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(Received::Unknown));
    let unsteady = Arc::new(Unsteady::new(store.clone()));
    let host = Host::open(unsteady.clone(), scripts.clone(), HostLimits::default()).await.unwrap();
    (Fixture { host, store, scripts }, unsteady)
}

/// Sends a command, and goes on without its acknowledgement.
fn sending(
    fixture: &Fixture,
    id: &SessionId,
    name: &'static str,
    command: Command,
) -> JoinHandle<Acknowledgement> {
    let (host, id) = (fixture.host.clone(), id.clone());
    tokio::spawn(async move { within(host.command(&id, key(name), command)).await.unwrap() })
}

/// An answer was acknowledged as delivered before the end of its call was stored. After a kill in between, the call
/// was open in the log, and could be answered again.
#[tokio::test]
async fn an_answer_is_acknowledged_when_the_end_of_its_call_is_stored() {
    let (fixture, unsteady) = unsteady().await;
    let (id, calls) = fixture.dial("dial").await;
    unsteady.commits.forget_permits(usize::MAX);
    let answered = sending(&fixture, &id, "a", answer(&calls[0], "blue"));
    // That it is being delivered, and one more.
    unsteady.commits.add_permits(2);
    fixture.until(&id, has_end).await;
    assert!(!answered.is_finished());
    unsteady.commits.add_permits(1000);
    assert_eq!(within(answered).await.unwrap().state, CommandState::Delivered);
    let log = fixture.until_turns(&id, 1).await;
    assert_eq!((outcomes(&log), fixture.scripts.times("blue")), (vec![Outcome::Completed], 1));
}

/// The agent died, and the owner of the session learned of the answer first. The answer was refused for good, and the
/// session went on waiting for it.
#[tokio::test]
async fn an_answer_in_the_moment_of_a_crash_is_late() {
    let (fixture, unsteady) = unsteady().await;
    let (id, calls) = fixture.dial("dial").await;
    // The owner is busy while the agent dies.
    unsteady.commits.forget_permits(usize::MAX);
    let next = sending(&fixture, &id, "next", prompt("next"));
    fixture.until_stored(&id, "next").await;
    fixture.scripts.kill_caller().await;
    let answered = sending(&fixture, &id, "a", answer(&calls[0], "blue"));
    fixture.until_stored(&id, "a").await;
    unsteady.commits.add_permits(1000);
    assert_eq!(within(answered).await.unwrap().state, CommandState::Accepted);
    assert_eq!(within(next).await.unwrap().state, CommandState::Accepted);
    let log = fixture.until_turns(&id, 3).await;
    let completed = Outcome::Completed;
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient, completed.clone(), completed]);
    assert_eq!(texts(&log), ["resumed", "next"]);
    assert_eq!(ends(&log), [ended(&calls[0], ToolStatus::Completed)]);
    fixture.until_record(&id, |record| record.state == State::Idle).await;
    let known = fixture.send(&id, "a", answer(&calls[0], "blue")).await;
    assert_eq!((known.state, fixture.scripts.times("blue")), (CommandState::Delivered, 1));
}

#[tokio::test]
async fn one_of_two_answers_that_are_sent_at_once_is_accepted() {
    let fixture = Fixture::new().await;
    let (id, calls) = fixture.dial("dial").await;
    let sent = [("a", "blue"), ("b", "crimson")];
    let sent = sent.map(|(name, text)| sending(&fixture, &id, name, answer(&calls[0], text)));
    let mut states = Vec::new();
    for sent in sent {
        states.push(within(sent).await.unwrap().state);
    }
    let is_delivered = |state: &&CommandState| **state == CommandState::Delivered;
    let is_refused = |state: &&CommandState| matches!(state, CommandState::Refused { .. });
    let counts =
        (states.iter().filter(is_delivered).count(), states.iter().filter(is_refused).count());
    assert_eq!(counts, (1, 1), "{states:?}");
    let log = fixture.until_turns(&id, 1).await;
    assert_eq!(ends(&log), [ended(&calls[0], ToolStatus::Completed)]);
    assert_eq!(fixture.scripts.times("blue") + fixture.scripts.times("crimson"), 1);
}

/// The server is killed while two calls of an agent are open. The agent gets both answers, once.
#[tokio::test]
async fn two_calls_that_are_open_at_a_kill_are_answered_once() {
    let fixture = Fixture::new().await;
    let (id, calls) = fixture.dial("dial two").await;
    // The next host takes the session, and the guard of the lost agent ends it.
    let next = next_host(&fixture.store, Received::Unknown).await;
    fixture.scripts.kill_caller().await;
    assert_eq!(next.until_called(&id, 2).await, calls);
    assert_eq!(next.send(&id, "a", answer(&calls[0], "blue")).await.state, CommandState::Accepted);
    assert_eq!(next.send(&id, "b", answer(&calls[1], "green")).await.state, CommandState::Accepted);
    let log = next.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Completed]);
    let mut ends = ends(&log);
    ends.sort_by_key(|(call, _)| call.clone());
    let mut expected: Vec<_> =
        calls.iter().map(|call| ended(call, ToolStatus::Completed)).collect();
    expected.sort_by_key(|(call, _)| call.clone());
    assert_eq!(ends, expected);
    let times = |text| (fixture.scripts.times(text), next.scripts.times(text));
    assert_eq!((times("blue"), times("green")), ((0, 1), (0, 1)));
}

/// A tool that returns nothing made the model read that the user declined to answer.
#[tokio::test]
async fn a_null_is_the_result_of_a_call_and_no_answer_to_a_question() {
    let read = |fields: Value| -> Command {
        let mut command = json!({"type": "answer"});
        command.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(command).unwrap()
    };
    for (fields, status) in [
        (json!({"answer": null}), ToolStatus::Completed),
        (json!({"answer": null, "decline": "the page is gone"}), ToolStatus::Failed),
        (json!({}), ToolStatus::Failed),
    ] {
        for is_late in [false, true] {
            let fixture = Fixture::new().await;
            let (id, calls) = fixture.dial("dial").await;
            if is_late {
                fixture.scripts.kill_caller().await;
                fixture.until_turns(&id, 1).await;
            }
            let mut given = fields.clone();
            given["request"] = json!(calls[0]);
            fixture.send(&id, "a", read(given)).await;
            let log = fixture.until_turns(&id, if is_late { 2 } else { 1 }).await;
            assert_eq!(ends(&log), [ended(&calls[0], status.clone())], "{fields} {is_late}");
            let declined = fixture.scripts.times("the user declined to answer");
            assert_eq!(declined, usize::from(fields == json!({})), "{fields} {is_late}");
        }
    }
    let fixture = Fixture::new().await;
    let id = fixture.create("ask me").await;
    fixture.until_record(&id, |record| matches!(record.state, State::Waiting { .. })).await;
    let record = fixture.store.load(&id).await.unwrap().unwrap();
    let State::Waiting { waiting } = &record.state else { panic!("{record:?}") };
    let null = json!({"request": waiting[0].request(), "answer": null});
    assert_eq!(fixture.send(&id, "a", read(null)).await.state, CommandState::Delivered);
    assert_eq!(texts(&fixture.until_turns(&id, 1).await), ["denied"]);
}
