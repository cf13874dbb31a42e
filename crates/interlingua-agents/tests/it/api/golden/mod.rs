//! The golden sessions: the same scenarios with every model API.
//!
//! The log of each session keeps the laws, its translation to every dialect keeps the rules of that
//! dialect, and all APIs lead to the same turns. The output for Yume is reviewed, and so are the events of one API;
//! `UPDATE_TRANSCRIPTS=1` writes it again.

mod events;
pub(super) mod laws;
mod scenarios;
mod yume;

use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::APIS;
use scenarios::{Scenario, Session};

#[tokio::test]
async fn every_log_keeps_the_laws_and_every_translation_its_rules() {
    for scenario in Scenario::ALL {
        for api in APIS {
            let session = scenario.run(api).await;
            laws::check(&session);
        }
    }
}

#[tokio::test]
async fn every_api_leads_to_the_same_turns() {
    for scenario in Scenario::ALL {
        let expected = turns(&scenario.run(APIS[0]).await);
        assert!(expected.iter().any(|it| it["type"] == "turn_ended"), "{expected:?}");
        for api in &APIS[1..] {
            let session = scenario.run(*api).await;
            let (mut turns, mut expected) = (turns(&session), expected.clone());
            // A call of Gemini arrives whole, so nothing is known of a response that was cut off in it,
            // while the others have begun to count.
            if scenario.name == "cut-in-arguments" && *api == ApiKind::Gemini {
                let ends = turns.iter_mut().chain(&mut expected);
                ends.filter(|it| it["type"] == "turn_ended")
                    .for_each(|end| drop(end["usage"].take()));
            }
            pretty_assert(&turns, &expected, &session.name);
        }
    }
}

fn pretty_assert(turns: &[Value], expected: &[Value], name: &str) {
    let lines = |turns: &[Value]| turns.iter().map(|it| format!("{it}\n")).collect::<String>();
    assert!(turns == expected, "{name}:\n{}\nexpected:\n{}", lines(turns), lines(expected));
}

/// What a session did, without what only one API knows: ids, the pieces of a text, the words of an
/// error, and counts that were estimated.
fn turns(session: &Session) -> Vec<Value> {
    let mut turns: Vec<Value> = Vec::new();
    for event in &session.events {
        let fields: &[&str] = match event["type"].as_str().unwrap() {
            "block" | "block_delta" => {
                add_text(&mut turns, event);
                continue;
            }
            "turn_ended" => {
                turns.push(turn_ended(event));
                continue;
            }
            "withdrawn" => {
                let texts = event["blocks"].as_array().unwrap().iter();
                let texts: Vec<_> = texts.map(|block| &block["text"]).collect();
                turns.push(json!({"type": "withdrawn", "texts": texts}));
                continue;
            }
            "user_message" => &["text"],
            "tool_input" => &["name", "input", "executor"],
            "tool_ended" => &["name", "status", "output", "exit_code"],
            "files_changed" => &["changes"],
            "retry" => &["class", "attempt", "of"],
            "error" => &["class"],
            "turn_started" | "interrupted" => &[],
            _ => continue,
        };
        let mut kept = json!({"type": event["type"]});
        for field in fields {
            kept[*field] = session.without_folder(&event[*field]);
        }
        if event["type"] == "tool_ended" {
            kept["number"] = number(session, event);
        }
        turns.push(kept);
    }
    in_order_of_calls(&mut turns);
    if turns.iter().any(|it| it["outcome"] == "refused") {
        // The words of a refusal are a text or the cause of the end, depending on the API.
        turns.retain(|it| it["type"] != "text");
    }
    turns
}

/// Puts the results of parallel calls, which end in any order, into the order of their calls.
fn in_order_of_calls(turns: &mut [Value]) {
    let is_result = |it: &Value| it["type"] == "tool_ended";
    for results in turns.chunk_by_mut(|one, two| is_result(one) && is_result(two)) {
        results.sort_by_key(|it| it["number"].as_u64());
    }
}

/// The place of the call of an event among all calls.
fn number(session: &Session, event: &Value) -> Value {
    let mut calls = session.events.iter().filter(|it| it["type"] == "tool_started");
    json!(calls.position(|it| it["call"] == event["call"]))
}

/// Adds a piece of a text to its block.
fn add_text(turns: &mut Vec<Value>, event: &Value) {
    let piece = event["text"].as_str().unwrap();
    let open = turns.last_mut().filter(|it| it["type"] == "text" && it["kind"] == event["kind"]);
    match open {
        Some(open) => open["text"] = format!("{}{piece}", open["text"].as_str().unwrap()).into(),
        None => turns.push(json!({"type": "text", "kind": event["kind"], "text": piece})),
    }
}

fn turn_ended(event: &Value) -> Value {
    let usage = &event["usage"];
    let counts = ["input", "cache_read", "output"].map(|name| usage[name].as_u64().unwrap_or(0));
    let counts = if usage["estimated"] == true { json!("estimated") } else { json!(counts) };
    json!({
        "type": "turn_ended",
        "outcome": event["outcome"],
        "class": event["class"],
        "steps": event["steps"],
        "structured": event["structured"],
        "usage": counts,
    })
}
