//! A session gives the place of its agent to another one's prompt, when no more agents may be live.

use interlingua::event::{Outcome, ToolStatus};
use interlingua_sessions::host::{Command, HostLimits, Verdict};
use interlingua_sessions::{CommandState, State, Store, Waiting};

use crate::late_answers::{INTRODUCTION, answer, ended, ends};
use crate::support::key;
use crate::talker::{Fixture, outcomes, prompt, texts, within};

async fn fixture() -> Fixture {
    Fixture::with(HostLimits { live: 1, ..HostLimits::default() }).await
}

/// People who had walked away from their forms kept the agents of all others from being started, for a day.
#[tokio::test]
async fn a_session_that_waits_for_its_client_gives_way() {
    let fixture = fixture().await;
    let (waits, calls) = fixture.dial("dial").await;
    let other = fixture.create("hello").await;
    assert_eq!(texts(&fixture.until_turns(&other, 1).await), ["hello"]);
    assert_eq!(fixture.until_called(&waits, 1).await, calls);
    assert!(fixture.host.live() <= 1);
    let taken = fixture.send(&waits, "a", answer(&calls[0], "blue")).await;
    assert_eq!(taken.state, CommandState::Accepted);
    let refused = fixture.send(&waits, "b", answer(&calls[0], "crimson")).await.state;
    assert!(matches!(refused, CommandState::Refused { .. }), "{refused:?}");
    let log = fixture.until_turns(&waits, 2).await;
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Completed]);
    assert_eq!(ends(&log), [ended(&calls[0], ToolStatus::Completed)]);
    let times = |text| fixture.scripts.times(text);
    assert_eq!((times("blue"), times("crimson"), times(INTRODUCTION)), (1, 0, 1));
}

/// A decision cannot be given to another process, so the session keeps its place.
#[tokio::test]
async fn a_session_that_waits_for_a_decision_does_not_give_way() {
    let fixture = fixture().await;
    let waits = fixture.create("touch it").await;
    let is_waiting = |state: &State| matches!(state, State::Waiting { .. });
    fixture.until_record(&waits, |record| is_waiting(&record.state)).await;
    let other = fixture.create("hello").await;
    // For as long as a session that waits for its client would keep its place.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let record = fixture.store.load(&waits).await.unwrap().unwrap();
    let State::Waiting { waiting } = &record.state else { panic!("{record:?}") };
    let [Waiting::Decision { request }] = &waiting[..] else { panic!("{waiting:?}") };
    let (request, decision) = (request.clone(), Verdict::Allow);
    let allow = Command::Decide { request, decision, reason: None };
    let allowed = within(fixture.host.command(&waits, key("allow"), allow)).await.unwrap();
    assert_eq!(allowed.state, CommandState::Delivered);
    assert_eq!(texts(&fixture.until_turns(&waits, 1).await), ["allowed"]);
    assert_eq!(texts(&fixture.until_turns(&other, 1).await), ["hello"]);
    fixture.send(&waits, "p", prompt("again")).await;
    fixture.until_turns(&waits, 2).await;
}
