//! Reading Qwen Code's stream, which resembles Claude's but differs from it.

use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::{translate, translate_lines, written};

const SESSION: &str = "00000000-0000-0000-0000-000000000000";

fn line(kind: &str, fields: Value) -> String {
    let mut record = json!({
        "type": kind, "uuid": "u", "session_id": SESSION, "parent_tool_use_id": null,
    });
    for (name, value) in fields.as_object().unwrap() {
        record[name] = value.clone();
    }
    record.to_string()
}

fn init() -> String {
    let fields = json!({
        "subtype": "init", "cwd": "/w", "tools": [], "mcp_servers": [], "model": "m",
        "permission_mode": "yolo", "qwen_code_version": "0.24.4",
    });
    line("system", fields)
}

fn stream_event(event: Value) -> String {
    line("stream_event", json!({ "event": event }))
}

fn complete_message(id: &str, content: Value) -> String {
    let usage = json!({"input_tokens": 0, "output_tokens": 0});
    let message = json!({
        "id": id, "role": "assistant", "content": content, "stop_reason": null, "usage": usage,
    });
    line("assistant", json!({ "message": message }))
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn retry(preserve_text: bool, discarded: u64) -> String {
    let data = json!({
        "reason": "retry", "discardedToolCalls": discarded, "preserveText": preserve_text,
    });
    line("system", json!({"subtype": "retry", "data": data}))
}

fn answer(call: &str) -> String {
    let content = json!([{"type": "tool_result", "tool_use_id": call, "content": "ok"}]);
    line("user", json!({"message": {"role": "user", "content": content}}))
}

fn success(result: &str, input: u64) -> String {
    let fields = json!({
        "subtype": "success", "is_error": false, "duration_ms": 9, "duration_api_ms": 8,
        "num_turns": 1, "result": result, "permission_denials": [],
        "usage": {"input_tokens": input, "output_tokens": 5, "cache_read_input_tokens": 10},
    });
    line("result", fields)
}

fn failure(message: &str, duration_ms: u64) -> String {
    let fields = json!({
        "subtype": "error_during_execution", "is_error": true, "duration_ms": duration_ms,
        "duration_api_ms": 0, "num_turns": 1, "permission_denials": [],
        "usage": {"input_tokens": 0, "output_tokens": 0}, "error": {"message": message},
    });
    line("result", fields)
}

fn events(lines: &[String]) -> Vec<Value> {
    let emitted = translate_lines("qwen", "events", lines).records();
    emitted.into_iter().filter(|event| event["type"] != "native").collect()
}

/// The text of a stream, by block.
fn texts_by_block(events: &[Value]) -> Vec<String> {
    let mut blocks: Vec<(u64, String)> = Vec::new();
    for event in events.iter().filter(|event| event["text"].is_string()) {
        let Some(number) = event["block"].as_u64() else { continue };
        if blocks.last().is_none_or(|(last, _)| *last != number) {
            blocks.push((number, String::new()));
        }
        blocks.last_mut().unwrap().1 += event["text"].as_str().unwrap();
    }
    blocks.into_iter().map(|(_, text)| text).collect()
}

/// A streamed answer: reasoning, a text and two calls, whose indices restart with each record.
fn streamed_answer() -> Vec<String> {
    let start = |index: u64, block: Value| {
        stream_event(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let delta = |index: u64, delta: Value| {
        stream_event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let stop = |index: u64| stream_event(json!({"type": "content_block_stop", "index": index}));
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "glob", "input": {"p": 1}});
    let mut lines = vec![
        init(),
        stream_event(json!({"type": "message_start", "message": {"id": "a", "model": "m"}})),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        stop(0),
        complete_message("a", json!([{"type": "thinking", "thinking": "Hm.", "signature": ""}])),
        start(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "Let me "})),
        delta(0, json!({"type": "text_delta", "text": "look."})),
        stop(0),
        complete_message("b", text("Let me look.")),
    ];
    for (index, id) in ["c1", "c2"].into_iter().enumerate() {
        let mut block = call(id);
        block["input"] = json!({});
        lines.push(start(index as u64, block));
        let input = json!({"type": "input_json_delta", "partial_json": "{\"p\":1}"});
        lines.push(delta(index as u64, input));
        lines.push(stop(index as u64));
    }
    lines.push(complete_message("c", json!([call("c1"), call("c2")])));
    lines.push(stream_event(json!({"type": "message_stop"})));
    lines
}

#[test]
fn deltas_and_complete_records_of_one_answer_are_emitted_once() {
    let mut lines = streamed_answer();
    lines.extend([answer("c1"), answer("c2"), success("", 20)]);
    let emitted = events(&lines);
    assert_eq!(texts_by_block(&emitted), ["Hm.", "Let me look."]);
    let places: Vec<_> = of_type(&emitted, "block_ended")
        .iter()
        .map(|end| (&end["message"], &end["index"]))
        .collect();
    let (message, first, second) = (json!("a"), json!(0), json!(1));
    assert_eq!(places, [(&message, &first), (&message, &second)]);
    let calls: Vec<_> = of_type(&emitted, "tool_input").iter().map(|one| &one["input"]).collect();
    assert_eq!(calls, [&json!({"p": 1}), &json!({"p": 1})]);
    assert_eq!(of_type(&emitted, "tool_ended").len(), 2);
    assert_eq!(of_type(&emitted, "message_started").len(), 1);
    assert_eq!(of_type(&emitted, "message_ended").len(), 1);
}

#[test]
fn deltas_of_a_sub_agent_without_message_boundaries_are_emitted_once() {
    let within =
        |line: String| line.replace(r#""parent_tool_use_id":null"#, r#""parent_tool_use_id":"t""#);
    let named =
        |line: String, uuid: &str| line.replace(r#""uuid":"u""#, &format!("\"uuid\":\"{uuid}\""));
    let mut lines = vec![init()];
    for (uuid, words) in [("one", "First."), ("two", "Second.")] {
        let block = json!({"type": "text", "text": ""});
        let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
        let delta = json!({"type": "text_delta", "text": words});
        let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        lines.push(named(within(stream_event(start)), uuid));
        lines.push(within(stream_event(delta)));
        lines.push(within(stream_event(json!({"type": "content_block_stop", "index": 0}))));
        lines.push(within(complete_message(words, text(words))));
    }
    lines.push(success("", 20));
    let emitted = events(&lines);
    assert_eq!(texts_by_block(&emitted), ["First.", "Second."]);
    assert!(of_type(&emitted, "block_delta").iter().all(|delta| delta["parent"] == "t"));
}

#[test]
fn a_failed_request_is_reported_once_and_is_no_text() {
    let error = "[API Error: 401 no key]";
    let behind = format!("Half a sen{error}");
    for lines in [
        vec![init(), complete_message("a", text(error)), failure(error, 5)],
        vec![init(), failure(error, 5)],
        vec![init(), complete_message("a", text(&behind)), failure(error, 5)],
    ] {
        let emitted = events(&lines);
        let errors = of_type(&emitted, "error");
        assert_eq!(errors.len(), 1);
        let fields = (&errors[0]["message"], &errors[0]["class"], &errors[0]["http_status"]);
        assert_eq!(fields, (&json!("no key"), &json!("authentication"), &json!(401)));
        assert!(!texts_by_block(&emitted).concat().contains("API Error"), "{emitted:#?}");
        let ended = of_type(&emitted, "turn_ended")[0];
        assert_eq!((&ended["outcome"], &ended["cause"]), (&json!("failed"), &json!("no key")));
        assert!(ended.get("usage").is_none(), "zeros are no counts");
    }
}

#[test]
fn a_streamed_failed_request_is_reported_once() {
    let error = "[API Error: terminated]";
    let delta = |text: &str| {
        let delta = json!({"type": "text_delta", "text": text});
        stream_event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    };
    let emitted = events(&[
        init(),
        stream_event(json!({"type": "message_start", "message": {"id": "a"}})),
        stream_event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}),
        ),
        delta("Half a sen"),
        delta(error),
        stream_event(json!({"type": "content_block_stop", "index": 0})),
        complete_message("a", text(&format!("Half a sen{error}"))),
        stream_event(json!({"type": "message_stop"})),
        failure(error, 5),
    ]);
    assert_eq!(texts_by_block(&emitted), ["Half a sen"]);
    assert_eq!(of_type(&emitted, "error").len(), 1);
    assert_eq!(of_type(&emitted, "turn_ended")[0]["class"], "network");
}

#[test]
fn a_text_of_the_model_about_failed_requests_is_text() {
    let sentence = "It printed [API Error: 401]";
    let emitted = events(&[init(), complete_message("a", text(sentence)), success(sentence, 20)]);
    assert_eq!(texts_by_block(&emitted).concat(), sentence);
    assert!(of_type(&emitted, "error").is_empty());
    let emitted = events(&[
        init(),
        complete_message("a", text("[API Error: 401]")),
        complete_message("b", text("Hm.")),
    ]);
    assert_eq!(
        texts_by_block(&emitted),
        ["Hm.", "[API Error: 401]"]
            .map(str::to_owned)
            .to_vec()
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_retry_withdraws_the_text_unless_it_preserves_it() {
    let stream = |preserve: bool| {
        let end = success("Once.", 20);
        vec![
            init(),
            complete_message("a", text("Once.")),
            retry(preserve, 0),
            complete_message("b", text("Once.")),
            end,
        ]
    };
    let emitted = events(&stream(false));
    assert_eq!(of_type(&emitted, "withdrawn")[0]["blocks"][0]["block"], 1);
    assert_eq!(of_type(&emitted, "retry").len(), 1);
    let lines = stream(false);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for to in written().filter(|to| to.name != "events") {
        let text = translate_lines("qwen", to.name, &lines).text();
        let in_result = text.lines().filter(|line| line.contains("\"result\":\"Once.\"")).count();
        assert_eq!(text.matches("Once.").count() - in_result, 1, "{}: {text}", to.name);
    }
    assert!(of_type(&events(&stream(true)), "withdrawn").is_empty());
}

#[test]
fn calls_that_a_retry_discarded_are_answered() {
    let mut lines = streamed_answer();
    lines.extend([retry(false, 2), complete_message("d", text("Done.")), success("Done.", 20)]);
    let emitted = events(&lines);
    let ended = of_type(&emitted, "tool_ended");
    assert_eq!(ended.len(), 2);
    assert!(ended.iter().all(|end| end["status"] == "cancelled"));
}

#[test]
fn counts_of_the_process_become_counts_of_the_turn() {
    let emitted = events(&[
        init(),
        complete_message("a", text("One.")),
        success("One.", 100),
        init(),
        complete_message("b", text("Two.")),
        success("Two.", 130),
    ]);
    let inputs: Vec<_> =
        of_type(&emitted, "turn_ended").iter().map(|end| &end["usage"]["input"]).collect();
    // The input includes the cached tokens, ten of them in both counts.
    assert_eq!(inputs, [&json!(90), &json!(30)]);
}

#[test]
fn the_failure_of_a_sub_agent_does_not_end_the_turn() {
    let call = json!([{"type": "tool_use", "id": "t", "name": "agent", "input": {}}]);
    let lines = [
        init(),
        complete_message("a", call),
        failure("no luck", 0),
        answer("t"),
        complete_message("b", text("It failed.")),
        success("It failed.", 20),
    ];
    let emitted = events(&lines);
    assert_eq!(of_type(&emitted, "turn_ended").len(), 1);
    assert_eq!(of_type(&emitted, "turn_ended")[0]["outcome"], "completed");
    let ended = of_type(&emitted, "subagent_ended")[0];
    assert_eq!((&ended["call"], &ended["summary"]), (&json!("t"), &json!("no luck")));
}

#[test]
fn one_array_of_records_is_read_as_the_same_records() {
    let lines = [init(), complete_message("a", text("Hi, [you]{.}")), success("Hi, [you]{.}", 20)];
    let array = format!("[{}]\n", lines.join(","));
    let exit = interlingua::Exit::default();
    let emitted = translate("events", array.as_bytes(), &exit);
    assert_eq!(emitted.from().unwrap().name, "qwen");
    let emitted: Vec<Value> =
        emitted.records().into_iter().filter(|event| event["type"] != "log").collect();
    assert_eq!(texts_by_block(&emitted), ["Hi, [you]{.}"]);
    assert_eq!(of_type(&emitted, "turn_ended")[0]["outcome"], "completed");
    assert!(of_type(&emitted, "unparsed").is_empty() && of_type(&emitted, "unknown").is_empty());
    // In a truncated array, the complete records are read.
    let cut = &array[..array.len() - 40];
    let emitted = translate("events", cut.as_bytes(), &exit).records();
    assert_eq!(texts_by_block(&emitted), ["Hi, [you]{.}"]);
    assert_eq!(of_type(&emitted, "unparsed")[0]["flaw"], "truncated");
    assert_eq!(of_type(&emitted, "turn_ended")[0]["outcome"], "failed");
}

#[test]
fn qwen_is_distinguished_from_claude() {
    let exit = interlingua::Exit::default();
    for lines in [init(), failure("Please set an auth method", 0)] {
        let emitted = translate("events", lines.as_bytes(), &exit);
        assert_eq!(emitted.from().unwrap().name, "qwen", "{lines}");
    }
}

#[test]
fn the_message_of_a_failure_is_unwrapped() {
    for (printed, expected) in [
        ("[API Error: 401 no key]", "no key"),
        ("[API Error: terminated]", "terminated"),
        ("[API Error: 429 status code (no body)]", "429 status code (no body)"),
        ("Please set an auth method", "Please set an auth method"),
    ] {
        let emitted_events = events(&[init(), failure(printed, 5)]);
        assert_eq!(of_type(&emitted_events, "error")[0]["message"], expected);
        assert_eq!(of_type(&emitted_events, "turn_ended")[0]["cause"], expected);
    }
}

#[test]
fn retries_are_counted_until_an_answer_arrives() {
    let emitted = events(&[
        init(),
        retry(false, 0),
        retry(false, 0),
        complete_message("a", text("Once.")),
        retry(false, 0),
        complete_message("b", text("Once.")),
        success("Once.", 20),
    ]);
    let attempts: Vec<_> =
        of_type(&emitted, "retry").iter().map(|retry| &retry["attempt"]).collect();
    assert_eq!(attempts, [1, 2, 1]);
}
