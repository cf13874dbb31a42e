//! The description of the interface, health and numbers.

use crate::support::{entries, serve};

#[tokio::test]
async fn the_description_lists_every_route() {
    let server = serve().await;
    let description = server.get("/openapi.json").await.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3."));
    let paths = description["paths"].as_object().unwrap();
    let mut routes: Vec<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |it| format!("{it} {path}"))
        })
        .collect();
    routes.sort();
    assert_eq!(
        routes,
        [
            "delete /v1/sessions/{id}",
            "get /healthz",
            "get /metrics",
            "get /readyz",
            "get /v1/sessions",
            "get /v1/sessions/{id}",
            "get /v1/sessions/{id}/events",
            "post /v1/sessions",
            "post /v1/sessions/{id}/commands",
            "post /v1/sessions/{id}/tokens",
            "post /v1/translate",
        ]
    );
    assert_eq!(description["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    // Every reference leads somewhere.
    let text = description.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(description["components"]["schemas"].get(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn numbers_are_counted() {
    let server = serve().await;
    let log = server.session("one").await;
    log.append(entries(0..3)).await;
    server.get(&log.events()).await;
    server.get(&format!("{}?offset=x", log.events())).await;
    server.get("/nothing").await;
    let metrics = server.get("/metrics").await;
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for line in [
        "interlingua_entries_served_total 3",
        "# TYPE interlingua_requests_total counter",
        "interlingua_requests_total{method=\"GET\",route=\"/v1/sessions/{id}/events\",status=\"200\"} 1",
        "interlingua_requests_total{method=\"GET\",route=\"/v1/sessions/{id}/events\",status=\"400\"} 1",
        "interlingua_requests_total{method=\"GET\",route=\"unmatched\",status=\"404\"} 1",
        "interlingua_connections 1",
        "interlingua_readers 0",
        "interlingua_live_agents 3",
        "interlingua_sessions{state=\"idle\"} 1",
        "interlingua_sessions{state=\"working\"} 0",
        "interlingua_waiting_prompts 0",
    ] {
        assert!(metrics.text().lines().any(|found| found == line), "{line}\n{}", metrics.text());
    }
    assert!(!metrics.text().contains("/one/"), "no ids");
}
