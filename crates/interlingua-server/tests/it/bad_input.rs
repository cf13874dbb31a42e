//! Requests that are wrong: the documented status, and nothing changes.

use interlingua_sessions::{Filter, SessionId, SessionRecord, State, Waiting};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{ADMIN, Answer, entries, serve, serve_with};

#[tokio::test]
async fn malformed_parameters_are_rejected() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..3)).await;
    for (query, code) in [
        ("offset=", "invalid_offset"),
        ("offset=x", "invalid_offset"),
        ("offset=-2", "invalid_offset"),
        ("offset=1%2C2", "invalid_offset"),
        ("offset=1%202", "invalid_offset"),
        ("offset=1&offset=1", "repeated_parameter"),
        ("offset=4", "offset_beyond_end"),
        ("offset=4&live=long-poll", "offset_beyond_end"),
        ("offset=4&live=sse", "offset_beyond_end"),
        ("offset=18446744073709551615", "offset_beyond_end"),
        ("offset=99999999999999999999", "invalid_offset"),
        ("live=long-poll", "missing_offset"),
        ("live=sse", "missing_offset"),
        ("offset=-1&live=websocket", "invalid_live"),
        ("offset=-1&live=", "invalid_live"),
        ("dialect=klingon", "unknown_dialect"),
        ("dialect=codex", "unknown_dialect"),
        ("dialect=", "unknown_dialect"),
        ("turn=0", "invalid_turn"),
        ("turn=x", "invalid_turn"),
        ("partial=maybe", "invalid_partial"),
    ] {
        let answer = server.get(&format!("{}?{query}", log.events())).await;
        assert_eq!(answer.error(), (400, code.to_owned()), "{query}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test]
async fn sessions_that_are_not_there_are_not_found() {
    let server = serve().await;
    server.session("old").await;
    server.hands.advance(600_000);
    for id in ["none", "old"] {
        for path in [
            format!("/v1/sessions/{id}"),
            format!("/v1/sessions/{id}/events"),
            format!("/v1/sessions/{id}/events?offset=now&live=sse"),
        ] {
            assert_eq!(
                server.get(&path).await.error(),
                (404, "session_not_found".to_owned()),
                "{path}"
            );
        }
        let prompt = json!({"type": "prompt", "text": "x"});
        let path = format!("/v1/sessions/{id}/commands");
        let answer = server.post_with(&path, &prompt, &[("idempotency-key", "k")]).await;
        assert_eq!(answer.error(), (404, "session_not_found".to_owned()));
    }
    for id in ["..%2F..%2Fetc%2Fpasswd", "a%20b", "a%00", &"x".repeat(129)] {
        let answer = server.get(&format!("/v1/sessions/{id}/events")).await;
        assert_eq!(answer.error(), (400, "invalid_id".to_owned()), "{id}");
    }
    // A client that does not resolve `..` itself.
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET /v1/sessions/../events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {ADMIN}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("invalid_id"), "{answer}");
    assert_eq!(server.get("/v1/nothing").await.error(), (404, "no_such_route".to_owned()));
}

#[tokio::test]
async fn malformed_bodies_change_nothing() {
    let server = serve().await;
    server.session("one").await;
    let send = async |path: &str, kind: &str, body: &str| {
        let request = server.request(Method::POST, path).header("content-type", kind);
        let request = request.header("idempotency-key", "k").body(body.to_owned());
        Answer::of(request.send().await.unwrap()).await.error()
    };
    let commands = "/v1/sessions/one/commands";
    for (path, kind, body, status, code) in [
        (commands, "application/json", "{", 400, "malformed_json"),
        (commands, "application/json", "", 400, "malformed_json"),
        (commands, "application/json", "\u{fffd}", 400, "malformed_json"),
        (commands, "text/plain", "{}", 415, "not_json"),
        (commands, "application/json", "[]", 422, "invalid_body"),
        (commands, "application/json", "{}", 422, "invalid_body"),
        (commands, "application/json", r#"{"type":"dance"}"#, 422, "invalid_body"),
        (commands, "application/json", r#"{"type":"prompt"}"#, 422, "invalid_body"),
        (commands, "application/json", r#"{"type":"prompt","text":1}"#, 422, "invalid_body"),
        (commands, "application/json", r#"{"type":"prompt","text":" \n"}"#, 422, "invalid_body"),
        (
            commands,
            "application/json",
            r#"{"type":"prompt","text":"x","whilePending":"panic"}"#,
            422,
            "invalid_body",
        ),
        (
            commands,
            "application/json",
            r#"{"type":"decide","request":"r","decision":"maybe"}"#,
            422,
            "invalid_body",
        ),
        (
            commands,
            "application/json",
            r#"{"type":"decide","request":7,"decision":"allow"}"#,
            422,
            "invalid_body",
        ),
        (commands, "application/json", r#"{"type":"answer","request":"r"}"#, 422, "invalid_body"),
        (
            commands,
            "application/json",
            r#"{"type":"answer","request":"r","answer":1,"decline":"x"}"#,
            422,
            "invalid_body",
        ),
        ("/v1/sessions", "application/json", "{}", 422, "invalid_body"),
        (
            "/v1/sessions",
            "application/json",
            r#"{"agent":"codex","prompt":7}"#,
            422,
            "invalid_body",
        ),
        (
            "/v1/sessions",
            "application/json",
            r#"{"agent":"codex","prompt":" "}"#,
            422,
            "invalid_body",
        ),
        ("/v1/sessions", "application/json", r#"{"agent":"codex","extra":7}"#, 422, "invalid_body"),
        ("/v1/sessions", "application/json", r#"{"agent":"rm"}"#, 403, "agent_not_allowed"),
        (
            "/v1/sessions",
            "application/json",
            r#"{"agent":"codex","permissionMode":"yolo"}"#,
            403,
            "mode_not_allowed",
        ),
        (
            "/v1/sessions",
            "application/json",
            r#"{"agent":"codex","cwd":"/"}"#,
            403,
            "folder_not_allowed",
        ),
        (
            "/v1/sessions",
            "application/json",
            r#"{"agent":"codex","continueFrom":"none"}"#,
            404,
            "session_not_found",
        ),
        (
            "/v1/sessions",
            "application/json",
            r#"{"agent":"codex","continueFrom":"../x"}"#,
            400,
            "invalid_id",
        ),
    ] {
        assert_eq!(send(path, kind, body).await, (status, code.to_owned()), "{body}");
    }
    assert_eq!(server.store.list(&Filter::default()).await.unwrap().len(), 1);
    let id = interlingua_sessions::SessionId::new("one").unwrap();
    assert!(server.store.open_commands(&id).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_folder_cannot_be_left() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = folder.path().join("allowed");
    let inside = allowed.join("project");
    let outside = folder.path().join("outside");
    for folder in [&inside, &outside] {
        std::fs::create_dir_all(folder).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, allowed.join("link")).unwrap();
    std::fs::write(allowed.join("file"), "").unwrap();
    let server = serve_with(|settings| settings.allowed.folders = vec![allowed.clone()]).await;
    let create =
        async |cwd: &str| server.post("/v1/sessions", &json!({"agent": "codex", "cwd": cwd})).await;
    let text = |path: &std::path::Path| path.canonicalize().unwrap().to_str().unwrap().to_owned();
    let created = create(inside.to_str().unwrap()).await;
    assert_eq!((created.status.as_u16(), &created.json()["cwd"]), (201, &json!(text(&inside))));
    let default = server.post("/v1/sessions", &json!({"agent": "codex"})).await;
    assert_eq!(default.json()["cwd"], text(&allowed));
    let path = |name: &str| allowed.join(name).to_str().unwrap().to_owned();
    for (cwd, code) in [
        (path("../outside"), "invalid_folder"),
        (path("project/../../outside"), "invalid_folder"),
        ("project".to_owned(), "invalid_folder"),
        (String::new(), "invalid_folder"),
        (path("link"), "folder_not_allowed"),
        (path("file"), "folder_not_allowed"),
        (path("missing"), "folder_not_allowed"),
        (format!("{}-more", allowed.to_str().unwrap()), "folder_not_allowed"),
        (outside.to_str().unwrap().to_owned(), "folder_not_allowed"),
        (format!("{}\0", path("project")), "folder_not_allowed"),
    ] {
        let (_, found) = create(&cwd).await.error();
        assert!(
            found == code || (found == "folder_not_allowed" && cfg!(not(unix))),
            "{cwd:?}: {found}"
        );
    }
    assert_eq!(server.store.list(&Filter::default()).await.unwrap().len(), 2);
}

/// A session that is continued stays where it was, if that is still allowed.
#[tokio::test]
async fn a_continued_session_stays_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let project = folder.join("project");
    std::fs::create_dir(&project).unwrap();
    let server = serve_with(|settings| settings.allowed.folders = vec![folder.clone()]).await;
    let cwd = project.to_str().unwrap();
    let first = server.post("/v1/sessions", &json!({"agent": "codex", "cwd": cwd})).await.json();
    let next = json!({"agent": "codex", "continueFrom": first["id"]});
    let created = server.post("/v1/sessions", &next).await;
    assert_eq!((created.status.as_u16(), &created.json()["cwd"]), (201, &json!(cwd)));
    std::fs::remove_dir(&project).unwrap();
    let gone = server.post("/v1/sessions", &next).await;
    assert_eq!(gone.error(), (403, "folder_not_allowed".to_owned()));
}

/// The session that is continued may be one of a server with wider lists.
#[tokio::test]
async fn a_continued_session_keeps_its_mode_only_if_it_is_allowed() {
    let server = serve().await;
    for (name, mode, refused) in [("plain", None, false), ("wide", Some("auto"), true)] {
        let id = SessionId::new(name).unwrap();
        let record = SessionRecord::new(id, "codex", server.hands.now());
        let record = SessionRecord { mode: mode.map(str::to_owned), state: State::Ended, ..record };
        server.store.create(record).await.unwrap();
        let next = json!({"agent": "codex", "continueFrom": name});
        let inherited = server.post("/v1/sessions", &next).await;
        match refused {
            true => assert_eq!(inherited.error(), (403, "mode_not_allowed".to_owned())),
            false => assert_eq!(inherited.status, 201),
        }
        let next = json!({"agent": "codex", "continueFrom": name, "permissionMode": "default"});
        assert_eq!(server.post("/v1/sessions", &next).await.status, 201, "another mode is named");
    }
}

#[tokio::test]
async fn metadata_is_bounded() {
    let server = serve().await;
    let create = async |length: usize| {
        let body = json!({"agent": "codex", "metadata": {"text": "x".repeat(length)}});
        server.post("/v1/sessions", &body).await.status.as_u16()
    };
    assert_eq!((create(16_000).await, create(17_000).await), (201, 422));
}

#[tokio::test]
async fn an_answer_counts_once() {
    let server = serve().await;
    let log = server.session("asking").await;
    let waiting = vec![Waiting::Decision { request: "r".to_owned() }];
    log.set(State::Waiting { waiting }).await;
    let path = "/v1/sessions/asking/commands";
    let decide = |decision: &str| json!({"type": "decide", "request": "r", "decision": decision});
    let send = async |key: &str, body: &serde_json::Value| {
        server.post_with(path, body, &[("idempotency-key", key)]).await
    };
    let first = send("a", &decide("allow")).await;
    assert_eq!((first.status.as_u16(), &first.json()["status"]), (202, &json!("delivered")));
    // The same command again is the same acknowledgement; another one comes too late.
    let again = send("a", &decide("allow")).await;
    assert_eq!((again.status.as_u16(), again.json()), (202, first.json()));
    assert_eq!(
        send("a", &decide("deny")).await.error(),
        (422, "idempotency_key_reused".to_owned())
    );
    assert_eq!(send("b", &decide("deny")).await.error(), (409, "command_refused".to_owned()));
    assert_eq!(send("b", &decide("deny")).await.error(), (409, "command_refused".to_owned()));
}
