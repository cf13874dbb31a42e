//! Who may use a store and a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::desk::Desk;
use crate::http::{TOKEN, send_with};
use crate::log::{has, outcomes};
use crate::support::command;

#[test]
fn one_server_uses_a_store_and_needs_a_token() {
    let desk = Desk::new();
    let store = desk.store.display().to_string();
    let second = command(&["serve", "--listen", "127.0.0.1:0", "--store", &store])
        .env("INTERLINGUA_TOKEN", TOKEN)
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let problem = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(problem.contains("in use by another process"), "{problem}");
    let short = command(&["serve", "--listen", "127.0.0.1:0", "--memory"])
        .env("INTERLINGUA_TOKEN", "short")
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&short.stderr).into_owned();
    assert!(problem.contains("at least 16"), "{problem}");
    let public = command(&["serve", "--listen", "0.0.0.0:0", "--memory"])
        .env("INTERLINGUA_TOKEN", TOKEN)
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&public.stderr).into_owned();
    assert!(problem.contains("--public"), "{problem}");
    let body = json!({"agent": "codex"});
    let refused = desk.request("POST", "/v1/sessions", None, Some(body));
    assert_eq!(refused.status, 403, "only the agents that were named are allowed");
}

/// Every run was a 500 behind the creation of its session, or a 403.
#[test]
fn the_agent_api_needs_a_signature_and_an_allowed_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "0123456789abcdef owner anna\n").unwrap();
    let first_line = |arguments: &[&str]| {
        let mut server = command(&["serve", "--listen", "127.0.0.1:0", "--memory"])
            .args(["--agent-api".as_ref(), folder.path().join("sandboxes").as_os_str()])
            .args(["--tokens".as_ref(), file.as_os_str()])
            .args(arguments)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env_remove("INTERLINGUA_TOKEN")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let line = BufReader::new(server.stderr.take().unwrap()).lines().next().unwrap().unwrap();
        let _ = server.kill();
        server.wait().unwrap();
        line
    };
    let problem = first_line(&[]);
    assert!(problem.contains("`admin`") && problem.contains("INTERLINGUA_TOKEN"), "{problem}");
    std::fs::write(&file, "0123456789abcdef owner anna\nfedcba9876543210 admin\n").unwrap();
    let problem = first_line(&["--agent-api-mode", "auto"]);
    assert!(problem.contains("--allow-mode auto"), "{problem}");
    let serves = first_line(&["--agent-api-mode", "auto", "--allow-mode", "auto"]);
    assert!(serves.contains("serving on"), "{serves}");
}

/// Starts a server that has no token; returns everything that it reports until it was stopped.
fn reported_without_a_token(folder: &Path, use_it: impl Fn(&str, &str)) -> (String, String) {
    let mut server = command(&["serve", "--listen", "127.0.0.1:0", "--memory", "--log", "debug"])
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("INTERLINGUA_TOKEN")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut reported = String::new();
    let mut until = |words: &str| loop {
        let line = lines.next().expect("the server ended").unwrap();
        reported += &format!("{line}\n");
        if let Some((_, rest)) = line.split_once(words) {
            return rest.to_owned();
        }
    };
    let token = until("the token of this server, shown once: ");
    let address = until("serving on http://");
    use_it(&token, &address);
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    lines.for_each(|line| reported += &format!("{}\n", line.unwrap()));
    assert!(server.wait().unwrap().success());
    (token, reported)
}

/// A signal that arrived before the first connection ended the process at once.
#[test]
fn a_server_can_be_stopped_as_soon_as_it_serves() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        reported_without_a_token(folder.path(), |_, _| {});
    }
}

#[test]
fn a_server_without_a_token_generates_one_and_shows_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let status = |token: &str, address: &str| {
        send_with(token, address, "GET", "/v1/sessions", None, None).unwrap().status
    };
    let [first, second] = [(), ()].map(|()| {
        let (token, reported) = reported_without_a_token(folder.path(), |token, address| {
            assert_eq!((status(token, address), status(TOKEN, address)), (200, 401));
        });
        assert!(token.len() >= 32, "{token}");
        assert_eq!(reported.matches(&token).count(), 1, "{reported}");
        token
    });
    assert_ne!(first, second, "each server has its own");
}

/// The first line of the answer to a request with these headers, and its headers.
fn head_of_answer(desk: &Desk, headers: &str) -> String {
    let mut connection = TcpStream::connect(desk.address.get().unwrap()).unwrap();
    let request = format!(
        "GET /v1/sessions HTTP/1.1\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n{headers}\r\n"
    );
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().0.to_owned()
}

#[test]
fn a_server_has_the_limits_and_names_that_it_was_given() {
    let mut desk = Desk::prepared();
    let arguments = "--host agents.example --allow-origin https://app.example --live 1 --idle 1";
    desk.arguments = arguments.split(' ').map(str::to_owned).collect();
    desk.start();
    for (host, status) in [("agents.example", "200"), ("localhost", "200"), ("x.example", "421")] {
        let answer = head_of_answer(&desk, &format!("host: {host}\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    let of_page =
        |origin| head_of_answer(&desk, &format!("host: localhost\r\norigin: {origin}\r\n"));
    let own = of_page("https://app.example");
    assert!(own.contains("access-control-allow-origin: https://app.example"), "{own}");
    let foreign = of_page("https://evil.example");
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    // The only agent that may be live works, so another session waits for its place.
    let works = desk.create("wait", "k1");
    desk.until(&works, has("block_delta"));
    let waits = desk.create("hello", "k2");
    assert_eq!(
        (desk.session(&waits)["state"].as_str(), desk.times("hello")),
        (Some("starting"), 0)
    );
    desk.command(&works, "k3", json!({"type": "interrupt"}));
    desk.until(&waits, |events| outcomes(events).len() == 1);
    // An agent that rests for a second is closed.
    desk.until_no_process();
    assert_eq!(desk.session(&waits)["state"], "idle");
}

/// A session that names no mode has that of the configuration, which callers may not request.
#[test]
fn a_mode_of_the_configuration_has_to_be_permitted() {
    let mut desk = Desk::prepared();
    let config = desk.path("config.toml").display().to_string();
    std::fs::write(&config, "[permissions]\nmode = \"auto\"\n").unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--memory", "--config", &config];
    let served = command(&arguments).env("INTERLINGUA_TOKEN", TOKEN).output().unwrap();
    let problem = String::from_utf8_lossy(&served.stderr).into_owned();
    assert_eq!(served.status.code(), Some(2), "{problem}");
    assert!(problem.contains("--allow-mode auto") && problem.contains("config.toml"), "{problem}");
    desk.arguments = ["--config", &config, "--allow-mode", "auto"].map(str::to_owned).to_vec();
    desk.start();
    assert_eq!(desk.request("GET", "/readyz", None, None).status, 200);
}

/// A desk whose server has a file of tokens, and no token in its environment.
fn desk_with_tokens(lines: &str) -> Desk {
    let mut desk = Desk::prepared();
    std::fs::write(desk.path("tokens"), lines).unwrap();
    desk.arguments = vec!["--tokens".to_owned(), desk.path("tokens").display().to_string()];
    desk.environment = vec![("INTERLINGUA_TOKEN", String::new())];
    desk
}

#[test]
fn a_file_of_tokens_names_who_may_see_which_sessions() {
    const ADMIN: &str = "admin-0123456789abcdef";
    const ANNA: &str = "anna-0123456789abcdef";
    const BERT: &str = "bert-0123456789abcdef";
    const ONE: &str = "only-0123456789abcdef";
    let lines = format!("# who\n\n{ADMIN} admin\n{ANNA} owner anna\n  {BERT}  owner bert\n");
    let mut desk = desk_with_tokens(&lines);
    desk.start();
    let address = desk.address.get().unwrap();
    let send = |token: &str, method: &str, path: &str, body: Option<&Value>| {
        let sent = send_with(token, &address, method, path, Some("k"), body);
        sent.and_then(crate::http::Response::complete).unwrap()
    };
    let body = json!({"agent": desk.agent, "prompt": "hello"});
    let created = send(ANNA, "POST", "/v1/sessions", Some(&body));
    assert_eq!(created.status, 201, "{}", created.text());
    let id = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(created.json()["owner"], "anna");
    let path = format!("/v1/sessions/{id}");
    let seen = [ADMIN, ANNA, BERT, TOKEN].map(|token| send(token, "GET", &path, None).status);
    assert_eq!(seen, [200, 200, 404, 401]);
    // The tokens of the next server: one is new, and one is gone.
    drop(send(ADMIN, "POST", &format!("{path}/commands"), Some(&json!({"type": "close"}))));
    desk.stop();
    std::fs::write(desk.path("tokens"), format!("{ADMIN}\n{ONE} session {id}\n")).unwrap();
    desk.start();
    let address = desk.address.get().unwrap();
    let status = |token: &str, method: &str, path: &str| {
        let sent = send_with(token, &address, method, path, None, None);
        sent.and_then(crate::http::Response::complete).unwrap().status
    };
    let events = format!("{path}/events");
    assert_eq!([ADMIN, ONE, ANNA].map(|token| status(token, "GET", &events)), [200, 200, 401]);
    assert_eq!([ADMIN, ONE].map(|token| status(token, "GET", "/metrics")), [200, 403]);
    assert_eq!([ONE, ADMIN].map(|token| status(token, "DELETE", &path)), [403, 204]);
}

#[test]
fn a_wrong_line_in_a_file_of_tokens_is_named_and_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    for (line, problem) in [
        ("secret-0123456789abcdef king", "`admin`, `owner NAME` or `session ID`"),
        ("secret", "at least 16"),
        ("secret-0123456789abcdef session ../x", "id of a session"),
    ] {
        std::fs::write(&tokens, format!("# who\n{line}\n")).unwrap();
        let path = tokens.display().to_string();
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--memory", "--tokens", &path];
        let served = command(&arguments).env_remove("INTERLINGUA_TOKEN").output().unwrap();
        assert_eq!(served.status.code(), Some(2), "{line}");
        let reported = String::from_utf8_lossy(&served.stderr).into_owned();
        assert!(reported.contains("tokens:2") && reported.contains(problem), "{reported}");
        assert!(!reported.contains("secret"), "{reported}");
    }
}
