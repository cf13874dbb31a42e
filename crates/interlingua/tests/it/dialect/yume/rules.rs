//! Every rule of the flat contract, and a stream that breaks it.

use crate::support::rules::broken_by_lines;

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/","permissionMode":"default","tools":["Bash"]}"#;
const USAGE: &str = r#"{"type":"usage","input_tokens":1,"output_tokens":1}"#;
const RESULT: &str = r#"{"type":"result","is_error":false,"subtype":"success"}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const CALL: &str = r#"{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}"#;
const ANSWER: &str = r#"{"type":"tool_result","tool_use_id":"a","content":"ok"}"#;

/// The names of the rules that a stream breaks, each once.
fn broken(lines: &[&str]) -> Vec<&'static str> {
    broken_by_lines("yume", lines)
}

/// The rules that a turn with this content breaks.
fn broken_by(content: &[&str]) -> Vec<&'static str> {
    broken(&[&[INIT], content, &[USAGE, RESULT, STOP]].concat())
}

#[test]
fn a_valid_turn_breaks_no_rule() {
    assert_eq!(broken_by(&[r#"{"type":"text","content":"hi"}"#, CALL, ANSWER]), [""; 0]);
}

#[test]
fn init_is_first_and_occurs_once() {
    assert_eq!(broken(&[USAGE, RESULT, STOP]), ["init-first"]);
    assert!(broken_by(&[INIT]).contains(&"init-once"));
    assert_eq!(
        broken(&[r#"{"type":"system","subtype":"init"}"#, USAGE, RESULT, STOP]),
        ["init-fields"]
    );
}

#[test]
fn a_line_stays_below_the_limit() {
    let long = format!(r#"{{"type":"text","content":"{}"}}"#, "x".repeat(100_000));
    assert_eq!(broken_by(&[&long]), ["line-length"]);
}

#[test]
fn records_have_their_fields() {
    let cases = [
        (r#"{"type":"text","text":"x"}"#, "text-fields"),
        (r#"{"type":"thinking","is_thinking":true}"#, "thinking-fields"),
        (r#"{"type":"error","message":7}"#, "error-fields"),
        (r#"{"type":"error","message":"x","code":7}"#, "error-fields"),
        (r#"{"type":"telepathy"}"#, "known-type"),
        (r#"{"type":"system","subtype":"mood"}"#, "system-subtype"),
        (r#"{"type":"system","subtype":"session_id"}"#, "session-id-fields"),
        (r#"{"type":"system","subtype":"error"}"#, "system-error-fields"),
        (
            r#"{"type":"system","subtype":"compact_boundary","compact_metadata":1}"#,
            "compact-fields",
        ),
    ];
    for (record, rule) in cases {
        assert_eq!(broken_by(&[record]), [rule], "{record}");
    }
}

#[test]
fn calls_have_their_fields() {
    assert_eq!(
        broken_by(&[r#"{"type":"tool_use","id":"a","name":"Bash","input":"ls"}"#, ANSWER]),
        ["tool-use-fields"]
    );
    let pathless = r#"{"type":"tool_use","id":"a","name":"Edit","input":{"path":"x"}}"#;
    assert_eq!(broken_by(&[pathless, ANSWER]), ["file-path"]);
    let listed = r#"{"type":"tool_result","tool_use_id":"a","content":["x"]}"#;
    assert_eq!(broken_by(&[CALL, listed]), ["tool-result-fields"]);
}

#[test]
fn values_that_yume_would_draw_wrongly_are_found() {
    let blocked = r#"{"type":"tool_use","id":"a","name":"TodoWrite","input":{"todos":[{"content":"x","status":"blocked"}]}}"#;
    assert_eq!(broken_by(&[blocked, ANSWER]), ["todo-status"]);
    let parent = r#"{"type":"text","content":"x","parent_tool_use_id":7}"#;
    assert_eq!(broken_by(&[parent]), ["parent-fields"]);
    let zero = r#"{"type":"result","is_error":false,"subtype":"success","usage":{"input_tokens":0,"output_tokens":0}}"#;
    assert_eq!(broken(&[INIT, USAGE, zero, STOP]), ["usage-not-zero"]);
}

#[test]
fn calls_do_not_overlap() {
    let other = CALL.replace("\"a\"", "\"b\"");
    let other_answer = ANSWER.replace("\"a\"", "\"b\"");
    let rules = broken_by(&[CALL, &other, ANSWER, &other_answer]);
    assert!(rules.contains(&"tool-serial"), "{rules:?}");
    let text = r#"{"type":"text","content":"hi"}"#;
    assert_eq!(broken_by(&[CALL, text, ANSWER]), ["tool-serial"]);
}

#[test]
fn a_part_of_an_answer_leaves_the_call_open() {
    let part = r#"{"type":"tool_result","tool_use_id":"a","content":"x","partial":true}"#;
    assert_eq!(broken_by(&[CALL, part, ANSWER]), [""; 0]);
    let text = r#"{"type":"text","content":"hi"}"#;
    assert_eq!(broken_by(&[CALL, part, text, ANSWER]), ["tool-serial"]);
}

#[test]
fn calls_and_answers_belong_together() {
    let rules = broken(&[INIT, CALL]);
    assert!(rules.contains(&"tool-answered"), "{rules:?}");
    let rules = broken_by(&[ANSWER]);
    assert!(rules.contains(&"tool-result-open"), "{rules:?}");
    let rules = broken_by(&[
        CALL,
        ANSWER,
        CALL,
        r#"{"type":"tool_result","tool_use_id":"a","content":"2"}"#,
    ]);
    assert!(rules.contains(&"tool-id-unique"), "{rules:?}");
}

#[test]
fn usage_is_written_directly_before_the_end() {
    assert_eq!(broken(&[INIT, RESULT, STOP]), ["usage-reported"]);
    let text = r#"{"type":"text","content":"hi"}"#;
    assert_eq!(broken(&[INIT, USAGE, text, RESULT, STOP]), ["usage-reported"]);
    let partly = r#"{"type":"usage","input_tokens":1}"#;
    assert_eq!(broken(&[INIT, partly, RESULT, STOP]), ["usage-fields"]);
}

#[test]
fn nothing_follows_the_end() {
    assert_eq!(broken(&[INIT, USAGE, RESULT]), ["message-stop"]);
    let error = r#"{"type":"error","message":"x"}"#;
    let rules = broken(&[INIT, USAGE, RESULT, error, STOP]);
    assert_eq!(rules, ["result-last", "message-stop"]);
    let rules = broken(&[INIT, r#"{"type":"text","content":"hi"}"#]);
    assert!(rules.contains(&"result-present"), "{rules:?}");
}

#[test]
fn a_result_has_its_fields() {
    for result in [
        r#"{"type":"result","subtype":"success"}"#,
        r#"{"type":"result","is_error":false,"errors":[{"message":"x"}]}"#,
        r#"{"type":"result","is_error":false,"duration_ms":"long"}"#,
        r#"{"type":"result","is_error":false,"total_cost_usd":"much"}"#,
    ] {
        assert_eq!(broken(&[INIT, USAGE, result, STOP]), ["result-fields"], "{result}");
    }
}

#[test]
fn an_interrupt_occurs_once_and_is_no_success() {
    let interrupt = r#"{"type":"interrupt"}"#;
    assert_eq!(broken_by(&[interrupt]), ["interrupt-result"]);
    let cancelled = r#"{"type":"result","is_error":true,"subtype":"cancelled"}"#;
    assert_eq!(broken(&[INIT, interrupt, cancelled, STOP]), [""; 0]);
    assert_eq!(broken(&[INIT, interrupt, interrupt, cancelled, STOP]), ["interrupt-once"]);
}

#[test]
fn records_that_yume_would_drop_are_found() {
    let text = r#"{"type":"text","content":"ha"}"#;
    assert_eq!(broken_by(&[text, text]), ["text-unique"]);
}

#[test]
fn only_a_turn_that_waits_may_leave_a_call_open() {
    let rests = r#"{"type":"result","is_error":false,"subtype":"waiting_for_client"}"#;
    let call = CALL.replace("\"input\"", "\"executor\":\"client\",\"input\"");
    assert_eq!(broken(&[INIT, &call, rests, STOP, ANSWER, USAGE, RESULT, STOP]), [""; 0]);
    let rules = broken(&[INIT, &call, USAGE, RESULT, STOP]);
    assert!(rules.contains(&"tool-serial"), "{rules:?}");
    // Text before the turn waits is allowed; text before an answer is not.
    let text = r#"{"type":"text","content":"Your turn."}"#;
    assert_eq!(broken(&[INIT, &call, text, rests, STOP, ANSWER, USAGE, RESULT, STOP]), [""; 0]);
    assert_eq!(broken(&[INIT, &call, text, ANSWER, USAGE, RESULT, STOP]), ["tool-serial"]);
    // Only a client call may be left open.
    let rules = broken(&[INIT, CALL, rests, STOP, ANSWER, USAGE, RESULT, STOP]);
    assert!(rules.contains(&"tool-serial"), "{rules:?}");
}

#[test]
fn an_answer_that_is_an_error_has_a_cause() {
    let silent = r#"{"type":"tool_result","tool_use_id":"a","content":"","is_error":true}"#;
    assert_eq!(broken_by(&[CALL, silent]), ["error-text"]);
}

#[test]
fn a_mode_is_one_of_the_contract_or_of_claude() {
    let init = INIT.replace("default", "yolo");
    assert_eq!(broken(&[&init, USAGE, RESULT, STOP]), ["permission-mode"]);
}
