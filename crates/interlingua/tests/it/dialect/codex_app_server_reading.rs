//! Cases of reading `codex app-server` that the transcripts do not contain, and cases in them that
//! must not be misread.

use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::{Case, translate, translate_lines};

/// A notification of the agent.
fn notification(method: &str, mut params: Value) -> String {
    let fields = params.as_object_mut().unwrap();
    fields.entry("threadId").or_insert(json!("main"));
    fields.entry("turnId").or_insert(json!("turn-1"));
    json!({"method": method, "params": params, "emittedAtMs": 7}).to_string()
}

fn item(method: &str, item: Value) -> String {
    notification(method, json!({"item": item}))
}

fn opened() -> String {
    let thread =
        json!({"id": "main", "cliVersion": "0.166.0", "cwd": "/w", "preview": "", "turns": []});
    json!({"id": 1, "result": {"thread": thread, "model": "m", "cwd": "/w"}}).to_string()
}

fn started() -> String {
    notification(
        "turn/started",
        json!({"turn": {"id": "turn-1", "items": [], "status": "inProgress"}}),
    )
}

fn ended(status: &str) -> String {
    notification("turn/completed", json!({"turn": {"id": "turn-1", "items": [], "status": status}}))
}

fn usage(turn: &str, total: u64) -> String {
    let counts = json!({"totalTokens": total, "inputTokens": total, "outputTokens": 0});
    let usage = json!({"total": counts, "last": counts});
    notification("thread/tokenUsage/updated", json!({"turnId": turn, "tokenUsage": usage}))
}

/// The events of a session with these messages in one turn, without native records.
fn turn(messages: &[String]) -> Vec<Value> {
    let mut lines = vec![opened(), started()];
    lines.extend_from_slice(messages);
    lines.push(ended("completed"));
    events(&lines)
}

fn events(lines: &[String]) -> Vec<Value> {
    let records = translate_lines("codex-app-server", "events", lines).records();
    records.into_iter().filter(|event| event["type"] != "native").collect()
}

fn transcript(name: &str) -> Case {
    Case::all().into_iter().find(|case| case.name == format!("codex-app-server/{name}")).unwrap()
}

fn events_of_transcript(name: &str) -> Vec<Value> {
    let case = transcript(name);
    translate("events", &case.input, &case.exit).records()
}

#[test]
fn the_text_of_an_interrupted_request_is_withdrawn() {
    let events = events_of_transcript("cut-then-ok");
    let withdrawn = of_type(&events, "withdrawn");
    assert_eq!(withdrawn.len(), 1);
    let block = json!({"block": 1, "kind": "text", "open": true, "text": "This will be"});
    assert_eq!(withdrawn[0]["blocks"], json!([block]));
    let retry = of_type(&events, "retry")[0];
    assert_eq!((&retry["attempt"], &retry["of"]), (&json!(1), &json!(2)));
    assert_eq!(retry["class"], "network");
}

#[test]
fn an_answered_request_is_never_withdrawn() {
    let message = |id: &str| json!({"type": "agentMessage", "id": id, "text": "x"});
    let retry = notification(
        "error",
        json!({"willRetry": true, "error": {"message": "Reconnecting... 1/5"}}),
    );
    let events = turn(&[
        item("item/completed", message("kept")),
        usage("turn-1", 10),
        item("item/started", message("cut")),
        notification("item/agentMessage/delta", json!({"itemId": "cut", "delta": "half"})),
        retry,
    ]);
    let withdrawn: Vec<_> = of_type(&events, "withdrawn").iter().map(|it| &it["message"]).collect();
    assert_eq!(withdrawn, ["cut"]);
}

#[test]
fn counts_of_replayed_turns_are_not_counted_again() {
    let usages: Vec<_> = of_type(&events_of_transcript("resume"), "turn_ended")
        .iter()
        .map(|ended| ended["usage"]["output"].clone())
        .collect();
    assert_eq!(usages, [20, 20]);
}

#[test]
fn a_resume_in_a_new_process_counts_from_what_it_repeats() {
    let thread = json!({"id": "main", "preview": "hi", "turns": []});
    let resumed = json!({"id": 1, "result": {"thread": thread, "model": "m"}}).to_string();
    let lines =
        [resumed, usage("turn-0", 1000), started(), usage("turn-1", 1300), ended("completed")];
    let events = events(&lines);
    let ended = of_type(&events, "turn_ended")[0];
    assert_eq!(ended["usage"]["input"], 300);
}

#[test]
fn a_resume_marks_replayed_turns() {
    let past = json!({"id": "old", "status": "completed", "items": [
        {"type": "userMessage", "id": "u", "content": [{"type": "text", "text": "one"}]},
        {"type": "agentMessage", "id": "a", "text": "turn one"},
    ]});
    let thread = json!({"id": "main", "preview": "one", "turns": [past]});
    let resumed = json!({"id": 1, "result": {"thread": thread, "model": "m"}}).to_string();
    let lines = [resumed.clone(), resumed, started(), ended("completed")];
    let events = events(&lines);
    let turns: Vec<_> =
        of_type(&events, "turn_started").iter().map(|it| it["replay"].clone()).collect();
    assert_eq!(turns, [json!(true), Value::Null]);
    assert_eq!(of_type(&events, "user_message")[0]["replay"], true);
    assert_eq!(of_type(&events, "block").len(), 1);
}

#[test]
fn zeros_are_unknown_counts() {
    let events = events_of_transcript("failed-ctx");
    let ended = of_type(&events, "turn_ended")[0];
    assert_eq!(ended["usage"], Value::Null);
    assert_eq!(
        (&ended["outcome"], &ended["class"]),
        (&json!("failed"), &json!("context_overflow"))
    );
}

#[test]
fn errors_are_classified() {
    let class = |info: Value| {
        let error = json!({"message": "no", "codexErrorInfo": info});
        let events = turn(&[notification("error", json!({"error": error, "willRetry": false}))]);
        let error = of_type(&events, "error")[0].clone();
        (error["class"].as_str().unwrap().to_owned(), error["http_status"].as_u64())
    };
    for (info, expected) in [
        (json!("usageLimitExceeded"), ("quota", None)),
        (json!("rateLimitExceeded"), ("rate_limit", None)),
        (json!("serverOverloaded"), ("overloaded", None)),
        (json!("unauthorized"), ("authentication", None)),
        (json!("cyberPolicy"), ("refusal", None)),
        (json!("somethingNew"), ("unknown", None)),
        (json!({"httpConnectionFailed": {"httpStatusCode": 429}}), ("rate_limit", Some(429))),
        (json!({"responseStreamDisconnected": {"httpStatusCode": null}}), ("network", None)),
        (Value::Null, ("unknown", None)),
    ] {
        assert_eq!(class(info.clone()), (expected.0.to_owned(), expected.1), "{info}");
    }
}

#[test]
fn a_turn_that_reached_a_limit_or_broke_a_policy_has_that_outcome() {
    let outcome = |info: &str, message: &str| {
        let error = json!({"message": message, "codexErrorInfo": info});
        let turn = json!({"id": "turn-1", "items": [], "status": "failed", "error": error});
        let lines = [opened(), started(), notification("turn/completed", json!({"turn": turn}))];
        of_type(&events(&lines), "turn_ended")[0]["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome("other", "Incomplete response, reason: max_output_tokens"), "limit_reached");
    assert_eq!(outcome("sessionBudgetExceeded", "enough"), "limit_reached");
    assert_eq!(outcome("misalignmentPolicyViolation", "no"), "refused");
    assert_eq!(outcome("badRequest", "what?"), "failed");
}

#[test]
fn the_response_of_the_client_is_the_decision() {
    for (name, decision, why) in [
        ("both-sides-approval-cmd", "allowed", Value::Null),
        ("both-sides-approval-cancel", "denied", json!("the client cancelled the turn")),
    ] {
        let events = events_of_transcript(name);
        let resolved = of_type(&events, "permission_resolved");
        assert_eq!(resolved.len(), 1, "{name}");
        assert_eq!(resolved[0]["decision"], decision);
        assert_eq!((&resolved[0]["by"], &resolved[0]["reason"]), (&json!("client"), &why));
    }
}

#[test]
fn without_the_client_the_decision_is_inferred_from_the_call() {
    for (name, decision, status) in [
        ("approval-cmd", "allowed", "completed"),
        ("approval-cmd-decline", "denied", "denied"),
        ("approval-cancel", "denied", "denied"),
    ] {
        let events = events_of_transcript(name);
        let resolved = of_type(&events, "permission_resolved");
        assert_eq!(resolved.len(), 1, "{name}");
        assert_eq!(resolved[0]["decision"], decision, "{name}");
        let ended = of_type(&events, "tool_ended")[0];
        assert_eq!(ended["status"], status, "{name}");
        assert_eq!(ended["error"] == "the call was not allowed", status == "denied", "{name}");
    }
}

#[test]
fn a_call_that_ran_when_the_turn_was_interrupted_was_cancelled() {
    for name in ["interrupt-tool", "both-sides-interrupt-tool"] {
        let events = events_of_transcript(name);
        let call = of_type(&events, "tool_ended")[0];
        assert_eq!(call["status"], "cancelled", "{name}");
        assert_eq!(call["error"], "the turn was stopped while this call ran", "{name}");
        let ended = of_type(&events, "turn_ended")[0];
        assert_eq!(ended["cause"], "the turn was interrupted", "{name}");
        assert!(
            call["sequence"].as_u64() < of_type(&events, "interrupted")[0]["sequence"].as_u64()
        );
    }
    // The turn has ended, and the command continues.
    assert_eq!(
        of_type(&events_of_transcript("bg-abandoned"), "tool_ended")[0]["status"],
        "abandoned"
    );
}

#[test]
fn every_message_that_started_ends() {
    for name in ["steer", "interrupt-text", "cut-then-ok"] {
        let events = events_of_transcript(name);
        let ids = |kind: &str| -> Vec<Value> {
            of_type(&events, kind).iter().map(|it| it["message"].clone()).collect()
        };
        assert_eq!(ids("message_started"), ids("message_ended"), "{name}");
    }
    let events = events_of_transcript("interrupt-text");
    let place = |kind: &str| events.iter().rposition(|event| event["type"] == kind).unwrap();
    assert!(place("message_ended") < place("interrupted"));
}

#[test]
fn an_interrupt_without_effect_is_emitted_when_the_stream_ends() {
    let params = json!({"threadId": "main", "turnId": "turn-1"});
    let asked = json!({"method": "turn/interrupt", "id": 3, "params": params}).to_string();
    let cut = events(&[opened(), started(), asked.clone()]);
    assert_eq!(of_type(&cut, "interrupted").len(), 1);
    assert_eq!(of_type(&cut, "turn_ended")[0]["outcome"], "cancelled");
    let too_late = events(&[opened(), started(), asked, ended("completed")]);
    assert!(of_type(&too_late, "interrupted").is_empty());
}

#[test]
fn the_agent_is_codex() {
    assert_eq!(of_type(&turn(&[]), "session_started")[0]["agent"], "codex");
}

#[test]
fn the_steps_of_a_turn_are_its_requests() {
    for (name, steps) in
        [("plan", 4), ("websearch", 1), ("codemode", 5), ("bg-session", 3), ("steer", 2)]
    {
        assert_eq!(of_type(&events_of_transcript(name), "turn_ended")[0]["steps"], steps, "{name}");
    }
    assert_eq!(
        of_type(&events_of_transcript("interrupt-tool"), "turn_ended")[0]["steps"],
        Value::Null
    );
}

#[test]
fn both_directions_give_the_same_events_as_one() {
    for (one, both) in
        [("interrupt-tool", "both-sides-interrupt-tool"), ("resume", "both-sides-resume")]
    {
        let content = |name: &str| -> Vec<Value> {
            let mut events = events_of_transcript(name);
            events.retain(|event| event["type"] != "native");
            for event in &mut events {
                for field in ["sequence", "line", "bytes", "time"] {
                    event.as_object_mut().unwrap().remove(field);
                }
            }
            events
        };
        assert_eq!(content(one), content(both), "{both}");
    }
}

#[test]
fn the_prompt_is_emitted_though_the_turn_never_starts() {
    let input = json!([{"type": "text", "text": "do it"}]);
    let params = json!({"threadId": "main", "input": input});
    let asked = json!({"method": "turn/start", "id": 2, "params": params}).to_string();
    let refused =
        json!({"id": 2, "error": {"code": -32600, "message": "no such thread"}}).to_string();
    let events = events(&[opened(), asked.clone(), refused]);
    assert_eq!(of_type(&events, "user_message")[0]["text"], "do it");
    let ended = of_type(&events, "turn_ended");
    assert_eq!((ended.len(), &ended[0]["cause"]), (1, &json!("no such thread")));
    let events = self::events(&[opened(), asked]);
    assert_eq!(of_type(&events, "user_message")[0]["text"], "do it");
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "failed");
}

#[test]
fn an_error_response_is_the_cause_if_there_was_no_turn() {
    let refused = json!({"id": 1, "error": {"code": -32603, "message": "no config"}}).to_string();
    let events = events(&[refused]);
    let ended = of_type(&events, "turn_ended")[0];
    assert_eq!((&ended["outcome"], &ended["cause"]), (&json!("failed"), &json!("no config")));
}

#[test]
fn a_file_that_moved_has_its_old_name() {
    let change =
        json!({"path": "/w/a", "kind": {"type": "update", "move_path": "/w/b"}, "diff": "@@"});
    let call = json!({"type": "fileChange", "id": "c", "changes": [change], "status": "completed"});
    let events = turn(&[item("item/completed", call)]);
    let expected = json!([{"path": "/w/b", "old_path": "/w/a", "kind": "move", "diff": "@@"}]);
    assert_eq!(of_type(&events, "files_changed")[0]["changes"], expected);
}

#[test]
fn the_content_of_an_added_or_deleted_file_is_emitted_as_a_diff() {
    let change = |kind: &str, content: &str| json!({"path": "/w/a", "kind": {"type": kind}, "diff": content});
    let changes = json!([
        change("add", "one\ntwo\n"),
        change("delete", "gone"),
        change("add", ""),
        change("update", "@@ -1 +1 @@\n-a\n+b\n"),
    ]);
    let call = json!({"type": "fileChange", "id": "c", "changes": changes, "status": "completed"});
    let events = turn(&[item("item/completed", call)]);
    let changes = &of_type(&events, "files_changed")[0]["changes"];
    assert_eq!(changes[0]["diff"], "@@ -0,0 +1,2 @@\n+one\n+two\n");
    assert_eq!(changes[1]["diff"], "@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n");
    assert_eq!(changes[2]["diff"], Value::Null);
    assert_eq!(changes[3]["diff"], "@@ -1 +1 @@\n-a\n+b\n");
}

#[test]
fn a_failed_change_is_marked_as_failed() {
    let call = json!({"type": "fileChange", "id": "c", "changes": [], "status": "failed"});
    let events = turn(&[item("item/completed", call)]);
    assert_eq!(of_type(&events, "tool_ended")[0]["error"], "the call failed");
}

#[test]
fn the_diff_of_a_turn_adds_only_files_that_no_call_reported() {
    let change = json!({"path": "/w/sub/a", "kind": {"type": "update"}, "diff": "@@"});
    let call = json!({"type": "fileChange", "id": "c", "changes": [change], "status": "completed"});
    let added = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";
    let known = "diff --git a/sub/a b/sub/a\n--- a/sub/a\n+++ b/sub/a\n@@ -1 +1 @@\n-x\n+y\n";
    let diff = notification("turn/diff/updated", json!({"diff": format!("{known}{added}")}));
    let events = turn(&[item("item/completed", call), diff.clone(), diff]);
    let changed = of_type(&events, "files_changed");
    assert_eq!(changed.len(), 2);
    assert_eq!(changed[1]["changes"], json!([{"path": "new", "kind": "add", "diff": added}]));
}

#[test]
fn the_text_of_a_sub_agent_has_its_call_as_parent() {
    let events = events_of_transcript("subagent-v1");
    let nested: Vec<_> = events.iter().filter(|event| event["parent"] == "call_spawn_1").collect();
    assert!(nested.iter().any(|event| event["type"] == "block_delta"));
    assert_eq!(of_type(&events, "turn_ended").len(), 1);
    assert_eq!(of_type(&events, "subagent_started").len(), 1);
    assert_eq!(of_type(&events, "subagent_ended")[0]["summary"], "hi from the sub agent");
}

#[test]
fn a_sub_agent_without_a_call_is_emitted_too() {
    let activity = |kind: &str| {
        json!({"type": "subAgentActivity", "id": "spawn", "kind": kind, "agentThreadId": "child",
            "agentPath": "/root/reader"})
    };
    let text = json!({"threadId": "child", "turnId": "t", "itemId": "m", "delta": "hi"});
    let events = turn(&[
        item("item/started", activity("started")),
        item("item/completed", activity("started")),
        notification("item/agentMessage/delta", text),
        item("item/completed", activity("completed")),
    ]);
    assert_eq!(of_type(&events, "subagent_started")[0]["description"], "/root/reader");
    assert_eq!(of_type(&events, "block_delta")[0]["parent"], "spawn");
    assert_eq!(of_type(&events, "subagent_ended").len(), 1);
    assert_eq!(of_type(&events, "tool_started").len(), 1);
}

#[test]
fn concurrent_threads_are_kept_separate() {
    let text = |thread: &str, text: &str| {
        notification(
            "item/agentMessage/delta",
            json!({"threadId": thread, "turnId": thread, "itemId": thread, "delta": text}),
        )
    };
    let done = json!({"id": "t", "status": "completed", "items": []});
    let events = turn(&[
        text("main", "a"),
        text("other", "b"),
        notification("turn/completed", json!({"threadId": "other", "turn": done})),
        text("main", "c"),
    ]);
    let parents: Vec<_> =
        of_type(&events, "block_delta").iter().map(|it| it["parent"].clone()).collect();
    assert_eq!(parents, [Value::Null, json!("other"), Value::Null]);
    assert_eq!(of_type(&events, "turn_ended").len(), 1);
    assert_eq!(of_type(&events, "tool_ended")[0]["status"], "completed");
}

#[test]
fn a_steered_message_ends_where_it_was_interrupted() {
    let kinds: Vec<_> = events_of_transcript("steer")
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .filter(|kind| ["block_ended", "user_message", "block_started"].contains(&kind.as_str()))
        .collect();
    let expected =
        ["user_message", "block_started", "block_ended", "user_message", "block_started"];
    assert_eq!(kinds[..5], expected);
}

#[test]
fn a_stream_that_starts_within_a_turn_is_read() {
    let text = notification("item/agentMessage/delta", json!({"itemId": "m", "delta": "hi"}));
    let lines = [text, usage("turn-1", 30), ended("completed")];
    let events = events(&lines);
    assert_eq!(of_type(&events, "session_started")[0]["id"], "main");
    let ended = of_type(&events, "turn_ended");
    assert_eq!((ended.len(), &ended[0]["outcome"]), (1, &json!("completed")));
    // The thread is older than the stream, so these are all the tokens that are known.
    assert_eq!(ended[0]["usage"]["input"], 30);
}

#[test]
fn other_tools_are_calls() {
    let events = turn(&[
        item(
            "item/completed",
            json!({"type": "mcpToolCall", "id": "1", "server": "s", "tool": "t",
            "status": "failed", "arguments": {"a": 1}, "result": null, "error": {"message": "bad"}}),
        ),
        item(
            "item/completed",
            json!({"type": "mcpToolCall", "id": "2", "server": "s", "tool": "t",
            "status": "completed", "arguments": {}, "result": {"content": [{"type": "text", "text": "x"}],
            "structuredContent": {"y": 1}}}),
        ),
        item(
            "item/completed",
            json!({"type": "dynamicToolCall", "id": "3", "tool": "pick",
            "arguments": {}, "status": "completed", "contentItems": [
                {"type": "inputText", "text": "z"},
                {"type": "inputImage", "imageUrl": "data:image/png;base64,AAAA"},
                {"type": "inputImage", "imageUrl": "https://example.org/a.png"},
            ]}),
        ),
        item(
            "item/completed",
            json!({"type": "imageGeneration", "id": "4", "status": "completed",
            "revisedPrompt": "a cat", "result": "AAAA", "savedPath": "/w/cat.png"}),
        ),
    ]);
    let names: Vec<_> =
        of_type(&events, "tool_started").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["mcp__s__t", "mcp__s__t", "pick", "image_generation"]);
    let ended = of_type(&events, "tool_ended");
    assert_eq!((&ended[0]["status"], &ended[0]["error"]), (&json!("failed"), &json!("bad")));
    assert_eq!(ended[1]["structured"], json!({"y": 1}));
    let given = json!([
        {"type": "text", "text": "z"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "inputImage", "imageUrl": "https://example.org/a.png"},
    ]);
    assert_eq!(ended[2]["output"], given, "as MCP servers name it");
    assert_eq!(of_type(&events, "artifact")[0]["path"], "/w/cat.png");
}

#[test]
fn a_question_and_its_answer_are_emitted() {
    let params = json!({"threadId": "main", "itemId": "c", "questions": [{"id": "q", "question": "Which?"}]});
    let asks =
        json!({"method": "item/tool/requestUserInput", "id": "r1", "params": params}).to_string();
    let answers =
        json!({"id": "r1", "result": {"answers": {"q": {"answers": ["this"]}}}}).to_string();
    let resolved = notification("serverRequest/resolved", json!({"requestId": "r1"}));
    let emitted = turn(&[asks.clone(), answers, resolved.clone()]);
    assert_eq!(of_type(&emitted, "question_asked")[0]["request"], "r1");
    let answered = of_type(&emitted, "question_answered");
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0]["answers"], json!([{"question": "q", "values": ["this"]}]));
    let alone = turn(&[asks, resolved]);
    assert_eq!(of_type(&alone, "question_answered").len(), 1);
}

/// The request itself contains nothing about the change.
#[test]
fn a_request_to_change_files_contains_the_diff() {
    let events = translate("events", &transcript("approval-cancel").input, &Default::default());
    let requested = events.records();
    let [requested] = &*of_type(&requested, "permission_requested") else { panic!() };
    let change = &requested["input"]["changes"][0];
    assert!(change["path"].is_string() && change["kind"].is_object(), "{requested}");
    assert!(change["diff"].as_str().is_some_and(|diff| !diff.is_empty()), "{requested}");
}

#[test]
fn keys_and_tokens_are_not_emitted() {
    let login = json!({"method": "account/login/start", "id": 1, "params": {"type": "apiKey", "apiKey": "sk-1"}});
    let asks = json!({"method": "account/chatgptAuthTokens/refresh", "id": 4, "params": {"reason": "unauthorized"}});
    let token = json!({"id": 4, "result": {"accessToken": "sk-1"}});
    let status = json!({"id": 2, "result": {"authToken": "sk-1"}});
    let lines: Vec<String> = [login, asks, token, status].iter().map(Value::to_string).collect();
    assert!(!translate_lines("codex-app-server", "events", &lines).text().contains("sk-1"));
}

#[test]
fn an_unknown_record_is_emitted_as_unknown() {
    let lines = [
        notification("thread/brandNew", json!({})),
        json!({"method": "brand/new", "id": 9, "params": {}}).to_string(),
        item("item/completed", json!({"type": "brandNew", "id": "x"})),
        json!({"hello": 1}).to_string(),
    ];
    let events = events(&lines);
    let names: Vec<_> = of_type(&events, "unknown").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["thread/brandNew", "brand/new", "item/completed of brandNew", ""]);
}

fn approval(method: &str, id: u64, mut params: Value) -> String {
    let fields = params.as_object_mut().unwrap();
    fields.extend([("threadId".into(), json!("main")), ("turnId".into(), json!("turn-1"))]);
    json!({"method": method, "id": id, "params": params}).to_string()
}

/// A request for access to the network has no command: with that of its call alone, it would be
/// judged as if it allowed the command only.
#[test]
fn a_request_contains_what_it_allows_beyond_the_command() {
    let command =
        json!({"type": "commandExecution", "id": "i1", "command": "git fetch", "cwd": "/w"});
    let change = json!({"type": "fileChange", "id": "i2", "changes": [{"path": "a", "diff": "+"}]});
    let network = json!({"host": "example.org", "protocol": "https"});
    let more = json!({"network": {"enabled": true}});
    let (run, edit) = ("item/commandExecution/requestApproval", "item/fileChange/requestApproval");
    let requests = [
        (run, json!({"itemId": "i1", "kind": "command"})),
        (run, json!({"itemId": "i1", "kind": "command", "networkApprovalContext": network})),
        (
            run,
            json!({"itemId": "i1", "kind": "writeStdin", "command": "y", "cwd": "/w",
                "additionalPermissions": more}),
        ),
        (edit, json!({"itemId": "i2", "grantRoot": null})),
        (edit, json!({"itemId": "i2", "grantRoot": "/"})),
    ];
    let mut messages = vec![item("item/started", command), item("item/started", change)];
    messages.extend((0..).zip(requests).map(|(id, (method, params))| approval(method, id, params)));
    let events = turn(&messages);
    let inputs: Vec<_> =
        of_type(&events, "permission_requested").iter().map(|it| it["input"].clone()).collect();
    let changes = json!([{"path": "a", "diff": "+"}]);
    assert_eq!(
        inputs,
        [
            json!({"command": "git fetch", "cwd": "/w"}),
            json!({"command": "git fetch", "cwd": "/w", "networkApprovalContext": network}),
            json!({"command": "y", "cwd": "/w", "kind": "writeStdin", "additionalPermissions": more}),
            json!({"changes": changes}),
            json!({"changes": changes, "grantRoot": "/"}),
        ]
    );
}
