//! Reading what there is.

use reqwest::Method;

use crate::support::{Answer, Part, entries, parts, serve, serve_with, transcript, written};

#[tokio::test]
async fn a_stream_is_read_from_the_beginning() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..3)).await;
    for query in ["", "?offset=-1", "?offset=00000000000000000000", "?unknown=1"] {
        let answer = server.get(&format!("{}{query}", log.events())).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        let texts: Vec<_> = answer.records().iter().map(|record| record["text"].clone()).collect();
        assert_eq!(texts, ["entry 0", "entry 1", "entry 2"]);
        assert_eq!(answer.next(), 3);
        assert!(answer.is_up_to_date() && !answer.is_closed());
    }
}

#[tokio::test]
async fn stored_lines_are_served_unchanged() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..2)).await;
    let page = server.store.read(&log.id, 0, 1000).await.unwrap();
    let lines = String::from_utf8(page.lines).unwrap();
    let expected = format!("[{}]", lines.trim_end().replace('\n', ","));
    assert_eq!(server.get(&log.events()).await.text(), expected);
}

#[tokio::test]
async fn nothing_after_the_end_is_an_empty_array() {
    let server = serve().await;
    let log = server.session("one").await;
    for (count, query) in
        [(0, "?offset=-1"), (0, "?offset=now"), (2, "?offset=2"), (2, "?offset=now")]
    {
        if count == 2 && query == "?offset=2" {
            log.append(entries(0..2)).await;
        }
        let answer = server.get(&format!("{}{query}", log.events())).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "[]"), "{query}");
        assert_eq!(answer.next(), count);
        assert!(answer.is_up_to_date());
        let text = server.get(&format!("{}{query}&dialect=text", log.events())).await;
        assert_eq!(text.header("content-type"), Some("text/plain"));
        assert_eq!(text.text(), "");
    }
    let now = server.get(&format!("{}?offset=now", log.events())).await;
    assert_eq!(now.header("etag"), None, "the end is somewhere else next time");
}

#[tokio::test]
async fn a_long_stream_is_read_in_parts() {
    let limit = 1000;
    let server = serve_with(|settings| settings.streams.response_bytes = limit).await;
    let entries = transcript("copilot-headless/files");
    let log = server.transcript("long", &entries).await;
    for dialect in written() {
        let expected = parts(&entries, dialect);
        let (mut offset, mut served) = ("-1".to_owned(), Vec::new());
        loop {
            let path = format!("{}?dialect={}&offset={offset}", log.events(), dialect.name);
            let answer = server.get(&path).await;
            offset = answer.header("stream-next-offset").unwrap().to_owned();
            served.push(Part::served(&answer.body, dialect.written));
            let is_end = answer.next() == entries.len() as u64;
            assert_eq!((answer.is_up_to_date(), answer.is_closed()), (is_end, is_end));
            if is_end {
                break;
            }
        }
        assert_eq!(Part::joined(&served), Part::joined(&expected), "{}", dialect.name);
        // A response goes beyond the limit by one entry at most, and the search is bounded too.
        assert!(served.len() > 3, "{}: {}", dialect.name, served.len());
    }
}

#[tokio::test]
async fn a_closed_stream_says_so_only_at_its_end() {
    let server = serve_with(|settings| settings.streams.response_bytes = 300).await;
    let log = server.session("closed").await;
    log.append(entries(0..10)).await;
    let open = server.head(&log.events()).await;
    assert!(!open.is_closed());
    log.close().await;
    let first = server.get(&log.events()).await;
    assert!(!first.is_closed() && !first.is_up_to_date());
    let last = server.get(&format!("{}?offset=9", log.events())).await;
    assert!(last.is_closed() && last.is_up_to_date());
    for query in ["?offset=10", "?offset=now"] {
        let end = server.get(&format!("{}{query}", log.events())).await;
        assert_eq!((end.status.as_u16(), end.text()), (200, "[]"));
        assert!(end.is_closed() && end.is_up_to_date());
    }
}

/// Whoever begins at the end of a closed stream received what its dialect ends with, such as `finish`.
#[tokio::test]
async fn nothing_follows_the_end_of_a_closed_stream_in_any_dialect() {
    let server = serve().await;
    let entries = transcript("claude/plain");
    let log = server.transcript("closed", &entries).await;
    for dialect in written() {
        for live in ["", "&live=long-poll", "&live=sse"] {
            let path = format!("{}?offset=now&dialect={}{live}", log.events(), dialect.name);
            let answer = server.get(&path).await;
            match live {
                "&live=sse" => {
                    let text = answer.text();
                    assert!(!text.contains("event: data"), "{}: {text}", dialect.name);
                    assert!(text.contains(r#""streamClosed":true"#), "{}: {text}", dialect.name);
                }
                "&live=long-poll" => {
                    assert_eq!(answer.status.as_u16(), 204, "{}", dialect.name);
                    assert!(answer.is_closed(), "{}", dialect.name);
                }
                _ => {
                    assert!(matches!(answer.text(), "" | "[]"), "{}", dialect.name);
                    assert!(answer.is_closed(), "{}", dialect.name);
                }
            }
            assert_eq!(answer.status.as_u16() / 100, 2, "{}{live}", dialect.name);
        }
    }
}

#[tokio::test]
async fn the_head_has_the_end_and_the_time_to_live() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..4)).await;
    for (dialect, kind) in [("events", "application/json"), ("text", "text/plain")] {
        let head = server.head(&format!("{}?dialect={dialect}", log.events())).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
        assert_eq!(head.header("content-type"), Some(kind));
        assert_eq!(head.next(), 4);
        assert_eq!(head.header("stream-ttl"), Some("600"));
        assert_eq!(head.header("cache-control"), Some("no-store"));
        assert!(!head.is_closed());
    }
    log.close().await;
    assert!(server.head(&log.events()).await.is_closed());
    let absent = server.head("/v1/sessions/none/events").await;
    assert_eq!(absent.status, 404);
    // The published client parses what has the type of JSON, and repeats the request for ever.
    assert_eq!(absent.header("content-type"), None);
}

#[tokio::test]
async fn a_tag_covers_dialect_range_and_end() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..2)).await;
    let mut tags = std::collections::BTreeSet::new();
    let mut tag = |answer: &Answer| tags.insert(answer.header("etag").unwrap().to_owned());
    let first = server.get(&log.events()).await;
    assert!(tag(&first));
    for query in ["?dialect=text", "?offset=1", "?partial=true", "?turn=1"] {
        assert!(tag(&server.get(&format!("{}{query}", log.events())).await), "{query}");
    }
    let known = |answer: &Answer| answer.header("etag").unwrap().to_owned();
    let conditional = async |tag: &str| {
        let request = server.request(Method::GET, &log.events()).header("if-none-match", tag);
        Answer::of(request.send().await.unwrap()).await
    };
    for tag in
        [known(&first), format!("\"other\", {}", known(&first)), format!("W/{}", known(&first))]
    {
        let unchanged = conditional(&tag).await;
        assert_eq!((unchanged.status.as_u16(), unchanged.body.len()), (304, 0), "{tag}");
        assert_eq!(unchanged.next(), 2);
        assert_eq!(unchanged.header("etag"), first.header("etag"));
    }
    assert_eq!(conditional("\"other\"").await.status, 200);
    log.append(entries(2..3)).await;
    let grown = conditional(&known(&first)).await;
    assert_eq!((grown.status.as_u16(), grown.next()), (200, 3));
    log.close().await;
    let closed = conditional(&known(&grown)).await;
    assert_eq!(closed.status, 200);
    assert!(closed.is_closed());
    assert_ne!(known(&closed), known(&grown));
}

/// An id is used again if a session is created with the same key after it was deleted.
#[tokio::test]
async fn a_tag_is_for_one_session() {
    let server = serve().await;
    let mut tags = Vec::new();
    for _ in 0..2 {
        let log = server.session("again").await;
        log.append(entries(0..2)).await;
        tags.push(server.get(&log.events()).await.header("etag").unwrap().to_owned());
        server.request(Method::DELETE, "/v1/sessions/again").send().await.unwrap();
        server.hands.advance(1);
    }
    assert_ne!(tags[0], tags[1]);
}

#[tokio::test]
async fn only_reading_is_possible() {
    let server = serve().await;
    let log = server.session("one").await;
    for method in [Method::PUT, Method::POST, Method::DELETE, Method::PATCH] {
        let request = server.request(method.clone(), &log.events()).body("x");
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.error(), (405, "method_not_allowed".to_owned()), "{method}");
        let allow = answer.header("allow").unwrap();
        assert!(allow.contains("GET") && allow.contains("HEAD"), "{allow}");
    }
}

#[tokio::test]
async fn reading_keeps_a_session_and_looking_does_not() {
    let server = serve().await;
    let log = server.session("kept").await;
    for _ in 0..3 {
        server.hands.advance(500_000);
        assert_eq!(server.get(&log.events()).await.status, 200);
    }
    server.hands.advance(500_000);
    assert_eq!(server.head(&log.events()).await.status, 200);
    server.hands.advance(100_000);
    assert_eq!(server.head(&log.events()).await.status, 404);
    assert_eq!(server.get(&log.events()).await.error(), (404, "session_not_found".to_owned()));
}
