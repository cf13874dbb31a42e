//! What an agent wants, as a user sees it: everything that would be allowed, line by line, and the
//! options of a question.
//!
//! The text comes from a model. It is shown with every hidden character escaped, and nothing of it
//! is left out without saying so.

use std::collections::BTreeMap;

use interlingua::event::ToolKind;
use interlingua_agents::permission::{PermissionRequest, visible};
use interlingua_agents::{Question as AgentQuestion, QuestionRequest};
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use crate::view::width;

/// The number of rows that are shown before the user asks for the rest, on a screen that is not
/// smaller.
const SHORT: usize = 20;

/// The rows of a screen that the description of a request cannot have: the one before it, the note
/// about the rest, the question, and the answer.
const OTHER_ROWS: usize = 4;

/// What begins a row that continues a line. No line begins like this.
const CONTINUES: &str = "  ↪ ";

/// The narrowest screen for which lines are broken.
const NARROWEST: usize = 20;

/// The names under which tools have the command that they run.
const COMMANDS: [&str; 2] = ["command", "cmd"];

/// The names under which tools have a text and what replaces it.
const REPLACEMENTS: [(&str, &str); 4] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
];

/// The number of unchanged lines that are shown before and after a change.
const CONTEXT: usize = 3;

/// The lines that describe a request, broken into rows of the screen: a long line must not push what
/// precedes it off the screen.
#[derive(Debug)]
pub(crate) struct Question {
    lines: Lines,
    /// The number of rows that are shown before the user asks for the rest.
    short: usize,
}

/// Lines, and for each of them whether it is far from every change of a diff.
#[derive(Debug, Default)]
struct Lines {
    all: Vec<String>,
    far: Vec<bool>,
}

impl Lines {
    fn push(&mut self, line: String) {
        self.add(line, false);
    }

    fn add(&mut self, line: String, far: bool) {
        self.all.push(line);
        self.far.push(far);
    }

    /// The same lines, none of which is wider than the screen.
    fn broken(self, columns: usize) -> Self {
        let columns = columns.max(NARROWEST);
        let mut rows = Self::default();
        for (line, far) in self.all.iter().zip(self.far) {
            let (first, mut rest) = width::split(line, columns);
            rows.add(first.to_owned(), far);
            while !rest.is_empty() {
                let (mut row, mut after) = width::split(rest, columns - width::of(CONTINUES));
                if row.is_empty() {
                    // A character that is wider than the screen, such as a long sequence of emoji.
                    let first = width::graphemes(rest).next().map_or(rest.len(), |it| it.0.len());
                    (row, after) = rest.split_at_checked(first).unwrap_or((rest, ""));
                }
                rows.add(format!("{CONTINUES}{row}"), far);
                rest = after;
            }
        }
        rows
    }
}

impl Question {
    /// The description of a request for a screen of this width and height.
    pub(crate) fn new(request: &PermissionRequest, (columns, rows): (u16, u16)) -> Self {
        let tool = match &*request.tool {
            "" => "a tool".to_owned(),
            tool => one_line(tool),
        };
        let folder = one_line(&request.folder.to_string_lossy());
        let mut lines = Lines::default();
        lines.push(format!("The agent requests permission to use {tool} in {folder}:"));
        match request.input.as_deref().map(serde_json::from_str) {
            Some(Ok(Value::Object(mut fields))) => {
                // The command first: it is what would run.
                for name in COMMANDS {
                    if let Some(command) = fields.remove(name) {
                        push_command(&command, &mut lines);
                    }
                }
                push_fields(fields, "  ", &mut lines);
                if request.kind != ToolKind::Edit {
                    // What looks like a text and its replacement may mean something else.
                    lines.far.fill(false);
                }
            }
            Some(Ok(value)) => push_text("  ", &text_of(&value), &mut lines),
            Some(Err(_)) => push_text("  ", request.input.as_deref().unwrap_or(""), &mut lines),
            None => lines.push("  The request does not state its input.".to_owned()),
        }
        // Claude repeats a field of the input as the description.
        let is_new = |text: &&str| {
            let repeated = format!("  description: {}", visible(text));
            !text.is_empty() && !lines.all.contains(&repeated)
        };
        if let Some(description) = request.description.as_deref().filter(is_new) {
            lines.push("  The agent's own description:".to_owned());
            push_text("    ", description, &mut lines);
        }
        let short = usize::from(rows).saturating_sub(OTHER_ROWS).clamp(1, SHORT);
        Self { lines: lines.broken(usize::from(columns)), short }
    }

    /// The first lines, and a note about the others.
    pub(crate) fn short(&self) -> Vec<String> {
        let (mut shown, mut unchanged) = (Vec::new(), 0);
        let mut lines = self.lines.all.iter().zip(&self.lines.far).enumerate();
        let rest = lines.find_map(|(at, (line, far))| {
            if *far {
                unchanged += 1;
                return None;
            }
            if unchanged > 0 {
                shown.push(folded(std::mem::take(&mut unchanged)));
            }
            if shown.len() >= self.short {
                return Some(at);
            }
            shown.push(line.clone());
            None
        });
        if unchanged > 0 {
            shown.push(folded(unchanged));
        }
        if let Some(at) = rest {
            let hidden = self.lines.all.len() - at;
            shown.push(format!("  … {hidden} more lines would be allowed too; [e] shows them"));
        }
        shown
    }

    /// The lines from the given one on that fit on a screen of this width and height, with a note
    /// about the others; and the line that the next page starts with.
    pub(crate) fn page(&self, from: usize, (columns, rows): (u16, u16)) -> (Vec<String>, usize) {
        let all = &self.lines.all;
        // The note and the question after it need a row each.
        let mut room = usize::from(rows).saturating_sub(2);
        let rest = all.get(from..).unwrap_or_default();
        let fitting = rest.iter().take_while(|line| {
            let needed = width::of(line).div_ceil(usize::from(columns).max(1)).max(1);
            let fits = room >= needed;
            room = room.saturating_sub(needed);
            fits
        });
        // The screen may have become smaller than it was.
        let count = fitting.count().max(1).min(rest.len());
        let mut page: Vec<String> = rest.iter().take(count).cloned().collect();
        let hidden = rest.len() - count;
        if hidden == 0 {
            return (page, 0);
        }
        page.push(format!("  … {hidden} more lines would be allowed too; [e] shows the next ones"));
        (page, from + count)
    }

    /// All lines.
    #[cfg(test)]
    pub(crate) fn complete(&self) -> &[String] {
        &self.lines.all
    }
}

fn folded(lines: usize) -> String {
    format!("  … {lines} lines that the agent leaves as they are; [e] shows them")
}

/// A command, with a mark before each of its lines.
fn push_command(command: &Value, lines: &mut Lines) {
    match command {
        Value::String(text) => {
            for (number, line) in text.split('\n').enumerate() {
                let mark = if number == 0 { "  $ " } else { "  > " };
                lines.push(format!("{mark}{}", visible(line)));
            }
        }
        // The boundaries of the words are part of the command.
        Value::Array(words) => {
            for (number, word) in words.iter().enumerate() {
                push_text(&format!("  word {}: ", number + 1), &text_of(word), lines);
            }
        }
        other => push_text("  $ ", &other.to_string(), lines),
    }
}

/// The lines that introduce questions of the agent.
pub(crate) fn introduction(request: &QuestionRequest) -> Vec<String> {
    let mut lines = Lines::default();
    lines.push(match &request.server {
        Some(server) => format!("The MCP server {} asks:", one_line(server)),
        None => "The agent asks:".to_owned(),
    });
    if let Some(message) = &request.message {
        push_text("  ", message, &mut lines);
    }
    if let Some(url) = &request.url {
        push_text("  open ", url, &mut lines);
    }
    if let Some(schema) = &request.schema {
        lines.push("  The answer has this form:".to_owned());
        push_text("    ", &text_of(schema), &mut lines);
    }
    lines.all
}

/// The lines of one question: its text, and its numbered options.
pub(crate) fn lines(question: &AgentQuestion) -> Vec<String> {
    let mut lines = Lines::default();
    push_text("  ", &question.text, &mut lines);
    for (number, (label, description)) in question.options.iter().enumerate() {
        let description = description.as_ref().map(|text| format!(" – {}", one_line(text)));
        let label = one_line(label);
        lines.push(format!("    {}. {label}{}", number + 1, description.unwrap_or_default()));
    }
    lines.all
}

/// Text that must not draw lines of its own.
fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// The fields of a tool's input. A text and its replacement are shown as a diff.
fn push_fields(mut fields: Map<String, Value>, before: &str, lines: &mut Lines) {
    let replaced = REPLACEMENTS.iter().find_map(|(old, new)| {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(((old, new), (text(old)?, text(new)?)))
    });
    if let Some(((old, new), _)) = replaced {
        fields.remove(*old);
        fields.remove(*new);
    }
    // The path of a file must not be hidden behind its content.
    let is_long = |(_, value): &(String, Value)| value.is_array() || text_of(value).contains('\n');
    // Whether maps keep the order of their fields depends on how serde_json was built.
    let fields: BTreeMap<_, _> = fields.into_iter().collect();
    let (long, short): (Vec<_>, Vec<_>) = fields.into_iter().partition(is_long);
    for (name, value) in short.into_iter().chain(long) {
        push_field(&name, value, before, lines);
    }
    if let Some((_, (old, new))) = replaced {
        push_diff(&old, &new, before, lines);
    }
}

fn push_field(name: &str, value: Value, before: &str, lines: &mut Lines) {
    let name = one_line(name);
    match value {
        // Edits, or changes of files.
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
            for (number, item) in items.into_iter().enumerate() {
                lines.push(format!("{before}{name} {}:", number + 1));
                if let Value::Object(fields) = item {
                    push_fields(fields, &format!("{before}  "), lines);
                }
            }
        }
        value => {
            let text = text_of(&value);
            if text.contains('\n') {
                lines.push(format!("{before}{name}:"));
                push_text(&format!("{before}  | "), &text, lines);
            } else {
                push_text(&format!("{before}{name}: "), &text, lines);
            }
        }
    }
}

/// The lines of both texts. A line end at the end of a text is an empty line after it, so that a
/// change of it is seen.
fn push_diff(old: &str, new: &str, before: &str, lines: &mut Lines) {
    let (old, new): (Vec<_>, Vec<_>) = (old.split('\n').collect(), new.split('\n').collect());
    let diff = TextDiff::from_slices(&old, &new);
    let changes: Vec<_> = diff.iter_all_changes().collect();
    let changed = |at: usize| changes.get(at).is_some_and(|it| it.tag() != ChangeTag::Equal);
    // The distance to the next change after each line, and, in the loop, to the last one before.
    let mut after = vec![usize::MAX; changes.len()];
    let mut distance = usize::MAX;
    for (at, slot) in after.iter_mut().enumerate().rev() {
        distance = if changed(at) { 0 } else { distance.saturating_add(1) };
        *slot = distance;
    }
    let mut distance = usize::MAX;
    for (at, (change, after)) in changes.iter().zip(after).enumerate() {
        distance = if changed(at) { 0 } else { distance.saturating_add(1) };
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        let line = format!("{before}{sign} {}", visible(change.value()));
        lines.add(line, distance.min(after) > CONTEXT);
    }
}

fn push_text(before: &str, text: &str, lines: &mut Lines) {
    for line in text.split('\n') {
        lines.push(format!("{before}{}", visible(line)));
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) | Value::Array(_) => {
            serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: (u16, u16) = (80, 24);

    fn question(tool: &str, input: &Value) -> Question {
        let request = PermissionRequest {
            id: "1".to_owned(),
            call: Vec::new(),
            tool: tool.to_owned(),
            kind: if tool == "Edit" { ToolKind::Edit } else { ToolKind::default() },
            input: Some(input.to_string()),
            description: None,
            folder: "/w".into(),
            ..PermissionRequest::default()
        };
        Question::new(&request, SCREEN)
    }

    #[test]
    fn every_line_of_a_command_is_shown() {
        let command = "git status --short; \\\nrm b.txt\u{202e}\r";
        let question =
            question("Bash", &serde_json::json!({"command": command, "timeout": 5, "cwd": "/w"}));
        let expected = [
            "The agent requests permission to use Bash in /w:".to_owned(),
            "  $ git status --short; \\".to_owned(),
            "  > rm b.txt\\u{202e}\\r".to_owned(),
            "  cwd: /w".to_owned(),
            "  timeout: 5".to_owned(),
        ];
        assert_eq!(question.complete(), expected);
        assert_eq!(question.short(), expected);
    }

    /// A command line of 4000 characters took 50 rows, and its beginning had left the screen before
    /// the user could answer.
    #[test]
    fn a_long_line_is_shown_in_part_with_its_beginning() {
        let command = format!("rm -rf 漢字; echo {}; rm b.txt", "x".repeat(4000));
        let shown = question("Bash", &serde_json::json!({"command": command}));
        let short = shown.short();
        assert!(short.len() + 3 <= usize::from(SCREEN.1), "{short:?}");
        assert!(short.iter().all(|row| width::of(row) <= usize::from(SCREEN.0)), "{short:?}");
        assert!(short[1].starts_with("  $ rm -rf 漢字; echo xxx"), "{short:?}");
        assert!(short[2].starts_with("  ↪ xxx"), "{short:?}");
        let hidden = shown.complete().len() - SHORT;
        assert!(short.last().unwrap().contains(&format!("{hidden} more lines")), "{short:?}");
        // Nothing is lost.
        let rows = shown.complete()[1..].iter();
        let joined: String = rows.map(|row| row.strip_prefix(CONTINUES).unwrap_or(row)).collect();
        assert_eq!(joined, format!("  $ {command}"));
    }

    #[test]
    fn a_character_that_is_wider_than_the_screen_is_shown() {
        let lines = Lines { all: vec!["👩\u{200d}".repeat(40) + "ab"], far: vec![false] };
        let rows = lines.broken(NARROWEST);
        assert_eq!(rows.all.concat().matches('👩').count(), 40);
        assert!(rows.all.last().unwrap().ends_with("ab"), "{rows:?}");
    }

    #[test]
    fn a_small_screen_has_room_for_the_question() {
        let content = "a\n".repeat(30);
        let input = Some(serde_json::json!({"content": content}).to_string());
        let request = PermissionRequest { input, ..PermissionRequest::default() };
        assert_eq!(Question::new(&request, (80, 10)).short().len(), 6 + 1);
    }

    #[test]
    fn a_long_request_states_how_much_is_not_shown() {
        let content = (0..100).map(|line| format!("line {line}\n")).collect::<String>();
        let question =
            question("Write", &serde_json::json!({"file_path": "a.txt", "content": content}));
        let (short, complete) = (question.short(), question.complete());
        assert_eq!(short.len(), SHORT + 1);
        let hidden = complete.len() - SHORT;
        assert!(short.last().unwrap().contains(&format!("{hidden} more lines")), "{short:?}");
        assert!(complete.iter().any(|line| line == "    | line 99"));
        assert_eq!(short[1], "  file_path: a.txt");
    }

    #[test]
    fn all_pages_together_are_the_whole_request() {
        let content =
            (0..100).map(|line| format!("{line} {}\n", "x".repeat(line))).collect::<String>();
        let question = question("Write", &serde_json::json!({"path": "a", "content": content}));
        let (mut at, mut seen) = (0, Vec::new());
        loop {
            let (mut page, next) = question.page(at, (40, 10));
            let rows = page.iter().map(|line| width::of(line).div_ceil(40).max(1)).sum::<usize>();
            assert!(rows <= 11, "{page:?}");
            if next == 0 {
                seen.extend(page);
                break;
            }
            assert!(page.pop().unwrap().contains("more lines would be allowed too"));
            seen.extend(page);
            at = next;
        }
        assert_eq!(seen, question.complete());
        // The next one begins again.
        assert_eq!(question.page(0, (40, 10)).0[0], question.complete()[0]);
    }

    #[test]
    fn an_edit_is_shown_as_a_diff() {
        let lines = |changed: &str| {
            let line =
                |number: i32| if number == 20 { changed.to_owned() } else { number.to_string() };
            (0..30).map(line).collect::<Vec<_>>().join("\n")
        };
        let (old, new) = (lines("old\u{202e}"), lines("new") + "\n");
        let input = serde_json::json!({"file_path": "a", "old_string": old, "new_string": new});
        let shown = question("Edit", &input);
        assert_eq!(shown.complete().len(), 34, "the title, the path, and all lines of both texts");
        assert_eq!(
            shown.short()[1..],
            [
                "  file_path: a",
                "  … 17 lines that the agent leaves as they are; [e] shows them",
                "    17",
                "    18",
                "    19",
                "  - old\\u{202e}",
                "  + new",
                "    21",
                "    22",
                "    23",
                "  … 3 lines that the agent leaves as they are; [e] shows them",
                "    27",
                "    28",
                "    29",
                "  + ",
            ]
        );
    }

    /// What looks like a text and its replacement are any two arguments of another tool.
    #[test]
    fn nothing_is_folded_of_a_tool_that_is_no_edit() {
        let text = "a\n".repeat(30);
        let input = serde_json::json!({"oldText": text, "newText": text});
        assert!(!question("mcp__x__run", &input).short().concat().contains("leaves as they are"));
        assert!(question("Edit", &input).short().concat().contains("leaves as they are"));
    }

    #[test]
    fn several_edits_are_shown_as_diffs() {
        let edits =
            serde_json::json!([{"old_string": "a", "new_string": "b", "replace_all": true}]);
        let shown = question("MultiEdit", &serde_json::json!({"file_path": "x", "edits": edits}));
        let expected =
            ["  file_path: x", "  edits 1:", "    replace_all: true", "    - a", "    + b"];
        assert_eq!(shown.complete()[1..], expected);
    }

    /// Codex lists the changes of files with their diffs.
    #[test]
    fn a_diff_of_the_agent_is_shown_line_by_line() {
        let change =
            serde_json::json!({"path": "/w/a", "kind": {"type": "update"}, "diff": "-a\n+b"});
        let shown = question("file_change", &serde_json::json!({"changes": [change]}));
        let expected = [
            "  changes 1:",
            "    path: /w/a",
            "    diff:",
            "      | -a",
            "      | +b",
            "    kind:",
            "      | {",
            "      |   \"type\": \"update\"",
            "      | }",
        ];
        assert_eq!(shown.complete()[1..], expected);
    }

    #[test]
    fn the_words_of_a_command_are_shown_apart() {
        let question =
            question("shell", &serde_json::json!({"command": ["sh", "-c", "echo a; rm b"]}));
        assert_eq!(
            question.complete()[1..],
            ["  word 1: sh", "  word 2: -c", "  word 3: echo a; rm b"]
        );
    }

    #[test]
    fn names_cannot_draw_lines_of_their_own() {
        let question =
            question("Read\n  $ ls", &serde_json::json!({"a\nb": "c", "d": {"e": "f\u{1b}[2J"}}));
        let shown = question.complete();
        assert_eq!(shown[0], "The agent requests permission to use Read\\n  $ ls in /w:");
        assert!(shown.contains(&"  a\\nb: c".to_owned()), "{shown:?}");
        assert!(shown.iter().all(|line| !line.contains('\u{1b}')));
    }
}
