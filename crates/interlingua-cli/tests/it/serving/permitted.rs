//! Stored sessions that a server does not permit: their prompts are not sent, also those that waited.

use serde_json::{Value, json};

use super::desk::Desk;
use crate::log::{assert_continues, cause, has, outcomes};
use crate::support::{command, ran};

/// A session whose server was stopped.
struct Stopped {
    id: String,
    /// The request that created it, with the key `k1`.
    request: Value,
    /// Its entries.
    before: Vec<Value>,
}

/// A desk whose server was stopped while the prompt `hello` waited in a session with these facts.
fn stopped_with_a_prompt(facts: Value) -> (Desk, Stopped) {
    let mut desk = Desk::prepared();
    desk.arguments = vec!["--allow-mode".to_owned(), "auto".to_owned()];
    desk.start();
    let mut request = json!({"agent": desk.agent, "prompt": "wait"});
    request.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    let id = desk.create_with("k1", request.clone());
    desk.prompt(&id, "hello", "k2");
    let before = desk.until(&id, has("block_delta"));
    desk.stop();
    desk.arguments.clear();
    (desk, Stopped { id, request, before })
}

/// Starts the next server, which fails the prompt that waited and refuses another one.
fn refuses(mut desk: Desk, stopped: &Stopped, reason: &str, code: &str) {
    let id = &*stopped.id;
    desk.start();
    let events = desk.until(id, |events| outcomes(events).len() == 2);
    assert_continues(&stopped.before, &events);
    assert_eq!(outcomes(&events), ["cancelled", "failed"]);
    let cause = cause(&events);
    assert!(cause.starts_with("the prompt was not sent: ") && cause.contains(reason), "{cause}");
    assert_eq!((desk.times("hello"), desk.times("wait")), (0, 1));
    let another = desk.prompt(id, "another", "k3");
    assert_eq!((another.status, &another.json()["error"]["code"]), (403, &json!(code)));
    // What was sent before is acknowledged as it was, whatever is permitted by now.
    let again = desk.prompt(id, "hello", "k2");
    assert_eq!((again.status, &again.json()["error"]["code"]), (409, &json!("command_refused")));
    assert_eq!(desk.create_with("k1", stopped.request.clone()), id);
    assert_eq!((desk.times("hello"), desk.times("wait")), (0, 1));
    assert_eq!(desk.session(id)["state"], "idle");
}

#[test]
fn a_prompt_that_waited_is_not_sent_in_a_mode_that_is_not_permitted_any_more() {
    let (desk, stopped) = stopped_with_a_prompt(json!({"permissionMode": "auto"}));
    refuses(desk, &stopped, "permission mode is not allowed", "mode_not_allowed");
}

#[test]
fn a_prompt_that_waited_is_not_sent_in_a_folder_that_is_not_permitted_any_more() {
    let (mut desk, stopped) = stopped_with_a_prompt(json!({}));
    std::fs::create_dir(desk.path("other")).unwrap();
    let other = desk.path("other").display().to_string();
    // The time to live is another one, too, and neither is a part of what the sender wrote.
    desk.arguments = ["--allow-folder", &other, "--ttl", "3600"].map(str::to_owned).to_vec();
    refuses(desk, &stopped, "folder does not exist or is not allowed", "folder_not_allowed");
}

#[test]
fn a_prompt_that_waited_is_not_sent_to_an_agent_that_is_not_permitted_any_more() {
    let (mut desk, stopped) = stopped_with_a_prompt(json!({}));
    "codex".clone_into(&mut desk.agent);
    refuses(desk, &stopped, "agent is not allowed", "agent_not_allowed");
}

/// The agent worked in the folder of the server, whichever that was.
#[test]
fn a_session_without_a_folder_takes_no_prompts() {
    let (desk, stopped) = stopped_with_a_prompt(json!({}));
    forget_folder(&desk);
    refuses(desk, &stopped, "the folder of this session is not known", "folder_unknown");
}

/// Without a server, it would be the folder of the command.
#[test]
fn a_session_without_a_folder_takes_no_prompts_of_the_command_either() {
    let (desk, Stopped { id, .. }) = stopped_with_a_prompt(json!({}));
    forget_folder(&desk);
    let store = desk.store.display().to_string();
    let mut send = command(&["sessions", "--store", &store, "send", &id, "here", "--to", "text"]);
    let sent = ran(send.current_dir(desk.path("work")).output().unwrap());
    assert_ne!(sent.code, Some(0), "{}", sent.stdout);
    let shown = sent.stdout + &sent.stderr;
    assert!(shown.contains("the folder of this session is not known"), "{shown}");
    assert_eq!((desk.times("hello"), desk.times("here")), (0, 0));
}

fn forget_folder(desk: &Desk) {
    let connection = rusqlite::Connection::open(&desk.store).unwrap();
    let forget = "UPDATE sessions SET record = json_remove(record, '$.folder')";
    assert_eq!(connection.execute(forget, []).unwrap(), 1);
}
