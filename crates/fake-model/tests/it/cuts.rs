//! Cut connections: they are cut where the script defines it, and are visible as cuts.

use fake_model::{Cut, Outcome, Reply};
use serde_json::json;

use crate::support::{Response, Wire, ask, model, parsed_answer, soon};

fn cut(wire: Wire, cut: Cut) -> Response {
    let model = model([Reply::text("Hel").then_text("lo world").cut(cut)]);
    let response = ask(&model, wire);
    let expected = if cut == Cut::QuietBeforeLastEvent { Outcome::Sent } else { Outcome::Cut };
    assert_eq!(model.wait_for_outcome(0, soon()), Some(expected));
    response
}

#[test]
fn a_cut_before_the_first_byte_sends_nothing() {
    for wire in Wire::ALL {
        let response = cut(wire, Cut::BeforeFirstByte);
        assert_eq!((response.status, response.body.as_str()), (0, ""), "{wire:?}");
    }
}

#[test]
fn a_cut_in_text_splits_an_event() {
    for wire in Wire::ALL {
        let response = cut(wire, Cut::InText);
        assert!(!response.complete);
        assert_eq!(parsed_answer(wire, &response).text, "Hel", "{wire:?}");
        assert!(!response.body.ends_with("\n\n"), "{wire:?}: the last event is complete");
        assert!(response.body.contains("data: "));
    }
}

#[test]
fn a_cut_before_the_last_event_sends_all_text_and_no_end() {
    for wire in Wire::ALL {
        for place in [Cut::BeforeLastEvent, Cut::QuietBeforeLastEvent] {
            let response = cut(wire, place);
            let parsed_answer = parsed_answer(wire, &response);
            assert_eq!(response.complete, place == Cut::QuietBeforeLastEvent);
            assert_eq!(
                (parsed_answer.text.as_str(), parsed_answer.stop.as_str()),
                ("Hello world", ""),
                "{wire:?}"
            );
        }
    }
}

#[test]
fn a_cut_in_a_reply_without_text_splits_a_call() {
    for wire in Wire::ALL {
        let reply = Reply::call("bash", json!({"command": "echo hi"})).cut(Cut::InText);
        let response = ask(&model([reply]), wire);
        assert!(!response.complete && !response.body.ends_with("\n\n"), "{wire:?}");
        assert!(response.body.contains("\"bash\""), "{wire:?}: the call has not begun");
    }
}

#[test]
fn the_server_continues_after_a_cut() {
    for wire in Wire::ALL {
        let model = model([Reply::text("a").cut(Cut::InText), Reply::text("b")]);
        ask(&model, wire);
        assert_eq!(parsed_answer(wire, &ask(&model, wire)).text, "b");
    }
}
