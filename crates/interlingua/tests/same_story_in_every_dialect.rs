//! The text of a turn, its calls, its plan and its counts are the same in everything we write.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::Value;
use support::story::{Call, Story};
use support::{Case, translate, written};

#[test]
fn the_story_is_the_same_in_every_dialect_that_can_tell_it() {
    for case in Case::all() {
        let told = translate("events", &case.input, &case.exit);
        let from = told.translator.from().unwrap().name;
        let story = Story::of("events", &told.records());
        for to in written().filter(|to| !["events", "text"].contains(&to.name)) {
            let records = translate(to.name, &case.input, &case.exit).records();
            let other = Story::of(to.name, &records);
            let context = format!("{} -> {}", case.name, to.name);
            compare(&story, &other, from, to.name, &context);
        }
    }
}

fn compare(story: &Story, other: &Story, from: &str, to: &str, context: &str) {
    assert_eq!(story.text, other.text, "{context}: text");
    // `agent-event` shows no todo tool, and no call that the client must answer.
    let hidden =
        |call: &Call| to == "agent-event" && (is_plan_tool(&call.name) || call.output.is_none());
    let calls = || story.calls.iter().filter(|(_, call)| !hidden(call));
    let ids: Vec<_> = calls().map(|(id, _)| id).collect();
    assert_eq!(ids, other.calls.keys().collect::<Vec<_>>(), "{context}: calls");
    for (id, call) in calls() {
        let told = &other.calls[id];
        // `agent-event` tells the exit code where a failed call gave back nothing.
        let code_only = to == "agent-event" && call.failed && call.output.as_deref() == Some("");
        // `yume` closes a call that waits for the client, since it must.
        let waits = to == "yume" && call.output.is_none();
        assert!(code_only || waits || call.output == told.output, "{context}: output of {id}");
        assert!(waits || call.failed == told.failed, "{context}: outcome of {id}");
        assert!(
            is_plan_tool(&call.name) || same_input(&call.input, &told.input),
            "{context}: {id}"
        );
    }
    // Where records are passed on as they are, the agent's own tools tell the plan.
    if from != to {
        assert_eq!(plan_as(to, story), plan_as(to, other), "{context}: plan");
    }
    // Claude prints zeros for a turn that it did not count.
    let counted = story.usage.is_some() || (from != to && to != "agent-event");
    if counted && to != "agent-event" {
        assert_eq!(story.usage, other.usage, "{context}: usage");
    }
    let one_end = matches!(to, "ai-sdk") || (to == "giselle" && other.ends == 0);
    assert!(one_end || story.ends == other.ends || to == "giselle", "{context}: ends");
}

fn is_plan_tool(name: &str) -> bool {
    ["TodoWrite", "write_todos", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"].contains(&name)
}

/// The same input, but for the name of a path.
fn same_input(one: &Value, two: &Value) -> bool {
    let (Some(one), Some(two)) = (one.as_object(), two.as_object()) else { return one == two };
    one.iter().all(|(key, value)| {
        two.get(key) == Some(value) || (key.contains("path") && two.get("file_path") == Some(value))
    })
}

/// The plan as far as a dialect has words for it.
fn plan_as(to: &str, story: &Story) -> Option<Vec<(String, String)>> {
    let plan = story.plan.clone()?;
    if to != "agent-event" {
        return Some(plan);
    }
    let words = ["pending", "in_progress", "completed", "cancelled"];
    let steps = plan.into_iter().map(|(text, status)| {
        (text, if status == "blocked" { "pending".to_owned() } else { status })
    });
    let known = |step: &(String, String)| !step.0.is_empty() && words.contains(&&*step.1);
    Some(steps.filter(known).collect())
}
