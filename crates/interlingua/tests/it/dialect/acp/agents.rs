//! Peculiarities of single ACP agents where the protocol defines nothing: ends, refusals, prices,
//! names.

use serde_json::{Value, json};

use crate::support::records::{of_type, text_of};
use crate::support::translate_lines;

fn initialized(agent: &str) -> String {
    let info = json!({"name": agent, "version": "1"});
    json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentInfo": info}})
        .to_string()
}

fn new_session() -> String {
    json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}).to_string()
}

fn update(update: Value) -> String {
    let params = json!({"sessionId": "s", "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
}

fn chunk(kind: &str, text: &str) -> String {
    update(json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
}

fn text_record(text: &str) -> String {
    chunk("agent_message_chunk", text)
}

fn cost_update(usd: f64) -> String {
    let cost = json!({"amount": usd, "currency": "USD"});
    update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost}))
}

fn permission_request(id: u64, call: Value) -> String {
    let options = json!([
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]);
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params})
        .to_string()
}

fn prompt() -> String {
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
    json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params}).to_string()
}

fn ended(tokens: Option<u64>) -> String {
    let mut result = json!({"stopReason": "end_turn"});
    if let Some(tokens) = tokens {
        result["usage"] =
            json!({"inputTokens": tokens, "outputTokens": 1, "totalTokens": tokens + 1});
    }
    json!({"jsonrpc": "2.0", "id": 3, "result": result}).to_string()
}

fn read(lines: &[String]) -> Vec<Value> {
    translate_lines("acp", "events", lines).records()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let is_shown = |kind: &&str| !["native", "session_started", "session_updated"].contains(kind);
    events.iter().map(|event| event["type"].as_str().unwrap()).filter(is_shown).collect()
}

fn copilot(lines: &[String]) -> Vec<Value> {
    read(&[&[initialized("Copilot"), new_session()], lines].concat())
}

#[test]
fn a_report_on_the_turn_after_the_text_of_copilot_is_no_text() {
    let events = copilot(&[
        text_record("Part. "),
        text_record("Error: Server error (HTTP 500)."),
        ended(None),
    ]);
    let end = of_type(&events, "turn_ended")[0];
    assert_eq!((&end["outcome"], &end["http_status"]), (&json!("failed"), &json!(500)));
    assert_eq!(text_of(&events), "Part. ");
    let stopped = text_record("Info: Operation cancelled by user");
    let events = copilot(&[text_record("Part. "), stopped, ended(None)]);
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "cancelled");
    assert_eq!(text_of(&events), "Part. ");
    let again = text_record("Info: Request failed due to a transient API error. Retrying...");
    let events = copilot(&[text_record("Part. "), again, text_record("Whole."), ended(Some(1))]);
    assert_eq!(of_type(&events, "retry").len(), 1);
    assert_eq!(of_type(&events, "block_started").len(), 2);
    assert_eq!(text_of(&events), "Part. Whole.");
    // Text that is no error continues in its block.
    let events = copilot(&[
        text_record("Part. "),
        text_record("Error: no."),
        text_record(" More."),
        ended(None),
    ]);
    assert_eq!(of_type(&events, "block_started").len(), 1);
    assert_eq!(text_of(&events), "Part. Error: no. More.");
}

#[test]
fn an_overruled_end_is_not_emitted() {
    for text in ["Error: Authentication failed (HTTP 401).", "Info: Operation cancelled by user"] {
        let events = copilot(&[text_record(text), ended(None)]);
        assert!(of_type(&events, "turn_ended")[0].get("reason").is_none(), "{text}");
    }
}

#[test]
fn tools_of_copilot_are_recognised_by_their_input() {
    let call = |kind: &str, input: Value| {
        let call = json!({
            "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": kind,
            "status": "pending", "rawInput": input,
        });
        let events = copilot(&[update(call)]);
        let started = of_type(&events, "tool_started")[0].clone();
        (started["name"].as_str().unwrap().to_owned(), started["kind"].as_str().unwrap().to_owned())
    };
    let named = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
    let write = json!({"path": "/f", "file_text": "a"});
    assert_eq!(call("edit", write), named("create", "write"));
    let edit = json!({"path": "/f", "old_str": "a", "new_str": "b"});
    assert_eq!(call("edit", edit), named("edit", "edit"));
    assert_eq!(call("execute", json!({"command": "ls"})), named("bash", "execute"));
    assert_eq!(call("other", json!({"query": "SELECT 1"})), named("sql", "other"));
    assert_eq!(call("read", json!({"path": "/f"})), named("view", "read"));
    assert_eq!(call("search", json!({"pattern": "x"})), named("search", "search"));
}

#[test]
fn the_title_of_a_todo_is_no_thought() {
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "other",
        "rawInput": {"query": "INSERT INTO todos VALUES (1)"},
    });
    let title = chunk("agent_thought_chunk", "Research");
    let events = copilot(&[update(call), title.clone(), ended(None)]);
    assert_eq!(of_type(&events, "notice")[0]["text"], "Research");
    assert_eq!(text_of(&events), "");
    assert_eq!(text_of(&copilot(&[title, ended(None)])), "Research");
}

#[test]
fn tokens_of_one_request_are_not_those_of_a_turn() {
    let open_code = |lines: &[String]| {
        let events = read(&[&[initialized("OpenCode"), new_session()], lines].concat());
        let turn = of_type(&events, "turn_ended")[0]["usage"]["input"].as_u64();
        let request = of_type(&events, "usage").iter().find_map(|it| it["input"].as_u64());
        (turn, request)
    };
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "kind": "execute",
        "status": "completed", "rawInput": {"command": "ls"},
    });
    assert_eq!(open_code(&[text_record("a"), ended(Some(10))]), (Some(10), None));
    assert_eq!(open_code(&[update(call), text_record("a"), ended(Some(10))]), (None, Some(10)));
}

#[test]
fn a_loaded_session_has_its_earlier_cost() {
    let loaded = json!({"jsonrpc": "2.0", "id": 2, "result": {"modes": {"currentModeId": "m"}}});
    let loaded = loaded.to_string();
    let cost = |lines: &[String]| {
        let events = read(&[&[initialized("x")], lines].concat());
        let live = of_type(&events, "turn_ended").into_iter().rfind(|end| end["replay"] != true);
        live.unwrap()["cost"]["usd"].as_f64()
    };
    let live = [text_record("new"), cost_update(1.1), ended(None)];
    let past = [text_record("old"), cost_update(1.0), loaded.clone()];
    assert_eq!(cost(&[&past[..], &live].concat()), Some(0.1));
    // The cost before that is unknown.
    assert_eq!(cost(&[&past[..1], &past[2..], &live].concat()), None);
    // From then on it is known.
    let next = [text_record("next"), cost_update(1.3), ended(None)];
    assert_eq!(cost(&[&past[..1], &past[2..], &live, &next].concat()), Some(0.2));
    assert_eq!(cost(&[&[new_session()][..], &live].concat()), Some(1.1));
}

#[test]
fn a_failed_turn_has_its_cost() {
    let failed = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": 500, "message": "no"}});
    let failed = failed.to_string();
    let events = read(&[
        initialized("x"),
        new_session(),
        text_record("a"),
        cost_update(0.5),
        failed,
        text_record("b"),
        ended(None),
    ]);
    let ends = of_type(&events, "turn_ended");
    assert_eq!(ends[0]["cost"]["usd"], 0.5);
    assert!(ends[1].get("cost").is_none());
}

fn gemini_permission_request(id: u64) -> String {
    let call = format!("run_shell_command__{id}");
    permission_request(
        id,
        json!({"toolCallId": call, "title": "ls", "kind": "execute", "status": "pending"}),
    )
}

#[test]
fn a_call_that_gemini_does_not_mention_again_was_denied() {
    let gemini =
        |lines: &[String]| read(&[&[initialized("gemini-cli"), new_session()], lines].concat());
    let position =
        |events: &[Value], kind: &str| kinds(events).into_iter().position(|it| it == kind).unwrap();
    let events = gemini(&[gemini_permission_request(0), text_record("Then not."), ended(None)]);
    assert!(position(&events, "tool_ended") < position(&events, "block_delta"));
    assert_eq!(of_type(&events, "tool_ended")[0]["status"], "denied");
    let resolved = of_type(&events, "permission_resolved")[0];
    assert_eq!((&resolved["decision"], &resolved["request"]), (&json!("denied"), &json!("0")));
    // With one call after the other, the next one implies that the first was refused.
    let events = gemini(&[gemini_permission_request(0), gemini_permission_request(1), ended(None)]);
    let order = kinds(&events);
    assert_eq!(order.iter().filter(|kind| **kind == "permission_resolved").count(), 2);
    let first_end = position(&events, "tool_ended");
    assert!(first_end < order.iter().rposition(|kind| *kind == "tool_started").unwrap());
    // A call that was allowed is mentioned again.
    let allowed = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
    let allowed = json!({"jsonrpc": "2.0", "id": 0, "result": allowed}).to_string();
    let done = json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "run_shell_command__0",
        "status": "completed",
    });
    let events = gemini(&[
        prompt(),
        gemini_permission_request(0),
        allowed,
        chunk("agent_thought_chunk", "Hm."),
        update(done),
        ended(None),
    ]);
    assert_eq!(of_type(&events, "tool_ended")[0]["status"], "completed");
}

#[test]
fn the_decision_of_a_user_has_a_name() {
    let answer = |option: &str| {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": outcome}).to_string();
        let call = json!({"toolCallId": "c", "title": "t", "kind": "execute"});
        let events = read(&[
            initialized("x"),
            new_session(),
            prompt(),
            permission_request(7, call),
            answer,
            ended(None),
        ]);
        of_type(&events, "permission_resolved")[0].clone()
    };
    assert_eq!(answer("no")["reason"], "Reject");
    assert!(answer("yes").get("reason").is_none());
}

#[test]
fn a_permission_request_shows_the_input_of_its_call() {
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "edit",
        "status": "pending", "rawInput": {"path": "/f", "file_text": "a"},
    });
    let asked = json!({"toolCallId": "c", "kind": "edit", "rawInput": {"fileName": "/f"}});
    let events = copilot(&[update(call), permission_request(0, asked), ended(None)]);
    let asked = of_type(&events, "permission_requested")[0];
    assert_eq!(asked["tool"], "create");
    assert_eq!(asked["input"]["file_text"], "a");
}

/// Observed when OpenCode sent the permission request before the command.
#[test]
fn a_permission_request_completes_the_announcement_of_its_call() {
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "kind": "execute",
        "status": "pending", "rawInput": {"cwd": "/w"},
    });
    let asked = json!({
        "toolCallId": "c", "title": "ls", "kind": "execute", "status": "pending",
        "rawInput": {"command": "ls"},
    });
    let lines = [
        initialized("OpenCode"),
        new_session(),
        update(call),
        permission_request(0, asked),
        ended(None),
    ];
    let events = read(&lines);
    assert_eq!(of_type(&events, "permission_requested")[0]["input"]["command"], "ls");
    assert_eq!(of_type(&events, "tool_input")[0]["input"]["command"], "ls");
}

/// OpenCode and Copilot report such a command as completed.
#[test]
fn a_command_that_exits_with_a_code_has_failed() {
    let end = |exit: i64| {
        let done = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
            "rawOutput": {"output": "", "metadata": {"exit": exit}},
        });
        let events = read(&[initialized("OpenCode"), new_session(), update(done), ended(None)]);
        let end = of_type(&events, "tool_ended")[0];
        (end["status"].clone(), end["exit_code"].clone())
    };
    assert_eq!(end(3), (json!("failed"), json!(3)));
    assert_eq!(end(0), (json!("completed"), json!(0)));
}

#[test]
fn a_call_that_fails_after_a_cancel_was_cancelled() {
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "execute",
        "status": "in_progress", "rawInput": {"command": "x"},
    });
    let failed =
        update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"}));
    let stop = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
    let status = |lines: &[String]| {
        let events = read(
            &[&[initialized("x"), new_session(), prompt(), update(call.clone())], lines].concat(),
        );
        of_type(&events, "tool_ended")[0]["status"].clone()
    };
    assert_eq!(status(&[stop.to_string(), failed.clone()]), "cancelled");
    assert_eq!(status(&[failed]), "failed");
}

#[test]
fn the_content_of_a_terminal_is_the_output() {
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "execute",
        "status": "pending", "rawInput": {"command": "x"},
    });
    let shows = |status: &str, data: &str| {
        update(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status,
            "content": [{"type": "terminal", "terminalId": "t"}],
            "_meta": {"terminal_output": {"data": data}, "terminal_exit": {"exit_code": 2}},
        }))
    };
    let lines = [
        initialized("@zed-industries/claude-code-acp"),
        new_session(),
        update(call),
        shows("in_progress", "a\n"),
        shows("completed", "b\n"),
        ended(None),
    ];
    let events = read(&lines);
    assert_eq!(of_type(&events, "session_started")[0]["agent"], "claude");
    let deltas = of_type(&events, "tool_progress");
    assert_eq!(deltas.iter().filter_map(|it| it["output"].as_str()).collect::<String>(), "a\n");
    let end = of_type(&events, "tool_ended")[0];
    assert_eq!((&end["output"], &end["exit_code"]), (&json!("a\nb\n"), &json!(2)));
}

#[test]
fn named_plans_are_emitted() {
    let entries = json!([{"content": "a", "status": "pending", "priority": "low"}]);
    let plan = json!({"type": "items", "planId": "p", "entries": entries});
    let text = json!({"type": "markdown", "planId": "q", "content": "# a"});
    let events = read(&[
        initialized("x"),
        new_session(),
        update(json!({"sessionUpdate": "plan_update", "plan": plan})),
        update(json!({"sessionUpdate": "plan_update", "plan": text})),
        update(json!({"sessionUpdate": "plan_removed", "planId": "p"})),
        ended(None),
    ]);
    let plans = of_type(&events, "plan_updated");
    assert_eq!(plans.len(), 2);
    assert_eq!((&plans[0]["plan"], &plans[0]["items"][0]["text"]), (&json!("p"), &json!("a")));
    assert_eq!((&plans[1]["plan"], &plans[1]["items"]), (&json!("p"), &json!([])));
    assert!(of_type(&events, "unknown").is_empty());
}

#[test]
fn the_first_token_counts_are_those_of_the_turn() {
    let counted = json!({
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""},
        "_meta": {"usage": {"inputTokens": 10, "outputTokens": 1, "totalTokens": 11}},
    });
    let events = read(&[
        initialized("qwen-code"),
        new_session(),
        update(counted),
        text_record("a"),
        ended(None),
    ]);
    let kinds = kinds(&events);
    assert_eq!(kinds[..2], ["turn_started", "usage"]);
    assert_eq!(of_type(&events, "turn_ended")[0]["usage"]["input"], 10);
}

#[test]
fn sessions_have_the_model_and_mode_names_of_the_agent() {
    let model = json!({"currentModelId": "$runtime|openai|m(openai)"});
    let opened = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s", "models": model}});
    let session = |agent: &str, opened: &Value| {
        let events = read(&[initialized(agent), opened.to_string(), text_record("a"), ended(None)]);
        of_type(&events, "session_started")[0].clone()
    };
    let qwen = session("qwen-code", &opened);
    assert_eq!((&qwen["agent"], &qwen["model"]), (&json!("qwen"), &json!("m")));
    let mode = json!({"currentModeId": "https://a.b/session-modes#agent"});
    let opened = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s", "modes": mode}});
    let copilot = session("Copilot", &opened);
    assert_eq!(
        (&copilot["agent"], &copilot["permission_mode"]),
        (&json!("copilot"), &json!("agent"))
    );
}

#[test]
fn a_padded_id_names_the_same_session() {
    let params = json!({"sessionId": " s", "cwd": "/w", "mcpServers": []});
    let load =
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/load", "params": params}).to_string();
    let loaded = json!({"jsonrpc": "2.0", "id": 2, "result": {}}).to_string();
    let lines =
        [initialized("gemini-cli"), load, loaded, prompt(), text_record("On."), ended(None)];
    let lines = lines.map(|line| line.replace(r#""sessionId":"s""#, r#""sessionId":" s""#));
    let events = read(&lines);
    let started = of_type(&events, "session_started");
    assert_eq!((started.len(), &started[0]["id"]), (1, &json!("s")));
}

#[test]
fn history_ends_with_the_answer_that_opens_the_session() {
    let load = json!({"sessionId": "s", "cwd": "/w", "mcpServers": []});
    let load = json!({"jsonrpc": "2.0", "id": 2, "method": "session/load", "params": load});
    let loaded = json!({"jsonrpc": "2.0", "id": 2, "result": null});
    let mode = update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"}));
    let events = read(&[
        initialized("x"),
        load.to_string(),
        text_record("old"),
        loaded.to_string(),
        mode,
        prompt(),
        text_record("new"),
        ended(None),
    ]);
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
    assert!(at("turn_ended") < at("session_updated"));
}

/// Qwen Code 0.24.4 reports its mode in a notification of its own.
#[test]
fn the_mode_of_qwen_is_read() {
    let params = json!({"sessionId": "s", "currentModeId": "plan", "planExecutionMode": "auto"});
    let method = "qwen/notify/session/mode-update";
    let mode = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
    let events = read(&[initialized("qwen-code"), prompt(), mode, ended(None)]);
    let updated = of_type(&events, "session_updated");
    assert_eq!((updated.len(), &updated[0]["permission_mode"]), (1, &json!("plan")));
}

#[test]
fn a_written_file_is_described_by_its_difference() {
    let call = json!({
        "toolCallId": "write_file__1", "title": "Writing to f", "kind": "edit", "status": "pending",
        "content": [{"type": "diff", "path": "/f", "oldText": "", "newText": "new"}],
        "locations": [{"path": "/f"}],
    });
    let events = read(&[initialized("gemini-cli"), new_session(), permission_request(0, call)]);
    let input = &of_type(&events, "tool_started")[0]["input"];
    assert_eq!((&input["path"], &input["content"]), (&json!("/f"), &json!("new")));
}

/// The request was judged and shown by its first location alone.
#[test]
fn a_call_that_changes_several_files_names_all_of_them() {
    let diff = |path: &str, new: &str| json!({"type": "diff", "path": path, "oldText": "old", "newText": new});
    let call = json!({
        "toolCallId": "replace__1", "title": "Two edits", "kind": "edit", "status": "pending",
        "content": [diff("/a", "1"), diff("/.git/hooks/x", "2")],
        "locations": [{"path": "/a"}, {"path": "/b"}],
    });
    let events = read(&[initialized("gemini-cli"), new_session(), permission_request(0, call)]);
    let expected = json!({
        "title": "Two edits",
        "paths": ["/a", "/b", "/.git/hooks/x"],
        "changes": [
            {"path": "/a", "oldText": "old", "newText": "1"},
            {"path": "/.git/hooks/x", "oldText": "old", "newText": "2"},
        ],
    });
    assert_eq!(of_type(&events, "permission_requested")[0]["input"], expected);
}

/// A location that is not the file of the difference must not replace it.
#[test]
fn a_change_outside_of_the_location_is_named() {
    let call = json!({
        "toolCallId": "replace__1", "title": "An edit", "kind": "edit", "status": "pending",
        "content": [{"type": "diff", "path": "/b", "oldText": "old", "newText": "new"}],
        "locations": [{"path": "/a"}],
    });
    let events = read(&[initialized("gemini-cli"), new_session(), permission_request(0, call)]);
    let input = &of_type(&events, "permission_requested")[0]["input"];
    let changes = json!([{"path": "/b", "oldText": "old", "newText": "new"}]);
    assert_eq!((&input["paths"], &input["changes"]), (&json!(["/a", "/b"]), &changes));
}

/// Gemini reports no input of a tool of an MCP server, and its title has nothing but the names.
#[test]
fn the_title_of_a_tool_of_an_mcp_server_is_no_input() {
    let call = |title: &str| {
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "mcp_form_ask__c1",
            "status": "in_progress", "title": title, "content": [], "locations": [], "kind": "other"});
        let lines = [initialized("gemini-cli"), new_session(), prompt(), update(call), ended(None)];
        let events = read(&lines);
        let known = events.iter().filter(|event| {
            ["tool_started", "tool_input"].contains(&event["type"].as_str().unwrap_or_default())
        });
        known.filter_map(|event| event.get("input").cloned()).collect::<Vec<_>>()
    };
    assert_eq!(call("ask (form MCP Server)"), [Value::Null; 0]);
    assert_eq!(call("ask (other MCP Server)").len(), 1);
}
