//! Every rule of `ai-sdk` finds its violations, and nothing else.

use crate::support::rules::broken_by_lines;

const START: &str = r#"{"type":"stream-start","warnings":[]}"#;
const STOP: &str = r#"{"type":"finish","finishReason":{"unified":"stop","raw":"end_turn"},"usage":{"inputTokens":{},"outputTokens":{}}}"#;
const CALL: &str = r#"{"type":"tool-call","toolCallId":"c","toolName":"Bash","input":"{}","providerExecuted":true,"dynamic":true}"#;
const RESULT: &str =
    r#"{"type":"tool-result","toolCallId":"c","toolName":"Bash","result":"","dynamic":true}"#;
const CLIENT_CALL: &str = r#"{"type":"tool-call","toolCallId":"c","toolName":"ask","input":"{}"}"#;

fn finish(unified: &str) -> String {
    STOP.replace("stop", unified)
}

/// The names of the rules that some parts break, in order and without repetition.
fn broken(parts: &[&str]) -> Vec<&'static str> {
    broken_by_lines("ai-sdk", parts)
}

/// As [`broken`], for parts between a start and a normal end.
fn broken_between(parts: &[&str]) -> Vec<&'static str> {
    broken(&[&[START], parts, &[STOP]].concat())
}

#[test]
fn a_valid_stream_breaks_no_rule() {
    let parts = [
        r#"{"type":"response-metadata","id":"s","modelId":"m"}"#,
        r#"{"type":"text-start","id":"b0"}"#,
        r#"{"type":"reasoning-start","id":"b1"}"#,
        r#"{"type":"text-delta","id":"b0","delta":"a"}"#,
        r#"{"type":"reasoning-delta","id":"b1","delta":"a"}"#,
        r#"{"type":"reasoning-end","id":"b1","providerMetadata":{"interlingua":{"signature":"x"}}}"#,
        r#"{"type":"text-end","id":"b0"}"#,
        r#"{"type":"tool-input-start","id":"c","toolName":"Bash","providerExecuted":true,"dynamic":true}"#,
        r#"{"type":"tool-input-delta","id":"c","delta":"{}"}"#,
        r#"{"type":"tool-input-end","id":"c"}"#,
        CALL,
        RESULT,
    ];
    assert_eq!(broken_between(&parts), [""; 0]);
    assert_eq!(broken(&[START, CLIENT_CALL, &finish("tool-calls")]), [""; 0]);
    let error = r#"{"type":"error","error":{"message":"no"}}"#;
    assert_eq!(broken(&[START, error, &finish("error")]), [""; 0]);
}

#[test]
fn stream_start_is_first_and_occurs_once() {
    assert_eq!(broken(&[STOP]), ["stream-start-first"]);
    assert_eq!(broken(&[START, START, STOP]), ["stream-start-first"]);
    assert_eq!(broken(&[]), ["stream-start-first", "one-finish"]);
}

#[test]
fn finish_is_last_and_occurs_once() {
    assert_eq!(broken(&[START]), ["one-finish"]);
    assert_eq!(broken(&[START, STOP, STOP]), ["one-finish"]);
    let late = r#"{"type":"response-metadata"}"#;
    assert_eq!(broken(&[START, STOP, late]), ["finish-last"]);
}

#[test]
fn every_part_is_known() {
    assert_eq!(broken_between(&[r#"{"type":"ping"}"#]), ["known-part"]);
}

#[test]
fn a_part_has_its_fields_and_no_others() {
    for part in [
        r#"{"type":"response-metadata","id":"s","headers":{}}"#,
        r#"{"type":"response-metadata","id":null}"#,
        r#"{"type":"raw"}"#,
        r#"{"type":"error","error":null}"#,
        r#"{"type":"error","error":"e","providerMetadata":{"interlingua":{}}}"#,
        r#"{"type":"file","mediaType":"image/png","data":7}"#,
        r#"{"type":"file","mediaType":"image/png","data":"","providerMetadata":{"a":1}}"#,
    ] {
        assert_eq!(broken_between(&[part]), ["part-fields"], "{part}");
    }
    let start = r#"{"type":"stream-start","warnings":[{"type":"strange"}]}"#;
    assert_eq!(broken(&[start, STOP]), ["part-fields"]);
    let result = RESULT.replace(r#""result":"""#, r#""result":null"#);
    assert_eq!(broken_between(&[CALL, &result]), ["part-fields"]);
}

#[test]
fn a_block_has_a_fresh_id_and_is_open_and_is_closed() {
    let (start, end) = (r#"{"type":"text-start","id":"b"}"#, r#"{"type":"text-end","id":"b"}"#);
    let delta = r#"{"type":"text-delta","id":"b","delta":"a"}"#;
    let reasoning = r#"{"type":"reasoning-delta","id":"b","delta":"a"}"#;
    assert_eq!(broken_between(&[start, end, start, end]), ["fresh-block-id"]);
    assert_eq!(broken_between(&[delta]), ["block-open"]);
    assert_eq!(broken_between(&[start, end, delta]), ["block-open"]);
    assert_eq!(broken_between(&[start, reasoning, end]), ["block-open"]);
    assert_eq!(broken_between(&[start, delta]), ["block-closed"]);
    assert_eq!(broken_between(&[r#"{"type":"text-start"}"#]), ["part-fields", "block-closed"]);
}

#[test]
fn an_input_is_open_and_closed_and_called() {
    let start = r#"{"type":"tool-input-start","id":"c","toolName":"Bash"}"#;
    let end = r#"{"type":"tool-input-end","id":"c"}"#;
    assert_eq!(broken_between(&[end]), ["input-open"]);
    assert_eq!(broken_between(&[start, CALL, RESULT]), ["input-open"]);
    assert_eq!(broken_between(&[start, end]), ["input-called"]);
    assert_eq!(broken_between(&[CALL, start, end, RESULT]), ["fresh-call-id", "input-open"]);
}

#[test]
fn a_call_has_a_fresh_id_and_a_json_object() {
    assert_eq!(broken_between(&[CALL, RESULT, CALL, RESULT]), ["fresh-call-id"]);
    for input in [r#""""#, r#""[]""#, r#""no""#] {
        let call = CALL.replace(r#""{}""#, input);
        assert_eq!(broken_between(&[&call, RESULT]), ["call-input"], "{input}");
    }
    let flat = CALL.replace(r#""input":"{}""#, r#""args":{}"#);
    assert_eq!(broken_between(&[&flat, RESULT]), ["part-fields", "call-input"]);
    let undeclared = CALL.replace(r#","dynamic":true"#, "");
    assert_eq!(broken_between(&[&undeclared, RESULT]), ["dynamic-call"]);
}

#[test]
fn a_call_of_the_agents_is_answered_once() {
    assert_eq!(broken_between(&[CALL]), ["call-answered"]);
    assert_eq!(broken_between(&[CALL, RESULT, RESULT]), ["one-result"]);
    assert_eq!(broken_between(&[RESULT]), ["result-of-a-call"]);
    let other = RESULT.replace("Bash", "Read");
    assert_eq!(broken_between(&[CALL, &other]), ["result-of-a-call"]);
    let approval = r#"{"type":"tool-approval-request","approvalId":"a","toolCallId":"x"}"#;
    assert_eq!(broken_between(&[approval]), ["result-of-a-call"]);
}

#[test]
fn tool_calls_means_that_the_client_must_answer() {
    assert_eq!(broken(&[START, &finish("tool-calls")]), ["tool-calls-pending"]);
    assert_eq!(broken(&[START, CLIENT_CALL, STOP]), ["tool-calls-pending"]);
}

#[test]
fn a_finish_with_error_follows_an_error() {
    assert_eq!(broken(&[START, &finish("error")]), ["error-reported"]);
}

#[test]
fn a_finish_has_a_reason_and_counts() {
    assert_eq!(broken(&[START, &finish("done")]), ["finish-reason"]);
    let raw = STOP.replace(r#""end_turn""#, "null");
    assert_eq!(broken(&[START, &raw]), ["finish-reason"]);
    let flat = STOP.replace(r#"{"unified":"stop","raw":"end_turn"}"#, r#""stop""#);
    assert_eq!(broken(&[START, &flat]), ["part-fields", "finish-reason"]);
    let counts = STOP.replace(r#""inputTokens":{}"#, r#""inputTokens":0"#);
    assert_eq!(broken(&[START, &counts]), ["finish-usage"]);
    let null = STOP.replace(r#""inputTokens":{}"#, r#""inputTokens":{"total":null}"#);
    assert_eq!(broken(&[START, &null]), ["finish-usage"]);
    let other = STOP.replace(r#""inputTokens":{}"#, r#""inputTokens":{"all":1}"#);
    assert_eq!(broken(&[START, &other]), ["finish-usage"]);
}

#[test]
fn a_failed_call_has_a_message() {
    let failed = RESULT.replace(r#""dynamic""#, r#""isError":true,"dynamic""#);
    assert_eq!(broken_between(&[CALL, &failed]), ["failure-text"]);
}

#[test]
fn version_4_has_parts_that_version_3_does_not_know() {
    for (part, broken_in_3) in [
        (r#"{"type":"ping"}"#, "known-part"),
        (r#"{"type":"custom","kind":"a.b","providerMetadata":{"a":{}}}"#, "known-part"),
        (
            r#"{"type":"reasoning-file","mediaType":"image/png","data":{"type":"data","data":""}}"#,
            "known-part",
        ),
        (
            r#"{"type":"file","mediaType":"image/png","data":{"type":"url","url":"u"}}"#,
            "part-fields",
        ),
    ] {
        assert_eq!(broken_by_lines("ai-sdk-v4", [START, part, STOP]), [""; 0], "{part}");
        assert_eq!(broken_between(&[part]), [broken_in_3], "{part}");
    }
    let start =
        r#"{"type":"stream-start","warnings":[{"type":"deprecated","setting":"s","message":"m"}]}"#;
    let cited =
        [r#"{"type":"text-start","id":"b"}"#, r#"{"type":"text-end","id":"b","citations":[]}"#];
    let parts = [start, cited[0], cited[1], &finish("interrupted")];
    assert_eq!(broken_by_lines("ai-sdk-v4", parts), [""; 0]);
    assert_eq!(broken(&parts), ["part-fields", "finish-reason"]);
}

#[test]
fn version_4_has_rules_too() {
    for part in [
        r#"{"type":"file","mediaType":"image/png","data":"AA=="}"#,
        r#"{"type":"file","mediaType":"image/png","data":{"type":"data"}}"#,
        r#"{"type":"custom","kind":"no-point"}"#,
        r#"{"type":"ping","id":"x"}"#,
    ] {
        assert_eq!(broken_by_lines("ai-sdk-v4", [START, part, STOP]), ["part-fields"], "{part}");
    }
    assert_eq!(broken_by_lines("ai-sdk-v4", [START, CALL, STOP]), ["call-answered"]);
}
