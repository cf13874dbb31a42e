//! What another process appends to the file of the store wakes no reader of this server. Each finds it when it looks next.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use interlingua_sessions::{
    Durability, Fence, SessionId, SessionRecord, SqliteStore, State, Store,
};
use reqwest::Method;

use crate::support::{Events, Hands, Log, Running, entries, serve_store};

/// A store of a file, as each process has one.
fn store(path: &Path, hands: &Hands) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open_with_clock(path, Durability::default(), hands.clock()).unwrap())
}

/// A server, and a session that another process runs.
async fn serve(folder: &Path, long_poll: Duration, heartbeat: Duration) -> (Running, Log) {
    let hands = Hands::new();
    let path = folder.join("sessions.db");
    let other = store(&path, &hands);
    let id = SessionId::new("one").unwrap();
    let record = SessionRecord::new(id.clone(), "codex", hands.now());
    other.create(SessionRecord { state: State::Idle, ..record }).await.unwrap();
    let fence: Fence = other.claim(&id).await.unwrap();
    let own = store(&path, &hands);
    let server = serve_store(own, hands, |settings| {
        (settings.streams.long_poll, settings.streams.heartbeat) = (long_poll, heartbeat);
    });
    (server.await, Log { store: other, id, fence })
}

#[tokio::test]
async fn a_reader_of_events_finds_it_with_the_next_heartbeat() {
    let folder = tempfile::tempdir().unwrap();
    let (hour, moment) = (Duration::from_secs(3600), Duration::from_millis(20));
    let (server, log) = serve(folder.path(), hour, moment).await;
    let path = format!("{}?offset=now&live=sse", log.events());
    let mut events = Events::new(server.request(Method::GET, &path).send().await.unwrap());
    assert_eq!(events.next().await.unwrap().json()["upToDate"], true);
    // It has looked, and waits.
    assert_eq!(events.next_block().await.unwrap(), ":");
    log.append(entries(0..2)).await;
    let data = events.next().await.unwrap();
    assert_eq!((&*data.event, data.json().as_array().unwrap().len()), ("data", 2));
}

#[tokio::test]
async fn a_long_poll_finds_it_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (hour, moment) = (Duration::from_secs(3600), Duration::from_secs(2));
    let (server, log) = serve(folder.path(), moment, hour).await;
    let path = format!("{}?offset=now&live=long-poll", log.events());
    let (answer, ()) = tokio::join!(server.get(&path), async {
        while !server.get("/metrics").await.text().contains("interlingua_readers 1") {
            tokio::task::yield_now().await;
        }
        log.append(entries(0..2)).await;
    });
    assert_eq!((answer.status.as_u16(), answer.records().len()), (200, 2));
}
