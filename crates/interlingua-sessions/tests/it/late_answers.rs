//! The client answers a call of one of its tools after the agent that had made it was lost.

use std::sync::Arc;

use interlingua::Entry;
use interlingua::event::{
    Data, Event, Executor, HostState, Outcome, Suspended, ToolStarted, ToolStatus, TurnEnded,
    TurnStarted,
};
use interlingua::json::{Json, Text};
use interlingua_sessions::host::{Command, HostLimits, Received, Verdict, WhilePending};
use interlingua_sessions::{
    CommandState, CommandUpdate, Commit, Host, Lines, MemoryStore, Patch, SessionId, SessionRecord,
    State, Store, Waiting,
};
use serde_json::json;

use crate::support::key;
use crate::talker::{Fixture, Scripts, kinds, outcomes, prompt, texts, within};

/// When the answers were announced.
pub(crate) const ANNOUNCED: u64 = 1_794_909_600_000;

/// What introduces late answers to the agent.
pub(crate) const INTRODUCTION: &str = "Do not make these calls again";

fn started(call: &str) -> Event<'static> {
    Event::new(ToolStarted {
        call: Text::from(call.to_owned()),
        name: Text::plain("ask"),
        executor: Executor::Client,
        input: Json::from_text("{}".to_owned()),
        ..ToolStarted::default()
    })
}

/// A turn that waits for these calls of the client.
pub(crate) fn paused(calls: &[&str]) -> Vec<Event<'static>> {
    let mut events = vec![Event::new(TurnStarted::default())];
    events.extend(calls.iter().map(|call| started(call)));
    let calls = calls.iter().map(|call| Text::from((*call).to_owned())).collect();
    events.push(Event::new(Suspended { calls }));
    events
}

pub(crate) fn intent(name: &str) -> Event<'static> {
    let raw = Json::from_serialize(&json!({ "key": name, "text": "" }));
    Event::new(HostState { name: Text::plain("prompt"), raw })
}

pub(crate) fn waits() -> Event<'static> {
    let outcome = Outcome::WaitingForClient;
    Event::new(TurnEnded { outcome, ..TurnEnded::default() })
}

pub(crate) fn answer(call: &str, text: &str) -> Command {
    Command::Answer { request: call.to_owned(), answer: Some(json!(text)), decline: None }
}

/// Entries of the host, from a number on.
fn numbered(first: u64, events: impl IntoIterator<Item = Event<'static>>) -> Lines {
    let origin = interlingua::Origin { added: true, ..interlingua::Origin::default() };
    let entry = |(sequence, event)| {
        let origin = origin.clone();
        Entry { sequence, received_at: Some(ANNOUNCED), epoch: 0, origin, event, raw: None }
    };
    (first..).zip(events).map(entry).collect()
}

/// A store with a session whose host was killed, with these entries, and a command that it was
/// executing.
pub(crate) async fn killed(
    events: Vec<Event<'static>>,
    command: Option<Command>,
) -> (Arc<MemoryStore>, SessionId) {
    let (store, id) = (Arc::new(MemoryStore::default()), SessionId::new("cut").unwrap());
    let record = SessionRecord::new(id.clone(), "talker", 1);
    store.create(SessionRecord { id_seed: 7, ..record }).await.unwrap();
    let entries = numbered(0, events);
    let fence = store.claim(&id).await.unwrap();
    let mut commands = Vec::new();
    if let Some(command) = command {
        let body = serde_json::to_value(command).unwrap();
        store.submit(&id, key("once"), body).await.unwrap();
        let (state, sequence) = (CommandState::Delivering, Some(0));
        commands.push(CommandUpdate { key: key("once"), state, sequence });
    }
    let patch = Patch { state: Some(State::Working), ..Patch::default() };
    store
        .commit(&id, fence, Commit { entries, patch, commands, ..Commit::default() })
        .await
        .unwrap();
    (store, id)
}

pub(crate) async fn next_host(store: &Arc<MemoryStore>, received: Received) -> Fixture {
    let (store, scripts) = (Arc::clone(store), Scripts::new(received));
    let host = Host::open(store.clone(), scripts.clone(), HostLimits::default()).await.unwrap();
    Fixture { host, store, scripts }
}

/// A host after one that was killed while calls waited.
async fn lost(calls: &[&str]) -> (Fixture, SessionId) {
    let (store, id) = killed(paused(calls), None).await;
    let fixture = next_host(&store, Received::Unknown).await;
    fixture.until_record(&id, |record| record.state == waiting(calls)).await;
    (fixture, id)
}

pub(crate) fn waiting(calls: &[&str]) -> State {
    let call =
        |call: &&str| Waiting::ClientTool { request: (*call).to_owned(), tool: "ask".to_owned() };
    State::Waiting { waiting: calls.iter().map(call).collect() }
}

/// The ends of calls, in their order.
pub(crate) fn ends(log: &[Entry]) -> Vec<(String, ToolStatus)> {
    let end = |entry: &Entry| match &entry.event.data {
        Data::ToolEnded(ended) => Some((ended.call.to_string(), ended.status.clone())),
        _ => None,
    };
    log.iter().filter_map(end).collect()
}

pub(crate) fn ended(call: &str, status: ToolStatus) -> (String, ToolStatus) {
    (call.to_owned(), status)
}

#[tokio::test]
async fn an_answer_is_given_to_the_next_agent_once() {
    let (fixture, id) = lost(&["c1"]).await;
    let taken = fixture.send(&id, "a", answer("c1", "blue")).await;
    assert_eq!(taken.state, CommandState::Accepted);
    let other = fixture.send(&id, "b", answer("c1", "crimson")).await;
    assert!(matches!(other.state, CommandState::Refused { .. }), "{other:?}");
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Completed]);
    assert_eq!(ends(&log), [ended("c1", ToolStatus::Completed)]);
    assert_eq!(fixture.send(&id, "a", answer("c1", "blue")).await.state, CommandState::Delivered);
    assert_eq!((fixture.scripts.times(INTRODUCTION), fixture.scripts.times("blue")), (1, 1));
    assert_eq!(fixture.scripts.times("crimson"), 0);
}

/// The process was killed between the intent to give the answer to an agent and its turn.
#[tokio::test]
async fn an_answer_whose_delivery_is_unknown_is_not_given_again() {
    for (received, outcome, times) in [
        (Received::Unknown, Outcome::Failed, 0),
        (Received::Yes, Outcome::Failed, 0),
        (Received::No, Outcome::Completed, 1),
    ] {
        let mut events = paused(&["c1"]);
        events.extend([waits(), intent("once")]);
        let (store, id) = killed(events, Some(answer("c1", "blue"))).await;
        let fixture = next_host(&store, received).await;
        let log = fixture.until_turns(&id, 2).await;
        assert_eq!(outcomes(&log), [Outcome::WaitingForClient, outcome], "{received:?}");
        assert_eq!(ends(&log), [ended("c1", ToolStatus::Completed)], "{received:?}");
        // The result itself is looked for, too.
        let looked = if received == Received::No { 2 } else { 1 };
        assert_eq!(*fixture.scripts.looked_since.lock().unwrap(), vec![ANNOUNCED; looked]);
        let state = fixture.send(&id, "once", answer("c1", "blue")).await.state;
        let is_unknown = matches!(state, CommandState::Unknown { .. });
        assert_eq!(is_unknown, received == Received::Unknown, "{state:?}");
        assert_eq!(fixture.scripts.times("blue"), times, "{received:?}");
    }
}

/// Codex takes a result in the place of its call, and not as a prompt.
#[tokio::test]
async fn a_result_in_the_place_of_its_call_was_received() {
    let mut events = paused(&["c1"]);
    events.extend([waits(), intent("once")]);
    let (store, id) = killed(events, Some(answer("c1", "blue"))).await;
    let scripts = Scripts::new(Received::No);
    *scripts.has.lock().unwrap() = Some(("blue", Received::Yes));
    let host = Host::open(store.clone(), scripts.clone(), HostLimits::default()).await.unwrap();
    let fixture = Fixture { host, store, scripts };
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Failed]);
    assert_eq!(
        fixture.send(&id, "once", answer("c1", "blue")).await.state,
        CommandState::Delivered
    );
    assert_eq!(fixture.scripts.times("blue"), 0);
}

#[tokio::test]
async fn the_agent_is_started_when_all_calls_are_answered() {
    let (fixture, id) = lost(&["c1", "c2"]).await;
    fixture.send(&id, "a", answer("c1", "blue")).await;
    fixture.until_record(&id, |record| record.state == waiting(&["c2"])).await;
    assert!(fixture.scripts.launches.lock().unwrap().is_empty());
    // The first answer survives the host, too.
    fixture.host.shutdown().await;
    let fixture = next_host(&fixture.store, Received::Unknown).await;
    fixture.until_record(&id, |record| record.state == waiting(&["c2"])).await;
    let decline = Some("the page is gone".to_owned());
    let declined = Command::Answer { request: "c2".to_owned(), answer: None, decline };
    fixture.send(&id, "b", declined).await;
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(ends(&log), [ended("c1", ToolStatus::Completed), ended("c2", ToolStatus::Failed)]);
    let given = (fixture.scripts.times("blue"), fixture.scripts.times("the page is gone"));
    assert_eq!((given, fixture.scripts.times(INTRODUCTION)), ((1, 1), 1));
    for name in ["a", "b"] {
        let command = serde_json::from_value(json!({"type": "interrupt"})).unwrap();
        // The content of a command that is final does not matter to its state.
        let known = fixture.host.command(&id, key(name), command).await;
        assert!(known.is_err(), "{known:?}");
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_calls_that_wait() {
    let (fixture, id) = lost(&["c1", "c2"]).await;
    fixture.send(&id, "a", answer("c1", "blue")).await;
    let interrupted = fixture.send(&id, "stop", Command::Interrupt).await;
    assert_eq!(interrupted.state, CommandState::Delivered);
    let log = fixture.until_turns(&id, 2).await;
    // It took effect with the turn that ends the calls, and not after its end.
    let at = kinds(&log).iter().rposition(|kind| *kind == "turn_started").unwrap();
    assert_eq!(interrupted.sequence, Some(at as u64));
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Cancelled]);
    let cancelled = |call| ended(call, ToolStatus::Cancelled);
    assert_eq!(ends(&log), [cancelled("c2"), cancelled("c1")]);
    fixture.until_record(&id, |record| record.state == State::Idle).await;
    let state = fixture.send(&id, "a", answer("c1", "blue")).await.state;
    assert!(matches!(state, CommandState::Refused { .. }), "{state:?}");
    fixture.send(&id, "p", prompt("and then")).await;
    fixture.until_turns(&id, 3).await;
    assert_eq!((fixture.scripts.times("and then"), fixture.scripts.times("blue")), (1, 0));
}

#[tokio::test]
async fn a_prompt_waits_for_the_answer_or_supersedes_it() {
    let with =
        |while_pending| Command::Prompt { text: "next".to_owned(), while_pending, joins: false };
    let (fixture, id) = lost(&["c1"]).await;
    let rejected = fixture.send(&id, "p0", with(WhilePending::Reject)).await.state;
    assert!(matches!(rejected, CommandState::Refused { .. }), "{rejected:?}");
    fixture.send(&id, "p1", with(WhilePending::Queue)).await;
    assert!(fixture.scripts.launches.lock().unwrap().is_empty());
    let denied = Command::Decide {
        request: "c1".to_owned(),
        decision: Verdict::Deny,
        reason: Some("not now".to_owned()),
    };
    fixture.send(&id, "d", denied).await;
    let log = fixture.until_turns(&id, 3).await;
    assert_eq!(ends(&log), [ended("c1", ToolStatus::Denied)]);
    assert_eq!((fixture.scripts.times("not now"), fixture.scripts.times("next")), (1, 1));

    let (fixture, id) = lost(&["c1"]).await;
    fixture.send(&id, "p1", with(WhilePending::Supersede)).await;
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient, Outcome::Completed]);
    assert_eq!(ends(&log), [ended("c1", ToolStatus::Denied)]);
    assert_eq!((fixture.scripts.times("next"), fixture.scripts.times(INTRODUCTION)), (1, 0));
}

/// A session whose host accepted a prompt during a turn and was stopped, and which then called a tool of its client.
async fn accepted_before_the_call(while_pending: WhilePending) -> (Fixture, SessionId) {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    fixture.until(&id, |log| texts(log) == ["begins"]).await;
    let next = Command::Prompt { text: "next".to_owned(), while_pending, joins: false };
    assert_eq!(fixture.send(&id, "next", next).await.state, CommandState::Accepted);
    within(fixture.host.shutdown()).await;
    let fence = fixture.store.claim(&id).await.unwrap();
    let first = fixture.store.watch(&id).borrow().next;
    let entries = numbered(first, paused(&["c1"]).into_iter().chain([waits()]));
    let patch = Patch { state: Some(waiting(&["c1"])), ..Patch::default() };
    let commit = Commit { entries, patch, ..Commit::default() };
    fixture.store.commit(&id, fence, commit).await.unwrap();
    fixture.store.release(&id, fence).await.unwrap();
    let host =
        Host::open(fixture.store.clone(), fixture.scripts.clone(), HostLimits::default()).await;
    (Fixture { host: host.unwrap(), ..fixture }, id)
}

/// A prompt was accepted during a turn, which then called a tool. The next owner of the session judged it again: it
/// denied the call, or refused the prompt, and the client's answer was refused.
#[tokio::test]
async fn an_accepted_prompt_is_not_judged_by_a_call_that_came_later() {
    for while_pending in [WhilePending::Supersede, WhilePending::Reject] {
        let (fixture, id) = accepted_before_the_call(while_pending).await;
        // This owner has retired, because nothing can be done; the answer begins another one.
        fixture.until_record(&id, |record| record.state == waiting(&["c1"])).await;
        let answered = fixture.send(&id, "a", answer("c1", "blue")).await;
        assert_eq!(answered.state, CommandState::Accepted, "{while_pending:?}");
        let log = fixture.until_turns(&id, 4).await;
        assert_eq!(ends(&log), [ended("c1", ToolStatus::Completed)], "{while_pending:?}");
        assert_eq!(texts(&log), ["begins", "resumed", "next"], "{while_pending:?}");
        fixture.until_record(&id, |record| record.state == State::Idle).await;
        let next = Command::Prompt { text: "next".to_owned(), while_pending, joins: false };
        assert_eq!(fixture.send(&id, "next", next).await.state, CommandState::Delivered);
    }
}

/// A prompt supersedes a call once, for all owners of the session, and another prompt may wait before it.
#[tokio::test]
async fn a_call_that_is_superseded_stays_so_for_the_next_host() {
    let (fixture, id) = lost(&["c1", "c2"]).await;
    fixture.send(&id, "a", answer("c1", "blue")).await;
    fixture.send(&id, "p1", prompt("first")).await;
    // No agent can be started before the host ends.
    let limits = HostLimits { live: 0, ..HostLimits::default() };
    fixture.host.shutdown().await;
    let host = Host::open(fixture.store.clone(), fixture.scripts.clone(), limits).await.unwrap();
    let fixture = Fixture { host, ..fixture };
    let supersede = Command::Prompt {
        text: "second".to_owned(),
        while_pending: WhilePending::Supersede,
        joins: false,
    };
    let taken = fixture.send(&id, "p2", supersede).await;
    assert_eq!(taken.state, CommandState::Accepted);
    let refused = fixture.send(&id, "a", answer("c1", "blue")).await.state;
    assert!(matches!(refused, CommandState::Refused { .. }), "{refused:?}");
    within(fixture.host.shutdown()).await;
    let host =
        Host::open(fixture.store.clone(), fixture.scripts.clone(), HostLimits::default()).await;
    let fixture = Fixture { host: host.unwrap(), ..fixture };
    let log = fixture.until_turns(&id, 3).await;
    let denied = |call| ended(call, ToolStatus::Denied);
    assert_eq!(ends(&log), [denied("c1"), denied("c2")]);
    assert_eq!(texts(&log), ["first", "second"]);
    // The agent learned of it with the first of its prompts, which is the turn that follows the calls.
    let started = kinds(&log).iter().rposition(|kind| *kind == "turn_started");
    let end = kinds(&log).iter().rposition(|kind| *kind == "tool_ended");
    assert!(end < started, "{:?}", kinds(&log));
    assert_eq!(fixture.scripts.times("blue"), 0);
}

/// A session that waits does not rest, so it does not expire before it is answered.
#[tokio::test]
async fn closing_ends_the_calls_that_wait() {
    let (fixture, id) = lost(&["c1"]).await;
    fixture.send(&id, "end", Command::Close).await;
    fixture.until_record(&id, |record| record.state == State::Ended).await;
    let log = crate::talker::log(&*fixture.store, &id).await;
    assert_eq!(outcomes(&log), [Outcome::WaitingForClient]);
    assert_eq!(log.last().map(|entry| entry.event.data.kind()), Some("session_ended"));
    let late = fixture.host.command(&id, key("a"), answer("c1", "blue")).await;
    assert!(late.is_err(), "{late:?}");
}
