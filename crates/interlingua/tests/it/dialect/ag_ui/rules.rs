//! Every rule of `ag-ui` finds its violations, and nothing else.

use crate::support::rules::broken_by_server_events;

const START: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const END: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
const TEXT: &str = r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#;
const PIECE: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#;
const TEXT_END: &str = r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#;
const CALL: &str = r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"t"}"#;
const CALL_END: &str = r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#;
const RESULT: &str =
    r#"{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":"","role":"tool"}"#;
const SUBAGENT: &str = r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}"#;
const SUBAGENT_END: &str = r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}"#;

/// The names of the rules that some events break, in order and without repetition.
fn broken(events: &[&str]) -> Vec<&'static str> {
    broken_by_server_events("ag-ui", events.iter().copied())
}

fn broken_in_a_run(events: &[&str]) -> Vec<&'static str> {
    broken(&[&[START], events, &[END]].concat())
}

#[test]
fn a_run_that_keeps_the_rules_has_no_findings() {
    let all = [
        r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/session","value":{}}]}"#,
        r#"{"type":"STEP_STARTED","stepName":"1"}"#,
        TEXT,
        PIECE,
        TEXT_END,
        r#"{"type":"REASONING_START","messageId":"r1"}"#,
        r#"{"type":"REASONING_MESSAGE_START","messageId":"r1","role":"reasoning"}"#,
        r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"r1","delta":"x"}"#,
        r#"{"type":"REASONING_MESSAGE_END","messageId":"r1"}"#,
        r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"r1","encryptedValue":"v"}"#,
        r#"{"type":"REASONING_END","messageId":"r1"}"#,
        CALL,
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}"#,
        CALL_END,
        SUBAGENT,
        r#"{"type":"CUSTOM","name":"n","value":null,"subagentRunId":"s"}"#,
        SUBAGENT_END,
        RESULT,
        r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":"PLAN","content":{},"replace":true}"#,
        r#"{"type":"RAW","event":1,"source":"s"}"#,
        r#"{"type":"STEP_FINISHED","stepName":"1"}"#,
    ];
    assert!(broken_in_a_run(&all).is_empty());
    let second = [START, END].map(|event| event.replace(r#""r""#, r#""r2""#));
    assert!(broken(&[START, END, &second[0], &second[1]]).is_empty());
}

#[test]
fn everything_is_in_a_run_that_ends() {
    assert_eq!(broken(&[]), ["in-a-run"]);
    assert_eq!(broken(&[TEXT, START, END]), ["in-a-run"]);
    assert_eq!(broken(&[START]), ["run-ended"]);
    assert_eq!(broken(&[START, END, PIECE]), ["in-a-run"]);
    let other = START.replace(r#""r""#, r#""r2""#);
    assert_eq!(broken(&[START, &other, &END.replace(r#""r""#, r#""r2""#)]), ["run-ended"]);
    assert_eq!(broken(&[START, &END.replace(r#""r""#, r#""other""#)]), ["same-run"]);
}

#[test]
fn an_unknown_event_is_one_that_the_client_drops() {
    for kind in ["RUN_CANCELLED", "THINKING_START", "text"] {
        let event = format!(r#"{{"type":"{kind}"}}"#);
        assert_eq!(broken_in_a_run(&[&event]), ["known-event"]);
    }
}

#[test]
fn fields_are_those_of_the_schemas() {
    for event in [
        r#"{"type":"CUSTOM","name":"n"}"#,
        r#"{"type":"CUSTOM","name":"n","value":1,"extra":1}"#,
        r#"{"type":"CUSTOM","name":"n","value":1,"subagentRunId":null}"#,
        r#"{"type":"RAW","event":1,"metadata":[]}"#,
    ] {
        assert_eq!(broken_in_a_run(&[event]), ["event-fields"], "{event}");
    }
    let tail = |field: &str| END.replace('}', &format!(",{field}}}"));
    for field in [
        r#""outcome":{"type":"done"}"#,
        r#""outcome":null"#,
        r#""result":null"#,
        r#""usage":[{"inputTokens":-1}]"#,
        r#""usage":[{"tokens":1}]"#,
        r#""subagentRunId":"s""#,
    ] {
        assert_eq!(broken(&[START, &tail(field)]), ["event-fields"], "{field}");
    }
    assert!(broken(&[START, &tail(r#""outcome":{"type":"cancelled"}"#)]).is_empty());
}

#[test]
fn ids_are_used_once() {
    assert_eq!(broken(&[START, END, START, END]), ["fresh-id"]);
    assert_eq!(broken_in_a_run(&[TEXT, TEXT_END, TEXT, TEXT_END]), ["fresh-id"]);
    assert_eq!(
        broken_in_a_run(&[
            CALL,
            CALL_END,
            RESULT,
            CALL,
            CALL_END,
            &RESULT.replace(r#""x""#, r#""y""#)
        ]),
        ["fresh-call-id"]
    );
    let same = RESULT.replace(r#""x""#, r#""m""#);
    assert_eq!(broken_in_a_run(&[TEXT, TEXT_END, CALL, CALL_END, &same]), ["fresh-id"]);
}

#[test]
fn messages_are_open_while_they_are_streamed_and_closed_when_the_run_ends() {
    assert_eq!(broken_in_a_run(&[PIECE]), ["message-open"]);
    assert_eq!(broken_in_a_run(&[TEXT, TEXT_END, PIECE]), ["message-open"]);
    assert_eq!(broken_in_a_run(&[TEXT]), ["message-closed"]);
    let alone = r#"{"type":"REASONING_MESSAGE_START","messageId":"q","role":"reasoning"}"#;
    let end = r#"{"type":"REASONING_MESSAGE_END","messageId":"q"}"#;
    assert_eq!(broken_in_a_run(&[alone, end]), ["message-open"]);
    let value = r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"q","encryptedValue":"v"}"#;
    assert_eq!(broken_in_a_run(&[value]), ["value-of-a-message"]);
}

#[test]
fn messages_of_a_sub_agent_are_attributed_to_it() {
    let of_other = PIECE.replace(r#""delta""#, r#""subagentRunId":"s","delta""#);
    assert_eq!(broken_in_a_run(&[TEXT, &of_other, TEXT_END]), ["same-subagent"]);
    let end = CALL_END.replace('}', r#","subagentRunId":"s"}"#);
    assert_eq!(broken_in_a_run(&[CALL, &end, RESULT]), ["same-subagent"]);
}

#[test]
fn a_call_has_an_input_and_one_answer() {
    assert_eq!(broken_in_a_run(&[CALL_END]), ["input-open"]);
    assert_eq!(broken_in_a_run(&[CALL, RESULT]), ["input-open", "input-closed"]);
    assert_eq!(broken_in_a_run(&[RESULT]), ["one-answer"]);
    assert_eq!(broken_in_a_run(&[CALL, CALL_END]), ["call-answered"]);
    let of_client = CALL.replace('}', r#","metadata":{"executor":"client"}}"#);
    assert!(broken_in_a_run(&[&of_client, CALL_END]).is_empty());
}

#[test]
fn steps_are_opened_and_closed_once() {
    let (start, end) =
        (r#"{"type":"STEP_STARTED","stepName":"1"}"#, r#"{"type":"STEP_FINISHED","stepName":"1"}"#);
    assert_eq!(broken_in_a_run(&[start, start, end]), ["steps-in-order"]);
    assert_eq!(broken_in_a_run(&[end]), ["steps-in-order"]);
    assert_eq!(broken_in_a_run(&[start]), ["steps-in-order"]);
}

#[test]
fn a_sub_agent_starts_and_ends_once_in_a_run() {
    assert_eq!(broken_in_a_run(&[SUBAGENT]), ["subagent-once"]);
    assert_eq!(broken_in_a_run(&[SUBAGENT_END]), ["subagent-once"]);
    assert_eq!(
        broken_in_a_run(&[SUBAGENT, SUBAGENT_END, SUBAGENT, SUBAGENT_END]),
        ["subagent-once"]
    );
    let below = SUBAGENT.replace('}', r#","parentSubagentRunId":"nobody"}"#);
    assert_eq!(broken_in_a_run(&[&below, SUBAGENT_END]), ["subagent-once"]);
}

#[test]
fn the_state_of_the_application_is_kept() {
    let snapshot = r#"{"type":"STATE_SNAPSHOT","snapshot":{"session":{}}}"#;
    assert_eq!(broken_in_a_run(&[snapshot]), ["state-kept"]);
    for change in [r#"{"op":"replace","path":"/session","value":1}"#, r#"{"op":"add","value":1}"#] {
        let delta = format!(r#"{{"type":"STATE_DELTA","delta":[{change}]}}"#);
        assert_eq!(broken_in_a_run(&[&delta]), ["event-fields"], "{change}");
    }
}
