//! A stream that is limited to one turn.

use interlingua::Entry;
use interlingua::event::Data;
use serde_json::Value;

use crate::support::{Events, serve, transcript};

/// The position after each turn.
fn ends(entries: &[Entry]) -> Vec<u64> {
    let ended = entries.iter().filter(|entry| match &entry.event.data {
        Data::TurnEnded(ended) => !ended.replay,
        _ => false,
    });
    ended.map(|entry| entry.sequence + 1).collect()
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn turns_divide_the_log() {
    let server = serve().await;
    let entries = transcript("codex-app-server/compact");
    let ends = ends(&entries);
    assert_eq!(ends.len(), 2);
    let log = server.session("two").await;
    log.append(entries.clone()).await;
    let whole = server.get(&log.events()).await.records();
    let (mut start, mut read) = (0, Vec::new());
    for (turn, end) in (1..).zip(&ends) {
        let answer = server.get(&format!("{}?turn={turn}", log.events())).await;
        assert_eq!(answer.next(), *end);
        assert!(answer.is_closed() && answer.is_up_to_date());
        assert_eq!(answer.records(), whole[start..*end as usize]);
        read.extend(answer.records());
        // Offsets stay entry numbers.
        let last = server.get(&format!("{}?turn={turn}&offset={}", log.events(), end - 1)).await;
        assert_eq!(last.records(), whole[*end as usize - 1..*end as usize]);
        let head = server.head(&format!("{}?turn={turn}", log.events())).await;
        assert_eq!((head.next(), head.is_closed()), (*end, true));
        start = *end as usize;
    }
    // What follows the last turn belongs to the next one.
    let next = server.get(&format!("{}?turn=3", log.events())).await;
    assert!(!next.is_closed());
    read.extend(next.records());
    assert_eq!(read, whole);
    let later = server.get(&format!("{}?turn=9", log.events())).await;
    assert_eq!(
        (later.text(), later.next(), later.is_closed()),
        ("[]", entries.len() as u64, false)
    );
}

#[tokio::test]
async fn each_turn_is_a_message_of_its_own() {
    let server = serve().await;
    let entries = transcript("codex-app-server/compact");
    let log = server.session("two").await;
    log.append(entries).await;
    for turn in 1..=2 {
        for (dialect, first, last) in
            [("ui-message", "start", "finish"), ("ai-sdk", "stream-start", "finish")]
        {
            let path = format!("{}?turn={turn}&dialect={dialect}", log.events());
            let answer = server.get(&path).await;
            let records = answer.records();
            let kinds = kinds(&records);
            assert_eq!((kinds.first(), kinds.last()), (Some(&first), Some(&last)), "{path}");
            let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
            assert_eq!((count(first), count(last)), (1, 1), "{path}");
        }
    }
}

#[tokio::test]
async fn a_live_reader_of_a_turn_ends_with_it() {
    let server = serve().await;
    let entries = transcript("codex-app-server/compact");
    let ends = ends(&entries);
    let log = server.session("two").await;
    let path = format!("{}?turn=2&offset=-1&live=sse", log.events());
    let response = server.request(reqwest::Method::GET, &path).send().await.unwrap();
    let mut events = Events::new(response);
    assert_eq!(events.next().await.unwrap().json()["upToDate"], true);
    let mut read = Vec::new();
    for entry in &entries {
        log.append(vec![entry.clone()]).await;
    }
    let closed = loop {
        let event = events.next().await.unwrap();
        if event.event == "data" {
            read.extend(event.json().as_array().unwrap().clone());
        } else if event.json()["streamClosed"] == true {
            break event;
        }
    };
    assert_eq!(closed.json()["streamNextOffset"], format!("{:020}", ends[1]));
    assert_eq!(events.next().await, None);
    let whole = server.get(&log.events()).await.records();
    assert_eq!(read, whole[ends[0] as usize..ends[1] as usize]);
}
