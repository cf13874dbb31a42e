//! A host owns live sessions: prompts run once and in order, and what the agent emits is stored.

use std::time::Duration;

use interlingua::Entry;
use interlingua::event::{Data, Outcome};
use interlingua_sessions::host::{
    Command, HostLimits, NewSession, Received, Verdict, WhilePending,
};
use interlingua_sessions::{
    Acknowledgement, CommandState, Error, Filter, Host, Patch, SessionId, State, Store, Waiting,
};
use serde_json::json;

use crate::late_answers::{killed, next_host, paused};
use crate::support::key;
use crate::talker::{Fixture, kinds, log, outcomes, prompt, texts, within};

fn requested(log: &[Entry]) -> bool {
    let kinds = kinds(log);
    kinds.contains(&"permission_requested") || kinds.contains(&"question_asked")
}

#[tokio::test]
async fn prompts_run_in_order_and_each_of_them_once() {
    let fixture = Fixture::new().await;
    let id = fixture.create("one").await;
    let sent = fixture.send(&id, "second", prompt("two")).await;
    assert_eq!(sent.state, CommandState::Accepted);
    let again = fixture.send(&id, "second", prompt("two")).await;
    assert_eq!(again.key, sent.key);
    let other = fixture.host.command(&id, key("second"), prompt("three")).await;
    assert_eq!(other, Err(Error::KeyReused("second".to_owned())));
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(texts(&log), ["one", "two"]);
    assert_eq!(outcomes(&log), [Outcome::Completed, Outcome::Completed]);
    assert!(log.iter().map(|entry| entry.sequence).eq(0..log.len() as u64));
    fixture.until_record(&id, |record| record.state == State::Idle).await;
    let done = fixture.send(&id, "second", prompt("two")).await;
    assert_eq!(done.state, CommandState::Delivered);
    let begun = done.sequence.and_then(|at| log.get(usize::try_from(at).unwrap()));
    assert_eq!(begun.map(|entry| entry.event.data.kind()), Some("turn_started"));
    assert_eq!((fixture.scripts.times("one"), fixture.scripts.times("two")), (1, 1));
    let record = fixture.store.load(&id).await.unwrap().unwrap();
    assert_eq!((record.native_ids, record.model), (vec!["s1".to_owned()], Some("m".to_owned())));
}

#[tokio::test]
async fn a_request_waits_for_its_answer() {
    let fixture = Fixture::new().await;
    let id = fixture.create("touch it").await;
    fixture.until_record(&id, |record| matches!(record.state, State::Waiting { .. })).await;
    let record = fixture.store.load(&id).await.unwrap().unwrap();
    let State::Waiting { waiting } = &record.state else { panic!("{record:?}") };
    let [Waiting::Decision { request }] = &waiting[..] else { panic!("{waiting:?}") };
    let wrong =
        Command::Answer { request: request.clone(), answer: Some(json!("x")), decline: None };
    let refused = fixture.send(&id, "wrong", wrong).await;
    assert!(matches!(refused.state, CommandState::Refused { .. }), "{refused:?}");
    let (text, while_pending) = ("no".to_owned(), WhilePending::Reject);
    let rejected = Command::Prompt { text, while_pending, joins: false };
    let rejected = fixture.send(&id, "rejected", rejected).await;
    assert!(matches!(rejected.state, CommandState::Refused { .. }), "{rejected:?}");
    let decision = Verdict::Allow;
    let allow = Command::Decide { request: request.clone(), decision, reason: None };
    let allowed = fixture.send(&id, "allow", allow.clone()).await;
    assert_eq!(allowed.state, CommandState::Delivered);
    assert_eq!(fixture.send(&id, "allow", allow.clone()).await, allowed);
    let log = fixture.until_turns(&id, 1).await;
    assert_eq!(texts(&log), ["allowed"]);
    assert_eq!(kind_at(&log, &allowed), Some("permission_resolved"));
    // The same answer as another command comes too late.
    let late = fixture.send(&id, "late", allow).await;
    assert!(matches!(late.state, CommandState::Refused { .. }), "{late:?}");
}

#[tokio::test]
async fn a_prompt_can_supersede_what_waits() {
    let fixture = Fixture::new().await;
    for (words, answer) in [("touch it", "denied"), ("ask me", "denied")] {
        let id = fixture.create(words).await;
        fixture.until(&id, requested).await;
        fixture.until_record(&id, |record| matches!(record.state, State::Waiting { .. })).await;
        let (text, while_pending) = ("instead".to_owned(), WhilePending::Supersede);
        fixture.send(&id, "instead", Command::Prompt { text, while_pending, joins: false }).await;
        let log = fixture.until_turns(&id, 2).await;
        assert_eq!(texts(&log), [answer, "instead"], "{words}");
    }
}

/// The kind of the entry with which a command took effect.
fn kind_at(log: &[Entry], acknowledged: &Acknowledgement) -> Option<&'static str> {
    let at = usize::try_from(acknowledged.sequence?).unwrap();
    log.get(at).map(|entry| entry.event.data.kind())
}

/// A prompt that is refused must not have denied what it was to supersede.
#[tokio::test]
async fn a_refused_prompt_supersedes_nothing() {
    let fixture = Fixture::new().await;
    let id = fixture.create("touch it").await;
    fixture.until_record(&id, |record| matches!(record.state, State::Waiting { .. })).await;
    for number in 0..100 {
        fixture.send(&id, &format!("k{number}"), prompt("later")).await;
    }
    let (text, while_pending) = ("instead".to_owned(), WhilePending::Supersede);
    let prompt = Command::Prompt { text, while_pending, joins: false };
    let refused = fixture.send(&id, "instead", prompt).await;
    assert!(matches!(refused.state, CommandState::Refused { .. }), "{refused:?}");
    let record = fixture.store.load(&id).await.unwrap().unwrap();
    assert!(matches!(record.state, State::Waiting { .. }), "{record:?}");
    let log = log(&*fixture.store, &id).await;
    assert!(!kinds(&log).contains(&"permission_resolved"), "{:?}", kinds(&log));
}

#[tokio::test]
async fn an_interrupt_acts_at_once_and_the_next_prompt_works() {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    fixture.until(&id, |log| texts(log) == ["begins"]).await;
    fixture.send(&id, "next", prompt("next")).await;
    let interrupted = fixture.send(&id, "stop", Command::Interrupt).await;
    assert_eq!(interrupted.state, CommandState::Delivered);
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::Cancelled, Outcome::Completed]);
    // It took effect between what the agent had printed before and the end of its turn.
    let text = kinds(&log).iter().position(|kind| *kind == "block").unwrap() as u64;
    let end = kinds(&log).iter().position(|kind| *kind == "turn_ended").unwrap() as u64;
    let at = interrupted.sequence.unwrap();
    assert!(text < at && at <= end, "{at}: {:?}", kinds(&log));
    fixture.until_record(&id, |record| record.state == State::Idle).await;
    let nothing = fixture.send(&id, "again", Command::Interrupt).await;
    assert!(matches!(nothing.state, CommandState::Refused { .. }));
}

#[tokio::test]
async fn an_agent_that_died_is_started_again() {
    let fixture = Fixture::new().await;
    let id = fixture.create("die").await;
    fixture.send(&id, "next", prompt("next")).await;
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(outcomes(&log), [Outcome::Failed, Outcome::Completed]);
    assert_eq!(texts(&log), ["begins", "next"]);
}

#[tokio::test]
async fn the_same_request_creates_one_session() {
    let fixture = Fixture::new().await;
    let (agent, prompt) = ("talker".to_owned(), Some("one".to_owned()));
    let new = NewSession { agent, prompt, key: Some(key("k")), ..NewSession::default() };
    let first = within(fixture.host.create(new.clone())).await.unwrap();
    let second = within(fixture.host.create(new.clone())).await.unwrap();
    assert_eq!(first.id, second.id);
    fixture.until_turns(&first.id, 1).await;
    assert_eq!(fixture.scripts.times("one"), 1);
    let other = NewSession { prompt: Some("two".to_owned()), ..new.clone() };
    assert_eq!(fixture.host.create(other).await, Err(Error::KeyReused("k".to_owned())));
    let other = NewSession { model: Some("m".to_owned()), ..new.clone() };
    assert_eq!(fixture.host.create(other).await, Err(Error::KeyReused("k".to_owned())));
    let owner = Some("anna".to_owned());
    let of_another = within(fixture.host.create(NewSession { owner, ..new })).await.unwrap();
    assert_ne!(of_another.id, first.id);
}

#[tokio::test]
async fn a_closed_session_is_continued_by_another_one() {
    let fixture = Fixture::new().await;
    let id = fixture.create("one").await;
    fixture.until_turns(&id, 1).await;
    let continued = NewSession { continues: Some(id.clone()), ..NewSession::default() };
    let open = fixture.host.create(continued.clone()).await;
    assert_eq!(open.map(|it| it.id), Err(Error::NotClosed(id.clone())));
    let closed = fixture.send(&id, "close", Command::Close).await;
    assert_eq!(closed.state, CommandState::Delivered);
    let log = log(&*fixture.store, &id).await;
    assert_eq!(kinds(&log).last(), Some(&"session_ended"));
    assert_eq!(kind_at(&log, &closed), Some("session_ended"));
    let late = fixture.host.command(&id, key("late"), prompt("late")).await;
    assert_eq!(late, Err(Error::Closed(id.clone())));
    let facts = [("sandboxId".to_owned(), "box".into()), ("snapshotId".to_owned(), "x".into())];
    let patch = Patch { host: facts.into_iter().collect(), ..Patch::default() };
    fixture.store.update(&id, patch).await.unwrap();
    let next = within(fixture.host.create(continued)).await.unwrap();
    assert_eq!((&*next.agent, &next.native_ids), ("talker", &vec!["s1".to_owned()]));
    assert_eq!((&next.host["sandboxId"], next.host.get("snapshotId")), (&"box".into(), None));
    let before = fixture.store.load(&id).await.unwrap().unwrap();
    assert_eq!((before.continues, before.continued_by), (None, Some(next.id.clone())));
    let after = fixture.store.load(&next.id).await.unwrap().unwrap();
    assert_eq!((after.continues, after.continued_by), (Some(id.clone()), None));
    fixture.send(&next.id, "two", prompt("two")).await;
    assert_eq!(texts(&fixture.until_turns(&next.id, 1).await), ["two"]);
}

/// Two sessions went on with the same session of the agent, of which most agents lose a turn then.
#[tokio::test]
async fn a_closed_session_is_continued_by_one_session_at_a_time() {
    let fixture = Fixture::new().await;
    let id = fixture.create("one").await;
    fixture.until_turns(&id, 1).await;
    fixture.send(&id, "close", Command::Close).await;
    let with = |name: &str| NewSession {
        continues: Some(id.clone()),
        key: Some(key(name)),
        ..NewSession::default()
    };
    let first = within(fixture.host.create(with("first"))).await.unwrap();
    let refused = Err(Error::Continued { id: id.clone(), by: first.id.clone() });
    assert_eq!(within(fixture.host.create(with("second"))).await, refused);
    let ids: Vec<_> = fixture.store.list(&Filter::default()).await.unwrap();
    assert_eq!(ids.len(), 2, "the second one is not left behind: {ids:?}");
    assert_eq!(within(fixture.host.create(with("first"))).await.unwrap().id, first.id);
    fixture.send(&first.id, "close", Command::Close).await;
    let second = within(fixture.host.create(with("second"))).await.unwrap();
    let before = fixture.store.load(&id).await.unwrap().unwrap();
    assert_eq!(before.continued_by, Some(second.id.clone()));
    // The first request, sent again, finds its session, and takes nothing from the second one.
    assert_eq!(within(fixture.host.create(with("first"))).await.unwrap().id, first.id);
    let before = fixture.store.load(&id).await.unwrap().unwrap();
    assert_eq!(before.continued_by, Some(second.id));
}

/// The chain from one to the other was broken, because a session in between was deleted.
#[tokio::test]
async fn a_session_of_the_agent_is_open_in_one_session_only() {
    let fixture = Fixture::new().await;
    let id = fixture.create("one").await;
    fixture.until_turns(&id, 1).await;
    fixture.send(&id, "close", Command::Close).await;
    let after =
        |id: &SessionId| NewSession { continues: Some(id.clone()), ..NewSession::default() };
    let between = within(fixture.host.create(after(&id))).await.unwrap().id;
    fixture.send(&between, "close", Command::Close).await;
    let last = within(fixture.host.create(after(&between))).await.unwrap().id;
    assert_eq!(within(fixture.host.delete(&between)).await, Ok(true));
    let refused = within(fixture.host.create(after(&id))).await.map(|it| it.id);
    assert_eq!(refused, Err(Error::Continued { id: id.clone(), by: last.clone() }));
    fixture.send(&last, "close", Command::Close).await;
    assert!(within(fixture.host.create(after(&id))).await.is_ok());
}

/// The session was closed or deleted, and the agent's own session could be used by another one, while the agent
/// that was lost was still there.
#[tokio::test]
async fn a_session_ends_when_its_lost_agent_has_ended() {
    for is_deleted in [false, true] {
        let (store, id) = killed(paused(&["c1"]), None).await;
        let begun = std::time::Instant::now();
        let fixture = next_host(&store, Received::Unknown).await;
        if is_deleted {
            assert_eq!(within(fixture.host.delete(&id)).await, Ok(true));
        } else {
            fixture.send(&id, "end", Command::Close).await;
        }
        let record = fixture.store.load(&id).await.unwrap();
        assert!(record.is_none_or(|record| record.state == State::Ended));
        // What its guard is given to end it.
        assert!(begun.elapsed() >= Duration::from_secs(2), "{is_deleted}: {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn closing_during_a_turn_ends_it_and_refuses_what_waits() {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    fixture.until(&id, |log| texts(log) == ["begins"]).await;
    fixture.send(&id, "next", prompt("next")).await;
    fixture.send(&id, "close", Command::Close).await;
    let log = log(&*fixture.store, &id).await;
    assert_eq!(outcomes(&log), [Outcome::Cancelled]);
    assert_eq!(kinds(&log).last(), Some(&"session_ended"));
    let next = fixture.send(&id, "next", prompt("next")).await;
    assert!(matches!(next.state, CommandState::Refused { .. }), "{next:?}");
    assert_eq!(fixture.scripts.times("next"), 0);
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_fails_the_turn() {
    let fixture = Fixture::new().await;
    let new = NewSession { agent: "nobody".to_owned(), ..NewSession::default() };
    let unknown = fixture.host.create(new).await;
    assert!(matches!(unknown, Err(Error::NotLaunched(_))), "{unknown:?}");
    let prompt = Some("go".to_owned());
    let new = NewSession { agent: "missing".to_owned(), prompt, ..NewSession::default() };
    let id = within(fixture.host.create(new)).await.unwrap().id;
    let log = fixture.until_turns(&id, 1).await;
    assert_eq!(outcomes(&log), [Outcome::Failed]);
    let Some(Data::TurnEnded(ended)) = log.last().map(|entry| &entry.event.data) else {
        panic!("{log:?}")
    };
    assert_eq!(ended.cause.as_ref().unwrap().to_string(), "the agent is not installed");
}

#[tokio::test]
async fn live_agents_are_bounded_and_closed_when_they_rest() {
    let limits = HostLimits { live: 1, ..HostLimits::default() };
    let fixture = Fixture::with(limits).await;
    let ids = [fixture.create("one").await, fixture.create("two").await];
    for id in &ids {
        fixture.until_turns(id, 1).await;
        assert!(fixture.host.live() <= 1);
    }
    fixture.send(&ids[0], "again", prompt("again")).await;
    let log = fixture.until_turns(&ids[0], 2).await;
    assert_eq!(texts(&log), ["one", "again"]);
    let limits = HostLimits { idle: Duration::ZERO, ..HostLimits::default() };
    let fixture = Fixture::with(limits).await;
    let id = fixture.create("one").await;
    fixture.until_turns(&id, 1).await;
    within(async {
        while fixture.host.live() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    fixture.send(&id, "again", prompt("again")).await;
    let log = fixture.until_turns(&id, 2).await;
    let launches = fixture.scripts.launches.lock().unwrap();
    assert_eq!(launches.last().unwrap().native_ids, ["s1"], "it resumes its own session");
    assert_eq!(log.last().unwrap().epoch, 2);
}

/// The sessions that have rested longest are asked to make room, and have a prompt again by then: the next
/// one is asked.
#[tokio::test]
async fn a_session_that_works_again_passes_on_that_room_is_needed() {
    let fixture = Fixture::with(HostLimits { live: 3, ..HostLimits::default() }).await;
    let mut resting = Vec::new();
    for text in ["one", "two", "three"] {
        let id = fixture.create(text).await;
        fixture.until_turns(&id, 1).await;
        fixture.until_record(&id, |record| record.state == State::Idle).await;
        resting.push(id);
    }
    let new = NewSession { agent: "talker".to_owned(), ..NewSession::default() };
    let needs_room = within(fixture.host.create(new)).await.unwrap().id;
    // The tasks of the runtime take turns: the owner that needs room looks for it before the others learn of
    // their prompts. It looks twice, when it begins and when it is woken.
    let (needs, first, second) = tokio::join!(
        fixture.send(&needs_room, "four", prompt("four")),
        fixture.send(&resting[0], "wait", prompt("wait")),
        fixture.send(&resting[1], "wait", prompt("wait")),
    );
    for sent in [needs, first, second] {
        assert_eq!(sent.state, CommandState::Accepted);
    }
    assert_eq!(texts(&fixture.until_turns(&needs_room, 1).await), ["four"]);
    for id in &resting[..2] {
        fixture.until(id, |log| texts(log).last().is_some_and(|last| last == "begins")).await;
    }
    assert_eq!(fixture.host.live(), 3);
}

#[tokio::test]
async fn a_shutdown_ends_turns_truthfully_and_keeps_what_waits() {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    fixture.until(&id, |log| texts(log) == ["begins"]).await;
    fixture.send(&id, "next", prompt("next")).await;
    within(fixture.host.shutdown()).await;
    assert_eq!(fixture.host.live(), 0);
    let record = fixture.store.load(&id).await.unwrap().unwrap();
    assert_eq!(record.state, State::Starting, "a session with a prompt that waits does not expire");
    // The agent obeyed the interrupt.
    assert_eq!(outcomes(&log(&*fixture.store, &id).await), [Outcome::Cancelled]);
    let limits = HostLimits::default();
    let host = Host::open(fixture.store.clone(), fixture.scripts.clone(), limits).await.unwrap();
    let fixture = Fixture { host, ..fixture };
    let log = fixture.until_turns(&id, 2).await;
    assert_eq!(texts(&log), ["begins", "next"]);
    assert_eq!(fixture.scripts.times("wait"), 1);
}

/// The owner is busy with entries when the host is shut down, and does not wait for news.
#[tokio::test]
async fn a_shutdown_during_output_ends_the_turn() {
    let fixture = Fixture::new().await;
    let id = fixture.create("flood").await;
    fixture.until(&id, |log| texts(log).len() > 10).await;
    within(fixture.host.shutdown()).await;
    let record = fixture.store.load(&id).await.unwrap().unwrap();
    assert_eq!(record.state, State::Idle);
    assert_eq!(outcomes(&log(&*fixture.store, &id).await).len(), 1);
    assert_eq!(fixture.host.live(), 0);
}

/// A client that has sent a command may be gone before it is acknowledged.
#[tokio::test]
async fn a_command_whose_sender_is_gone_is_executed() {
    let fixture = Fixture::new().await;
    let id = fixture.create("one").await;
    fixture.until_turns(&id, 1).await;
    {
        let mut sending = std::pin::pin!(fixture.host.command(&id, key("two"), prompt("two")));
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(sending.as_mut().poll(context)));
        assert!(polled.await.is_pending());
    }
    assert_eq!(texts(&fixture.until_turns(&id, 2).await), ["one", "two"]);
}

/// A session with a prompt that waits is not idle, and does not expire.
#[tokio::test]
async fn a_session_whose_prompt_waits_is_starting() {
    let fixture = Fixture::with(HostLimits { live: 1, ..HostLimits::default() }).await;
    let busy = fixture.create("wait").await;
    fixture.until(&busy, |log| texts(log) == ["begins"]).await;
    let ttl = Some(Duration::from_millis(1));
    let (agent, prompt) = ("talker".to_owned(), Some("later".to_owned()));
    let new = NewSession { agent, prompt, ttl, ..NewSession::default() };
    let waits = within(fixture.host.create(new)).await.unwrap().id;
    let record = fixture.store.load(&waits).await.unwrap().unwrap();
    assert_eq!(record.state, State::Starting);
    fixture.send(&busy, "stop", Command::Interrupt).await;
    // When it rests, it may expire at once, so only the agent knows.
    within(async {
        while fixture.scripts.times("later") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Nothing begins for a blank prompt, so nothing ends: the session stayed in `starting`, and never expired.
#[tokio::test]
async fn a_session_whose_first_prompt_was_refused_rests() {
    let fixture = Fixture::new().await;
    let id = fixture.create(" ").await;
    fixture.until_record(&id, |record| record.state == State::Idle).await;
    assert_eq!(fixture.scripts.launches.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn prompts_that_wait_are_bounded() {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    fixture.until(&id, |log| texts(log) == ["begins"]).await;
    for number in 0..100 {
        let queued = fixture.send(&id, &format!("k{number}"), prompt("more")).await;
        assert_eq!(queued.state, CommandState::Accepted);
    }
    let refused = fixture.send(&id, "last", prompt("more")).await.state;
    assert!(matches!(refused, CommandState::Refused { .. }), "{refused:?}");
    within(fixture.host.shutdown()).await;
}

#[tokio::test]
async fn a_deleted_session_leaves_no_agent() {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    fixture.until(&id, |log| texts(log) == ["begins"]).await;
    assert_eq!(within(fixture.host.delete(&id)).await, Ok(true));
    assert_eq!(fixture.host.live(), 0);
    assert_eq!(fixture.store.load(&id).await.unwrap(), None);
    assert_eq!(fixture.host.delete(&id).await, Ok(false));
}

/// Another owner has taken the session: this one must not append a byte, and its agent has to end.
#[tokio::test]
async fn an_owner_that_was_replaced_stops() {
    let fixture = Fixture::new().await;
    let id = fixture.create("wait").await;
    let before = fixture.until(&id, |log| texts(log) == ["begins"]).await;
    fixture.store.claim(&id).await.unwrap();
    let stale = within(fixture.host.command(&id, key("stop"), Command::Interrupt)).await;
    assert_eq!(stale, Err(Error::StaleOwner(id.clone())));
    within(async {
        while fixture.host.live() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(log(&*fixture.store, &id).await.len(), before.len());
}
