//! Answers that are no stream although one was requested, and answers that do not begin.

use fake_model::{Kind, Outcome, Reply};
use serde_json::json;

use crate::support::{Client, Entry, Wire, ask, model, request, soon};

#[test]
fn a_raw_answer_is_sent_as_it_is() {
    let headers = [("content-type", "text/plain"), ("x-should-retry", "false")];
    for wire in Wire::ALL {
        let model = model([Reply::raw(418, &headers, "I am a teapot.\n")]);
        let response = ask(&model, wire);
        assert_eq!((response.status, response.body.as_str()), (418, "I am a teapot.\n"));
        assert!(response.headers.contains("\r\nx-should-retry: false\r\n"), "{wire:?}");
        assert_eq!(model.requests()[0].kind, Kind::Main(Some(0)));
    }
}

#[test]
fn a_page_and_an_empty_body_have_the_status_200() {
    let page = ask(&model([Reply::html()]), Wire::Chat);
    assert!(page.status == 200 && page.headers.contains("text/html"));
    let empty = ask(&model([Reply::empty_body()]), Wire::Chat);
    assert!(empty.status == 200 && empty.headers.contains("text/event-stream"));
    assert_eq!((empty.body.as_str(), empty.complete), ("", true));
}

#[test]
fn one_json_value_may_answer_a_request_for_a_stream() {
    for (wire, pointer) in [
        (Wire::Responses, "/output/0/content/0/text"),
        (Wire::Chat, "/choices/0/message/content"),
        (Wire::Messages, "/content/0/text"),
        (Wire::Gemini, "/candidates/0/content/parts/0/text"),
    ] {
        let response = ask(&model([Reply::text("Hi").whole_json()]), wire);
        assert!(response.headers.contains("application/json"), "{wire:?}");
        assert_eq!(response.json().pointer(pointer), Some(&json!("Hi")), "{wire:?}");
    }
}

#[test]
fn a_held_answer_begins_when_its_gate_opens() {
    for reply in
        [Reply::text("Hi"), Reply::html(), Reply::error(500, "no"), Reply::text("Hi").whole_json()]
    {
        let model = model([reply.hold("start")]);
        let (path, body) = request(Wire::Chat, &[Entry::User("Hello")]);
        let mut client = Client::new(&model);
        client.send(&path, &body);
        assert!(model.gate("start").wait_until_reached(soon()));
        client.stream.set_nonblocking(true).unwrap();
        let early = client.stream.peek(&mut [0]);
        client.stream.set_nonblocking(false).unwrap();
        assert_eq!(early.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        model.gate("start").open();
        assert!(client.read().complete);
    }
}

#[test]
fn an_agent_that_gives_up_on_a_held_answer_is_recorded() {
    let model = model([Reply::text("Hi").hold("never")]);
    let (path, body) = request(Wire::Messages, &[Entry::User("Hello")]);
    let mut client = Client::new(&model);
    client.send(&path, &body);
    assert!(model.gate("never").wait_until_reached(soon()));
    drop(client);
    assert_eq!(model.wait_for_outcome(0, soon()), Some(Outcome::AgentLeft));
}
