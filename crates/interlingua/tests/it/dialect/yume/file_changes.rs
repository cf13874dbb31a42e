//! Codex changes any number of files in one call; Yume draws one `Edit` or `Write` for each file.

use serde_json::{Value, json};

use crate::support::records::translate_checked;

/// The calls and answers that are written, in order.
fn written(from: &str, lines: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let records = translate_checked(from, "yume", &lines).records();
    let tools = ["tool_use", "tool_result"];
    records.into_iter().filter(|record| tools.contains(&record["type"].as_str().unwrap())).collect()
}

fn exec(status: &str, changes: &Value) -> Vec<Value> {
    let item = |status: &str| json!({"id": "item_3", "type": "file_change", "changes": changes, "status": status});
    vec![
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "turn.started"}),
        json!({"type": "item.started", "item": item("in_progress")}),
        json!({"type": "item.completed", "item": item(status)}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}),
    ]
}

fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn answer(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

#[test]
fn every_file_is_a_call_of_its_own() {
    let changes = json!([
        {"path": "/w/gone.txt", "kind": "delete"},
        {"path": "/w/hello.txt", "kind": "update"},
        {"path": "/w/new.txt", "kind": "add"},
    ]);
    let (second, third) = ("item_3#file-2", "item_3#file-3");
    assert_eq!(
        written("codex", &exec("completed", &changes)),
        [
            call("item_3", "Edit", json!({"file_path": "/w/gone.txt", "kind": "delete"})),
            answer("item_3", "delete /w/gone.txt"),
            call(second, "Edit", json!({"file_path": "/w/hello.txt", "kind": "update"})),
            answer(second, "update /w/hello.txt"),
            call(third, "Write", json!({"file_path": "/w/new.txt", "kind": "add"})),
            answer(third, "add /w/new.txt"),
        ]
    );
}

#[test]
fn the_texts_are_taken_from_the_diff() {
    let changes = json!([
        {"path": "/w/gone.txt", "kind": {"type": "delete"}, "diff": "gone\n"},
        {"path": "/w/hello.txt", "kind": {"type": "update", "move_path": null}, "diff": "@@ -1 +1 @@\n-hello\n+hello world\n"},
        {"path": "/w/new.txt", "kind": {"type": "add"}, "diff": "line one\nline two\n"},
    ]);
    let item = |status: &str| json!({"type": "fileChange", "id": "call_1", "changes": changes, "status": status});
    let params = |item: Value| json!({"item": item, "threadId": "t", "turnId": "u"});
    let turn = |status: &str| json!({"threadId": "t", "turn": {"id": "u", "items": [], "status": status, "error": null}});
    let tools = written(
        "codex-app-server",
        &[
            json!({"method": "turn/started", "params": turn("inProgress")}),
            json!({"method": "item/started", "params": params(item("inProgress"))}),
            json!({"method": "item/completed", "params": params(item("completed"))}),
            json!({"method": "turn/completed", "params": turn("completed")}),
        ],
    );
    let inputs: Vec<_> = tools.iter().step_by(2).map(|call| &call["input"]).collect();
    let sides = |path: &str, kind: &str, old: &str, new: &str| json!({"file_path": path, "kind": kind, "old_string": old, "new_string": new});
    assert_eq!(
        inputs,
        [
            &sides("/w/gone.txt", "delete", "gone\n", ""),
            &sides("/w/hello.txt", "update", "hello\n", "hello world\n"),
            &json!({"file_path": "/w/new.txt", "kind": "add", "content": "line one\nline two\n"}),
        ]
    );
    let names: Vec<_> = tools.iter().step_by(2).map(|call| &call["name"]).collect();
    assert_eq!(names, ["Edit", "Edit", "Write"]);
}

#[test]
fn one_file_keeps_the_id_of_the_call() {
    let changes = json!([{"path": "/w/a", "kind": "add"}]);
    let tools = written("codex", &exec("completed", &changes));
    assert_eq!(tools[0], call("item_3", "Write", json!({"file_path": "/w/a", "kind": "add"})));
    assert_eq!((tools.len(), &tools[1]), (2, &answer("item_3", "add /w/a")));
}

#[test]
fn a_patch_that_failed_fails_for_every_file() {
    let changes = json!([{"path": "/w/a", "kind": "update"}, {"path": "/w/b", "kind": "update"}]);
    let tools = written("codex", &exec("failed", &changes));
    let failed: Vec<_> = tools.iter().map(|record| &record["is_error"] == true).collect();
    assert_eq!(failed, [false, true, false, true]);
}

#[test]
fn a_list_without_files_keeps_its_tool() {
    let tools = written("codex", &exec("completed", &json!([])));
    assert_eq!(tools[0]["name"], "file_change");
}
