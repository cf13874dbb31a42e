//! The input of a call: split anywhere, cut, truncated, or not valid at all.

use fake_model::{Cut, Reply, Stop};
use serde_json::{Value, json};

use crate::support::{Response, Wire, ask, found, model, parsed_answer};

/// The deltas of the input of a call.
fn deltas(wire: Wire, response: &Response) -> Vec<String> {
    let pointer = match wire {
        Wire::Responses => "/delta",
        Wire::Chat => "/choices/0/delta/tool_calls/0/function/arguments",
        Wire::Messages => "/delta/partial_json",
        Wire::Gemini => return Vec::new(),
    };
    let events = response.events().into_iter();
    let events = events.filter_map(|(_, data)| serde_json::from_str::<Value>(&data).ok());
    let texts = events.filter_map(|event| event.pointer(pointer)?.as_str().map(str::to_owned));
    texts.skip(usize::from(wire == Wire::Chat)).collect()
}

#[test]
fn input_is_split_at_the_positions_of_the_script() {
    // `{"a":"é"}`: byte 7 is inside of the é.
    for (positions, expected) in [
        (&[][..], vec!["{\"a\":\"é\"}"]),
        (&[1, 7], vec!["{", "\"a\":\"", "é\"}"]),
        (&[0, 99], vec!["", "{\"a\":\"é\"}", ""]),
        (&[5, 2], vec!["{\"a\":", "", "\"é\"}"]),
    ] {
        for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
            let reply = Reply::call("bash", json!({"a": "é"})).split_arguments(positions);
            let response = ask(&model([reply]), wire);
            assert_eq!(deltas(wire, &response), expected, "{wire:?}");
        }
    }
}

fn two_calls() -> Reply {
    Reply::text("Go")
        .then_call("bash", json!({"command": "first"}))
        .then_call("bash", json!({"command": "second"}))
}

#[test]
fn a_cut_in_a_call_leaves_the_calls_before_it_complete() {
    for wire in Wire::ALL {
        let response = ask(&model([two_calls().cut(Cut::InCall)]), wire);
        assert!(!response.complete && !response.body.ends_with("\n\n"), "{wire:?}");
        let answer = parsed_answer(wire, &response);
        assert_eq!(answer.calls[0].2, json!({"command": "first"}), "{wire:?}");
        assert_eq!(answer.calls.len(), if wire == Wire::Gemini { 1 } else { 2 });
        assert!(answer.calls.get(1).is_none_or(|call| call.2.is_string()), "{wire:?}");
    }
}

#[test]
fn a_cut_after_the_calls_leaves_all_complete() {
    for wire in Wire::ALL {
        let reply = two_calls().then_text("More").cut(Cut::AfterCalls);
        let response = ask(&model([reply]), wire);
        let answer = parsed_answer(wire, &response);
        assert!(!response.complete && answer.stop.is_empty(), "{wire:?}");
        assert_eq!(answer.text, "Go");
        let inputs: Vec<Value> = answer.calls.into_iter().map(|call| call.2).collect();
        assert_eq!(inputs, [json!({"command": "first"}), json!({"command": "second"})]);
        let closed = match wire {
            Wire::Messages => "content_block_stop",
            Wire::Responses => "response.output_item.done",
            Wire::Chat | Wire::Gemini => "",
        };
        assert_eq!(response.events().last().unwrap().0, closed);
    }
}

#[test]
fn the_limit_of_tokens_may_be_reached_in_a_call() {
    for wire in Wire::ALL {
        let model = model([two_calls().truncated_call().stop(Stop::Length)]);
        let response = ask(&model, wire);
        let answer = parsed_answer(wire, &response);
        assert!(response.complete, "{wire:?}");
        let stop = match wire {
            Wire::Responses => "incompletemax_output_tokens",
            Wire::Chat => "length",
            Wire::Messages => "max_tokens",
            Wire::Gemini => "MAX_TOKENS",
        };
        assert_eq!(answer.stop, stop);
        assert_eq!(answer.calls[0].2, json!({"command": "first"}));
        if wire == Wire::Gemini {
            assert_eq!(answer.calls.len(), 1);
        } else {
            assert_eq!(answer.calls[1].2, json!("{\"command\""), "{wire:?}");
        }
        assert_eq!(response.body.contains("\"status\":\"incomplete\""), wire == Wire::Responses);
        assert_eq!(found(&model), [""; 0]);
    }
}

#[test]
fn input_may_be_invalid_json() {
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let reply = Reply::call("bash", json!({})).raw_arguments("{\"a\": nonsense}");
        let response = ask(&model([reply]), wire);
        assert_eq!(deltas(wire, &response).concat(), "{\"a\": nonsense}", "{wire:?}");
    }
}
