//! What an ACP client is shown: every test guards against something that was once shown wrongly.

use serde_json::{Value, json};

use crate::support::{Written, translate_lines};

/// Events of a session in /w, written as ACP.
fn written(events: &[Value]) -> Written {
    let started = json!({"type": "session_started", "id": "s", "agent": "codex", "cwd": "/w"});
    written_alone(&[&[started, json!({"type": "turn_started"})], events].concat())
}

fn written_alone(events: &[Value]) -> Written {
    let lines = events.iter().enumerate().map(|(at, event)| {
        let mut event = event.clone();
        event["interlingua"] = json!(1);
        event["sequence"] = json!(at);
        event.to_string()
    });
    let lines: Vec<_> = lines.collect();
    translate_lines("events", "acp", &lines)
}

/// The updates of a kind.
fn updates(written: &Written, kind: &str) -> Vec<Value> {
    let updates = written.records().into_iter().map(|mut record| record["params"]["update"].take());
    updates.filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The requests sent to the client.
fn requests(written: &Written, method: &str) -> Vec<Value> {
    let request = written.records().into_iter().filter(|record| record["method"] == method);
    request.map(|mut record| record["params"].take()).collect()
}

fn losses(written: &Written) -> Vec<(String, u64)> {
    let losses = written.losses();
    losses.iter().map(|(what, count)| (what.to_owned(), count)).collect()
}

fn lost(what: &str) -> (String, u64) {
    (what.to_owned(), 1)
}

fn started(name: &str, kind: &str, input: Value) -> Value {
    json!({"type": "tool_started", "call": "c", "name": name, "kind": kind, "input": input})
}

fn ended(status: &str, output: Value) -> Value {
    json!({"type": "tool_ended", "call": "c", "status": status, "output": output})
}

fn diff(path: &str, old: Option<&str>, new: &str) -> Value {
    match old {
        Some(old) => json!({"type": "diff", "path": path, "oldText": old, "newText": new}),
        None => json!({"type": "diff", "path": path, "newText": new}),
    }
}

fn text(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

#[test]
fn the_prompt_of_a_live_turn_is_not_echoed() {
    let prompt = json!({"type": "user_message", "text": "hi"});
    let live = written(std::slice::from_ref(&prompt));
    assert_eq!(updates(&live, "user_message_chunk"), [Value::Null; 0]);
    assert!(losses(&live).contains(&lost("prompts")));
    let past = written_alone(&[json!({"type": "turn_started", "replay": true}), prompt]);
    assert_eq!(updates(&past, "user_message_chunk")[0]["content"]["text"], "hi");
    assert_eq!(losses(&past), []);
}

#[test]
fn text_that_the_program_injected_is_not_attributed_to_the_user() {
    let words = json!({"type": "user_message", "text": "Resume directly", "injected": true});
    let past = written_alone(&[json!({"type": "turn_started", "replay": true}), words]);
    assert_eq!(updates(&past, "user_message_chunk"), [Value::Null; 0]);
    assert_eq!(losses(&past), [lost("text inserted by the agent")]);
}

#[test]
fn a_permission_request_shows_what_would_be_done() {
    let call = started("Bash", "execute", json!({"command": "rm -rf build", "description": "run"}));
    let request = json!({
        "type": "permission_requested", "request": "r", "call": "c", "tool": "Bash",
        "description": "run", "input": {"command": "rm -rf build", "description": "run"},
    });
    let stream = written(&[call.clone(), request]);
    let request = &requests(&stream, "session/request_permission")[0];
    assert_eq!(request["toolCall"]["title"], "rm -rf build");
    assert_eq!(request["toolCall"]["content"], json!([text("run")]));
    assert_eq!(request["_meta"]["interlingua"]["description"], "run");
    // Words that the title already contains are not repeated.
    let named = json!({
        "type": "permission_requested", "request": "r", "call": "c", "tool": "Bash",
        "description": "build", "input": {"command": "rm -rf build"},
    });
    let stream = written(&[call.clone(), named]);
    let request = &requests(&stream, "session/request_permission")[0];
    assert_eq!(request["toolCall"].get("content"), None);
    // What is unknown about a call that is already shown does not change what is shown.
    let request =
        json!({"type": "permission_requested", "request": "r", "call": "other", "tool": "Bash"});
    let mut blind = request.clone();
    blind["call"] = json!("c");
    let stream = written(&[call, blind, request]);
    let requests = requests(&stream, "session/request_permission");
    assert!(matches!(requests[0]["toolCall"]["title"].as_str(), None | Some("rm -rf build")));
    assert_eq!(requests[0]["toolCall"].get("content"), None);
    assert_eq!(requests[1]["toolCall"]["title"], "Bash");
    assert_eq!(requests[1]["toolCall"]["kind"], "execute");
}

#[test]
fn a_permission_request_for_an_edit_shows_the_edit() {
    let input = json!({"changes": [{"path": "/w/a", "kind": {"type": "add"}, "diff": "x\n"}]});
    let request = json!({
        "type": "permission_requested", "request": "r", "call": "c", "tool": "file_change",
        "description": "May I?",
    });
    let stream = written(&[started("file_change", "edit", input.clone()), request.clone()]);
    let call = &requests(&stream, "session/request_permission")[0]["toolCall"];
    assert_eq!(call["content"], json!([text("May I?"), diff("/w/a", None, "x\n")]));
    // The same holds if the request carries the input of a call that has none yet, or was not
    // written at all.
    let mut alone = request;
    alone["input"] = input;
    let call = json!({"type": "tool_started", "call": "c", "name": "file_change", "kind": "edit"});
    let stream = written(&[call, alone.clone()]);
    let call = &requests(&stream, "session/request_permission")[0]["toolCall"];
    assert_eq!(call["content"], json!([text("May I?"), diff("/w/a", None, "x\n")]));
    let stream = written(&[alone]);
    let call = &requests(&stream, "session/request_permission")[0]["toolCall"];
    assert_eq!(call["title"], "/w/a");
    assert_eq!(call["content"], json!([text("May I?"), diff("/w/a", None, "x\n")]));
}

#[test]
fn a_session_keeps_the_id_that_was_written_first() {
    let stream = written_alone(&[
        json!({"type": "session_started", "agent": "copilot"}),
        json!({"type": "turn_started"}),
        json!({"type": "block", "kind": "text", "text": "hi"}),
        json!({"type": "session_updated", "id": "real"}),
        json!({"type": "turn_ended", "outcome": "completed"}),
    ]);
    let records = stream.records();
    let ids = records.iter().filter_map(|record| record["params"].get("sessionId"));
    let mut ids: Vec<_> = ids.collect();
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let facts = updates(&stream, "session_info_update");
    assert_eq!(facts[1]["_meta"]["interlingua"], json!({"sessionId": "real"}));
    // A reader of the output learns the late name.
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    let again = translate_lines("acp", "events", &lines).records();
    let named = again.iter().filter_map(|event| event.get("id")).find(|id| **id == "real");
    assert!(named.is_some(), "{again:?}");
}

#[test]
fn an_edit_is_shown_with_the_input_and_with_the_answer() {
    let inputs = [
        ("Edit", "edit", json!({"file_path": "/a", "old_string": "x", "new_string": "y"})),
        ("edit", "edit", json!({"filePath": "/a", "oldString": "x", "newString": "y"})),
        ("edit", "edit", json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]})),
        (
            "edit",
            "edit",
            json!({"fileName": "/a", "diff": "--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y\n"}),
        ),
        ("Write", "write", json!({"file_path": "/a", "content": "y"})),
        ("create", "edit", json!({"path": "/a", "file_text": "y"})),
    ];
    for (name, kind, input) in inputs {
        let stream =
            written(&[started(name, kind, input.clone()), ended("completed", json!("ok"))]);
        let shown = match &input {
            input if input.get("edits").is_some() => diff("/w/a", Some("x"), "y"),
            input if input.get("diff").is_some() => diff("/a", Some("x\n"), "y\n"),
            input if input.get("content").or(input.get("file_text")).is_some() => {
                diff("/a", None, "y")
            }
            _ => diff("/a", Some("x"), "y"),
        };
        assert_eq!(updates(&stream, "tool_call")[0]["content"], json!([shown]), "{input}");
        let answer = &updates(&stream, "tool_call_update")[0];
        assert_eq!(answer["content"], json!([text("ok"), shown]), "{input}");
        let stream = written(&[started(name, kind, input), ended("failed", json!("no"))]);
        assert_eq!(updates(&stream, "tool_call_update")[0]["content"], json!([text("no")]));
    }
}

#[test]
fn an_edit_whose_input_arrives_late_is_shown_with_it() {
    let call = json!({"type": "tool_started", "call": "c", "name": "Write", "kind": "write"});
    let input = json!({
        "type": "tool_input", "call": "c", "input": {"file_path": "/a", "content": "y"},
    });
    let stream = written(&[call, input, ended("completed", Value::Null)]);
    assert_eq!(updates(&stream, "tool_call")[0].get("content"), None);
    let updates = updates(&stream, "tool_call_update");
    assert_eq!(updates[0]["content"], json!([diff("/a", None, "y")]));
    assert_eq!(updates[1]["content"], json!([diff("/a", None, "y")]));
}

#[test]
fn the_actual_change_replaces_the_announced_one() {
    let call =
        started("Edit", "edit", json!({"file_path": "/a", "old_string": "x", "new_string": "y"}));
    let shown = |change: Value| {
        let changed = json!({"type": "files_changed", "call": "c", "changes": [change]});
        let stream = written(&[call.clone(), changed, ended("completed", Value::Null)]);
        updates(&stream, "tool_call_update")[0]["content"].clone()
    };
    let hunks = json!([{"oldStart": 1, "lines": [" a", "-x", "+y"]}]);
    let hunks = json!({"path": "/a", "kind": "update", "diff": hunks});
    assert_eq!(shown(hunks), json!([diff("/a", Some("a\nx\n"), "a\ny\n")]));
    let new = json!({"path": "/a", "kind": "add", "diff": "one\ntwo\n"});
    assert_eq!(shown(new), json!([diff("/a", None, "one\ntwo\n")]));
    let gone = json!({"path": "/a", "kind": "delete", "diff": "one\n"});
    assert_eq!(shown(gone), json!([diff("/a", Some("one\n"), "")]));
    let untold = json!({"path": "/a", "kind": "update"});
    assert_eq!(shown(untold), json!([diff("/a", Some("x"), "y")]));
}

#[test]
fn a_change_of_several_files_lists_them() {
    let input =
        json!({"changes": [{"path": "/a", "kind": "delete"}, {"path": "b", "kind": "add"}]});
    let stream = written(&[started("file_change", "edit", input)]);
    let call = &updates(&stream, "tool_call")[0];
    assert_eq!(call["title"], "/a and 1 more");
    assert_eq!(call["locations"], json!([{"path": "/a"}, {"path": "/w/b"}]));
}

#[test]
fn consecutive_blocks_have_different_ids() {
    let block = |kind: &str, index: u64, text: &str| json!({"type": "block", "message": "m", "index": index, "kind": kind, "text": text});
    let stream = written(&[
        block("reasoning", 0, "a"),
        block("reasoning", 1, "b"),
        block("text", 2, "c"),
        block("text", 3, "d"),
        block("text", 4, "e"),
        started("Read", "read", json!({"path": "/a"})),
        ended("completed", Value::Null),
        block("text", 5, "f"),
    ]);
    let ids = |kind: &str| {
        let chunks = updates(&stream, kind).into_iter();
        chunks.map(|mut chunk| chunk["messageId"].take()).collect::<Vec<_>>()
    };
    let thoughts = ids("agent_thought_chunk");
    assert_eq!(thoughts[0], "m");
    assert_ne!(thoughts[1], "m");
    let texts = ids("agent_message_chunk");
    assert_eq!((&texts[0], &texts[3]), (&json!("m"), &json!("m")));
    assert!(texts[1] != texts[0] && texts[2] != texts[1] && texts[2] != texts[0], "{texts:?}");
}

#[test]
fn an_image_in_the_output_of_a_tool_is_shown() {
    let picture = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let of_provider = json!({
        "type": "image",
        "source": {"type": "base64", "data": "AA==", "media_type": "image/png"},
    });
    let block = json!({"type": "text", "text": "one pixel"});
    let call = started("shot", "mcp", json!({}));
    for output in [json!([block, picture]), json!([block, of_provider])] {
        let stream = written(&[call.clone(), ended("completed", output)]);
        let answer = &updates(&stream, "tool_call_update")[0];
        let shown = json!({"type": "content", "content": picture});
        assert_eq!(answer["content"], json!([text("one pixel"), shown]));
        assert_eq!(answer.get("rawOutput"), None, "the content is complete");
        assert_eq!(losses(&stream), []);
    }
    let sound = json!([block, {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]);
    let stream = written(&[call, ended("completed", sound.clone())]);
    assert_eq!(updates(&stream, "tool_call_update")[0]["rawOutput"], sound);
    let what = "parts of tool outputs that are neither text nor pictures";
    assert_eq!(losses(&stream), [lost(what)]);
}

#[test]
fn paths_are_absolute_where_the_folder_is_known() {
    let call = started("Read", "read", json!({"file_path": "./src/app.tsx"}));
    let artifact = json!({"type": "artifact", "path": "out/a report#1.md"});
    let stream = written(&[call.clone(), artifact.clone()]);
    let place = json!([{"path": "/w/src/app.tsx"}]);
    assert_eq!(updates(&stream, "tool_call")[0]["locations"], place);
    let link = &updates(&stream, "agent_message_chunk")[0]["content"];
    assert_eq!(link["uri"], "file:///w/out/a%20report%231.md");
    assert_eq!(link["name"], "a report#1.md");
    // The folder is unknown, so the client receives no location.
    let stream = written_alone(&[json!({"type": "turn_started"}), call, artifact]);
    assert_eq!(updates(&stream, "tool_call")[0].get("locations"), None);
    let link = &updates(&stream, "agent_message_chunk")[0]["content"];
    assert_eq!(link["uri"], "out/a report#1.md");
}

#[test]
fn a_question_is_a_form() {
    let questions = json!([
        {"id": "Which?", "text": "Which?", "header": "Pick", "options": [{"label": "A", "description": "a"}]},
        {"id": "many", "text": "Which ones?", "multiple": true, "options": [{"label": "B"}]},
        {"id": "0", "text": "Key?", "free_text": true, "secret": true},
    ]);
    let asked = json!({"type": "question_asked", "request": "q", "call": "c", "message": "First:", "questions": questions});
    let stream = written(&[asked]);
    let form = &requests(&stream, "elicitation/create")[0];
    assert_eq!(form["message"], "First:\nWhich?\nWhich ones?\nKey?");
    assert_eq!((&form["toolCallId"], &form["mode"]), (&json!("c"), &json!("form")));
    let properties = json!({
        "answer_1": {
            "type": "string", "title": "Pick", "description": "Which?",
            "oneOf": [{"const": "A", "title": "A", "description": "a"}],
        },
        "many": {
            "type": "array", "description": "Which ones?",
            "items": {"anyOf": [{"const": "B", "title": "B"}]},
        },
        "answer_3": {"type": "string", "description": "Key?", "format": "password", "writeOnly": true},
    });
    assert_eq!(form["requestedSchema"], json!({"type": "object", "properties": properties}));
    let asked = json!({"type": "question_asked", "request": "q"});
    assert_eq!(losses(&written(&[asked])), [lost("answer to a question"), lost("questions")]);
}

#[test]
fn a_form_or_an_address_of_a_server_is_passed_on() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let asked = json!({"type": "question_asked", "request": "q", "message": "Name?", "server": "s", "schema": schema});
    let stream = written(&[asked]);
    let form = &requests(&stream, "elicitation/create")[0];
    assert_eq!((&form["message"], &form["requestedSchema"]), (&json!("Name?"), &schema));
    let asked = json!({"type": "question_asked", "request": "q", "message": "Sign in", "url": "https://a.b"});
    let stream = written(&[asked]);
    let opened = &requests(&stream, "elicitation/create")[0];
    let expected = (&json!("url"), &json!("https://a.b"), &json!("q"));
    assert_eq!((&opened["mode"], &opened["url"], &opened["elicitationId"]), expected);
    assert_eq!(opened["requestedSchema"], Value::Null);
}

#[test]
fn steps_keep_their_priority() {
    let items = json!([
        {"text": "a", "status": "pending", "priority": "high"},
        {"text": "b", "status": "pending", "priority": "urgent"},
        {"text": "c", "status": "pending"},
    ]);
    let stream = written(&[json!({"type": "plan_updated", "items": items})]);
    let entries = updates(&stream, "plan")[0]["entries"].take();
    let words: Vec<_> = entries.as_array().unwrap().iter().map(|it| &it["priority"]).collect();
    assert_eq!(words, ["high", "medium", "medium"]);
}

#[test]
fn a_progress_event_without_content_is_not_written() {
    let call = started("Bash", "execute", json!({"command": "ls"}));
    let stream = written(&[
        call,
        json!({"type": "tool_progress", "call": "c"}),
        ended("completed", json!("a")),
    ]);
    assert_eq!(updates(&stream, "tool_call_update").len(), 1);
}
