//! What Gemini also sends: calls without ids, other reasons to stop, and no content.

use fake_model::{GeminiForm, Reply, ToolResult};
use serde_json::{Value, json};

use crate::support::turns::Turns;
use crate::support::{Wire, ask, model, parsed_answer};

fn last(reply: Reply) -> Value {
    let response = ask(&model([reply]), Wire::Gemini);
    serde_json::from_str(&response.events().last().unwrap().1).unwrap()
}

#[test]
fn calls_without_ids_are_followed_by_their_names() {
    let form = GeminiForm { without_call_ids: true, ..GeminiForm::default() };
    let reply = Reply::call("bash", json!({"a": 1})).then_call("bash", json!({"b": 2}));
    let turns = Turns::new(Wire::Gemini, reply.gemini(form));
    assert_eq!(turns.send(), [""; 0]);
    let result = |id: &str| ToolResult {
        id: id.to_owned(),
        name: "bash".to_owned(),
        text: Some("sunny".to_owned()),
    };
    assert_eq!(turns.model.tool_results(), [result("bash#1"), result("bash#2")]);
    assert!(!turns.second.to_string().contains("\"id\""));
}

#[test]
fn a_malformed_call_and_an_empty_stop_have_no_content() {
    let malformed = last(Reply::malformed_call("Malformed function call: bash("));
    let candidate = &malformed["candidates"][0];
    assert_eq!(candidate["finishReason"], "MALFORMED_FUNCTION_CALL");
    assert_eq!(candidate["finishMessage"], "Malformed function call: bash(");
    assert_eq!(candidate.get("content"), None);
    let empty = last(Reply::empty_stop());
    assert_eq!(empty["candidates"], json!([{"finishReason": "STOP", "index": 0}]));
}

#[test]
fn a_blocked_prompt_has_no_candidate() {
    let form = GeminiForm { block_reason: Some("SAFETY".to_owned()), ..GeminiForm::default() };
    let blocked = last(Reply::text("never sent").gemini(form));
    assert_eq!(blocked["promptFeedback"], json!({"blockReason": "SAFETY"}));
    assert_eq!(blocked.get("candidates"), None);
}

#[test]
fn forms_of_gemini_change_no_other_protocol() {
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let reply = Reply::text("Hi").gemini(GeminiForm {
            without_call_ids: true,
            finish_reason: Some("OTHER".to_owned()),
            without_last_content: true,
            ..GeminiForm::default()
        });
        assert_eq!(parsed_answer(wire, &ask(&model([reply]), wire)).text, "Hi", "{wire:?}");
    }
}
