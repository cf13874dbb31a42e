//! Rules that allow what one request is about, for the rest of a session.
//!
//! Agents have an answer "always" of their own. Some of them store it permanently, and some cover
//! only the first command of a chain, so an agent only ever learns that one request is allowed.

use std::path::PathBuf;

use super::judge::{READERS, WRITERS, join_marked, moves};
use super::paths::Folder;
use super::rules::Rule;
use super::shell::Redirection;
use super::subject::{CommandLine, Subject};
use super::{BadRule, PermissionRequest};

/// The pattern by which a rule names the tool of a request.
pub(super) fn tool_pattern(request: &PermissionRequest) -> String {
    let name = if request.tool.is_empty() { request.kind.as_str() } else { &request.tool };
    globset::escape(name)
}

/// The rules that allow exactly what a request is about: each of its commands, each of its files.
/// What is not known literally gets no rule.
pub(super) fn exact_rules(request: &PermissionRequest) -> Result<Vec<Rule>, BadRule> {
    let tool = tool_pattern(request);
    match Subject::of(request) {
        Subject::Command(line) => command_rules(&tool, &line, request),
        Subject::Files { paths, .. } => {
            let folder = Folder::of(request);
            let forms = paths
                .iter()
                .flatten()
                .flat_map(|path| folder.place(&request.folder, path).real_forms().to_vec());
            forms.map(|form| Rule::allow_exactly(&tool, &form)).collect()
        }
        Subject::Other(input) => Ok(vec![Rule::allow_input(&tool, &input.whole)?]),
    }
}

fn command_rules(
    tool: &str,
    line: &CommandLine,
    request: &PermissionRequest,
) -> Result<Vec<Rule>, BadRule> {
    let folder = Folder::of(request);
    let base = line.folder.path(&request.folder);
    let moves = |base: &PathBuf| line.script.commands.iter().any(|command| moves(command, base));
    if base.as_ref().is_none_or(moves) {
        // A rule for a command is about the folder of the session, and this one runs elsewhere.
        return Ok(Vec::new());
    }
    let mut rules = Vec::new();
    for command in &line.script.commands {
        if let Some(words) = command.literal_words().filter(|words| !words.is_empty()) {
            rules.push(Rule::allow_exactly(tool, &join_marked(&words))?);
        }
        for redirection in &command.redirections {
            let (file_tool, word) = match redirection {
                Redirection::Read(word) => (READERS[0], word),
                Redirection::Write(word) => (WRITERS[0], word),
            };
            let (Some(path), Some(base)) = (word.literal(), &base) else { continue };
            for form in folder.place(base, path).real_forms() {
                rules.push(Rule::allow_exactly(file_tool, &form)?);
            }
        }
    }
    Ok(rules)
}
