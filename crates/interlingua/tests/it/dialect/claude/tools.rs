//! Calls and answers of any agent, written as those of Claude Code.

use serde_json::{Value, json};

use crate::support::translate_lines;

/// The name and the input that are written for a call.
fn call(name: &str, kind: &str, input: Value) -> (String, Value) {
    let started =
        json!({"type":"tool_started","call":"c","name":name,"kind":kind,"input":input}).to_string();
    let records = translate_lines("events", "claude", &[&started]).records();
    let block = records
        .iter()
        .find_map(|record| {
            record.pointer("/message/content/0").filter(|it| it["type"] == "tool_use")
        })
        .unwrap();
    (block["name"].as_str().unwrap().to_owned(), block["input"].clone())
}

/// The answer that is written for a call of a tool, and what was lost.
fn answer(ended: &Value) -> (Value, Value, Vec<String>) {
    let lines = [
        json!({"type":"tool_started","call":"c","name":"command_execution","kind":"execute","input":{"command":"ls"}}),
        ended.clone(),
        json!({"type":"turn_ended","outcome":"completed"}),
    ];
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let written = translate_lines("events", "claude", &lines);
    let records = written.records();
    let user = records.iter().find(|record| record["type"] == "user").unwrap();
    let lost = written.losses().iter().map(|(what, _)| what.to_owned()).collect();
    (user["message"]["content"][0]["content"].clone(), records.last().unwrap().clone(), lost)
}

#[test]
fn a_tool_without_the_input_that_claudes_tool_requires_keeps_its_name() {
    for (name, kind, input) in [
        ("read_file", "read", json!({})),
        ("read_many_files", "read", json!({"include":["*.rs"]})),
        ("web_fetch", "fetch", json!({"prompt":"read https://example.com"})),
        ("command_execution", "execute", json!({"cmd":"ls"})),
        ("invoke_agent", "task", json!({"agent_name":"a"})),
    ] {
        assert_eq!(call(name, kind, input.clone()), (name.to_owned(), input));
    }
}

#[test]
fn a_tool_with_that_input_under_another_name_gets_claudes_name() {
    let listed = call("list_directory", "list", json!({"dir_path":"/a","ignore":[]}));
    assert_eq!(listed, ("LS".to_owned(), json!({"path":"/a","ignore":[]})));
    let page = call("web_fetch", "fetch", json!({"prompt":"p","url":"https://example.com"}));
    assert_eq!(page.0, "WebFetch");
    let agent = call("invoke_agent", "task", json!({"agent_name":"a","prompt":"p"}));
    assert_eq!(agent, ("Agent".to_owned(), json!({"subagent_type":"a","prompt":"p"})));
    assert_eq!(call("spawn_agent", "task", json!({"prompt":"p"})).0, "Agent");
}

#[test]
fn one_changed_file_is_an_edit_and_one_new_file_a_write() {
    let change = |kind: &str| json!({"changes":[{"path":"/a","kind":kind}]});
    for (kind, name) in [("update", "Edit"), ("add", "Write")] {
        let (written, input) = call("file_change", "edit", change(kind));
        assert_eq!((&*written, &input["file_path"]), (name, &json!("/a")));
    }
    let several = json!({"changes":[{"path":"/a","kind":"delete"},{"path":"/b","kind":"update"}]});
    for input in [change("delete"), several] {
        assert_eq!(call("file_change", "edit", input.clone()), ("file_change".to_owned(), input));
    }
}

#[test]
fn a_change_of_files_without_output_lists_them() {
    let lines = [
        r#"{"type":"item.started","item":{"id":"i","type":"file_change","changes":[{"path":"gone.txt","kind":"delete"},{"path":"a.txt","kind":"update"},{"path":"new.txt","kind":"add"}],"status":"in_progress"}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"path":"gone.txt","kind":"delete"},{"path":"a.txt","kind":"update"},{"path":"new.txt","kind":"add"}],"status":"completed"}}"#,
    ];
    let records = translate_lines("codex", "claude", &lines).records();
    let user = records.iter().find(|record| record["type"] == "user").unwrap();
    assert_eq!(user["message"]["content"][0]["content"], "D gone.txt\nM a.txt\nA new.txt");
}

#[test]
fn a_failed_command_states_its_exit_code_once() {
    let ended = |output: &str, code: u64| json!({"type":"tool_ended","call":"c","status":"failed","output":output,"exit_code":code});
    let none: [&str; 0] = [];
    let (content, _, lost) = answer(&ended("no such file\n", 2));
    assert_eq!(
        (content, &*lost),
        (json!("Exit code 2\nno such file\n"), &none.map(String::from)[..])
    );
    let (content, _, lost) = answer(&ended("Exit code 2\nno such file", 2));
    assert_eq!((content, lost.len()), (json!("Exit code 2\nno such file"), 0));
    assert_eq!(answer(&ended("Exit code 21", 2)).0, "Exit code 2\nExit code 21");
    assert_eq!(answer(&ended("", 4)).0, "Exit code 4");
    let fine = json!({"type":"tool_ended","call":"c","output":"","exit_code":1});
    assert_eq!(answer(&fine).2, ["exit codes"]);
}

#[test]
fn a_denied_call_has_a_message_and_is_listed() {
    let ended = json!({"type":"tool_ended","call":"c","status":"denied"});
    let (content, result, _) = answer(&ended);
    assert_eq!(content, "Permission to use Bash has been denied.");
    let expected = json!([{"tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}}]);
    assert_eq!(result["permission_denials"], expected);
}

#[test]
fn a_denied_call_is_read_back_as_denied() {
    let lines = [
        r#"{"type":"tool_started","call":"c","name":"Bash","kind":"execute","input":{"command":"ls"}}"#,
        r#"{"type":"tool_ended","call":"c","status":"denied"}"#,
    ];
    let claude = translate_lines("events", "claude", &lines).text();
    let lines: Vec<&str> = claude.lines().collect();
    let events = translate_lines("claude", "events", &lines).records();
    let ended = events.iter().find(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(ended["status"], "denied");
}

#[test]
fn a_plan_has_claudes_names_of_statuses() {
    let plan = r#"{"type":"plan_updated","items":[{"text":"a","status":"blocked"},{"text":"b","status":"cancelled"},{"text":"c","status":"odd"},{"text":"d","status":"in_progress"}]}"#;
    let written = translate_lines("events", "claude", &[plan]);
    let records = written.records();
    let input = records.iter().find_map(|it| it.pointer("/message/content/0/input")).unwrap();
    let todo = |text: &str, status: &str| json!({"content":text,"status":status,"activeForm":text});
    let expected = [
        todo("a", "pending"),
        todo("b (cancelled)", "completed"),
        todo("c", "pending"),
        todo("d", "in_progress"),
    ];
    assert_eq!(input["todos"], json!(expected));
    let lost: Vec<_> = written.losses().iter().collect();
    assert_eq!(lost, [("statuses of plan steps", 3)]);
}

#[test]
fn a_restored_plan_is_not_written_again() {
    let lines = [
        r#"{"type":"tool_use","timestamp":"t","tool_name":"write_todos","tool_id":"a","parameters":{"todos":[{"description":"Look","status":"pending"}]}}"#,
        r#"{"type":"tool_result","timestamp":"t","tool_id":"a","status":"success"}"#,
        r#"{"type":"tool_use","timestamp":"t","tool_name":"write_todos","tool_id":"b","parameters":{"todos":[{"description":"x","status":"odd"}]}}"#,
        r#"{"type":"tool_result","timestamp":"t","tool_id":"b","status":"error"}"#,
    ];
    let records = translate_lines("gemini", "claude", &lines).records();
    let calls = records.iter().filter(|record| record["type"] == "assistant");
    assert_eq!(calls.count(), 2);
}

#[test]
fn inputs_that_claudes_tool_shares_have_its_names() {
    let (_, input) = call(
        "edit",
        "edit",
        json!({"filePath":"/a","oldString":"x","newString":"y","replaceAll":true}),
    );
    let expected = json!({"file_path":"/a","old_string":"x","new_string":"y","replace_all":true});
    assert_eq!(input, expected);
    let (_, input) = call("create", "write", json!({"path":"/a","file_text":"x"}));
    assert_eq!(input, json!({"file_path":"/a","content":"x"}));
    let (_, input) = call("task", "task", json!({"prompt":"p","agent_type":"a"}));
    assert_eq!(input, json!({"prompt":"p","subagent_type":"a"}));
    let both = json!({"file_path":"/a","old_string":"x","oldText":"z"});
    assert_eq!(call("edit", "edit", both.clone()).1, both);
}

#[test]
fn a_failed_call_without_output_has_a_message() {
    for (status, words) in
        [("failed", "The call failed."), ("timed_out", "The call took too long.")]
    {
        let (content, ..) = answer(&json!({"type":"tool_ended","call":"c","status":status}));
        assert_eq!(content, words);
    }
}

#[test]
fn the_progress_of_a_call_is_written_with_its_elapsed_time() {
    let lines = [
        r#"{"type":"tool_started","call":"t","name":"Agent","kind":"task","input":{"prompt":"p"}}"#,
        r#"{"type":"tool_started","parent":"t","call":"c","name":"bash","kind":"execute","input":{"command":"ls"}}"#,
        r#"{"type":"tool_progress","parent":"t","call":"c","output":"x"}"#,
        r#"{"type":"tool_progress","parent":"t","call":"c","elapsed_ms":31000}"#,
    ];
    let records = translate_lines("events", "claude", &lines).records();
    let progress: Vec<_> =
        records.iter().filter(|record| record["type"] == "tool_progress").collect();
    assert_eq!(progress.len(), 1);
    assert_eq!(
        (&progress[0]["tool_name"], &progress[0]["tool_use_id"]),
        (&json!("Bash"), &json!("c"))
    );
    assert_eq!(progress[0]["elapsed_time_seconds"], 31);
    assert_eq!(progress[0]["parent_tool_use_id"], "t");
}
