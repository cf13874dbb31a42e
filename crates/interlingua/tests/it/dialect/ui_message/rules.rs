//! Every rule of `ui-message` finds its violations, and nothing else.

use crate::support::rules::broken_by_server_events;

const START: &str = r#"{"type":"start"}"#;
const STEP: &str = r#"{"type":"start-step"}"#;
const STEP_END: &str = r#"{"type":"finish-step"}"#;
const STOP: &str = r#"{"type":"finish","finishReason":"stop"}"#;
const TEXT: &str = r#"{"type":"text-start","id":"b"}"#;
const TEXT_END: &str = r#"{"type":"text-end","id":"b"}"#;
const INPUT: &str = r#"{"type":"tool-input-start","toolCallId":"c","toolName":"t","providerExecuted":true,"dynamic":true}"#;
const CALL: &str = r#"{"type":"tool-input-available","toolCallId":"c","toolName":"t","input":{},"providerExecuted":true,"dynamic":true}"#;
const OUTPUT: &str = r#"{"type":"tool-output-available","toolCallId":"c","output":"","providerExecuted":true,"dynamic":true}"#;
const CLIENT_CALL: &str =
    r#"{"type":"tool-input-available","toolCallId":"c","toolName":"t","input":{}}"#;

/// The names of the rules that some chunks break, in order and without repetition.
fn broken(chunks: &[&str]) -> Vec<&'static str> {
    broken_by_server_events("ui-message", [chunks, &["[DONE]"]].concat())
}

/// As [`broken`], for chunks within one step of a message.
fn broken_in_a_step(chunks: &[&str]) -> Vec<&'static str> {
    let mut all = vec![START, STEP];
    all.extend_from_slice(chunks);
    all.extend([STEP_END, STOP]);
    broken(&all)
}

#[test]
fn a_message_that_keeps_the_rules_has_no_findings() {
    assert!(broken(&[START, STOP]).is_empty());
    assert!(broken_in_a_step(&[TEXT, TEXT_END, INPUT, CALL, OUTPUT]).is_empty());
    let more = [
        r#"{"type":"reasoning-start","id":"r"}"#,
        r#"{"type":"reasoning-delta","id":"r","delta":"x"}"#,
        r#"{"type":"reasoning-end","id":"r","providerMetadata":{"a":{"b":1}}}"#,
        CALL,
        OUTPUT,
        r#"{"type":"file","url":"data:,","mediaType":"image/png"}"#,
        r#"{"type":"source-url","sourceId":"s","url":"u","title":"t"}"#,
        r#"{"type":"source-document","sourceId":"s","mediaType":"m","title":"t"}"#,
        r#"{"type":"data-plan","id":"plan","data":null,"transient":true}"#,
        r#"{"type":"message-metadata","messageMetadata":{}}"#,
        r#"{"type":"abort","reason":"r"}"#,
    ];
    assert!(broken_in_a_step(&more).is_empty());
}

#[test]
fn a_message_starts_once_and_first() {
    assert_eq!(broken(&[STOP]), ["start-first"]);
    assert_eq!(broken(&[START, START, STOP]), ["start-first"]);
    assert_eq!(broken(&[]), ["start-first", "one-finish"]);
}

#[test]
fn a_message_finishes_once_and_last() {
    assert_eq!(broken(&[START]), ["one-finish"]);
    assert_eq!(broken(&[START, STOP, STOP]), ["one-finish"]);
    let late = r#"{"type":"data-x","data":1}"#;
    assert_eq!(broken(&[START, STOP, late]), ["finish-last"]);
}

#[test]
fn an_unknown_chunk_makes_the_client_fail() {
    for kind in ["ping", "custom", "reset-step", "tool-call"] {
        let chunk = format!(r#"{{"type":"{kind}"}}"#);
        assert_eq!(broken(&[START, &chunk, STOP]), ["known-chunk"]);
    }
}

#[test]
fn fields_are_those_of_the_strictest_client() {
    for chunk in [
        r#"{"type":"error"}"#,
        r#"{"type":"error","errorText":"x","code":1}"#,
        r#"{"type":"abort","reason":null}"#,
        r#"{"type":"message-metadata","messageMetadata":1}"#,
        r#"{"type":"data-x"}"#,
        r#"{"type":"data-x","data":1,"transient":null}"#,
    ] {
        assert_eq!(broken(&[START, chunk, STOP]), ["chunk-fields"], "{chunk}");
    }
    let metadata = r#"{"type":"text-end","id":"b","providerMetadata":{"a":1}}"#;
    assert_eq!(broken_in_a_step(&[TEXT, metadata]), ["chunk-fields"]);
    let reason = r#"{"type":"finish","finishReason":"interrupted"}"#;
    assert_eq!(broken(&[START, reason]), ["chunk-fields"]);
}

#[test]
fn no_field_names_a_prototype() {
    for data in [r#"{"__proto__":1}"#, r#"[{"constructor":{"prototype":1}}]"#] {
        let chunk = format!(r#"{{"type":"data-x","data":{data}}}"#);
        assert_eq!(broken(&[START, &chunk, STOP]), ["no-prototypes"]);
    }
}

#[test]
fn steps_do_not_overlap() {
    assert_eq!(broken(&[START, STEP, STEP, STEP_END, STOP]), ["steps-in-order"]);
    assert_eq!(broken(&[START, STEP_END, STOP]), ["steps-in-order"]);
    assert_eq!(broken(&[START, STEP, STOP]), ["steps-in-order"]);
}

#[test]
fn content_of_the_model_is_in_a_step() {
    assert_eq!(broken(&[START, TEXT, TEXT_END, STOP]), ["in-a-step"]);
    assert_eq!(broken(&[START, CALL, OUTPUT, STOP]), ["in-a-step"]);
}

#[test]
fn blocks_are_opened_once_and_closed_before_the_step_ends() {
    let delta = r#"{"type":"text-delta","id":"b","delta":"x"}"#;
    assert_eq!(broken_in_a_step(&[delta]), ["block-open"]);
    assert_eq!(broken_in_a_step(&[TEXT, TEXT_END, delta]), ["block-open"]);
    let of_other_kind = r#"{"type":"reasoning-end","id":"b"}"#;
    assert_eq!(broken_in_a_step(&[TEXT, of_other_kind, TEXT_END]), ["block-open"]);
    assert_eq!(broken_in_a_step(&[TEXT, TEXT_END, TEXT, TEXT_END]), ["fresh-block-id"]);
    assert_eq!(broken_in_a_step(&[TEXT]), ["block-closed"]);
}

#[test]
fn an_input_is_open_while_it_is_streamed() {
    let delta = r#"{"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"x"}"#;
    assert_eq!(broken_in_a_step(&[CALL, delta, OUTPUT]), ["input-open"]);
    assert_eq!(
        broken_in_a_step(&[INPUT, delta]),
        ["input-known", "call-answered", "input-known", "call-answered"]
    );
}

#[test]
fn a_call_is_started_once_with_the_same_flags_on_every_chunk() {
    assert_eq!(broken_in_a_step(&[CALL, CALL, OUTPUT]), ["fresh-call-id"]);
    assert_eq!(broken_in_a_step(&[INPUT, CLIENT_CALL, OUTPUT]), ["same-flags"]);
    let without = OUTPUT.replace(r#","dynamic":true"#, "");
    assert_eq!(broken_in_a_step(&[CALL, &without]), ["same-flags"]);
    let declared = CALL.replace(r#","dynamic":true"#, "");
    assert_eq!(broken_in_a_step(&[&declared, &without]), ["dynamic-call"]);
}

#[test]
fn a_call_is_answered_once() {
    assert_eq!(broken_in_a_step(&[OUTPUT]), ["answer-to-a-call"]);
    assert_eq!(broken_in_a_step(&[CALL, OUTPUT, OUTPUT]), ["one-answer"]);
    assert_eq!(broken_in_a_step(&[CALL]), ["call-answered"]);
    let preliminary = OUTPUT.replace(r#""dynamic":true"#, r#""dynamic":true,"preliminary":true"#);
    assert!(broken_in_a_step(&[CALL, &preliminary, OUTPUT]).is_empty());
    let approval = r#"{"type":"tool-approval-request","approvalId":"a","toolCallId":"x"}"#;
    assert_eq!(broken_in_a_step(&[approval]), ["answer-to-a-call"]);
}

#[test]
fn a_call_with_an_undecided_approval_has_no_output() {
    let approval = r#"{"type":"tool-approval-request","approvalId":"a","toolCallId":"c"}"#;
    assert_eq!(broken_in_a_step(&[CALL, approval, OUTPUT]), ["approval-waits"]);
    let waits = [START, STEP, CLIENT_CALL, approval, STEP_END];
    let tool_calls = STOP.replace("stop", "tool-calls");
    assert!(broken(&[&waits[..], &[&tool_calls]].concat()).is_empty());
}

#[test]
fn the_finish_reason_matches_waiting_calls_and_errors() {
    let finish = |reason: &str| STOP.replace("stop", reason);
    let waiting = [START, STEP, CLIENT_CALL, STEP_END];
    let with = |reason: &str| broken(&[&waiting[..], &[&finish(reason)]].concat());
    assert_eq!(with("stop"), ["tool-calls-pending"]);
    assert!(with("tool-calls").is_empty());
    assert_eq!(broken(&[START, &finish("tool-calls")]), ["tool-calls-pending"]);
    assert_eq!(broken(&[START, &finish("error")]), ["error-reported"]);
    let error = r#"{"type":"error","errorText":"x"}"#;
    assert!(broken(&[START, error, &finish("error")]).is_empty());
}
