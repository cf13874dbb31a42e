//! What Yume actually draws, and what it forgets: the facts behind the flat contract, one test
//! each.

use serde_json::{Value, json};

use crate::support::records::{of_type, translate_checked};
use crate::support::{Written, translate_lines};

/// Translates a stream for Yume, and checks it.
fn written(from: &str, lines: &[&str]) -> Written {
    translate_checked(from, "yume", lines)
}

fn lost(written: &Written, what: &str) -> bool {
    written.losses().iter().any(|(kind, _)| kind == what)
}

const TURN: &str = r#"{"type":"turn.started"}"#;
const END: &str = r#"{"type":"turn.completed","usage":{"input_tokens":3,"cached_input_tokens":0,"output_tokens":2}}"#;

#[test]
fn init_includes_what_the_host_reports_after_its_own_records() {
    let lines = [
        r#"{"type":"sandbox","sandbox_id":"sbx_1"}"#,
        r#"{"type":"init","session_id":"thread-1"}"#,
        r#"{"type":"init","modelId":"model-1"}"#,
        r#"{"type":"message","role":"assistant","content":"Hi","delta":true}"#,
    ];
    let records = written("giselle", &lines).records();
    assert_eq!(records[0]["subtype"], "init");
    assert_eq!(
        (&records[0]["session_id"], &records[0]["model"]),
        (&json!("thread-1"), &json!("model-1"))
    );
    assert_eq!(records[1]["type"], "text");
    assert_eq!(of_type(&records, "result")[0]["session_id"], "thread-1");
}

#[test]
fn a_turn_without_tokens_is_no_compaction() {
    let zero = r#"{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":0,"input_tokens":0,"output_tokens":0,"cached":0,"input":0,"duration_ms":7}}"#;
    let text =
        r#"{"type":"message","timestamp":"t","role":"assistant","content":"12345","delta":true}"#;
    let records = written("gemini", &[text, zero]).records();
    let result = &of_type(&records, "result")[0];
    assert_eq!(
        (&result["usage"]["input_tokens"], &result["usage"]["output_tokens"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(result["usage_estimated"], true);
}

#[test]
fn every_limit_has_its_own_name() {
    let end = |subtype: &str, reason: &str| {
        let line = json!({"type":"result","subtype":subtype,"is_error":true,"terminal_reason":reason,"errors":["stop"],"session_id":"s","uuid":"u"});
        let records = written("claude", &[&line.to_string()]).records();
        of_type(&records, "result")[0]["subtype"].as_str().unwrap().to_owned()
    };
    assert_eq!(end("error_max_turns", "max_turns"), "error_max_turns");
    assert_eq!(end("error_max_budget_usd", "budget_exhausted"), "error_max_budget_usd");
    let ended = r#"{"interlingua":1,"type":"turn_ended","sequence":0,"line":1,"bytes":[0,1],"outcome":"limit_reached","reason":"max_tokens","cause":"too long"}"#;
    let stream = written("events", &[ended]);
    assert_eq!(of_type(&stream.records(), "result")[0]["subtype"], "error_limit_reached");
    let text = stream.text();
    let lines: Vec<&str> = text.lines().collect();
    let read = translate_lines("yume", "events", &lines).records();
    assert_eq!(of_type(&read, "turn_ended")[0]["outcome"], "limit_reached");
}

#[test]
fn the_text_of_a_sub_agent_names_its_call() {
    let block = |id: &str, parent: Value, block: Value| {
        json!({"type":"assistant","message":{"id":id,"role":"assistant","content":[block]},"parent_tool_use_id":parent,"session_id":"s","uuid":id}).to_string()
    };
    let answer = |id: &str, parent: Value| {
        json!({"type":"user","message":{"role":"user","content":[{"tool_use_id":id,"type":"tool_result","content":"ok"}]},"parent_tool_use_id":parent,"session_id":"s","uuid":format!("r{id}")}).to_string()
    };
    let call = |id: &str, name: &str| json!({"type":"tool_use","id":id,"name":name,"input":{"description":"d","agent_name":"helper"}});
    let lines = [
        block("m1", Value::Null, call("task", "Agent")),
        block("m2", json!("task"), json!({"type":"text","text":"aside"})),
        block("m3", json!("task"), call("inner", "Bash")),
        answer("inner", json!("task")),
        answer("task", Value::Null),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let stream = written("claude", &lines);
    let records = stream.records();
    let parents = |kind: &str| -> Vec<Value> {
        of_type(&records, kind).iter().map(|record| record["parent_tool_use_id"].clone()).collect()
    };
    assert_eq!(parents("text"), ["task"]);
    assert_eq!(parents("tool_use"), [Value::Null, json!("task")]);
    assert_eq!(parents("tool_result"), [Value::Null, json!("task")]);
    // The tool that Yume draws, with the field that it reads.
    let task = &of_type(&records, "tool_use")[0];
    assert_eq!(task["name"], "Task");
    assert_eq!(task["input"], json!({"description":"d","subagent_type":"helper"}));
    // It is read back as it was.
    let text = stream.text();
    let read = translate_lines("yume", "events", &text.lines().collect::<Vec<_>>()).records();
    assert_eq!(of_type(&read, "block_delta")[0]["parent"], "task");
}

fn todos(id: &str, todos: Value) -> String {
    json!({"type":"tool_use","timestamp":"t","tool_name":"write_todos","tool_id":id,"parameters":{"todos":todos}}).to_string()
}

fn todos_result(id: &str, status: &str) -> String {
    json!({"type":"tool_result","timestamp":"t","tool_id":id,"status":status}).to_string()
}

#[test]
fn a_refused_plan_leaves_the_earlier_one() {
    let (bad, refused) =
        (todos("b", json!([{"description":"x","status":"odd"}])), todos_result("b", "error"));
    let records = written("gemini", &[&bad, &refused]).records();
    assert_eq!(of_type(&records, "tool_use").len(), 1, "there is nothing to put back");

    let (good, done) = (
        todos("a", json!([{"description":"Look","status":"pending"}])),
        todos_result("a", "success"),
    );
    let records = written("gemini", &[&good, &done, &bad, &refused]).records();
    let calls = of_type(&records, "tool_use");
    assert_eq!(calls[2]["input"]["todos"][0]["content"], "Look");
    let answer = &of_type(&records, "tool_result")[2];
    assert_eq!(
        (&answer["tool_use_id"], &answer["content"]),
        (&calls[2]["id"], &json!("The earlier list stands"))
    );
}

#[test]
fn steps_have_a_status_that_is_drawn() {
    let steps = json!([
        {"description":"wait","status":"blocked"}, {"description":"drop","status":"cancelled"},
        {"description":"odd","status":"odd"}, {"description":"go","status":"in_progress"},
    ]);
    let (call, done) = (todos("a", steps), todos_result("a", "success"));
    let stream = written("gemini", &[&call, &done]);
    let list = of_type(&stream.records(), "tool_use")[0]["input"]["todos"].clone();
    let drawn: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|todo| {
            (
                todo["content"].as_str().unwrap().to_owned(),
                todo["status"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let expected = [
        ("wait", "pending"),
        ("drop (cancelled)", "completed"),
        ("odd", "pending"),
        ("go", "in_progress"),
    ];
    assert_eq!(drawn, expected.map(|(text, status)| (text.to_owned(), status.to_owned())));
    assert!(lost(&stream, "statuses of plan steps"));
}

#[test]
fn an_exit_code_is_written_if_the_command_failed() {
    let command = |id: &str, output: &str, code: i64| {
        json!({"type":"item.completed","item":{"id":id,"type":"command_execution","command":"c","aggregated_output":output,"exit_code":code,"status":if code == 0 {"completed"} else {"failed"}}}).to_string()
    };
    let lines = [command("a", "", 4), command("b", "out", 3), command("c", "fine", 0)];
    let records = written("codex", &[TURN, &lines[0], &lines[1], &lines[2], END]).records();
    let texts: Vec<_> =
        of_type(&records, "tool_result").iter().map(|answer| answer["content"].clone()).collect();
    assert_eq!(texts, ["Exit code 4", "Exit code 3\nout", "fine"]);
}

#[test]
fn denied_tool_calls_are_listed() {
    let denial = json!([{"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"rm"}}]);
    let line = |denials: &Value| {
        json!({"type":"result","subtype":"success","is_error":false,"result":"ok","permission_denials":denials,"session_id":"s","uuid":"u"}).to_string()
    };
    let records = written("claude", &[&line(&denial)]).records();
    assert_eq!(of_type(&records, "result")[0]["permission_denials"], denial);
    assert_eq!(
        of_type(&written("claude", &[&line(&json!([]))]).records(), "result")[0]
            .get("permission_denials"),
        None
    );
    let long = json!([{"tool_name":"Write","tool_use_id":"t1","tool_input":{"content":"x".repeat(200_000)}}]);
    let stream = written("claude", &[&line(&long)]);
    assert!(lost(&stream, "list of denied tool calls over the line limit"));
}

#[test]
fn a_change_of_several_files_is_no_edit_of_the_first() {
    let change = |id: &str, changes: Value| {
        json!({"type":"item.completed","item":{"id":id,"type":"file_change","changes":changes,"status":"completed"}}).to_string()
    };
    let lines = [
        change("a", json!([{"path":"/gone","kind":"delete"},{"path":"/new","kind":"add"}])),
        change("b", json!([{"path":"/gone","kind":"delete"}])),
        change("c", json!([{"path":"/here","kind":"update"}])),
    ];
    let records = written("codex", &[TURN, &lines[0], &lines[1], &lines[2], END]).records();
    let calls = of_type(&records, "tool_use");
    let names: Vec<_> = calls.iter().map(|call| call["name"].clone()).collect();
    assert_eq!(names, ["Edit", "Write", "Edit", "Edit"]);
    let paths: Vec<_> = calls.iter().map(|call| call["input"]["file_path"].clone()).collect();
    assert_eq!(paths, ["/gone", "/new", "/gone", "/here"]);
    let texts: Vec<_> =
        of_type(&records, "tool_result").iter().map(|answer| answer["content"].clone()).collect();
    assert_eq!(texts, ["delete /gone", "add /new", "delete /gone", "update /here"]);
}

#[test]
fn an_account_without_permission_is_not_an_authentication_failure() {
    let line = r#"{"type":"result","timestamp":"t","status":"error","error":{"type":"unknown","message":"[API Error: {\"error\":{\"code\":403}}]"}}"#;
    let records = written("gemini", &[line]).records();
    assert_eq!((&records[1]["type"], &records[1]["subtype"]), (&json!("system"), &json!("error")));
}

#[test]
fn a_retry_without_a_message_gets_ours() {
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"retry_delay_ms":500,"error_status":429,"error":"rate_limit","session_id":"s","uuid":"u1"}"#;
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s","uuid":"u2"}"#;
    let records = written("claude", &[retry, end]).records();
    let words =
        "a request failed (rate_limit, HTTP status 429); attempt 1 of 2 follows after 500 ms";
    assert_eq!(of_type(&records, "result")[0]["errors"], json!([words]));
}

#[test]
fn a_denied_call_has_a_message() {
    let lines = [
        r#"{"type":"tool_started","call":"c","name":"command_execution","kind":"execute","input":{"command":"ls"}}"#,
        r#"{"type":"tool_ended","call":"c","status":"denied"}"#,
    ];
    let records = written("events", &lines).records();
    let answers = of_type(&records, "tool_result");
    assert_eq!(answers[0]["content"], "Permission to use Bash has been denied.");
}

#[test]
fn an_unknown_mode_is_the_default_one() {
    for (given, mode) in
        [("never", "default"), ("yolo", "auto"), ("plan", "plan"), ("deny", "deny")]
    {
        let started = json!({"type":"session_started","permission_mode":given}).to_string();
        let written = written("events", &[&started]);
        assert_eq!(written.records()[0]["permissionMode"], mode);
        assert_eq!(lost(&written, "permission modes of other agents"), given == "never");
    }
}
