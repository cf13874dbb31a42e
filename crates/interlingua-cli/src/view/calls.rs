//! Shows tool calls: one line each, and what is worth seeing of the output.
//!
//! The words for kinds of tools are the same for every agent. A tool of no known kind has the name
//! that its agent gave it.

use std::time::{Duration, Instant};

use interlingua::dialect::text::{answer_text, key_value};
use interlingua::event::{FileChange, FileChangeKind, ToolEnded, ToolKind, ToolStatus};
use interlingua::json::{Json, Text};

use super::activity::{seconds, spinner};
use super::clean;
use super::diff::Diff;
use super::style::{Line, Style};
use super::width;

/// The lines that are shown of the output of a call that succeeded, and of one that failed.
const OUTPUT: usize = 3;
const FAILURE: usize = 8;
const NESTED_FAILURE: usize = 3;
/// The columns that each part of a line has at least.
const LEAST: usize = 10;
/// The shortest duration that is shown.
const LONG: Duration = Duration::from_secs(1);

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail<'a> {
    pub(crate) columns: usize,
    /// The output is shown completely.
    pub(crate) everything: bool,
    /// No output is shown, except of a call that failed.
    pub(crate) compact: bool,
    /// The working folder. Paths in it are shown relative to it.
    pub(crate) folder: &'a str,
}

/// A call that has not been answered yet.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    /// The call whose sub-agent made it.
    pub(crate) parent: Option<String>,
    kind: ToolKind,
    verb: String,
    value: String,
    /// The input, of a tool that changes files.
    input: Option<Json<'static>>,
    started: Instant,
    changes: Vec<Change>,
    /// Why it was denied.
    denial: Option<String>,
    /// The result of its sub-agent.
    pub(crate) summary: Option<String>,
}

/// The change of a file.
#[derive(Debug)]
struct Change {
    path: String,
    kind: FileChangeKind,
    diff: Option<Diff>,
}

impl Call {
    pub(crate) fn new(id: &Text<'_>, name: &Text<'_>, kind: &ToolKind, now: Instant) -> Self {
        Self {
            id: id.to_string(),
            parent: None,
            kind: kind.clone(),
            verb: verb(&name.to_plain(), kind),
            value: String::new(),
            input: None,
            started: now,
            changes: Vec::new(),
            denial: None,
            summary: None,
        }
    }

    pub(crate) fn set_input(&mut self, input: &Json<'_>, detail: Detail<'_>) {
        self.value = value(input, &self.kind, detail);
        if matches!(self.kind, ToolKind::Edit | ToolKind::Write) {
            self.input = Some(input.clone().into_owned());
        }
    }

    pub(crate) fn add_changes(&mut self, changes: &[FileChange<'_>], detail: Detail<'_>) {
        self.changes.extend(changes.iter().map(|change| Change::new(change, detail)));
    }

    pub(crate) fn deny(&mut self, reason: Option<&Text<'_>>) {
        self.denial =
            Some(reason.map(|it| clean::one_line(&it.to_plain(), 400)).unwrap_or_default());
    }

    /// Whether what it did is shown otherwise: the plan that it wrote, or the answer of the turn.
    pub(crate) fn is_shown_otherwise(&self) -> bool {
        matches!(self.kind, ToolKind::Plan | ToolKind::Answer)
    }

    /// The line while it is running.
    pub(crate) fn running(&self, now: Instant, columns: usize) -> Line {
        let elapsed = now.saturating_duration_since(self.started);
        let mark = Line::new(format!("{} ", spinner(elapsed)), Style::CYAN);
        let facts = if elapsed >= LONG { vec![seconds(elapsed)] } else { Vec::new() };
        self.head(mark, &self.verb, &self.value, None, &facts, columns)
    }

    /// The line before what its sub-agent does.
    pub(crate) fn announced(&self, columns: usize) -> Line {
        let mark = Line::new("▸ ", Style::CYAN);
        self.head(mark, &self.verb, &self.value, None, &[], columns)
    }

    fn head(
        &self,
        mark: Line,
        verb: &str,
        value: &str,
        counts: Option<&Diff>,
        facts: &[String],
        columns: usize,
    ) -> Line {
        let mut end = Line::default();
        if let Some(diff) = counts {
            diff.counts(&mut end);
        }
        // A server and its tool may have long names, of which the others leave what they do not need.
        let least = |text: &str| width::of(text).min(LEAST);
        let others = facts.iter().map(|fact| least(fact) + 3).sum::<usize>() + end.width();
        let used = mark.width() + others + 1 + least(value);
        let verb = width::shortened(verb, columns.saturating_sub(used).max(LEAST));
        let mut line = mark.with(verb, Style::BOLD);
        // The reason of a denial may be long; the value has half of the line at least.
        let value_room = width::of(value).min(columns / 2) + 1;
        for fact in facts {
            let used = line.width() + value_room + end.width();
            let fact = width::shortened(fact, columns.saturating_sub(used + 3).max(LEAST));
            end.push(format!(" · {fact}"), Style::DIM);
        }
        let room = columns.saturating_sub(line.width() + 1 + end.width());
        if !value.is_empty() {
            line.push(" ", Style::PLAIN);
            line.push(width::shortened(value, room.max(LEAST)), Style::PLAIN);
        }
        end.after(&line)
    }

    /// The lines of the answer.
    pub(crate) fn ended(
        mut self,
        ended: &ToolEnded<'_>,
        now: Instant,
        detail: Detail<'_>,
    ) -> Vec<Line> {
        let (text, _) = answer_text(ended);
        let text = text.to_plain();
        let outcome = Outcome::of(ended, self.denial.is_some());
        if outcome == Outcome::Succeeded {
            self.complete_changes(detail);
        } else {
            let paths: Vec<_> = self.changes.drain(..).map(|change| change.path).collect();
            if self.value.is_empty() {
                self.value = paths.join(", ");
            }
        }
        let facts = self.facts(ended, &outcome, &text, now);
        let columns = detail.columns;
        let mut lines = match &*self.changes {
            [change] => {
                let verb = change.verb().unwrap_or(&self.verb);
                let path = &change.path;
                vec![self.head(outcome.mark(), verb, path, change.diff.as_ref(), &facts, columns)]
            }
            [] => vec![self.head(outcome.mark(), &self.verb, &self.value, None, &facts, columns)],
            changes => {
                let files = format!("{} files", changes.len());
                vec![self.head(outcome.mark(), &self.verb, &files, None, &facts, columns)]
            }
        };
        match self.changes.is_empty() {
            false => lines.extend(self.diffs(detail)),
            true => lines.extend(self.output(&outcome, ended, &text, detail)),
        }
        lines
    }

    /// Takes the changes from the input, if the agent did not report them.
    fn complete_changes(&mut self, detail: Detail<'_>) {
        let Some(diff) = self.input.take().as_ref().and_then(Diff::of_input) else { return };
        match &mut *self.changes {
            [] if !self.value.is_empty() => {
                let path = relative(&self.value, detail.folder).to_owned();
                self.changes.push(Change { path, kind: FileChangeKind::Update, diff: Some(diff) });
            }
            [Change { diff: missing @ None, .. }] => *missing = Some(diff),
            _ => {}
        }
    }

    fn facts(
        &self,
        ended: &ToolEnded<'_>,
        outcome: &Outcome,
        text: &str,
        now: Instant,
    ) -> Vec<String> {
        let mut facts = Vec::new();
        if let Outcome::Failed(word) = outcome {
            facts.extend(word.clone());
        }
        facts.extend(ended.exit_code.filter(|it| *it != 0).map(|it| format!("exit code {it}")));
        if *outcome == Outcome::Denied {
            let reason = self.denial.clone().filter(|reason| !reason.is_empty());
            let reason = reason.unwrap_or_else(|| clean::one_line(text, 400));
            facts.push(if reason.is_empty() {
                "denied".into()
            } else {
                format!("denied: {reason}")
            });
        }
        if *outcome == Outcome::Succeeded && self.kind == ToolKind::Read {
            let lines = text.lines().count();
            facts.push(if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") });
        }
        let elapsed = now.saturating_duration_since(self.started);
        if elapsed >= LONG {
            facts.push(seconds(elapsed));
        }
        facts
    }

    fn diffs(&self, detail: Detail<'_>) -> Vec<Line> {
        let mut lines = Vec::new();
        let several = self.changes.len() > 1;
        for change in &self.changes {
            if several {
                let path =
                    width::shortened(&change.path, detail.columns.saturating_sub(20).max(10));
                let mut line = Line::new(format!("  {} {path}", change.mark()), Style::PLAIN);
                if let Some(diff) = &change.diff {
                    diff.counts(&mut line);
                }
                lines.push(line);
            }
            if let Some(diff) = change.diff.as_ref().filter(|_| !detail.compact) {
                let indent = Line::new(if several { "  " } else { "" }, Style::PLAIN);
                let shown = diff.lines(detail.columns, detail.everything).into_iter();
                lines.extend(shown.map(|line| line.after(&indent)));
            }
        }
        lines
    }

    /// What is shown of the output: its beginning, or the end of that of a failed call, where the
    /// error is.
    fn output(
        &self,
        outcome: &Outcome,
        ended: &ToolEnded<'_>,
        text: &str,
        detail: Detail<'_>,
    ) -> Vec<Line> {
        let succeeded = *outcome == Outcome::Succeeded;
        let text = match &self.summary {
            Some(summary) if succeeded && !detail.everything => summary,
            _ => text,
        };
        let text = without_tags(text.trim_end()).trim_start_matches('\n');
        let lines: Vec<&str> =
            text.lines().skip_while(|line| repeats_exit_code(line, ended.exit_code)).collect();
        let silent = matches!(
            self.kind,
            ToolKind::Read | ToolKind::Write | ToolKind::Edit | ToolKind::Plan | ToolKind::Answer
        ) || (self.kind == ToolKind::Task && self.summary.is_none());
        let limit = match outcome {
            _ if lines.is_empty() => 0,
            _ if detail.everything => lines.len(),
            Outcome::Denied => 0,
            Outcome::Failed(_) if detail.compact => NESTED_FAILURE,
            Outcome::Failed(_) => FAILURE,
            Outcome::Succeeded if silent || detail.compact => 0,
            Outcome::Succeeded => OUTPUT,
        };
        if limit == 0 {
            return Vec::new();
        }
        // A single hidden line would take as much room as the note that it is hidden.
        let limit = if lines.len() == limit + 1 { lines.len() } else { limit };
        let hidden = lines.len().saturating_sub(limit);
        let line = |line: &&str| output_line(line, detail);
        let mut shown = Vec::new();
        if hidden > 0 && !succeeded {
            shown.push(folded(hidden));
            let end = lines.iter().skip(hidden).skip_while(|line| line.trim().is_empty());
            shown.extend(end.map(line));
        } else {
            shown.extend(lines.iter().take(limit).map(line));
            shown.extend((hidden > 0).then(|| folded(hidden)));
        }
        shown
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Succeeded,
    Denied,
    /// With a word for how it failed, if it did so in a special way.
    Failed(Option<String>),
}

impl Outcome {
    fn of(ended: &ToolEnded<'_>, denied: bool) -> Self {
        match &ended.status {
            ToolStatus::Denied => Self::Denied,
            ToolStatus::Completed if ended.exit_code.is_none_or(|code| code == 0) => {
                Self::Succeeded
            }
            _ if denied => Self::Denied,
            ToolStatus::Completed => Self::Failed(None),
            ToolStatus::Failed if ended.exit_code.is_some_and(|code| code != 0) => {
                Self::Failed(None)
            }
            ToolStatus::Abandoned => Self::Failed(Some("not answered".to_owned())),
            status => Self::Failed(Some(clean::one_line(&status.as_str().replace('_', " "), 40))),
        }
    }

    fn mark(&self) -> Line {
        match self {
            Self::Succeeded => Line::new("✓ ", Style::GREEN),
            Self::Denied => Line::new("⊘ ", Style::YELLOW),
            Self::Failed(_) => Line::new("✗ ", Style::RED),
        }
    }
}

impl Change {
    fn new(change: &FileChange<'_>, detail: Detail<'_>) -> Self {
        let path = |path: &Text<'_>| {
            let path = clean::command(&path.to_plain(), 1_000);
            relative(&path, detail.folder).to_owned()
        };
        let old = change.old_path.as_ref().map(|old| format!("{} → ", path(old)));
        Self {
            path: old.unwrap_or_default() + &path(&change.path),
            kind: change.kind.clone(),
            diff: Diff::of_change(change),
        }
    }

    fn verb(&self) -> Option<&'static str> {
        match self.kind {
            FileChangeKind::Add => Some("Create"),
            FileChangeKind::Delete => Some("Delete"),
            FileChangeKind::Move => Some("Move"),
            _ => None,
        }
    }

    fn mark(&self) -> char {
        match self.kind {
            FileChangeKind::Add => '+',
            FileChangeKind::Delete => '-',
            FileChangeKind::Move => '→',
            _ => '~',
        }
    }
}

/// The lines of changes that belong to no call that is running.
pub(crate) fn changes(changes: &[FileChange<'_>], now: Instant, detail: Detail<'_>) -> Vec<Line> {
    let name = Text::plain("Edit");
    let mut call = Call::new(&name, &name, &ToolKind::Edit, now);
    call.add_changes(changes, detail);
    call.ended(&ToolEnded::default(), now, detail)
}

/// The note that lines are hidden.
pub(crate) fn folded(hidden: usize) -> Line {
    let lines = if hidden == 1 { "line" } else { "lines" };
    Line::new(format!("  … +{hidden} {lines}"), Style::DIM)
}

fn output_line(line: &str, detail: Detail<'_>) -> Line {
    // A line of any length costs no more than what is shown of it.
    let limit = if detail.everything { line.len() } else { detail.columns };
    let start: String = line.chars().take(limit.saturating_mul(4)).collect();
    let text = clean::text(&start);
    let room = if detail.everything { usize::MAX } else { detail.columns.saturating_sub(2) };
    Line::new(format!("  {}", width::shortened(&clean::expand_tabs(&text), room)), Style::DIM)
}

/// The message of an error that Claude marks for the model.
fn without_tags(text: &str) -> &str {
    let inner = text.trim_start().strip_prefix("<tool_use_error>");
    inner.and_then(|inner| inner.strip_suffix("</tool_use_error>")).unwrap_or(text)
}

/// Whether a line only states the exit code, which is shown anyway.
fn repeats_exit_code(line: &str, code: Option<i64>) -> bool {
    let number = line.trim().strip_prefix("Exit code").map(|it| it.trim_start_matches([':', ' ']));
    let repeats = number.is_some_and(|it| code.is_some_and(|code| it == code.to_string()));
    repeats || line.trim().is_empty()
}

/// The word for a kind of tool, or the tool's own name.
pub(crate) fn verb(name: &str, kind: &ToolKind) -> String {
    let word = match kind {
        ToolKind::Read => "Read",
        ToolKind::Write => "Write",
        ToolKind::Edit => "Edit",
        ToolKind::Execute => "Run",
        ToolKind::Search => "Search",
        ToolKind::Glob => "Find",
        ToolKind::List => "List",
        ToolKind::Fetch => "Fetch",
        ToolKind::WebSearch => "Search the web",
        ToolKind::Plan => "Plan",
        ToolKind::Task => "Agent",
        ToolKind::Answer => "Answer",
        _ => {
            let name = name.strip_prefix("mcp__").unwrap_or(name).replace("__", " ");
            return width::shortened(&clean::one_line(&name, 40), 40);
        }
    };
    word.to_owned()
}

fn value(input: &Json<'_>, kind: &ToolKind, detail: Detail<'_>) -> String {
    let Some(key) = key_value(input) else { return String::new() };
    let text = key.text.to_plain();
    match kind {
        // The files of an edit have lines of their own.
        ToolKind::Edit | ToolKind::Plan | ToolKind::Answer | ToolKind::Task
            if key.field.is_empty() =>
        {
            String::new()
        }
        ToolKind::Execute => clean::command(without_shell(&text), detail.columns),
        _ => relative(&clean::command(&text, detail.columns), detail.folder).to_owned(),
    }
}

/// The command that a shell was started for, if the shell's arguments are nothing but this command
/// in single quotes, as Codex writes it.
fn without_shell(command: &str) -> &str {
    let shells =
        ["/bin/bash -lc ", "/usr/bin/bash -lc ", "bash -lc ", "/bin/zsh -lc ", "/bin/sh -c "];
    let Some(rest) = shells.iter().find_map(|shell| command.strip_prefix(shell)) else {
        return command;
    };
    let quoted = rest.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match quoted {
        Some(inner) if !inner.contains('\'') => inner,
        None if rest
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte)) =>
        {
            rest
        }
        _ => command,
    }
}

/// A path, relative to the working folder if it is in it.
fn relative<'p>(path: &'p str, folder: &str) -> &'p str {
    let inside = path.strip_prefix(folder).filter(|_| !folder.is_empty());
    let inside = inside.and_then(|rest| rest.strip_prefix('/')).filter(|rest| !rest.is_empty());
    inside.unwrap_or(path)
}

#[cfg(test)]
mod tests;
