//! Sessions with a model API. It has no memory of its own: the logs of the session, and of the one that it
//! continues, are its memory.

use std::time::{Duration, Instant};

use fake_model::{FakeModel, Reply, Script};
use serde_json::json;

use super::desk::Desk;
use crate::log::outcomes;

const KEY: &str = "sk-test-0123456789abcdefghij";

/// A desk whose sessions use a scripted model.
fn desk_of(model: &FakeModel) -> Desk {
    let mut desk = Desk::prepared();
    desk.agent = "anthropic-api".to_owned();
    desk.environment =
        vec![("ANTHROPIC_API_KEY", KEY.to_owned()), ("ANTHROPIC_BASE_URL", model.address())];
    desk.start();
    desk
}

/// A session continues a closed one, and its server is replaced after its first turn, or in it.
#[test]
fn what_a_closed_session_knows_survives_the_server_of_the_one_that_continues_it() {
    for is_killed in [false, true] {
        let second = Reply::text("The second answer.");
        let second = if is_killed { second.then_gate("cut").then_text("Never.") } else { second };
        let replies = [Reply::text("The first answer."), second, Reply::text("The third answer.")];
        let script = replies.into_iter().fold(Script::new().key(KEY), Script::reply);
        let model = FakeModel::start(script.strict().without_side_requests()).unwrap();
        let mut desk = desk_of(&model);
        let earlier = desk.create("The first question.", "k1");
        desk.until(&earlier, |events| outcomes(events) == ["completed"]);
        assert_eq!(desk.command(&earlier, "c", json!({"type": "close"})).status, 202);
        let question = "The second question.";
        let new = json!({"agent": desk.agent, "prompt": question, "continueFrom": earlier});
        let id = desk.create_with("k2", new);
        let before = if is_killed {
            let deadline = Instant::now() + Duration::from_secs(30);
            assert!(model.gate("cut").wait_until_reached(deadline));
            let before = desk.events(&id);
            desk.kill();
            before
        } else {
            let before = desk.until(&id, |events| outcomes(events) == ["completed"]);
            desk.stop();
            before
        };
        let after = desk.restart(&id, &before);
        assert_eq!(outcomes(&after), [if is_killed { "failed" } else { "completed" }]);
        desk.prompt(&id, "The third question.", "k3");
        let end = desk.until(&id, |events| outcomes(events).len() == 2);
        assert_eq!(outcomes(&end)[1], "completed");
        let requests = model.main_requests();
        assert_eq!(requests.len(), 3);
        let last = requests[2].body.to_string();
        let known = ["The first question.", "The first answer.", question, "The third question."];
        let places: Vec<_> = known.iter().map(|part| last.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {last}");
        assert_eq!(model.findings(), []);
    }
}
