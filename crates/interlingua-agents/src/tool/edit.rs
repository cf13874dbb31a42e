//! `Edit` and `MultiEdit`: exact replacements in a file that the model has read.

use serde::Deserialize;

use super::replace::{Replacement, replace};
use super::write::{MAX_SIZE, Target};
use super::{Failure, Outcome, Output, Scope, change};

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    file_path: String,
    #[serde(flatten)]
    edit: Replacement,
}

#[derive(Debug, Deserialize)]
pub(super) struct SeveralInput {
    file_path: String,
    edits: Vec<Replacement>,
}

pub(super) fn run(scope: &Scope<'_>, input: Input) -> Outcome {
    let (target, old) = existing(scope, &input.file_path)?;
    let shown = &target.shown;
    let replaced = replace(&old, &input.edit, MAX_SIZE as usize);
    let replaced = replaced.map_err(|problem| Failure(format!("{shown}: {problem}")))?;
    let lines = change::numbered_lines(&replaced.content, replaced.at, replaced.length);
    let count = match replaced.count {
        1 => String::new(),
        count => format!(" {count} occurrences were replaced; the first one:"),
    };
    let note = target.replace(scope, &replaced.content)?;
    let mut output =
        Output::completed(format!("{shown} was edited.{note}{count}\n{}", lines.trim_end()));
    output.changes.push(change::change(target.path(), shown, Some(&old), &replaced.content));
    Ok(output)
}

pub(super) fn run_several(scope: &Scope<'_>, input: SeveralInput) -> Outcome {
    if input.edits.is_empty() {
        return Err(Failure("`edits` is empty: name at least one replacement".to_owned()));
    }
    let (target, old) = existing(scope, &input.file_path)?;
    let shown = &target.shown;
    let (mut content, mut snippets) = (old.clone(), Vec::new());
    for (number, edit) in (1..).zip(&input.edits) {
        let replaced = replace(&content, edit, MAX_SIZE as usize).map_err(|problem| {
            let all = input.edits.len();
            Failure(format!("{shown}: edit {number} of {all}: {problem}. Nothing was changed."))
        })?;
        // Later edits move lines, but consumers look for the lines of each edit in its order.
        snippets.push(change::numbered_lines(&replaced.content, replaced.at, replaced.length));
        content = replaced.content;
    }
    let note = target.replace(scope, &content)?;
    let edits = if input.edits.len() == 1 { "edit" } else { "edits" };
    let text = format!(
        "Applied {} {edits} to {shown}{note}\n{}",
        input.edits.len(),
        snippets.join("...\n").trim_end()
    );
    let mut output = Output::completed(text);
    output.changes.push(change::change(target.path(), shown, Some(&old), &content));
    Ok(output)
}

/// A file that exists, and its content.
fn existing(scope: &Scope<'_>, written: &str) -> Result<(Target, Vec<u8>), Failure> {
    let target = Target::find(scope, written)?;
    match target.old.as_ref().map(|(content, _)| content.clone()) {
        Some(content) => Ok((target, content)),
        None => Err(Failure(format!("{} does not exist; use Write to create it", target.shown))),
    }
}
