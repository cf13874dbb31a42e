//! Records in, records out.

use super::super::testing::sent;
use super::*;

const ASKS: &str = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}"#;

#[test]
fn prompts_are_turns_of_their_own_until_the_session_is_closed() {
    let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
    for prompt in ["do it", "and this"] {
        driver.prompt(prompt, &mut steps);
        driver.turn_ended(&mut steps);
        let sent = sent(&std::mem::take(&mut steps));
        assert_eq!(sent.len(), 1);
        assert_eq!(
            (&sent[0]["message"]["content"], &sent[0]["priority"]),
            (&json!(prompt), &json!("later"))
        );
    }
    driver.close(&mut steps);
    assert_eq!(steps, [Step::CloseInput]);
}

/// The turn of such a prompt was taken for that of the next one in the queue.
#[test]
fn a_prompt_that_did_not_join_has_a_turn_of_its_own() {
    for (states, owes) in [(&["queued", "started"][..], false), (&["queued"], true), (&[], false)] {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        driver.prompt("do it", &mut steps);
        driver.join("also", &mut steps);
        let id = sent(&std::mem::take(&mut steps))[1]["uuid"].clone();
        let mut prints = |record: Value, steps: &mut Vec<Step>| {
            driver.output(format!("{record}\n").as_bytes(), steps);
        };
        let lifecycle =
            |state: &str| json!({"type": "command_lifecycle", "command_uuid": id, "state": state});
        states.iter().for_each(|state| prints(lifecycle(state), &mut steps));
        prints(json!({"type": "result", "subtype": "success"}), &mut steps);
        // It may be read together with the end of the turn.
        prints(lifecycle("started"), &mut steps);
        driver.turn_ended(&mut steps);
        let expected = if owes { vec![Step::ExpectTurn] } else { Vec::new() };
        assert_eq!(steps, expected, "{states:?}");
        driver.turn_ended(&mut steps);
        assert_eq!(steps, expected, "only once");
    }
}

#[test]
fn a_question_is_answered_by_its_text() {
    let asks = r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which colour?"},{"question":"Which shapes?"}]},"tool_use_id":"t1"}}"#;
    let chosen = Answer::Chosen(vec![vec!["Blue".into()], vec!["Dot".into(), "Star".into()]]);
    let response = answered(asks, "q1", &chosen);
    assert_eq!(response["behavior"], "allow");
    let input = &response["updatedInput"];
    assert_eq!(input["answers"], json!({"Which colour?": "Blue", "Which shapes?": "Dot, Star"}));
    assert_eq!(input["questions"][0]["question"], "Which colour?", "the input is kept");
    let declined = answered(asks, "q1", &Answer::Declined("no one is here".into()));
    assert_eq!(declined, json!({"behavior": "deny", "message": "no one is here"}));
}

#[test]
fn a_plan_is_approved_or_sent_back() {
    let asks = r#"{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"ExitPlanMode","input":{"plan":"1."}}}"#;
    let chosen = |word: &str| Answer::Chosen(vec![vec![word.to_owned()]]);
    assert_eq!(answered(asks, "p", &chosen("Approve"))["updatedInput"]["plan"], "1.");
    assert_eq!(answered(asks, "p", &chosen("Keep planning"))["behavior"], "deny");
    assert_eq!(answered(asks, "p", &chosen("add tests"))["message"], "add tests");
}

#[test]
fn a_form_of_a_server_is_accepted_or_declined() {
    let asks = r#"{"type":"control_request","request_id":"e","request":{"subtype":"elicitation","mcp_server_name":"s","message":"Name?"}}"#;
    let filled = answered(asks, "e", &Answer::Form(json!({"name": "x"})));
    assert_eq!(filled, json!({"action": "accept", "content": {"name": "x"}}));
    let declined = answered(asks, "e", &Answer::Declined(String::new()));
    assert_eq!(declined, json!({"action": "decline"}));
}

fn answered(asks: &str, id: &str, answer: &Answer) -> Value {
    let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
    driver.output(format!("{asks}\n").as_bytes(), &mut steps);
    assert_eq!(steps, []);
    driver.answer(id, answer, &mut steps);
    sent(&steps)[0]["response"]["response"].clone()
}

#[test]
fn a_change_that_is_not_accepted_is_reported() {
    let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
    assert_eq!(driver.set_model("m", &mut steps), Applied::Now);
    let id = sent(&steps)[0]["request_id"].clone();
    steps.clear();
    let error = json!({"type": "control_response", "response": {"request_id": id, "subtype": "error", "error": "no such model"}});
    driver.output(format!("{error}\n").as_bytes(), &mut steps);
    let warning = "Claude Code did not accept the model m: no such model".to_owned();
    assert_eq!(steps, [Step::warn(warning)]);
}

#[test]
fn a_permission_is_granted_for_the_requested_input() {
    for cut in [1, 40, ASKS.len()] {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        let (one, two) = ASKS.split_at(cut);
        driver.output(one.as_bytes(), &mut steps);
        driver.output(format!("{two}\n").as_bytes(), &mut steps);
        assert_eq!(steps, []);
        driver.decide("r1", &Decision::Allow, &mut steps);
        let response = &sent(&steps)[0]["response"];
        assert_eq!(response["request_id"], "r1");
        assert_eq!(response["response"]["updatedInput"]["command"], "ls");
        steps.clear();
        driver.decide("r1", &Decision::Allow, &mut steps);
        assert_eq!(steps, [], "a second decision has no effect");
    }
}

#[test]
fn a_denial_carries_its_reason() {
    let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
    driver.output(format!("{ASKS}\n").as_bytes(), &mut steps);
    driver.decide("r1", &Decision::Deny("no".into()), &mut steps);
    assert_eq!(sent(&steps)[0]["response"]["response"], json!({"behavior":"deny","message":"no"}));
}

#[test]
fn unsupported_requests_are_refused_at_once() {
    let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
    let hook =
        r#"{"type":"control_request","request_id":"r2","request":{"subtype":"hook_callback"}}"#;
    driver.output(format!("{hook}\n").as_bytes(), &mut steps);
    assert_eq!(sent(&steps)[0]["response"]["subtype"], "error");
}

#[test]
fn an_interrupt_is_a_request_with_an_id_of_its_own() {
    let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
    assert!(driver.interrupt(&mut steps) && driver.interrupt(&mut steps));
    let sent = sent(&steps);
    assert_eq!(sent[0]["request"]["subtype"], "interrupt");
    assert_ne!(sent[0]["request_id"], sent[1]["request_id"]);
}
