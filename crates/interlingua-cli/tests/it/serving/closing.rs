//! Sessions that are closed while something is under way.

use serde_json::json;

use super::desk::Desk;
use crate::log::{assert_continues, has, of_kind, outcomes};

#[test]
fn a_session_that_is_closed_in_a_turn_ends_it() {
    let desk = Desk::new();
    let id = desk.create("wait", "k1");
    let readers = desk.readers(&id);
    let before = desk.until(&id, has("block_delta"));
    desk.prompt(&id, "hello", "k2");
    assert_eq!(desk.command(&id, "c", json!({"type": "close"})).status, 202);
    let log = desk.events(&id);
    assert_continues(&before, &log);
    assert_eq!(outcomes(&log), ["cancelled"]);
    assert_eq!(of_kind(&log, "session_ended").len(), 1);
    assert_eq!(desk.prompt(&id, "hello", "k2").status, 409);
    assert_eq!(desk.times("hello"), 0);
    desk.until_no_process();
    for reader in readers {
        assert_eq!(reader.finish().records, log);
    }
}

#[test]
fn a_closed_session_and_the_one_that_continues_it_name_each_other() {
    let desk = Desk::new();
    let id = desk.create("hello", "k1");
    desk.until(&id, has("turn_ended"));
    let body = json!({"agent": desk.agent, "prompt": "more", "continueFrom": id});
    let open = desk.request("POST", "/v1/sessions", Some("k2"), Some(body.clone()));
    assert_eq!((open.status, &open.json()["error"]["code"]), (409, &json!("session_not_closed")));
    assert_eq!(desk.session(&id)["continuedBy"], json!(null));
    assert_eq!(desk.command(&id, "c", json!({"type": "close"})).status, 202);
    let next = desk.create_with("k3", body.clone());
    desk.until(&next, has("turn_ended"));
    let (before, after) = (desk.session(&id), desk.session(&next));
    assert_eq!((&before["continues"], &before["continuedBy"]), (&json!(null), &json!(next)));
    assert_eq!((&after["continues"], &after["continuedBy"]), (&json!(id), &json!(null)));
    let again = desk.request("POST", "/v1/sessions", Some("k4"), Some(body));
    let error = again.json()["error"].clone();
    assert_eq!((again.status, &error["code"]), (409, &json!("session_continued")));
    assert!(error["message"].as_str().unwrap().contains(&next), "{error}");
}
