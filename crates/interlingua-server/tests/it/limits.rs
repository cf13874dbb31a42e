//! What one client can use.

use std::time::Duration;

use interlingua_server::Settings;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{ADMIN, Answer, Running, entry, serve_with};

/// Sends bytes, and reads until the server closes the connection.
async fn raw(server: &Running, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(path: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN}\r\nconnection: close\r\n{more}"
    )
}

#[tokio::test]
async fn a_large_body_is_rejected_before_it_is_read() {
    let server = serve_with(|settings| settings.limits.body_bytes = 1000).await;
    let announced =
        head("/v1/sessions", "content-type: application/json\r\ncontent-length: 100000000\r\n\r\n");
    let answer = raw(&server, announced.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("body_too_large"), "{answer}");
    // Without a length, it is counted.
    let chunked = head(
        "/v1/sessions",
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    let body = format!("7d0\r\n{}\r\n0\r\n\r\n", " ".repeat(2000));
    let answer = raw(&server, format!("{chunked}{body}").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

/// The answer of a client's tool may be long.
#[tokio::test]
async fn a_command_has_a_limit_of_its_own() {
    let limits = |settings: &mut Settings| {
        (settings.limits.body_bytes, settings.limits.command_bytes) = (1000, 5000);
    };
    let server = serve_with(limits).await;
    server.session("one").await;
    let answer = async |size: usize| {
        let body = json!({"type": "answer", "request": "q", "answer": "x".repeat(size)});
        let key = [("idempotency-key", "k")];
        server.post_with("/v1/sessions/one/commands", &body, &key).await
    };
    assert_ne!(answer(4000).await.status, 413);
    assert_eq!(answer(5000).await.error(), (413, "body_too_large".to_owned()));
}

#[tokio::test]
async fn a_body_of_100_megabytes_is_rejected() {
    let server = serve_with(|_| {}).await;
    let request =
        server.request(Method::POST, "/v1/sessions").header("content-type", "application/json");
    match request.body(vec![b' '; 100_000_000]).send().await {
        Ok(response) => assert_eq!(Answer::of(response).await.error().0, 413),
        // The client may notice that the connection is closed before it reads the answer.
        Err(error) => assert!(error.is_request() || error.is_body(), "{error}"),
    }
}

#[tokio::test]
async fn too_many_or_too_large_headers_are_rejected() {
    let server = serve_with(|_| {}).await;
    let many: String = (0..10_000).map(|number| format!("x-{number}: 1\r\n")).collect();
    let large = format!("x: {}\r\n", "y".repeat(100_000));
    for headers in [many, large] {
        let request = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        let answer = raw(&server, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let fifty: String = (0..50).map(|number| format!("x-{number}: 1\r\n")).collect();
    let request =
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fifty}\r\n");
    assert!(raw(&server, request.as_bytes()).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_slow_request_is_ended() {
    // The time that passes is what is tested.
    let server = serve_with(|settings| {
        settings.limits.header_timeout = Duration::from_millis(50);
        settings.limits.body_timeout = Duration::from_millis(50);
    })
    .await;
    // The connection is closed although the request is never complete.
    raw(&server, b"GET /healthz HTTP/1.1\r\nhost: local").await;
    let slow =
        head("/v1/sessions", "content-type: application/json\r\ncontent-length: 20\r\n\r\n{");
    let answer = raw(&server, slow.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_too_slow"), "{answer}");
}

#[tokio::test]
async fn connections_are_bounded() {
    let server = serve_with(|settings| settings.limits.connections = 2).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        open.push(stream);
    }
    let answer = raw(&server, b"").await;
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("too_many_connections"),
        "{answer}"
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())));
    drop(open);
}

#[tokio::test]
async fn a_token_has_a_number_of_live_readers() {
    let server = serve_with(|settings| settings.limits.readers = 2).await;
    let log = server.session("one").await;
    let path = format!("{}?offset=now&live=sse", log.events());
    let open = async || server.request(Method::GET, &path).send().await.unwrap();
    let (first, _second) = (open().await, open().await);
    for live in ["sse", "long-poll"] {
        let answer = server.get(&format!("{}?offset=now&live={live}", log.events())).await;
        assert_eq!(answer.error(), (429, "too_many_readers".to_owned()), "{live}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    // What there is can be read all the same.
    assert_eq!(server.get(&log.events()).await.status, 200);
    assert_eq!(server.head(&path).await.status, 200);
    drop(first);
    // The server notices that the connection is closed when it next writes to it.
    log.append(vec![entry(0, "news")]).await;
    let again = async {
        while open().await.status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
}

#[tokio::test]
async fn a_token_has_a_rate() {
    let server = serve_with(|settings| settings.limits.requests_per_second = 5).await;
    let mut statuses = Vec::new();
    for _ in 0..40 {
        let answer = server.get("/v1/sessions").await;
        if answer.status == 429 {
            assert_eq!(answer.error().1, "too_many_requests");
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
        statuses.push(answer.status.as_u16());
    }
    assert!(statuses[..5].iter().all(|status| *status == 200));
    assert!(statuses.contains(&429));
    // Health is not counted.
    assert_eq!(
        server.client.get(format!("{}/healthz", server.url)).send().await.unwrap().status(),
        200
    );
}
