//! The reviewed events of the golden sessions, for one API: what every dialect is written from.

use std::path::Path;

use interlingua_agents::api::ApiKind;
use serde_json::Value;

use super::scenarios::{Scenario, Session};
use super::yume::{fixed, is_as_reviewed};

/// Fields that differ between two runs, machines or versions.
const VOLATILE: [&str; 5] = ["sequence", "received_at", "line", "bytes", "version"];

/// The events, without notices about the machine, and without what only a resumed session reads.
fn output(session: &Session) -> String {
    let is_reviewed = |event: &&Value| event["type"] != "notice" && event["type"] != "host_state";
    let events = session.events.iter().filter(is_reviewed);
    let lines = events.map(|event| {
        let mut event = fixed(session.without_folder(event), session);
        let fields = event.as_object_mut().unwrap();
        VOLATILE.iter().for_each(|field| drop(fields.remove(*field)));
        format!("{event}\n")
    });
    lines.collect()
}

#[tokio::test]
async fn the_events_of_the_golden_sessions_are_as_reviewed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/api/golden/sessions");
    let api = ApiKind::Anthropic;
    for scenario in Scenario::ALL {
        let session = scenario.run(api).await;
        let path = folder.join(format!("{}.{}.events.jsonl", scenario.name, api.dialect_name()));
        is_as_reviewed(&session, &path, &output(&session));
    }
}
