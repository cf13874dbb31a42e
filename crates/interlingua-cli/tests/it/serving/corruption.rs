//! Damage in the file of the store concerns the session that has it, and no other one.

use std::time::Instant;

use rusqlite::{Connection, params};
use serde_json::json;

use super::desk::{Desk, PATIENCE};
use crate::log::{has, outcomes};

/// Damages the session while no server runs, and starts the server again.
fn damage(desk: &mut Desk, id: &str, statement: &str) {
    desk.stop();
    let connection = Connection::open(&desk.store).unwrap();
    assert!(connection.execute(statement, params![id]).unwrap() > 0);
    drop(connection);
    desk.start();
}

fn completed(desk: &Desk, prompt: &str, key: &str) -> String {
    let id = desk.create(prompt, key);
    desk.until(&id, has("turn_ended"));
    id
}

/// Another session is as it was, and goes on; new ones can be created.
fn assert_others_work(desk: &Desk, other: &str) {
    assert_eq!(outcomes(&desk.events(other)), ["completed"]);
    desk.prompt(other, "more", "more");
    desk.until(other, |events| outcomes(events).len() == 2);
    completed(desk, "new", "new");
    assert_eq!(desk.request("GET", "/readyz", None, None).status, 200);
}

#[test]
fn a_session_whose_record_is_damaged_is_absent() {
    for damaged in ["'not a record'", "CAST(x'ff00fe' AS TEXT)", "'{\"id\":\"..\"}'"] {
        let mut desk = Desk::new();
        let (id, other) = (completed(&desk, "hello", "a"), completed(&desk, "hello", "b"));
        let statement = format!("UPDATE sessions SET record = {damaged} WHERE id = ?1");
        damage(&mut desk, &id, &statement);
        for path in ["", "/events"] {
            let path = format!("/v1/sessions/{id}{path}");
            assert_eq!(desk.request("GET", &path, None, None).status, 404, "{damaged}");
        }
        assert_eq!(desk.prompt(&id, "hello", "c").status, 404);
        let list = desk.request("GET", "/v1/sessions", None, None).json();
        let ids: Vec<_> = list["sessions"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, [&json!(other)]);
        assert_others_work(&desk, &other);
    }
}

#[test]
fn a_damaged_command_is_not_executed() {
    for column in ["body", "state", "key"] {
        let mut desk = Desk::new();
        let other = completed(&desk, "hello", "b");
        let id = desk.create("wait", "a");
        desk.prompt(&id, "never", "waits");
        desk.until(&id, has("block_delta"));
        let statement = format!(
            "UPDATE commands SET {column} = ' damaged ' WHERE final = 0 AND session = \
             (SELECT number FROM sessions WHERE id = ?1)"
        );
        damage(&mut desk, &id, &statement);
        assert_others_work(&desk, &other);
        assert_eq!(outcomes(&desk.events(&id)), ["cancelled"], "{column}");
        desk.prompt(&id, "after", "after");
        let events = desk.until(&id, |events| outcomes(events).len() == 2);
        assert_eq!(outcomes(&events), ["cancelled", "completed"], "{column}");
        assert_eq!((desk.times("never"), desk.times("after")), (0, 1), "{column}");
    }
}

/// Sends a prompt, and waits until it was refused; returns why. The log cannot be awaited, and requests are
/// limited, so the store is asked.
fn until_refused(desk: &Desk, id: &str, key: &str) -> String {
    desk.prompt(id, "never", key);
    let connection = Connection::open(&desk.store).unwrap();
    let query = "SELECT final FROM commands WHERE key = ?2 AND session = \
                 (SELECT number FROM sessions WHERE id = ?1)";
    let mut statement = connection.prepare(query).unwrap();
    let begun = Instant::now();
    while !statement.query_row([id, key], |row| row.get::<_, bool>(0)).unwrap() {
        assert!(begun.elapsed() < PATIENCE, "{}", desk.session(id));
        std::thread::yield_now();
    }
    let answer = desk.prompt(id, "never", key);
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert_eq!(answer.json()["error"]["code"], "command_refused");
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

/// The prompts of a session with a damaged log are refused, and it can be closed. It stayed in `starting`
/// and never expired.
fn assert_takes_no_prompts(desk: &Desk, id: &str, damaged: &str) {
    for key in ["c", "d"] {
        let reason = until_refused(desk, id, key);
        assert!(reason.contains("is lost or changed"), "{damaged}: {reason}");
        assert_eq!(desk.session(id)["state"], "idle", "{damaged}");
    }
    let closed = desk.command(id, "close", json!({"type": "close"}));
    assert_eq!(closed.status, 202, "{damaged}: {}", closed.text());
    assert_eq!(desk.session(id)["state"], "ended", "{damaged}");
}

/// Nothing is served in place of entries that are lost, and nothing is appended after them.
#[test]
fn a_damaged_log_is_an_error_of_its_session() {
    let session = "place >> 32 = (SELECT number FROM sessions WHERE id = ?1)";
    let last = format!("place = (SELECT max(place) FROM log WHERE {session})");
    for damaged in [
        format!("UPDATE log SET lines = x'00ff' WHERE {session}"),
        format!("UPDATE log SET lines = x'00ff' WHERE {session} AND {last}"),
        // It is still an entry, but not the one that the agent emitted.
        format!(
            "UPDATE log SET lines = CAST(replace(CAST(lines AS TEXT), 'hello two', 'hello tvo') AS BLOB) \
             WHERE {session} AND instr(lines, CAST('hello two' AS BLOB)) > 0"
        ),
        format!("DELETE FROM log WHERE {session} AND place & 4294967295 = 0"),
        format!("DELETE FROM log WHERE {session} AND {last}"),
        format!("DELETE FROM log WHERE {session}"),
    ] {
        let mut desk = Desk::new();
        let (id, other) = (completed(&desk, "hello", "a"), completed(&desk, "hello", "b"));
        damage(&mut desk, &id, &damaged);
        for dialect in ["events", "ui-message"] {
            // The answer to a reader of server-sent events was an empty 200, so that it connected again for ever.
            for live in ["", "&live=long-poll", "&live=sse"] {
                let path = format!("/v1/sessions/{id}/events?offset=-1&dialect={dialect}{live}");
                let answer = desk.request("GET", &path, None, None);
                assert_eq!(answer.status, 500, "{damaged}{live}: {}", answer.text());
            }
        }
        assert_eq!(desk.session(&id)["state"], "idle");
        assert_takes_no_prompts(&desk, &id, &damaged);
        assert_others_work(&desk, &other);
        assert_eq!(desk.times("never"), 0, "{damaged}");
    }
}

/// The turn of a server that was killed cannot be closed in a damaged log, but its session rests.
#[test]
fn a_damaged_log_with_an_open_turn_is_given_up() {
    let mut desk = Desk::new();
    let id = desk.create("wait", "a");
    desk.until(&id, has("block_delta"));
    assert_eq!(desk.prompt(&id, "never", "waits").status, 202);
    desk.kill();
    desk.until_no_process();
    let connection = Connection::open(&desk.store).unwrap();
    let damaged = "UPDATE log SET lines = x'00ff' WHERE place >> 32 = \
                   (SELECT number FROM sessions WHERE id = ?1)";
    assert!(connection.execute(damaged, params![id]).unwrap() > 0);
    drop(connection);
    desk.start();
    until_refused(&desk, &id, "waits");
    assert_takes_no_prompts(&desk, &id, damaged);
    assert_eq!(desk.times("never"), 0);
}
