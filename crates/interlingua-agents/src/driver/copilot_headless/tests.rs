//! Records in, records out.

use interlingua::event::Data;

use super::super::testing::sent;
use super::*;

fn framed(record: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{record}", record.len()).into_bytes()
}

fn replies(driver: &mut CopilotHeadlessDriver, record: &Value) -> Vec<Value> {
    let mut steps = Vec::new();
    driver.output(&framed(&record.to_string()), &mut steps);
    sent(&steps)
}

fn event(kind: &str, data: Value) -> Value {
    let event = json!({"type": kind, "data": data});
    json!({"jsonrpc": "2.0", "method": "session.event", "params": {"sessionId": "s", "event": event}})
}

fn response(id: u64, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn steps(act: impl FnOnce(&mut Vec<Step>)) -> Vec<Value> {
    let mut steps = Vec::new();
    act(&mut steps);
    sent(&steps)
}

/// A driver whose session is open.
fn open(session: HeadlessSession) -> CopilotHeadlessDriver {
    let mut driver = CopilotHeadlessDriver::new(session);
    assert_eq!(steps(|steps| driver.start(steps))[0]["method"], "ping");
    let opening = replies(&mut driver, &response(0, json!({"protocolVersion": 3})));
    assert_eq!(opening[0]["id"], 1);
    replies(&mut driver, &response(1, json!({"sessionId": "s"})));
    driver
}

/// A driver whose turn is running.
fn in_turn() -> CopilotHeadlessDriver {
    let mut driver = open(HeadlessSession::default());
    let prompt = steps(|steps| driver.prompt("do it", steps));
    assert_eq!(prompt[0]["params"], json!({"sessionId": "s", "prompt": "do it"}));
    replies(&mut driver, &event("user.message", json!({"content": "do it"})));
    driver
}

#[test]
fn a_prompt_waits_until_the_session_is_open() {
    let provider =
        Provider::from_environment(|name| name.ends_with("_URL").then(|| "http://x".to_owned()));
    let model = Some("m".to_owned());
    let session =
        HeadlessSession { folder: "/w".to_owned(), model, provider, ..Default::default() };
    let mut driver = CopilotHeadlessDriver::new(session);
    steps(|steps| driver.start(steps));
    assert!(steps(|steps| driver.prompt("do it", steps)).is_empty());
    let opening = replies(&mut driver, &response(0, json!({"protocolVersion": 3})));
    assert_eq!(opening[0]["method"], "session.create");
    let params = &opening[0]["params"];
    assert_eq!((&params["model"], &params["workingDirectory"]), (&json!("m"), &json!("/w")));
    assert_eq!(params["provider"], json!({"baseUrl": "http://x"}));
    assert_eq!(params["requestPermission"], true);
    assert_eq!(params["enableFileHooks"], false);
    assert_eq!(params["enableConfigDiscovery"], false);
    let prompt = replies(&mut driver, &response(1, json!({"sessionId": "s"})));
    assert_eq!(prompt[0]["method"], "session.send");
}

#[test]
fn the_key_of_a_provider_is_in_the_record_alone() {
    let variables = |name: &str| match name {
        "COPILOT_PROVIDER_BASE_URL" => Some("http://u:sk-0@x".to_owned()),
        "COPILOT_PROVIDER_API_KEY" => Some("sk-1".to_owned()),
        _ => None,
    };
    let provider = Provider::from_environment(variables);
    for resume in [None, Some("old".to_owned())] {
        let provider = provider.clone();
        let session = HeadlessSession { provider, resume, ..Default::default() };
        let (mut driver, mut opening) = (CopilotHeadlessDriver::new(session), Vec::new());
        steps(|steps| driver.start(steps));
        driver.output(&framed(&response(0, json!({})).to_string()), &mut opening);
        let [Step::SendSecret { record, redacted }] = &*opening else { panic!("{opening:?}") };
        assert!(record.contains("sk-1") && !redacted.contains("sk-"), "{redacted}");
        let mut expected: Value = serde_json::from_str(record).unwrap();
        expected["params"]["provider"] = json!("[secret]");
        assert_eq!(serde_json::from_str::<Value>(redacted).unwrap(), expected);
        assert!(!format!("{driver:?}{opening:?}").contains("sk-"));
    }
}

/// A hook in `.github/hooks` of a repository allowed a command, and Copilot did not ask.
#[test]
fn hooks_of_the_repository_are_off() {
    let mut driver = CopilotHeadlessDriver::new(HeadlessSession::default());
    steps(|steps| driver.start(steps));
    let opening = replies(&mut driver, &response(0, json!({})));
    assert_eq!(opening[0]["params"]["enableFileHooks"], false);
}

#[test]
fn a_session_is_resumed_or_the_run_is_given_up() {
    let resume = Some("old".to_owned());
    let mut driver = CopilotHeadlessDriver::new(HeadlessSession { resume, ..Default::default() });
    steps(|steps| driver.start(steps));
    let opening = replies(&mut driver, &response(0, json!({})));
    assert_eq!(opening[0]["method"], "session.resume");
    assert_eq!(opening[0]["params"]["sessionId"], "old");
    let mut given_up = Vec::new();
    let refused =
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "not found"}});
    driver.output(&framed(&refused.to_string()), &mut given_up);
    let reason = "the session old cannot be resumed: not found".to_owned();
    assert_eq!(given_up, [Step::GiveUp(reason)]);
}

#[test]
fn a_decision_is_sent_with_its_reason() {
    let mut driver = in_turn();
    let allowed = steps(|steps| driver.decide("p", &Decision::Allow, steps));
    let expected = json!({"sessionId": "s", "requestId": "p", "result": {"kind": "approve-once"}});
    assert_eq!(allowed[0]["params"], expected);
    let deny = Decision::Deny("not here".to_owned());
    let denied = steps(|steps| driver.decide("p", &deny, steps));
    let expected = json!({"kind": "reject", "feedback": "not here"});
    assert_eq!(denied[0]["params"]["result"], expected);
    assert!(driver.conveys_reasons());
}

#[test]
fn a_question_is_answered_whichever_arrives_first() {
    let data = json!({"requestId": "q", "question": "Which?", "choices": ["Red", "Blue"]});
    let asked = event("user_input.requested", data.clone());
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "userInput.request", "params": data});
    let answers = [
        (Answer::Chosen(vec![vec!["Blue".to_owned()]]), "Blue", false),
        (Answer::Declined("No one is here.".to_owned()), "No one is here.", true),
    ];
    for (answer, text, freeform) in answers {
        let expected =
            json!({"jsonrpc": "2.0", "id": 7, "result": {"answer": text, "wasFreeform": freeform}});
        let mut driver = in_turn();
        assert!(replies(&mut driver, &asked).is_empty());
        assert!(replies(&mut driver, &request).is_empty());
        assert_eq!(
            steps(|steps| driver.answer("q", &answer, steps)),
            std::slice::from_ref(&expected)
        );
        let mut driver = in_turn();
        replies(&mut driver, &asked);
        assert!(steps(|steps| driver.answer("q", &answer, steps)).is_empty());
        assert_eq!(replies(&mut driver, &request), std::slice::from_ref(&expected));
        let mut driver = in_turn();
        assert!(replies(&mut driver, &request).is_empty(), "the event may follow");
        assert!(replies(&mut driver, &asked).is_empty());
        assert_eq!(steps(|steps| driver.answer("q", &answer, steps)), [expected]);
    }
}

/// Copilot ignores an abort that arrives before the turn has begun.
#[test]
fn an_early_interrupt_is_held_back_until_the_turn_begins() {
    let mut driver = open(HeadlessSession::default());
    assert!(!driver.interrupt(&mut Vec::new()));
    steps(|steps| driver.prompt("do it", steps));
    assert!(steps(|steps| assert!(driver.interrupt(steps))).is_empty());
    let aborted = replies(&mut driver, &event("user.message", json!({})));
    assert_eq!(aborted[0]["method"], "session.abort");
    let mut driver = in_turn();
    let aborted = steps(|steps| assert!(driver.interrupt(steps)));
    assert_eq!(aborted[0]["params"], json!({"sessionId": "s"}));
}

#[test]
fn a_prompt_joins_only_a_running_turn() {
    let mut driver = in_turn();
    let joined = steps(|steps| assert!(driver.join("also", steps)));
    assert_eq!(joined[0]["params"]["mode"], "immediate");
    replies(&mut driver, &event("session.idle", json!({})));
    assert!(steps(|steps| assert!(!driver.join("also", steps))).is_empty());
    let mut driver = in_turn();
    driver.turn_ended(&mut Vec::new());
    assert!(!driver.join("also", &mut Vec::new()));
}

#[test]
fn a_prompt_waits_for_a_change_and_a_refused_change_is_reported() {
    let mut driver = open(HeadlessSession { mode: Mode::Ask, ..Default::default() });
    let change = steps(|steps| assert_eq!(driver.set_mode(Mode::Plan, steps), Applied::Now));
    assert_eq!(change[0]["params"], json!({"sessionId": "s", "mode": "plan"}));
    let again = steps(|steps| assert_eq!(driver.set_mode(Mode::Plan, steps), Applied::Now));
    assert!(again.is_empty());
    assert!(steps(|steps| driver.prompt("do it", steps)).is_empty());
    assert_eq!(replies(&mut driver, &response(2, json!({})))[0]["method"], "session.send");
    let change = steps(|steps| assert_eq!(driver.set_model("x", steps), Applied::Now));
    assert_eq!(change[0]["params"], json!({"sessionId": "s", "modelId": "x"}));
    let mut reported = Vec::new();
    let refused = json!({"jsonrpc": "2.0", "id": 4, "error": {"message": "no such model"}});
    driver.output(&framed(&refused.to_string()), &mut reported);
    let [Step::Emit(event)] = &*reported else { panic!("{reported:?}") };
    let Data::Notice(notice) = &event.data else { panic!("{event:?}") };
    assert_eq!(notice.text, "the model was not changed: no such model");
}

#[test]
fn a_session_that_should_plan_is_told_before_the_first_prompt() {
    let mut driver =
        CopilotHeadlessDriver::new(HeadlessSession { mode: Mode::Plan, ..Default::default() });
    steps(|steps| driver.start(steps));
    steps(|steps| driver.prompt("do it", steps));
    replies(&mut driver, &response(0, json!({})));
    let mode = replies(&mut driver, &response(1, json!({"sessionId": "s"})));
    assert_eq!((mode.len(), &mode[0]["method"]), (1, &json!("session.mode.set")));
    assert_eq!(replies(&mut driver, &response(2, json!({})))[0]["method"], "session.send");
}

#[test]
fn a_changed_todo_list_is_requested_once_at_a_time() {
    let mut driver = in_turn();
    let changed = event("session.todos_changed", json!({}));
    let request = replies(&mut driver, &changed);
    assert_eq!(request[0]["method"], "session.plan.readSqlTodos");
    assert!(replies(&mut driver, &changed).is_empty());
    let id = request[0]["id"].as_u64().unwrap();
    assert_eq!(replies(&mut driver, &response(id, json!({"rows": []}))).len(), 1);
    assert!(replies(&mut driver, &response(id + 1, json!({"rows": []}))).is_empty());
}

#[test]
fn unknown_requests_are_refused() {
    let request = json!({"jsonrpc": "2.0", "id": 9, "method": "hooks.invoke", "params": {}});
    assert_eq!(replies(&mut in_turn(), &request)[0]["error"]["code"], -32601);
}

#[test]
fn the_end_closes_the_input() {
    let mut closing = Vec::new();
    in_turn().close(&mut closing);
    assert_eq!(closing, [Step::CloseInput]);
}

/// A prompt that was accepted and could not join was lost without a word.
#[test]
fn a_prompt_that_cannot_join_is_queued() {
    let mut driver = in_turn();
    let sent = steps(|steps| assert!(driver.join("also", steps)));
    assert_eq!(sent[0]["params"]["mode"], "immediate");
    let error = json!({"code": -32603, "message": "the session is gone"});
    let refused = json!({"jsonrpc": "2.0", "id": sent[0]["id"], "error": error});
    let mut steps = Vec::new();
    driver.output(&framed(&refused.to_string()), &mut steps);
    assert_eq!(steps.last(), Some(&Step::Queue("also".to_owned())));
    assert!(format!("{:?}", steps[0]).contains("the session is gone"), "{steps:?}");
}
