//! A sign-in that failed before the agent wrote any record is an error of the system for Yume.
//!
//! If the user is not signed in, Gemini CLI and Copilot CLI print nothing on standard output:
//! Gemini exits with 41, Copilot with 1, and both explain the failure on standard error.
use crate::support::records::of_type;
use crate::support::{dialect, translate_chunks};
use interlingua::Exit;
use serde_json::Value;

const COPILOT: &str = "Error: No authentication information found.\n\nCopilot can be authenticated with a token.\n\nTo authenticate, you can use any of the following methods:\n  • Start 'copilot' and run the '/login' command\n";
const GEMINI: &str = "Please set an Auth method in your /home/u/.gemini/settings.json\n";

fn written(from: &str, to: &str, input: &str, code: i64, stderr: Option<&str>) -> Vec<Value> {
    let exit = Exit { code: Some(code), stderr: stderr.map(ToOwned::to_owned), ..Exit::default() };
    translate_chunks(Some(dialect(from)), dialect(to), [input.as_bytes()], &exit).records()
}

#[test]
fn yume_receives_a_system_error() {
    let cases = [
        ("gemini", 41, Some(GEMINI), "Please set an Auth method"),
        ("gemini", 41, None, "could not sign in (exit code 41)"),
        ("copilot", 1, Some(COPILOT), "No authentication information found."),
    ];
    for (from, code, stderr, words) in cases {
        let records = written(from, "yume", "", code, stderr);
        let system = of_type(&records, "system");
        assert_eq!((system.len(), &system[1]["subtype"]), (2, &Value::from("error")), "{from}");
        assert!(system[1]["message"].as_str().unwrap().contains(words), "{}", system[1]);
        assert!(of_type(&records, "error").is_empty());
        assert_eq!(of_type(&records, "result")[0]["is_error"], true);
    }
}

#[test]
fn the_events_have_the_class() {
    for (from, code, stderr) in [("gemini", 41, GEMINI), ("copilot", 1, COPILOT)] {
        let events = written(from, "events", "", code, Some(stderr));
        assert_eq!(of_type(&events, "turn_ended")[0]["class"], "authentication", "{from}");
    }
}

#[test]
fn another_exit_is_no_sign_in_failure() {
    let cases = [("gemini", 1, GEMINI), ("copilot", 1, "Error: no network"), ("codex", 41, "gone")];
    for (from, code, stderr) in cases {
        let events = written(from, "events", "", code, Some(stderr));
        assert_eq!(of_type(&events, "turn_ended")[0].get("class"), None, "{from}");
        let records = written(from, "yume", "", code, Some(stderr));
        assert_eq!((of_type(&records, "system").len(), of_type(&records, "error").len()), (1, 1));
    }
}

#[test]
fn a_turn_that_the_agent_ended_itself_keeps_its_cause() {
    let lines = [
        r#"{"type":"init","timestamp":"t","session_id":"g","model":"m"}"#,
        r#"{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":3,"input_tokens":1,"output_tokens":2}}"#,
        "",
    ];
    let events = written("gemini", "events", &lines.join("\n"), 41, None);
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "completed");
}
