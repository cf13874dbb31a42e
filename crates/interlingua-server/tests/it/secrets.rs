//! What is logged: requests, and nothing that may be secret.

use std::cell::RefCell;
use std::fmt::Write;

use interlingua_sessions::State;
use reqwest::Method;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{ADMIN, entry, serve};

thread_local! {
    /// What the thread of a test has logged. Its server runs in the same thread.
    static LOGGED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Collects everything that is logged, by all crates and on all levels. It is that of the process:
/// one of a thread would miss what other tests logged first.
struct Logged;

impl Subscriber for Logged {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        attributes.record(&mut Logged);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Logged);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        // The client of this test runs in the same thread.
        if !event.metadata().target().starts_with("reqwest") {
            event.record(&mut Logged);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Logged {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        LOGGED.with_borrow_mut(|logged| writeln!(logged, "{field}={value:?}").unwrap());
    }
}

#[tokio::test]
async fn nothing_secret_is_logged() {
    tracing::subscriber::set_global_default(Logged).unwrap();
    tracing::callsite::rebuild_interest_cache();
    let server = serve().await;
    let log = server.session("one").await;
    log.append(vec![entry(0, "secret-entry")]).await;
    server.get(&format!("{}?token=secret-query", log.events())).await;
    server.get(&format!("{}?offset=secret-offset", log.events())).await;
    let wrong =
        server.client.get(format!("{}/v1/sessions", server.url)).bearer_auth("secret-wrong");
    assert_eq!(wrong.send().await.unwrap().status(), 401);
    let origin =
        server.request(Method::GET, "/v1/sessions").header("origin", "http://secret-origin");
    assert_eq!(origin.send().await.unwrap().status(), 403);
    let relay = "/agent-api/relay?sessionId=secret-session&token=secret-token";
    assert_eq!(server.get(relay).await.status, 401);
    let respond =
        json!({"type": "relay.respond", "sessionId": "s", "token": "secret-token", "response": {}});
    assert_eq!(server.post("/agent-api/relay", &respond).await.status, 401);
    let keyed = [("idempotency-key", "secret-key")];
    for body in [
        json!({"type": "prompt", "text": "secret-prompt"}),
        json!({"type": "prompt", "text": ["secret-type"]}),
        json!({"type": "answer", "request": "r", "answer": "secret-answer"}),
    ] {
        server.post_with("/v1/sessions/one/commands", &body, &keyed).await;
    }
    let create =
        json!({"agent": "codex", "cwd": "/secret-folder", "metadata": {"a": "secret-metadata"}});
    server.post("/v1/sessions", &create).await;
    log.set(State::Ended).await;
    let logged = LOGGED.take();
    assert!(logged.contains("message=answered") && logged.contains("/v1/sessions/{id}/commands"));
    assert!(!logged.contains("secret-"), "{logged}");
    assert!(!logged.contains(ADMIN), "{logged}");
}
