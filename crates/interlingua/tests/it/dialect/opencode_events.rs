//! OpenCode in both of its formats: nothing is emitted twice, and a turn ends at its true end.

use interlingua::Exit;
use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::{dialect, translate_chunks};

/// Our own events for some records, one on each line.
fn read(lines: &[Value], exit: &Exit) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let from = Some(dialect("opencode"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], exit).records()
}

/// Our own events for the same records as server-sent events.
fn read_served(lines: &[Value]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
    let from = Some(dialect("opencode"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], &Exit::default()).records()
}

fn event(kind: &str, mut properties: Value) -> Value {
    if properties.get("sessionID").is_none() {
        properties["sessionID"] = json!("s");
    }
    json!({"id": "evt", "type": kind, "properties": properties})
}

fn status(word: &str) -> Value {
    event("session.status", json!({"status": {"type": word}}))
}

fn message(ended: bool) -> Value {
    let time = if ended { json!({"created": 1, "completed": 2}) } else { json!({"created": 1}) };
    event("message.updated", json!({"info": {"id": "m", "role": "assistant", "time": time}}))
}

fn text(words: &str, ended: bool) -> Value {
    let time = if ended { json!({"start": 1, "end": 2}) } else { json!({"start": 1}) };
    let part = json!({"id": "p", "messageID": "m", "type": "text", "text": words, "time": time});
    event("message.part.updated", json!({"part": part}))
}

fn delta(words: &str) -> Value {
    let delta = json!({"messageID": "m", "partID": "p", "field": "text", "delta": words});
    event("message.part.delta", delta)
}

fn tool(state: Value) -> Value {
    let part = json!({
        "id": "t", "messageID": "m", "type": "tool", "tool": "bash", "callID": "c", "state": state,
    });
    event("message.part.updated", json!({"part": part}))
}

/// The text of a stream, by block.
fn blocks(events: &[Value]) -> Vec<String> {
    let mut blocks: Vec<(Value, String)> = Vec::new();
    for event in events {
        let words = event["text"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "block" | "block_started" => blocks.push((event["block"].clone(), words.to_owned())),
            "block_delta" => {
                let block = blocks.iter_mut().find(|(number, _)| *number == event["block"]);
                block.unwrap().1.push_str(words);
            }
            _ => {}
        }
    }
    blocks.into_iter().map(|(_, words)| words).collect()
}

#[test]
fn a_trimmed_snapshot_is_not_emitted_again() {
    let lines = [
        status("busy"),
        message(false),
        text("", false),
        delta("Done"),
        delta(".\n"),
        text("Done.", true),
        message(true),
        status("idle"),
    ];
    assert_eq!(blocks(&read_served(&lines)), ["Done.\n"]);
}

#[test]
fn a_snapshot_that_is_longer_than_its_deltas_adds_the_rest() {
    let lines = [status("busy"), message(false), text("", false), delta("Do"), text("Done", true)];
    assert_eq!(blocks(&read_served(&lines)), ["Done"]);
}

#[test]
fn text_that_continues_after_a_call_is_another_block() {
    let lines = [
        status("busy"),
        message(false),
        text("", false),
        delta("Before. "),
        tool(json!({"status": "pending", "input": {}, "raw": ""})),
        delta("After."),
        tool(json!({"status": "running", "input": {"command": "true"}})),
        text("Before. After.", true),
        message(true),
        status("idle"),
    ];
    let events = read_served(&lines);
    assert_eq!(blocks(&events), ["Before. ", "After."]);
    assert_eq!(of_type(&events, "tool_input")[0]["input"]["command"], "true");
}

/// Observed in 1.18.33: the last snapshots of an aborted turn follow the first `session.idle`.
#[test]
fn an_aborted_turn_ends_after_its_last_snapshots() {
    let error = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
    let output = "begun\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>";
    let lines = [
        status("busy"),
        message(false),
        tool(json!({"status": "running", "input": {"command": "sleep 9"}})),
        event("session.error", json!({"error": error})),
        status("idle"),
        event("session.idle", json!({})),
        tool(json!({"status": "completed", "input": {"command": "sleep 9"}, "output": output})),
        message(true),
        status("idle"),
        event("session.idle", json!({})),
    ];
    let events = read_served(&lines);
    assert_eq!(of_type(&events, "tool_ended")[0]["status"], "cancelled");
    let ends = of_type(&events, "turn_ended");
    assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!("cancelled")));
    assert!(ends[0].get("synthetic").is_none());
}

#[test]
fn a_message_that_never_ends_does_not_hide_the_end_of_its_turn() {
    let lines = [status("busy"), message(false), status("idle"), status("busy")];
    let events = read_served(&lines);
    assert_eq!(of_type(&events, "turn_started").len(), 2);
    let ends = of_type(&events, "turn_ended");
    assert_eq!((&ends[0]["outcome"], &ends[1]["outcome"]), (&json!("completed"), &json!("failed")));
}

#[test]
fn another_session_of_the_server_is_left_out() {
    let mut other = text("Not mine.", true);
    other["properties"]["sessionID"] = json!("other");
    other["properties"]["part"]["id"] = json!("q");
    let events = read_served(&[status("busy"), message(false), other, text("Mine.", true)]);
    assert_eq!(blocks(&events), ["Mine."]);
}

#[test]
fn the_text_of_a_sub_agent_has_its_call_as_parent() {
    let start = json!({
        "status": "running",
        "input": {"description": "look", "prompt": "Look.", "subagent_type": "general"},
        "metadata": {"sessionId": "child"},
    });
    let mut call = tool(start);
    call["properties"]["part"]["tool"] = json!("task");
    let mut child_text = text("I see.", true);
    child_text["properties"]["sessionID"] = json!("child");
    let events = read_served(&[status("busy"), message(false), call, child_text]);
    let started = of_type(&events, "subagent_started")[0];
    assert_eq!((&started["id"], &started["kind"]), (&json!("child"), &json!("general")));
    assert_eq!(of_type(&events, "block")[0]["parent"], "c");
}

#[test]
fn only_the_call_that_writes_the_plan_emits_it() {
    let todos = json!([{"content": "First", "status": "in_progress", "priority": "high"}]);
    let mut pending = tool(json!({"status": "pending", "input": {}}));
    pending["properties"]["part"]["tool"] = json!("todowrite");
    let mut running = tool(json!({"status": "running", "input": {"todos": todos}}));
    running["properties"]["part"]["tool"] = json!("todowrite");
    let update = event("todo.updated", json!({"todos": todos}));
    let events = read_served(&[status("busy"), message(false), pending, update.clone(), running]);
    let plans = of_type(&events, "plan_updated");
    assert_eq!((plans.len(), &plans[0]["call"]), (1, &json!("c")));
    let events = read_served(&[status("busy"), update]);
    assert!(of_type(&events, "plan_updated")[0].get("call").is_none());
}

fn line(kind: &str, part: Value) -> Value {
    json!({"type": kind, "timestamp": 1, "sessionID": "s", "part": part})
}

fn finish(reason: &str) -> Value {
    let tokens = json!({
        "total": 33, "input": 10, "output": 2, "reasoning": 1, "cache": {"read": 20, "write": 0},
    });
    let part = json!({
        "type": "step-finish", "messageID": "m", "reason": reason, "tokens": tokens, "cost": 0.5,
    });
    line("step_finish", part)
}

#[test]
fn lines_end_with_the_reason_of_the_last_step() {
    for (reason, outcome) in
        [("stop", "completed"), ("length", "limit_reached"), ("content-filter", "refused")]
    {
        let start = line("step_start", json!({"type": "step-start", "messageID": "m"}));
        let events = read(&[start, finish("tool-calls"), finish(reason)], &Exit::default());
        let ends = of_type(&events, "turn_ended");
        assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!(outcome)), "{reason}");
        let usage = &ends[0]["usage"];
        assert_eq!((&usage["input"], &usage["cache_read"]), (&json!(20), &json!(40)));
        assert_eq!((&usage["output"], &usage["reasoning"]), (&json!(6), &json!(2)));
        assert_eq!(ends[0]["cost"]["usd"], 1.0);
    }
}

#[test]
fn lines_that_stop_before_the_end_are_no_success() {
    let exit = Exit { code: Some(0), ..Exit::default() };
    let start = line("step_start", json!({"type": "step-start", "messageID": "m"}));
    let events = read(&[start, finish("tool-calls")], &exit);
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "failed");
}

#[test]
fn an_error_is_a_failure_whatever_the_exit_code() {
    let error = json!({"name": "APIError", "data": {"message": "No.", "statusCode": 429}});
    let line = json!({"type": "error", "timestamp": 1, "sessionID": "s", "error": error});
    let events = read(&[line], &Exit { code: Some(0), ..Exit::default() });
    let end = of_type(&events, "turn_ended")[0];
    assert_eq!((&end["outcome"], &end["class"]), (&json!("failed"), &json!("rate_limit")));
    assert_eq!(end["http_status"], 429);
}

#[test]
fn a_command_that_failed_and_a_tool_that_does_not_exist_have_failed() {
    let call = |tool: &str, state: Value| {
        let part = json!({
            "type": "tool", "messageID": "m", "tool": tool, "callID": tool, "state": state,
        });
        line("tool_use", part)
    };
    let ran = json!({
        "status": "completed", "input": {"command": "x"}, "output": "", "metadata": {"exit": 3},
    });
    let unknown = json!({"status": "completed", "input": {"tool": "nope"}, "output": "No."});
    let events = read(&[call("bash", ran), call("invalid", unknown)], &Exit::default());
    let ends = of_type(&events, "tool_ended");
    assert_eq!((&ends[0]["status"], &ends[0]["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!((&ends[1]["status"], &ends[1]["name"]), (&json!("failed"), &json!("nope")));
}

fn call_line(tool: &str, state: Value) -> Value {
    let part =
        json!({"type": "tool", "messageID": "m", "tool": tool, "callID": "c", "state": state});
    line("tool_use", part)
}

fn step(session: &str, reason: &str, cost: f64) -> Value {
    let tokens = json!({"input": 10, "output": 2});
    let part = json!({
        "type": "step-finish", "messageID": "m", "reason": reason, "tokens": tokens, "cost": cost,
    });
    event("message.part.updated", json!({"sessionID": session, "part": part}))
}

/// Observed in 1.18.33: the first snapshot has the name that the model gave, the others have
/// `invalid`.
#[test]
fn a_tool_that_does_not_exist_has_failed_whatever_its_first_snapshot() {
    let mut pending = tool(json!({"status": "pending", "input": {}}));
    pending["properties"]["part"]["tool"] = json!("nope");
    let note = json!({"tool": "nope", "error": "There is no tool nope."});
    let mut ended = tool(json!({"status": "completed", "input": note, "output": "No: no tool."}));
    ended["properties"]["part"]["tool"] = json!("invalid");
    let events = read_served(&[status("busy"), message(false), pending, ended]);
    let end = of_type(&events, "tool_ended")[0];
    assert_eq!((&end["status"], &end["name"]), (&json!("failed"), &json!("nope")));
    assert_eq!(end["error"], "There is no tool nope.");
    assert_eq!(of_type(&events, "tool_input")[0]["input"], json!({}), "the note is no input");
}

#[test]
fn an_error_of_the_program_is_a_warning_and_no_turn() {
    let error = json!({"name": "UnknownError", "data": {"message": "no such plugin"}});
    let about_all = json!({"id": "e", "type": "session.error", "properties": {"error": error}});
    let created = event("session.created", json!({"info": {"id": "s"}}));
    let turn = [status("busy"), message(false), text("Hi", true), message(true), status("idle")];
    let events = read_served(&[&[created, about_all.clone()], &turn[..]].concat());
    assert_eq!(of_type(&events, "notice")[0]["text"], "no such plugin");
    let ends = of_type(&events, "turn_ended");
    assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!("completed")));
    let events = read_served(&[&turn[..2], &[about_all], &turn[2..]].concat());
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "completed");
}

#[test]
fn a_step_that_finishes_after_an_error_continues_the_turn() {
    let error = json!({"name": "UnknownError", "data": {"message": "cannot read x"}});
    let failed = event("session.error", json!({"error": error}));
    let lines = [failed.clone(), status("busy"), message(false), step("s", "stop", 0.0)];
    let events = read_served(&[&lines[..], &[message(true), status("idle")]].concat());
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "completed");
    let lines = [status("busy"), message(false), failed, step("s", "error", 0.0), message(true)];
    let events = read_served(&[&lines[..], &[status("idle")]].concat());
    let end = of_type(&events, "turn_ended")[0];
    assert_eq!((&end["outcome"], &end["cause"]), (&json!("failed"), &json!("cannot read x")));
}

#[test]
fn a_reader_that_joins_within_a_message_receives_the_end_of_the_turn() {
    let complete = text("Hello world", true);
    let idle = event("session.idle", json!({}));
    for last in [vec![message(true), idle.clone()], vec![idle]] {
        let start = [delta("lo wor"), delta("ld"), complete.clone(), step("s", "stop", 0.0)];
        let events = read_served(&[&start[..], &last].concat());
        assert_eq!(blocks(&events), ["lo world"]);
        assert_eq!(of_type(&events, "message_started").len(), 1);
        let ends = of_type(&events, "turn_ended");
        assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!("completed")));
        assert!(ends[0].get("synthetic").is_none());
        assert_eq!(ends[0]["usage"]["input"], 10);
    }
}

#[test]
fn deltas_next_to_snapshots_have_the_kind_of_the_snapshot() {
    let mut lines = vec![status("busy"), message(false)];
    for (words, delta, ended) in [("Hm", "Hm", false), ("Hm, yes", ", yes", false), ("", "", true)]
    {
        let mut part = text(if ended { "Hm, yes" } else { words }, ended);
        part["properties"]["part"]["type"] = json!("reasoning");
        if !ended {
            part["properties"]["delta"] = json!(delta);
        }
        lines.push(part);
    }
    let events = read_served(&lines);
    assert_eq!(blocks(&events), ["Hm, yes"]);
    assert_eq!(of_type(&events, "block_started")[0]["kind"], "reasoning");
}

#[test]
fn a_call_that_a_rule_forbids_is_denied_and_does_not_end_the_turn() {
    let rule =
        "The user has specified a rule which prevents you from using this specific tool call.";
    let state = |error: &str| json!({"status": "error", "input": {"command": "x"}, "error": error});
    let start = line("step_start", json!({"type": "step-start", "messageID": "m"}));
    for error in [rule.to_owned(), format!("Error: {rule}")] {
        let refused = call_line("bash", state(&error));
        let events = read(&[start.clone(), refused, finish("tool-calls")], &Exit::default());
        assert_eq!(of_type(&events, "tool_ended")[0]["status"], "denied");
        assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "failed");
    }
    let refused = call_line("bash", state("The user rejected permission to use this tool call."));
    let lines = [start, refused, finish("tool-calls")];
    let events = read(&lines, &Exit::default());
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "cancelled");
    // It may be configured to continue anyway.
    let next = line("step_start", json!({"type": "step-start", "messageID": "n"}));
    let events = read(&[&lines[..], &[next]].concat(), &Exit::default());
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "failed");
    // A command may print the sentence.
    let printed = json!({"status": "completed", "input": {"command": "x"}, "output": rule});
    let events = read(&[call_line("bash", printed)], &Exit::default());
    assert_eq!(of_type(&events, "tool_ended")[0]["status"], "completed");
}

#[test]
fn a_permission_request_offers_the_answers_that_opencode_accepts() {
    let asked = json!({
        "id": "per", "permission": "bash", "patterns": ["echo hi"], "always": ["echo *"],
        "metadata": {"command": "echo hi"}, "tool": {"callID": "c"},
    });
    let reply =
        |word: &str| event("permission.replied", json!({"requestID": "per", "reply": word}));
    for (word, decision, reason) in [
        ("once", "allowed", Value::Null),
        ("always", "allowed", json!("for the rest of the session")),
        ("reject", "denied", Value::Null),
    ] {
        let asked = event("permission.asked", asked.clone());
        let events = read_served(&[status("busy"), message(false), asked, reply(word)]);
        let options = &of_type(&events, "permission_requested")[0]["options"];
        let ids: Vec<_> = options.as_array().unwrap().iter().map(|one| &one["optionId"]).collect();
        assert_eq!(ids, ["once", "always", "reject"]);
        assert_eq!(options[1]["name"], "Always allow: echo *");
        let resolved = of_type(&events, "permission_resolved")[0];
        assert_eq!((&resolved["decision"], &resolved["reason"]), (&json!(decision), &reason));
    }
}

/// The metadata of a request contain the command alone, and only the call names its folder.
#[test]
fn a_permission_request_contains_the_folder_of_its_command() {
    let metadata = json!({"command": "ls", "directories": ["/etc"]});
    let asked = event(
        "permission.asked",
        json!({
            "id": "per", "permission": "bash", "metadata": metadata, "tool": {"callID": "c"},
        }),
    );
    let input = |call: Value| {
        let events = read_served(&[status("busy"), message(false), tool(call), asked.clone()]);
        of_type(&events, "permission_requested")[0]["input"].clone()
    };
    let elsewhere = json!({"status": "running", "input": {"command": "ls", "workdir": "/etc"}});
    let with_folder = json!({"command": "ls", "directories": ["/etc"], "workdir": "/etc"});
    assert_eq!(input(elsewhere), with_folder);
    assert_eq!(input(json!({"status": "running", "input": {"command": "ls"}})), metadata);
    assert_eq!(input(json!({"status": "pending", "input": {}})), metadata);
}

#[test]
fn an_interrupt_is_emitted_after_the_blocks_that_it_interrupts() {
    let error = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
    let aborted = event("session.error", json!({"error": error}));
    let begun = [status("busy"), message(false), text("", false), delta("Half"), aborted];
    let rest = [status("idle"), text("Half", true), message(true)];
    for lines in [[&begun[..], &rest].concat(), begun.to_vec()] {
        let events = read_served(&lines);
        let place = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
        assert!(place("block_ended") < place("interrupted"));
        assert!(place("interrupted") < place("turn_ended"));
        assert!(events[place("interrupted")].get("text").is_none(), "the user wrote nothing");
        let end = &events[place("turn_ended")];
        assert_eq!((&end["outcome"], &end["cause"]), (&json!("cancelled"), &json!("Aborted")));
    }
}

#[test]
fn the_cost_of_a_turn_includes_that_of_its_sub_agents() {
    let mut call = tool(json!({
        "status": "running", "input": {"prompt": "Look."}, "metadata": {"sessionId": "child"},
    }));
    call["properties"]["part"]["tool"] = json!("task");
    let asked = json!({"sessionID": "child", "info": {"id": "u", "role": "user"}});
    let asked = event("message.updated", asked);
    let mut prompt = text("Look.", true);
    prompt["properties"]["sessionID"] = json!("child");
    prompt["properties"]["part"]["messageID"] = json!("u");
    let steps = [step("child", "stop", 0.25), step("s", "stop", 0.5)];
    let start = [status("busy"), message(false), call, asked, prompt];
    let events = read_served(&[&start[..], &steps, &[message(true), status("idle")]].concat());
    let end = of_type(&events, "turn_ended")[0];
    assert_eq!((&end["cost"]["usd"], &end["usage"]["input"]), (&json!(0.75), &json!(10)));
    let natives = of_type(&events, "native");
    let summary = |native: &&&Value| native["name"].as_str().unwrap().ends_with("/summary");
    assert_eq!(natives.iter().find(summary), None, "the prompt of a sub-agent is no summary");
}

#[test]
fn an_end_without_success_has_a_cause() {
    for reason in ["length", "content-filter", "error"] {
        let start = line("step_start", json!({"type": "step-start", "messageID": "m"}));
        let events = read(&[start, finish(reason)], &Exit::default());
        assert!(of_type(&events, "turn_ended")[0]["cause"].is_string(), "{reason}");
    }
}

#[test]
fn a_second_start_of_a_step_that_has_not_finished_is_a_retry() {
    let start = line("step_start", json!({"type": "step-start", "messageID": "m"}));
    let lines = [start.clone(), start.clone(), start.clone(), finish("stop")];
    let events = read(&lines, &Exit::default());
    let attempts: Vec<_> = of_type(&events, "retry").iter().map(|it| &it["attempt"]).collect();
    assert_eq!(attempts, [1, 2]);
    let lines = [start.clone(), finish("tool-calls"), start, finish("stop")];
    assert!(of_type(&read(&lines, &Exit::default()), "retry").is_empty());
}

/// Observed in 1.18.33, where the delay is about a second.
#[test]
fn a_retry_states_its_delay() {
    let retry = json!({
        "type": "retry", "attempt": 1, "message": "Rate limit reached", "next": 1794788217229_u64,
    });
    let mut retry = event("session.status", json!({"status": retry}));
    retry["id"] = json!("evt_1e1b6cda6001pe7t1MajwYR7y8");
    let events = read_served(&[status("busy"), message(false), retry.clone()]);
    assert_eq!(of_type(&events, "retry")[0]["delay_ms"], 999);
    retry["id"] = json!("evt");
    let events = read_served(&[status("busy"), message(false), retry]);
    assert!(of_type(&events, "retry")[0].get("delay_ms").is_none());
}

#[test]
fn a_turn_of_the_server_has_its_time_and_duration() {
    let user = json!({"info": {"id": "u", "role": "user", "time": {"created": 1000}}});
    let message = |time: Value| {
        event("message.updated", json!({"info": {"id": "m", "role": "assistant", "time": time}}))
    };
    let events = read_served(&[
        event("message.updated", user),
        message(json!({"created": 1200})),
        message(json!({"created": 1200, "completed": 4500})),
        status("idle"),
    ]);
    assert_eq!(of_type(&events, "turn_started")[0]["time"], 1000);
    let end = of_type(&events, "turn_ended")[0];
    assert_eq!((&end["time"], &end["duration_ms"]), (&json!(4500), &json!(3500)));
}

const PROMPT: &str =
    r#"{"id":1,"method":"POST","path":"/session/ses_1/prompt_async","body":{"parts":[]}}"#;

fn served(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(|event| format!("{event}\n").into_bytes()).collect()
}

fn reading() -> interlingua::Translator {
    let options = interlingua::Options::default();
    interlingua::Translator::new(dialect("opencode").into(), dialect("events"), options).unwrap()
}

fn emitted(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    events.filter(|event| event["type"] != "native").collect()
}

#[test]
fn the_reason_that_was_sent_is_that_of_the_decision() {
    let mut reader = reading();
    let asked = event("permission.asked", json!({"id": "per_1", "permission": "bash"}));
    reader.push(&served(&[status("busy"), asked]), None);
    let reply = r#"{"id":2,"method":"POST","path":"/permission/per_1/reply","body":{"reply":"reject","message":"not now"}}"#;
    assert_eq!(reader.push_sent(reply, None), b"", "the server confirms it");
    let replied = event("permission.replied", json!({"requestID": "per_1", "reply": "reject"}));
    let events = emitted(reader.push(&served(&[replied]), None));
    assert_eq!(events[0]["type"], "permission_resolved");
    assert_eq!(
        (&events[0]["decision"], &events[0]["reason"]),
        (&json!("denied"), &json!("not now"))
    );
}

/// An unknown agent: the server sends the error twice, and nothing else.
#[test]
fn a_prompt_that_is_rejected_before_its_turn_fails_once() {
    let mut reader = reading();
    reader.push(&served(&[event("session.created", json!({"info": {"id": "s"}}))]), None);
    assert_eq!(reader.push_sent(PROMPT, None), b"");
    let error = event(
        "session.error",
        json!({"error": {"name": "UnknownError", "data": {"message": "Agent not found"}}}),
    );
    let events = emitted(reader.push(&served(&[error.clone(), error]), None));
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["turn_started", "error", "turn_ended"]);
    assert_eq!(
        (&events[2]["outcome"], &events[2]["cause"]),
        (&json!("failed"), &json!("Agent not found"))
    );
}

/// `session.idle` is sent twice after an abort, and the next prompt may overtake the second one.
#[test]
fn an_idle_of_the_previous_turn_does_not_end_the_next() {
    let user = event(
        "message.updated",
        json!({"info": {"id": "msg_2", "role": "user", "time": {"created": 5}}}),
    );
    let events =
        read_served(&[user, event("session.idle", json!({})), status("busy"), status("idle")]);
    let turns: Vec<_> = events
        .iter()
        .filter_map(|event| event["type"].as_str().filter(|kind| kind.starts_with("turn_")))
        .collect();
    assert_eq!(turns, ["turn_started", "turn_ended"]);
    let ended = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
    assert_eq!(ended["line"], 7, "the fourth record");
}

#[test]
fn an_earlier_prompt_that_is_reported_again_starts_no_turn() {
    let user = |id: &str| {
        let info = json!({"id": id, "role": "user", "time": {"created": 5}});
        event("message.updated", json!({"info": info}))
    };
    let events =
        read_served(&[user("msg_1"), status("busy"), user("msg_2"), status("idle"), user("msg_1")]);
    let started = events.iter().filter(|event| event["type"] == "turn_started").count();
    assert_eq!(started, 1);
}
