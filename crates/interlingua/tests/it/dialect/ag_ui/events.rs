//! The AG-UI events that are written for a turn.

use interlingua::Exit;
use serde_json::{Value, json};

use crate::support::records::{completed_turn, event, translate_checked, types};
use crate::support::{self, Written, dialect, translate_lines};

fn written(events: &[String]) -> Written {
    translate_checked("events", "ag-ui", events)
}

/// The events of one turn, without those that frame the run and its steps.
fn turn(events: &[String]) -> Vec<Value> {
    let frame = ["RUN_STARTED", "STATE_DELTA", "STEP_STARTED", "STEP_FINISHED", "RUN_FINISHED"];
    let is_frame = |event: &Value| frame.contains(&event["type"].as_str().unwrap());
    written(&completed_turn(events))
        .records()
        .into_iter()
        .filter(|event| !is_frame(event))
        .collect()
}

fn call(id: &str, message: &str) -> String {
    event("tool_started", json!({"call": id, "name": "Bash", "message": message, "input": {}}))
}

fn answer(id: &str) -> String {
    event("tool_ended", json!({"call": id, "status": "completed", "output": "a"}))
}

#[test]
fn a_turn_is_a_run_of_server_sent_events() {
    let events = [
        event("session_started", json!({"id": "s", "agent": "claude", "cwd": "/w"})),
        event("turn_started", json!({"id": "t1"})),
        event("block", json!({"text": "Hi."})),
        event(
            "turn_ended",
            json!({
                "outcome": "completed", "stop_reason": "end_turn", "duration_ms": 5,
                "usage": {"scope": "turn", "input": 3, "cache_read": 2, "output": 4},
                "cost": {"scope": "turn", "usd": 0.25},
            }),
        ),
    ];
    let written = written(&events);
    assert!(written.text().starts_with("data: {\"type\":\"RUN_STARTED\",\"threadId\":\"s\","));
    assert!(written.text().ends_with("}\n\n") && !written.text().contains("[DONE]"));
    let records = written.records();
    assert_eq!(
        types(&records),
        [
            "RUN_STARTED",
            "STATE_DELTA",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
    );
    assert_eq!(records[0]["metadata"], json!({"turnId": "t1"}));
    assert_eq!(
        records[1]["delta"],
        json!([{
            "op": "add", "path": "/session",
            "value": {"id": "s", "agent": "claude", "cwd": "/w"},
        }])
    );
    assert_eq!(records[4]["delta"], "Hi.");
    let end = &records[7];
    assert_eq!((&end["threadId"], &end["runId"]), (&records[0]["threadId"], &records[0]["runId"]));
    assert_eq!(end["outcome"], json!({"type": "success"}));
    assert_eq!(
        end["usage"],
        json!([{"inputTokens": 5, "outputTokens": 4, "totalTokens": 9, "cachedInputTokens": 2}])
    );
    assert_eq!(
        end["metadata"],
        json!({"outcome": "completed", "reason": "end_turn", "costUsd": 0.25, "durationMs": 5})
    );
}

#[test]
fn events_between_runs_are_written_in_the_next_one() {
    let notice = |text: &str| event("notice", json!({"severity": "info", "text": text}));
    let records = written(&[
        notice("before"),
        event("turn_started", json!({})),
        event("turn_ended", json!({"outcome": "completed"})),
        notice("between"),
        event("session_updated", json!({"id": "late"})),
        event("turn_started", json!({})),
        event("turn_ended", json!({"outcome": "completed"})),
    ])
    .records();
    let run = ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"];
    assert_eq!(types(&records)[..3], run);
    assert_eq!(types(&records)[3..], ["RUN_STARTED", "STATE_DELTA", "CUSTOM", "RUN_FINISHED"]);
    assert_eq!(records[1]["value"]["text"], "before");
    assert_eq!(records[5]["value"]["text"], "between");
    assert_eq!(records[0]["threadId"], records[3]["threadId"]);
    assert_ne!(records[0]["runId"], records[3]["runId"]);
}

#[test]
fn events_after_the_last_turn_are_a_run_if_they_are_visible() {
    let end = [
        event("turn_started", json!({})),
        event("turn_ended", json!({"outcome": "completed"})),
        event("native", json!({"name": "n", "raw": {"type": "n"}})),
    ];
    let alone = written(&end);
    assert_eq!(types(&alone.records()), ["RUN_STARTED", "RUN_FINISHED"]);
    let lost: Vec<_> = alone.losses().iter().collect();
    assert_eq!(lost, [("record of the agent's own", 1)]);
    let artifact = event("artifact", json!({"path": "a.txt"}));
    let shown = written(&[&end[..], &[artifact]].concat());
    let records = shown.records();
    assert_eq!(types(&records)[2..], ["RUN_STARTED", "RAW", "CUSTOM", "RUN_FINISHED"]);
    assert_eq!(records[4]["value"], json!({"path": "a.txt"}));
    assert_eq!(records[5]["metadata"], json!({"afterword": true}));
    assert!(shown.losses().is_empty());
}

#[test]
fn the_exit_of_the_process_is_written_in_the_run_that_it_ends() {
    let line = event("turn_started", json!({})) + "\n";
    let exit = Exit { code: Some(3), ..Exit::default() };
    let (from, to) = (Some(dialect("events")), dialect("ag-ui"));
    let written = support::translate_chunks(from, to, [line.as_bytes()], &exit);
    let records = written.records();
    assert_eq!(types(&records), ["RUN_STARTED", "CUSTOM", "RUN_ERROR"]);
    assert_eq!(records[1]["value"]["exit_code"], 3);
    assert!(written.losses().is_empty());
}

#[test]
fn the_usage_of_every_model_is_written_once() {
    let usage = |fields: Value| {
        let records =
            written(&[event("turn_started", json!({})), event("turn_ended", fields)]).records();
        records.last().unwrap()["usage"].clone()
    };
    let total = json!({"scope": "turn", "input": 300, "output": 40});
    let with_subagent = json!([{"model": "m", "input": 600, "output": 80}]);
    let counts = |model: &str, input: u64, output: u64| {
        json!({
            "model": model, "inputTokens": input, "outputTokens": output,
            "totalTokens": input + output,
        })
    };
    let end = json!({"outcome": "completed", "usage": total, "by_model": with_subagent});
    assert_eq!(usage(end.clone()), json!([counts("m", 600, 80)]));
    let two = json!([{"model": "m", "input": 200, "output": 30}, {"model": "n", "input": 100, "output": 10}]);
    let two = usage(json!({"outcome": "completed", "usage": total, "by_model": two}));
    assert_eq!(two, json!([counts("m", 200, 30), counts("n", 100, 10)]));
    let records = written(&[
        event("turn_started", json!({})),
        event("turn_ended", end),
        event("turn_started", json!({})),
        event("turn_ended", json!({"outcome": "completed", "usage": total})),
    ])
    .records();
    assert!(records.last().unwrap().get("usage").is_none(), "the turn before counted it");
}

#[test]
fn usage_is_attributed_to_the_model_of_the_session_unless_another_is_stated() {
    let models = |updates: &[String]| {
        let usage = json!({"scope": "turn", "input": 3, "output": 4});
        let start =
            [event("session_started", json!({"model": "m"})), event("turn_started", json!({}))];
        let end = [event("turn_ended", json!({"outcome": "completed", "usage": usage}))];
        let records = written(&[&start, updates, &end].concat()).records();
        records.last().unwrap()["usage"][0]["model"].clone()
    };
    assert_eq!(models(&[]), "m");
    assert_eq!(models(&[event("session_updated", json!({"model": "n"}))]), Value::Null);
}

#[test]
fn a_sub_agent_that_was_stopped_is_not_reported_as_successful() {
    for (status, kind) in [("completed", "SUBAGENT_FINISHED"), ("killed", "SUBAGENT_ERROR")] {
        let events = turn(&[
            event("subagent_started", json!({"id": "a", "call": "t"})),
            event("subagent_ended", json!({"id": "a", "call": "t", "status": status})),
        ]);
        assert_eq!(events[1]["type"], kind);
        let code = if status == "killed" { json!("killed") } else { Value::Null };
        assert_eq!(events[1]["code"], code);
    }
}

#[test]
fn events_without_content_are_not_written() {
    let events = [
        event("native", json!({"name": "turn_start"})),
        event("usage", json!({"scope": "turn", "output": 1})),
        event("tool_progress", json!({"call": "c"})),
    ];
    assert!(turn(&events).is_empty());
}

#[test]
fn calls_name_the_message_that_started_them() {
    let events = turn(&[
        event("block", json!({"message": "m", "text": "Now."})),
        call("1", "m"),
        call("2", "m"),
        answer("1"),
        answer("2"),
        call("3", "n"),
        call("4", "n"),
        answer("3"),
        answer("4"),
    ]);
    let of = |kind: &str, field: &str| -> Vec<String> {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| event[field].as_str().unwrap().to_owned()).collect()
    };
    let parents = of("TOOL_CALL_START", "parentMessageId");
    let text = of("TEXT_MESSAGE_START", "messageId");
    assert_eq!((&parents[0], &parents[1]), (&text[0], &text[0]));
    assert_eq!(parents[2], parents[3]);
    assert_ne!(parents[1], parents[2]);
    let results = of("TOOL_CALL_RESULT", "messageId");
    assert!(results.iter().all(|id| !parents.contains(id)));
}

#[test]
fn an_input_is_streamed_in_its_deltas_and_written_once() {
    let started = event("tool_started", json!({"call": "c", "name": "Bash"}));
    let complete = event("tool_input", json!({"call": "c", "input": {"a": 1}}));
    let delta = |text: &str| event("tool_input_delta", json!({"call": "c", "text": text}));
    let arguments = |events: &[String]| -> Vec<String> {
        let events = turn(&[events, &[answer("c")]].concat());
        let args = events.iter().filter(|event| event["type"] == "TOOL_CALL_ARGS");
        args.map(|event| event["delta"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(arguments(&[started.clone(), complete.clone()]), [r#"{"a":1}"#]);
    let streamed = [started.clone(), delta(r#"{"a""#), delta(":1}"), complete];
    assert_eq!(arguments(&streamed), [r#"{"a""#, ":1}"]);
    assert_eq!(arguments(&[started]), ["{}"]);
}

#[test]
fn a_result_is_text_with_the_status_of_the_call() {
    let events = turn(&[
        call("c", "m"),
        event(
            "tool_ended",
            json!({
                "call": "c", "status": "failed", "exit_code": 2,
                "output": [{"type": "text", "text": "no"}], "structured": {"x": 1},
            }),
        ),
    ]);
    let result = &events[3];
    assert_eq!((&result["content"], &result["role"]), (&json!("no"), &json!("tool")));
    assert_eq!(result["metadata"], json!({"status": "failed", "exitCode": 2}));
    assert_eq!(events[4]["name"], "tool_output");
    assert_eq!(events[4]["value"], json!({"call": "c", "structured": {"x": 1}}));
}

#[test]
fn an_answer_of_the_client_between_two_runs_is_not_sent_back_to_it() {
    let call = event(
        "tool_started",
        json!({"call": "c", "name": "pick", "executor": "client", "input": {}}),
    );
    let waits = event("turn_ended", json!({"outcome": "waiting_for_client"}));
    let stream = written(&[call, waits, answer("c"), event("block", json!({"text": "Red."}))]);
    assert!(!types(&stream.records()).contains(&"TOOL_CALL_RESULT"));
    let lost: Vec<_> = stream.losses().iter().map(|(what, _)| what).collect();
    assert!(lost.contains(&"answers of the client"), "{lost:?}");
}

#[test]
fn a_call_that_the_client_must_answer_has_no_result_when_the_run_ends() {
    let records = written(&[
        event("turn_started", json!({})),
        event(
            "tool_started",
            json!({"call": "c", "name": "ask", "executor": "client", "input": {}}),
        ),
        event("turn_ended", json!({"outcome": "waiting_for_client"})),
    ])
    .records();
    assert!(records.iter().all(|event| event["type"] != "TOOL_CALL_RESULT"));
    assert_eq!(records.last().unwrap()["outcome"], json!({"type": "success"}));
}

#[test]
fn reasoning_has_a_span_a_message_and_its_signature() {
    let events = turn(&[
        event("block", json!({"kind": "reasoning", "text": "Hm.", "signature": "sig"})),
        event("block", json!({"kind": "hidden_reasoning", "signature": "secret"})),
    ]);
    let hidden = [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_END",
        "REASONING_ENCRYPTED_VALUE",
        "REASONING_END",
    ];
    let mut visible = hidden.to_vec();
    visible.insert(2, "REASONING_MESSAGE_CONTENT");
    assert_eq!(types(&events), [visible, hidden.to_vec()].concat());
    assert_eq!(events[4]["encryptedValue"], "sig");
    assert_eq!(events[4]["entityId"], events[1]["messageId"]);
}

#[test]
fn runs_end_as_their_turns_did() {
    let end = |fields: Value| {
        let events = [event("turn_started", json!({})), event("turn_ended", fields)];
        written(&events).records().pop().unwrap()
    };
    let failed = end(
        json!({"outcome": "failed", "cause": "boom", "class": "rate_limit", "http_status": 429}),
    );
    assert_eq!(failed["type"], "RUN_ERROR");
    assert_eq!((&failed["message"], &failed["code"]), (&json!("boom"), &json!("rate_limit")));
    assert_eq!(failed["metadata"]["httpStatus"], 429);
    let stopped = end(json!({"outcome": "cancelled", "cause": "stop"}));
    assert_eq!(stopped["outcome"], json!({"type": "cancelled"}));
    assert_eq!(stopped["metadata"]["cause"], "stop");
    for (outcome, message) in
        [("refused", "the model refused"), ("limit_reached", "a limit was reached")]
    {
        let cut = end(json!({"outcome": outcome}));
        assert_eq!((&cut["message"], &cut["code"]), (&json!(message), &json!(outcome)));
    }
    let cut = end(json!({"outcome": "limit_reached", "stop_reason": "max_tokens"}));
    assert_eq!(cut["message"], "the answer reached the model's output limit");
}

#[test]
fn events_of_a_sub_agent_are_attributed_to_it() {
    let events = turn(&[
        event("tool_started", json!({"call": "t", "name": "Task", "input": {}})),
        event("subagent_started", json!({"id": "a", "call": "t", "kind": "explore"})),
        event("block", json!({"parent": "t", "text": "sub"})),
        event(
            "subagent_ended",
            json!({"id": "a", "call": "t", "status": "completed", "summary": "done"}),
        ),
        answer("t"),
    ]);
    assert_eq!(
        types(&events)[3..8],
        [
            "SUBAGENT_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "SUBAGENT_FINISHED"
        ]
    );
    assert!(events[3..8].iter().all(|event| event["subagentRunId"] == "t"));
    assert_eq!((&events[3]["name"], &events[7]["result"]), (&json!("explore"), &json!("done")));
}

#[test]
fn a_sub_agent_that_is_running_when_the_run_ends_is_suspended_and_started_again() {
    let records = written(&[
        event("turn_started", json!({})),
        event("subagent_started", json!({"id": "a", "call": "t"})),
        event("turn_ended", json!({"outcome": "completed"})),
        event("turn_started", json!({})),
        event("subagent_ended", json!({"id": "a", "call": "t", "status": "failed"})),
        event("turn_ended", json!({"outcome": "completed"})),
    ])
    .records();
    assert_eq!(records[2]["type"], "SUBAGENT_FINISHED");
    assert_eq!(records[2]["outcome"], json!({"type": "suspended"}));
    assert_eq!(
        (&records[5]["type"], &records[5]["name"]),
        (&json!("CUSTOM"), &json!("subagent_ended"))
    );
}

#[test]
fn a_plan_is_an_activity_that_the_next_plan_replaces() {
    let plan =
        |status: &str| event("plan_updated", json!({"items": [{"text": "one", "status": status}]}));
    let events = turn(&[plan("pending"), plan("completed")]);
    assert_eq!(types(&events), ["ACTIVITY_SNAPSHOT"; 2]);
    assert_eq!(events[0]["messageId"], events[1]["messageId"]);
    assert_eq!(events[1]["content"], json!({"items": [{"text": "one", "status": "completed"}]}));
}

#[test]
fn the_error_that_ended_a_run_is_written_once_and_others_are_custom() {
    let error = |message: &str| {
        event("error", json!({"class": "unknown", "message": message, "fatal": true}))
    };
    let records = written(&[
        event("turn_started", json!({})),
        error("first"),
        error("boom"),
        event("turn_ended", json!({"outcome": "failed", "cause": "boom"})),
    ])
    .records();
    assert_eq!(types(&records)[1..], ["CUSTOM", "RUN_ERROR"]);
    assert_eq!(records[1]["value"]["message"], "first");
}

#[test]
fn an_error_is_written_when_the_agent_continues_and_not_when_it_ends_the_run() {
    let error = event("error", json!({"class": "unknown", "message": "boom"}));
    let records = written(&[
        event("turn_started", json!({})),
        error.clone(),
        event("block", json!({"text": "Again."})),
        error,
        event("turn_ended", json!({"outcome": "failed", "cause": "boom"})),
    ])
    .records();
    assert_eq!(types(&records)[..3], ["RUN_STARTED", "CUSTOM", "STEP_STARTED"]);
    assert_eq!(types(&records)[6..], ["STEP_FINISHED", "RUN_ERROR"]);
}

#[test]
fn an_unknown_record_is_raw() {
    let lines = [r#"{"type":"thread.started","thread_id":"t"}"#, r#"{"type":"brand.new","x":1}"#];
    let records = translate_lines("codex", "ag-ui", &lines).records();
    let raw = records.iter().find(|event| event["type"] == "RAW").unwrap();
    assert_eq!(raw["event"], json!({"type": "brand.new", "x": 1}));
    assert_eq!(raw["source"], "codex");
}
