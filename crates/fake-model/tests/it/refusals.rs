//! A refusal in the form of each protocol.

use fake_model::{MessagesForm, Reply};
use serde_json::{Value, json};

use crate::support::{Entry, Wire, ask, found, model, post, request};

#[test]
fn a_refusal_is_streamed_or_stated_at_the_end() {
    for wire in Wire::ALL {
        let form =
            MessagesForm { refusal_category: Some("cyber".to_owned()), ..MessagesForm::default() };
        let reply = Reply::new().then_refusal("I can").then_refusal("not.").messages(form);
        let response = ask(&model([reply]), wire);
        let events: Vec<Value> = response
            .events()
            .iter()
            .filter_map(|(_, data)| serde_json::from_str(data).ok())
            .collect();
        let texts = |pointer: &str| -> String {
            events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
        };
        match wire {
            Wire::Responses => {
                assert_eq!(texts("/delta"), "I cannot.");
                let part = &events.last().unwrap()["response"]["output"][0]["content"][0];
                assert_eq!(part, &json!({"type": "refusal", "refusal": "I cannot."}));
            }
            Wire::Chat => {
                assert_eq!(texts("/choices/0/delta/refusal"), "I cannot.");
                assert_eq!(texts("/choices/0/finish_reason"), "stop");
            }
            Wire::Messages => {
                let end = &events[events.len() - 2]["delta"];
                assert_eq!(end["stop_reason"], "refusal");
                let details =
                    json!({"type": "refusal", "category": "cyber", "explanation": "I cannot."});
                assert_eq!(end["stop_details"], details);
            }
            Wire::Gemini => {
                assert_eq!(texts("/candidates/0/finishReason"), "SAFETY");
                assert_eq!(texts("/candidates/0/finishMessage"), "I cannot.");
            }
        }
    }
}

#[test]
fn messages_may_stop_for_another_reason() {
    let form =
        MessagesForm { stop_reason: Some("pause_turn".to_owned()), ..MessagesForm::default() };
    let response = ask(&model([Reply::text("Hi").messages(form)]), Wire::Messages);
    assert!(response.body.contains("\"stop_reason\":\"pause_turn\""));
}

/// The next request continues a paused answer by ending with it.
#[test]
fn a_paused_answer_may_be_the_last_message() {
    for (stop_reason, expected) in [(Some("pause_turn"), &[][..]), (None, &["last-role"])] {
        let stop_reason = stop_reason.map(str::to_owned);
        let form = MessagesForm { stop_reason, ..MessagesForm::default() };
        let model = model([Reply::text("I search.").messages(form), Reply::text("Done.")]);
        let (path, mut body) = request(Wire::Messages, &[Entry::User("Hello")]);
        post(&model, &path, &body);
        let content = json!([{"type": "text", "text": "I search."}]);
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": content}));
        post(&model, &path, &body);
        assert_eq!(found(&model), expected);
    }
}
