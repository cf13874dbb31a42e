//! `interlingua sessions --server … follow` goes on while the server is busy, and after it was restarted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::desk::{Desk, PATIENCE};
use crate::http::TOKEN;
use crate::log::{has, outcomes};
use crate::reader::Address;
use crate::support::{command, ran};

fn follower(address: &str, id: &str, to: &str) -> Child {
    let server = format!("http://{address}");
    let mut command = command(&["sessions", "--server", &server, "follow", id, "--to", to]);
    command.env("INTERLINGUA_TOKEN", TOKEN).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The answer to a request, or none if the connection breaks.
pub(super) fn answered(status: &str, headers: &str, body: &Value) -> Option<String> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

/// Answers one request after the other; returns the first line of each.
pub(super) fn answer_all(listener: &TcpListener, answers: Vec<Option<String>>) -> Vec<String> {
    let answer = |answer: Option<String>| {
        let mut connection = accepted(listener);
        let lines = BufReader::new(connection.try_clone().unwrap()).lines();
        let head: Vec<_> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        if let Some(answer) = answer {
            connection.write_all(answer.as_bytes()).unwrap();
        }
        head[0].clone()
    };
    answers.into_iter().map(answer).collect()
}

/// The next connection. A client that has ended sends none.
fn accepted(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Ok((connection, _)) => {
                connection.set_nonblocking(false).unwrap();
                return connection;
            }
            Err(_) => assert!(begun.elapsed() < PATIENCE, "no request has arrived"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_request_is_sent_again_when_the_server_is_busy_or_away() {
    const ID: &str = "0123456789abcdef0123456789abcdef";
    let entry = |sequence: u64| json!([{"sequence": sequence, "type": "turn_started"}]);
    let busy =
        |status| answered(status, "retry-after: 0\r\n", &json!({"error": {"message": "later"}}));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let following = follower(&listener.local_addr().unwrap().to_string(), ID, "events");
    let requests = answer_all(
        &listener,
        vec![
            answered("200 OK", "", &json!({"id": ID, "idSeed": 7})),
            busy("429 Too Many Requests"),
            busy("429 Too Many Requests"),
            answered("200 OK", "stream-next-offset: 1\r\n", &entry(0)),
            None,
            busy("503 Service Unavailable"),
            answered(
                "200 OK",
                "stream-next-offset: 2\r\nstream-up-to-date: true\r\nstream-closed: true\r\n",
                &entry(1),
            ),
        ],
    );
    let followed = ran(following.wait_with_output().unwrap());
    assert_eq!((followed.code, &*followed.stderr), (Some(0), ""));
    let numbers: Vec<Value> = followed
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["sequence"].clone())
        .collect();
    assert_eq!(numbers, [json!(0), json!(1)]);
    let offset = |line: &String| line.split_once("offset=").map(|(_, rest)| rest[..20].to_owned());
    let offsets: Vec<_> = requests.iter().filter_map(offset).collect();
    let [first, second] = [format!("{:020}", 0), format!("{:020}", 1)];
    let offsets: Vec<_> = offsets.iter().collect();
    assert_eq!(offsets, [&first, &first, &first, &second, &second, &second]);
}

/// Prints hundreds of texts, so slowly that a reader may get each of them alone.
const SLOW_PRINTER: &str = r#"#!/bin/sh
while read -r line; do
  case $line in *'"type":"user"'*) ;; *) continue;; esac
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
  i=0
  while [ $i -lt 600 ]; do
    i=$((i+1))
    echo '{"type":"assistant","message":{"id":"m'$i'","role":"assistant","content":[{"type":"text","text":"piece '$i'."}]},"session_id":"s1","uuid":"u'$i'"}'
    sleep 0.002
  done
  echo '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","uuid":"r"}'
done
"#;

/// More pieces arrive in a second than the server takes requests. The command ended with its refusal.
#[test]
fn a_fast_stream_is_followed_to_its_end() {
    let mut desk = Desk::with_agent(SLOW_PRINTER, "claude");
    desk.start();
    let id = desk.create_with("k1", json!({"agent": desk.agent}));
    let following = follower(&desk.address.get().unwrap(), &id, "text");
    desk.prompt(&id, "print", "k2");
    let followed = ran(until_closed(&desk, &id, following));
    assert_eq!((followed.code, &*followed.stderr), (Some(0), ""));
    for piece in 1..=600 {
        assert!(
            followed.stdout.contains(&format!("piece {piece}.")),
            "{piece}: {}",
            followed.stdout
        );
    }
}

/// Closes the session when the follower has shown its last text, and waits for its end.
fn until_closed(desk: &Desk, id: &str, mut following: Child) -> std::process::Output {
    let mut shown = String::new();
    let mut lines = BufReader::new(following.stdout.take().unwrap());
    while !shown.contains("piece 600.") {
        assert!(lines.read_line(&mut shown).unwrap() > 0, "the follower ended: {shown}");
    }
    // The follower has used up the requests of the token.
    let server = format!("http://{}", desk.address.get().unwrap());
    let mut close = command(&["sessions", "--server", &server, "send", id, "--close"]);
    let closed = ran(close.env("INTERLINGUA_TOKEN", TOKEN).output().unwrap());
    assert_eq!((closed.code, &*closed.stderr), (Some(0), ""));
    lines.read_to_string(&mut shown).unwrap();
    let mut output = following.wait_with_output().unwrap();
    output.stdout = shown.into_bytes();
    output
}

/// Passes connections on to wherever the server listens now.
fn pass_on(listener: &TcpListener, server: &Address) {
    for connection in listener.incoming() {
        let Ok(client) = connection else { return };
        let Some(Ok(server)) = server.get().map(TcpStream::connect) else { continue };
        for (mut from, mut to) in [
            (client.try_clone().unwrap(), server.try_clone().unwrap()),
            (server.try_clone().unwrap(), client.try_clone().unwrap()),
        ] {
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
                let _ = from.shutdown(Shutdown::Both);
            });
        }
    }
}

#[test]
fn a_session_is_followed_across_a_restart_of_the_server() {
    let mut desk = Desk::new();
    let id = desk.create("first", "k1");
    desk.until(&id, has("turn_ended"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = desk.address.clone();
    std::thread::spawn(move || pass_on(&listener, &server));
    let mut following = follower(&address, &id, "text");
    let mut lines = BufReader::new(following.stdout.take().unwrap());
    let mut shown = String::new();
    while !shown.contains("first three.") {
        assert!(lines.read_line(&mut shown).unwrap() > 0, "the follower ended: {shown}");
    }
    desk.kill();
    desk.until_no_process();
    desk.start();
    desk.prompt(&id, "second", "k2");
    desk.until(&id, |events| outcomes(events).len() == 2);
    desk.command(&id, "close", json!({"type": "close"}));
    lines.read_to_string(&mut shown).unwrap();
    let ended = following.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    for text in ["first three.", "second three."] {
        assert_eq!(shown.matches(text).count(), 1, "{shown}");
    }
}
