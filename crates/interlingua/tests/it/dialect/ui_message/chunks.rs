//! The `ui-message` chunks that are written for a turn.

use interlingua::check::Checker;
use interlingua::dialect::EncodeOptions;
use interlingua::dialect::ui_message::UiMessageEncoder;
use interlingua::framing::Limits;
use interlingua::{Exit, Options, ReadOptions, Reader, Translator, Writer};
use serde_json::{Value, json};

use crate::support::records::{completed_turn, event, translate_checked, types};
use crate::support::{self, Written, dialect, translate_with};

fn written(events: &[String]) -> Written {
    translate_checked("events", "ui-message", events)
}

/// The chunks of one turn, without those that frame the message and its steps.
fn turn(events: &[String]) -> Vec<Value> {
    let chunks = written(&completed_turn(events)).records();
    let frame = ["start", "start-step", "finish-step", "finish"];
    chunks.into_iter().filter(|chunk| !frame.contains(&chunk["type"].as_str().unwrap())).collect()
}

fn call(id: &str) -> String {
    event("tool_started", json!({"call": id, "name": "Bash", "input": {"command": "ls"}}))
}

fn answer(id: &str) -> String {
    event("tool_ended", json!({"call": id, "status": "completed", "output": "a"}))
}

fn text(text: &str) -> String {
    event("block", json!({"text": text}))
}

#[test]
fn a_stream_is_one_message_of_server_sent_events() {
    let events = [
        event(
            "session_started",
            json!({"id": "s", "agent": "claude", "model": "m", "version": "1", "cwd": "/w"}),
        ),
        event("turn_started", json!({})),
        text("Hi."),
        event(
            "turn_ended",
            json!({
                "outcome": "completed", "duration_ms": 5,
                "usage": {"scope": "turn", "input": 3, "cache_read": 2, "output": 4},
                "cost": {"scope": "turn", "usd": 0.25},
            }),
        ),
    ];
    let expected = concat!(
        r#"data: {"type":"start","messageMetadata":{"sessionId":"s","agent":"claude","agentVersion":"1","model":"m"}}"#,
        "\n\n",
        r#"data: {"type":"data-session","data":{"id":"s","agent":"claude","version":"1","model":"m","cwd":"/w"},"transient":true}"#,
        "\n\n",
        r#"data: {"type":"start-step"}"#,
        "\n\n",
        r#"data: {"type":"text-start","id":"b1"}"#,
        "\n\n",
        r#"data: {"type":"text-delta","id":"b1","delta":"Hi."}"#,
        "\n\n",
        r#"data: {"type":"text-end","id":"b1","providerMetadata":{"interlingua":{"sessionId":"s"}}}"#,
        "\n\n",
        r#"data: {"type":"finish-step"}"#,
        "\n\n",
        r#"data: {"type":"finish","finishReason":"stop","messageMetadata":{"outcome":"completed","costUsd":0.25,"durationMs":5,"#,
        r#""usage":{"inputTokens":5,"inputTokenDetails":{"noCacheTokens":3,"cacheReadTokens":2},"#,
        r#""outputTokens":4,"outputTokenDetails":{},"totalTokens":9}}}"#,
        "\n\ndata: [DONE]\n\n",
    );
    assert_eq!(written(&events).text(), expected);
}

#[test]
fn a_message_has_an_id_if_the_caller_gives_a_seed() {
    let options = EncodeOptions { id_seed: Some(7), ..EncodeOptions::default() };
    let options = Options { encode: options, ..Options::default() };
    let line = event("turn_started", json!({})) + "\n";
    let (from, to) = (Some(dialect("events")), dialect("ui-message"));
    let written = translate_with(options, from, to, [line.as_bytes()], &Exit::default());
    let text = written.text();
    assert!(text.starts_with(r#"data: {"type":"start","messageId":""#), "{text}");
}

#[test]
fn later_facts_on_the_session_are_metadata_of_the_message() {
    let chunks = written(&[
        event("notice", json!({"severity": "info", "text": "hm"})),
        event("session_started", json!({"id": "s"})),
        event("turn_started", json!({})),
        event("session_updated", json!({"model": "m"})),
        event("turn_ended", json!({"outcome": "completed"})),
    ])
    .records();
    assert_eq!(
        types(&chunks),
        ["start", "data-notice", "message-metadata", "message-metadata", "finish"]
    );
    assert_eq!(chunks[2]["messageMetadata"], json!({"sessionId": "s"}));
    assert_eq!(chunks[3]["messageMetadata"], json!({"model": "m"}));
}

#[test]
fn a_step_ends_when_all_calls_are_answered_and_the_agent_continues() {
    let steps = |events: &[String]| {
        let mut all = vec![event("turn_started", json!({}))];
        all.extend_from_slice(events);
        all.push(event("turn_ended", json!({"outcome": "completed"})));
        let chunks = written(&completed_turn(events)).records();
        types(&chunks).iter().filter(|kind| **kind == "start-step").count()
    };
    assert_eq!(steps(&[text("a"), text("b")]), 1);
    assert_eq!(steps(&[text("a"), call("1"), call("2"), answer("1"), answer("2"), text("b")]), 2);
    assert_eq!(steps(&[call("1"), call("2"), answer("1"), text("b"), answer("2")]), 1);
    assert_eq!(steps(&[]), 0);
}

#[test]
fn a_call_of_the_agent_has_its_flags_on_every_chunk() {
    let chunks = turn(&[
        event("tool_started", json!({"call": "c", "name": "Bash"})),
        event("tool_input_delta", json!({"call": "c", "text": "{\"a\":"})),
        event("tool_input_delta", json!({"call": "c", "text": "1}"})),
        event("tool_input", json!({"call": "c", "input": {"a": 1}})),
        event(
            "tool_ended",
            json!({"call": "c", "status": "completed", "output": "x", "exit_code": 0}),
        ),
    ]);
    assert_eq!(
        chunks,
        [
            json!({"type": "tool-input-start", "toolCallId": "c", "toolName": "Bash", "providerExecuted": true, "dynamic": true}),
            json!({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{\"a\":"}),
            json!({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "1}"}),
            json!({"type": "tool-input-available", "toolCallId": "c", "toolName": "Bash", "input": {"a": 1}, "providerExecuted": true, "dynamic": true}),
            json!({"type": "tool-output-available", "toolCallId": "c", "output": "x", "providerExecuted": true, "dynamic": true, "providerMetadata": {"interlingua": {"exitCode": 0}}}),
        ]
    );
}

#[test]
fn a_failed_call_has_an_error_text() {
    let chunks = turn(&[
        call("c"),
        event(
            "tool_ended",
            json!({"call": "c", "status": "failed", "output": [{"type": "text", "text": "no"}], "exit_code": 2}),
        ),
    ]);
    assert_eq!(
        chunks[1],
        json!({
            "type": "tool-output-error", "toolCallId": "c", "errorText": "no",
            "providerExecuted": true, "dynamic": true,
            "providerMetadata": {"interlingua": {"exitCode": 2}},
        })
    );
}

#[test]
fn a_call_without_an_answer_gets_one() {
    let chunks = turn(&[event("tool_started", json!({"call": "c", "name": "Bash"}))]);
    assert_eq!(types(&chunks), ["tool-input-start", "tool-input-available", "tool-output-error"]);
    assert_eq!(chunks[1]["input"], json!({}));
    assert_eq!(chunks[2]["providerMetadata"], json!({"interlingua": {"status": "abandoned"}}));
}

#[test]
fn a_call_that_the_client_must_answer_has_no_flags_and_ends_the_message_with_tool_calls() {
    let chunks = written(&[
        event("turn_started", json!({})),
        event(
            "tool_started",
            json!({"call": "c", "name": "ask", "executor": "client", "input": {}}),
        ),
        event("turn_ended", json!({"outcome": "waiting_for_client"})),
    ])
    .records();
    assert_eq!(
        chunks[2],
        json!({"type": "tool-input-available", "toolCallId": "c", "toolName": "ask", "input": {}})
    );
    assert_eq!(chunks.last().unwrap()["finishReason"], "tool-calls");
}

#[test]
fn a_failed_turn_is_an_error_and_a_cancelled_one_an_abort() {
    let end = |fields: Value| {
        let chunks =
            written(&[event("turn_started", json!({})), event("turn_ended", fields)]).records();
        (chunks[1].clone(), chunks.last().unwrap()["finishReason"].clone())
    };
    let failed = end(json!({"outcome": "failed", "cause": "boom"}));
    assert_eq!(failed, (json!({"type": "error", "errorText": "boom"}), json!("error")));
    let stopped = end(json!({"outcome": "cancelled", "cause": "stop"}));
    assert_eq!(stopped, (json!({"type": "abort", "reason": "stop"}), json!("other")));
    let unknown = end(json!({"outcome": "failed"}));
    assert!(unknown.0["errorText"].as_str().unwrap().contains("reported no reason"));
}

#[test]
fn the_error_that_ended_a_turn_is_written_once_and_others_are_data() {
    let chunks = written(&[
        event("turn_started", json!({})),
        event("error", json!({"class": "unknown", "message": "first", "fatal": true})),
        event("error", json!({"class": "unknown", "message": "boom", "fatal": true})),
        event("turn_ended", json!({"outcome": "failed", "cause": "boom"})),
    ])
    .records();
    assert_eq!(types(&chunks), ["start", "data-error", "error", "finish"]);
    assert_eq!(chunks[1]["data"]["message"], "first");
    assert_eq!(chunks[1]["transient"], true);
}

#[test]
fn an_error_is_written_when_the_agent_continues_and_not_when_it_ends_the_turn() {
    let error = event("error", json!({"class": "unknown", "message": "boom"}));
    let chunks = written(&[
        event("turn_started", json!({})),
        error.clone(),
        text("Again."),
        error,
        event("turn_ended", json!({"outcome": "failed", "cause": "boom"})),
    ])
    .records();
    assert_eq!(types(&chunks)[..3], ["start", "data-error", "start-step"]);
    assert_eq!(types(&chunks)[6..], ["finish-step", "error", "finish"]);
    let of_other = event("error", json!({"parent": "t", "message": "boom"}));
    assert_eq!(types(&turn(&[of_other])), ["data-error"]);
}

#[test]
fn a_message_has_the_outcome_and_the_cause_of_its_turn() {
    let metadata = |fields: Value| {
        let chunks =
            written(&[event("turn_started", json!({})), event("turn_ended", fields)]).records();
        chunks.last().unwrap()["messageMetadata"].clone()
    };
    let stopped = metadata(json!({"outcome": "cancelled", "cause": "stop"}));
    assert_eq!(stopped, json!({"outcome": "cancelled", "cause": "stop"}));
    let failed = metadata(json!({
        "outcome": "failed", "cause": "boom", "class": "rate_limit", "http_status": 429,
        "reason": "error", "steps": 3,
    }));
    assert_eq!(
        failed,
        json!({
            "outcome": "failed", "cause": "boom", "errorClass": "rate_limit", "httpStatus": 429,
            "reason": "error", "steps": 3,
        })
    );
}

#[test]
fn the_usage_of_each_model_is_written_if_it_adds_to_that_of_the_turn() {
    let metadata = |by_model: Value| {
        let end = json!({
            "outcome": "completed", "by_model": by_model,
            "usage": {"scope": "turn", "input": 300, "output": 40},
        });
        let chunks =
            written(&[event("turn_started", json!({})), event("turn_ended", end)]).records();
        chunks.last().unwrap()["messageMetadata"]["usageByModel"].clone()
    };
    assert_eq!(metadata(json!([{"model": "m", "input": 300, "output": 40}])), Value::Null);
    assert_eq!(
        metadata(json!([{"model": "m", "input": 500, "cache_read": 100, "output": 80}])),
        json!([{"model": "m", "inputTokens": 600, "cacheReadTokens": 100, "outputTokens": 80}])
    );
}

#[test]
fn usage_that_the_end_repeats_and_progress_without_content_are_not_written() {
    let chunks = turn(&[
        call("c"),
        event("tool_progress", json!({"call": "c"})),
        event("tool_progress", json!({"call": "c", "elapsed_ms": 1})),
        event("usage", json!({"scope": "turn", "output": 1})),
        event("usage", json!({"scope": "turn", "output": 1, "parent": "t"})),
        event("usage", json!({"scope": "request", "output": 1})),
        answer("c"),
    ]);
    assert_eq!(types(&chunks)[1..4], ["data-tool-progress", "data-usage", "data-usage"]);
    assert_eq!(chunks[1]["data"]["elapsed_ms"], 1);
    assert_eq!(chunks[2]["data"]["parent"], "t");
}

#[test]
fn an_output_of_text_blocks_is_a_string() {
    let output = |output: Value| {
        let ended = json!({"call": "c", "status": "completed", "output": output});
        turn(&[call("c"), event("tool_ended", ended)])[1]["output"].clone()
    };
    let (one, two) = (json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "b"}));
    assert_eq!(output(json!([one, two])), "a\nb");
    for as_it_is in [json!([one, {"type": "image"}]), json!([1, 2]), json!({"a": 1})] {
        assert_eq!(output(as_it_is.clone()), as_it_is);
    }
}

#[test]
fn the_session_is_found_in_the_messages_of_the_next_prompt() {
    let chunks = written(&[
        event("session_started", json!({"id": "s"})),
        event("turn_started", json!({})),
        event("block", json!({"kind": "reasoning", "text": "Hm."})),
        text("Hi."),
        call("c"),
        answer("c"),
        event("turn_ended", json!({"outcome": "completed"})),
    ])
    .records();
    let has_it = |chunk: &&Value| chunk["providerMetadata"]["interlingua"]["sessionId"] == "s";
    let stamped: Vec<Value> = chunks.iter().filter(has_it).cloned().collect();
    assert_eq!(types(&stamped), ["text-end", "tool-input-available"]);
}

#[test]
fn a_denied_call_has_an_error_text() {
    let denied = event("tool_ended", json!({"call": "c", "status": "denied"}));
    let chunks = turn(&[call("c"), denied]);
    assert_eq!(chunks[1]["errorText"], "the call was not permitted");
}

#[test]
fn a_plan_is_data_that_the_next_plan_replaces() {
    let plan = |status: &str| {
        let items = json!([{"text": "one", "status": status}]);
        event("plan_updated", json!({"call": "c", "items": items}))
    };
    let of_other = event(
        "plan_updated",
        json!({"parent": "t", "items": [{"text": "two", "status": "pending"}]}),
    );
    let chunks = turn(&[plan("pending"), plan("completed"), of_other]);
    assert_eq!(types(&chunks), ["data-plan"; 3]);
    let ids: Vec<_> = chunks.iter().map(|chunk| chunk["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["plan", "plan", "plan-t"]);
    assert_eq!(chunks[1]["data"]["items"][0], json!({"text": "one", "status": "completed"}));
    assert!(chunks[1].get("transient").is_none());
    assert_eq!(chunks[2]["data"]["parent"], "t");
}

#[test]
fn a_permission_request_is_data_with_all_that_is_needed_to_decide() {
    let options = json!([{"optionId": "allow_once"}]);
    let chunks = turn(&[
        call("c"),
        event("permission_requested", json!({"request": "r", "call": "c", "options": options})),
        event("permission_resolved", json!({"request": "r", "call": "c", "decision": "allowed"})),
        answer("c"),
    ]);
    let [request, decision] = ["data-permission-request", "data-permission-decision"];
    assert_eq!(types(&chunks)[1..3], [request, decision]);
    assert_eq!(chunks[1]["data"]["options"], options);
}

#[test]
fn chunks_of_a_sub_agent_name_the_call_that_started_it() {
    let chunks = turn(&[event("block", json!({"parent": "t", "text": "sub"}))]);
    let parent = json!({"interlingua": {"parentToolCallId": "t"}});
    assert_eq!(
        (&chunks[0]["providerMetadata"], &chunks[2]["providerMetadata"]),
        (&parent, &parent)
    );
    assert!(chunks[1].get("providerMetadata").is_none());
}

#[test]
fn an_image_is_a_file() {
    let source = json!({"type": "base64", "media_type": "image/gif", "data": "R0lG"});
    let chunks = turn(&[event("block", json!({"kind": "image", "content": source}))]);
    assert_eq!(
        chunks,
        [json!({"type": "file", "url": "data:image/gif;base64,R0lG", "mediaType": "image/gif"})]
    );
}

#[test]
fn values_that_name_a_prototype_are_written_as_text() {
    let harmful = json!({"__proto__": {"x": 1}});
    let chunks = turn(&[
        event("tool_started", json!({"call": "c", "name": "t", "input": harmful})),
        event(
            "tool_ended",
            json!({"call": "c", "status": "completed", "output": harmful, "structured": harmful}),
        ),
        event("compacted", json!({"details": harmful})),
    ]);
    assert_eq!(chunks[0]["input"], r#"{"__proto__":{"x":1}}"#);
    assert_eq!(chunks[1]["output"], r#"{"__proto__":{"x":1}}"#);
    assert!(chunks[2]["data"].is_string() && chunks[3]["data"].is_string());
}

#[test]
fn several_turns_are_one_message_unless_the_encoder_separates_them() {
    let lines = [
        event("session_started", json!({"id": "s"})),
        event("turn_started", json!({})),
        text("one"),
        event("turn_ended", json!({"outcome": "failed", "cause": "x"})),
        event("notice", json!({"text": "between"})),
        event("turn_started", json!({})),
        text("two"),
        event("turn_ended", json!({"outcome": "completed"})),
    ];
    let together = written(&lines).text();
    assert_eq!(together.matches(r#""type":"start""#).count(), 1);
    assert_eq!(together.matches(r#""type":"finish""#).count(), 1);
    let encoder = UiMessageEncoder::new(&EncodeOptions::default()).with_a_message_each_turn();
    let reader = Reader::new(dialect("events").into(), ReadOptions::default()).unwrap();
    let writer = Writer::with_encoder(encoder, &EncodeOptions::default());
    let translator = Translator::with_writer(reader, writer);
    let input = lines.join("\n") + "\n";
    let separate = support::run(translator, [input.as_bytes()], &support::exit("0"));
    let apart = separate.text();
    let messages: Vec<_> = apart.split("data: [DONE]\n\n").filter(|it| !it.is_empty()).collect();
    assert_eq!(messages.len(), 2, "{apart}");
    for message in messages {
        assert!(
            message.starts_with(r#"data: {"type":"start","messageMetadata":{"sessionId":"s"}}"#)
        );
        let mut checker = Checker::new(dialect("ui-message"), Limits::default());
        checker.push(message.as_bytes());
        assert_eq!(checker.finish(&Exit::default()), []);
    }
    let lost: Vec<_> = separate.losses().iter().collect();
    assert_eq!(lost, [("events between turns", 1)]);
}

#[test]
fn the_exit_of_the_process_is_metadata_of_the_message() {
    let line = event("turn_started", json!({})) + "\n";
    let exit = Exit { code: Some(3), ..Exit::default() };
    let (from, to) = (Some(dialect("events")), dialect("ui-message"));
    let chunks = support::translate_chunks(from, to, [line.as_bytes()], &exit).records();
    assert_eq!(chunks.last().unwrap()["messageMetadata"]["exitCode"], 3);
    assert_eq!(chunks.last().unwrap()["finishReason"], "error");
}

/// Clients show the text of `error`, and no metadata: without it, a limit looks like a complete
/// answer.
#[test]
fn the_cause_of_a_limit_or_a_refusal_is_an_error() {
    for (outcome, reason) in [("limit_reached", "length"), ("refused", "content-filter")] {
        let end = |cause: Option<&str>| {
            let ended = event("turn_ended", json!({"outcome": outcome, "cause": cause}));
            written(&[event("turn_started", json!({})), ended]).records()
        };
        let chunks = end(Some("the cause"));
        let error = chunks.iter().find(|chunk| chunk["type"] == "error").unwrap();
        assert_eq!(error["errorText"], "the cause", "{outcome}");
        let finish = chunks.last().unwrap();
        assert_eq!((&finish["type"], &finish["finishReason"]), (&json!("finish"), &json!(reason)));
        assert_eq!(finish["messageMetadata"]["cause"], "the cause", "{outcome}");
        let without = end(None);
        assert!(without.iter().all(|chunk| chunk["type"] != "error"), "{outcome}");
    }
}
