//! Every agent's questions to the user are read into one form, and so are the answers.

use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::translate_lines;

fn read(dialect: &str, records: &[Value]) -> Vec<Value> {
    let lines: Vec<_> = records.iter().map(Value::to_string).collect();
    translate_lines(dialect, "events", &lines).records()
}

/// Some fields of the only event of a kind.
fn only(events: &[Value], kind: &str, fields: &[&str]) -> Value {
    let [event] = &*of_type(events, kind) else { panic!("{kind}: {events:#?}") };
    fields.iter().map(|name| ((*name).to_owned(), event[*name].clone())).collect()
}

fn control(id: &str, request: Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

fn host(id: &str, response: Value) -> Value {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    json!({"type": "control_response", "response": response})
}

fn claude(request: &Value, answer: Value) -> Vec<Value> {
    read("claude", &[control("r", request.clone()), host("r", answer)])
}

const ANSWER: &[&str] = &["answers", "declined", "reason", "form"];

#[test]
fn claudes_questions_are_keyed_by_their_text() {
    let options =
        json!([{"label": "Red", "description": "warm", "preview": "p"}, {"label": "Blue"}]);
    let input = json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": false},
        {"question": "Which shapes?", "options": [{"label": "Dot"}, {"label": "Star"}], "multiSelect": true},
    ]});
    let request = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": input, "tool_use_id": "t", "requires_user_interaction": true});
    let answers = json!({"Which shapes?": "Dot, Star", "Which colour?": "Green"});
    let annotations = json!({"Which colour?": {"notes": "dark"}});
    let updated =
        json!({"questions": input["questions"], "answers": answers, "annotations": annotations});
    let events = claude(&request, json!({"behavior": "allow", "updatedInput": updated}));
    let expected = json!([
        {"id": "Which colour?", "header": "Colour", "text": "Which colour?", "options": options, "free_text": true},
        {"id": "Which shapes?", "text": "Which shapes?", "options": [{"label": "Dot"}, {"label": "Star"}], "multiple": true, "free_text": true},
    ]);
    assert_eq!(
        only(&events, "question_asked", &["request", "call", "questions"]),
        json!({"request": "r", "call": "t", "questions": expected})
    );
    let answers = json!([
        {"question": "Which colour?", "values": ["Green", "dark"]},
        {"question": "Which shapes?", "values": ["Dot", "Star"]},
    ]);
    assert_eq!(
        only(&events, "question_answered", &["answers", "declined", "call"]),
        json!({"answers": answers, "declined": null, "call": "t"})
    );
    let events = claude(&request, json!({"behavior": "deny", "message": "not now"}));
    let declined = json!({"answers": null, "declined": true, "reason": "not now", "form": null});
    assert_eq!(only(&events, "question_answered", ANSWER), declined);
    let unanswered = claude(&request, json!({"behavior": "allow", "updatedInput": input}));
    assert_eq!(only(&unanswered, "question_answered", &["declined"]), json!({"declined": true}));
    assert_eq!(of_type(&events, "permission_requested").len(), 0);
}

#[test]
fn a_question_that_claude_no_longer_asks_is_declined() {
    let request = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": {"questions": []}, "tool_use_id": "t"});
    let cancelled = json!({"type": "control_cancel_request", "request_id": "r"});
    let events = read("claude", &[control("r", request), cancelled]);
    assert_eq!(
        only(&events, "question_answered", &["declined", "synthetic"]),
        json!({"declined": true, "synthetic": null})
    );
    assert_eq!(of_type(&events, "permission_resolved").len(), 0);
}

#[test]
fn claudes_result_contains_the_answers() {
    let request = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": {"questions": [{"question": "A?"}]}, "tool_use_id": "t"});
    let call = json!({"type": "tool_use", "id": "t", "name": "AskUserQuestion", "input": {}});
    let call =
        json!({"type": "assistant", "session_id": "s", "message": {"id": "m", "content": [call]}});
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": "answered"});
    let result = json!({"type": "user", "session_id": "s", "message": {"content": [result]}, "tool_use_result": {"answers": {"A?": "yes"}}});
    let events = read("claude", &[call, control("r", request), result]);
    let answers = json!([{"question": "A?", "values": ["yes"]}]);
    assert_eq!(only(&events, "question_answered", &["answers"]), json!({"answers": answers}));
}

#[test]
fn claudes_plan_is_a_question() {
    let request = json!({"subtype": "can_use_tool", "tool_name": "ExitPlanMode", "input": {"plan": "# Plan", "planFilePath": "/p.md"}, "tool_use_id": "t"});
    let approved = claude(&request, json!({"behavior": "allow", "updatedInput": {}}));
    let options = json!([{"label": "Approve"}, {"label": "Keep planning"}]);
    let question =
        json!([{"id": "plan", "text": "Approve the plan?", "options": options, "free_text": true}]);
    assert_eq!(
        only(&approved, "question_asked", &["message", "questions"]),
        json!({"message": "# Plan", "questions": question})
    );
    let answer = |value: &str| json!([{"question": "plan", "values": [value]}]);
    assert_eq!(only(&approved, "question_answered", &["answers"])["answers"], answer("Approve"));
    let rejected = claude(&request, json!({"behavior": "deny", "message": "smaller"}));
    let expected = json!({"answers": answer("Keep planning"), "declined": null, "reason": "smaller", "form": null});
    assert_eq!(only(&rejected, "question_answered", ANSWER), expected);
}

#[test]
fn claudes_forms_have_a_schema_or_an_address() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let request = json!({"subtype": "elicitation", "mcp_server_name": "el", "message": "Your name?", "mode": "form", "requested_schema": schema, "property_order": ["name"]});
    let events = claude(&request, json!({"action": "accept", "content": {"name": "n"}}));
    let asked = json!({"server": "el", "message": "Your name?", "schema": schema, "url": null});
    assert_eq!(only(&events, "question_asked", &["server", "message", "schema", "url"]), asked);
    let answer = json!({"answers": null, "declined": null, "reason": null, "form": {"name": "n"}});
    assert_eq!(only(&events, "question_answered", ANSWER), answer);
    let request = json!({"subtype": "elicitation", "mcp_server_name": "el", "message": "Sign in", "mode": "url", "url": "https://a.b", "elicitation_id": "e"});
    let events = claude(&request, json!({"action": "decline"}));
    assert_eq!(
        only(&events, "question_asked", &["url", "schema"]),
        json!({"url": "https://a.b", "schema": null})
    );
    assert_eq!(only(&events, "question_answered", &["declined"]), json!({"declined": true}));
}

fn codex(method: &str, params: Value, result: Value) -> Vec<Value> {
    let thread = json!({"id": "main", "cliVersion": "1", "cwd": "/w", "turns": []});
    let turn = json!({"id": "turn", "items": [], "status": "inProgress"});
    read(
        "codex-app-server",
        &[
            json!({"id": 1, "result": {"thread": thread, "model": "m", "cwd": "/w"}}),
            json!({"method": "turn/started", "params": {"threadId": "main", "turn": turn}}),
            json!({"method": method, "id": 0, "params": params}),
            json!({"id": 0, "result": result}),
            json!({"method": "serverRequest/resolved", "params": {"requestId": 0}}),
        ],
    )
}

#[test]
fn codex_questions_have_ids_and_may_be_secret() {
    let questions = json!([
        {"id": "colour", "header": "Colour", "question": "Which?", "isOther": true, "isSecret": false, "options": [{"label": "Red", "description": "warm"}]},
        {"id": "key", "header": "Key", "question": "Key?", "isOther": false, "isSecret": true, "options": null},
    ]);
    let params = json!({"threadId": "main", "itemId": "call", "questions": questions});
    let answers = json!({"key": {"answers": ["s3cret"]}, "colour": {"answers": ["Blue"]}});
    let events = codex("item/tool/requestUserInput", params.clone(), json!({"answers": answers}));
    let expected = json!([
        {"id": "colour", "header": "Colour", "text": "Which?", "options": [{"label": "Red", "description": "warm"}], "free_text": true},
        {"id": "key", "header": "Key", "text": "Key?", "free_text": true, "secret": true},
    ]);
    assert_eq!(only(&events, "question_asked", &["questions"])["questions"], expected);
    let answers = json!([{"question": "colour", "values": ["Blue"]}, {"question": "key"}]);
    assert_eq!(only(&events, "question_answered", &["answers"])["answers"], answers);
    assert!(!events.iter().any(|event| event.to_string().contains("s3cret")));
    let events = codex("item/tool/requestUserInput", params, json!({"answers": {}}));
    assert_eq!(only(&events, "question_answered", &["declined"]), json!({"declined": true}));
}

#[test]
fn a_form_of_an_mcp_server_is_a_question_of_codex() {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"threadId": "main", "serverName": "el", "mode": "form", "message": "Name?", "requestedSchema": schema});
    let method = "mcpServer/elicitation/request";
    let events = codex(method, params, json!({"action": "accept", "content": {"a": 1}}));
    let asked = json!({"server": "el", "message": "Name?", "schema": schema});
    assert_eq!(only(&events, "question_asked", &["server", "message", "schema"]), asked);
    assert_eq!(only(&events, "question_answered", &["form"]), json!({"form": {"a": 1}}));
    let params = json!({"threadId": "main", "serverName": "el", "mode": "url", "message": "Open", "url": "https://a.b", "elicitationId": "e"});
    let events = codex(method, params, json!({"action": "cancel"}));
    assert_eq!(only(&events, "question_asked", &["url"]), json!({"url": "https://a.b"}));
    assert_eq!(only(&events, "question_answered", &["declined"]), json!({"declined": true}));
}

#[test]
fn copilots_question_has_choices() {
    let event = |kind: &str, data: Value| json!({"type": kind, "data": data, "id": "i", "timestamp": "2026-01-01T00:00:00Z"});
    let asked = json!({"requestId": "r", "question": "Which?", "choices": ["A", "B"], "allowFreeform": false, "toolCallId": "t"});
    let answered = json!({"requestId": "r", "answer": "B", "wasFreeform": false});
    let events = read(
        "copilot",
        &[event("user_input.requested", asked), event("user_input.completed", answered)],
    );
    let question =
        json!([{"id": "0", "text": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]);
    assert_eq!(
        only(&events, "question_asked", &["request", "call", "questions"]),
        json!({"request": "r", "call": "t", "questions": question})
    );
    assert_eq!(
        only(&events, "question_answered", &["answers"])["answers"],
        json!([{"question": "0", "values": ["B"]}])
    );
}

fn acp(agent: &str, records: &[Value]) -> Vec<Value> {
    let info = json!({"protocolVersion": 1, "agentInfo": {"name": agent, "version": "1"}});
    let mut all = vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": info}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/w"}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}),
    ];
    all.extend_from_slice(records);
    read("acp", &all)
}

#[test]
fn qwens_permission_request_may_be_a_question() {
    let questions = json!([
        {"question": "Which colour?", "header": "Colour", "options": [{"label": "Red"}, {"label": "Blue"}], "multiSelect": false},
        {"question": "Which shapes?", "header": "Shapes", "options": [{"label": "Dot"}, {"label": "Star"}], "multiSelect": true},
    ]);
    let meta = json!({"toolName": "ask_user_question", "qwenInteractionKind": "user_question", "qwenQuestions": questions});
    let call = json!({"toolCallId": "t", "status": "pending", "title": "Ask", "kind": "think", "content": [], "locations": [], "rawInput": {"questions": questions}, "_meta": meta});
    let options = json!([{"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"}, {"optionId": "cancel", "name": "Cancel", "kind": "reject_once"}]);
    let params = json!({"sessionId": "s", "options": options, "toolCall": call});
    let asks = json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params});
    let answered = |result: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": result});
        acp("qwen-code", &[asks.clone(), answer])
    };
    let select = |option: &str| json!({"outcome": "selected", "optionId": option});
    let events = answered(
        json!({"outcome": select("proceed_once"), "answers": {"0": "Blue", "1": "Dot, Star"}}),
    );
    let asked = only(&events, "question_asked", &["request", "call", "questions"]);
    assert_eq!((&asked["request"], &asked["call"]), (&json!("0"), &json!("t")));
    let ids: Vec<_> = asked["questions"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["0", "1"]);
    let answers = json!([{"question": "0", "values": ["Blue"]}, {"question": "1", "values": ["Dot", "Star"]}]);
    assert_eq!(only(&events, "question_answered", &["answers"])["answers"], answers);
    assert_eq!(of_type(&events, "permission_requested").len(), 0);
    assert_eq!(only(&events, "tool_started", &["name"])["name"], "ask_user_question");
    for result in [
        json!({"outcome": select("cancel")}),
        json!({"outcome": select("proceed_once")}),
        json!({"outcome": {"outcome": "cancelled"}}),
    ] {
        let events = answered(result);
        assert_eq!(only(&events, "question_answered", &["declined"]), json!({"declined": true}));
    }
}

#[test]
fn a_form_of_the_agent_client_protocol_is_a_question() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params =
        json!({"sessionId": "s", "mode": "form", "message": "Name?", "requestedSchema": schema});
    let asks = json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params});
    let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "accept", "content": {"name": "n"}}});
    let events = acp("somebody", &[asks, answer]);
    let asked = json!({"request": "7", "message": "Name?", "schema": schema});
    assert_eq!(only(&events, "question_asked", &["request", "message", "schema"]), asked);
    assert_eq!(
        only(&events, "question_answered", &["form", "request"]),
        json!({"form": {"name": "n"}, "request": "7"})
    );
}

#[test]
fn questions_written_as_a_form_are_read_again() {
    let questions = json!([{"id": "Which?", "text": "Which?", "options": [{"label": "A", "preview": "p"}], "free_text": true}]);
    let asked = json!({"type": "question_asked", "request": "q", "server": "s", "message": "First:", "questions": questions});
    let form = translate_lines("events", "acp", &[asked.to_string()]).records();
    let form = form.into_iter().find(|it| it["method"] == "elicitation/create").unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"answer_1": "A"}}});
    let events = acp("somebody", &[form, answer]);
    let expected = json!({"request": "q", "server": "s", "message": "First:", "questions": questions, "schema": null});
    assert_eq!(
        only(&events, "question_asked", &["request", "server", "message", "questions", "schema"]),
        expected
    );
    assert_eq!(
        only(&events, "question_answered", &["answers"])["answers"],
        json!([{"question": "Which?", "values": ["A"]}])
    );
}

#[test]
fn opencodes_questions_are_answered_in_order() {
    let event = |kind: &str, properties: Value| json!({"type": kind, "properties": properties});
    let questions = json!([
        {"question": "A?", "header": "a", "options": [{"label": "x"}], "multiple": true},
        {"question": "B?", "header": "b", "options": [{"label": "y"}], "custom": false},
    ]);
    let asked = event(
        "question.asked",
        json!({"id": "q", "sessionID": "s", "questions": questions, "tool": {"callID": "t"}}),
    );
    let replied = event(
        "question.replied",
        json!({"requestID": "q", "sessionID": "s", "answers": [["x", "own"], ["y"]]}),
    );
    let events = read("opencode", &[asked.clone(), replied]);
    let expected = json!([
        {"id": "0", "header": "a", "text": "A?", "options": [{"label": "x"}], "multiple": true, "free_text": true},
        {"id": "1", "header": "b", "text": "B?", "options": [{"label": "y"}]},
    ]);
    assert_eq!(only(&events, "question_asked", &["questions"])["questions"], expected);
    let answers =
        json!([{"question": "0", "values": ["x", "own"]}, {"question": "1", "values": ["y"]}]);
    assert_eq!(only(&events, "question_answered", &["answers"])["answers"], answers);
    let rejected = event("question.rejected", json!({"requestID": "q", "sessionID": "s"}));
    let events = read("opencode", &[asked, rejected]);
    assert_eq!(only(&events, "question_answered", &["declined"]), json!({"declined": true}));
}
