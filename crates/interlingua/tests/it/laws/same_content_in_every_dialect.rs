//! The text of a turn, its calls, its plan and its counts are the same in every dialect we write.

use serde_json::Value;

use crate::support::summary::{Call, Summary};
use crate::support::{Case, translate, written};

#[test]
fn the_content_is_the_same_in_every_dialect() {
    for case in Case::all() {
        let actual = translate("events", &case.input, &case.exit);
        let from = actual.from().unwrap().name;
        let summary = Summary::of("events", &actual.records());
        for to in written().filter(|to| !["events", "text"].contains(&to.name)) {
            // ACP agents word their records in many ways; only the words of our encoder are known
            // here.
            if from == "acp" && to.name == "acp" {
                continue;
            }
            let written = translate(to.name, &case.input, &case.exit);
            let mut other = Summary::of(to.name, &written.records());
            let is_lost = |name| written.losses().iter().any(|(what, _)| what == name);
            if is_lost("inputs that differ from their permission request") {
                fill_in(&summary, &mut other);
            }
            if is_lost("tool input over the line limit") {
                restore_long_inputs(&summary, &mut other);
            }
            let context = format!("{} -> {}", case.name, to.name);
            compare(&summary, &other, from, to.name, &context);
        }
    }
}

fn compare(summary: &Summary, other: &Summary, from: &str, to: &str, context: &str) {
    // `giselle` cannot express who speaks, and leaves out the text of sub-agents.
    let text = if to == "giselle" { &summary.own_text } else { &summary.text };
    // A target that can retract text, or has not written it yet, contains only the text that
    // remains.
    if other.text != summary.remaining_text() {
        assert_eq!(*text, other.text, "{context}: text");
    }
    // `agent-event` has neither todo tools nor tools that the client runs.
    let hidden = |call: &Call| to == "agent-event" && (call.plans || call.of_client);
    // Claude's own records contain only the announcement of a call that a retry superseded.
    let superseded =
        |call: &Call| from == to && call.output.as_deref() == Some("a retry superseded this call");
    let hidden = |call: &Call| hidden(call) || superseded(call);
    let calls = || summary.calls.iter().filter(|(_, call)| !hidden(call));
    let ids: Vec<_> = calls().map(|(id, _)| id).collect();
    assert_eq!(ids, other.calls.keys().collect::<Vec<_>>(), "{context}: calls");
    for (id, call) in calls() {
        let actual = &other.calls[id];
        // These dialects state the exit code of a failed call that has no output.
        let states_code = matches!(
            to,
            "agent-event" | "ai-sdk" | "ai-sdk-v4" | "ui-message" | "ag-ui" | "giselle"
        );
        let code_only = states_code && call.failed && call.output.as_deref() == Some("");
        // The client has not answered, or not in this stream.
        let unanswered = call.output.is_none() || (call.of_client && call.abandoned);
        // `yume` requires an answer, so it closes a call that waits for the client. `giselle` has
        // requests for two tools of the client, and closes the calls of all others.
        let closed = actual.output.as_deref() == Some("the client has to run this tool");
        let closes = to == "yume" || (to == "giselle" && closed);
        // Clients of these protocols answer their own calls, so these leave the calls open.
        let leaves = matches!(to, "ai-sdk" | "ai-sdk-v4" | "ui-message" | "ag-ui");
        let waits = unanswered && (closes || (leaves && actual.output.is_none()));
        assert!(code_only || waits || same_output(to, call, actual), "{context}: output of {id}");
        assert!(waits || call.failed == actual.failed, "{context}: outcome of {id}");
        let same = call.plans || same_input(&call.input, &actual.input);
        assert!(same || changes_a_file(to, &call.input, &actual.input), "{context}: {id}");
    }
    // Where records are passed through unchanged, the agent's own tools carry the plan.
    if from != to {
        assert_eq!(plan_as(to, summary), plan_as(to, other), "{context}: plan");
    }
    // Claude prints zeros for a turn that it did not count.
    let counted = summary.usage.is_some() || (from != to && to != "agent-event");
    if counted && to != "agent-event" {
        let usage = match to {
            // AG-UI also counts what sub-agents used.
            "ag-ui" => summary.usage_of_models,
            // `yume` has counts for every turn, and marks estimates.
            "yume" => summary.usage_stated,
            _ => summary.usage,
        };
        assert_eq!(usage, other.usage, "{context}: usage");
    }
    let one_end =
        matches!(to, "ai-sdk" | "ai-sdk-v4" | "ui-message") || (to == "giselle" && other.ends == 0);
    assert!(one_end || summary.ends == other.ends || to == "giselle", "{context}: ends");
}

/// The outputs are the same, possibly followed by the error if the dialect states it separately.
/// `claude` and `yume` describe in words why there is no output, and how a failed command ended.
fn same_output(to: &str, call: &Call, actual: &Call) -> bool {
    let (Some(output), Some(text)) = (&call.output, &actual.output) else {
        return call.output == actual.output;
    };
    let went_wrong = text.strip_prefix(&**output).filter(|_| actual.failed);
    if went_wrong.is_some_and(|rest| rest.starts_with('\n')) {
        return true;
    }
    let code = text.strip_prefix("Exit code ").filter(|_| actual.failed);
    let after_code = code.and_then(|rest| rest.split_once('\n')).map(|(_, output)| output);
    let describes = ["claude", "yume"].contains(&to);
    output == text || (describes && (output.is_empty() || after_code == Some(output)))
}

/// `claude` and `yume` write a list of changes as calls of Claude's tool for one file. The first of
/// them has the id of the original call.
fn changes_a_file(to: &str, input: &Value, actual: &Value) -> bool {
    let first = &input["changes"][0];
    let moved = first["kind"].get("move_path").filter(|path| path.is_string());
    let path = moved.unwrap_or(&first["path"]);
    ["claude", "yume"].contains(&to) && path.is_string() && *path == actual["file_path"]
}

/// Adds the part of the inputs that arrived after the permission request, when it could no longer
/// be written.
fn fill_in(summary: &Summary, other: &mut Summary) {
    for (id, call) in &mut other.calls {
        let complete = summary.calls.get(id).and_then(|call| call.input.as_object());
        if let (Some(actual), Some(complete)) = (call.input.as_object_mut(), complete) {
            for (key, value) in complete {
                actual.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
}

/// Restores the inputs that are too long for a line of `yume`, which reports that it cut them.
fn restore_long_inputs(summary: &Summary, other: &mut Summary) {
    for (id, call) in &mut other.calls {
        let complete = summary.calls.get(id).map(|call| &call.input);
        if let Some(complete) = complete.filter(|input| input.to_string().len() > 50_000) {
            call.input = complete.clone();
        }
    }
}

/// The inputs are the same, except for Claude's names of paths, agents, texts of files and flags of
/// questions.
fn same_input(one: &Value, two: &Value) -> bool {
    let (Some(one), Some(two)) = (one.as_object(), two.as_object()) else { return one == two };
    one.iter().all(|(key, value)| {
        if let ("questions", Some(questions), Some(others)) =
            (key.as_str(), value.as_array(), two.get(key).and_then(Value::as_array))
        {
            let mut pairs = questions.iter().zip(others);
            return questions.len() == others.len() && pairs.all(|(one, two)| same_input(one, two));
        }
        let other = match key.as_str() {
            "agent_name" | "agent_type" => "subagent_type",
            "oldString" | "oldText" | "old_str" => "old_string",
            "newString" | "newText" | "new_str" => "new_string",
            "replaceAll" => "replace_all",
            "multiple" => "multiSelect",
            "file_text" => "content",
            key if key.to_ascii_lowercase().contains("path") => "file_path",
            key => key,
        };
        [key, other].iter().any(|key| two.get(*key) == Some(value))
    })
}

/// The plan as far as a dialect can express it.
fn plan_as(to: &str, summary: &Summary) -> Option<Vec<(String, String)>> {
    let plan = summary.plan.clone()?;
    if ["claude", "yume"].contains(&to) {
        let as_claude = |(text, status): (String, String)| match &*status {
            "cancelled" => (text + " (cancelled)", "completed".to_owned()),
            "pending" | "in_progress" | "completed" => (text, status),
            _ => (text, "pending".to_owned()),
        };
        return Some(plan.into_iter().map(as_claude).collect());
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
