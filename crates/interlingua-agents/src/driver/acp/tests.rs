//! Records in, records out.

use super::super::testing::{replies, sent};
use super::*;

fn driver(session: AcpSession) -> AcpDriver {
    let mut driver = AcpDriver::new(session);
    driver.prompt("do it", &mut Vec::new());
    driver
}

fn in_turn() -> AcpDriver {
    let mut driver = driver(AcpSession::default());
    replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
    replies(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
    driver
}

const ASKS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}],"toolCall":{"toolCallId":"c"}}}"#;

#[test]
fn a_session_is_opened_configured_and_prompted() {
    let session = AcpSession {
        folder: "/project".to_owned(),
        model: Some("m".to_owned()),
        mode: Mode::AcceptEdits,
        mode_names: Some(ModeNames { ask: "default", plan: "plan", starts_asking: false }),
        ..AcpSession::default()
    };
    let mut driver = driver(session);
    let opened = replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
    assert_eq!(
        (&opened[0]["method"], &opened[0]["params"]["cwd"]),
        (&json!("session/new"), &json!("/project"))
    );
    let settled = replies(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
    assert_eq!(
        (&settled[0]["method"], &settled[1]["method"]),
        (&json!("session/set_mode"), &json!("session/set_model"))
    );
    assert_eq!(settled[0]["params"]["modeId"], "default");
    assert_eq!(replies(&mut driver, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#), [Value::Null; 0]);
    let prompted = replies(&mut driver, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    assert_eq!(
        prompted[0]["params"],
        json!({"sessionId":"s","prompt":[{"type":"text","text":"do it"}]})
    );
}

/// Gemini replays the history after it has reported the session as loaded.
#[test]
fn a_prompt_waits_for_the_end_of_the_replay() {
    let resume = Some("old".to_owned());
    let session = AcpSession { resume, late_history: true, ..AcpSession::default() };
    let mut driver = driver(session);
    replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    assert!(replies(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_empty());
    let update = |kind: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"update":{{"sessionUpdate":"{kind}"}}}}}}"#
        )
    };
    assert!(replies(&mut driver, &update("agent_message_chunk")).is_empty());
    assert_eq!(driver.wake_after(), Some(REPLAY_TIMEOUT));
    assert!(replies(&mut driver, &update("available_commands_update")).is_empty());
    assert_eq!(driver.wake_after(), Some(REPLAY_SETTLED));
    let mut steps = Vec::new();
    driver.woken(&mut steps);
    assert_eq!(sent(&steps)[0]["method"], "session/prompt");
    assert_eq!(driver.wake_after(), None);
}

#[test]
fn a_session_is_loaded_or_the_run_is_given_up() {
    let mut driver = driver(AcpSession { resume: Some("old".to_owned()), ..AcpSession::default() });
    let opened = replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    assert_eq!(
        (&opened[0]["method"], &opened[0]["params"]["sessionId"]),
        (&json!("session/load"), &json!("old"))
    );
    let mut steps = Vec::new();
    let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":{"details":"not found"}}}"#;
    driver.output(format!("{failed}\n").as_bytes(), &mut steps);
    assert_eq!(
        steps,
        [Step::GiveUp("the session old cannot be resumed: Internal error: not found".to_owned())]
    );
}

#[test]
fn the_smallest_permission_is_given() {
    for (decision, option) in [(Decision::Allow, "once"), (Decision::Deny(String::new()), "no")] {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        assert_eq!(replies(&mut driver, ASKS), [Value::Null; 0]);
        driver.decide("7", &decision, &mut steps);
        let outcome = json!({"outcome": "selected", "optionId": option});
        assert_eq!(sent(&steps)[0]["result"]["outcome"], outcome);
    }
}

#[test]
fn a_cancelled_turn_answers_pending_requests() {
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    replies(&mut driver, ASKS);
    assert!(driver.interrupt(&mut steps));
    let sent = sent(&steps);
    assert_eq!((&sent[0]["method"], &sent[1]["id"]), (&json!("session/cancel"), &json!(7)));
    assert_eq!(sent[1]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn a_second_prompt_follows_the_first_turn() {
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    driver.turn_ended(&mut steps);
    driver.set_model("n", &mut steps);
    driver.prompt("and this", &mut steps);
    let sent_then = sent(&std::mem::take(&mut steps));
    assert_eq!(sent_then[0]["params"], json!({"sessionId": "s", "modelId": "n"}));
    assert_eq!(sent_then[1]["params"]["prompt"][0]["text"], "and this");
    let refused = json!({"jsonrpc": "2.0", "id": sent_then[0]["id"], "error": {"code": -32602, "message": "no"}});
    driver.output(format!("{refused}\n").as_bytes(), &mut steps);
    assert_eq!(steps, [Step::warn("the agent did not accept the model n: no".to_owned())]);
}

/// Qwen's previous mode may be `auto`, in which it acts without asking.
#[test]
fn an_approved_plan_does_not_restore_the_mode_before_it() {
    let asks = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"restore_previous","kind":"allow_once"},{"optionId":"proceed_always","kind":"allow_always"},{"optionId":"proceed_once","kind":"allow_once"},{"optionId":"cancel","kind":"reject_once"}],"toolCall":{"toolCallId":"c"}}}"#;
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    replies(&mut driver, asks);
    driver.decide("7", &Decision::Allow, &mut steps);
    assert_eq!(sent(&steps)[0]["result"]["outcome"]["optionId"], "proceed_once");
}

/// Qwen asks questions by requesting a permission; cancelling one ends the turn.
#[test]
fn a_question_is_answered_beside_the_outcome() {
    let asks = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"proceed_once","name":"Submit","kind":"allow_once"},{"optionId":"cancel","kind":"reject_once"}],"toolCall":{"toolCallId":"c","_meta":{"qwenInteractionKind":"user_question","qwenQuestions":[{"question":"Which colour?"},{"question":"Which shapes?"}]}}}}"#;
    let chosen = Answer::Chosen(vec![vec!["Blue".into()], vec!["Dot".into(), "Star".into()]]);
    let declined = Answer::Declined("no one is here".into());
    let expected = [
        (chosen, json!({"0": "Blue", "1": "Dot, Star"})),
        (declined, json!({"0": "no one is here", "1": "no one is here"})),
    ];
    for (answer, answers) in expected {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        replies(&mut driver, asks);
        driver.answer("7", &answer, &mut steps);
        let result = &sent(&steps)[0]["result"];
        assert_eq!(result["outcome"]["optionId"], "proceed_once");
        assert_eq!(result["answers"], answers);
    }
}

/// Qwen stores a permanent decision in the settings of the project or of the user.
#[test]
fn a_decision_is_never_permanent() {
    let asks = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","kind":"allow_always"},{"optionId":"never","kind":"reject_always"}],"toolCall":{"toolCallId":"c"}}}"#;
    let warning = vec![Step::warn(ONLY_PERMANENT.to_owned())];
    let decisions = [(Decision::Allow, warning), (Decision::Deny(String::new()), Vec::new())];
    for (decision, warnings) in decisions {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        replies(&mut driver, asks);
        driver.decide("7", &decision, &mut steps);
        let answer = steps.pop();
        assert_eq!(steps, warnings);
        assert_eq!(
            sent(answer.as_slice())[0]["result"],
            json!({"outcome": {"outcome": "cancelled"}})
        );
    }
}

#[test]
fn unadvertised_requests_are_refused() {
    let asks = r#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{}}"#;
    assert_eq!(replies(&mut in_turn(), asks)[0]["error"]["code"], -32601);
}

#[test]
fn a_failed_prompt_is_reported_by_the_stream() {
    let (mut driver, mut steps) = (in_turn(), Vec::new());
    driver.output(
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":401,\"message\":\"no key\"}}\n",
        &mut steps,
    );
    assert_eq!(steps, []);
}

/// Nobody would answer it otherwise, and the agent would wait forever.
#[test]
fn a_permission_request_that_cannot_be_read_is_cancelled() {
    for params in [r#","params":{"options":"none"}"#, r#","params":[7]"#, ""] {
        let asks =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"session/request_permission"{params}}}"#);
        let answer =
            json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "cancelled"}}});
        assert_eq!(replies(&mut in_turn(), &asks), [answer], "{params}");
    }
}
