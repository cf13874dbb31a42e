use super::super::testing::{replies, sent};
use super::*;

fn ready() -> OpencodeDriver {
    let mut driver = OpencodeDriver::new(ServerSession::default());
    connect(&mut driver);
    replies(&mut driver, r#"{"id":1,"status":200,"body":{"id":"ses_1"}}"#);
    driver
}

/// Connects the stream of events, and returns what follows the list of agents.
fn connect(driver: &mut OpencodeDriver) -> Vec<Value> {
    let asked = replies(driver, r#"{"stream":"connected"}"#);
    assert_eq!(asked[0]["path"], "/agent");
    replies(driver, r#"{"id":0,"status":200,"body":[]}"#)
}

fn busy() -> OpencodeDriver {
    let mut driver = ready();
    driver.prompt("go", &mut Vec::new());
    replies(&mut driver, BUSY);
    driver
}

const BUSY: &str =
    r#"{"type":"session.status","properties":{"sessionID":"ses_1","status":{"type":"busy"}}}"#;

fn asked(id: &str) -> String {
    format!(r#"{{"type":"permission.asked","properties":{{"id":"{id}","sessionID":"ses_1"}}}}"#)
}

#[test]
fn a_session_is_created_with_our_rules_and_prompted() {
    let mut driver = OpencodeDriver::new(ServerSession { plan: true, ..ServerSession::default() });
    driver.prompt("go", &mut Vec::new());
    let opened = connect(&mut driver);
    assert_eq!((&opened[0]["method"], &opened[0]["path"]), (&json!("POST"), &json!("/session")));
    assert_eq!(opened[0]["body"]["permission"], session_rules(true));
    let prompted = replies(&mut driver, r#"{"id":1,"status":200,"body":{"id":"ses_1"}}"#);
    assert_eq!(prompted[0]["path"], "/session/ses_1/prompt_async");
    let body = json!({"parts": [{"type": "text", "text": "go"}], "agent": "plan"});
    assert_eq!(prompted[0]["body"], body);
}

#[test]
fn a_resumed_session_gets_our_rules_first_or_is_given_up() {
    let settings = ServerSession { resume: Some("ses_9".to_owned()), ..ServerSession::default() };
    let mut driver = OpencodeDriver::new(settings);
    driver.prompt("go", &mut Vec::new());
    let opened = connect(&mut driver);
    assert_eq!(opened[0]["path"], "/session/ses_9");
    let ruled = replies(&mut driver, r#"{"id":1,"status":200,"body":{"id":"ses_9"}}"#);
    assert_eq!(ruled[0]["method"], "PATCH");
    let mut steps = Vec::new();
    let missing = r#"{"id":2,"status":404,"body":{"data":{"message":"Session not found"}}}"#;
    driver.output(format!("{missing}\n").as_bytes(), &mut steps);
    assert_eq!(steps, [Step::GiveUp("Session not found".to_owned()), Step::Terminate]);
}

/// The session of a sub-agent does not have our rules.
#[test]
fn sub_agents_are_denied_if_one_could_act_without_asking() {
    let loose = r#"{"id":0,"status":200,"body":[{"name":"general","permission":[{"permission":"bash","pattern":"*","action":"allow"}]}]}"#;
    for listed in [loose, r#"{"id":0,"status":500,"body":"?"}"#] {
        let (mut driver, mut steps) = (OpencodeDriver::new(ServerSession::default()), Vec::new());
        replies(&mut driver, r#"{"stream":"connected"}"#);
        driver.output(format!("{listed}\n").as_bytes(), &mut steps);
        assert!(matches!(&steps[..], [Step::Emit(_), Step::Send(_)]), "{steps:?}");
        assert_eq!(sent(&steps)[0]["body"]["permission"], session_rules(false));
    }
}

/// A server ignores a signal while it installs its plugins.
#[test]
fn a_server_is_terminated_until_it_exits() {
    let (mut driver, mut steps) = (ready(), Vec::new());
    driver.turn_ended(&mut steps);
    assert!(steps.is_empty() && driver.wake_after().is_none());
    driver.close(&mut steps);
    assert!(driver.wake_after().is_some());
    driver.woken(&mut steps);
    assert_eq!(steps, [Step::Terminate, Step::Terminate]);
}

#[test]
fn only_events_are_passed_on() {
    let (mut driver, mut steps) = (ready(), Vec::new());
    let chunk = format!("{{\"id\":9,\"status\":200,\"body\":true}}\n{BUSY}\n");
    driver.output(chunk.as_bytes(), &mut steps);
    assert_eq!(steps, [Step::Pass(format!("{BUSY}\n").into_bytes())]);
}

/// The server rejects every other request of the session along with the first.
#[test]
fn a_rejection_waits_for_the_other_requests_of_the_session() {
    let (mut driver, mut steps) = (busy(), Vec::new());
    replies(&mut driver, &asked("per_1"));
    replies(&mut driver, &asked("per_2"));
    driver.decide("per_1", &Decision::Deny("not now".to_owned()), &mut steps);
    assert_eq!(steps, []);
    driver.decide("per_2", &Decision::Allow, &mut steps);
    let sent = sent(&steps);
    assert_eq!(
        (&sent[0]["path"], &sent[0]["body"]),
        (&json!("/permission/per_2/reply"), &json!({"reply": "once"}))
    );
    let rejected = json!({"reply": "reject", "message": "not now"});
    assert_eq!(
        (&sent[1]["path"], &sent[1]["body"]),
        (&json!("/permission/per_1/reply"), &rejected)
    );
}

fn call_snapshot(status: &str) -> String {
    format!(
        r#"{{"type":"message.part.updated","properties":{{"part":{{"type":"tool","callID":"c1","state":{{"status":"{status}"}}}}}}}}"#
    )
}

/// A request for a command does not name the folder in which it runs; the input of its call does.
#[test]
fn a_request_waits_for_the_input_of_its_call() {
    let request = r#"{"type":"permission.asked","properties":{"id":"per_1","sessionID":"ses_1","tool":{"callID":"c1"}}}"#;
    let pass = |line: &str| Step::Pass(format!("{line}\n").into_bytes());
    let (pending, running) = (call_snapshot("pending"), call_snapshot("running"));
    let (mut driver, mut steps) = (busy(), Vec::new());
    driver.output(format!("{pending}\n{request}\n").as_bytes(), &mut steps);
    assert_eq!(std::mem::take(&mut steps), [pass(&pending)]);
    assert!(driver.wake_after().is_some());
    driver.output(format!("{running}\n").as_bytes(), &mut steps);
    assert_eq!(std::mem::take(&mut steps), [pass(&format!("{running}\n{request}"))]);
    assert!(driver.wake_after().is_none());
    // The input is known now.
    driver.output(format!("{request}\n").as_bytes(), &mut steps);
    assert_eq!(steps, [pass(request)]);

    let (mut driver, mut steps) = (busy(), Vec::new());
    driver.output(format!("{request}\n").as_bytes(), &mut steps);
    assert_eq!(steps, []);
    driver.woken(&mut steps);
    assert_eq!(steps, [pass(request)], "it waits for a limited time");
}

#[test]
fn a_question_without_an_answer_is_answered_with_the_reason() {
    let (mut driver, mut steps) = (busy(), Vec::new());
    let asked = r#"{"type":"question.asked","properties":{"id":"que_1","sessionID":"ses_1","questions":[{},{}]}}"#;
    replies(&mut driver, asked);
    driver.answer("que_1", &Answer::Declined("no one is here".to_owned()), &mut steps);
    let body = json!({"answers": [["no one is here"], ["no one is here"]]});
    assert_eq!(sent(&steps)[0]["body"], body);
    driver.answer("que_1", &Answer::Declined("again".to_owned()), &mut steps);
    assert_eq!(steps.len(), 1, "it is answered once");
}

#[test]
fn a_question_is_answered_in_order() {
    let (mut driver, mut steps) = (busy(), Vec::new());
    let asked = r#"{"type":"question.asked","properties":{"id":"que_1","sessionID":"ses_1","questions":[{},{}]}}"#;
    replies(&mut driver, asked);
    let chosen = vec![vec!["Red".to_owned(), "Blue".to_owned()], vec!["other".to_owned()]];
    driver.answer("que_1", &Answer::Chosen(chosen), &mut steps);
    let sent = sent(&steps);
    assert_eq!(sent[0]["path"], "/question/que_1/reply");
    assert_eq!(sent[0]["body"], json!({"answers": [["Red", "Blue"], ["other"]]}));
}

#[test]
fn an_early_interrupt_is_sent_once_the_turn_runs() {
    let (mut driver, mut steps) = (ready(), Vec::new());
    assert!(!driver.interrupt(&mut steps), "there is no turn");
    driver.prompt("go", &mut Vec::new());
    assert!(driver.interrupt(&mut steps) && steps.is_empty());
    assert_eq!(replies(&mut driver, BUSY)[0]["path"], "/session/ses_1/abort");
    assert_eq!(replies(&mut driver, BUSY), [Value::Null; 0]);
}

#[test]
fn an_unknown_model_is_reported_and_not_used() {
    let (mut driver, mut steps) = (ready(), Vec::new());
    driver.set_model("a/b", &mut steps);
    let known = r#"{"id":2,"status":200,"body":{"providers":[{"id":"a","models":{"c":{}}}]}}"#;
    let mut steps = Vec::new();
    driver.output(format!("{known}\n").as_bytes(), &mut steps);
    assert!(matches!(&steps[..], [Step::Emit(_)]), "{steps:?}");
    assert_eq!(driver.settings.model, None);
}

#[test]
fn what_was_missed_is_fetched_and_the_turn_ends() {
    let mut driver = busy();
    let fetched = replies(&mut driver, r#"{"stream":"connected"}"#);
    assert_eq!(fetched[0]["path"], "/session/ses_1/message?limit=1");
    replies(&mut driver, r#"{"id":3,"status":200,"body":[]}"#);
    replies(&mut driver, r#"{"id":4,"status":200,"body":[{"id":"per_7","sessionID":"ses_1"}]}"#);
    assert_eq!(driver.requests.len(), 1);
    replies(&mut driver, r#"{"id":5,"status":200,"body":[]}"#);
    let mut steps = Vec::new();
    driver.output(b"{\"id\":6,\"status\":200,\"body\":{}}\n", &mut steps);
    let idle = "{\"type\":\"session.idle\",\"properties\":{\"sessionID\":\"ses_1\"}}\n";
    assert_eq!(steps, [Step::Pass(idle.as_bytes().to_vec())]);
}
