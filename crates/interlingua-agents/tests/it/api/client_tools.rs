//! Tools that the client runs, called by a model directly.

use std::time::Duration;

use fake_model::{Cut, GeminiForm, Reply, Script};
use interlingua_agents::api::{ApiAgent, ApiKind};
use interlingua_agents::permission::{Always, Decision, Mode};
use interlingua_agents::{ClientTool, InputRequest, Options, Refused, Wanted};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::golden::laws;
use super::resume::history;
use super::{APIS, Bench, of_kind, only, text};
use crate::support::{Watched, options};

pub(super) type Asked = mpsc::UnboundedReceiver<InputRequest>;

/// A bench with the tools for a form, and what their client is asked.
pub(super) fn with_form(mut bench: Bench) -> (Bench, Asked) {
    let (user, asked) = mpsc::unbounded_channel();
    bench.user = Some(user);
    bench.settings.client_tools = ClientTool::form();
    // No call of the client needs a permission, whatever the mode.
    bench.policy.mode = Mode::Deny;
    (bench, asked)
}

fn bench(api: ApiKind, replies: impl IntoIterator<Item = Reply>) -> (Bench, Asked) {
    with_form(Bench::new(api, replies))
}

pub(super) fn snapshot(instruction: &str) -> Reply {
    Reply::new().then_reasoning("Hm.").then_call("getFormSnapshot", input(instruction))
}

pub(super) fn input(instruction: &str) -> Value {
    json!({"instruction": instruction})
}

async fn prompted(bench: &Bench) -> Watched {
    let session = bench.open().await;
    session.handle.prompt("fill in the form").await.unwrap();
    session.handle.finish().await.unwrap();
    session
}

/// Waits for a request. A session does not go on unless its entries are taken.
pub(super) async fn request(session: &mut Watched, asked: &mut Asked) -> InputRequest {
    loop {
        tokio::select! {
            biased;
            asked = asked.recv() => return asked.unwrap(),
            goes_on = session.more() => assert!(goes_on, "the session has ended: {:?}", session.events),
        }
    }
}

pub(super) async fn next(session: &mut Watched, asked: &mut Asked) -> (String, u64) {
    let asked = request(session, asked).await;
    assert!(matches!(&asked.wanted, Wanted::Call(call) if call.tool == "getFormSnapshot"));
    (asked.id().to_owned(), asked.sequence)
}

/// The history of the last request, as text.
pub(super) fn last_history(bench: &Bench) -> String {
    let requests = bench.model.main_requests();
    json!(history(&requests.last().unwrap().body)).to_string()
}

#[tokio::test]
async fn a_call_waits_for_the_client() {
    for api in APIS {
        let (bench, mut asked) = bench(api, [snapshot("all"), Reply::text("Done.")]);
        let mut session = prompted(&bench).await;
        let (call, sequence) = next(&mut session, &mut asked).await;
        let suspended = session.until(|event| event["type"] == "suspended").await;
        assert_eq!(
            (&suspended["calls"], &suspended["sequence"]),
            (&json!([call]), &json!(sequence))
        );
        let answer = json!({"fields": [{"label": "E-mail"}]});
        session.handle.answer(&call, answer.clone()).await.unwrap();
        let again = session.handle.answer(&call, json!("late")).await;
        assert!(matches!(again, Err(Refused::UnknownRequest { .. })), "{again:?}");
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Done.");
        let started = only(&events, "tool_started");
        let (name, executor) = (&started["name"], &started["executor"]);
        assert_eq!((name, executor), (&json!("getFormSnapshot"), &json!("client")), "{api:?}");
        assert_eq!(only(&events, "tool_input")["input"], input("all"), "{api:?}");
        let end = only(&events, "tool_ended");
        assert_eq!((&end["status"], &end["structured"]), (&json!("completed"), &answer), "{api:?}");
        assert_eq!(of_kind(&events, "permission_requested").len(), 0, "{api:?}");
        let offered = bench.model.main_requests()[0].body.to_string();
        assert!(offered.contains("executeFormActions") && offered.contains("fieldId"), "{api:?}");
        assert!(last_history(&bench).contains("E-mail"), "{api:?}");
        laws::check_events("client-tool", &events);
        bench.check("client-tool");
    }
}

#[tokio::test]
async fn a_refusal_and_a_failure_are_errors_that_the_model_sees() {
    for api in APIS {
        for (status, words) in [("denied", "not this form"), ("failed", "there is no form")] {
            let (bench, mut asked) = bench(api, [snapshot("all"), Reply::text("Done.")]);
            let mut session = prompted(&bench).await;
            let (call, _) = next(&mut session, &mut asked).await;
            let allowed = session.handle.decide(&call, Decision::Allow).await;
            assert!(matches!(allowed, Err(Refused::WrongAnswer { .. })), "{allowed:?}");
            let always = session.handle.allow_always(&call, Always::Same).await;
            assert!(matches!(always, Err(Refused::WrongAnswer { .. })), "{always:?}");
            match status {
                "denied" => session.handle.decide(&call, Decision::Deny(words.to_owned())).await,
                _ => session.handle.decline(&call, words).await,
            }
            .unwrap();
            let (ended, events) = session.end().await;
            assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
            let end = only(&events, "tool_ended");
            assert_eq!((&end["status"], &end["error"]), (&json!(status), &json!(words)), "{api:?}");
            assert!(last_history(&bench).contains(words), "{api:?}");
            laws::check_events("client-tool-refused", &events);
            bench.check("client-tool-refused");
        }
    }
}

/// Calls of the client are with it at once, and none waits for the tools of ours.
#[tokio::test]
async fn parallel_calls_are_with_the_client_at_once() {
    for api in APIS {
        let write = json!({"file_path": "out.txt", "content": "x"});
        let three = snapshot("one").then_call("Write", write);
        let three = three.then_call("getFormSnapshot", input("two"));
        let (mut bench, mut asked) = bench(api, [three, Reply::text("Done.")]);
        bench.policy.mode = Mode::Auto;
        let mut session = prompted(&bench).await;
        let (one, two) =
            (next(&mut session, &mut asked).await.0, next(&mut session, &mut asked).await.0);
        // The turn waits for nothing but the client.
        let suspended = session.until(|event| event["type"] == "suspended").await;
        assert_eq!(suspended["calls"], json!([one, two]), "{api:?}");
        assert_eq!(std::fs::read_to_string(bench.path("out.txt")).unwrap(), "x");
        session.handle.answer(&two, json!("result of two")).await.unwrap();
        session.handle.answer(&one, json!("result of one")).await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        for (call, result) in [(one, "result of one"), (two, "result of two")] {
            let ends = of_kind(&events, "tool_ended");
            let end = ends.iter().find(|end| end["call"] == *call).unwrap();
            assert_eq!(end["output"], result, "{api:?}");
        }
        let sent = last_history(&bench);
        // The results are in the order of the calls.
        let [first, second] = ["result of one", "result of two"].map(|it| sent.find(it).unwrap());
        assert!(first < second, "{api:?}: {sent}");
        laws::check_events("client-tools-in-parallel", &events);
        bench.check("client-tools-in-parallel");
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_calls_and_the_session_goes_on() {
    for api in APIS {
        let both = snapshot("one").then_call("getFormSnapshot", input("two"));
        let (bench, mut asked) = bench(api, [both, Reply::text("Later.")]);
        let mut session = bench.open().await;
        session.handle.prompt("fill in the form").await.unwrap();
        let (one, two) =
            (next(&mut session, &mut asked).await.0, next(&mut session, &mut asked).await.0);
        let calls = [one, two];
        session.handle.answer(&calls[0], json!("the fields")).await.unwrap();
        session.handle.interrupt().await.unwrap();
        session.until(|event| event["type"] == "turn_ended").await;
        let late = session.handle.answer(&calls[1], json!("late")).await;
        assert!(matches!(late, Err(Refused::UnknownRequest { .. })), "{late:?}");
        session.handle.prompt("and now?").await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, events) = session.end().await;
        let ends = of_kind(&events, "turn_ended");
        assert_eq!(
            (&ends[0]["outcome"], &ends[1]["outcome"]),
            (&json!("cancelled"), &json!("completed"))
        );
        let statuses: Vec<_> =
            of_kind(&events, "tool_ended").iter().map(|end| end["status"].clone()).collect();
        assert_eq!(statuses, ["completed", "cancelled"], "{api:?}");
        let sent = last_history(&bench);
        assert!(sent.contains("the fields") && sent.contains("interrupted"), "{api:?}: {sent}");
        laws::check_events("client-tool-interrupted", &events);
        bench.check("client-tool-interrupted");
    }
}

#[tokio::test]
async fn a_closed_session_does_not_wait() {
    for api in APIS {
        let (bench, mut asked) = bench(api, [snapshot("one")]);
        let mut session = prompted(&bench).await;
        let request = request(&mut session, &mut asked).await;
        session.handle.close().await.unwrap();
        let (_, events) = session.end().await;
        assert!(!request.is_pending(), "{api:?}");
        assert_eq!(only(&events, "tool_ended")["status"], "cancelled", "{api:?}");
        assert_eq!(only(&events, "turn_ended")["outcome"], "cancelled", "{api:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_fails_the_calls() {
    for api in APIS {
        let (mut bench, mut asked) =
            bench(api, [snapshot("one"), snapshot("two"), Reply::text("Done.")]);
        let mut session = prompted(&bench).await;
        next(&mut session, &mut asked).await;
        bench.user = None;
        drop(asked);
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let ends = of_kind(&events, "tool_ended");
        let failed = |end: &&Value| {
            end["status"] == "failed" && end["error"].to_string().contains("no client is connected")
        };
        assert!(ends.len() == 2 && ends.iter().all(failed), "{api:?}: {ends:#?}");
        bench.check("client-tool-alone");
    }
}

pub(super) async fn start(bench: &Bench, options: Options) -> Watched {
    let (policy, input_requests) = (bench.policy.clone(), bench.user.clone());
    let options = Options { policy, input_requests, ..options };
    Watched::open(ApiAgent::new(bench.settings.clone()), options).await
}

async fn open(bench: &Bench, change: impl FnOnce(&mut Options)) -> Watched {
    let mut options = options();
    change(&mut options);
    let session = start(bench, options).await;
    session.handle.prompt("fill in the form").await.unwrap();
    session.handle.finish().await.unwrap();
    session
}

/// The limit is one of its own: a person may take longer than for a permission.
#[tokio::test]
async fn a_call_has_a_limit_of_its_own() {
    let replies = [snapshot("one"), snapshot("two"), Reply::text("Done.")];
    let (bench, mut asked) = bench(ApiKind::Chat, replies);
    let limits = |options: &mut Options| {
        options.deadlines.answer = Duration::from_millis(1);
        options.deadlines.client_tool = Duration::from_secs(2);
    };
    let mut session = open(&bench, limits).await;
    let (call, _) = next(&mut session, &mut asked).await;
    // The time that passes is what is tested.
    tokio::time::sleep(Duration::from_millis(100)).await;
    session.handle.answer(&call, json!("fields")).await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    let ends = of_kind(&events, "tool_ended");
    assert_eq!(ends[0]["status"], "completed", "{ends:#?}");
    assert_eq!(ends[1]["status"], "failed", "{ends:#?}");
    assert_eq!(ends[1]["error"], "the user has not answered in time");
}

#[tokio::test]
async fn the_number_of_open_calls_is_bounded() {
    let api = ApiKind::Anthropic;
    let many = (1..66).fold(Reply::new(), |reply, number| {
        reply.then_call("getFormSnapshot", input(&format!("number {number}")))
    });
    let (bench, mut asked) = bench(api, [many, Reply::text("Done.")]);
    let mut session = prompted(&bench).await;
    let refused = session.until(|event| event["type"] == "tool_ended").await;
    assert!(refused["error"].to_string().contains("64 calls wait"), "{refused}");
    for _ in 0..64 {
        let (call, _) = next(&mut session, &mut asked).await;
        session.handle.answer(&call, json!("fields")).await.unwrap();
    }
    assert!(asked.try_recv().is_err());
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    bench.check("client-tools-many");
}

/// The client's tool `Read` is not ours.
#[tokio::test]
async fn a_tool_with_the_name_of_one_of_ours_is_kept_apart() {
    for api in APIS {
        let both = Reply::call("client_Read", json!({"page": 1}));
        let both = both.then_call("Read", json!({"file_path": "note.txt"}));
        let (mut bench, mut asked) = bench(api, [both, Reply::text("Done.")]);
        bench.write("note.txt", "plum");
        bench.policy.mode = Mode::Auto;
        bench.settings.client_tools =
            vec![serde_json::from_value(json!({"name": "Read"})).unwrap()];
        let mut session = prompted(&bench).await;
        let request = request(&mut session, &mut asked).await;
        let Wanted::Call(call) = &request.wanted else { panic!("{request:?}") };
        assert_eq!((&*call.tool, &*call.input), ("Read", "{\"page\":1}"));
        session.handle.answer(&call.id, json!("the page")).await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let started = of_kind(&events, "tool_started");
        let shown: Vec<_> =
            started.iter().map(|it| (&it["name"], it["executor"] == "client")).collect();
        assert_eq!(shown, [(&json!("Read"), true), (&json!("Read"), false)], "{api:?}");
        let sent = last_history(&bench);
        assert!(sent.contains("the page") && sent.contains("plum"), "{api:?}: {sent}");
        bench.check("client-tool-renamed");
    }
}

/// A call of a renamed tool that is generated again keeps its id, under the client's name.
#[tokio::test]
async fn a_call_that_is_generated_again_keeps_its_id() {
    for api in APIS {
        let call = || Reply::text("I read.").then_call("client_Read", json!({"page": 1}));
        let cut = call().cut(Cut::BeforeLastEvent);
        let (mut bench, mut asked) = bench(api, [cut, call(), Reply::text("Done.")]);
        bench.settings.client_tools =
            vec![serde_json::from_value(json!({"name": "Read"})).unwrap()];
        let mut session = prompted(&bench).await;
        let request = request(&mut session, &mut asked).await;
        session.handle.answer(request.id(), json!("the page")).await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(only(&events, "tool_started")["call"], request.id(), "{api:?}");
        assert_eq!(only(&events, "tool_ended")["status"], "completed", "{api:?}");
        bench.check("client-tool-again");
    }
}

/// Gemini gives calls no ids; they are made up.
#[tokio::test]
async fn calls_without_ids_are_answered() {
    let form = || GeminiForm { without_call_ids: true, ..GeminiForm::default() };
    let both = Reply::call("getFormSnapshot", input("one"));
    let both = both.then_call("getFormSnapshot", input("two")).gemini(form());
    let (bench, mut asked) = bench(ApiKind::Gemini, [both, Reply::text("Done.")]);
    let mut session = prompted(&bench).await;
    for answer in ["first", "second"] {
        let (call, _) = next(&mut session, &mut asked).await;
        session.handle.answer(&call, json!(answer)).await.unwrap();
    }
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    let sent = last_history(&bench);
    assert!(sent.find("first").unwrap() < sent.find("second").unwrap(), "{sent}");
    bench.check("client-tool-without-id");
}

/// The model gets both ends, and can read the rest; the log has the answer as the client gave it.
#[tokio::test]
async fn a_long_result_is_in_a_file() {
    for api in APIS {
        let (mut bench, mut asked) = bench(api, [snapshot("all"), Reply::text("Done.")]);
        bench.policy.mode = Mode::Auto;
        let mut session = bench.open().await;
        session.handle.prompt("fill in the form").await.unwrap();
        let (call, _) = next(&mut session, &mut asked).await;
        let long = format!("begin {} end", "é".repeat(2_500_000));
        session.handle.answer(&call, json!(long)).await.unwrap();
        session.until(|event| event["type"] == "turn_ended").await;
        let end = only(&session.events, "tool_ended").clone();
        assert!(end["output"] == *long, "{api:?}");
        let sent = last_history(&bench);
        assert!(
            sent.len() < 50_000 && sent.contains("begin é") && sent.contains("é end"),
            "{api:?}"
        );
        let (_, rest) = sent.split_once("the whole result is in ").unwrap();
        let path = rest.split_once(" …]").unwrap().0;
        assert!(std::fs::read_to_string(path).unwrap() == long, "{api:?}: {path}");
        session.handle.finish().await.unwrap();
        session.end().await;
        bench.check("client-tool-long");
    }
}

/// Two tools of one name would be ambiguous.
#[tokio::test]
async fn tools_that_cannot_be_called_are_refused() {
    use interlingua_agents::Agent;
    let (mut bench, _asked) = with_form(Bench::with_script(ApiKind::Chat, Script::new()));
    bench.settings.client_tools.extend(ClientTool::form());
    let agent = Box::new(ApiAgent::new(bench.settings.clone()));
    let refused = agent.start(options()).await.unwrap_err().to_string();
    assert!(refused.contains("two tools `getFormSnapshot`"), "{refused}");
}
