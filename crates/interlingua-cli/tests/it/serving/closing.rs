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
