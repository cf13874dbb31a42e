//! Clients that take nothing of a response are disconnected; slow ones are not.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{ADMIN, Running, entry, serve_with};

/// Much more than the system keeps for a connection.
const ENTRIES: u64 = 20_000;

const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a request, over a connection for which the system keeps little.
async fn request(server: &Running, line: &str, more: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN}\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// A closed session of 20 MB.
async fn long_session(server: &Running) -> String {
    let (log, text) = (server.session("long").await, "x".repeat(1000));
    for start in (0..ENTRIES).step_by(1000) {
        log.append((start..start + 1000).map(|number| entry(number, &text)).collect()).await;
    }
    log.close().await;
    log.events()
}

/// Waits until a number in the metrics of the server has a value.
async fn until(server: &Running, expected: &str) {
    let reached = async {
        while !server.get("/metrics").await.text().lines().any(|line| line == expected) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{expected}"));
}

/// The numbers of the entries in complete events, and the last offset.
fn received(bytes: &[u8]) -> (Vec<u64>, String) {
    // The chunks of a body begin with their size, on a line of its own.
    let text = String::from_utf8_lossy(bytes);
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let mut whole = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let Some(chunk) = after.get(..size) else { break };
        whole += chunk;
        rest = after.get(size + 2..).unwrap_or_default();
    }
    let (mut numbers, mut offset) = (Vec::new(), String::new());
    for event in whole.split_inclusive("\n\n").filter(|event| event.ends_with("\n\n")) {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        if field("event: ") == Some("data") {
            let records: Vec<Value> = serde_json::from_str(field("data:").unwrap()).unwrap();
            numbers.extend(records.iter().map(|record| record["sequence"].as_u64().unwrap()));
        }
        offset = field("id: ").unwrap_or(&offset).to_owned();
    }
    (numbers, offset)
}

/// What else arrives until the connection ends, in whatever way.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    bytes
}

#[tokio::test]
async fn a_reader_that_stalls_is_disconnected_and_loses_nothing() {
    // The time that passes is what is tested.
    let server =
        serve_with(|settings| settings.limits.stall_timeout = Duration::from_millis(50)).await;
    let events = long_session(&server).await;
    let mut offset = "-1".to_owned();
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let line = format!("GET {events}?offset={offset}&live=sse");
        let mut stream = request(&server, &line, "").await;
        stream.readable().await.unwrap();
        until(&server, "interlingua_readers 0").await;
        let (more, reached) = received(&rest(&mut stream).await);
        numbers.extend(more);
        offset = reached;
    }
    assert!(numbers.len() < 20_000, "it was disconnected");
    // It goes on at its offset, and takes everything now.
    let line = format!("GET {events}?offset={offset}&live=sse");
    let mut stream = request(&server, &line, "connection: close\r\n").await;
    numbers.extend(received(&rest(&mut stream).await).0);
    assert!(numbers.into_iter().eq(0..ENTRIES));
}

#[tokio::test]
async fn a_translation_that_no_one_reads_is_ended() {
    // The time that passes is what is tested.
    let server =
        serve_with(|settings| settings.limits.stall_timeout = Duration::from_millis(50)).await;
    let line = "POST /v1/translate?from=events&to=text";
    let stream = request(&server, line, "transfer-encoding: chunked\r\n").await;
    let (mut reader, mut writer) = stream.into_split();
    let record = serde_json::to_string(&entry(0, &"x".repeat(60_000))).unwrap() + "\n";
    let chunk = format!("{:x}\r\n{record}\r\n", record.len());
    // The server takes nothing any more when it cannot write, and ends the connection then.
    let sending = async { while writer.write_all(chunk.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, sending).await.unwrap();
    let mut bytes = Vec::new();
    let _ = reader.read_to_end(&mut bytes).await;
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "it does not look complete");
}

/// A slow reader takes a hundredth of what the server could send, and is served as long as it takes
/// something.
#[tokio::test]
async fn a_slow_reader_is_not_disconnected() {
    // The time that passes is what is tested.
    let limit = Duration::from_secs(1);
    let server = serve_with(|settings| settings.limits.stall_timeout = limit).await;
    let events = long_session(&server).await;
    let line = format!("GET {events}?offset=-1&live=sse");
    let mut stream = request(&server, &line, "connection: close\r\n").await;
    let (mut bytes, begun) = (Vec::new(), tokio::time::Instant::now());
    while begun.elapsed() < 3 * limit {
        let mut part = vec![0; 10_000];
        stream.read_exact(&mut part).await.unwrap();
        bytes.extend(part);
        tokio::time::sleep(limit / 10).await;
    }
    bytes.extend(rest(&mut stream).await);
    assert!(received(&bytes).0.into_iter().eq(0..ENTRIES));
}
