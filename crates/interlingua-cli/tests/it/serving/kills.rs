//! A server that is killed or stopped in the middle of a turn.

use serde_json::{Value, json};

use super::desk::Desk;
use crate::log::{assert_continues, cause, has, of_kind, outcomes, turns};

#[test]
fn a_killed_server_closes_the_turn_and_goes_on() {
    // In a text, in a call, and while a permission and an answer are awaited.
    let phases: [(&str, &str); 4] = [
        ("wait", "block_delta"),
        ("run it", "tool_started"),
        ("touch it", "permission_requested"),
        ("ask me", "question_asked"),
    ];
    for (prompt, kind) in phases {
        let mut desk = Desk::new();
        let id = desk.create(prompt, "k1");
        let readers = desk.readers(&id);
        let before = desk.until(&id, has(kind));
        desk.kill();
        let after = desk.restart(&id, &before);
        assert_eq!(outcomes(&after), ["failed"], "{prompt}");
        assert!(
            cause(&after).contains("the process that ran the agent ended"),
            "{}",
            cause(&after)
        );
        let calls = (of_kind(&after, "tool_started").len(), of_kind(&after, "tool_ended").len());
        assert_eq!(calls.0, calls.1, "{prompt}: every call is answered");
        assert_eq!(desk.session(&id)["state"], "idle");
        // The same command again is the same one, and runs nothing.
        assert_eq!(desk.create(prompt, "k1"), id);
        desk.prompt(&id, "and now", "k2");
        let end = desk.until(&id, |events| outcomes(events).len() == 2);
        assert_continues(&after, &end);
        assert_eq!(outcomes(&end), ["failed", "completed"], "{prompt}");
        assert_eq!((desk.times(prompt), desk.times("and now")), (1, 1));
        desk.command(&id, "c", json!({"type": "close"}));
        let log = desk.events(&id);
        assert_continues(&end, &log);
        for reader in readers {
            let read = reader.finish();
            assert_eq!(read.records, log, "{prompt}");
            assert!(read.connections > 1, "{prompt}: the server had to be found again");
        }
    }
}

/// The question is gone with its agent: it takes no answer, and the agent can ask again.
#[test]
fn a_question_ends_with_a_server_that_is_killed() {
    let mut desk = Desk::new();
    let id = desk.create("ask me", "k1");
    let asked = |count: usize| {
        move |events: &[Value]| {
            let asked = of_kind(events, "question_asked");
            asked.get(count - 1).map(|event| event["request"].as_str().unwrap().to_owned())
        }
    };
    let before = desk.until(&id, |events| asked(1)(events).is_some());
    let first = asked(1)(&before).unwrap();
    desk.kill();
    let after = desk.restart(&id, &before);
    assert_eq!(outcomes(&after), ["failed"]);
    let session = desk.session(&id);
    assert_eq!((&session["state"], session.get("waiting")), (&json!("idle"), None));
    let answer = |request: &str| json!({"type": "answer", "request": request, "answer": "Blue"});
    let late = desk.command(&id, "late", answer(&first));
    assert_eq!((late.status, &late.json()["error"]["code"]), (409, &json!("command_refused")));
    desk.prompt(&id, "ask again", "k2");
    let again = desk.until(&id, |events| asked(2)(events).is_some());
    assert_continues(&after, &again);
    let second = asked(2)(&again).unwrap();
    assert_eq!(desk.command(&id, "answer", answer(&second)).status, 202);
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&end), ["failed", "completed"]);
    assert_eq!(turns(&end)[1].text, "answered");
    assert_eq!((desk.times("ask me"), desk.times("ask again")), (1, 1));
}

#[test]
fn a_server_that_is_stopped_ends_its_agents() {
    let mut desk = Desk::new();
    let id = desk.create("wait", "k1");
    let before = desk.until(&id, has("block_delta"));
    desk.stop();
    let events = desk.restart(&id, &before);
    assert_eq!(outcomes(&events), ["cancelled"]);
    assert_eq!(desk.session(&id)["state"], "idle");
}

/// A prompt that joined the running turn belongs to it, however the server ends: it is not sent again.
#[test]
fn a_prompt_that_joined_a_turn_is_not_sent_again() {
    for is_killed in [true, false] {
        let mut desk = Desk::new();
        let id = desk.create("wait", "k1");
        desk.until(&id, has("block_delta"));
        let joins = json!({"type": "prompt", "text": "wait more", "joins": true});
        let joined = desk.command(&id, "k2", joins.clone());
        assert_eq!((joined.status, &joined.json()["status"]), (202, &json!("delivered")));
        let before = desk.until(&id, |events| of_kind(events, "block_delta").len() == 2);
        if is_killed {
            desk.kill();
        } else {
            desk.stop();
        }
        let after = desk.restart(&id, &before);
        assert_eq!(outcomes(&after), [if is_killed { "failed" } else { "cancelled" }]);
        let same = desk.command(&id, "k2", joins);
        assert_eq!(same.json(), joined.json());
        desk.prompt(&id, "hello", "k3");
        let end = desk.until(&id, |events| outcomes(events).len() == 2);
        assert_eq!(outcomes(&end)[1], "completed");
        assert_eq!((desk.times("wait more"), desk.times("hello")), (1, 1));
    }
}

/// A prompt that waits while the server is stopped is sent by the next one.
#[test]
fn a_prompt_that_waits_survives_a_stop() {
    let mut desk = Desk::new();
    let id = desk.create("wait", "k1");
    desk.prompt(&id, "hello", "k2");
    let before = desk.until(&id, has("block_delta"));
    desk.stop();
    // A session that rests could expire together with its prompt.
    let connection = rusqlite::Connection::open(&desk.store).unwrap();
    let query = "SELECT record ->> '$.state.state', expires_at FROM sessions WHERE id = ?1";
    let stored: (String, Option<i64>) =
        connection.query_row(query, [&id], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(stored, ("starting".to_owned(), None));
    drop(connection);
    desk.restart(&id, &before);
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&end), ["cancelled", "completed"]);
    assert_eq!((desk.times("wait"), desk.times("hello")), (1, 1));
}

#[test]
fn an_agent_that_is_killed_is_started_again() {
    let desk = Desk::new();
    let id = desk.create("wait", "k1");
    let before = desk.until(&id, has("block_delta"));
    assert!(desk.kill_agent());
    let after = desk.until(&id, has("turn_ended"));
    assert_continues(&before, &after);
    assert_eq!(outcomes(&after), ["failed"]);
    desk.prompt(&id, "hello", "k2");
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&end), ["failed", "completed"]);
    assert_eq!((desk.times("wait"), desk.times("hello")), (1, 1));
}
