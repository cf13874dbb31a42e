//! A session that goes on although the agent's own files of it are gone: the model gets the history from our
//! log, and the log says so.

use std::path::Path;

use fake_model::{Reply, Script};
use serde_json::Value;

use crate::served::{Agent, Served};

/// Where agents keep their sessions, below their home.
const KEPT_IN: [&str; 6] = [
    "claude/projects",
    "codex/sessions",
    "home/.gemini/tmp",
    "home/.copilot/session-state",
    "data/opencode",
    "home/.qwen/projects",
];

pub(crate) fn check(agent: Agent, programs: &Path) {
    let script = Script::new().reply(Reply::text("It is teal.")).reply(Reply::text("Teal."));
    let mut served = Served::new(agent, programs, script);
    served.start();
    let id = served.create("Choose a colour.", "k1", "auto");
    served.until(&id, |events| turns(events) == 1);
    served.stop();
    let kept: Vec<_> = KEPT_IN.iter().map(|folder| served.home.path().join(folder)).collect();
    let kept: Vec<_> = kept.iter().filter(|folder| folder.exists()).collect();
    assert!(!kept.is_empty(), "{} keeps its sessions somewhere else", agent.name);
    kept.into_iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
    served.start();
    assert_eq!(served.prompt(&id, "Which one was it?", "k2").status, 202);
    let events = served.until(&id, |events| turns(events) == 2);
    let ended: Vec<_> = events.iter().filter(|event| event["type"] == "turn_ended").collect();
    assert_eq!(ended[1]["outcome"], "completed", "{events:#?}");
    let said = events.iter().any(|event| {
        let text = event["text"].as_str().unwrap_or_default();
        event["type"] == "notice" && text.contains("has lost its own record of this session")
    });
    assert!(said, "the log does not say it: {events:#?}");
    let request = served.home.model.main_requests().last().unwrap().body.to_string();
    for part in ["Choose a colour.", "It is teal.", "Which one was it?"] {
        assert_eq!(request.matches(part).count(), 1, "{part}: {request}");
    }
    served.stop();
}

fn turns(events: &[Value]) -> usize {
    let ended = |event: &&Value| event["type"] == "turn_ended" && event["replay"] != true;
    events.iter().filter(ended).count()
}
