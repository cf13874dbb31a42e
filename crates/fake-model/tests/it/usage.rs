//! Counts as each protocol counts, and none at all.

use fake_model::Reply;
use serde_json::{Value, json};

use crate::support::{Wire, ask, model, parsed_answer};

#[test]
fn tokens_written_to_the_cache_are_part_of_the_input() {
    for (wire, pointer, expected) in [
        (
            Wire::Responses,
            "/response/usage",
            json!({
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 8},
                "total_tokens": 120,
            }),
        ),
        (
            Wire::Chat,
            "/usage",
            json!({
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 8},
                "total_tokens": 120,
            }),
        ),
        (
            Wire::Messages,
            "/usage",
            json!({
                "input_tokens": 10, "cache_read_input_tokens": 60,
                "cache_creation_input_tokens": 30,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0,
                },
                "output_tokens": 20, "output_tokens_details": {"thinking_tokens": 8},
            }),
        ),
        (
            Wire::Gemini,
            "/usageMetadata",
            json!({
                "promptTokenCount": 100, "cachedContentTokenCount": 60,
                "candidatesTokenCount": 12, "thoughtsTokenCount": 8, "totalTokenCount": 120,
            }),
        ),
    ] {
        let reply = Reply::text("Hi").usage(100, 20).cached(60).cache_write(30).reasoning_tokens(8);
        let response = ask(&model([reply]), wire);
        let events = response.events().into_iter();
        let events = events.filter_map(|(_, data)| serde_json::from_str::<Value>(&data).ok());
        let usage: Vec<Value> =
            events.filter_map(|event| event.pointer(pointer).cloned()).collect();
        assert_eq!(usage.last(), Some(&expected), "{wire:?}");
    }
}

#[test]
fn an_answer_may_have_no_counts() {
    for wire in Wire::ALL {
        let response = ask(&model([Reply::text("Hi").without_usage()]), wire);
        let answer = parsed_answer(wire, &response);
        assert_eq!(answer.text, "Hi");
        assert!(answer.usage.iter().all(|count| *count == 0), "{wire:?}");
    }
}

/// A reader that adds them up, or takes those of the first event, counts wrong.
#[test]
fn the_counts_of_gemini_are_a_running_total() {
    let reply = Reply::new().then_reasoning("Hm.").then_text("One ").then_text("two.");
    let reply = reply.usage(100, 40).reasoning_tokens(8);
    let response = ask(&model([reply]), Wire::Gemini);
    let events = response.events().into_iter();
    let counts: Vec<_> = events
        .map(|(_, data)| {
            let event: Value = serde_json::from_str(&data).unwrap();
            let counts = &event["usageMetadata"];
            let names = ["promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"];
            let [input, text, thoughts] = names.map(|name| counts[name].as_u64().unwrap());
            assert_eq!(counts["totalTokenCount"], input + text + thoughts);
            [input, text, thoughts]
        })
        .collect();
    assert_eq!(counts, [[100, 8, 2], [100, 16, 4], [100, 24, 6], [100, 32, 8]]);
}
