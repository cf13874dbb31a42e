//! A structured answer, as Claude Code gives it with `--json-schema`: the model passes it to a
//! tool, and the turn ends with `"stop_reason":"tool_use"`.

use serde_json::{Value, json};

use crate::support::{Case, translate, translate_lines, written};

const ANSWER: &str = r#"{"answer":"forty-two","value":42}"#;

fn cases() -> Vec<Case> {
    let cases: Vec<_> =
        Case::of("claude").into_iter().filter(|it| it.name.contains("json-schema")).collect();
    assert_eq!(cases.len(), 2);
    cases
}

fn only<'r>(records: &'r [Value], kind: &str) -> &'r Value {
    let found: Vec<_> = records.iter().filter(|record| record["type"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind}");
    found[0]
}

/// Regression: the turn was read as one that waits for the client.
#[test]
fn a_turn_without_an_unanswered_call_does_not_wait_for_the_client() {
    for case in cases() {
        let events = translate("events", &case.input, &case.exit).records();
        assert_eq!(only(&events, "turn_ended")["outcome"], "completed", "{}", case.name);
    }
    let call = r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"c","name":"ask","input":{}}]},"session_id":"s"}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"stop_reason":"tool_use","session_id":"s"}"#;
    let events = translate_lines("claude", "events", &[call, result]).records();
    assert_eq!(only(&events, "turn_ended")["outcome"], "waiting_for_client");
}

#[test]
fn finish_has_the_answer_in_its_metadata() {
    let answer: Value = serde_json::from_str(ANSWER).unwrap();
    for case in cases() {
        for to in ["ai-sdk", "ai-sdk-v4"] {
            let parts = translate(to, &case.input, &case.exit).records();
            let finish = only(&parts, "finish");
            assert_eq!(finish["finishReason"]["unified"], "stop", "{} -> {to}", case.name);
            let facts = &finish["providerMetadata"]["interlingua"];
            assert_eq!(facts["structured"], answer, "{} -> {to}", case.name);
        }
        let chunks = translate("ui-message", &case.input, &case.exit).records();
        let finish = only(&chunks, "finish");
        assert_eq!(finish["finishReason"], "stop");
        assert_eq!(finish["messageMetadata"]["structured"], answer);
    }
}

/// The last text of a stream, by the names of text in all dialects.
fn last_text(records: &[Value]) -> Option<&str> {
    fn text(record: &Value) -> Option<&str> {
        let kind = record["type"].as_str();
        let update = &record["params"]["update"];
        match kind {
            Some("text-delta" | "TEXT_MESSAGE_CONTENT") => record["delta"].as_str(),
            Some("text") => record["content"].as_str().or(record["text"].as_str()),
            Some("message") => record["content"].as_str(),
            Some("block") => record["text"].as_str(),
            Some("result") => record["result"].as_str(),
            None if update["sessionUpdate"] == "agent_message_chunk" => {
                update["content"]["text"].as_str()
            }
            _ => None,
        }
    }
    records.iter().rev().find_map(text)
}

#[test]
fn the_answer_is_the_last_text_in_every_dialect() {
    for case in cases() {
        for to in written().filter(|to| to.name != "text") {
            let written = translate(to.name, &case.input, &case.exit);
            assert_eq!(last_text(&written.records()), Some(ANSWER), "{} -> {}", case.name, to.name);
        }
    }
}

/// Regression: it was shown three times, as the input of the tool, the last text, and the end of
/// the turn.
#[test]
fn the_text_view_shows_the_answer_once() {
    for case in cases() {
        let text = translate("text", &case.input, &case.exit).text();
        assert_eq!(text.matches("forty-two").count(), 1, "{}: {text}", case.name);
    }
}

fn texts(lines: &[Value]) -> Vec<String> {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let parts = translate_lines("events", "ai-sdk", &lines).records();
    let texts = parts.iter().filter(|part| part["type"] == "text-delta");
    texts.map(|part| part["delta"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_answer_is_not_repeated_if_the_last_text_is_its_json() {
    let text = json!({"type": "block", "kind": "text", "text": r#"{"b": 1, "a": [2]}"#});
    let ended = |text: &str| {
        let answer = json!({"a": [2], "b": 1});
        json!({"type": "turn_ended", "outcome": "completed", "final_text": text, "structured": answer})
    };
    let same = texts(&[text.clone(), ended(r#"{"b": 1, "a": [2]}"#)]);
    assert_eq!(same, [r#"{"b": 1, "a": [2]}"#]);
    let other = texts(&[json!({"type": "block", "kind": "text", "text": "Done."}), ended("Done.")]);
    assert_eq!(other, ["Done.", r#"{"a":[2],"b":1}"#]);
}
