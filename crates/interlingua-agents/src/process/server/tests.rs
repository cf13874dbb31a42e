use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::{Command, Process};
use super::*;

const SERVER: Server = Server {
    announcement: "listening on ",
    events: "/event",
    heartbeat: "beat",
    user: "me",
    password_variable: "TEST_PASSWORD",
};

/// What the scripted server does with the next connection to its events.
enum Stream {
    /// Send this, and keep the connection open.
    Keep(&'static str),
    /// Send this, and close the connection.
    Close(&'static str),
    /// Answer with this status.
    Status(u16),
}

/// A server on loopback that answers every other request with its method, path and body.
struct Scripted {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn start(streams: Vec<Stream>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, streams) = (heads.clone(), Arc::new(Mutex::new(VecDeque::from(streams))));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, seen.clone(), streams.clone()));
            }
        });
        Self { port, heads }
    }

    /// Starts a program that announces this server and then waits.
    async fn announced(&self) -> (Process, Spool) {
        let script = format!(
            "echo noise; echo \"password $TEST_PASSWORD\"; \
             echo 'listening on http://127.0.0.1:{}'; exec sleep 600",
            self.port
        );
        start(&script).await
    }
}

async fn start(script: &str) -> (Process, Spool) {
    let command = Command {
        program: "sh".into(),
        arguments: ["-c", script].map(Into::into).to_vec(),
        folder: ".".into(),
        server: Some(SERVER),
        isolation: crate::process::Isolation::None,
        ..Command::default()
    };
    command.start().await.unwrap()
}

async fn serve(
    mut connection: TcpStream,
    heads: Arc<Mutex<Vec<String>>>,
    streams: Arc<Mutex<VecDeque<Stream>>>,
) {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            let mut piece = [0; 1024];
            match connection.read(&mut piece).await {
                Ok(length @ 1..) => received.extend_from_slice(&piece[..length]),
                _ => return,
            }
            continue;
        };
        heads.lock().unwrap().push(head.to_owned());
        if !head.starts_with("GET /event ") {
            let line = head.lines().next().unwrap().replace(" HTTP/1.1", "");
            let answer = format!("{{\"got\":\"{line}\",\n\"body\":{}}}", body.len());
            let length = answer.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            connection.write_all((head + &answer).as_bytes()).await.unwrap();
            received.clear();
            continue;
        }
        let stream = streams.lock().unwrap().pop_front();
        let (status, text, keep) = match stream {
            Some(Stream::Keep(text)) => (200, text, true),
            Some(Stream::Close(text)) => (200, text, false),
            Some(Stream::Status(status)) => (status, "", false),
            None => (200, "", true),
        };
        let head = format!("HTTP/1.1 {status} X\r\nContent-Type: text/event-stream\r\n\r\n");
        connection.write_all((head + text).as_bytes()).await.unwrap();
        if keep {
            std::future::pending::<()>().await;
        }
        return;
    }
}

/// Reads lines until one contains this text.
async fn lines_until(spool: &mut Spool, text: &str) -> Vec<String> {
    let mut all = String::new();
    loop {
        while let Ok(piece @ [_, ..]) = spool.read() {
            all.push_str(&String::from_utf8_lossy(piece));
        }
        if all.ends_with('\n') && all.contains(text) {
            return all.lines().map(str::to_owned).collect();
        }
        spool.grown().await;
    }
}

#[tokio::test]
async fn events_and_responses_are_lines() {
    let events =
        "data: {\"type\":\"a\"}\n\ndata: {\"type\":\"beat\"}\n\ndata: {\"type\":\"b\"}\n\n";
    let server = Scripted::start(vec![Stream::Keep(events)]).await;
    let (mut process, mut spool) = server.announced().await;
    let lines = lines_until(&mut spool, "\"b\"").await;
    assert_eq!(lines[0], "noise");
    assert_eq!(
        lines[2..],
        [r#"{"stream":"connected"}"#, r#"{"type":"a"}"#, r#"{"type":"b"}"#],
        "a heartbeat is no event"
    );
    process.write(b"{\"id\":7,\"method\":\"POST\",\"path\":\"/x\",\"body\":{}}\n".to_vec());
    let lines = lines_until(&mut spool, "\"id\":7").await;
    assert_eq!(lines, [r#"{"id":7,"status":200,"body":{"got":"POST /x", "body":2}}"#]);
    process.signal(super::super::Signal::Kill);
}

#[tokio::test]
async fn the_server_and_its_client_share_a_password() {
    let server = Scripted::start(vec![Stream::Keep("")]).await;
    let (mut process, mut spool) = server.announced().await;
    let lines = lines_until(&mut spool, "connected").await;
    let password = lines[1].strip_prefix("password ").unwrap();
    assert_eq!(password.len(), 64);
    let heads = server.heads.lock().unwrap().concat().to_lowercase();
    assert!(heads.contains("authorization: basic "), "{heads}");
    assert!(!format!("{process:?}").contains(password), "it is never shown");
    process.signal(super::super::Signal::Kill);
}

#[tokio::test]
async fn a_lost_stream_is_reported_and_opened_again() {
    let streams = vec![
        Stream::Close("data: {\"type\":\"a\"}\n\n"),
        Stream::Keep("data: {\"type\":\"b\"}\n\n"),
    ];
    let server = Scripted::start(streams).await;
    let (mut process, mut spool) = server.announced().await;
    let lines = lines_until(&mut spool, "\"b\"").await;
    let connected = r#"{"stream":"connected"}"#;
    let expected =
        [connected, r#"{"type":"a"}"#, r#"{"stream":"lost"}"#, connected, r#"{"type":"b"}"#];
    assert_eq!(lines[2..], expected);
    process.signal(super::super::Signal::Kill);
}

#[tokio::test]
async fn a_server_that_refuses_is_reported() {
    let server = Scripted::start(vec![Stream::Status(401)]).await;
    let (mut process, mut spool) = server.announced().await;
    let lines = lines_until(&mut spool, "failed").await;
    let error = "the server answered with status 401";
    assert_eq!(lines[2], format!(r#"{{"stream":"failed","error":"{error}"}}"#));
    process.signal(super::super::Signal::Kill);
}

#[tokio::test]
async fn only_loopback_is_connected_to() {
    let script = "echo 'listening on http://192.0.2.1:80'; exec sleep 600";
    let (mut process, mut spool) = start(script).await;
    let lines = lines_until(&mut spool, "failed").await;
    assert!(lines[0].contains("not on loopback"), "{lines:?}");
    process.signal(super::super::Signal::Kill);
}

/// On a full disk, a server would work on, and its events would be lost.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_line_that_cannot_be_written_is_noticed() {
    let stdout = Spool::new().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut printed = stdout.writer().unwrap();
    let (mut bridge, _requests) =
        Bridge::start(SERVER, Password::new().unwrap(), stdout, full).unwrap();
    std::io::Write::write_all(&mut printed, b"noise\n").unwrap();
    bridge.failed().await;
}

#[tokio::test]
async fn what_a_server_prints_before_it_exits_is_not_lost() {
    let (mut process, mut spool) = start("echo 'no such flag'; printf usage; exit 3").await;
    assert_eq!(process.ended().await.unwrap().code(), Some(3));
    process.sweep().await;
    let printed = String::from_utf8_lossy(spool.read().unwrap()).into_owned();
    assert_eq!(printed, "no such flag\nusage\n");
}

#[test]
fn an_address_is_plain_http_on_loopback() {
    let base = |text: &str| loopback_address(text);
    assert_eq!(base("http://127.0.0.1:4096").as_deref(), Some("http://127.0.0.1:4096"));
    assert_eq!(base("http://[::1]:4096/").as_deref(), Some("http://[::1]:4096"));
    for other in
        ["http://127.0.0.1.evil.example/", "http://u@127.0.0.1/", "https://127.0.0.1/", "x"]
    {
        assert_eq!(base(other), None, "{other}");
    }
}
