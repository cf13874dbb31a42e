//! Responses of Chat Completions, from OpenAI and from servers that differ from it.

use interlingua::Exit;
use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::{dialect, translate_chunks, translate_lines};

fn chunk(delta: Value, reason: Option<&str>) -> String {
    json!({
        "id": "c", "object": "chat.completion.chunk", "model": "m",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
    })
    .to_string()
}

/// The events of a stream of server-sent events.
fn events(stream: &str) -> Vec<Value> {
    let (from, to) = (dialect("openai-chat"), dialect("events"));
    translate_chunks(Some(from), to, [stream.as_bytes()], &Exit::default()).records()
}

fn of_lines(lines: &[String]) -> Vec<Value> {
    translate_lines("openai-chat", "events", lines).records()
}

fn text(records: &[Value], kind: &str) -> String {
    let deltas = records.iter().filter(|event| {
        (event["type"] == "block_delta" || event["type"] == "block") && event["kind"] == kind
    });
    deltas.map(|event| event["text"].as_str().unwrap()).collect()
}

fn ended(records: &[Value]) -> Value {
    let ends = of_type(records, "turn_ended");
    assert_eq!(ends.len(), 1, "{records:#?}");
    ends[0].clone()
}

#[test]
fn comments_and_empty_events_keep_the_connection_alive() {
    let stream = format!(
        ": OPENROUTER PROCESSING\n\n\ndata:\n\ndata: {}\n\n: still there\n\ndata: {}\n\ndata: [DONE]\n\n",
        chunk(json!({"role": "assistant", "content": "Hi"}), None),
        chunk(json!({}), Some("stop")),
    );
    let records = events(&stream);
    assert_eq!(text(&records, "text"), "Hi");
    assert_eq!(ended(&records)["outcome"], "completed");
    assert!(of_type(&records, "unparsed").is_empty());
}

#[test]
fn a_reason_or_the_done_mark_is_the_end_and_without_both_the_stream_was_cut() {
    let hello = format!("data: {}\n\n", chunk(json!({"content": "Hi"}), None));
    let stop = format!("data: {}\n\n", chunk(json!({}), Some("stop")));
    let blank = format!("data: {}\n\n", chunk(json!({}), Some("")));
    let done = "data: [DONE]\n\n";
    let end = |parts: &[&str]| ended(&events(&parts.concat()));
    for parts in
        [&[&*hello, &*stop, done][..], &[&hello, &stop], &[&hello, done], &[&hello, &blank, done]]
    {
        assert_eq!(end(parts)["outcome"], "completed");
        assert!(end(parts).get("synthetic").is_none());
    }
    for parts in [&[&*hello][..], &[&hello, &blank]] {
        let end = end(parts);
        assert_eq!((&end["outcome"], &end["class"]), (&"failed".into(), &"network".into()));
    }
}

#[test]
fn an_error_within_the_stream_is_read_in_every_form() {
    let forms = [
        r#"{"error":{"message":"busy","type":"server_error","param":null,"code":"server_is_overloaded"}}"#,
        r#"{"error":{"message":"busy","code":503}}"#,
        r#"{"error":{"message":"busy","code":"503"}}"#,
        r#"{"error":"busy: the server is overloaded"}"#,
        r#"{"object":"error","message":"busy","type":"ServiceUnavailable","code":503}"#,
        r#"{"type":"error","message":"busy","code":503}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"message":"busy","code":503}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"message":"busy","code":503}}"#,
    ];
    for form in forms {
        let lines = [chunk(json!({"content": "So"}), None), form.to_owned()];
        let records = of_lines(&lines);
        let error = &of_type(&records, "error")[0];
        assert!(error["message"].as_str().unwrap().starts_with("busy"), "{form}");
        let end = ended(&records);
        assert_eq!(
            (&end["outcome"], &end["class"]),
            (&"failed".into(), &"overloaded".into()),
            "{form}"
        );
        assert_eq!(text(&records, "text"), "So");
    }
    let named = events("event: error\ndata: {\"message\":\"busy\",\"code\":503}\n\n");
    assert_eq!(ended(&named)["http_status"], 503);
}

#[test]
fn the_body_of_an_http_error_is_a_failed_turn() {
    let bodies = [
        (
            r#"{"error":{"message":"no","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            "failed",
            "quota",
        ),
        (
            r#"{"error":{"message":"no","type":"invalid_request_error","code":"content_policy_violation"}}"#,
            "refused",
            "refusal",
        ),
        (r#"{"error":{"message":"no","code":"model_not_found"}}"#, "failed", "not_found"),
        (
            "{\n  \"error\": {\n    \"message\": \"no\",\n    \"code\": \"invalid_api_key\"\n  }\n}\n",
            "failed",
            "authentication",
        ),
        (r#"{"detail":"Not Found"}"#, "failed", "not_found"),
        (
            r#"{"detail":[{"loc":["body"],"msg":"the rate limit"},{"msg":"two"}]}"#,
            "failed",
            "rate_limit",
        ),
    ];
    for (body, outcome, class) in bodies {
        let records = events(body);
        let end = ended(&records);
        assert_eq!((&end["outcome"], &end["class"]), (&outcome.into(), &class.into()), "{body}");
        assert!(of_type(&records, "message_started").is_empty());
        assert!(of_type(&records, "unparsed").is_empty(), "{body}");
    }
}

#[test]
fn a_page_or_nothing_is_no_success() {
    for input in ["<html>Bad gateway</html>\n", "", "data: [DONE]\n\n", "\n\n"] {
        assert_eq!(ended(&events(input))["outcome"], "failed", "{input}");
    }
}

#[test]
fn the_last_counts_of_a_response_replace_the_earlier_ones() {
    let with_usage = |line: String, prompt: u64, completion: u64| {
        let mut record: Value = serde_json::from_str(&line).unwrap();
        record["usage"] = json!({"prompt_tokens": prompt, "completion_tokens": completion,
            "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": prompt - 6});
        record.to_string()
    };
    let lines = [
        with_usage(chunk(json!({"content": "a"}), None), 10, 1),
        with_usage(chunk(json!({"content": "b"}), None), 10, 2),
        with_usage(chunk(json!({}), Some("stop")), 10, 3),
    ];
    let end = ended(&of_lines(&lines));
    let expected = json!({"scope": "turn", "input": 4, "cache_read": 6, "output": 3});
    assert_eq!(end["usage"], expected);
}

#[test]
fn reasoning_in_two_fields_is_one_text() {
    let lines = [
        chunk(
            json!({"role": "assistant", "reasoning": "a", "reasoning_content": "a", "content": null}),
            None,
        ),
        chunk(json!({"reasoning": "b", "reasoning_content": ""}), None),
        chunk(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "c"}]}), None),
        chunk(json!({"content": "d"}), None),
        chunk(json!({}), Some("stop")),
    ];
    let records = of_lines(&lines);
    assert_eq!((text(&records, "reasoning"), text(&records, "text")), ("abc".into(), "d".into()));
}

#[test]
fn encrypted_reasoning_is_kept_as_a_signature() {
    let details = json!([{"type": "reasoning.encrypted", "data": "b3BhcXVl"}]);
    let lines =
        [chunk(json!({"reasoning_details": details}), None), chunk(json!({}), Some("stop"))];
    let block = of_type(&of_lines(&lines), "block")[0].clone();
    assert_eq!(
        (&block["kind"], &block["signature"]),
        (&"hidden_reasoning".into(), &"b3BhcXVl".into())
    );
}

#[test]
fn a_content_that_is_a_list_is_read_part_by_part() {
    let parts = json!([
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Yes."},
        {"type": "hologram", "data": 1},
    ]);
    let records =
        of_lines(&[chunk(json!({"content": parts}), None), chunk(json!({}), Some("stop"))]);
    assert_eq!(
        (text(&records, "reasoning"), text(&records, "text")),
        ("Hm.".into(), "Yes.".into())
    );
    assert_eq!(of_type(&records, "unknown")[0]["name"], "content/hologram");
}

#[test]
fn a_chunk_before_the_response_has_an_id_begins_nothing() {
    let azure = r#"{"id":"","object":"","model":"","choices":[],"prompt_filter_results":[]}"#;
    let lines =
        [azure.to_owned(), chunk(json!({"content": "Hi"}), None), chunk(json!({}), Some("stop"))];
    let records = of_lines(&lines);
    assert_eq!(of_type(&records, "message_started")[0]["message"], "c");
    assert_eq!(ended(&records)["outcome"], "completed");
}

#[test]
fn a_different_id_in_every_chunk_is_still_one_response() {
    let with_id = |line: String, id: &str| line.replace(r#""id":"c""#, &format!(r#""id":"{id}""#));
    let lines = [
        with_id(chunk(json!({"role": "assistant", "content": "a"}), None), "1"),
        with_id(chunk(json!({"content": "b"}), None), "2"),
        with_id(chunk(json!({}), Some("stop")), "3"),
    ];
    let records = of_lines(&lines);
    assert_eq!(text(&records, "text"), "ab");
    assert_eq!(ended(&records)["outcome"], "completed");
}

#[test]
fn responses_with_the_same_id_are_several_turns() {
    let one = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        chunk(json!({"role": "assistant", "content": "Hi"}), None),
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}]}),
            Some("tool_calls")
        ),
    );
    let records = events(&one.repeat(3));
    assert_eq!(text(&records, "text"), "HiHiHi");
    let ids: Vec<_> =
        of_type(&records, "tool_started").iter().map(|it| it["call"].clone()).collect();
    assert_eq!(ids, ["x", "x-2", "x-3"]);
    let outcomes: Vec<_> =
        of_type(&records, "turn_ended").iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["waiting_for_client"; 3]);
}

#[test]
fn a_response_that_follows_a_cut_one_is_another_turn() {
    let first = chunk(json!({"role": "assistant", "content": "Hal"}), None);
    let second = chunk(json!({"role": "assistant", "content": "Whole"}), None)
        .replace(r#""id":"c""#, r#""id":"d""#);
    let stop = chunk(json!({}), Some("stop")).replace(r#""id":"c""#, r#""id":"d""#);
    let records = of_lines(&[first, second, stop]);
    let outcomes: Vec<_> =
        of_type(&records, "turn_ended").iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["failed", "completed"]);
}

#[test]
fn what_is_unknown_is_kept() {
    let strange = r#"{"object":"chat.thought","weight":[1,{"a":"\u00e9"}]}"#;
    let lines = [
        chunk(json!({"content": "Hi", "annotations": [{"type": "url_citation"}]}), None),
        strange.to_owned(),
        chunk(json!({}), Some("brand_new")),
    ];
    let records = of_lines(&lines);
    let unknown = &of_type(&records, "unknown")[0];
    assert_eq!(unknown["raw"], serde_json::from_str::<Value>(strange).unwrap());
    assert!(of_type(&records, "native").iter().any(|event| event["name"] == "annotations"));
    let end = ended(&records);
    assert_eq!((&end["outcome"], &end["stop_reason"]), (&"completed".into(), &"brand_new".into()));
}

#[test]
fn odd_json_costs_nothing() {
    let line = r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"no","content":"a\ud83d"},"finish_reason":null}],"model":"m"}"#;
    let records = of_lines(&[line.to_owned(), chunk(json!({}), Some("stop"))]);
    assert_eq!(text(&records, "text"), "a\u{fffd}");
}

#[test]
fn a_whole_response_is_read_as_its_stream_is() {
    let whole = json!({
        "id": "c", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": "Yes.", "reasoning": "Hm.", "refusal": null, "annotations": [],
        }}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    });
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    for body in [whole.to_string(), pretty] {
        let records = events(&body);
        assert_eq!(
            (text(&records, "reasoning"), text(&records, "text")),
            ("Hm.".into(), "Yes.".into())
        );
        let end = ended(&records);
        assert_eq!((&end["outcome"], &end["usage"]["total"]), (&"completed".into(), &5.into()));
        assert!(of_type(&records, "native").is_empty());
    }
}

#[test]
fn every_reason_has_its_outcome() {
    let outcome = |delta: Value, reason: &str| {
        ended(&of_lines(&[chunk(delta, None), chunk(json!({}), Some(reason))]))
    };
    let of = |reason| outcome(json!({"content": "x"}), reason)["outcome"].clone();
    assert_eq!(of("stop"), "completed");
    assert_eq!(of("length"), "limit_reached");
    assert_eq!(of("content_filter"), "refused");
    assert_eq!(of("insufficient_system_resource"), "failed");
    let refused = outcome(json!({"refusal": "I can't."}), "stop");
    assert_eq!((&refused["outcome"], &refused["reason"]), (&"refused".into(), &"refusal".into()));
}
