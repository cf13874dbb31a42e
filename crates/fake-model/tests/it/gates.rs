//! Gates hold a reply until the test opens them; delayed deltas are sent one by one.

use std::time::{Duration, Instant};

use fake_model::{Action, Kind, Outcome, Reply};
use serde_json::json;

use crate::support::{self, Client, Entry, Wire, ask, model, parsed_answer, request, soon};

#[test]
fn a_gate_in_text_holds_the_rest_back() {
    for wire in Wire::ALL {
        let model = model([Reply::text("first-half").then_gate("half").then_text("second-half")]);
        let (path, body) = request(wire, &[Entry::User("Hello")]);
        let mut client = Client::new(&model);
        client.send(&path, &body);
        client.read_until("first-half");
        let gate = model.gate("half");
        assert!(gate.wait_until_reached(soon()));
        assert_eq!(model.requests()[0].outcome, Outcome::Pending);
        gate.open();
        let response = client.read();
        let text = parsed_answer(wire, &response).text;
        assert_eq!(text, "first-halfsecond-half", "{wire:?}: one block");
        assert_eq!(model.wait_for_outcome(0, soon()), Some(Outcome::Sent));
    }
}

#[test]
fn a_gate_inside_a_call_holds_its_input_back() {
    for wire in Wire::ALL {
        let reply = Reply::call("bash", json!({"command": "the-end-of-it"}));
        let model = model([reply.gate_inside_call("input")]);
        let (path, body) = request(wire, &[Entry::User("Hello")]);
        let mut client = Client::new(&model);
        client.send(&path, &body);
        assert!(model.gate("input").wait_until_reached(soon()));
        model.gate("input").open();
        let response = client.read();
        assert_eq!(parsed_answer(wire, &response).calls[0].2, json!({"command": "the-end-of-it"}));
    }
}

#[test]
fn an_agent_that_disconnects_at_a_gate_is_recorded() {
    for wire in Wire::ALL {
        let model = model([Reply::text("a").then_gate("never").then_text("b")]);
        let (path, body) = request(wire, &[Entry::User("Hello")]);
        let mut client = Client::new(&model);
        client.send(&path, &body);
        assert!(model.gate("never").wait_until_reached(soon()));
        drop(client);
        assert_eq!(model.wait_for_outcome(0, soon()), Some(Outcome::AgentLeft), "{wire:?}");
    }
}

/// Runs the command of an action that waits at a gate, as an agent would.
fn tool_at_gate(model: &fake_model::FakeModel) -> std::process::Child {
    let response = ask(model, Wire::Chat);
    let command =
        parsed_answer(Wire::Chat, &response).calls[0].2["command"].as_str().unwrap().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(format!("exec {command}")).stdout(std::process::Stdio::piped());
    let child = shell.spawn().unwrap();
    assert!(model.gate("in a tool").wait_until_reached(soon()));
    assert_eq!(model.requests()[1].kind, Kind::Gate);
    child
}

fn waiting_reply() -> Reply {
    Reply::action(Action::WaitAtGate { gate: "in a tool".to_owned() })
}

#[test]
fn a_tool_waits_at_a_gate() {
    let model = model([waiting_reply()]);
    let tool = tool_at_gate(&model);
    assert_eq!(model.requests()[1].outcome, Outcome::Pending);
    model.gate("in a tool").open();
    let output = tool.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("is open"));
    assert_eq!(model.wait_for_outcome(1, soon()), Some(Outcome::Sent));
}

#[test]
fn a_tool_that_is_killed_at_a_gate_is_recorded() {
    let model = model([waiting_reply()]);
    let mut tool = tool_at_gate(&model);
    tool.kill().unwrap();
    tool.wait().unwrap();
    assert_eq!(model.wait_for_outcome(1, soon()), Some(Outcome::AgentLeft));
}

#[test]
fn dropping_the_model_ends_requests_that_wait_at_a_gate() {
    let model = model([Reply::text("a").then_gate("never").then_text("b")]);
    let (path, body) = request(Wire::Chat, &[Entry::User("Hello")]);
    let mut client = Client::new(&model);
    client.send(&path, &body);
    assert!(model.gate("never").wait_until_reached(soon()));
    drop(model);
    assert!(!client.read().complete);
}

#[test]
fn dropping_the_model_closes_idle_connections_and_its_port() {
    let model = model([Reply::text("a")]);
    let address = model.address();
    let mut idle = Client::new(&model);
    drop(model);
    assert_eq!(idle.read().status, 0);
    let address = address.strip_prefix("http://").unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn deltas_are_sent_with_the_delay_of_the_script() {
    for wire in Wire::ALL {
        let model = model([Reply::text("a").then_text("b").then_text("c").delay_ms(20)]);
        let start = Instant::now();
        let response = ask(&model, wire);
        assert!(start.elapsed() >= Duration::from_millis(60), "{wire:?}");
        assert_eq!(parsed_answer(wire, &response).text, "abc");
    }
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let model = model([]);
    assert!(model.wait_for_request(0, Instant::now()).is_none());
    assert!(!model.gate("none").wait_until_reached(Instant::now()));
}

#[test]
fn a_wait_for_the_main_conversation_counts_nothing_else() {
    let model = model([Reply::text("a")]);
    let (path, mut body) = request(Wire::Chat, &[Entry::User("Hello")]);
    body["tools"] = json!([]);
    support::post(&model, &path, &body);
    ask(&model, Wire::Chat);
    assert_eq!(model.wait_for_main_request(0, soon()).unwrap().number, 1);
    assert_eq!(model.wait_for_request(0, soon()).unwrap().number, 0);
}

/// An agent retries as often as it likes, which a list of failures could only guess.
#[test]
fn a_reply_is_repeated_until_a_gate_is_open() {
    let fails = Reply::error(401, "no").until("later");
    let model = model([Reply::text("one"), fails, Reply::text("two")]);
    let statuses = |count| (0..count).map(|_| ask(&model, Wire::Messages).status).collect();
    let before: Vec<u16> = statuses(4);
    model.gate("later").open();
    let response = ask(&model, Wire::Messages);
    assert_eq!(before, [200, 401, 401, 401]);
    assert_eq!(parsed_answer(Wire::Messages, &response).text, "two");
}
