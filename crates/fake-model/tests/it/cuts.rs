//! Cut connections: where the script says, and visible as a cut.

use fake_model::{Cut, Outcome, Reply};
use serde_json::json;

use crate::support::{Response, Wire, ask, model, soon, story};

fn cut(wire: Wire, cut: Cut) -> Response {
    let model = model([Reply::text("Hel").then_text("lo world").cut(cut)]);
    let response = ask(&model, wire);
    let expected = if cut == Cut::QuietBeforeLastEvent { Outcome::Sent } else { Outcome::Cut };
    assert_eq!(model.wait_for_outcome(0, soon()), Some(expected));
    response
}

#[test]
fn before_the_first_byte_nothing_comes() {
    for wire in Wire::ALL {
        let response = cut(wire, Cut::BeforeFirstByte);
        assert_eq!((response.status, response.body.as_str()), (0, ""), "{wire:?}");
    }
}

#[test]
fn in_text_an_event_is_cut_in_two() {
    for wire in Wire::ALL {
        let response = cut(wire, Cut::InText);
        assert!(!response.complete);
        assert_eq!(story(wire, &response).text, "Hel", "{wire:?}");
        assert!(!response.body.ends_with("\n\n"), "{wire:?}: the last event is whole");
        assert!(response.body.contains("data: "));
    }
}

#[test]
fn before_the_last_event_all_text_is_there_and_no_end() {
    for wire in Wire::ALL {
        for place in [Cut::BeforeLastEvent, Cut::QuietBeforeLastEvent] {
            let response = cut(wire, place);
            let story = story(wire, &response);
            assert_eq!(response.complete, place == Cut::QuietBeforeLastEvent);
            assert_eq!((story.text.as_str(), story.stop.as_str()), ("Hello world", ""), "{wire:?}");
        }
    }
}

#[test]
fn without_text_a_call_is_cut_in_two() {
    for wire in Wire::ALL {
        let reply = Reply::call("bash", json!({"command": "echo hi"})).cut(Cut::InText);
        let response = ask(&model([reply]), wire);
        assert!(!response.complete && !response.body.ends_with("\n\n"), "{wire:?}");
        assert!(response.body.contains("\"bash\""), "{wire:?}: the call has not begun");
    }
}

#[test]
fn the_server_goes_on_after_a_cut() {
    for wire in Wire::ALL {
        let model = model([Reply::text("a").cut(Cut::InText), Reply::text("b")]);
        ask(&model, wire);
        assert_eq!(story(wire, &ask(&model, wire)).text, "b");
    }
}
