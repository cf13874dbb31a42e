//! Services that refuse, disappear, or lie.

use interlingua_agents::Error;

use super::*;

fn refuses(status: u16, headers: &[(&str, &str)], body: &str) -> Run {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Run::Refuse { status, headers: headers.collect(), body: body.to_owned() }
}

async fn run_with(script: Vec<Run>) -> (interlingua_agents::Ended, Vec<Value>, FakeService) {
    let service = FakeService::start(script).unwrap();
    let (session, _asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    (ended, events, service)
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_a_failure_to_sign_in() {
    let body = r#"{"ok":false,"errorCode":"UNAUTHORIZED","message":"Unauthorized."}"#;
    let (ended, events, service) = run_with(vec![refuses(401, &[], body)]).await;
    let end = turn_end(&events);
    assert_eq!((&end["outcome"], &end["class"]), (&json!("failed"), &json!("authentication")));
    assert!(end["cause"].as_str().unwrap().contains("Unauthorized."), "{end}");
    assert_eq!((ended.code(), service.runs().len()), (1, 1));
}

/// It has certainly not begun.
#[tokio::test]
async fn a_run_that_was_not_begun_is_requested_again() {
    let goes = Run::Stream(vec![said("Done.")]);
    let script = vec![
        refuses(429, &[("retry-after", "0.01")], "Rate limit exceeded"),
        refuses(503, &[], ""),
        goes,
    ];
    let (ended, events, service) = run_with(script).await;
    assert_eq!((ended.code(), text(&events)), (0, "Done.".to_owned()));
    assert_eq!(of(&events, &["retry"]).len(), 2);
    let keys: std::collections::HashSet<_> = service
        .runs()
        .into_iter()
        .map(|run| run.headers.into_iter().find(|(name, _)| name == "idempotency-key").unwrap().1)
        .collect();
    assert_eq!(keys.len(), 1, "it is one request");
}

/// The agent may have begun to work.
#[tokio::test]
async fn no_run_is_repeated_that_may_have_begun() {
    for failure in [
        refuses(500, &[], "boom"),
        Run::Stream(vec![init("s1"), said("Beg"), Step::Cut]),
        Run::Stream(vec![Step::Cut]),
    ] {
        let (ended, events, service) =
            run_with(vec![failure, Run::Stream(vec![said("Twice.")])]).await;
        assert_eq!((ended.code(), service.runs().len()), (1, 1), "{events:?}");
        assert_eq!(turn_end(&events)["outcome"], "failed");
    }
}

#[tokio::test]
async fn a_failed_run_says_why() {
    let failed = json!({"type": "result", "status": "error", "error": {"type": "quota", "message": "no quota left"}});
    let (ended, events, _) = run_with(vec![Run::Stream(vec![init("s1"), record(failed)])]).await;
    assert_eq!(ended.code(), 1);
    assert_eq!(turn_end(&events)["cause"], "no quota left");
}

/// It could let this program send requests to other hosts.
#[tokio::test]
async fn results_are_sent_to_no_other_place() {
    let relay = json!({"type": "relay.session", "sessionId": "s", "token": "t", "relayUrl": "http://169.254.169.254/relay"});
    let asks = vec![record(relay), asks("r1"), gate("never")];
    let service = service(vec![asks]);
    let (session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = within(asked.recv()).await.unwrap();
    session.handle.answer(call.id(), json!({"fields": []})).await.unwrap();
    let (_, events) = session.end().await;
    let cause = turn_end(&events)["cause"].as_str().unwrap();
    assert!(cause.contains("relay-hosts"), "{cause}");
}

#[tokio::test]
async fn no_secret_is_shown() {
    let leaks = said("your key is key-of-the-service-0123, is it not?");
    let (_, events, _) = run_with(vec![Run::Stream(vec![Step::Relay, init("s1"), leaks])]).await;
    let all = serde_json::to_string(&events).unwrap();
    assert!(!all.contains("key-of-the-service") && !all.contains("relay-token"), "{all}");
    assert!(all.contains("[redacted]"));
}

#[tokio::test]
async fn a_missing_token_names_the_variable() {
    let service = service(Vec::new());
    let mut settings = settings(&service, Contract::Relay);
    settings.connection.missing_key =
        Some("the token of the service is missing: set MY_TOKEN".to_owned());
    let (session, _asked) = open(settings).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert!(turn_end(&events)["cause"].as_str().unwrap().contains("set MY_TOKEN"));
    assert!(service.runs().is_empty());
}

#[tokio::test]
async fn an_address_that_is_none_is_an_error() {
    let service = service(Vec::new());
    let mut settings = settings(&service, Contract::Relay);
    settings.connection.base_url = "ftp://me:pass@host".to_owned();
    let agent: Box<dyn interlingua_agents::Agent> = Box::new(RemoteAgent::new(settings));
    let error = agent.start(options()).await.unwrap_err();
    assert!(
        matches!(error, Error::InvalidConnection { .. }) && !error.to_string().contains("pass"),
        "{error}"
    );
}
