//! The client's tools: records in, records out.

use super::super::ClientToolCall;
use super::super::testing::sent;
use super::*;
use crate::session::CallOutcome;

fn with_tools() -> ClaudeDriver {
    ClaudeDriver::default().with_client_tools(&ClientTool::form())
}

/// What the driver does when the program prints some records.
fn prints(driver: &mut ClaudeDriver, records: &[Value]) -> Vec<Step> {
    let mut steps = Vec::new();
    for record in records {
        driver.output(format!("{record}\n").as_bytes(), &mut steps);
    }
    steps
}

/// A message of the model with these calls, as the program prints it.
fn message(calls: &[&str], parent: Option<&str>) -> Vec<Value> {
    let event = |kind: &str| json!({"type": "stream_event", "event": {"type": kind}, "parent_tool_use_id": parent});
    let call = |id: &&str| {
        let content = json!([{"type": "tool_use", "id": id, "name": "mcp__interlingua__getFormSnapshot", "input": {}}]);
        json!({"type": "assistant", "message": {"content": content}, "parent_tool_use_id": parent})
    };
    let calls: Vec<_> = calls.iter().map(call).collect();
    [vec![event("message_start")], calls, vec![event("message_stop")]].concat()
}

fn asks_hook(request: &str, call: &str) -> Value {
    let input = json!({"hook_event_name": "PreToolUse", "tool_name": "mcp__interlingua__getFormSnapshot", "tool_input": {"instruction": "all"}, "tool_use_id": call});
    json!({"type": "control_request", "request_id": request, "request": {"subtype": "hook_callback", "callback_id": "interlingua-client-tool", "input": input, "tool_use_id": call}})
}

fn mcp(request: &str, message: &Value) -> Value {
    json!({"type": "control_request", "request_id": request, "request": {"subtype": "mcp_message", "server_name": "interlingua", "message": message}})
}

fn makes_call(request: &str, call: &str) -> Value {
    let params = json!({"name": "getFormSnapshot", "arguments": {"instruction": "all"}, "_meta": {"claudecode/toolUseId": call}});
    mcp(request, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
}

fn passed_on(number: u64, call: &str) -> Step {
    let (tool, input) = ("getFormSnapshot".to_owned(), r#"{"instruction":"all"}"#.to_owned());
    let native = Some(call.to_owned());
    Step::CallClient(Box::new(ClientToolCall { number, native, tool, input }))
}

/// The decision of the hook that a step sends.
fn decided(step: &Step) -> (Value, Value) {
    let response = sent(std::slice::from_ref(step)).remove(0)["response"].take();
    let decision = response["response"]["hookSpecificOutput"]["permissionDecision"].clone();
    (response["request_id"].clone(), decision)
}

/// The text that a step sends as the result of a call, and whether it is an error.
fn result_of(step: &Step) -> (Value, Value) {
    let sent = sent(std::slice::from_ref(step)).remove(0);
    let result = &sent["response"]["response"]["mcp_response"]["result"];
    (result["content"][0]["text"].clone(), result["isError"].clone())
}

#[test]
fn the_hook_is_registered_with_a_limit_that_lasts_for_days() {
    let mut steps = Vec::new();
    with_tools().start(&mut steps);
    let request = &sent(&steps)[0]["request"];
    let hook = &request["hooks"]["PreToolUse"][0];
    assert_eq!(
        (&request["subtype"], &hook["matcher"]),
        (&json!("initialize"), &json!("^mcp__interlingua__.*"))
    );
    assert_eq!(hook["timeout"], 24 * 24 * 3600);
    steps.clear();
    ClaudeDriver::default().start(&mut steps);
    assert_eq!(steps, []);
}

#[test]
fn the_server_answers_over_the_control_channel() {
    let lists = mcp("m", &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let answer = sent(&prints(&mut with_tools(), &[lists])).remove(0)["response"].take();
    assert_eq!(answer["request_id"], "m");
    assert_eq!(answer["response"]["mcp_response"]["result"]["tools"][0]["name"], "getFormSnapshot");
    // A notification has an answer of the channel only.
    let notifies = mcp("n", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(sent(&prints(&mut with_tools(), &[notifies]))[0]["response"]["subtype"], "success");
}

#[test]
fn a_call_is_held_in_the_hook_until_the_client_has_answered() {
    let (mut driver, mut steps) = (with_tools(), Vec::new());
    assert_eq!(prints(&mut driver, &[asks_hook("h", "t1")]), [passed_on(1, "t1")]);
    driver.client_answered(1, "Blue", false, &mut steps);
    assert_eq!(steps.iter().map(decided).collect::<Vec<_>>(), [(json!("h"), json!("allow"))]);
    let steps = prints(&mut driver, &[makes_call("c", "t1")]);
    assert_eq!(steps.iter().map(result_of).collect::<Vec<_>>(), [(json!("Blue"), json!(false))]);
    // It is answered once: another call with this id is one of its own.
    assert_eq!(prints(&mut driver, &[makes_call("d", "t1")]), [passed_on(2, "t1")]);
}

/// The names of another server and of its tools may begin as ours do. Its calls were allowed.
#[test]
fn the_hook_decides_nothing_about_the_tools_of_others() {
    for name in [
        "mcp__interlingua__x__run",
        "mcp__interlingua__unknown",
        "mcp__evil__mcp__interlingua__run",
    ] {
        let mut asked = asks_hook("h", "t1");
        asked["request"]["input"]["tool_name"] = json!(name);
        let steps = prints(&mut with_tools(), &[asked]);
        assert_eq!(decided(&steps[0]), (json!("h"), Value::Null), "{name}");
    }
}

/// A call that is refused or has failed is made, so that the model reads the words of the client.
#[test]
fn a_failure_of_the_client_is_the_result_of_the_call() {
    let (mut driver, mut steps) = (with_tools(), Vec::new());
    prints(&mut driver, &[asks_hook("h", "t1")]);
    driver.client_answered(1, "not this form", true, &mut steps);
    assert_eq!(decided(&steps[0]).1, "allow");
    let steps = prints(&mut driver, &[makes_call("c", "t1")]);
    assert_eq!(result_of(&steps[0]), (json!("not this form"), json!(true)));
}

/// The program may not ask hooks of its host, or may have given one up.
#[test]
fn without_the_hook_the_call_itself_waits() {
    let (mut driver, mut steps) = (with_tools(), Vec::new());
    let calls = [message(&["t1"], None), vec![makes_call("c", "t1")]].concat();
    assert_eq!(prints(&mut driver, &calls), [passed_on(1, "t1")]);
    assert!(!driver.defer(&mut steps), "nothing but a hook can be deferred");
    driver.client_answered(1, "Blue", false, &mut steps);
    assert_eq!(result_of(&steps[0]).0, "Blue");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    prints(&mut driver, &[makes_call("d", "t2")]);
    assert_eq!(prints(&mut driver, &[mcp("x", &cancel)])[0], Step::WithdrawCall(2));
}

#[test]
fn a_hook_that_is_not_waited_for_withdraws_its_call() {
    let (mut driver, mut steps) = (with_tools(), Vec::new());
    prints(&mut driver, &[asks_hook("h", "t1")]);
    let cancels = json!({"type": "control_cancel_request", "request_id": "h"});
    assert_eq!(prints(&mut driver, &[cancels]), [Step::WithdrawCall(1)]);
    driver.client_answered(1, "late", false, &mut steps);
    assert_eq!(steps, []);
}

/// Of two deferred calls in one message, the program loses one.
#[test]
fn only_the_only_call_of_a_complete_message_is_deferred() {
    let defers = |records: &[Value]| {
        let (mut driver, mut steps) = (with_tools(), Vec::new());
        prints(&mut driver, records);
        (driver.defer(&mut steps), steps)
    };
    let one = [message(&["t1"], None), vec![asks_hook("h", "t1")]].concat();
    let (does, steps) = defers(&one);
    assert!(does && decided(&steps[0]) == (json!("h"), json!("defer")), "{steps:?}");
    let two = [message(&["t1", "t2"], None), vec![asks_hook("h", "t1")]].concat();
    let both = [two.clone(), vec![asks_hook("i", "t2")]].concat();
    let nested = [message(&["t1"], Some("task")), vec![asks_hook("h", "t1")]].concat();
    for records in [two, both, nested, message(&["t1"], None)] {
        assert_eq!(defers(&records), (false, Vec::new()), "{records:#?}");
    }
    // A prompt that waits would begin a turn of its own.
    let (mut driver, mut steps) = (with_tools(), Vec::new());
    prints(&mut driver, &one);
    driver.join("also", &mut steps);
    assert!(!driver.defer(&mut Vec::new()));
}

/// The hook is asked before the message is complete, which may go on with another call.
#[test]
fn a_call_is_deferred_when_its_message_is_complete() {
    let (mut driver, mut steps) = (with_tools(), Vec::new());
    let mut records = [vec![asks_hook("h", "t1")], message(&["t1"], None)].concat();
    let stop = records.pop().unwrap();
    prints(&mut driver, &records);
    assert!(driver.defer(&mut steps) && steps.is_empty());
    let steps = prints(&mut driver, std::slice::from_ref(&stop));
    assert_eq!(decided(&steps[0]), (json!("h"), json!("defer")));
    let (mut driver, mut steps) = (with_tools(), Vec::new());
    prints(&mut driver, &records);
    assert!(driver.defer(&mut steps));
    let another = [message(&["t2"], None)[1].clone(), asks_hook("i", "t2"), stop];
    assert_eq!(prints(&mut driver, &another), [], "it is killed soon");
}

fn late(call: &str, deferred: bool) -> LateResult {
    LateResult {
        call: call.to_owned(),
        native: None,
        tool: "getFormSnapshot".to_owned(),
        input: "{}".to_owned(),
        outcome: CallOutcome::Output(json!("Blue")),
        deferred,
    }
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s"})
}

fn interrupted_turn() -> Vec<Value> {
    let result =
        json!([{"type": "tool_result", "tool_use_id": "t1", "content": "STOP", "is_error": true}]);
    vec![
        json!({"type": "user", "message": {"role": "user", "content": result}}),
        init(),
        json!({"type": "result", "subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}),
    ]
}

/// The records that are passed on.
fn passed(steps: &[Step]) -> Vec<Value> {
    let bytes = steps.iter().filter_map(|step| match step {
        Step::Pass(bytes) => Some(String::from_utf8(bytes.clone()).unwrap()),
        _ => None,
    });
    let text = bytes.collect::<String>();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_resumed_program_gets_the_result_in_the_place_of_its_call() {
    let (mut driver, mut steps) = (with_tools().resuming(), Vec::new());
    assert!(driver.resume(&[late("t1", true)], "the prompt", &mut steps) && driver.holds_back());
    assert_eq!(steps, [], "it is given no prompt");
    let mut steps = prints(&mut driver, &[asks_hook("h", "t1"), makes_call("c", "t1")]);
    steps.retain(|step| matches!(step, Step::Send(_)));
    assert_eq!(decided(&steps[0]), (json!("h"), json!("allow")));
    assert_eq!(result_of(&steps[1]), (json!("Blue"), json!(false)));
    assert_eq!(driver.wake_after(), None);
    // What it reports of the call was emitted before.
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "Blue"}]);
    let note = json!({"type": "attachment"});
    let steps = prints(
        &mut driver,
        &[note, json!({"type": "user", "message": {"content": result}}), init()],
    );
    assert_eq!(passed(&steps), [init()]);
    assert!(!driver.holds_back());
}

/// The agent may have started before the store has the intent to give it the result.
#[test]
fn a_program_that_asks_early_waits_for_the_session() {
    let (mut driver, mut steps) = (with_tools().resuming(), Vec::new());
    assert_eq!(sent(&prints(&mut driver, &[asks_hook("h", "t1")])), [Value::Null; 0]);
    driver.resume(&[late("t1", true)], "the prompt", &mut steps);
    assert_eq!(decided(&steps[0]).1, "allow");
}

#[test]
fn results_of_calls_that_were_not_deferred_are_a_prompt() {
    let place = |driver: ClaudeDriver, results: &[LateResult]| {
        let (mut driver, mut steps) = (driver, Vec::new());
        driver.resume(results, "the prompt", &mut steps)
    };
    assert!(!place(with_tools().resuming(), &[late("t1", false)]));
    assert!(!place(with_tools(), &[late("t1", true)]));
    assert!(!place(ClaudeDriver::default().resuming(), &[late("t1", true)]));
    assert!(!place(with_tools().resuming(), &[late("t1", true), late("t2", true)]));
}

/// Its file may have lost the call, or the call may have got its result before the server was killed.
#[test]
fn a_program_that_does_not_ask_gets_the_prompt() {
    let (mut driver, mut steps) = (with_tools().resuming(), Vec::new());
    driver.resume(&[late("t1", true)], "the prompt", &mut steps);
    assert_eq!(driver.wake_after(), Some(ASKS_WITHIN));
    driver.woken(&mut steps);
    assert_eq!(sent(&steps)[0]["message"]["content"], "the prompt");
    assert_eq!(driver.wake_after(), None);
    // If it asks after all, the result is in the prompt.
    let asked = sent(&prints(&mut driver, &[asks_hook("h", "t1")]));
    assert_eq!(asked[0]["request"]["subtype"], "interrupt");
}

/// The tool is not offered any more, so the program drops the call and fails a turn.
#[test]
fn a_call_whose_tool_is_gone_is_dropped_in_silence() {
    let (mut driver, mut steps) = (with_tools().resuming(), Vec::new());
    driver.resume(&[late("t1", true)], "the prompt", &mut steps);
    let gone =
        json!({"type": "result", "is_error": true, "terminal_reason": "tool_deferred_unavailable"});
    let mut records = interrupted_turn();
    records[1] = gone;
    let steps = prints(&mut driver, &records[..2]);
    assert_eq!(sent(&steps)[0]["message"]["content"], "the prompt");
    assert_eq!(passed(&steps), [Value::Null; 0]);
    assert_eq!(passed(&prints(&mut driver, &[init()])), [init()]);
}

/// The user has cancelled the call, or the session does not know of it. The end of the old turn would be
/// taken for that of the prompt.
#[test]
fn a_deferred_call_without_a_result_is_forgotten_before_the_turn_of_the_prompt() {
    let (mut driver, mut steps) = (with_tools().resuming(), Vec::new());
    driver.prompt("something else", &mut steps);
    let steps = prints(&mut driver, &[asks_hook("h", "t1")]);
    assert_eq!(sent(&steps)[0]["request"]["subtype"], "interrupt");
    assert_eq!(passed(&prints(&mut driver, &interrupted_turn())), [Value::Null; 0]);
    assert!(driver.holds_back());
    let text = json!({"type": "assistant", "message": {"content": []}});
    assert_eq!(passed(&prints(&mut driver, &[init(), text.clone()])), [init()]);
    // From then on the session reads the output itself.
    assert_eq!(prints(&mut driver, &[text]), []);
}

#[test]
fn a_turn_that_is_interrupted_before_the_program_asks_ends_as_interrupted() {
    let (mut driver, mut steps) = (with_tools().resuming(), Vec::new());
    driver.resume(&[late("t1", true)], "the prompt", &mut steps);
    driver.interrupt(&mut steps);
    let steps = prints(&mut driver, &[asks_hook("h", "t1")]);
    assert_eq!(sent(&steps)[0]["request"]["subtype"], "interrupt");
    assert_eq!(passed(&prints(&mut driver, &interrupted_turn()[..2])), [init()]);
    assert!(!driver.holds_back(), "the end of the turn is read");
}

/// A record that is cut where the beginning ends is neither lost nor read twice.
#[test]
fn the_beginning_can_be_cut_anywhere() {
    let records = [json!({"type": "keep_alive"}), init(), asks_hook("h", "t1")];
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    for cut in 0..text.len() {
        let mut driver = with_tools().resuming();
        let (mut steps, mut read) = (Vec::new(), Vec::new());
        for chunk in [&text[..cut], &text[cut..]] {
            let (held, mut now) = (driver.holds_back(), Vec::new());
            driver.output(chunk.as_bytes(), &mut now);
            if held {
                for step in &now {
                    if let Step::Pass(bytes) = step {
                        read.extend_from_slice(bytes);
                    }
                }
            } else {
                read.extend_from_slice(chunk.as_bytes());
            }
            steps.extend(now);
        }
        assert_eq!(String::from_utf8(read).unwrap(), text, "cut at {cut}");
        assert!(steps.contains(&passed_on(1, "t1")), "cut at {cut}");
    }
}
