//! Records in, records out.

use super::super::testing::{replies, sent};
use super::*;

fn driver(resume: Option<&str>) -> CodexDriver {
    let thread = Thread {
        resume: resume.map(str::to_owned),
        folder: "/project".to_owned(),
        model: Some("m".to_owned()),
        mode: Mode::Ask,
        client_tools: None,
    };
    let mut driver = CodexDriver::new(thread);
    driver.prompt("do it", &mut Vec::new());
    driver
}

fn in_turn() -> CodexDriver {
    let mut driver = driver(None);
    driver.start(&mut Vec::new());
    replies(&mut driver, r#"{"id":0,"result":{}}"#);
    replies(&mut driver, r#"{"id":1,"result":{"thread":{"id":"th"}}}"#);
    replies(&mut driver, r#"{"id":2,"result":{"turn":{"id":"tu"}}}"#);
    driver
}

#[test]
fn a_thread_is_started_and_prompted() {
    let (mut driver, mut steps) = (driver(None), Vec::new());
    driver.start(&mut steps);
    assert_eq!(sent(&steps)[0]["method"], "initialize");
    let opened = replies(&mut driver, r#"{"id":0,"result":{}}"#);
    assert_eq!(
        (&opened[0]["method"], &opened[1]["method"]),
        (&json!("initialized"), &json!("thread/start"))
    );
    let params = json!({"cwd":"/project","approvalPolicy":"untrusted","sandbox":"workspace-write","model":"m","config":{"projects":{"/project":{"trust_level":"untrusted"}}}});
    assert_eq!(opened[1]["params"], params);
    assert_eq!(
        replies(&mut driver, r#"{"method":"thread/started","params":{}}"#),
        [serde_json::Value::Null; 0]
    );
    let prompted = replies(&mut driver, r#"{"id":1,"result":{"thread":{"id":"th"}}}"#);
    assert_eq!(prompted[0]["params"]["threadId"], "th");
    assert_eq!(prompted[0]["params"]["input"][0]["text"], "do it");
}

#[test]
fn a_thread_is_resumed_or_the_run_is_given_up_with_the_servers_message() {
    let mut driver = driver(Some("old"));
    let opened = replies(&mut driver, r#"{"id":0,"result":{}}"#);
    assert_eq!(opened[1]["method"], "thread/resume");
    let mut steps = Vec::new();
    driver.output(
        b"{\"id\":1,\"error\":{\"code\":-32600,\"message\":\"no rollout found\"}}\n",
        &mut steps,
    );
    assert_eq!(steps, [Step::GiveUp("no rollout found".to_owned())]);
}

#[test]
fn approvals_are_answered_by_the_id_that_they_came_with() {
    for (decision, word) in [(Decision::Allow, "accept"), (Decision::Deny("no".into()), "decline")]
    {
        let mut driver = in_turn();
        let asks =
            r#"{"method":"item/commandExecution/requestApproval","id":0,"params":{"itemId":"i"}}"#;
        assert_eq!(replies(&mut driver, asks), [serde_json::Value::Null; 0]);
        let mut steps = Vec::new();
        driver.decide("0", &decision, &mut steps);
        assert_eq!(sent(&steps), [json!({"id": 0, "result": {"decision": word}})]);
    }
}

/// It was shown to the user as a permission request, and refused as an unknown method.
#[test]
fn further_permissions_are_granted_for_the_turn_or_not_at_all() {
    let wanted = json!({"fileSystem": {"write": ["/data"]}, "network": null});
    let asks = json!({"method": "item/permissions/requestApproval", "id": 4,
        "params": {"itemId": "i", "cwd": "/project", "permissions": wanted}});
    for (decision, granted) in
        [(Decision::Allow, wanted.clone()), (Decision::Deny("no".into()), json!({}))]
    {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        assert_eq!(replies(&mut driver, &asks.to_string()), [serde_json::Value::Null; 0]);
        driver.decide("4", &decision, &mut steps);
        let result = json!({"permissions": granted, "scope": "turn"});
        assert_eq!(sent(&steps), [json!({"id": 4, "result": result})]);
    }
}

#[test]
fn only_notifications_of_deltas_are_not_parsed() {
    let record = |method: &str, id: &str| format!(r#"{{"method":"{method}"{id},"params":{{}}}}"#);
    for method in ["item/agentMessage/delta", "item/commandExecution/outputDelta"] {
        assert!(is_delta(&record(method, "")), "{method}");
        assert!(!is_delta(&record(method, ",\"id\":1")), "{method}");
    }
    assert!(!is_delta(&record("item/tool/call", "")));
    assert!(!is_delta(r#"{"id":1,"method":"item/agentMessage/delta","params":{}}"#));
}

#[test]
fn unsupported_requests_are_refused_at_once() {
    let asks = r#"{"method":"item/tool/call","id":"x","params":{}}"#;
    let refused = replies(&mut in_turn(), asks);
    assert_eq!((&refused[0]["id"], &refused[0]["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[test]
fn questions_are_answered_by_their_ids() {
    let asks = r#"{"method":"item/tool/requestUserInput","id":"x","params":{"questions":[{"id":"colour"}]}}"#;
    for (answer, text) in [
        (Answer::Chosen(vec![vec!["Blue".into()]]), "Blue"),
        (Answer::Declined("no one is here".into()), "no one is here"),
    ] {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        replies(&mut driver, asks);
        driver.answer("x", &answer, &mut steps);
        let result = json!({"answers": {"colour": {"answers": [text]}}});
        assert_eq!(sent(&steps), [json!({"id": "x", "result": result})]);
    }
}

#[test]
fn a_second_prompt_carries_the_changes_once() {
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    driver.turn_ended(&mut steps);
    assert_eq!(driver.set_model("n", &mut steps), Applied::Now);
    driver.set_mode(Mode::Deny, &mut steps);
    driver.prompt("and this", &mut steps);
    let turn = sent(&std::mem::take(&mut steps)).remove(0);
    assert_eq!(turn["params"]["input"][0]["text"], "and this");
    assert_eq!(turn["params"]["model"], "n");
    assert_eq!(turn["params"]["sandboxPolicy"], json!({"type": "readOnly"}));
    replies(&mut driver, &json!({"id": turn["id"], "result": {"turn": {"id": "2"}}}).to_string());
    driver.turn_ended(&mut steps);
    driver.prompt("third", &mut steps);
    assert_eq!(sent(&steps)[0]["params"]["model"], serde_json::Value::Null);
}

/// A prompt that was accepted and could not join was lost without a word.
#[test]
fn a_prompt_that_cannot_join_is_queued() {
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    assert!(driver.join("joined", &mut steps) && driver.join("late", &mut steps));
    let sent = sent(&std::mem::take(&mut steps));
    assert_eq!(sent[1]["method"], "turn/steer");
    let accepted = json!({"id": sent[0]["id"], "result": {"turnId": "tu"}});
    driver.output(format!("{accepted}\n").as_bytes(), &mut steps);
    assert_eq!(steps, []);
    let error = json!({"code": -32600, "message": "no active turn to steer"});
    let refused = json!({"id": sent[1]["id"], "error": error});
    driver.output(format!("{refused}\n").as_bytes(), &mut steps);
    assert_eq!(steps.last(), Some(&Step::Queue("late".to_owned())));
    assert!(format!("{:?}", steps[0]).contains("no active turn to steer"), "{steps:?}");
}

/// Codex leaves the commands of an interrupted turn running.
#[test]
fn an_interrupt_ends_the_commands_too() {
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    driver.interrupt(&mut steps);
    steps.clear();
    driver.turn_ended(&mut steps);
    let sent = sent(&steps);
    assert_eq!(sent[0]["method"], "thread/backgroundTerminals/clean");
    assert_eq!(sent[0]["params"], json!({"threadId": "th"}));
}

#[test]
fn an_early_interrupt_is_sent_once_the_turn_has_started() {
    let (mut steps, mut early) = (Vec::new(), driver(None));
    replies(&mut early, r#"{"id":0,"result":{}}"#);
    replies(&mut early, r#"{"id":1,"result":{"thread":{"id":"th"}}}"#);
    assert!(early.interrupt(&mut steps) && steps.is_empty());
    let sent_then = replies(&mut early, r#"{"id":2,"result":{"turn":{"id":"tu"}}}"#);
    assert_eq!(sent_then[0]["params"], json!({"threadId": "th", "turnId": "tu"}));
    assert!(in_turn().interrupt(&mut steps));
    assert_eq!(sent(&steps)[0]["method"], "turn/interrupt");
    let mut too_early = driver(None);
    assert!(!too_early.interrupt(&mut steps), "the run has to send a signal");
}

#[test]
fn the_input_is_closed_with_the_session() {
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    driver.turn_ended(&mut steps);
    assert_eq!(steps, []);
    driver.close(&mut steps);
    assert_eq!(steps, [Step::CloseInput]);
}

/// Codex runs the calls of a server one after the other, unless they only read.
#[test]
fn calls_that_only_read_may_run_in_parallel() {
    for only_reads in [false, true] {
        let tools = Endpoint {
            url: "http://127.0.0.1:1/mcp".to_owned(),
            authorization: "Bearer secret".to_owned(),
            only_reads,
        };
        let mut driver = driver(None);
        driver.thread.client_tools = Some(tools);
        let opened = replies(&mut driver, r#"{"id":0,"result":{}}"#);
        let server = &opened[1]["params"]["config"]["mcp_servers"]["interlingua"];
        assert_eq!(server["supports_parallel_tool_calls"], only_reads, "{server}");
        assert_eq!(server["required"], true, "{server}");
    }
}
