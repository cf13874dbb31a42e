//! Calls that Claude Code has deferred, because the server was stopped while they waited: what the model gets
//! when the client has answered, or does not want them any more.

use std::path::Path;
use std::time::Instant;

use fake_model::{Reply, Script};
use serde_json::{Value, json};

use crate::client_tools::{ANSWER, name, of, outcomes, until_waiting};
use crate::served::{Agent, PATIENCE, Served};

/// The beginning of the prompt that gives results to an agent which cannot take them in their places.
const PROMPT: &str = "Your last turn was cut off";

/// What happens to a call that waits, after the server was stopped and started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is answered.
    Answered,
    /// It is answered, the server is stopped again before, and so once more.
    AnsweredAfterAnotherStop,
    /// The turn is interrupted, and a prompt follows.
    Interrupted,
    /// A prompt supersedes it.
    Superseded,
}

pub(crate) const FATES: [(&str, Fate); 4] = [
    ("a_deferred_call_that_is_answered", Fate::Answered),
    ("a_deferred_call_that_is_answered_after_another_stop", Fate::AnsweredAfterAnotherStop),
    ("a_deferred_call_of_an_interrupted_turn", Fate::Interrupted),
    ("a_deferred_call_that_is_superseded", Fate::Superseded),
];

/// A session whose model calls a tool some times in its first message, in a server that was stopped meanwhile
/// and started again. The calls that wait are given in the order in which the model made them.
fn stopped(
    agent: Agent,
    programs: &Path,
    tool: &str,
    calls: &[&str],
) -> (Served, String, Vec<String>) {
    let name = name(agent.name, tool);
    let input = |word: &str| match tool {
        "getFormSnapshot" => json!({"instruction": word}),
        _ => json!({"actions": [], "fields": [word]}),
    };
    let first = Reply::call(&name, input(calls[0]));
    let message = calls[1..].iter().fold(first, |reply, word| reply.then_call(&name, input(word)));
    let script = Script::new().reply(message).reply(Reply::text("Done.")).any_stream();
    let mut served = Served::new(agent, programs, script);
    served.start();
    let body =
        json!({"prompt": "Fill in the form.", "tools": ["getFormSnapshot", "executeFormActions"]});
    let id = served.create_with("k1", body);
    served.until(&id, |events| of(events, "suspended").next().is_some());
    // One that is killed within milliseconds of its first call has no session.
    until_stored(&served, calls.len());
    served.stop();
    served.start();
    let events = served.until(&id, |events| !outcomes(events).is_empty());
    assert_eq!(outcomes(&events), ["waiting_for_client"], "{events:#?}");
    assert_eq!(of(&events, "tool_ended").count(), 0, "{events:#?}");
    let started: Vec<_> = of(&events, "tool_started").map(|it| it["call"].clone()).collect();
    let waiting: Vec<_> = started
        .iter()
        .map(|call| json!({"for": "clientTool", "request": call, "tool": tool}))
        .collect();
    until_waiting(&served, &id, &json!(waiting));
    (served, id, started.iter().map(|call| call.as_str().unwrap().to_owned()).collect())
}

/// Waits until the agent has stored the calls in the file of its session.
fn until_stored(served: &Served, calls: usize) {
    let begun = Instant::now();
    let projects = served.home.path().join("claude/projects");
    let files = || {
        let folders = std::fs::read_dir(&projects).into_iter().flatten().flatten();
        folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten())
    };
    let stored = || {
        let texts = files().map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
        texts.map(|text| text.matches(r#""type":"tool_use""#).count()).sum::<usize>()
    };
    while stored() < calls {
        assert!(begun.elapsed() < PATIENCE, "the calls are not in {}", projects.display());
        std::thread::yield_now();
    }
}

/// The blocks of the messages in the last request, by their kind and their text.
fn last_request(served: &Served) -> Vec<(String, String)> {
    let requests = served.home.model.main_requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let blocks = messages.iter().flat_map(|message| match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        text => vec![json!({"type": "text", "text": text})],
    });
    let blocks = blocks.map(|block| {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        (kind, block.to_string())
    });
    blocks.collect()
}

/// The only call of a message is deferred, so that its result gets into its place.
pub(crate) fn check(agent: Agent, programs: &Path, fate: Fate) {
    let (mut served, id, calls) = stopped(agent, programs, "getFormSnapshot", &["all"]);
    let call = calls[0].clone();
    let answer = json!({"type": "answer", "request": call, "answer": {"fields": [ANSWER]}});
    if fate == Fate::AnsweredAfterAnotherStop {
        served.stop();
        served.start();
    }
    let expected = match fate {
        Fate::Answered | Fate::AnsweredAfterAnotherStop => {
            assert_eq!(served.command_of(&id, "k2", answer).status, 202);
            vec!["waiting_for_client", "completed"]
        }
        Fate::Interrupted => {
            assert_eq!(served.command_of(&id, "k2", json!({"type": "interrupt"})).status, 202);
            assert_eq!(served.prompt(&id, "Something else.", "k3").status, 202);
            vec!["waiting_for_client", "cancelled", "completed"]
        }
        Fate::Superseded => {
            let prompt =
                json!({"type": "prompt", "text": "Something else.", "whilePending": "supersede"});
            assert_eq!(served.command_of(&id, "k2", prompt).status, 202);
            vec!["waiting_for_client", "completed"]
        }
    };
    let events = served.until(&id, |events| outcomes(events).len() >= expected.len());
    assert_eq!(outcomes(&events), expected, "{events:#?}");
    let ended: Vec<_> = of(&events, "tool_ended").map(|it| it["call"].clone()).collect();
    assert_eq!(ended, [json!(call)], "{events:#?}");
    assert_eq!(served.home.model.main_requests().len(), 2, "the model was asked in between");
    let blocks = last_request(&served);
    let results: Vec<_> = blocks.iter().filter(|(kind, _)| kind == "tool_result").collect();
    assert_eq!(results.len(), 1, "{blocks:#?}");
    let has = |word: &str| blocks.iter().filter(|(_, text)| text.contains(word)).count();
    if matches!(fate, Fate::Answered | Fate::AnsweredAfterAnotherStop) {
        assert!(results[0].1.contains(ANSWER) && !results[0].1.contains("is_error\":true"));
        let counts = [has(ANSWER), has(PROMPT), has("interrupted")];
        assert_eq!(counts, [1, 0, 0], "{blocks:#?}");
    } else {
        assert!(results[0].1.contains("is_error\":true"), "{blocks:#?}");
        assert_eq!([has(ANSWER), has("Something else.")], [0, 1], "{blocks:#?}");
        assert!(blocks.last().unwrap().1.contains("Something else."), "{blocks:#?}");
    }
    served.stop();
}

/// Of two deferred calls in one message, the agent would lose one: their results are a prompt.
pub(crate) fn check_two(agent: Agent, programs: &Path) {
    for tool in ["getFormSnapshot", "executeFormActions"] {
        let (mut served, id, calls) = stopped(agent, programs, tool, &["one", "two"]);
        assert_eq!(calls.len(), 2);
        for (call, result) in calls.iter().zip(["first-4711", "second-4712"]) {
            let answer = json!({"type": "answer", "request": call, "answer": result});
            assert_eq!(served.command_of(&id, call, answer).status, 202);
        }
        let events = served.until(&id, |events| outcomes(events).len() == 2);
        assert_eq!(outcomes(&events), ["waiting_for_client", "completed"], "{events:#?}");
        assert_eq!(of(&events, "tool_ended").count(), 2, "{events:#?}");
        let requests = served.home.model.main_requests();
        for result in ["first-4711", "second-4712"] {
            let times = |it: &fake_model::Request| it.body.to_string().matches(result).count();
            let counts: Vec<_> = requests.iter().map(times).collect();
            assert_eq!(counts, [0, 1], "{tool}: the model got {result} so often in each request");
        }
        let blocks = last_request(&served);
        assert!(blocks.iter().any(|(_, text)| text.contains(PROMPT)), "{tool}: {blocks:#?}");
        served.stop();
    }
}
