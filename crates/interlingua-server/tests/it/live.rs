//! Waiting for news: long-polls and server-sent events.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::{
    Answer, Events, Part, Running, entries, entry, parts, serve, serve_with, transcript, written,
};

async fn open(server: &Running, path: &str) -> Response {
    server.request(Method::GET, path).send().await.unwrap()
}

/// Waits until a number of readers wait at the server.
async fn readers(server: &Running, count: usize) {
    let expected = format!("interlingua_readers {count}");
    while !server.get("/metrics").await.text().contains(&expected) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_long_poll_wakes_up() {
    let server = serve().await;
    let log = server.session("one").await;
    let path = format!("{}?offset=now&live=long-poll", log.events());
    let (answer, ()) = tokio::join!(server.get(&path), async {
        readers(&server, 1).await;
        log.append(entries(0..2)).await;
    });
    assert_eq!((answer.status.as_u16(), answer.next()), (200, 2));
    assert_eq!(answer.records().len(), 2);
    assert!(answer.is_up_to_date() && !answer.is_closed());
    assert!(answer.header("stream-cursor").unwrap().parse::<u64>().is_ok());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    // What is there already is answered at once.
    let answer = server.get(&format!("{}?offset=-1&live=long-poll", log.events())).await;
    assert_eq!((answer.status.as_u16(), answer.next()), (200, 2));
}

#[tokio::test]
async fn a_long_poll_without_news_times_out() {
    let server = serve_with(|settings| settings.streams.long_poll = Duration::from_millis(1)).await;
    let log = server.session("one").await;
    log.append(entries(0..2)).await;
    let path = format!("{}?offset=2&live=long-poll", log.events());
    let answer = server.get(&path).await;
    assert_eq!((answer.status.as_u16(), answer.next(), answer.body.len()), (204, 2, 0));
    assert!(answer.is_up_to_date() && !answer.is_closed());
    let cursor: u64 = answer.header("stream-cursor").unwrap().parse().unwrap();
    let again = server.get(&format!("{path}&cursor={cursor}")).await;
    assert!(again.header("stream-cursor").unwrap().parse::<u64>().unwrap() > cursor);
}

#[tokio::test]
async fn closing_answers_a_long_poll() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..2)).await;
    let path = format!("{}?offset=2&live=long-poll", log.events());
    let (answer, ()) = tokio::join!(server.get(&path), async {
        readers(&server, 1).await;
        log.close().await;
    });
    assert_eq!((answer.status.as_u16(), answer.next()), (204, 2));
    assert!(answer.is_closed() && answer.is_up_to_date());
    assert_eq!(answer.header("stream-cursor"), None);
    let again = server.get(&path).await;
    assert_eq!(again.status, 204);
    assert!(again.is_closed());
    let rest = server.get(&format!("{}?offset=1&live=long-poll", log.events())).await;
    assert_eq!((rest.status.as_u16(), rest.is_closed()), (200, true));
}

#[tokio::test]
async fn deleting_answers_a_long_poll() {
    let server = serve().await;
    let log = server.session("one").await;
    let path = format!("{}?offset=now&live=long-poll", log.events());
    let (answer, ()) = tokio::join!(server.get(&path), async {
        readers(&server, 1).await;
        let deleted = server.request(Method::DELETE, "/v1/sessions/one").send().await.unwrap();
        assert_eq!(deleted.status(), 204);
    });
    assert_eq!(answer.error(), (404, "session_not_found".to_owned()));
}

/// A stream that only breaks off is asked for again.
#[tokio::test]
async fn deleting_closes_server_sent_events() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..2)).await;
    for dialect in ["events", "ui-message"] {
        let path = format!("{}?offset=-1&live=sse&dialect={dialect}", log.events());
        let mut events = Events::new(open(&server, &path).await);
        while events.next().await.unwrap().event != "control" {}
        let deleted = server.request(Method::DELETE, "/v1/sessions/one").send().await.unwrap();
        assert_eq!(deleted.status(), 204);
        let end = events.next().await.unwrap();
        let offset = format!("{:020}", 2);
        let control = json!({"streamNextOffset": offset, "upToDate": true, "streamClosed": true});
        assert_eq!((&*end.event, &*end.id, end.json()), ("control", &*offset, control));
        assert_eq!(events.next().await, None);
        server.session("one").await.append(entries(0..2)).await;
    }
}

#[tokio::test]
async fn entries_without_records_do_not_end_a_long_poll() {
    let server = serve().await;
    let log = server.session("one").await;
    let entries = transcript("acp/both-directions");
    // A dialect in which an entry without records precedes one with records.
    let (dialect, parts, silent) = written()
        .find_map(|dialect| {
            let parts = parts(&entries, dialect);
            let mut pairs = parts[..entries.len()].windows(2);
            let silent =
                pairs.position(|pair| pair[0].records.is_empty() && !pair[1].records.is_empty());
            silent.map(|silent| (dialect, parts, silent))
        })
        .unwrap();
    log.append(entries[..silent].to_vec()).await;
    let path = format!("{}?offset=now&live=long-poll&dialect={}", log.events(), dialect.name);
    let (answer, ()) = tokio::join!(server.get(&path), async {
        readers(&server, 1).await;
        log.append(entries[silent..=silent].to_vec()).await;
        log.append(entries[silent + 1..silent + 2].to_vec()).await;
    });
    assert_eq!(answer.status, 200);
    assert_eq!(answer.records(), parts[silent + 1].records);
    assert_eq!(answer.next(), silent as u64 + 2);
}

#[tokio::test]
async fn events_are_batches_and_positions() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..2)).await;
    let response = open(&server, &format!("{}?offset=-1&live=sse", log.events())).await;
    let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-cache, no-store");
    assert_eq!(header("x-accel-buffering"), "no");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(response.headers().get("content-length").is_none());
    let mut events = Events::new(response);
    let data = events.next().await.unwrap();
    assert_eq!((&*data.event, &*data.id), ("data", "00000000000000000002"));
    assert_eq!(data.json().as_array().unwrap().len(), 2);
    let control = events.next().await.unwrap();
    assert_eq!((&*control.event, &*control.id), ("control", "00000000000000000002"));
    let fields = control.json();
    assert_eq!(fields["streamNextOffset"], "00000000000000000002");
    assert_eq!(fields["upToDate"], true);
    assert!(fields["streamCursor"].as_str().unwrap().parse::<u64>().is_ok());
    assert_eq!(fields.get("streamClosed"), None);
    // News arrive as they are appended.
    log.append(entries(2..3)).await;
    let data = events.next().await.unwrap();
    assert_eq!(data.json()[0]["text"], "entry 2");
    assert_eq!(events.next().await.unwrap().json()["streamNextOffset"], "00000000000000000003");
    // The end, after which the server closes.
    log.close().await;
    let fields = events.next().await.unwrap().json();
    assert_eq!(fields["streamClosed"], true);
    assert_eq!(fields.get("streamCursor"), None);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn an_empty_stream_begins_with_its_position() {
    let server = serve().await;
    let log = server.session("one").await;
    for offset in ["-1", "now"] {
        let path = format!("{}?offset={offset}&live=sse", log.events());
        let mut events = Events::new(open(&server, &path).await);
        let control = events.next().await.unwrap();
        assert_eq!((&*control.event, &control.json()["upToDate"]), ("control", &Value::Bool(true)));
        assert_eq!(control.json()["streamNextOffset"], "00000000000000000000");
    }
}

#[tokio::test]
async fn the_last_event_id_wins_over_the_offset() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..3)).await;
    log.close().await;
    for mode in ["", "&live=sse"] {
        let path = format!("{}?offset=-1{mode}", log.events());
        let request =
            server.request(Method::GET, &path).header("last-event-id", format!("{:020}", 2));
        let response = request.send().await.unwrap();
        let records = if mode.is_empty() {
            Answer::of(response).await.records()
        } else {
            let events = Events::new(response).all().await;
            events[0].json().as_array().unwrap().clone()
        };
        assert_eq!(records.len(), 1);
        assert_eq!(records[0]["text"], "entry 2");
    }
    let request = server.request(Method::GET, &log.events()).header("last-event-id", "x");
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(answer.error(), (400, "invalid_offset".to_owned()));
}

#[tokio::test]
async fn text_keeps_its_lines() {
    let server = serve().await;
    let log = server.session("one").await;
    let nasty = "a\r\n\r\nevent: control\r\ndata: {\"injected\":true}\n\n b\rc";
    log.append(vec![entry(0, nasty)]).await;
    log.close().await;
    let path = format!("{}?offset=-1&live=sse&dialect=text", log.events());
    let events = Events::new(open(&server, &path).await).all().await;
    let kinds: Vec<_> = events.iter().map(|event| &*event.event).collect();
    assert_eq!(kinds, ["data", "control"]);
    let text = server.get(&format!("{}?dialect=text", log.events())).await;
    let normalised = text.text().replace("\r\n", "\n").replace('\r', "\n");
    assert_eq!(events[0].data, normalised);
}

#[tokio::test]
async fn every_dialect_is_streamed_as_it_is_read() {
    let server = serve().await;
    let entries = transcript("acp/both-directions");
    let log = server.transcript("case", &entries).await;
    for dialect in written() {
        let path = format!("{}?offset=-1&live=sse&dialect={}", log.events(), dialect.name);
        let events = Events::new(open(&server, &path).await).all().await;
        let data = events.iter().filter(|event| event.event == "data");
        let served: Vec<_> =
            data.map(|event| Part::served(event.data.as_bytes(), dialect.written)).collect();
        let whole = Part::joined(&parts(&entries, dialect));
        assert_eq!(Part::joined(&served), whole, "{}", dialect.name);
        assert_eq!(events.last().unwrap().json()["streamClosed"], true);
    }
}

#[tokio::test]
async fn a_connection_ends_after_its_lifetime_and_another_continues() {
    // The time that passes is what is tested.
    let server = serve_with(|settings| {
        settings.streams.sse_lifetime = Duration::from_millis(20);
        settings.streams.heartbeat = Duration::from_millis(1);
    })
    .await;
    let log = server.session("one").await;
    log.append(entries(0..1)).await;
    let mut events =
        Events::new(open(&server, &format!("{}?offset=-1&live=sse", log.events())).await);
    let (mut comments, mut offset) = (0, String::new());
    while let Some(block) = events.next_block().await {
        match block.split_once("\nid: ") {
            Some((_, id)) => offset = id.to_owned(),
            None => comments += usize::from(block == ":"),
        }
    }
    assert!(comments > 0, "heartbeats");
    log.append(entries(1..2)).await;
    let path = format!("{}?offset={offset}&live=sse", log.events());
    let mut events = Events::new(open(&server, &path).await);
    assert_eq!(events.next().await.unwrap().json()[0]["text"], "entry 1");
}

#[tokio::test]
async fn a_slow_reader_loses_nothing_and_slows_no_one_down() {
    let server = serve_with(|settings| settings.streams.event_bytes = 4096).await;
    let log = server.session("fast").await;
    let path = format!("{}?offset=-1&live=sse", log.events());
    let mut slow = Events::new(open(&server, &path).await);
    assert_eq!(slow.next().await.unwrap().event, "control");
    // Much more than the connection can hold. The reader does not read, and the log still grows.
    let text = "x".repeat(1000);
    let count = 20_000;
    for start in (0..count).step_by(1000) {
        log.append((start..start + 1000).map(|number| entry(number, &text)).collect()).await;
    }
    log.close().await;
    let mut expected = 0;
    while let Some(event) = slow.next().await {
        if event.event == "data" {
            for record in event.json().as_array().unwrap() {
                assert_eq!(record["sequence"], expected);
                expected += 1;
            }
        }
    }
    assert_eq!(expected, count);
}

#[tokio::test]
async fn a_server_that_stops_sends_its_readers_away() {
    let server = serve().await;
    let log = server.session("one").await;
    let mut events =
        Events::new(open(&server, &format!("{}?offset=-1&live=sse", log.events())).await);
    assert_eq!(events.next().await.unwrap().event, "control");
    let path = format!("{}?offset=-1&live=long-poll", log.events());
    let polled = tokio::spawn(server.request(Method::GET, &path).send());
    readers(&server, 2).await;
    server.stop().await;
    assert_eq!(events.next().await, None);
    assert_eq!(polled.await.unwrap().unwrap().status(), 204);
}
