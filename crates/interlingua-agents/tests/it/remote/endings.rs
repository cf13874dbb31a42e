//! How runs and turns end whose records arrive late, together, in part, or not at all.

use interlingua_agents::Stop;
use interlingua_agents::remote::{Access, Contract, RemoteSettings};

use super::*;

async fn turn_of(settings: RemoteSettings) -> (Vec<Value>, Vec<InputRequest>) {
    let (session, mut asked) = open(settings).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let mut requests = Vec::new();
    while let Ok(request) = asked.try_recv() {
        requests.push(request);
    }
    (events, requests)
}

fn refused(status: u16) -> Run {
    Run::Refuse { status, headers: Vec::new(), body: String::new() }
}

/// A proxy may hold records back. The session waited for the client for a day, and then repeated the prompt.
#[tokio::test]
async fn a_call_that_has_ended_when_it_arrives_is_not_asked_for() {
    for contract in [Contract::Relay, Contract::Results] {
        let ended = json!({"type": "result", "status": "success"});
        let service = service(vec![vec![Step::Relay, init("s1"), together(&[asked("r1"), ended])]]);
        let (events, requests) = turn_of(settings(&service, contract)).await;
        assert_eq!((requests.len(), service.runs().len()), (0, 1));
        assert_eq!(turn_end(&events)["outcome"], "completed", "{events:?}");
        assert_eq!(of(&events, &["tool_ended"])[0]["status"], "abandoned");
    }
}

/// The turn ended, and the next run asked the client for the call.
#[tokio::test]
async fn a_call_in_a_line_that_does_not_end_is_a_call() {
    let call = asked("r1").to_string();
    let service =
        service(vec![vec![Step::Relay, init("s1"), Step::Text(call)], vec![said("Done.")]]);
    let (session, mut asked) = open(settings(&service, Contract::Results)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = within(asked.recv()).await.unwrap();
    session.handle.answer(call.id(), json!({"fields": []})).await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "Done.".to_owned()), "{events:?}");
    assert_eq!(of(&events, &["turn_ended"]).len(), 1);
}

/// A build takes minutes, and prints nothing. What is tested is that time passes.
#[tokio::test]
async fn a_tool_of_the_agent_may_be_silent() {
    let call = json!({"type": "tool_use", "tool_name": "shell", "tool_id": "t1", "parameters": {}});
    let result = json!({"type": "tool_result", "tool_id": "t1", "status": "success", "output": ""});
    let run = vec![init("s1"), record(call), gate("go"), record(result), said("Built.")];
    let service = service(vec![run]);
    let mut options = options();
    options.deadlines.silence = Some(Duration::from_secs(1));
    let agent = RemoteAgent::new(settings(&service, Contract::Relay));
    let mut session = Watched::open(agent, options).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    session.until(is("tool_started")).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    service.open("go");
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "Built.".to_owned()), "{events:?}");
}

/// An agent that crashes at each result was started again without end, by a client that answers by itself.
#[tokio::test]
async fn an_agent_that_ends_at_each_result_fails_the_turn() {
    let run = |number: usize| {
        let request = format!("r{number}");
        vec![Step::Relay, asks(&request), Step::AwaitResponse(request)]
    };
    let service = service((0..30).map(run).collect());
    let (session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let handle = session.handle.clone();
    let answers = tokio::spawn(async move {
        while let Some(call) = asked.recv().await {
            // The turn may have failed meanwhile.
            let _ = handle.answer(call.id(), json!({"fields": []})).await;
        }
    });
    let (_, events) = session.end().await;
    answers.abort();
    let ended = turn_end(&events);
    assert_eq!(ended["outcome"], "failed");
    assert!(ended["cause"].as_str().unwrap().contains("before its agent used"), "{ended}");
    assert!(service.runs().len() < 12, "{}", service.runs().len());
}

/// A session of a service ends after some minutes of rest. Every later prompt failed.
#[tokio::test]
async fn a_session_that_the_service_has_forgotten_begins_again() {
    let again = Run::Stream(vec![init("s2"), said("Hello.")]);
    let service = FakeService::start(vec![refused(404), again]).unwrap();
    let access = Access { session: Some("s1".to_owned()), ..Access::default() };
    let (events, _) =
        turn_of(RemoteSettings { access, ..settings(&service, Contract::Relay) }).await;
    assert_eq!(text(&events), "Hello.");
    let runs = service.runs();
    assert_eq!(
        (&runs[0].body["session_id"], &runs[1].body["session_id"]),
        (&json!("s1"), &Value::Null)
    );
    let warned = of(&events, &["notice"]);
    assert!(
        warned.iter().any(|it| it["text"].as_str().unwrap().contains("a new one begins")),
        "{warned:?}"
    );
}

/// What the agent has done in the turn cannot be continued elsewhere.
#[tokio::test]
async fn a_turn_does_not_go_on_in_another_session() {
    let first = Run::Stream(vec![Step::Relay, init("s1"), said("I look."), asks("r1")]);
    let service = FakeService::start(vec![first, refused(404)]).unwrap();
    let (session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = within(asked.recv()).await.unwrap();
    session.handle.answer(call.id(), json!({"fields": []})).await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!((turn_end(&events)["outcome"].clone(), service.runs().len()), (json!("failed"), 2));
}

/// A call that fails at once, in a line that does not end, was answered in a run that its own turn then lost.
#[tokio::test]
async fn a_call_at_the_end_that_fails_at_once_goes_on_in_the_next_run() {
    let call = Step::Text(asked("r1").to_string());
    let service = service(vec![vec![init("s1"), call], vec![init("s1"), said("Sorry.")]]);
    let unoffered =
        RemoteSettings { client_tools: Vec::new(), ..settings(&service, Contract::Results) };
    let (events, _) = turn_of(unoffered).await;
    assert_eq!((text(&events), service.runs().len()), ("Sorry.".to_owned(), 2), "{events:?}");
    assert_eq!(of(&events, &["turn_ended"]).len(), 1);
}

/// What hides a session for a moment is no reason to forget it.
#[tokio::test]
async fn a_session_is_kept_while_no_other_one_has_begun() {
    let last = Run::Stream(vec![init("s1"), said("Hello.")]);
    let service = FakeService::start(vec![refused(404), refused(404), last]).unwrap();
    let access = Access { session: Some("s1".to_owned()), ..Access::default() };
    let (session, _asked) =
        open(RemoteSettings { access, ..settings(&service, Contract::Relay) }).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "Hello.", "{events:?}");
    assert_eq!(service.runs()[2].body["session_id"], "s1");
}

/// Each of the calls failed a turn of its own.
#[tokio::test]
async fn calls_that_cannot_be_answered_fail_one_turn() {
    let calls = together(&[asked("r1"), asked("r2")]);
    let service = service(vec![vec![init("s1"), calls, gate("never")]]);
    let unoffered =
        RemoteSettings { client_tools: Vec::new(), ..settings(&service, Contract::Relay) };
    let (events, _) = turn_of(unoffered).await;
    let outcomes: Vec<_> =
        of(&events, &["turn_ended"]).iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["failed"], "{events:?}");
}

/// A service could fill the memory with calls.
#[tokio::test]
async fn only_so_many_calls_wait_at_once() {
    let requests: Vec<_> = (0..70).map(|number| format!("r{number}")).collect();
    let calls: Vec<_> = requests.iter().map(|request| asked(request)).collect();
    let run = vec![
        Step::Relay,
        init("s1"),
        together(&calls),
        Step::AwaitResponse("r69".into()),
        gate("never"),
    ];
    let service = service(vec![run]);
    let (mut session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    let is_refused = |event: &Value| event["type"] == "tool_ended" && event["call"] == "r69";
    let ended = session.until(is_refused).await;
    assert_eq!(ended["status"], "failed");
    let waiting = std::iter::from_fn(|| asked.try_recv().ok()).count();
    assert_eq!(waiting, 64);
    session.handle.stop(Stop::Closed).await.unwrap();
    session.end().await;
}
