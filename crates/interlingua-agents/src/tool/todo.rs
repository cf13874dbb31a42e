//! `TodoWrite`: checks the list of tasks. The loop emits it as a plan.

use serde::Deserialize;

use super::{Failure, Outcome, Output};

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    todos: Vec<Todo>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Todo {
    content: String,
    status: String,
    active_form: String,
}

pub(super) fn run(input: &Input) -> Outcome {
    let empty = |todo: &Todo| todo.content.trim().is_empty() || todo.active_form.trim().is_empty();
    if let Some(at) = input.todos.iter().position(empty) {
        return Err(Failure(format!("item {at} of `todos` has an empty text")));
    }
    let count = |status| input.todos.iter().filter(|todo| todo.status == status).count();
    if count("in_progress") > 1 {
        return Err(Failure("only one task may be in progress at a time".to_owned()));
    }
    Ok(Output::completed(format!(
        "The list of tasks was updated: {} completed, {} in progress, {} pending. Continue with it.",
        count("completed"),
        count("in_progress"),
        count("pending")
    )))
}
