//! Who may use a store and a server.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::desk::Desk;
use crate::http::{TOKEN, send_with};
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
