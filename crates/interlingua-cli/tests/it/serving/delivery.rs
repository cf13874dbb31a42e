//! A server that is killed after it has announced a prompt, and before it was sent to the agent.

use std::io::Write;

use serde_json::{Value, json};

use super::desk::Desk;
use super::script::{LATER, LISTENER};
use crate::log::{cause, intents, outcomes, turns};

/// A desk with a session whose second prompt was announced, and whose server was then killed.
fn killed_between_intent_and_receipt(mut desk: Desk) -> (Desk, String, Vec<Value>) {
    desk.start();
    let id = desk.create("hello", "k1");
    desk.until(&id, |events| outcomes(events) == ["completed"]);
    // The next agent does not answer.
    desk.stop();
    std::fs::write(desk.path("work/mute"), "").unwrap();
    desk.start();
    desk.prompt(&id, "again", "k2");
    let before = desk.until(&id, |events| intents(events) == ["k1", "k2"]);
    assert_eq!(desk.times("again"), 0);
    desk.kill();
    desk.until_no_process();
    std::fs::remove_file(desk.path("work/mute")).unwrap();
    (desk, id, before)
}

/// No file shows whether the agent has received the prompt: only a new command is sent.
#[test]
fn a_prompt_of_which_nothing_is_known_is_not_sent_again() {
    let desk = Desk::with_agent(LISTENER, "acp");
    let (mut desk, id, before) = killed_between_intent_and_receipt(desk);
    let after = desk.restart(&id, &before);
    assert_eq!(outcomes(&after), ["completed", "failed"]);
    assert!(cause(&after).starts_with("delivery unknown"), "{}", cause(&after));
    let same = desk.prompt(&id, "again", "k2");
    assert_eq!((same.status, &same.json()["status"]), (202, &json!("unknown")));
    desk.prompt(&id, "new", "k3");
    let end = desk.until(&id, |events| outcomes(events).len() == 3);
    assert_eq!(outcomes(&end), ["completed", "failed", "completed"]);
    assert_eq!((desk.times("again"), desk.times("new")), (0, 1));
}

/// The agent's own file has the prompt: its turn was cut off.
#[test]
fn a_prompt_in_the_file_of_the_agent_is_not_sent_again() {
    let (mut desk, id, before) = killed_between_intent_and_receipt(Desk::of_qwen(LISTENER));
    let file = desk.path(".qwen/projects/p/s1.jsonl");
    let mut file = std::fs::File::options().append(true).open(file).unwrap();
    writeln!(file, "{}", json!({"content": "again", "timestamp": LATER})).unwrap();
    let after = desk.restart(&id, &before);
    assert_eq!(outcomes(&after), ["completed", "failed"]);
    assert!(cause(&after).contains("the process that ran the agent ended"), "{}", cause(&after));
    let same = desk.prompt(&id, "again", "k2");
    assert_eq!((same.status, &same.json()["status"]), (202, &json!("delivered")));
    assert_eq!(desk.times("again"), 0);
}

/// The agent's own file does not have the prompt: the next server sends it.
#[test]
fn a_prompt_that_the_agent_never_read_is_sent_by_the_next_server() {
    let (mut desk, id, before) = killed_between_intent_and_receipt(Desk::of_qwen(LISTENER));
    desk.restart(&id, &before);
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&end), ["completed", "completed"]);
    let keys: Vec<_> = turns(&end).iter().map(|turn| turn.key).collect();
    assert_eq!(keys, [Some("k1"), Some("k2")]);
    assert_eq!(desk.times("again"), 1);
}

/// The agent has begun to be started for the prompt, so its turn ends with the server.
#[test]
fn a_prompt_that_was_announced_ends_with_a_server_that_is_stopped() {
    let (mut desk, id) = announced();
    let before = desk.events(&id);
    desk.stop();
    std::fs::remove_file(desk.path("work/mute")).unwrap();
    let after = desk.restart(&id, &before);
    assert_eq!(outcomes(&after).len(), 1);
    assert!(cause(&after).contains("the server was shut down"), "{}", cause(&after));
    let same = desk.prompt(&id, "hello", "k1");
    assert_eq!((same.status, &same.json()["status"]), (202, &json!("delivered")));
    assert_eq!(desk.times("hello"), 0);
}

#[test]
fn a_prompt_that_was_announced_ends_with_a_session_that_is_closed() {
    let (desk, id) = announced();
    assert_eq!(desk.command(&id, "c", json!({"type": "close"})).status, 202);
    assert_eq!(outcomes(&desk.events(&id)), ["cancelled"]);
    std::fs::remove_file(desk.path("work/mute")).unwrap();
    let same = desk.prompt(&id, "hello", "k1");
    assert_eq!((same.status, &same.json()["status"]), (202, &json!("delivered")));
    assert_eq!(desk.times("hello"), 0);
    desk.until_no_process();
}

/// A desk with a session whose first prompt was announced. The agent looks for the file `mute` only once it
/// has read something, so the file stays until the agent has ended.
fn announced() -> (Desk, String) {
    let mut desk = Desk::with_agent(LISTENER, "acp");
    std::fs::write(desk.path("work/mute"), "").unwrap();
    desk.start();
    let id = desk.create("hello", "k1");
    desk.until(&id, |events| intents(events) == ["k1"]);
    (desk, id)
}
