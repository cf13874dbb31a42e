//! Responses of the Responses API, from OpenAI and from servers that differ from it.

use interlingua::Exit;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::{self, dialect, translate_chunks, translate_lines};

/// The events of a stream, in any framing.
fn events(stream: &str) -> Vec<Value> {
    let (from, to) = (dialect("openai-responses"), dialect("events"));
    translate_chunks(Some(from), to, [stream.as_bytes()], &Exit::default()).records()
}

fn read(lines: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    translate_lines("openai-responses", "events", &lines).records()
}

fn created() -> Value {
    json!({"type": "response.created", "response": {"id": "r", "object": "response", "model": "m", "status": "in_progress"}})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {
        "id": "r", "object": "response", "model": "m", "status": "completed", "output": output,
        "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
    }})
}

fn text_delta(item: u64, text: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": item, "content_index": 0, "delta": text})
}

fn done(item: u64, content: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": item, "item": content})
}

fn text(records: &[Value], kind: &str) -> String {
    let texts = records.iter().filter(|event| {
        (event["type"] == "block_delta" || event["type"] == "block") && event["kind"] == kind
    });
    texts.map(|event| event["text"].as_str().unwrap()).collect()
}

fn ended(records: &[Value]) -> Value {
    let ends = of_type(records, "turn_ended");
    assert_eq!(ends.len(), 1, "{records:#?}");
    ends[0].clone()
}

fn inputs(records: &[Value]) -> Vec<Value> {
    let kinds = ["tool_started", "tool_input"];
    let calls = records.iter().filter(|event| kinds.iter().any(|kind| event["type"] == *kind));
    calls.filter_map(|event| event.get("input").cloned()).collect()
}

proptest! {
    #![proptest_config(support::cases(200))]

    #[test]
    fn arguments_may_be_cut_anywhere(
        fields in prop::collection::btree_map("[a-z]{1,4}", "[a-z{}\\[\\]\"\\\\ é🎉]{0,8}", 0..3),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        has_done in any::<bool>(),
        has_item in any::<bool>(),
    ) {
        let arguments = serde_json::to_string(&fields).unwrap();
        let mut places: Vec<usize> = arguments.char_indices().map(|(at, _)| at).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&places)).collect();
        places.clear();
        cuts.push(arguments.len());
        cuts.sort_unstable();
        let item = |arguments: &str, status: &str| json!({
            "type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": arguments, "status": status,
        });
        let mut lines = vec![created(), json!({
            "type": "response.output_item.added", "output_index": 0, "item": item("", "in_progress"),
        })];
        let mut start = 0;
        for cut in cuts {
            lines.push(json!({
                "type": "response.function_call_arguments.delta", "output_index": 0, "delta": &arguments[start..cut],
            }));
            start = cut;
        }
        if has_done {
            lines.push(json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": arguments}));
        }
        if has_item {
            lines.push(done(0, item(&arguments, "completed")));
        }
        lines.push(completed(json!([])));
        let records = read(&lines);
        prop_assert_eq!(inputs(&records), [serde_json::from_str::<Value>(&arguments).unwrap()]);
        prop_assert_eq!(&ended(&records)["outcome"], "waiting_for_client");
        let deltas = of_type(&records, "tool_input_delta");
        let streamed: String = deltas.iter().map(|delta| delta["text"].as_str().unwrap()).collect();
        prop_assert_eq!(streamed, arguments);
    }
}

#[test]
fn a_call_that_is_not_complete_has_no_input() {
    let item = |arguments: &str, status: &str| json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments, "status": status});
    let incomplete = json!({"type": "response.incomplete", "response": {
        "id": "r", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [item("{\"a\":1}", "incomplete")],
    }});
    for lines in [
        vec![created(), done(0, item("{\"a\":", "incomplete")), incomplete.clone()],
        vec![created(), done(0, item("{\"a\":1}", "incomplete")), incomplete.clone()],
        vec![created(), incomplete.clone()],
        vec![created(), done(0, item("", "in_progress"))],
        vec![created(), done(0, item("{\"a\":1}{\"b\":2}", "completed")), completed(json!([]))],
    ] {
        let records = read(&lines);
        assert_eq!(inputs(&records), Vec::<Value>::new(), "{lines:?}");
        let statuses: Vec<_> =
            of_type(&records, "tool_ended").iter().map(|it| it["status"].clone()).collect();
        assert_eq!(statuses, ["abandoned"]);
        assert_ne!(ended(&records)["outcome"], "completed");
    }
    let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "half", "status": "incomplete"});
    let records = read(&[created(), done(0, custom), incomplete]);
    assert_eq!(inputs(&records), Vec::<Value>::new());
}

#[test]
fn only_the_last_event_ends_a_response() {
    let lines = [created(), text_delta(0, "Hi")];
    let end = ended(&read(&lines));
    assert_eq!((&end["outcome"], &end["class"]), (&"failed".into(), &"network".into()));
    let stream = format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", lines[0], lines[1]);
    assert_eq!(ended(&events(&stream))["outcome"], "failed");
    for nothing in ["", "data: [DONE]\n\n", "<html></html>"] {
        assert_eq!(ended(&events(nothing))["outcome"], "failed");
    }
}

#[test]
fn what_was_streamed_is_kept_and_what_was_not_is_added() {
    let message = json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hello"}]});
    for output in [json!([]), json!([message])] {
        let records =
            read(&[created(), text_delta(0, "Hel"), text_delta(0, "lo"), completed(output)]);
        assert_eq!(text(&records, "text"), "Hello");
        assert_eq!(ended(&records)["outcome"], "completed");
    }
    let records = read(&[created(), completed(json!([message]))]);
    assert_eq!(text(&records, "text"), "Hello");
    let records = read(&[
        created(),
        text_delta(0, "Hel"),
        done(0, message.clone()),
        completed(json!([message])),
    ]);
    assert_eq!(text(&records, "text"), "Hello");
}

#[test]
fn items_may_alternate() {
    let lines = [
        created(),
        text_delta(0, "a"),
        text_delta(1, "1"),
        text_delta(0, "b"),
        text_delta(1, "2"),
        completed(json!([])),
    ];
    let records = read(&lines);
    let of_block = |block: u64| {
        let deltas = of_type(&records, "block_delta").into_iter().filter(|it| it["block"] == block);
        deltas.map(|it| it["text"].as_str().unwrap().to_owned()).collect::<String>()
    };
    assert_eq!((of_block(1), of_block(2)), ("ab".to_owned(), "12".to_owned()));
}

#[test]
fn the_encrypted_form_of_reasoning_is_never_lost() {
    let delta = |kind: &str, field: &str, text: &str| json!({"type": format!("response.{kind}.delta"), "output_index": 0, field: 0, "delta": text});
    let item = |summary: Value, content: Value| {
        done(
            0,
            json!({"type": "reasoning", "id": "rs", "summary": summary, "content": content, "encrypted_content": "b3BhcXVl"}),
        )
    };
    let (sum, raw) = (
        json!([{"type": "summary_text", "text": "S"}]),
        json!([{"type": "reasoning_text", "text": "R"}]),
    );
    let summary = delta("reasoning_summary_text", "summary_index", "S");
    let content = delta("reasoning_text", "content_index", "R");
    let cases = [
        (vec![], item(json!([]), json!([]))),
        (vec![], item(sum.clone(), raw.clone())),
        (vec![summary.clone()], item(sum.clone(), json!([]))),
        (vec![summary.clone()], item(json!([]), json!([]))),
        (vec![summary.clone(), content.clone()], item(sum.clone(), raw.clone())),
        (vec![content, summary], item(sum, raw)),
    ];
    for (mut lines, item) in cases {
        lines.insert(0, created());
        lines.extend([item, completed(json!([]))]);
        let records = read(&lines);
        let signatures = records.iter().filter(|event| event["signature"] == "b3BhcXVl").count();
        assert_eq!(signatures, 1, "{lines:?}");
        let reasoning = text(&records, "reasoning");
        assert!(["", "S", "SR", "RS"].contains(&&*reasoning), "{reasoning}");
    }
}

#[test]
fn an_error_is_read_flat_and_nested_and_once() {
    let flat = json!({"type": "error", "code": "server_error", "message": "no", "param": null, "sequence_number": 3});
    let nested = json!({"type": "error", "error": {"type": "server_error", "code": null, "message": "no", "param": null}});
    let failed = json!({"type": "response.failed", "response": {"id": "r", "status": "failed", "error": {"code": "server_error", "message": "no"}, "usage": null}});
    for lines in [
        vec![flat.clone()],
        vec![nested.clone()],
        vec![failed.clone()],
        vec![flat.clone(), failed.clone()],
        vec![failed.clone(), flat],
        vec![failed, nested],
    ] {
        let mut all = vec![created(), text_delta(0, "So")];
        all.extend(lines.clone());
        let records = read(&all);
        let end = ended(&records);
        assert_eq!(
            (&end["outcome"], &end["class"], &end["cause"]),
            (&"failed".into(), &"internal".into(), &"no".into())
        );
        assert_eq!(text(&records, "text"), "So", "{lines:?}");
    }
}

#[test]
fn the_body_of_an_http_error_is_a_failed_turn() {
    let bodies = [
        (
            r#"{"error":{"message":"no","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
            "failed",
            "context_overflow",
        ),
        (
            r#"{"error":{"message":"no","type":"requests","code":"rate_limit_exceeded"}}"#,
            "failed",
            "rate_limit",
        ),
        (r#"{"error":{"message":"no","code":"invalid_prompt"}}"#, "refused", "refusal"),
        (
            "{\n  \"error\": {\n    \"message\": \"no\",\n    \"code\": \"invalid_api_key\"\n  }\n}\n",
            "failed",
            "authentication",
        ),
        (r#"{"detail":"Unauthorized"}"#, "failed", "authentication"),
    ];
    for (body, outcome, class) in bodies {
        let end = ended(&events(body));
        assert_eq!((&end["outcome"], &end["class"]), (&outcome.into(), &class.into()), "{body}");
    }
}

#[test]
fn every_reason_has_its_outcome() {
    let outcome = |reason: &str| {
        let response = json!({"id": "r", "status": "incomplete", "incomplete_details": {"reason": reason}, "output": []});
        ended(&read(&[
            created(),
            text_delta(0, "x"),
            json!({"type": "response.incomplete", "response": response}),
        ]))
    };
    assert_eq!(outcome("max_output_tokens")["outcome"], "limit_reached");
    assert_eq!(outcome("max_messages")["outcome"], "limit_reached");
    assert_eq!(outcome("content_filter")["outcome"], "refused");
    assert_eq!(outcome("steered")["outcome"], "cancelled");
    let unknown = outcome("brand_new");
    assert_eq!(
        (&unknown["outcome"], &unknown["stop_reason"]),
        (&"failed".into(), &"brand_new".into())
    );
}

#[test]
fn a_whole_response_is_read_as_its_stream_is() {
    let response = |status: &str| {
        json!({
            "id": "r", "object": "response", "model": "m", "status": status, "temperature": 1.0, "tools": [],
            "output": [
                {"type": "message", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
                {"type": "hologram", "id": "h"},
            ],
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        })
    };
    for body in [
        response("completed").to_string(),
        serde_json::to_string_pretty(&response("completed")).unwrap(),
    ] {
        let records = events(&body);
        assert_eq!(text(&records, "text"), "Hi");
        assert_eq!(of_type(&records, "unknown")[0]["name"], "output_item/hologram");
        assert_eq!(
            (&ended(&records)["outcome"], &ended(&records)["usage"]["total"]),
            (&"completed".into(), &5.into())
        );
    }
    // A response in the background has not ended.
    assert_eq!(ended(&events(&response("queued").to_string()))["outcome"], "failed");
}

#[test]
fn what_is_unknown_is_kept() {
    let event =
        json!({"type": "response.hologram.delta", "weight": [1, {"a": "é"}], "sequence_number": 1});
    let item = done(0, json!({"type": "hologram", "id": "h"}));
    let records = read(&[
        created(),
        event.clone(),
        item.clone(),
        json!({"type": "weather"}),
        completed(json!([])),
    ]);
    let unknown = of_type(&records, "unknown");
    assert_eq!(
        (&unknown[0]["name"], &unknown[0]["raw"]),
        (&"response.hologram.delta".into(), &event)
    );
    assert_eq!((&unknown[1]["name"], &unknown[1]["raw"]), (&"output_item/hologram".into(), &item));
    assert_eq!(unknown[2]["name"], "weather");
    assert_eq!(ended(&records)["outcome"], "completed");
}

#[test]
fn a_shell_of_the_provider_answers_its_calls() {
    let call = json!({"type": "shell_call", "id": "sh", "call_id": "c", "status": "completed", "action": {"commands": ["ls"]}});
    let output = json!({"type": "shell_call_output", "id": "sho", "call_id": "c", "status": "completed", "output": [{"stdout": "a"}]});
    let records = read(&[created(), done(0, call.clone()), done(1, output), completed(json!([]))]);
    assert_eq!(of_type(&records, "tool_ended")[0]["output"], json!([{"stdout": "a"}]));
    assert_eq!(ended(&records)["outcome"], "completed");
    let records = read(&[created(), done(0, call), completed(json!([]))]);
    assert_eq!(ended(&records)["outcome"], "waiting_for_client");
}

#[test]
fn responses_with_the_same_ids_are_several_turns() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"});
    let one = [created(), text_delta(0, "Hi"), done(1, call), completed(json!([]))];
    let records = read(&[one.clone(), one.clone(), one].concat());
    assert_eq!(text(&records, "text"), "HiHiHi");
    let ids: Vec<_> =
        of_type(&records, "tool_started").iter().map(|it| it["call"].clone()).collect();
    assert_eq!(ids, ["c", "c-2", "c-3"]);
}

#[test]
fn a_type_that_only_the_event_line_states_is_read() {
    let stream = "event: response.created\ndata: {\"response\":{\"id\":\"r\"}}\n\nevent: response.output_text.delta\ndata: {\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {\"response\":{\"status\":\"completed\"}}\n\n";
    let records = events(stream);
    assert_eq!(
        (text(&records, "text"), &ended(&records)["outcome"]),
        ("Hi".into(), &"completed".into())
    );
}
