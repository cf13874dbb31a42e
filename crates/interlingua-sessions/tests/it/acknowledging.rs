//! The number in an acknowledgement can be read from, also if the store is slower than the agent.

use std::sync::Arc;

use interlingua_sessions::host::{Command, HostLimits, Received};
use interlingua_sessions::{Host, MemoryStore, Store};
use tokio::sync::Semaphore;

use crate::support::key;
use crate::talker::{Fixture, Scripts, kinds, texts, within};
use crate::unsteady::Unsteady;

/// What the agent had printed before an interrupt was still on its way to the log: reading from the number was an
/// error, and after a crash another entry had it.
#[tokio::test]
async fn a_command_is_acknowledged_with_an_entry_that_the_log_has_reached() {
    let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(Received::Unknown));
    let unsteady = Arc::new(Unsteady::new(store.clone()));
    let commits = &unsteady.commits;
    let host = Host::open(unsteady.clone(), scripts.clone(), HostLimits::default()).await.unwrap();
    let fixture = Fixture { host, store, scripts };
    let id = fixture.create("flood").await;
    fixture.until(&id, |log| !texts(log).is_empty()).await;
    commits.forget_permits(Semaphore::MAX_PERMITS);
    // All of it is printed, and the owner of the session waits for its store with the first part.
    within(async {
        while !fixture.scripts.path("flooded").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let sending = fixture.host.command(&id, key("stop"), Command::Interrupt);
    let mut sending = std::pin::pin!(sending);
    // It is stored, and waits for the owner.
    within(async {
        while fixture.store.acknowledged(&id, &key("stop")).await.unwrap().is_none() {
            tokio::select! {
                answered = &mut sending => panic!("{answered:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    })
    .await;
    // The store goes on with one commit after the other, and with none behind the acknowledgement.
    let interrupted = within(async {
        loop {
            commits.add_permits(1);
            for _ in 0..100 {
                tokio::select! {
                    answered = &mut sending => return answered.unwrap(),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
    })
    .await;
    let stored = fixture.store.watch(&id).borrow().next;
    let at = interrupted.sequence.unwrap();
    assert!(at <= stored, "entry {at} of {stored}");
    commits.add_permits(Semaphore::MAX_PERMITS / 2);
    let log = fixture.until_turns(&id, 1).await;
    let end = kinds(&log).iter().position(|kind| *kind == "turn_ended").unwrap() as u64;
    assert!(at <= end, "{at}: {:?}", kinds(&log));
}
