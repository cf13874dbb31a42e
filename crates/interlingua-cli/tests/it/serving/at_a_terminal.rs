//! `interlingua sessions --server`: lists, follows, continues and deletes the sessions of a server.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::desk::Desk;
use super::following::{answer_all, answered};
use super::script::said;
use crate::http::TOKEN;
use crate::log::{has, of_kind, outcomes};
use crate::screens::{Tmux, is_installed, timeless};
use crate::support::{Ran, command, ran};

fn sessions(desk: &Desk, arguments: &[&str]) -> Ran {
    let server = format!("http://{}", desk.address.get().unwrap());
    let mut command = command(&[&["sessions", "--server", &server], arguments].concat());
    command.env("INTERLINGUA_TOKEN", TOKEN).stdin(std::process::Stdio::null());
    ran(command.output().unwrap())
}

fn succeeds(desk: &Desk, arguments: &[&str]) -> String {
    let ran = sessions(desk, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

#[test]
fn sessions_of_a_server_are_listed_continued_and_deleted() {
    let desk = Desk::new();
    let id = desk.create("begin here", "k1");
    desk.until(&id, |events| outcomes(events).len() == 1);
    let listed = succeeds(&desk, &["list"]);
    for part in [&*id, "begin here", "idle"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let sent = succeeds(&desk, &["send", &id[..8], "go on", "--to", "text", "--key", "k2"]);
    assert!(sent.contains("go on three.") && !sent.contains("begin here one."), "{sent}");
    // The same command again only reports what became of it.
    assert_eq!(succeeds(&desk, &["send", &id, "go on", "--key", "k2", "--no-wait"]), "");
    assert_eq!(desk.times("go on"), 1);
    let shown = succeeds(&desk, &["show", &id, "--to", "events"]);
    let shown: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown, desk.events(&id));
    let other = sessions(&desk, &["show", "nothing"]);
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("no session \"nothing\""), "{}", other.stderr);
    succeeds(&desk, &["delete", &id]);
    assert_eq!(succeeds(&desk, &["list"]), "");
}

/// A server lists a part of its sessions at once, and the others were left out.
#[test]
fn all_sessions_of_a_server_are_listed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let mut command = command(&["sessions", "--server", &server, "--json"]);
    let listing = command.env("INTERLINGUA_TOKEN", TOKEN).spawn().unwrap();
    let part = |id: &str, next: Value| {
        answered("200 OK", "", &json!({"sessions": [{"id": id}], "next": next}))
    };
    let requests =
        answer_all(&listener, vec![part("one", json!("7-one")), part("two", Value::Null)]);
    let listed = ran(listing.wait_with_output().unwrap());
    assert_eq!((listed.code, &*listed.stdout), (Some(0), "{\"id\":\"one\"}\n{\"id\":\"two\"}\n"));
    assert!(requests[1].contains("after=7-one"), "{requests:?}");
}

#[test]
fn a_session_of_a_server_is_followed_and_answered() {
    let desk = Desk::new();
    let id = desk.create("touch it", "k1");
    let events = desk
        .until(&id, |events| events.iter().any(|event| event["type"] == "permission_requested"));
    let request = events.iter().find(|event| event["type"] == "permission_requested").unwrap();
    let request = request["request"].as_str().unwrap().to_owned();
    let following = std::thread::scope(|scope| {
        let following = scope.spawn(|| succeeds(&desk, &["follow", &id, "--to", "text"]));
        succeeds(&desk, &["send", &id, "--allow", &request]);
        desk.until(&id, |events| outcomes(events).len() == 1);
        let twice = sessions(&desk, &["send", &id, "--deny", &request]);
        assert_eq!(twice.code, Some(2), "{}", twice.stdout);
        // A reader that follows ends when the session is closed.
        succeeds(&desk, &["send", &id, "--close"]);
        following.join().unwrap()
    });
    assert!(following.contains("allowed"), "{following}");
    assert_eq!(desk.session(&id)["state"], "ended");
    let closed = sessions(&desk, &["send", &id, "too late"]);
    assert!(closed.stderr.contains("closed"), "{}", closed.stderr);
}

/// A session is joined in the middle of a turn, which waits for a permission.
#[test]
fn a_real_terminal_shows_a_session_that_is_followed() {
    if !is_installed() {
        return;
    }
    let desk = Desk::new();
    let id = desk.create("hello there", "k1");
    desk.until(&id, |events| outcomes(events).len() == 1);
    desk.prompt(&id, "touch it", "k2");
    let events = desk.until(&id, has("permission_requested"));
    let request = of_kind(&events, "permission_requested")[0]["request"].clone();
    let command = format!(
        "INTERLINGUA_TOKEN={TOKEN} HOME=/nowhere {} sessions --server http://{} follow {id} --to text; \
         echo exit code $?; exec cat",
        env!("CARGO_BIN_EXE_interlingua"),
        desk.address.get().unwrap()
    );
    let tmux = Tmux::start("follow");
    let session = ["new-session", "-d", "-s", "live", "-x", "80", "-y", "40"];
    let started = tmux.run(&[&session[..], &["/bin/sh", "-c", &command]].concat());
    assert!(started.status.success(), "{started:?}");
    let work = desk.path("work").canonicalize().unwrap().display().to_string();
    let rows = |screen: String| {
        let screen = timeless(&screen).replace(&work, "/work");
        // How long a turn took is at its end.
        let row = |row: &str| if row.starts_with('—') { "—\n" } else { row }.to_owned();
        screen.split_inclusive('\n').map(row).collect::<String>()
    };
    let before = "● claude · /work · default\n\n› hello there\n\nhello there one.\n\nhello there two.\n\n\
                  hello there three.\n\n—\n\n› touch it\n\n";
    let waiting = rows(tmux.screen_with("Waiting for you"));
    assert_eq!(waiting, format!("{before}⠋ Waiting for you\n"));
    let allow = json!({"type": "decide", "request": request, "decision": "allow"});
    assert_eq!(desk.command(&id, "allow", allow).status, 202);
    desk.until(&id, |events| outcomes(events).len() == 2);
    desk.command(&id, "close", json!({"type": "close"}));
    let ended = rows(tmux.screen_with("exit code 0"));
    assert_eq!(ended, format!("{before}allowed\n\n—\nexit code 0\n"));
}

#[test]
fn a_wrong_token_or_address_is_reported() {
    let desk = Desk::new();
    let server = format!("http://{}", desk.address.get().unwrap());
    let run = |server: &str, token: &str| {
        let mut command = command(&["sessions", "--server", server]);
        command.env("INTERLINGUA_TOKEN", token);
        ran(command.output().unwrap())
    };
    let wrong = "wrong-token-0123456789";
    for (server, token, problem) in [
        (&*server, wrong, "the token is missing or unknown"),
        (&server, "", "set INTERLINGUA_TOKEN"),
        ("http://127.0.0.1:1", TOKEN, "does not answer"),
        ("ftp://127.0.0.1", TOKEN, "begins with http"),
        ("nonsense", TOKEN, "the address"),
    ] {
        let ran = run(server, token);
        assert_eq!(ran.code, Some(2), "{server}");
        assert!(ran.stderr.contains(problem), "{server}: {}", ran.stderr);
        assert!(!ran.stderr.contains(wrong), "{}", ran.stderr);
    }
}

/// An agent could use the token to decide its own requests.
#[test]
fn an_agent_does_not_receive_the_token() {
    let script = r#"#!/bin/sh
while read -r line; do
  case $line in *'"type":"user"'*) ;; *) continue;; esac
  env > environment
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
  echo '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","uuid":"r"}'
done
"#;
    let mut desk = Desk::with_agent(script, "claude");
    desk.start();
    let id = desk.create("go", "k1");
    desk.until(&id, |events| outcomes(events).len() == 1);
    let environment = std::fs::read_to_string(desk.path("work/environment")).unwrap();
    assert!(environment.contains("HOME="), "{environment}");
    assert!(!environment.contains(TOKEN), "{environment}");
}

/// An agent may know the token all the same, from a file for example.
#[test]
fn the_token_is_redacted_where_an_agent_prints_it() {
    let script = r#"#!/bin/sh
while read -r line; do
  case $line in *'"type":"user"'*) ;; *) continue;; esac
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
  echo '{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"the token is TOKEN."}]},"session_id":"s1","uuid":"u"}'
  echo '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","uuid":"r"}'
done
"#;
    let mut desk = Desk::with_agent(&script.replace("TOKEN", TOKEN), "claude");
    desk.start();
    let id = desk.create("go", "k1");
    let events = desk.until(&id, |events| outcomes(events).len() == 1);
    let printed = Value::Array(events).to_string();
    assert!(printed.contains("the token is [redacted]."), "{printed}");
    desk.stop();
    for file in std::fs::read_dir(desk.folder.path()).unwrap().map(Result::unwrap) {
        let is_store = file.file_name().to_string_lossy().starts_with("sessions.db");
        if is_store && file.file_type().unwrap().is_file() {
            let stored = std::fs::read(file.path()).unwrap();
            let found = stored.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
            assert!(!found, "{}", file.path().display());
        }
    }
}

/// A page in a browser gets a token for one session.
#[test]
fn a_token_for_one_session_survives_a_restart() {
    let mut desk = Desk::new();
    let id = desk.create("hello", "k1");
    let seen = desk.until(&id, |events| outcomes(events).len() == 1);
    let path = format!("/v1/sessions/{id}/tokens");
    let issued = desk.request("POST", &path, None, Some(json!({"expiresIn": 600})));
    assert_eq!(issued.status, 201, "{}", issued.text());
    desk.kill();
    desk.restart(&id, &seen);
    let token = issued.json()["token"].as_str().unwrap().to_owned();
    let server = format!("http://{}", desk.address.get().unwrap());
    let mut command = command(&["sessions", "--server", &server, "show", &id]);
    let shown = ran(command.env("INTERLINGUA_TOKEN", &token).output().unwrap());
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let text = said("hello");
    assert!(shown.stdout.contains(text.split(". ").next().unwrap()), "{}", shown.stdout);
}

/// The log of the server is JSON, and contains neither the token nor a prompt.
#[test]
fn requests_are_logged_without_secrets() {
    let mut desk = Desk::prepared();
    desk.arguments = vec!["--log".to_owned(), "info".to_owned()];
    let log = desk.start_with_log();
    let id = desk.create("my secret plan", "k1");
    desk.until(&id, |events| outcomes(events).len() == 1);
    desk.stop();
    let log: Vec<String> = log.join().unwrap();
    assert!(log.iter().any(|line| line.contains("\"route\":\"/v1/sessions\"")), "{log:?}");
    for line in &log {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
        for secret in [TOKEN, "secret plan"] {
            assert!(!line.contains(secret), "{line}");
        }
    }
}
