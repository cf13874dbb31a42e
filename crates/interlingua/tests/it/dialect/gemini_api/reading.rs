//! What is read from a response: its parts, its counts, its end, its errors, and what is not known.

use interlingua::Exit;
use interlingua::event::ErrorClass;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::records::{of_type, text_of};
use crate::support::{self, dialect, translate_chunks, translate_lines};

/// A chunk with these parts.
pub fn chunk(parts: Value) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": "m", "responseId": "r",
    })
}

/// The last chunk of a response.
pub fn last(parts: Value, reason: &str) -> Value {
    let mut chunk = chunk(parts);
    chunk["candidates"][0]["finishReason"] = json!(reason);
    chunk["usageMetadata"] =
        json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
    chunk
}

pub fn stream(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// The array that `streamGenerateContent` answers with.
fn array(chunks: &[Value]) -> String {
    let texts: Vec<_> =
        chunks.iter().map(|chunk| serde_json::to_string_pretty(chunk).unwrap()).collect();
    format!("[{}\n]\n", texts.join("\n,\r\n"))
}

fn read_bytes(input: &str) -> Vec<Value> {
    let from = Some(dialect("gemini-api"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], &Exit::default()).records()
}

fn read(chunks: &[Value]) -> Vec<Value> {
    read_bytes(&stream(chunks))
}

fn turn(chunks: &[Value]) -> Value {
    let events = read(chunks);
    let ends = of_type(&events, "turn_ended");
    assert_eq!(ends.len(), 1);
    ends[0].clone()
}

fn hi() -> Value {
    json!([{"text": "Hi"}])
}

fn call() -> Value {
    json!([{"functionCall": {"name": "t", "args": {"x": 1}}}])
}

#[test]
fn the_finish_reason_decides_the_outcome() {
    for (reason, outcome, class) in [
        ("STOP", "completed", None),
        ("MAX_TOKENS", "limit_reached", None),
        ("SAFETY", "refused", Some("refusal")),
        ("RECITATION", "refused", Some("refusal")),
        ("LANGUAGE", "refused", Some("refusal")),
        ("BLOCKLIST", "refused", Some("refusal")),
        ("PROHIBITED_CONTENT", "refused", Some("refusal")),
        ("SPII", "refused", Some("refusal")),
        ("IMAGE_SAFETY", "refused", Some("refusal")),
        ("OTHER", "failed", Some("internal")),
        ("MALFORMED_FUNCTION_CALL", "failed", Some("internal")),
        ("UNEXPECTED_TOOL_CALL", "failed", Some("internal")),
        ("TOO_MANY_TOOL_CALLS", "failed", Some("internal")),
        ("MALFORMED_RESPONSE", "failed", Some("internal")),
        ("NO_IMAGE", "failed", Some("internal")),
        ("CONTINUATION", "waiting_for_client", None),
        ("BRAND_NEW", "completed", None),
    ] {
        let turn = turn(&[last(hi(), reason)]);
        assert_eq!((&turn["outcome"], &turn["stop_reason"]), (&json!(outcome), &json!(reason)));
        assert_eq!(turn.get("class").and_then(Value::as_str), class, "{reason}");
        let has_cause = turn.get("cause").is_some();
        assert_eq!(has_cause, !["completed", "waiting_for_client"].contains(&outcome), "{reason}");
        let is_beginning = turn.get("to_be_continued").is_some_and(|it| *it == json!(true));
        assert_eq!(is_beginning, reason == "CONTINUATION", "{reason}");
    }
}

#[test]
fn a_stop_with_calls_waits_for_the_client() {
    for reason in ["STOP", "BRAND_NEW"] {
        let events = read(&[chunk(call()), last(json!([{"text": ""}]), reason)]);
        assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "waiting_for_client");
        assert!(of_type(&events, "tool_ended").is_empty());
    }
    for reason in ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"] {
        let events = read(&[chunk(call()), last(json!([]), reason)]);
        assert_eq!(of_type(&events, "tool_ended")[0]["status"], "abandoned", "{reason}");
    }
}

#[test]
fn a_response_without_a_finish_reason_was_cut_off() {
    let turn = turn(&[chunk(hi()), chunk(hi())]);
    assert_eq!((&turn["outcome"], &turn["class"]), (&json!("failed"), &json!("network")));
}

#[test]
fn calls_without_an_id_are_named_by_their_number_in_the_session() {
    let two = json!([
        {"functionCall": {"name": "a"}},
        {"functionCall": {"id": "own", "name": "b", "args": {}}},
        {"functionCall": {"name": "c", "args": {"x": 1}}},
    ]);
    let mut second = last(call(), "STOP");
    second["responseId"] = json!("another");
    let events = read(&[last(two, "STOP"), second]);
    let started = of_type(&events, "tool_started");
    let calls: Vec<_> =
        started.iter().map(|it| (it["call"].clone(), it["input"].clone())).collect();
    let expected = [
        (json!("call_gemini_1"), json!({})),
        (json!("own"), json!({})),
        (json!("call_gemini_2"), json!({"x": 1})),
        (json!("call_gemini_3"), json!({"x": 1})),
    ];
    assert_eq!(calls, expected);
    // The answers to the calls of the first response were in the second request.
    let ended: Vec<_> =
        of_type(&events, "tool_ended").iter().map(|it| it["call"].clone()).collect();
    assert_eq!(ended, ["call_gemini_1", "own", "call_gemini_2"]);
}

#[test]
fn counts_are_replaced_and_split_as_ours_are() {
    let mut first = chunk(hi());
    first["usageMetadata"] =
        json!({"promptTokenCount": 100, "cachedContentTokenCount": 40, "thoughtsTokenCount": 7});
    let mut end = last(hi(), "STOP");
    end["usageMetadata"] = json!({
        "promptTokenCount": 100, "candidatesTokenCount": 5, "thoughtsTokenCount": 9,
        "toolUsePromptTokenCount": 3, "totalTokenCount": 117,
    });
    let expected = json!({
        "scope": "turn", "input": 63, "cache_read": 40, "output": 14, "reasoning": 9, "total": 117,
    });
    assert_eq!(turn(&[first.clone(), first, end])["usage"], expected);
    let mut end = last(hi(), "STOP");
    end.as_object_mut().unwrap().remove("usageMetadata");
    assert!(turn(&[end]).get("usage").is_none());
}

#[test]
fn thoughts_and_text_are_blocks_of_their_own() {
    let thought = |text: &str| json!([{"text": text, "thought": true}]);
    let signed = json!([{"text": "", "thoughtSignature": "s"}]);
    let events = read(&[
        chunk(thought("a")),
        chunk(thought("b")),
        chunk(hi()),
        chunk(json!([{"text": " you"}])),
        last(signed, "STOP"),
    ]);
    let ends = of_type(&events, "block_ended");
    let kinds: Vec<_> =
        ends.iter().map(|end| (end["kind"].clone(), end.get("signature"))).collect();
    assert_eq!(kinds, [(json!("reasoning"), None), (json!("text"), Some(&json!("s")))]);
    assert_eq!(text_of(&events), "abHi you");
}

#[test]
fn the_signature_of_a_call_is_kept() {
    let part = json!([{"functionCall": {"id": "c", "name": "t"}, "thoughtSignature": "s"}]);
    let events = read(&[last(part, "STOP")]);
    let kept = of_type(&events, "native")[0];
    assert_eq!(kept["raw"], json!({"call": "c", "thoughtSignature": "s"}));
}

#[test]
fn a_blocked_prompt_is_a_refusal() {
    let chunk = json!({
        "promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9},
        "modelVersion": "m", "responseId": "r",
    });
    let turn = turn(&[chunk]);
    assert_eq!((&turn["outcome"], &turn["reason"]), (&json!("refused"), &json!("SAFETY")));
    assert_eq!(turn["usage"], json!({"scope": "turn", "input": 9}));
}

#[test]
fn errors_have_their_class_and_whether_they_may_be_retried() {
    let of = |quota: &str| json!([{"violations": [{"quotaId": quota}]}]);
    for (code, status, details, class, retried) in [
        (400, "INVALID_ARGUMENT", json!([]), "bad_request", false),
        (400, "INVALID_ARGUMENT", json!([{"reason": "API_KEY_INVALID"}]), "authentication", false),
        (400, "FAILED_PRECONDITION", json!([]), "permission", false),
        (401, "UNAUTHENTICATED", json!([]), "authentication", false),
        (403, "PERMISSION_DENIED", json!([]), "permission", false),
        (404, "NOT_FOUND", json!([]), "not_found", false),
        (429, "RESOURCE_EXHAUSTED", json!([]), "overloaded", true),
        (429, "RESOURCE_EXHAUSTED", json!([{"retryDelay": "3s"}]), "rate_limit", true),
        (429, "RESOURCE_EXHAUSTED", of("RequestsPerMinute"), "rate_limit", true),
        (429, "RESOURCE_EXHAUSTED", of("RequestsPerDayPerProject"), "quota", false),
        (500, "INTERNAL", json!([]), "internal", true),
        (503, "UNAVAILABLE", json!([]), "overloaded", true),
        (504, "DEADLINE_EXCEEDED", json!([]), "timed_out", true),
        (529, "BRAND_NEW", json!([]), "overloaded", true),
    ] {
        let body = json!({
            "error": {"code": code, "message": "why", "status": status, "details": details},
        });
        let alone = body.to_string() + "\n";
        let pretty = serde_json::to_string_pretty(&body).unwrap();
        let after = stream(&[chunk(hi())]);
        let inputs = [
            alone,
            pretty.clone(),
            array(std::slice::from_ref(&body)),
            stream(std::slice::from_ref(&body)),
            after.clone() + &stream(&[body]),
            after + &pretty,
        ];
        for input in inputs {
            let events = read_bytes(&input);
            let error = of_type(&events, "error")[0];
            assert_eq!(
                (&error["class"], &error["code"]),
                (&json!(class), &json!(status)),
                "{input}"
            );
            let turn = of_type(&events, "turn_ended")[0];
            assert_eq!((&turn["outcome"], &turn["class"]), (&json!("failed"), &json!(class)));
            assert_eq!((&turn["http_status"], &turn["cause"]), (&json!(code), &json!("why")));
            assert_eq!(ErrorClass::from(class).may_be_retried(), retried, "{status}");
        }
    }
    let long = json!({"error": {
        "code": 400, "status": "INVALID_ARGUMENT",
        "message": "The input token count (2) exceeds the maximum number of tokens allowed (1).",
    }});
    assert_eq!(turn(&[long])["class"], "context_overflow");
}

#[test]
fn what_is_unknown_is_kept_and_costs_nothing_else() {
    let odd = json!([{"hologram": {"depth": 3}}, {"text": "Hi"}]);
    let partial = json!([{"functionCall": {"name": "t", "willContinue": true}}]);
    let mut second = chunk(json!([{"text": "other"}]));
    second["candidates"][0]["index"] = json!(1);
    let events = read(&[
        chunk(odd),
        chunk(partial),
        second,
        json!({"hello": 1}),
        last(json!([{"text": "."}]), "STOP"),
    ]);
    let unknown: Vec<_> = of_type(&events, "unknown").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(unknown, ["part/hologram", "part/functionCall/partialArgs", ""]);
    assert_eq!(of_type(&events, "unknown")[0]["raw"], json!({"depth": 3}));
    assert_eq!(of_type(&events, "native")[0]["name"], "candidate");
    assert!(of_type(&events, "tool_started").is_empty());
    assert_eq!(text_of(&events), "Hi.");
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "completed");
}

#[test]
fn a_chunk_after_the_finish_reason_begins_no_turn() {
    let counts = json!({
        "usageMetadata": {"promptTokenCount": 1}, "modelVersion": "m", "responseId": "r",
    });
    let mut other = last(hi(), "STOP");
    other["candidates"][0]["index"] = json!(1);
    let repeated = last(json!([]), "STOP");
    let mut response = [last(hi(), "STOP"), counts, other, repeated];
    assert_eq!(of_type(&read(&response), "turn_started").len(), 1);
    for chunk in &mut response {
        chunk.as_object_mut().unwrap().remove("responseId");
    }
    assert_eq!(of_type(&read(&response), "turn_started").len(), 1);
}

#[test]
fn a_response_that_another_one_cuts_off_has_failed() {
    let mut second = last(hi(), "STOP");
    second["responseId"] = json!("another");
    let events = read(&[chunk(call()), second]);
    let ends = of_type(&events, "turn_ended");
    let outcomes: Vec<_> = ends.iter().map(|end| end["outcome"].clone()).collect();
    assert_eq!(outcomes, ["failed", "completed"]);
    assert_eq!(of_type(&events, "tool_ended")[0]["status"], "abandoned");
}

#[test]
fn odd_json_does_not_lose_a_record() {
    let lines = [
        r#"{"candidates":[],"candidates":[{"content":{"parts":[{"text":"x","text":"a\ud83db"}]},"finishReason":"STOP"}],"responseId":"r"}"#,
    ];
    let events = translate_lines("gemini-api", "events", &lines).records();
    assert_eq!(text_of(&events), "a\u{fffd}b");
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "completed");
}

proptest! {
    #![proptest_config(support::cases(64))]

    #[test]
    fn every_form_and_every_split_give_the_same_content(
        texts in prop::collection::vec("[a-z\\[\\]{}\", é😀\\n]{0,12}", 1..5),
        size in 1_usize..300,
    ) {
        let mut chunks: Vec<_> = texts.iter().map(|text| chunk(json!([{"text": text}]))).collect();
        chunks.push(last(call(), "STOP"));
        let from = Some(dialect("gemini-api"));
        for input in [stream(&chunks), array(&chunks), json!(chunks).to_string()] {
            let pieces = input.as_bytes().chunks(size);
            let events = translate_chunks(from, dialect("events"), pieces, &Exit::default()).records();
            prop_assert_eq!(text_of(&events), texts.concat());
            prop_assert_eq!(&of_type(&events, "tool_started")[0]["input"], &json!({"x": 1}));
            prop_assert_eq!(&of_type(&events, "turn_ended")[0]["outcome"], "waiting_for_client");
        }
    }
}
