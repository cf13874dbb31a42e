//! A script in JSON means the same as one in Rust, and mistakes in it are reported.

use fake_model::{
    Action, ApiError, AtEnd, Call, CallArguments, CallIndex, ChatForm, Cut, Ending, ErrorEvent,
    FailureClass, GeminiForm, MessagesForm, Part, Reply, ResponsesForm, Script, Sending,
    SignaturePlace, Stop, Usage,
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
fn the_fields_for_an_api_agent_are_parsed() {
    let text = r#"{
        "strict": true, "side_requests": false,
        "replies": [
            {"parts": ["redacted_reasoning", {"refusal": "no"}, {"json": {"a": 1}}, "checkpoint"],
             "ending": "continuation", "without_usage": true, "whole_json": true, "hold": "gate"},
            {"parts": [{"call": {"name": "x", "input": {}, "sending": {"split_arguments": [1, 5]}}},
                       {"call": {"name": "x", "input": {}, "sending": {"truncated": true}}},
                       {"call": {"name": "x", "input": {}, "sending": {"raw_arguments": "{no"}}}],
             "usage": {"cache_write": 7}, "ending": {"cut": "in_call"}},
            {"raw": {"status": 200, "headers": {"content-type": "text/html"}, "body": "<p>"}},
            {"failure": {"class": "rate_limit", "retry_after": 1, "retry_after_ms": 2,
                         "should_retry": false}},
            {"ending": {"failure": {"class": "context_overflow"}}},
            {"messages": {"stop_reason": "pause_turn", "refusal_category": "bio"},
             "responses": {"phases": true, "error_event": "nested"},
             "chat": {"reasoning_field": "reasoning", "reasoning_details": true, "index": "zero",
                      "repeated_ids": true, "arguments": "object", "whole_calls": true,
                      "without_done": true, "usage_in_every_chunk": true, "finish_reason": "stop"},
             "gemini": {"without_call_ids": true, "signature": "empty_part",
                        "finish_reason": "OTHER", "finish_message": "m",
                        "without_last_content": true, "block_reason": "SAFETY"}}
        ]
    }"#;
    let call = |reply: Reply| reply.then_call("x", json!({}));
    let odd = Reply::json(json!({"a": 1})).then_checkpoint().continued();
    let odd = Reply {
        parts: [Reply::new().then_redacted_reasoning().then_refusal("no").parts, odd.parts.clone()]
            .concat(),
        ..odd
    };
    let expected = Script::new()
        .strict()
        .without_side_requests()
        .reply(odd.without_usage().whole_json().hold("gate"))
        .reply(
            call(call(call(Reply::new()).split_arguments(&[1, 5])).truncated_call())
                .raw_arguments("{no")
                .cache_write(7)
                .cut(Cut::InCall),
        )
        .reply(Reply::raw(200, &[("content-type", "text/html")], "<p>"))
        .reply(
            Reply::failure(FailureClass::RateLimit)
                .retry_after(1)
                .retry_after_ms(2)
                .should_retry(false),
        )
        .reply(Reply::new().failure_in_stream(FailureClass::ContextOverflow))
        .reply(
            Reply::new()
                .messages(MessagesForm {
                    stop_reason: Some("pause_turn".to_owned()),
                    refusal_category: Some("bio".to_owned()),
                })
                .responses(ResponsesForm { phases: true, error_event: ErrorEvent::Nested })
                .chat(ChatForm {
                    reasoning_field: "reasoning".to_owned(),
                    reasoning_details: true,
                    index: CallIndex::Zero,
                    repeated_ids: true,
                    arguments: CallArguments::Object,
                    whole_calls: true,
                    without_done: true,
                    usage_in_every_chunk: true,
                    finish_reason: Some("stop".to_owned()),
                })
                .gemini(GeminiForm {
                    without_call_ids: true,
                    signature: SignaturePlace::EmptyPart,
                    finish_reason: Some("OTHER".to_owned()),
                    finish_message: Some("m".to_owned()),
                    without_last_content: true,
                    block_reason: Some("SAFETY".to_owned()),
                }),
        );
    let json = |script: &Script| serde_json::to_value(script).unwrap();
    assert_eq!(json(&Script::from_json(text).unwrap()), json(&expected));
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
