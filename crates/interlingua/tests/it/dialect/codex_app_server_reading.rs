//! The reader of `codex app-server`, where the transcripts do not reach, and where they must not be
//! misread.

use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::{Case, translate, translate_lines};

/// A notification of the agent.
fn note(method: &str, mut params: Value) -> String {
    let fields = params.as_object_mut().unwrap();
    fields.entry("threadId").or_insert(json!("main"));
    fields.entry("turnId").or_insert(json!("turn-1"));
    json!({"method": method, "params": params, "emittedAtMs": 7}).to_string()
}

fn item(method: &str, item: Value) -> String {
    note(method, json!({"item": item}))
}

fn opened() -> String {
    let thread =
        json!({"id": "main", "cliVersion": "0.166.0", "cwd": "/w", "preview": "", "turns": []});
    json!({"id": 1, "result": {"thread": thread, "model": "m", "cwd": "/w"}}).to_string()
}

fn started() -> String {
    note("turn/started", json!({"turn": {"id": "turn-1", "items": [], "status": "inProgress"}}))
}

fn ended(status: &str) -> String {
    note("turn/completed", json!({"turn": {"id": "turn-1", "items": [], "status": status}}))
}

fn usage(turn: &str, total: u64) -> String {
    let counts = json!({"totalTokens": total, "inputTokens": total, "outputTokens": 0});
    let usage = json!({"total": counts, "last": counts});
    note("thread/tokenUsage/updated", json!({"turnId": turn, "tokenUsage": usage}))
}

/// The events that tell something, of a session with these messages in one turn.
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

fn told(name: &str) -> Vec<Value> {
    let case = transcript(name);
    translate("events", &case.input, &case.exit).records()
}

#[test]
fn the_text_of_a_cut_request_is_taken_back() {
    let events = told("cut-then-ok");
    let taken = of_type(&events, "withdrawn");
    assert_eq!(taken.len(), 1);
    let block = json!({"block": 1, "kind": "text", "open": true, "text": "This will be"});
    assert_eq!(taken[0]["blocks"], json!([block]));
    let retry = of_type(&events, "retry")[0];
    assert_eq!((&retry["attempt"], &retry["of"]), (&json!(1), &json!(2)));
    assert_eq!(retry["class"], "network");
}

#[test]
fn a_request_that_was_answered_is_never_taken_back() {
    let message = |id: &str| json!({"type": "agentMessage", "id": id, "text": "x"});
    let retry =
        note("error", json!({"willRetry": true, "error": {"message": "Reconnecting... 1/5"}}));
    let events = turn(&[
        item("item/completed", message("kept")),
        usage("turn-1", 10),
        item("item/started", message("cut")),
        note("item/agentMessage/delta", json!({"itemId": "cut", "delta": "half"})),
        retry,
    ]);
    let taken: Vec<_> = of_type(&events, "withdrawn").iter().map(|it| &it["message"]).collect();
    assert_eq!(taken, ["cut"]);
}

#[test]
fn counts_of_the_past_are_not_counted_again() {
    let usages: Vec<_> = of_type(&told("resume"), "turn_ended")
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
fn a_resume_writes_replays_as_the_past() {
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
fn zeros_are_no_counts() {
    let events = told("failed-ctx");
    let ended = of_type(&events, "turn_ended")[0];
    assert_eq!(ended["usage"], Value::Null);
    assert_eq!(
        (&ended["outcome"], &ended["class"]),
        (&json!("failed"), &json!("context_overflow"))
    );
}

#[test]
fn errors_are_typed() {
    let class = |info: Value| {
        let error = json!({"message": "no", "codexErrorInfo": info});
        let events = turn(&[note("error", json!({"error": error, "willRetry": false}))]);
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
fn a_turn_that_ran_into_a_limit_or_a_policy_says_so() {
    let outcome = |info: &str, message: &str| {
        let error = json!({"message": message, "codexErrorInfo": info});
        let turn = json!({"id": "turn-1", "items": [], "status": "failed", "error": error});
        let lines = [opened(), started(), note("turn/completed", json!({"turn": turn}))];
        of_type(&events(&lines), "turn_ended")[0]["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome("other", "Incomplete response, reason: max_output_tokens"), "limit_reached");
    assert_eq!(outcome("sessionBudgetExceeded", "enough"), "limit_reached");
    assert_eq!(outcome("misalignmentPolicyViolation", "no"), "refused");
    assert_eq!(outcome("badRequest", "what?"), "failed");
}

#[test]
fn the_answer_of_the_client_is_what_was_decided() {
    for (name, decision, why) in [
        ("both-sides-approval-cmd", "allowed", Value::Null),
        ("both-sides-approval-cancel", "denied", json!("the client cancelled the turn")),
    ] {
        let events = told(name);
        let resolved = of_type(&events, "permission_resolved");
        assert_eq!(resolved.len(), 1, "{name}");
        assert_eq!(resolved[0]["decision"], decision);
        assert_eq!((&resolved[0]["by"], &resolved[0]["reason"]), (&json!("client"), &why));
    }
}

#[test]
fn without_the_client_the_call_shows_what_was_decided() {
    for (name, decision, status) in [
        ("approval-cmd", "allowed", "completed"),
        ("approval-cmd-decline", "denied", "denied"),
        ("approval-cancel", "denied", "denied"),
    ] {
        let events = told(name);
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
        let events = told(name);
        let call = of_type(&events, "tool_ended")[0];
        assert_eq!(call["status"], "cancelled", "{name}");
        assert_eq!(call["error"], "the turn was stopped while this call ran", "{name}");
        let ended = of_type(&events, "turn_ended")[0];
        assert_eq!(ended["cause"], "the turn was interrupted", "{name}");
        assert!(
            call["sequence"].as_u64() < of_type(&events, "interrupted")[0]["sequence"].as_u64()
        );
    }
    // The turn is over, and the command goes on.
    assert_eq!(of_type(&told("bg-abandoned"), "tool_ended")[0]["status"], "abandoned");
}

#[test]
fn every_message_that_began_ends() {
    for name in ["steer", "interrupt-text", "cut-then-ok"] {
        let events = told(name);
        let ids = |kind: &str| -> Vec<Value> {
            of_type(&events, kind).iter().map(|it| it["message"].clone()).collect()
        };
        assert_eq!(ids("message_started"), ids("message_ended"), "{name}");
    }
    let events = told("interrupt-text");
    let place = |kind: &str| events.iter().rposition(|event| event["type"] == kind).unwrap();
    assert!(place("message_ended") < place("interrupted"));
}

#[test]
fn an_interrupt_that_nothing_came_of_is_told_when_the_stream_ends() {
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
        assert_eq!(of_type(&told(name), "turn_ended")[0]["steps"], steps, "{name}");
    }
    assert_eq!(of_type(&told("interrupt-tool"), "turn_ended")[0]["steps"], Value::Null);
}

#[test]
fn both_sides_tell_the_same_story_as_one() {
    for (one, both) in
        [("interrupt-tool", "both-sides-interrupt-tool"), ("resume", "both-sides-resume")]
    {
        let story = |name: &str| -> Vec<Value> {
            let mut events = told(name);
            events.retain(|event| event["type"] != "native");
            for event in &mut events {
                for field in ["sequence", "line", "bytes", "time"] {
                    event.as_object_mut().unwrap().remove(field);
                }
            }
            events
        };
        assert_eq!(story(one), story(both), "{both}");
    }
}

#[test]
fn the_prompt_is_known_though_the_turn_never_begins() {
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
fn a_refusal_is_the_cause_where_there_was_no_turn() {
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
fn the_content_of_a_file_that_is_new_or_gone_is_told_as_a_difference() {
    let change = |kind: &str, content: &str| json!({"path": "/w/a", "kind": {"type": kind}, "diff": content});
    let changes = json!([
        change("add", "one\ntwo\n"),
        change("delete", "gone"),
        change("add", ""),
        change("update", "@@ -1 +1 @@\n-a\n+b\n"),
    ]);
    let call = json!({"type": "fileChange", "id": "c", "changes": changes, "status": "completed"});
    let events = turn(&[item("item/completed", call)]);
    let told = &of_type(&events, "files_changed")[0]["changes"];
    assert_eq!(told[0]["diff"], "@@ -0,0 +1,2 @@\n+one\n+two\n");
    assert_eq!(told[1]["diff"], "@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n");
    assert_eq!(told[2]["diff"], Value::Null);
    assert_eq!(told[3]["diff"], "@@ -1 +1 @@\n-a\n+b\n");
}

#[test]
fn a_change_that_failed_says_so() {
    let call = json!({"type": "fileChange", "id": "c", "changes": [], "status": "failed"});
    let events = turn(&[item("item/completed", call)]);
    assert_eq!(of_type(&events, "tool_ended")[0]["error"], "the call failed");
}

#[test]
fn the_difference_of_a_turn_tells_only_files_that_no_call_told() {
    let change = json!({"path": "/w/sub/a", "kind": {"type": "update"}, "diff": "@@"});
    let call = json!({"type": "fileChange", "id": "c", "changes": [change], "status": "completed"});
    let added = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";
    let known = "diff --git a/sub/a b/sub/a\n--- a/sub/a\n+++ b/sub/a\n@@ -1 +1 @@\n-x\n+y\n";
    let diff = note("turn/diff/updated", json!({"diff": format!("{known}{added}")}));
    let events = turn(&[item("item/completed", call), diff.clone(), diff]);
    let changed = of_type(&events, "files_changed");
    assert_eq!(changed.len(), 2);
    assert_eq!(changed[1]["changes"], json!([{"path": "new", "kind": "add", "diff": added}]));
}

#[test]
fn what_a_sub_agent_says_belongs_to_the_call_that_started_it() {
    let events = told("subagent-v1");
    let nested: Vec<_> = events.iter().filter(|event| event["parent"] == "call_spawn_1").collect();
    assert!(nested.iter().any(|event| event["type"] == "block_delta"));
    assert_eq!(of_type(&events, "turn_ended").len(), 1);
    assert_eq!(of_type(&events, "subagent_started").len(), 1);
    assert_eq!(of_type(&events, "subagent_ended")[0]["summary"], "hi from the sub agent");
}

#[test]
fn a_sub_agent_that_no_call_shows_is_told_all_the_same() {
    let activity = |kind: &str| {
        json!({"type": "subAgentActivity", "id": "spawn", "kind": kind, "agentThreadId": "child",
            "agentPath": "/root/reader"})
    };
    let says = json!({"threadId": "child", "turnId": "t", "itemId": "m", "delta": "hi"});
    let events = turn(&[
        item("item/started", activity("started")),
        item("item/completed", activity("started")),
        note("item/agentMessage/delta", says),
        item("item/completed", activity("completed")),
    ]);
    assert_eq!(of_type(&events, "subagent_started")[0]["description"], "/root/reader");
    assert_eq!(of_type(&events, "block_delta")[0]["parent"], "spawn");
    assert_eq!(of_type(&events, "subagent_ended").len(), 1);
    assert_eq!(of_type(&events, "tool_started").len(), 1);
}

#[test]
fn two_threads_at_once_do_not_become_one() {
    let says = |thread: &str, text: &str| {
        note(
            "item/agentMessage/delta",
            json!({"threadId": thread, "turnId": thread, "itemId": thread, "delta": text}),
        )
    };
    let done = json!({"id": "t", "status": "completed", "items": []});
    let events = turn(&[
        says("main", "a"),
        says("other", "b"),
        note("turn/completed", json!({"threadId": "other", "turn": done})),
        says("main", "c"),
    ]);
    let parents: Vec<_> =
        of_type(&events, "block_delta").iter().map(|it| it["parent"].clone()).collect();
    assert_eq!(parents, [Value::Null, json!("other"), Value::Null]);
    assert_eq!(of_type(&events, "turn_ended").len(), 1);
    assert_eq!(of_type(&events, "tool_ended")[0]["status"], "completed");
}

#[test]
fn a_steered_message_ends_where_it_was_left() {
    let kinds: Vec<_> = told("steer")
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .filter(|kind| ["block_ended", "user_message", "block_started"].contains(&kind.as_str()))
        .collect();
    let expected =
        ["user_message", "block_started", "block_ended", "user_message", "block_started"];
    assert_eq!(kinds[..5], expected);
}

#[test]
fn a_stream_that_begins_in_the_middle_of_a_turn_is_read() {
    let says = note("item/agentMessage/delta", json!({"itemId": "m", "delta": "hi"}));
    let lines = [says, usage("turn-1", 30), ended("completed")];
    let events = events(&lines);
    assert_eq!(of_type(&events, "session_started")[0]["id"], "main");
    let ended = of_type(&events, "turn_ended");
    assert_eq!((ended.len(), &ended[0]["outcome"]), (1, &json!("completed")));
    // The thread is older than the stream, so these are all tokens that are known.
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
    assert_eq!(ended[2]["output"], given, "in the words that servers of tools use");
    assert_eq!(of_type(&events, "artifact")[0]["path"], "/w/cat.png");
}

#[test]
fn a_question_is_asked_and_answered() {
    let params = json!({"threadId": "main", "itemId": "c", "questions": [{"id": "q", "question": "Which?"}]});
    let asks =
        json!({"method": "item/tool/requestUserInput", "id": "r1", "params": params}).to_string();
    let answers =
        json!({"id": "r1", "result": {"answers": {"q": {"answers": ["this"]}}}}).to_string();
    let resolved = note("serverRequest/resolved", json!({"requestId": "r1"}));
    let heard = turn(&[asks.clone(), answers, resolved.clone()]);
    assert_eq!(of_type(&heard, "question_asked")[0]["request"], "r1");
    let answered = of_type(&heard, "question_answered");
    assert_eq!((answered.len(), &answered[0]["answers"]["q"]["answers"][0]), (1, &json!("this")));
    let alone = turn(&[asks, resolved]);
    assert_eq!(of_type(&alone, "question_answered").len(), 1);
}

#[test]
fn keys_and_tokens_stay_where_they_are() {
    let login = json!({"method": "account/login/start", "id": 1, "params": {"type": "apiKey", "apiKey": "sk-1"}});
    let asks = json!({"method": "account/chatgptAuthTokens/refresh", "id": 4, "params": {"reason": "unauthorized"}});
    let token = json!({"id": 4, "result": {"accessToken": "sk-1"}});
    let status = json!({"id": 2, "result": {"authToken": "sk-1"}});
    let lines: Vec<String> = [login, asks, token, status].iter().map(Value::to_string).collect();
    assert!(!translate_lines("codex-app-server", "events", &lines).text().contains("sk-1"));
}

#[test]
fn what_nobody_knows_is_unknown() {
    let lines = [
        note("thread/brandNew", json!({})),
        json!({"method": "brand/new", "id": 9, "params": {}}).to_string(),
        item("item/completed", json!({"type": "brandNew", "id": "x"})),
        json!({"hello": 1}).to_string(),
    ];
    let events = events(&lines);
    let names: Vec<_> = of_type(&events, "unknown").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["thread/brandNew", "brand/new", "item/completed of brandNew", ""]);
}
