//! The text of a turn, its calls, its plan and its counts are the same in everything we write.

use serde_json::Value;

use crate::support::story::{Call, Story};
use crate::support::{Case, translate, written};

#[test]
fn the_story_is_the_same_in_every_dialect_that_can_tell_it() {
    for case in Case::all() {
        let told = translate("events", &case.input, &case.exit);
        let from = told.from().unwrap().name;
        let story = Story::of("events", &told.records());
        for to in written().filter(|to| !["events", "text"].contains(&to.name)) {
            // What agents say in ACP has many forms: those of our writer alone are known here.
            if from == "acp" && to.name == "acp" {
                continue;
            }
            let written = translate(to.name, &case.input, &case.exit);
            let mut other = Story::of(to.name, &written.records());
            let mut losses = written.losses().iter();
            if losses.any(|(what, _)| what == "inputs that differ from their permission request") {
                fill_in(&story, &mut other);
            }
            let context = format!("{} -> {}", case.name, to.name);
            compare(&story, &other, from, to.name, &context);
        }
    }
}

fn compare(story: &Story, other: &Story, from: &str, to: &str, context: &str) {
    // `giselle` has no words for who speaks, and leaves out what sub-agents say.
    let text = if to == "giselle" { &story.own_text } else { &story.text };
    // A target that can take text back, or has not written it yet, shows only what stands.
    if other.text != story.standing_text() {
        assert_eq!(*text, other.text, "{context}: text");
    }
    // `agent-event` shows no todo tool, and no call that the client must answer.
    let hidden = |call: &Call| to == "agent-event" && (call.plans || call.output.is_none());
    // Claude's own records have only the announcement of a call that a retry superseded.
    let superseded =
        |call: &Call| from == to && call.output.as_deref() == Some("a retry superseded this call");
    let hidden = |call: &Call| hidden(call) || superseded(call);
    let calls = || story.calls.iter().filter(|(_, call)| !hidden(call));
    let ids: Vec<_> = calls().map(|(id, _)| id).collect();
    assert_eq!(ids, other.calls.keys().collect::<Vec<_>>(), "{context}: calls");
    for (id, call) in calls() {
        let told = &other.calls[id];
        // These tell the exit code where a failed call gave back nothing.
        let tells_code = matches!(
            to,
            "agent-event" | "ai-sdk" | "ai-sdk-v4" | "ui-message" | "ag-ui" | "giselle"
        );
        let code_only = tells_code && call.failed && call.output.as_deref() == Some("");
        // `yume` closes a call that waits for the client, since it must.
        let waits = to == "yume" && call.output.is_none();
        assert!(code_only || waits || same_output(to, call, told), "{context}: output of {id}");
        assert!(waits || call.failed == told.failed, "{context}: outcome of {id}");
        let same = call.plans || same_input(&call.input, &told.input);
        assert!(same || changes_a_file(to, &call.input, &told.input), "{context}: {id}");
    }
    // Where records are passed on as they are, the agent's own tools tell the plan.
    if from != to {
        assert_eq!(plan_as(to, story), plan_as(to, other), "{context}: plan");
    }
    // Claude prints zeros for a turn that it did not count.
    let counted = story.usage.is_some() || (from != to && to != "agent-event");
    if counted && to != "agent-event" {
        let usage = match to {
            // AG-UI counts what sub-agents used, too.
            "ag-ui" => story.usage_of_models,
            // `yume` has counts for every turn, and marks those that are an estimate.
            "yume" => story.usage_stated,
            _ => story.usage,
        };
        assert_eq!(usage, other.usage, "{context}: usage");
    }
    let one_end =
        matches!(to, "ai-sdk" | "ai-sdk-v4" | "ui-message") || (to == "giselle" && other.ends == 0);
    assert!(one_end || story.ends == other.ends || to == "giselle", "{context}: ends");
}

/// The same output, and behind it what went wrong where that is said apart; but `claude`
/// and `yume` say in words why there is none, and how a failed command ended.
fn same_output(to: &str, call: &Call, told: &Call) -> bool {
    let (Some(output), Some(said)) = (&call.output, &told.output) else {
        return call.output == told.output;
    };
    let went_wrong = said.strip_prefix(&**output).filter(|_| told.failed);
    if went_wrong.is_some_and(|rest| rest.starts_with('\n')) {
        return true;
    }
    let code = said.strip_prefix("Exit code ").filter(|_| told.failed);
    let after_code = code.and_then(|rest| rest.split_once('\n')).map(|(_, output)| output);
    let in_words = ["claude", "yume"].contains(&to);
    output == said || (in_words && (output.is_empty() || after_code == Some(output)))
}

/// `claude` and `yume` tell a list of changes as calls of Claude's tool for one file. The first has the id
/// of the whole.
fn changes_a_file(to: &str, input: &Value, told: &Value) -> bool {
    let first = &input["changes"][0];
    let moved = first["kind"].get("move_path").filter(|path| path.is_string());
    let path = moved.unwrap_or(&first["path"]);
    ["claude", "yume"].contains(&to) && path.is_string() && *path == told["file_path"]
}

/// Gives calls the part of their input that came after a question about them, and could not be told.
fn fill_in(story: &Story, other: &mut Story) {
    for (id, call) in &mut other.calls {
        let whole = story.calls.get(id).and_then(|call| call.input.as_object());
        if let (Some(told), Some(whole)) = (call.input.as_object_mut(), whole) {
            for (key, value) in whole {
                told.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
}

/// The same input, but for the names that Claude gives to a path, an agent, and texts of files.
fn same_input(one: &Value, two: &Value) -> bool {
    let (Some(one), Some(two)) = (one.as_object(), two.as_object()) else { return one == two };
    one.iter().all(|(key, value)| {
        let other = match key.as_str() {
            "agent_name" | "agent_type" => "subagent_type",
            "oldString" | "oldText" | "old_str" => "old_string",
            "newString" | "newText" | "new_str" => "new_string",
            "replaceAll" => "replace_all",
            "file_text" => "content",
            key if key.to_ascii_lowercase().contains("path") => "file_path",
            key => key,
        };
        [key, other].iter().any(|key| two.get(*key) == Some(value))
    })
}

/// The plan as far as a dialect has words for it.
fn plan_as(to: &str, story: &Story) -> Option<Vec<(String, String)>> {
    let plan = story.plan.clone()?;
    if ["claude", "yume"].contains(&to) {
        let claudes = |(text, status): (String, String)| match &*status {
            "cancelled" => (text + " (cancelled)", "completed".to_owned()),
            "pending" | "in_progress" | "completed" => (text, status),
            _ => (text, "pending".to_owned()),
        };
        return Some(plan.into_iter().map(claudes).collect());
    }
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
