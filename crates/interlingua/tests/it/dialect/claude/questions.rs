//! Permission requests and questions to the user, written as those of Claude Code.

use serde_json::{Value, json};

use crate::support::translate_lines;

const CALL: &str = r#"{"type":"tool_started","call":"c","name":"command_execution","kind":"execute","input":{"command":"ls"}}"#;
const ANNOUNCED: &str =
    r#"{"type":"tool_started","call":"c","name":"bash","kind":"execute","message":"m"}"#;

/// The records written, and the names of what was lost.
fn written(lines: &[&str]) -> (Vec<Value>, Vec<String>) {
    let written = translate_lines("events", "claude", lines);
    let lost = written.losses().iter().map(|(what, _)| what.to_owned()).collect();
    (written.records(), lost)
}

fn request(records: &[Value]) -> &Value {
    &records.iter().find(|record| record["type"] == "control_request").unwrap()["request"]
}

fn position_of(records: &[Value], of: impl Fn(&Value) -> bool) -> usize {
    records.iter().position(of).unwrap()
}

fn is_call(record: &Value) -> bool {
    record.pointer("/message/content/0/type") == Some(&json!("tool_use"))
}

#[test]
fn a_request_names_the_tool_and_the_input_of_its_call() {
    let asked = r#"{"type":"permission_requested","request":"r","call":"c","tool":"command_execution","options":["accept","cancel"]}"#;
    let (records, lost) = written(&[CALL, asked]);
    let expected = json!({"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"c"});
    assert_eq!(request(&records), &expected);
    assert_eq!(lost, ["options of a permission request"]);
}

#[test]
fn a_request_without_a_call_is_about_claudes_tool_and_an_object() {
    let asked = r#"{"type":"permission_requested","request":"r","tool":"write_file"}"#;
    let (records, _) = written(&[asked]);
    assert_eq!(request(&records)["input"], json!({}));
    let asked = r#"{"type":"permission_requested","request":"r","tool":"write_file","input":{"path":"/a"}}"#;
    let (records, _) = written(&[asked]);
    assert_eq!(request(&records)["tool_name"], "Write");
    assert_eq!(request(&records)["input"], json!({"file_path":"/a"}));
}

#[test]
fn choices_that_claude_offers_are_passed_through() {
    let asked = r#"{"type":"permission_requested","request":"r","call":"c","options":[{"type":"addRules"}]}"#;
    let (records, lost) = written(&[CALL, asked]);
    assert_eq!(request(&records)["permission_suggestions"], json!([{"type":"addRules"}]));
    assert!(lost.is_empty());
}

#[test]
fn a_call_is_written_once_before_its_permission_request() {
    let asked = r#"{"type":"permission_requested","request":"r","call":"c","tool":"bash","input":{"command":"ls"}}"#;
    let input = |input: &str| format!(r#"{{"type":"tool_input","call":"c","input":{input}}}"#);
    let same = input(r#"{"command":"ls"}"#);
    let (records, lost) = written(&[ANNOUNCED, asked, &same]);
    let asks = position_of(&records, |record| record["type"] == "control_request");
    assert!(position_of(&records, is_call) < asks);
    assert_eq!(records.iter().filter(|record| is_call(record)).count(), 1);
    assert_eq!(records[position_of(&records, is_call)]["message"]["id"], "m");
    assert!(lost.is_empty());
    let more = input(r#"{"command":"ls","why":"w"}"#);
    let (_, lost) = written(&[ANNOUNCED, asked, &more]);
    assert_eq!(lost, ["inputs that differ from their permission request"]);
}

#[test]
fn a_request_without_the_input_does_not_delay_the_call() {
    for asked in [
        r#"{"type":"permission_requested","request":"r","call":"c","tool":"external_directory","input":{"command":"x"}}"#,
        r#"{"type":"permission_requested","request":"r","call":"c","tool":"bash","input":{"folder":"/a"}}"#,
        r#"{"type":"permission_requested","request":"r","call":"c","tool":"bash","input":{}}"#,
    ] {
        let input = r#"{"type":"tool_input","call":"c","input":{"command":"ls"}}"#;
        let (records, _) = written(&[ANNOUNCED, asked, input]);
        let call = &records[position_of(&records, is_call)]["message"]["content"][0];
        assert_eq!(call["input"], json!({"command":"ls"}), "{asked}");
    }
}

#[test]
fn a_question_is_written_as_a_call_of_claudes_tool() {
    let call = r#"{"type":"tool_started","call":"c","name":"ask","kind":"other"}"#;
    let asked = r#"{"type":"question_asked","request":"q","call":"c","questions":[{"id":"Which?","text":"Which?","header":"h","options":[{"label":"A","description":"a","preview":"p"}],"multiple":true,"free_text":true}]}"#;
    let (records, lost) = written(&[call, asked]);
    assert!(lost.is_empty());
    let options = json!([{"label":"A","description":"a","preview":"p"}]);
    let input = json!({"questions":[{"question":"Which?","header":"h","options":options,"multiSelect":true}]});
    assert_eq!(request(&records)["input"], input);
    let call = &records[position_of(&records, is_call)]["message"]["content"][0];
    assert_eq!((&call["name"], &call["input"]), (&json!("AskUserQuestion"), &input));
    let claude = translate_lines("events", "claude", &[asked]).text();
    let lines: Vec<&str> = claude.lines().collect();
    let events = translate_lines("claude", "events", &lines).records();
    let read = events.iter().find(|event| event["type"] == "question_asked").unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    assert_eq!(read["questions"], asked["questions"]);
}

#[test]
fn a_plan_and_a_form_are_written_as_claudes_requests() {
    let options = json!([{"label":"Approve"},{"label":"Keep planning"}]);
    let plan = json!({"type":"question_asked","request":"q","message":"# Plan","questions":[{"id":"plan","text":"Approve the plan?","options":options,"free_text":true}]});
    let (records, lost) = written(&[&plan.to_string()]);
    let expected = json!({"subtype":"can_use_tool","tool_name":"ExitPlanMode","input":{"plan":"# Plan"},"requires_user_interaction":true});
    assert_eq!((request(&records), lost.len()), (&expected, 0));
    let form = json!({"type":"question_asked","request":"q","message":"Name?","server":"s","schema":{"type":"object"}});
    let (records, lost) = written(&[&form.to_string()]);
    let expected = json!({"subtype":"elicitation","mcp_server_name":"s","message":"Name?","mode":"form","requested_schema":{"type":"object"}});
    assert_eq!((request(&records), lost.len()), (&expected, 0));
    for asked in [plan, form] {
        let lines: Vec<_> = written(&[&asked.to_string()]).0.iter().map(Value::to_string).collect();
        let events = translate_lines("claude", "events", &lines).records();
        let read = events.into_iter().find(|event| event["type"] == "question_asked").unwrap();
        for (name, value) in asked.as_object().unwrap() {
            assert_eq!(&read[name], value);
        }
    }
}

#[test]
fn a_denial_names_the_tool_of_the_call_and_has_a_message() {
    let resolved = r#"{"type":"permission_resolved","call":"c","decision":"denied"}"#;
    let ended = r#"{"type":"tool_ended","call":"c","status":"denied"}"#;
    let (records, _) = written(&[CALL, resolved, ended]);
    let denied = records.iter().find(|record| record["subtype"] == "permission_denied").unwrap();
    let words = "Permission to use Bash has been denied.";
    assert_eq!((&denied["tool_name"], &denied["message"]), (&json!("Bash"), &json!(words)));
    let answer = records.iter().find(|record| record["type"] == "user").unwrap();
    assert_eq!(answer["message"]["content"][0]["content"], words);
}

#[test]
fn denied_calls_that_the_agent_lists_have_claudes_names() {
    let ended = r#"{"type":"turn_ended","outcome":"completed","denials":[{"tool_name":"run_shell_command","tool_use_id":"c","tool_input":{"command":"ls"}}]}"#;
    let (records, _) = written(&[CALL, ended]);
    let expected = json!([{"tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}}]);
    assert_eq!(records.last().unwrap()["permission_denials"], expected);
}
