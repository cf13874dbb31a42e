//! The input of a call is the same for every split of its text, and is never half an input.

use interlingua::Exit;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::reading::{block_start, block_stop, delta, message_delta, message_start, read};
use crate::support::records::of_type;
use crate::support::{self, dialect, translate_chunks};

/// A call whose input is streamed in these pieces.
fn call(pieces: &[&str], stop_reason: &str) -> Vec<Value> {
    let tool = json!({"type": "tool_use", "id": "c", "name": "write", "input": {}});
    let mut events = vec![message_start("m"), block_start(0, tool)];
    let piece = |piece: &&str| delta(0, json!({"type": "input_json_delta", "partial_json": piece}));
    events.extend(pieces.iter().map(piece));
    events.extend([block_stop(0), message_delta(stop_reason, 5), json!({"type": "message_stop"})]);
    events
}

const INPUT: &str =
    r#"{"path":"a é.txt","text":"say \"hi\"\n\u00e9 😀","list":[1,{"a":null}],"n":-1.5e3}"#;

#[test]
fn every_split_into_two_gives_the_same_input() {
    let expected: Value = serde_json::from_str(INPUT).unwrap();
    for at in (0..=INPUT.len()).filter(|at| INPUT.is_char_boundary(*at)) {
        let (one, two) = INPUT.split_at(at);
        let events = read(&call(&["", one, two], "tool_use"));
        let inputs = of_type(&events, "tool_input");
        assert_eq!((inputs.len(), &inputs[0]["input"]), (1, &expected), "split at {at}");
        assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "waiting_for_client");
    }
}

#[test]
fn an_input_that_is_cut_anywhere_is_no_input() {
    for at in (1..INPUT.len()).filter(|at| INPUT.is_char_boundary(*at)) {
        let half = INPUT.split_at(at).0;
        let cut_off = call(&[half], "max_tokens")[..3].to_vec();
        for events in [call(&[half], "max_tokens"), call(&[half], "tool_use"), cut_off] {
            let events = read(&events);
            let input = of_type(&events, "tool_input")[0];
            assert!(input.get("input").is_none(), "cut at {at}: {input}");
            assert_eq!(of_type(&events, "tool_ended")[0]["status"], "abandoned", "cut at {at}");
        }
    }
}

#[test]
fn an_empty_input_is_an_empty_object_unless_the_response_was_cut_off() {
    for pieces in [&[][..], &[""], &["", " "]] {
        for reason in ["tool_use", "end_turn", "stop_sequence"] {
            let events = read(&call(pieces, reason));
            assert_eq!(of_type(&events, "tool_input")[0]["input"], json!({}), "{reason}");
            assert!(of_type(&events, "tool_ended").is_empty());
        }
        for reason in ["max_tokens", "model_context_window_exceeded", "refusal"] {
            let events = read(&call(pieces, reason));
            assert!(of_type(&events, "tool_input")[0].get("input").is_none(), "{reason}");
            assert_eq!(of_type(&events, "tool_ended")[0]["status"], "abandoned", "{reason}");
        }
    }
}

/// Compatible servers send the whole input at once.
#[test]
fn an_input_in_the_start_of_its_block_is_whole() {
    let mut events = call(&[], "tool_use");
    events[1]["content_block"]["input"] = json!({"path": "a"});
    let events = read(&events);
    assert_eq!(of_type(&events, "tool_input")[0]["input"], json!({"path": "a"}));
}

proptest! {
    #![proptest_config(support::cases(128))]

    #[test]
    fn any_split_of_input_and_bytes_gives_the_same_call(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        size in 1_usize..200,
    ) {
        let boundary = |cut: &prop::sample::Index| INPUT.floor_char_boundary(cut.index(INPUT.len() + 1));
        let mut cuts: Vec<usize> = cuts.iter().map(boundary).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for cut in cuts.into_iter().chain([INPUT.len()]) {
            pieces.push(&INPUT[start..cut]);
            start = cut;
        }
        let stream = super::reading::stream(&call(&pieces, "tool_use"));
        let from = Some(dialect("anthropic-api"));
        let chunks = stream.as_bytes().chunks(size);
        let events = translate_chunks(from, dialect("events"), chunks, &Exit::default()).records();
        let expected: Value = serde_json::from_str(INPUT).unwrap();
        prop_assert_eq!(&of_type(&events, "tool_input")[0]["input"], &expected);
        let deltas = of_type(&events, "tool_input_delta");
        let text: String = deltas.iter().map(|delta| delta["text"].as_str().unwrap()).collect();
        prop_assert_eq!(text, INPUT);
    }
}
