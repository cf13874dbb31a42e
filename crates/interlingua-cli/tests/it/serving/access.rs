//! Who may use a store and a server.

use serde_json::json;

use super::desk::Desk;
use crate::http::TOKEN;
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
