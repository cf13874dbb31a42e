//! A script in JSON means the same as one in Rust, and mistakes in it are reported.

use fake_model::{
    Action, ApiError, AtEnd, Call, Cut, Ending, Part, Reply, Script, Sending, Stop, Usage,
};
use serde_json::json;

#[test]
fn the_script_of_the_readme_is_parsed() {
    let readme = include_str!("../../README.md");
    let text = readme.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let script = Script::from_json(text).unwrap();
    let expected = Script::new()
        .reply(
            Reply::new()
                .then_reasoning("Let me ")
                .then_reasoning("see.")
                .then_text("I will look.")
                .then_action(Action::Shell { command: "ls".to_owned() })
                .then_call("Bash", json!({"command": "pwd"}))
                .gate_inside_call("in the call")
                .usage(120, 30)
                .cached(100)
                .reasoning_tokens(8),
        )
        .reply(Reply::error(429, "Slow down.").retry_after(1))
        .reply(Reply::text("Hel").then_gate("half way").then_text("lo").cut(Cut::InText))
        .reply(Reply::text("So far").error_in_stream(529, "Overloaded."))
        .reply(Reply::text("All d").delay_ms(50).stop(Stop::Length))
        .repeat_last();
    let json = |script: &Script| serde_json::to_value(script).unwrap();
    assert_eq!(json(&script), json(&expected));
}

#[test]
fn omitted_fields_have_defaults() {
    let script = Script::from_json(r#"{"replies": [{}]}"#).unwrap();
    let reply = &script.replies[0];
    assert_eq!(
        reply.usage,
        Usage { input: 100, output: 20, cached: 0, cache_write: 0, reasoning: 0 }
    );
    assert_eq!((reply.stop, &reply.ending), (Stop::Done, &Ending::Complete));
    assert_eq!((script.at_end, script.key.as_str()), (AtEnd::Exhausted, "dummy"));
    assert_eq!(script.expect_stream, Some(true));
}

#[test]
fn calls_are_raw_or_actions() {
    let raw: Part =
        serde_json::from_value(json!({"call": {"name": "x", "input": "free"}})).unwrap();
    let sending = Sending::default();
    let (name, input) = ("x".to_owned(), json!("free"));
    let expected = Call::Raw { name, input, gate_inside: None, sending: sending.clone() };
    assert_eq!(raw, Part::Call(expected));
    let read = json!({"call": {"action": {"read": {"path": "/a"}}}});
    let action = Action::Read { path: "/a".to_owned() };
    let expected = Part::Call(Call::Action { action, gate_inside: None, sending });
    assert_eq!(serde_json::from_value::<Part>(read).unwrap(), expected);
}

#[test]
fn mistakes_are_reported() {
    for (text, words) in [
        (r#"{"replys": []}"#, "replys"),
        (r#"{"replies": [{"text": "x"}]}"#, "unknown field `text`"),
        (r#"{"replies": [{"parts": [{"say": "x"}]}]}"#, "unknown variant `say`"),
        (r#"{"replies": [{"stop": "never"}]}"#, "unknown variant `never`"),
        (r#"{"replies": [{"error": {"message": "x"}}]}"#, "missing field `status`"),
    ] {
        let error = Script::from_json(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = ApiError { status: 500, message: "x".to_owned(), retry_after: None };
    assert_eq!(serde_json::to_value(error).unwrap()["status"], json!(500));
}
