//! A session whose owner was lost, or was stopped in the middle of something, goes on truthfully: no prompt
//! runs twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use interlingua::Entry;
use interlingua::event::{Event, HostState, Outcome, TurnStarted};
use interlingua::json::{Json, Text};
use interlingua_sessions::host::{Command, HostLimits, NewSession, Received, WhilePending};
use interlingua_sessions::{
    CommandState, CommandUpdate, Commit, Host, IdempotencyKey, MemoryStore, Patch, Queued,
    SessionId, SessionRecord, State, Store,
};
use serde_json::json;

use crate::support::key;
use crate::talker::{Fixture, Scripts, kinds, log, outcomes, prompt, texts, within};
use crate::unsteady::Unsteady;

/// A session with a command that its host was delivering when it was killed, after these events.
async fn killed(
    store: &MemoryStore,
    command: Command,
    events: impl IntoIterator<Item = Event<'static>>,
) -> SessionId {
    let id = SessionId::new("cut").unwrap();
    let record = SessionRecord::new(id.clone(), "talker", 1);
    store.create(SessionRecord { id_seed: 7, ..record }).await.unwrap();
    let body = serde_json::to_value(command).unwrap();
    store.submit(&id, key("once"), body).await.unwrap();
    let origin = interlingua::Origin { added: true, ..interlingua::Origin::default() };
    let entry = |(sequence, event)| {
        let origin = origin.clone();
        Entry { sequence, received_at: Some(ANNOUNCED), epoch: 0, origin, event, raw: None }
    };
    let entries = (0..).zip(events).map(entry).collect();
    let (state, sequence) = (CommandState::Delivering, Some(0));
    let fence = store.claim(&id).await.unwrap();
    let commands = vec![CommandUpdate { key: key("once"), state, sequence }];
    let patch = Patch { state: Some(State::Working), ..Patch::default() };
    store
        .commit(&id, fence, Commit { entries, patch, commands, ..Commit::default() })
        .await
        .unwrap();
    id
}

/// When the prompt was announced.
const ANNOUNCED: u64 = 1_794_909_600_000;

/// The entry that announces a prompt.
fn intent(key: &IdempotencyKey) -> Event<'static> {
    let raw = Json::from_serialize(&json!({ "key": key }));
    Event::new(HostState { name: Text::plain("prompt"), raw })
}

/// The host was killed between the intent to send a prompt and its receipt.
#[tokio::test]
async fn a_prompt_whose_delivery_is_unknown_is_not_sent_again() {
    for (received, outcome, times) in [
        (Received::Unknown, Outcome::Failed, 0),
        (Received::Yes, Outcome::Failed, 0),
        (Received::No, Outcome::Completed, 1),
    ] {
        let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(received));
        let id = killed(&store, prompt("once"), [intent(&key("once"))]).await;
        let limits = HostLimits::default();
        let host = Host::open(store.clone(), scripts.clone(), limits).await.unwrap();
        let fixture = Fixture { host, store, scripts };
        let log = fixture.until_turns(&id, 1).await;
        assert_eq!(outcomes(&log), [outcome], "{received:?}");
        assert_eq!(*fixture.scripts.looked_since.lock().unwrap(), [ANNOUNCED]);
        fixture.until_record(&id, |record| record.state == State::Idle).await;
        let acknowledged = fixture.send(&id, "once", prompt("once")).await.state;
        match received {
            Received::Unknown => {
                let CommandState::Unknown { reason } = acknowledged else {
                    panic!("{acknowledged:?}")
                };
                assert!(reason.starts_with("delivery unknown"), "{reason}");
            }
            _ => assert_eq!(acknowledged, CommandState::Delivered, "{received:?}"),
        }
        assert_eq!(fixture.scripts.times("once"), times, "{received:?}");
        // Only a new command sends it.
        fixture.send(&id, "new", prompt("once more")).await;
        fixture.until_turns(&id, 2).await;
        assert_eq!(fixture.scripts.times("once more"), 1);
    }
}

/// The host was killed while it was giving a prompt to an agent that was in a turn. Such a prompt is not
/// announced, so the log does not decide, and neither do the agent's files: the turn was not its own.
#[tokio::test]
async fn a_prompt_that_was_joining_a_turn_is_not_sent_again() {
    for received in [Received::Unknown, Received::Yes, Received::No] {
        let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(received));
        let while_pending = WhilePending::default();
        let joins = Command::Prompt { text: "once".to_owned(), while_pending, joins: true };
        let running = [intent(&key("first")), Event::new(TurnStarted::default())];
        let id = killed(&store, joins.clone(), running).await;
        let limits = HostLimits::default();
        let host = Host::open(store.clone(), scripts.clone(), limits).await.unwrap();
        let fixture = Fixture { host, store, scripts };
        let log = fixture.until_turns(&id, 1).await;
        assert_eq!(outcomes(&log), [Outcome::Failed], "{received:?}");
        fixture.until_record(&id, |record| record.state == State::Idle).await;
        let acknowledged = fixture.send(&id, "once", joins).await.state;
        assert!(matches!(acknowledged, CommandState::Unknown { .. }), "{acknowledged:?}");
        fixture.send(&id, "new", prompt("another")).await;
        let log = fixture.until_turns(&id, 2).await;
        assert_eq!(outcomes(&log), [Outcome::Failed, Outcome::Completed], "{received:?}");
        assert_eq!((fixture.scripts.times("once"), fixture.scripts.times("another")), (0, 1));
    }
}

/// With the prompt that was on its way, more wait than may be queued. All were accepted, so none is refused.
#[tokio::test]
async fn accepted_prompts_are_taken_again_however_many_they_are() {
    let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(Received::No));
    let id = killed(&store, prompt("once"), [intent(&key("once"))]).await;
    let names: Vec<_> = (0..100).map(|number| format!("k{number}")).collect();
    let body = serde_json::to_value(prompt("more")).unwrap();
    for name in &names {
        store.submit(&id, key(name), body.clone()).await.unwrap();
    }
    let queued = names.iter().map(|name| Queued { key: key(name), supersedes: Vec::new() });
    let fence = store.claim(&id).await.unwrap();
    let commit = Commit { queued: queued.collect(), ..Commit::default() };
    store.commit(&id, fence, commit).await.unwrap();
    // No agent is started, so that all of them wait.
    let limits = HostLimits { live: 0, ..HostLimits::default() };
    let host = Host::open(store.clone(), scripts.clone(), limits).await.unwrap();
    let fixture = Fixture { host, store, scripts };
    for name in names.iter().map(String::as_str).chain(["once"]) {
        let text = if name == "once" { name } else { "more" };
        let state = fixture.send(&id, name, prompt(text)).await.state;
        assert_eq!(state, CommandState::Accepted, "{name}");
    }
    let refused = fixture.send(&id, "new", prompt("more")).await.state;
    assert!(matches!(refused, CommandState::Refused { .. }), "{refused:?}");
    within(fixture.host.shutdown()).await;
}

/// The agent had begun a turn by itself between the intent and the end of the host. It does not show
/// whether the agent has the prompt.
#[tokio::test]
async fn a_turn_of_the_agents_own_is_no_receipt() {
    for (received, expected) in [
        (Received::Unknown, &[Outcome::Failed][..]),
        (Received::No, &[Outcome::Failed, Outcome::Completed]),
    ] {
        let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(received));
        let own = [intent(&key("once")), Event::new(TurnStarted::default())];
        let id = killed(&store, prompt("once"), own).await;
        let limits = HostLimits::default();
        let host = Host::open(store.clone(), scripts.clone(), limits).await.unwrap();
        let fixture = Fixture { host, store, scripts };
        let log = fixture.until_turns(&id, expected.len()).await;
        assert_eq!(outcomes(&log), expected, "{received:?}");
        fixture.until_record(&id, |record| record.state == State::Idle).await;
        let acknowledged = fixture.send(&id, "once", prompt("once")).await.state;
        match received {
            Received::No => assert_eq!(acknowledged, CommandState::Delivered),
            _ => assert!(matches!(acknowledged, CommandState::Unknown { .. }), "{acknowledged:?}"),
        }
        assert_eq!(fixture.scripts.times("once"), expected.len() - 1, "{received:?}");
    }
}

/// A prompt that joined the running turn belongs to it: a host that is shut down ends the turn, and the
/// next host sends nothing again.
#[tokio::test]
async fn a_prompt_that_joined_a_turn_ends_with_it() {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    let before = fixture.until(&id, |log| texts(log) == ["begins"]).await;
    let first = kinds(&before).iter().position(|kind| *kind == "block").unwrap() as u64;
    let while_pending = WhilePending::default();
    let joins = Command::Prompt { text: "wait for more".to_owned(), while_pending, joins: true };
    let joined = fixture.send(&id, "join", joins.clone()).await;
    assert_eq!(joined.state, CommandState::Delivered);
    let before = fixture.until(&id, |log| texts(log).len() == 2).await;
    // It took effect behind what the agent had printed, and before what it then printed.
    let second = kinds(&before).iter().rposition(|kind| *kind == "block").unwrap() as u64;
    let at = joined.sequence.unwrap();
    assert!(first < at && at <= second, "{first} < {at} <= {second}");
    within(fixture.host.shutdown()).await;
    assert_eq!(outcomes(&log(&*fixture.store, &id).await), [Outcome::Cancelled]);
    let limits = HostLimits::default();
    let host = Host::open(fixture.store.clone(), fixture.scripts.clone(), limits).await.unwrap();
    let fixture = Fixture { host, ..fixture };
    assert_eq!(fixture.send(&id, "join", joins).await, joined);
    fixture.send(&id, "later", prompt("afterwards")).await;
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::Cancelled, Outcome::Completed]);
    assert_eq!((fixture.scripts.times("for more"), fixture.scripts.times("afterwards")), (1, 1));
}

/// The host is shut down while the agent is being started, so its prompt is announced and goes no further.
/// The next host announces and sends it.
#[tokio::test]
async fn a_prompt_that_was_only_announced_is_sent_by_the_next_host() {
    let fixture = Fixture::new().await;
    let host = fixture.host.clone();
    let begin_shutdown = move || {
        let mut shutdown = std::pin::pin!(host.shutdown());
        let mut context = Context::from_waker(Waker::noop());
        assert!(shutdown.as_mut().poll(&mut context).is_pending());
    };
    *fixture.scripts.at_launch.lock().unwrap() = Some(Box::new(begin_shutdown));
    let id = fixture.create("hello").await;
    within(fixture.host.shutdown()).await;
    let before = log(&*fixture.store, &id).await;
    assert!(kinds(&before).contains(&"host_state"), "it is announced: {before:?}");
    assert_eq!((outcomes(&before), fixture.scripts.times("hello")), (vec![], 0));
    let record = fixture.store.load(&id).await.unwrap().unwrap();
    assert_eq!(record.state, State::Starting);
    let limits = HostLimits::default();
    let host = Host::open(fixture.store.clone(), fixture.scripts.clone(), limits).await.unwrap();
    let fixture = Fixture { host, ..fixture };
    let log = fixture.until_turns(&id, 1).await;
    assert_eq!((outcomes(&log), texts(&log)), (vec![Outcome::Completed], vec!["hello".to_owned()]));
    assert_eq!(fixture.scripts.times("hello"), 1);
}

/// The store could not be read for a moment. Its error ended the agent in the middle of the turn, and what waited was
/// taken up by nobody before the next command.
#[tokio::test]
async fn a_store_that_cannot_be_read_is_read_again() {
    let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(Received::Unknown));
    let unsteady = Arc::new(Unsteady::new(store.clone()));
    let host = Host::open(unsteady.clone(), scripts.clone(), HostLimits::default()).await.unwrap();
    let fixture = Fixture { host, store, scripts };
    let fails = |failures: &AtomicUsize| failures.store(3, Ordering::SeqCst);
    let has_failed = |failures: &AtomicUsize| failures.load(Ordering::SeqCst) == 0;
    // The log, when the agent is started.
    let new = NewSession { agent: "talker".to_owned(), ..NewSession::default() };
    let id = within(fixture.host.create(new)).await.unwrap().id;
    fails(&unsteady.unread_logs);
    fixture.send(&id, "first", prompt("wait")).await;
    fixture.until(&id, |log| texts(log) == ["begins"]).await;
    assert!(has_failed(&unsteady.unread_logs));
    // The commands, while a turn is running.
    fails(&unsteady.unread_commands);
    assert_eq!(fixture.send(&id, "next", prompt("next")).await.state, CommandState::Accepted);
    assert!(has_failed(&unsteady.unread_commands));
    fixture.send(&id, "stop", Command::Interrupt).await;
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::Cancelled, Outcome::Completed]);
    assert_eq!(fixture.scripts.launches.lock().unwrap().len(), 1);
}
