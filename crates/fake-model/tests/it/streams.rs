//! The streams of all protocols have the content of the script, in the right order.

use fake_model::{Action, Reply, Stop};
use serde_json::json;

use crate::support::{
    Entry, ParsedAnswer, Response, Wire, ask, found, model, parsed_answer, post, request,
};

fn full_reply() -> Reply {
    Reply::new()
        .then_reasoning("Let me ")
        .then_reasoning("think.")
        .then_text("Hé")
        .then_text("llo \"you\"\n")
        .then_call("bash", json!({"command": "echo \"ü\"", "deep": [1, {"x": null}]}))
        .then_call("bash", json!({"command": "second"}))
        .usage(100, 20)
        .cached(30)
        .reasoning_tokens(5)
}

#[test]
fn every_part_is_sent() {
    for wire in Wire::ALL {
        let model = model([full_reply()]);
        let response = ask(&model, wire);
        let (usage, stop) = match wire {
            Wire::Responses => (vec![100, 20, 30, 5], "completed"),
            Wire::Chat => (vec![100, 20, 30, 5], "tool_calls"),
            Wire::Messages => (vec![70, 20, 30], "tool_use"),
            Wire::Gemini => (vec![100, 15, 30, 5], "STOP"),
        };
        let bash = |id: &str, input| (id.to_owned(), "bash".to_owned(), input);
        let expected = ParsedAnswer {
            reasoning: "Let me think.".to_owned(),
            text: "Héllo \"you\"\n".to_owned(),
            calls: vec![
                bash("call_0001", json!({"command": "echo \"ü\"", "deep": [1, {"x": null}]})),
                bash("call_0002", json!({"command": "second"})),
            ],
            usage,
            stop: stop.to_owned(),
        };
        assert!(response.complete, "{wire:?}");
        assert_eq!(parsed_answer(wire, &response), expected, "{wire:?}");
        assert_eq!(found(&model), Vec::<&str>::new(), "{wire:?}");
    }
}

fn names(response: &Response) -> Vec<String> {
    let mut names: Vec<String> = response.events().into_iter().map(|(name, _)| name).collect();
    names.dedup();
    names
}

#[test]
fn events_of_responses_are_in_order() {
    let reply = Reply::new().then_reasoning("r").then_text("t").then_call("bash", json!({}));
    let response = ask(&model([reply]), Wire::Responses);
    assert_eq!(
        names(&response).join(" ").replace("response.", ""),
        "created in_progress \
         output_item.added reasoning_summary_part.added reasoning_summary_text.delta \
         reasoning_summary_text.done reasoning_summary_part.done output_item.done \
         output_item.added content_part.added output_text.delta output_text.done \
         content_part.done output_item.done \
         output_item.added function_call_arguments.delta function_call_arguments.done \
         output_item.done completed"
    );
    for (number, (_, data)) in response.events().iter().enumerate() {
        let event: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(event["sequence_number"], json!(number));
    }
}

#[test]
fn the_end_of_responses_repeats_all_items() {
    let response = ask(&model([full_reply()]), Wire::Responses);
    let events = response.events();
    let done = events.iter().filter(|(name, _)| name == "response.output_item.done");
    let parse = |data: &String| serde_json::from_str::<serde_json::Value>(data).unwrap();
    let items: Vec<serde_json::Value> = done.map(|(_, data)| parse(data)["item"].clone()).collect();
    let end = parse(&events.last().unwrap().1);
    assert_eq!(end["response"]["output"], json!(items));
    assert_eq!(items.len(), 4);
}

#[test]
fn events_of_messages_are_in_order() {
    let reply = Reply::new().then_reasoning("r").then_text("t").then_call("bash", json!({}));
    let response = ask(&model([reply]), Wire::Messages);
    assert_eq!(
        names(&response).join(" "),
        "message_start ping \
         content_block_start content_block_delta content_block_stop \
         content_block_start content_block_delta content_block_stop \
         content_block_start content_block_delta content_block_stop \
         message_delta message_stop"
    );
}

#[test]
fn chat_ends_with_counts_only_if_requested() {
    let model = model([Reply::text("Hi"), Reply::text("Hi")]);
    let with = ask(&model, Wire::Chat);
    assert_eq!(with.events().last().unwrap().1, "[DONE]");
    assert!(with.body.contains("prompt_tokens"));
    let (path, mut body) = request(Wire::Chat, &[Entry::User("Hello")]);
    body["stream_options"] = json!(null);
    let without = post(&model, &path, &body);
    assert_eq!(without.events().last().unwrap().1, "[DONE]");
    assert!(!without.body.contains("usage"));
}

#[test]
fn stop_reasons_are_those_of_the_protocol() {
    for (stop, expected) in [
        (Stop::Done, ["completed", "stop", "end_turn", "STOP"]),
        (Stop::Length, ["incompletemax_output_tokens", "length", "max_tokens", "MAX_TOKENS"]),
        (Stop::Refusal, ["incompletecontent_filter", "content_filter", "refusal", "SAFETY"]),
    ] {
        for (wire, expected) in Wire::ALL.into_iter().zip(expected) {
            let response = ask(&model([Reply::text("t").stop(stop)]), wire);
            assert_eq!(parsed_answer(wire, &response).stop, expected);
        }
    }
}

#[test]
fn a_tool_of_free_text_gets_free_text() {
    let action = Action::Write { path: "/w/a".to_owned(), content: "one\ntwo\n".to_owned() };
    let response = ask(&model([Reply::action(action)]), Wire::Responses);
    let patch = "*** Begin Patch\n*** Add File: /w/a\n+one\n+two\n*** End Patch\n";
    let call = ("call_0001".to_owned(), "apply_patch".to_owned(), json!(patch));
    assert_eq!(parsed_answer(Wire::Responses, &response).calls, [call]);
    assert!(response.body.contains("\"type\":\"custom_tool_call\""));
}

#[test]
fn an_empty_reply_is_complete() {
    for wire in Wire::ALL {
        let response = ask(&model([Reply::new()]), wire);
        let parsed_answer = parsed_answer(wire, &response);
        assert!(
            response.complete && parsed_answer.text.is_empty() && !parsed_answer.stop.is_empty(),
            "{wire:?}"
        );
    }
}

#[test]
fn a_long_text_is_complete() {
    let long = "é".repeat(300_000);
    for wire in Wire::ALL {
        let response = ask(&model([Reply::text(&long)]), wire);
        assert!(parsed_answer(wire, &response).text == long, "{wire:?}");
    }
}
