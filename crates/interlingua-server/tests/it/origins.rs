//! Names of the server, and pages of other origins.

use reqwest::Method;

use crate::support::{Answer, Running, serve_with};

async fn with_names() -> Running {
    serve_with(|settings| {
        settings.hosts = vec!["Agents.example".to_owned()];
        settings.origins = vec!["https://app.example".to_owned()];
    })
    .await
}

async fn get(server: &Running, headers: &[(&str, &str)]) -> Answer {
    let mut request = server.request(Method::GET, "/v1/sessions");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn only_known_names_are_answered() {
    let server = with_names().await;
    for host in [
        "localhost",
        "LOCALHOST:80",
        "127.0.0.1:1",
        "[::1]:8080",
        "agents.example",
        "agents.example:443",
    ] {
        assert_eq!(get(&server, &[("host", host)]).await.status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "169.254.1.1",
        "agents.example.evil",
    ] {
        let answer = get(&server, &[("host", host)]).await;
        assert_eq!(answer.error(), (421, "host_not_allowed".to_owned()), "{host}");
    }
    // Health needs no token, but a name.
    let request =
        server.client.get(format!("{}/healthz", server.url)).header("host", "evil.example");
    assert_eq!(request.send().await.unwrap().status(), 421);
}

#[tokio::test]
async fn pages_of_foreign_origins_are_rejected() {
    let server = with_names().await;
    let own = server.url.clone();
    for origin in [
        "https://evil.example",
        "http://app.example",
        "https://app.example.evil",
        "null",
        "http://localhost:1",
    ] {
        let answer = get(&server, &[("origin", origin)]).await;
        assert_eq!(answer.error(), (403, "origin_not_allowed".to_owned()), "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(get(&server, &[("origin", &own)]).await.status, 200, "a page of this server");
    let answer = get(&server, &[("origin", "https://app.example")]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("stream-next-offset"));
    assert_eq!(answer.header("cross-origin-resource-policy"), Some("cross-origin"));
    assert_eq!(answer.header("vary"), Some("Origin"));
}

#[tokio::test]
async fn a_browser_asks_first() {
    let server = with_names().await;
    let ask = async |origin: &str| {
        let request =
            server.client.request(Method::OPTIONS, format!("{}/v1/sessions/x/events", server.url));
        let request =
            request.header("origin", origin).header("access-control-request-method", "GET");
        let request =
            request.header("access-control-request-headers", "authorization, if-none-match");
        Answer::of(request.send().await.unwrap()).await
    };
    let answer = ask("https://app.example").await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    let allowed = answer.header("access-control-allow-headers").unwrap();
    for name in
        ["authorization", "idempotency-key", "if-none-match", "last-event-id", "content-type"]
    {
        assert!(allowed.contains(name), "{allowed}");
    }
    assert_eq!(ask("https://evil.example").await.status, 403);
}
