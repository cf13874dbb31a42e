//! Who sees what.

use interlingua_server::{Scope, Token, TokenKey};
use interlingua_sessions::SessionId;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{ADMIN, Answer, Running, entries, serve, serve_with};

async fn with_tokens() -> Running {
    serve_with(|settings| {
        settings.tokens = vec![
            Token::new(ADMIN, Scope::Admin),
            Token::new("of-ann", Scope::Owner("ann".to_owned())),
            Token::new("of-bob", Scope::Owner("bob".to_owned())),
            Token::new("of-one", Scope::Session(SessionId::new("one").unwrap())),
        ];
    })
    .await
}

async fn send(server: &Running, token: &str, method: Method, path: &str) -> Answer {
    let request = server.client.request(method, format!("{}{path}", server.url));
    let request = request.bearer_auth(token).header("idempotency-key", "k");
    let request = request.header("content-type", "application/json");
    let body = if path.ends_with("/commands") {
        r#"{"type":"interrupt"}"#
    } else {
        r#"{"agent":"codex"}"#
    };
    Answer::of(request.body(body).send().await.unwrap()).await
}

#[tokio::test]
async fn every_route_needs_a_token_except_health() {
    let server = with_tokens().await;
    server.session("one").await;
    let routes = [
        (Method::GET, "/v1/sessions"),
        (Method::POST, "/v1/sessions"),
        (Method::GET, "/v1/sessions/one"),
        (Method::DELETE, "/v1/sessions/one"),
        (Method::POST, "/v1/sessions/one/commands"),
        (Method::GET, "/v1/sessions/one/events"),
        (Method::PUT, "/v1/sessions/one/events"),
        (Method::POST, "/v1/translate?to=text"),
        (Method::GET, "/openapi.json"),
        (Method::GET, "/metrics"),
        (Method::GET, "/nothing"),
    ];
    for (method, path) in routes {
        for authorization in [
            None,
            Some("Bearer wrong"),
            Some("Bearer "),
            Some("Bearer"),
            Some("Basic YWRtaW4tdG9rZW4="),
            Some(ADMIN),
        ] {
            let mut request =
                server.client.request(method.clone(), format!("{}{path}", server.url));
            if let Some(authorization) = authorization {
                request = request.header("authorization", authorization);
            }
            let answer = Answer::of(request.send().await.unwrap()).await;
            assert_eq!(answer.error(), (401, "unauthorized".to_owned()), "{method} {path}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
    }
    for path in ["/healthz", "/readyz"] {
        let answer = server.client.get(format!("{}{path}", server.url)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert!(server.store.load(&SessionId::new("one").unwrap()).await.unwrap().is_some());
}

#[tokio::test]
async fn sessions_of_others_do_not_exist() {
    let server = with_tokens().await;
    server.session_of("anns", Some("ann")).await.append(entries(0..1)).await;
    server.session_of("no-ones", None).await;
    let routes = [
        (Method::GET, ""),
        (Method::GET, "/events"),
        (Method::GET, "/events?offset=now&live=sse"),
        (Method::POST, "/commands"),
        (Method::DELETE, ""),
    ];
    for (method, path) in &routes {
        for (token, id) in [("of-bob", "anns"), ("of-ann", "no-ones"), ("of-bob", "none")] {
            let answer =
                send(&server, token, method.clone(), &format!("/v1/sessions/{id}{path}")).await;
            assert_eq!(answer.error(), (404, "session_not_found".to_owned()), "{method} {path}");
        }
    }
    assert_eq!(send(&server, "of-ann", Method::GET, "/v1/sessions/anns/events").await.status, 200);
    let listed = async |token| {
        let answer = send(&server, token, Method::GET, "/v1/sessions").await.json();
        let sessions = answer["sessions"].as_array().unwrap().clone();
        sessions
            .iter()
            .map(|session| session["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("of-ann").await, ["anns"]);
    assert!(listed("of-bob").await.is_empty());
    assert_eq!(listed(ADMIN).await.len(), 2);
    // A new session belongs to its creator.
    let created = send(&server, "of-bob", Method::POST, "/v1/sessions").await;
    assert_eq!((created.status.as_u16(), &created.json()["owner"]), (201, &json!("bob")));
    // A session of another owner cannot be continued.
    let body = json!({"agent": "codex", "continueFrom": "anns"});
    let request = server.client.post(format!("{}/v1/sessions", server.url)).bearer_auth("of-bob");
    let request = request.header("content-type", "application/json").body(body.to_string());
    assert_eq!(Answer::of(request.send().await.unwrap()).await.error().0, 404);
}

#[tokio::test]
async fn a_token_of_a_session_reads_and_commands_only_that() {
    let server = with_tokens().await;
    server.session("one").await;
    server.session("two").await;
    for (method, path, status) in [
        (Method::GET, "/v1/sessions/one", 200),
        (Method::GET, "/v1/sessions/one/events", 200),
        (Method::POST, "/v1/sessions/one/commands", 202),
        (Method::GET, "/v1/sessions", 200),
        (Method::GET, "/v1/sessions/two", 404),
        (Method::GET, "/v1/sessions/two/events", 404),
        (Method::POST, "/v1/sessions/two/commands", 404),
        (Method::DELETE, "/v1/sessions/one", 403),
        (Method::POST, "/v1/sessions", 403),
        (Method::POST, "/v1/translate?to=text", 403),
        (Method::GET, "/metrics", 403),
        (Method::GET, "/openapi.json", 200),
    ] {
        assert_eq!(send(&server, "of-one", method, path).await.status, status, "{path}");
    }
    let listed = send(&server, "of-one", Method::GET, "/v1/sessions").await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(send(&server, "of-ann", Method::GET, "/metrics").await.error().1, "admin_only");
}

/// A backend creates a session, and gives the page in a browser a token for it.
#[tokio::test]
async fn a_token_for_one_session_is_issued() {
    let server = serve_with(|settings| {
        settings.token_key = Some(TokenKey::from_secret("secret"));
        settings.tokens.push(Token::new("of-ann", Scope::Owner("ann".to_owned())));
    })
    .await;
    server.session_of("anns", Some("ann")).await;
    server.session("other").await;
    let issue = async |token: &str, id: &str, body: Value| {
        let path = format!("{}/v1/sessions/{id}/tokens", server.url);
        let request = server.client.post(path).bearer_auth(token);
        let request = request.header("content-type", "application/json").body(body.to_string());
        Answer::of(request.send().await.unwrap()).await
    };
    let issued = issue("of-ann", "anns", json!({"expiresIn": 60})).await;
    assert_eq!(issued.status, 201, "{}", issued.text());
    assert_eq!(issued.json()["expiresAt"], server.hands.now() + 60_000);
    let token = issued.json()["token"].as_str().unwrap().to_owned();
    for (method, path, status) in [
        (Method::GET, "/v1/sessions/anns", 200),
        (Method::GET, "/v1/sessions/anns/events", 200),
        (Method::GET, "/v1/sessions/other", 404),
        (Method::DELETE, "/v1/sessions/anns", 403),
    ] {
        assert_eq!(send(&server, &token, method, path).await.status, status, "{path}");
    }
    // It issues no further ones, and neither does someone else.
    assert_eq!(issue(&token, "anns", json!({})).await.status, 403);
    assert_eq!(issue("of-ann", "other", json!({})).await.status, 404);
    for seconds in [json!(0), json!(604_801), json!(-1), json!("x")] {
        assert_eq!(issue(ADMIN, "anns", json!({"expiresIn": seconds})).await.status, 422);
    }
    server.hands.advance(60_000);
    let expired = send(&server, &token, Method::GET, "/v1/sessions/anns").await;
    assert_eq!(expired.error(), (401, "unauthorized".to_owned()));
}

#[tokio::test]
async fn issued_tokens_have_a_rate() {
    let server = serve_with(|settings| {
        settings.token_key = Some(TokenKey::from_secret("secret"));
        settings.limits.requests_per_second = 3;
    })
    .await;
    server.session("one").await;
    let issued = server.post("/v1/sessions/one/tokens", &json!({})).await.json();
    let token = issued["token"].as_str().unwrap().to_owned();
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(send(&server, &token, Method::GET, "/v1/sessions/one").await.status.as_u16());
    }
    assert_eq!(statuses[..3], [200, 200, 200]);
    assert!(statuses[3..].contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn without_a_secret_no_token_is_issued() {
    let server = serve().await;
    server.session("one").await;
    let refused = server.post("/v1/sessions/one/tokens", &json!({})).await;
    assert_eq!(refused.error(), (403, "no_token_key".to_owned()));
}
