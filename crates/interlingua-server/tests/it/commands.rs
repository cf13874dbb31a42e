//! Sessions and commands, as a client uses them.

use interlingua_sessions::{Durability, SessionId, SessionRecord, SqliteStore, State, Store};
use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Hands, serve, serve_store, serve_with};

#[tokio::test]
async fn a_session_is_created_used_closed_and_deleted() {
    let server = serve().await;
    let body = json!({
        "agent": "codex", "prompt": "hello", "model": "m", "permissionMode": "default",
        "metadata": {"team": "a"},
    });
    let created = server.post_with("/v1/sessions", &body, &[("idempotency-key", "c1")]).await;
    assert_eq!(created.status, 201);
    let session = created.json();
    let id = session["id"].as_str().unwrap();
    let address = format!("/v1/sessions/{id}");
    assert_eq!(created.header("location"), Some(&*address));
    assert_eq!(session["events"], format!("{address}/events"));
    assert_eq!(session["metadata"], json!({"team": "a"}));
    assert_eq!((&session["model"], &session["permissionMode"]), (&json!("m"), &json!("default")));
    assert_eq!((&session["state"], &session["ttl"]), (&json!("idle"), &json!(604_800)));
    assert_eq!(server.get(&address).await.json(), session);
    // The same key creates nothing more.
    let again = server.post_with("/v1/sessions", &body, &[("idempotency-key", "c1")]).await;
    assert_eq!(again.json()["id"], session["id"]);
    assert_eq!(
        server.get("/v1/sessions?limit=5").await.json()["sessions"].as_array().unwrap().len(),
        1
    );

    let commands = format!("{address}/commands");
    let prompt = json!({"type": "prompt", "text": "more", "whilePending": "reject"});
    let sent = server.post_with(&commands, &prompt, &[("idempotency-key", "p1")]).await;
    assert_eq!(sent.status, 202);
    assert_eq!(sent.json(), json!({"key": "p1", "status": "accepted"}));
    let close = json!({"type": "close"});
    let closed = server.post_with(&commands, &close, &[("idempotency-key", "x")]).await;
    assert_eq!((closed.status.as_u16(), &closed.json()["status"]), (202, &json!("delivered")));
    assert_eq!(server.get(&address).await.json()["state"], "ended");
    assert!(server.head(&format!("{address}/events")).await.is_closed());
    let late = server.post_with(&commands, &prompt, &[("idempotency-key", "p2")]).await;
    assert_eq!(late.error(), (409, "session_closed".to_owned()));
    // What was acknowledged is still acknowledged.
    let again = server.post_with(&commands, &close, &[("idempotency-key", "x")]).await;
    assert_eq!(again.json(), closed.json());

    for status in [204, 404] {
        let deleted = server.request(Method::DELETE, &address).send().await.unwrap();
        assert_eq!(deleted.status(), status);
    }
}

/// Two stores of one file play two processes.
#[tokio::test]
async fn a_session_that_another_process_runs_is_in_use() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let open =
        || SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (runs, serves) = (open(), open());
    let server = serve_store(std::sync::Arc::new(serves), hands.clone(), |_| {}).await;
    let id = SessionId::new("run").unwrap();
    runs.create(SessionRecord::new(id.clone(), "codex", hands.now())).await.unwrap();
    let fence = runs.claim(&id).await.unwrap();
    let prompt = json!({"type": "prompt", "text": "x"});
    let send = async || {
        let key = [("idempotency-key", "k")];
        server.post_with("/v1/sessions/run/commands", &prompt, &key).await
    };
    let in_use = (409, "session_in_use".to_owned());
    assert_eq!(send().await.error(), in_use);
    let deleted = server.request(Method::DELETE, "/v1/sessions/run").send().await.unwrap();
    assert_eq!(Answer::of(deleted).await.error(), in_use);
    assert_eq!(server.store.open_commands(&id).await, Ok(vec![]));
    runs.release(&id, fence).await.unwrap();
    assert_eq!(send().await.status, 202);
}

/// Sessions of `run`, or of a server with wider lists, are in the same store.
#[tokio::test]
async fn a_prompt_needs_a_session_that_this_server_permits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (allowed, outside) = (folder.join("allowed"), folder.join("outside"));
    for folder in [&allowed, &outside] {
        std::fs::create_dir(folder).unwrap();
    }
    let server = serve_with(|settings| settings.allowed.folders = vec![allowed.clone()]).await;
    let text = |path: &std::path::Path| Some(path.to_str().unwrap().to_owned());
    let mode = |mode: &str| Some(mode.to_owned());
    for (number, (agent, folder, mode, refused)) in [
        ("codex", text(&allowed), mode("default"), None),
        ("codex", None, mode("default"), Some("folder_unknown")),
        ("codex", text(&allowed), None, None),
        ("rm", text(&allowed), None, Some("agent_not_allowed")),
        ("codex", text(&outside), None, Some("folder_not_allowed")),
        ("codex", mode("relative"), None, Some("folder_not_allowed")),
        ("codex", text(&allowed), mode("auto"), Some("mode_not_allowed")),
    ]
    .into_iter()
    .enumerate()
    {
        let id = SessionId::new(format!("s{number}")).unwrap();
        let record = SessionRecord::new(id.clone(), agent, server.hands.now());
        let record = SessionRecord { folder, mode, state: State::Idle, ..record };
        server.store.create(record).await.unwrap();
        let path = format!("/v1/sessions/{id}/commands");
        let prompt = json!({"type": "prompt", "text": "x"});
        let sent = server.post_with(&path, &prompt, &[("idempotency-key", "p")]).await;
        match refused {
            None => assert_eq!(sent.status, 202, "{id}"),
            Some(code) => assert_eq!(sent.error(), (403, code.to_owned()), "{id}"),
        }
        let stored = server.store.open_commands(&id).await.unwrap();
        assert_eq!(stored.is_empty(), refused.is_some(), "{id}");
        // What starts no agent is not refused.
        let close = json!({"type": "close"});
        let closed = server.post_with(&path, &close, &[("idempotency-key", "c")]).await;
        assert_eq!(closed.status, 202, "{id}");
    }
}

#[tokio::test]
async fn a_command_needs_a_key() {
    let server = serve().await;
    server.session("one").await;
    let path = "/v1/sessions/one/commands";
    let body = json!({"type": "interrupt"});
    let answer = server.post(path, &body).await;
    assert_eq!(answer.error(), (400, "missing_idempotency_key".to_owned()));
    for key in ["", "a b", &"k".repeat(256)] {
        let answer = server.post_with(path, &body, &[("idempotency-key", key)]).await;
        assert_eq!(answer.error(), (400, "invalid_idempotency_key".to_owned()), "{key:?}");
    }
}

#[tokio::test]
async fn a_waiting_session_states_for_what() {
    let server = serve().await;
    let log = server.session("one").await;
    let waiting = vec![interlingua_sessions::Waiting::Answer { request: "q".to_owned() }];
    log.set(interlingua_sessions::State::Waiting { waiting }).await;
    let session = server.get("/v1/sessions/one").await.json();
    assert_eq!(session["state"], "waiting");
    assert_eq!(session["waiting"], json!([{"for": "answer", "request": "q"}]));
}

#[tokio::test]
async fn a_list_is_bounded() {
    let server = serve().await;
    for number in 0..5 {
        server.session(&format!("s{number}")).await;
    }
    let count = |answer: &Answer| answer.json()["sessions"].as_array().unwrap().len();
    assert_eq!(count(&server.get("/v1/sessions").await), 5);
    assert_eq!(count(&server.get("/v1/sessions?limit=2").await), 2);
    // The rest is read part by part.
    let (mut path, mut ids) = ("/v1/sessions?limit=2".to_owned(), Vec::new());
    for _ in 0..5 {
        let list = server.get(&path).await.json();
        let sessions = list["sessions"].as_array().unwrap();
        ids.extend(sessions.iter().map(|session| session["id"].as_str().unwrap().to_owned()));
        let Some(next) = list["next"].as_str() else { break };
        path = format!("/v1/sessions?limit=2&after={next}");
    }
    assert_eq!(ids, ["s0", "s1", "s2", "s3", "s4"]);
    for after in ["", "x", "1", "1-", "-s1", "1-..", "99999999999999999999-s1"] {
        let answer = server.get(&format!("/v1/sessions?after={after}")).await;
        assert_eq!(answer.error(), (400, "invalid_place".to_owned()), "{after}");
    }
    for limit in ["0", "1001", "x", "-1", ""] {
        let answer = server.get(&format!("/v1/sessions?limit={limit}")).await;
        assert_eq!(answer.error(), (400, "invalid_limit".to_owned()), "{limit}");
    }
}
