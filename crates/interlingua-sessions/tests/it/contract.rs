//! What every store keeps. Each test runs for all stores.

use std::sync::Arc;

use interlingua_sessions::{
    CommandState, CommandUpdate, Commit, Counts, Error, Filter, Patch, Place, Queued,
    SessionRecord, State, Waiting,
};
use serde_json::json;

use crate::support::{entries, entry, id, key, numbers, owned, parsed, record};

for_every_store!(a_record_is_created_once_loaded_and_deleted(store, hands) {
    let record = SessionRecord {
        model: Some("m".to_owned()),
        metadata: serde_json::Map::from_iter([("team".to_owned(), json!("a"))]),
        ..record("one", &hands)
    };
    assert_eq!(store.load(&record.id).await, Ok(None));
    store.create(record.clone()).await.unwrap();
    assert_eq!(store.load(&record.id).await, Ok(Some(record.clone())));
    assert_eq!(store.create(record.clone()).await, Err(Error::Exists(record.id.clone())));
    assert_eq!(store.delete(&record.id).await, Ok(true));
    assert_eq!(store.delete(&record.id).await, Ok(false));
    assert_eq!(store.load(&record.id).await, Ok(None));
});

for_every_store!(a_record_is_updated_without_its_state(store, hands) {
    let (session, _) = owned(&*store, "one", &hands).await;
    hands.advance(500_000);
    let patch = Patch {
        model: Some("m".to_owned()),
        continued_by: Some(id("two")),
        state: Some(State::Ended),
        ..Patch::default()
    };
    let updated = store.update(&session, patch).await.unwrap();
    assert_eq!(store.load(&session).await, Ok(Some(updated.clone())));
    assert_eq!((updated.model.as_deref(), updated.continued_by), (Some("m"), Some(id("two"))));
    assert_eq!(updated.state, State::Idle);
    // It counts as a use, so the session is kept for longer.
    hands.advance(500_000);
    assert!(store.load(&session).await.unwrap().is_some());
    assert_eq!(store.update(&id("none"), Patch::default()).await, Err(Error::NotFound(id("none"))));
});

for_every_store!(a_session_is_continued_by_one_that_is_not_closed(store, hands) {
    let (session, _) = owned(&*store, "one", &hands).await;
    let continued = |name: &str| {
        let patch = Patch { continued_by: Some(id(name)), ..Patch::default() };
        store.update(&session, patch)
    };
    let refused = |by: &str| Err(Error::Continued { id: id("one"), by: id(by) });
    let (two, fence) = owned(&*store, "two", &hands).await;
    owned(&*store, "three", &hands).await;
    continued("two").await.unwrap();
    // The same request, sent again.
    continued("two").await.unwrap();
    assert_eq!(continued("three").await.map(drop), refused("two"));
    // It is closed, and continued itself.
    let patch = Patch { continued_by: Some(id("four")), ..Patch::default() };
    store.update(&two, patch).await.unwrap();
    owned(&*store, "four", &hands).await;
    let patch = Patch { state: Some(State::Ended), ..Patch::default() };
    store.commit(&two, fence, Commit { patch, ..Commit::default() }).await.unwrap();
    assert_eq!(continued("three").await.map(drop), refused("four"));
    store.delete(&id("four")).await.unwrap();
    assert_eq!(continued("three").await.unwrap().continued_by, Some(id("three")));
});

for_every_store!(sessions_are_listed_by_their_last_use_and_owner(store, hands) {
    for (name, owner) in [("a", None), ("b", Some("me")), ("c", Some("you")), ("d", Some("me"))] {
        let owner = owner.map(str::to_owned);
        store.create(SessionRecord { owner, ..record(name, &hands) }).await.unwrap();
        hands.advance(10);
    }
    store.touch(&id("a")).await.unwrap();
    let names = |records: Vec<SessionRecord>| -> String {
        records.iter().map(|record| record.id.as_str()).collect()
    };
    assert_eq!(names(store.list(&Filter::default()).await.unwrap()), "adcb");
    let of_me = Filter { owner: Some("me".to_owned()), ..Filter::default() };
    assert_eq!(names(store.list(&of_me).await.unwrap()), "db");
    let two = Filter { limit: Some(2), ..Filter::default() };
    assert_eq!(names(store.list(&two).await.unwrap()), "ad");
});

for_every_store!(a_list_goes_on_behind_a_session(store, hands) {
    // Some were used at the same time, so that only their ids tell their places.
    for name in ["a", "b", "c", "d", "e"] {
        let owner = Some(if name == "c" { "you" } else { "me" }.to_owned());
        store.create(SessionRecord { owner, ..record(name, &hands) }).await.unwrap();
        if name == "b" {
            hands.advance(10);
        }
    }
    for (owner, expected) in [(None, "cdeab"), (Some("me".to_owned()), "deab")] {
        for limit in 1..=5 {
            let (mut listed, mut after) = (String::new(), None);
            for _ in 0..=expected.len() {
                let filter = Filter { owner: owner.clone(), limit: Some(limit), after };
                let page = store.list(&filter).await.unwrap();
                listed.extend(page.iter().map(|record| record.id.as_str()));
                let Some(last) = page.last() else { break };
                after = Some(Place { used_at: last.used_at, id: last.id.clone() });
            }
            assert_eq!(listed, expected, "{limit}");
        }
    }
});

for_every_store!(sessions_and_prompts_that_wait_are_counted(store, hands) {
    assert_eq!(store.counts().await, Ok(Counts::default()));
    let (_, _) = owned(&*store, "resting", &hands).await;
    let (working, fence) = owned(&*store, "working", &hands).await;
    for name in ["queued", "undecided", "delivering"] {
        store.submit(&working, key(name), json!({"type": "prompt", "text": name})).await.unwrap();
    }
    let queued = |name| Queued { key: key(name), supersedes: Vec::new() };
    let state = CommandState::Delivering;
    let works = Commit {
        patch: Patch { state: Some(State::Working), ..Patch::default() },
        queued: vec![queued("queued"), queued("delivering")],
        commands: vec![CommandUpdate { key: key("delivering"), state, sequence: None }],
        ..Commit::default()
    };
    store.commit(&working, fence, works).await.unwrap();
    let counts = |names: &[&str]| Counts {
        sessions: names.iter().map(|name| ((*name).to_owned(), 1)).collect(),
        waiting_prompts: 1,
    };
    assert_eq!(store.counts().await, Ok(counts(&["idle", "working"])));
    hands.advance(600_000);
    assert_eq!(store.counts().await, Ok(counts(&["working"])));
});

for_every_store!(a_session_that_rests_expires(store, hands) {
    let (resting, fence) = owned(&*store, "resting", &hands).await;
    let (working, of_working) = owned(&*store, "working", &hands).await;
    let state = Some(State::Working);
    let works = Commit { patch: Patch { state, ..Patch::default() }, ..Commit::default() };
    store.commit(&working, of_working, works).await.unwrap();
    hands.advance(599_999);
    assert!(store.load(&resting).await.unwrap().is_some());
    hands.advance(1);
    assert_eq!(store.load(&resting).await, Ok(None));
    assert!(store.load(&working).await.unwrap().is_some());
    let absent = Error::NotFound(resting.clone());
    assert_eq!(store.commit(&resting, fence, entries(0..1)).await, Err(absent.clone()));
    assert_eq!(store.read(&resting, 0, 100).await, Err(absent.clone()));
    assert_eq!(store.claim(&resting).await, Err(absent.clone()));
    assert_eq!(store.touch(&resting).await, Err(absent.clone()));
    assert_eq!(store.update(&resting, Patch::default()).await, Err(absent.clone()));
    let (deleted, _) = owned(&*store, "deleted", &hands).await;
    hands.advance(600_000);
    assert_eq!(store.delete(&deleted).await, Ok(false));
    assert_eq!(store.submit(&resting, key("k"), json!({})).await, Err(absent));
    assert_eq!(store.list(&Filter::default()).await.unwrap().len(), 1);
    assert_eq!(store.sweep().await, Ok(1));
    assert_eq!(store.sweep().await, Ok(0));
});

for_every_store!(every_use_keeps_a_session(store, hands) {
    let (used, fence) = owned(&*store, "used", &hands).await;
    hands.advance(599_000);
    store.touch(&used).await.unwrap();
    hands.advance(599_000);
    store.commit(&used, fence, entries(0..1)).await.unwrap();
    hands.advance(599_000);
    store.submit(&used, key("k"), json!({"type": "prompt"})).await.unwrap();
    hands.advance(599_000);
    assert!(store.load(&used).await.unwrap().is_some());
    hands.advance(1000);
    assert_eq!(store.load(&used).await, Ok(None));
});

for_every_store!(an_id_can_be_used_again_after_its_session_has_expired(store, hands) {
    let (session, fence) = owned(&*store, "again", &hands).await;
    store.commit(&session, fence, entries(0..3)).await.unwrap();
    store.submit(&session, key("k"), json!(1)).await.unwrap();
    hands.advance(600_000);
    store.create(record("again", &hands)).await.unwrap();
    let page = store.read(&session, 0, 1000).await.unwrap();
    assert_eq!((page.lines.len(), page.tail.next, page.tail.commands), (0, 0, 0));
    // The fence of the session before does not fit, and none is repeated.
    let stale = Error::StaleOwner(session.clone());
    assert_eq!(store.commit(&session, fence, entries(0..1)).await, Err(stale));
    assert!(store.claim(&session).await.unwrap() > fence);
});

for_every_store!(a_log_has_no_gaps(store, hands) {
    let (session, fence) = owned(&*store, "log", &hands).await;
    assert_eq!(store.commit(&session, fence, entries(0..2)).await.unwrap().next, 2);
    assert_eq!(store.commit(&session, fence, entries(2..3)).await.unwrap().next, 3);
    for (wrong, found) in [(entries(4..5), 4), (entries(2..4), 2), (entries(0..1), 0)] {
        let gap = Error::Gap { id: session.clone(), expected: 3, found };
        assert_eq!(store.commit(&session, fence, wrong).await, Err(gap));
    }
    // A gap inside of a commit loses all of it.
    let torn = Commit { entries: vec![entry(3, "a"), entry(5, "b")].into(), ..Commit::default() };
    let gap = Error::Gap { id: session.clone(), expected: 4, found: 5 };
    assert_eq!(store.commit(&session, fence, torn).await, Err(gap));
    let page = store.read(&session, 0, usize::MAX).await.unwrap();
    assert_eq!((numbers(&page.lines), page.next, page.tail.next), (vec![0, 1, 2], 3, 3));
});

for_every_store!(entries_come_back_as_they_were(store, hands) {
    let (session, fence) = owned(&*store, "same", &hands).await;
    let written = vec![entry(0, "one\nline ü 🙂 \"quoted\""), entry(1, "")];
    let commit = Commit { entries: written.clone().into(), ..Commit::default() };
    store.commit(&session, fence, commit).await.unwrap();
    let page = store.read(&session, 0, usize::MAX).await.unwrap();
    assert_eq!(parsed(&page.lines), written);
});

for_every_store!(a_page_begins_and_ends_anywhere_but_not_inside_an_entry(store, hands) {
    let (session, fence) = owned(&*store, "pages", &hands).await;
    for numbers in [0..1, 1..6, 6..7, 7..20] {
        store.commit(&session, fence, entries(numbers)).await.unwrap();
    }
    for limit in [0, 1, 100, 250, 1000, 100_000] {
        for from in 0..21 {
            let (mut next, mut read) = (from, Vec::new());
            loop {
                let page = store.read(&session, next, limit).await.unwrap();
                let found = numbers(&page.lines);
                assert_eq!(page.next, next + found.len() as u64);
                assert!(page.lines.len() <= limit || found.len() == 1, "{limit}");
                if found.is_empty() {
                    break;
                }
                (next, read) = (page.next, [read, found].concat());
            }
            assert_eq!(read, (from..20).collect::<Vec<_>>(), "from {from}, limit {limit}");
        }
    }
    // A reader may be ahead of what there is.
    let page = store.read(&session, 99, 100).await.unwrap();
    assert_eq!((page.next, page.lines.len(), page.tail.next), (99, 0, 20));
});

for_every_store!(a_large_commit_is_read_from_anywhere(store, hands) {
    let (session, fence) = owned(&*store, "large", &hands).await;
    store.commit(&session, fence, entries(0..1)).await.unwrap();
    let mut large: Vec<_> = (1..500).map(|number| entry(number, &"text ".repeat(40))).collect();
    large.insert(250, entry(251, &"x".repeat(100_000)));
    for (number, entry) in (1..).zip(&mut large) {
        entry.sequence = number;
    }
    let commit = Commit { entries: large.into(), ..Commit::default() };
    assert_eq!(store.commit(&session, fence, commit).await.unwrap().next, 501);
    assert_eq!(store.commit(&session, fence, entries(501..502)).await.unwrap().next, 502);
    for limit in [1, 5_000, 70_000, usize::MAX] {
        for from in [0, 1, 2, 120, 250, 251, 252, 499, 500, 501] {
            let (mut next, mut read) = (from, Vec::new());
            while next < 502 {
                let page = store.read(&session, next, limit).await.unwrap();
                let found = numbers(&page.lines);
                assert_eq!(page.next, next + found.len() as u64);
                assert!(page.lines.len() <= limit || found.len() == 1, "{limit}");
                (next, read) = (page.next, [read, found].concat());
            }
            assert_eq!(read, (from..502).collect::<Vec<_>>(), "from {from}, limit {limit}");
        }
    }
});

for_every_store!(a_stale_owner_changes_nothing(store, hands) {
    let (session, first) = owned(&*store, "owned", &hands).await;
    store.commit(&session, first, entries(0..1)).await.unwrap();
    let second = store.claim(&session).await.unwrap();
    assert!(second > first);
    let patch = Patch { model: Some("stale".to_owned()), ..Patch::default() };
    let stale = Commit { patch, ..entries(1..2) };
    let rejected = Error::StaleOwner(session.clone());
    assert_eq!(store.commit(&session, first, stale).await, Err(rejected));
    assert_eq!(store.load(&session).await.unwrap().unwrap().model, None);
    assert_eq!(store.commit(&session, second, entries(1..2)).await.unwrap().next, 2);
});

for_every_store!(a_commit_changes_everything_at_once(store, hands) {
    let (session, fence) = owned(&*store, "whole", &hands).await;
    store.submit(&session, key("p"), json!({"type": "prompt"})).await.unwrap();
    hands.advance(5);
    let waiting = vec![Waiting::Decision { request: "r".to_owned() }];
    let delivered = CommandUpdate {
        key: key("p"),
        state: CommandState::Delivered,
        sequence: Some(1),
    };
    let commit = Commit {
        patch: Patch {
            state: Some(State::Waiting { waiting: waiting.clone() }),
            native_id: Some("native".to_owned()),
            ..Patch::default()
        },
        commands: vec![delivered.clone()],
        ..entries(0..2)
    };
    // Nothing of a commit that fails is stored.
    let torn = Commit { entries: vec![entry(7, "x")].into(), ..commit.clone() };
    assert!(store.commit(&session, fence, torn).await.is_err());
    let unchanged = store.load(&session).await.unwrap().unwrap();
    assert_eq!((unchanged.state, unchanged.native_ids.len()), (State::Idle, 0));
    assert_eq!(store.open_commands(&session).await.unwrap().len(), 1);
    store.commit(&session, fence, commit).await.unwrap();
    let changed = store.load(&session).await.unwrap().unwrap();
    assert_eq!(changed.state, State::Waiting { waiting });
    assert_eq!(changed.native_ids, ["native"]);
    assert_eq!(changed.updated_at, hands.now());
    assert_eq!(store.open_commands(&session).await, Ok(vec![]));
});

for_every_store!(a_command_is_acknowledged_in_the_same_way_every_time(store, hands) {
    let (session, fence) = owned(&*store, "commands", &hands).await;
    let prompt = json!({"type": "prompt", "text": "hi"});
    let (accepted, new) = store.submit(&session, key("k"), prompt.clone()).await.unwrap();
    assert_eq!((&accepted.state, accepted.sequence, new), (&CommandState::Accepted, None, true));
    let again = store.submit(&session, key("k"), prompt.clone()).await.unwrap();
    assert_eq!(again, (accepted, false));
    let other = store.submit(&session, key("k"), json!({"type": "close"})).await;
    assert_eq!(other, Err(Error::KeyReused("k".to_owned())));
    let update = |state, sequence| {
        let commands = vec![CommandUpdate { key: key("k"), state, sequence }];
        Commit { commands, ..Commit::default() }
    };
    let commit = update(CommandState::Delivering, Some(0));
    store.commit(&session, fence, commit).await.unwrap();
    let (seen, _) = store.submit(&session, key("k"), prompt.clone()).await.unwrap();
    assert_eq!((seen.state, seen.sequence), (CommandState::Delivering, Some(0)));
    store.commit(&session, fence, update(CommandState::Delivered, Some(3))).await.unwrap();
    // What is final stays as it is.
    let refused = CommandState::Refused { reason: "late".to_owned() };
    store.commit(&session, fence, update(refused, None)).await.unwrap();
    let (seen, new) = store.submit(&session, key("k"), prompt).await.unwrap();
    assert_eq!((&seen.state, seen.sequence, new), (&CommandState::Delivered, Some(3), false));
    // It can be looked up without its content.
    assert_eq!(store.acknowledged(&session, &key("k")).await, Ok(Some(seen)));
    assert_eq!(store.acknowledged(&session, &key("other")).await, Ok(None));
    let absent = store.acknowledged(&id("none"), &key("k")).await;
    assert_eq!(absent, Err(Error::NotFound(id("none"))));
});

// Whoever takes a queued prompt again must find what was decided when it was queued, and not decide it anew.
for_every_store!(a_command_is_queued_once(store, hands) {
    let (session, fence) = owned(&*store, "queued", &hands).await;
    for name in ["decided", "undecided"] {
        store.submit(&session, key(name), json!({"type": "prompt", "text": name})).await.unwrap();
    }
    let queue = |requests: &[&str]| {
        let supersedes = requests.iter().map(|it| (*it).to_owned()).collect();
        let queued = vec![Queued { key: key("decided"), supersedes }];
        Commit { queued, ..Commit::default() }
    };
    let supersedes = async || -> Vec<Option<Vec<String>>> {
        let open = store.open_commands(&session).await.unwrap();
        open.into_iter().map(|it| it.supersedes).collect()
    };
    assert_eq!(supersedes().await, [None, None]);
    store.commit(&session, fence, queue(&["r1", "r2"])).await.unwrap();
    let expected = [Some(vec!["r1".to_owned(), "r2".to_owned()]), None];
    assert_eq!(supersedes().await, expected);
    // It is the first decision that counts, also after the command was about to be delivered.
    store.commit(&session, fence, queue(&[])).await.unwrap();
    for state in [CommandState::Delivering, CommandState::Accepted] {
        let commands = vec![CommandUpdate { key: key("decided"), state, sequence: None }];
        store.commit(&session, fence, Commit { commands, ..Commit::default() }).await.unwrap();
    }
    assert_eq!(supersedes().await, expected);
});

for_every_store!(a_command_is_withdrawn_until_it_begins(store, hands) {
    let (session, fence) = owned(&*store, "withdrawn", &hands).await;
    for name in ["a", "b", "c"] {
        store.submit(&session, key(name), json!(name)).await.unwrap();
    }
    let begun = CommandUpdate { key: key("b"), state: CommandState::Delivering, sequence: None };
    let commit = Commit { commands: vec![begun], ..Commit::default() };
    store.commit(&session, fence, commit).await.unwrap();
    assert_eq!(store.withdraw(&session, &key("a")).await, Ok(true));
    assert_eq!(store.withdraw(&session, &key("a")).await, Ok(false));
    assert_eq!(store.withdraw(&session, &key("b")).await, Ok(false));
    let positions = async || -> Vec<u64> {
        store.open_commands(&session).await.unwrap().iter().map(|it| it.position).collect()
    };
    assert_eq!(positions().await, [1, 2]);
    // Sent again, it is a new command behind all others.
    assert!(store.submit(&session, key("a"), json!("other")).await.unwrap().1);
    assert_eq!(positions().await, [1, 2, 3]);
    let ends = Patch { state: Some(State::Ended), ..Patch::default() };
    store.commit(&session, fence, Commit { patch: ends, ..Commit::default() }).await.unwrap();
    assert_eq!(store.open_commands(&session).await, Ok(vec![]));
});

for_every_store!(open_commands_keep_their_order(store, hands) {
    let (session, fence) = owned(&*store, "queue", &hands).await;
    for name in ["z", "a", "m"] {
        store.submit(&session, key(name), json!(name)).await.unwrap();
    }
    let delivered = CommandUpdate {
        key: key("a"),
        state: CommandState::Delivered,
        sequence: Some(0),
    };
    let commit = Commit { commands: vec![delivered], ..Commit::default() };
    store.commit(&session, fence, commit).await.unwrap();
    let open = store.open_commands(&session).await.unwrap();
    let found: Vec<_> = open.iter().map(|it| (it.position, it.body.clone())).collect();
    assert_eq!(found, [(0, json!("z")), (2, json!("m"))]);
});

for_every_store!(a_closed_session_takes_nothing_more(store, hands) {
    let (session, fence) = owned(&*store, "closed", &hands).await;
    store.submit(&session, key("before"), json!(1)).await.unwrap();
    let ends = Patch { state: Some(State::Ended), ..Patch::default() };
    let tail = store.commit(&session, fence, Commit { patch: ends, ..entries(0..1) }).await;
    assert!(tail.unwrap().closed);
    let closed = Error::Closed(session.clone());
    assert_eq!(store.commit(&session, fence, entries(1..2)).await, Err(closed.clone()));
    assert_eq!(store.submit(&session, key("after"), json!(1)).await, Err(closed));
    // What was acknowledged is acknowledged for ever, and the log can be read.
    assert!(!store.submit(&session, key("before"), json!(1)).await.unwrap().1);
    let page = store.read(&session, 0, 1000).await.unwrap();
    assert!(page.tail.closed && numbers(&page.lines) == [0]);
});

for_every_store!(closing_a_session_settles_its_commands(store, hands) {
    let (session, fence) = owned(&*store, "closing", &hands).await;
    for name in ["waits", "sent", "done"] {
        store.submit(&session, key(name), json!({"text": name})).await.unwrap();
    }
    let update = |name: &str, state| CommandUpdate { key: key(name), state, sequence: Some(0) };
    let commands =
        vec![update("sent", CommandState::Delivering), update("done", CommandState::Delivered)];
    store.commit(&session, fence, Commit { commands, ..entries(0..1) }).await.unwrap();
    let ends = Patch { state: Some(State::Ended), ..Patch::default() };
    store.commit(&session, fence, Commit { patch: ends, ..Commit::default() }).await.unwrap();
    assert_eq!(store.open_commands(&session).await.unwrap(), []);
    let mut states = Vec::new();
    for name in ["waits", "sent", "done"] {
        let again = store.submit(&session, key(name), json!({"text": name})).await.unwrap();
        states.push(again.0.state);
    }
    assert!(matches!(
        states[..],
        [CommandState::Refused { .. }, CommandState::Unknown { .. }, CommandState::Delivered]
    ), "{states:?}");
    // What is final is still compared.
    let other = store.submit(&session, key("done"), json!({"text": "other"})).await;
    assert_eq!(other, Err(Error::KeyReused("done".to_owned())));
});

for_every_store!(an_owner_learns_that_the_one_before_was_lost(store, hands) {
    let (session, first) = owned(&*store, "lost", &hands).await;
    assert!(!first.follows_lost_owner());
    store.release(&session, first).await.unwrap();
    let second = store.claim(&session).await.unwrap();
    assert!(!second.follows_lost_owner());
    // An owner in the same process failed without a release, because the agent before it may still be ending.
    let third = store.claim(&session).await.unwrap();
    assert!(third.follows_lost_owner());
    store.release(&session, second).await.unwrap();
    assert!(store.claim(&session).await.unwrap().follows_lost_owner(), "the release was stale");
    store.probe().await.unwrap();
});

for_every_store!(a_watcher_is_woken_by_entries_commands_and_the_end(store, hands) {
    let (session, fence) = owned(&*store, "watched", &hands).await;
    store.commit(&session, fence, entries(0..2)).await.unwrap();
    let mut watch = store.watch(&session);
    assert_eq!(watch.borrow_and_update().next, 2);
    store.commit(&session, fence, entries(2..3)).await.unwrap();
    watch.changed().await.unwrap();
    assert_eq!(watch.borrow_and_update().next, 3);
    store.submit(&session, key("k"), json!(1)).await.unwrap();
    watch.changed().await.unwrap();
    assert_eq!(watch.borrow_and_update().commands, 1);
    store.delete(&session).await.unwrap();
    watch.changed().await.unwrap();
    assert!(watch.borrow_and_update().closed);
});

for_every_store!(concurrent_writers_of_many_sessions_lose_nothing(store, hands) {
    let mut tasks = Vec::new();
    for number in 0..20 {
        let (store, hands) = (Arc::clone(&store), hands.clone());
        tasks.push(tokio::spawn(async move {
            let (session, fence) = owned(&*store, &format!("s{number}"), &hands).await;
            for at in 0..50 {
                store.commit(&session, fence, entries(at..at + 1)).await.unwrap();
            }
            let page = store.read(&session, 0, usize::MAX).await.unwrap();
            assert_eq!(numbers(&page.lines), (0..50).collect::<Vec<_>>());
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
});

for_every_store!(of_many_who_submit_a_command_at_once_one_is_the_first(store, hands) {
    let (session, _) = owned(&*store, "race", &hands).await;
    let submit = |_| {
        let (store, session) = (Arc::clone(&store), session.clone());
        tokio::spawn(async move { store.submit(&session, key("k"), json!(1)).await.unwrap().1 })
    };
    let tasks: Vec<_> = (0..32).map(submit).collect();
    let mut new = 0;
    for task in tasks {
        new += usize::from(task.await.unwrap());
    }
    assert_eq!(new, 1);
});
