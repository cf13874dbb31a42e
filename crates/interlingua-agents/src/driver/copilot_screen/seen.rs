//! Reads Copilot's screen: a pure function of its rows, their shapes and their colours.
//!
//! From top to bottom there are tabs, a greeting, the timeline, and then either a dialog in a box,
//! or the prompt line between two rules with a status line below it. An entry of the timeline has a
//! marker in the second column; what belongs to it is indented below.

use vt100::Color;

use crate::driver::terminal::Row;

/// The contents of the screen.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// The entries after the prompt; empty while the prompt itself is not visible.
    pub(super) timeline: Vec<Entry>,
    /// The prompt is visible, so the timeline begins with the turn.
    pub(super) prompt_visible: bool,
    pub(super) dialog: Option<Dialog>,
    /// The prompt line is visible, and Copilot is not working.
    pub(super) idle: bool,
    pub(super) working: bool,
    /// Copilot asks to confirm the interrupt.
    pub(super) confirms_interrupt: bool,
    /// The message that Copilot shows when the user is not signed in.
    pub(super) sign_in: Option<String>,
}

/// An entry of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// Text of the model.
    Text(String),
    /// A tool call.
    Tool(Tool),
    /// A request that is retried.
    Retry(String),
    /// The turn was stopped.
    Stopped(String),
    /// An error.
    Error(String),
}

/// A tool call, as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    /// `Shell`, or another action: `Create`, `Edit`, `Read`.
    pub(super) title: String,
    /// The complete first line.
    pub(super) head: String,
    /// The command of a shell.
    pub(super) command: String,
    pub(super) output: Vec<String>,
    pub(super) look: Look,
}

/// The visible state of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Waiting, running or finished: a shell looks the same in all three states.
    Open,
    Done,
    Failed,
}

/// A question in a box.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dialog {
    pub(super) title: String,
    /// The contents of the inner box: a command, or a path.
    pub(super) boxed: String,
    pub(super) question: String,
    /// The choices, without their numbers.
    pub(super) choices: Vec<String>,
}

impl Seen {
    pub(super) fn on(rows: &[Row]) -> Self {
        let rows: Vec<_> = rows.iter().map(without_scrollbar).collect();
        let rows = rows.as_slice();
        let mut seen = Self::default();
        let dialog = rows.iter().rposition(|row| row.text.starts_with('╭'));
        let rule = rows.iter().position(|row| is_rule(&row.text));
        let end = match (dialog, rule) {
            (Some(start), _) => {
                seen.dialog = Dialog::in_box(rows.get(start..).unwrap_or_default());
                start
            }
            (None, Some(rule)) => {
                seen.read_status(rows.get(rule..).unwrap_or_default());
                // The row directly above the rule shows the folder.
                rule.saturating_sub(1)
            }
            (None, None) => rows.len(),
        };
        let above = rows.get(..end).unwrap_or_default();
        let sign_in = above.iter().find(|row| row.text.starts_with("Please use /login"));
        seen.sign_in = sign_in.map(|row| row.text.clone());
        seen.read_timeline(above);
        seen
    }

    /// Reads the status line, below the prompt line.
    fn read_status(&mut self, rows: &[Row]) {
        let below = rows.iter().rposition(|row| is_rule(&row.text)).unwrap_or(0);
        let status = rows.get(below + 1..).unwrap_or_default();
        let has = |word: &str| status.iter().any(|row| row.text.contains(word));
        self.working = has("interrupt");
        self.confirms_interrupt = has("again to interrupt");
        self.idle = below > 0 && !self.working && has("/ commands");
    }

    fn read_timeline(&mut self, rows: &[Row]) {
        let starts = |row: &Row| mark(&row.text).is_some();
        let mut groups: Vec<&[Row]> = Vec::new();
        let mut from = rows.iter().position(starts).unwrap_or(rows.len());
        while from < rows.len() {
            let rest = rows.get(from + 1..).unwrap_or_default();
            let length = rest.iter().position(starts).unwrap_or(rest.len()) + 1;
            groups.extend(rows.get(from..from + length));
            from += length;
        }
        let is_prompt = |group: &&[Row]| group.first().and_then(|row| mark(&row.text)) == Some('❯');
        // The first of them is the prompt; later ones are thoughts, whose text is not shown.
        let prompt = groups.iter().position(&is_prompt);
        self.prompt_visible = prompt.is_some();
        let after = groups.get(prompt.map_or(0, |at| at + 1)..).unwrap_or_default();
        let entries = after.iter().filter(|group| !is_prompt(group));
        let first = rows.iter().position(starts).unwrap_or(rows.len());
        let cut = rows.get(..first).and_then(Entry::without_head);
        self.timeline = cut.into_iter().chain(entries.filter_map(|it| Entry::of(it))).collect();
    }
}

impl Entry {
    /// A tool call whose first lines have scrolled off: its output, with its command below.
    fn without_head(rows: &[Row]) -> Option<Self> {
        let is_output = |row: &&Row| row.text.starts_with(" │");
        let output = rows.iter().filter(is_output).map(|row| output_row(&row.text));
        let output: Vec<_> = std::iter::once(CUT.to_owned()).chain(output).collect();
        let below = rows.iter().rev().find(|row| !row.text.is_empty())?;
        let is_cut = output.len() > 1 && below.text.starts_with("   ");
        is_cut.then(|| Self::Tool(Tool::of('$', "Shell", Some(&below.text), output)))
    }

    fn of(rows: &[Row]) -> Option<Self> {
        let (first, rest) = rows.split_first()?;
        let (mark, head) = (mark(&first.text)?, first.text.get(indent(&first.text)..)?.trim_end());
        let is_output = |row: &&Row| row.text.starts_with(" │");
        let output: Vec<_> =
            rest.iter().filter(is_output).map(|row| output_row(&row.text)).collect();
        let below: Vec<_> = rest.iter().filter(|row| !is_output(row)).collect();
        let is_tool = match mark {
            // Text of the model has another colour, or none if colours are off.
            '●' => first.colour == GREEN,
            '✗' => head.starts_with("Shell ") || !output.is_empty(),
            _ => true,
        };
        let text = || {
            let mut lines = vec![head.to_owned()];
            lines.extend(below.iter().map(|row| without_indent(&row.text)));
            unbroken(&lines)
        };
        Some(match mark {
            '!' => return None,
            _ if is_tool => {
                Self::Tool(Tool::of(mark, head, below.first().map(|row| &row.text), output))
            }
            '✗' => Self::Error(text()),
            _ if head.starts_with("MCP Servers") => return None,
            _ if head.ends_with("Retrying...") => Self::Retry(text()),
            _ if head.starts_with("Operation cancelled") => Self::Stopped(text()),
            _ => Self::Text(text()),
        })
    }
}

impl Tool {
    fn of(mark: char, head: &str, below: Option<&String>, output: Vec<String>) -> Self {
        // The duration is shown at the right.
        let head = head.split("   ").next().unwrap_or(head).to_owned();
        let title = head.split(' ').next().unwrap_or_default().to_owned();
        let command = below.map(|line| line.trim().to_owned()).filter(|_| title == "Shell");
        let look = match mark {
            '✗' => Look::Failed,
            '●' | '✓' => Look::Done,
            _ => Look::Open,
        };
        Self { title, head, command: command.unwrap_or_default(), output, look }
    }

    /// Whether this is the same tool call at a later time.
    pub(super) fn is(&self, earlier: &Self) -> bool {
        self.title == earlier.title && self.command == earlier.command
    }
}

impl Dialog {
    fn in_box(rows: &[Row]) -> Option<Self> {
        let inner = rows.iter().filter_map(|row| inside(&row.text));
        let lines: Vec<_> = inner.collect();
        let first = lines.iter().position(|line| choice(line).is_some())?;
        let question = lines.get(..first)?.iter().rev().find(|line| !line.is_empty())?;
        let choices = lines.get(first..)?.iter().map_while(|line| choice(line));
        let boxed: Vec<_> = lines.iter().filter_map(|line| inside(line)).collect();
        Some(Self {
            title: lines.first().map(|line| (*line).to_owned()).unwrap_or_default(),
            boxed: unbroken(&boxed.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()),
            question: (*question).to_owned(),
            choices: choices.map(str::to_owned).collect(),
        })
    }

    /// Whether the dialog asks to trust the working folder.
    pub(super) fn is_trust_question(&self) -> bool {
        self.question.contains("trust the files")
    }

    /// Whether the dialog is about the command of this tool call.
    pub(super) fn asks_for(&self, tool: &Tool) -> bool {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        !tool.command.is_empty() && words(&self.boxed) == words(&tool.command)
    }

    /// Whether it is the same dialog, regardless of the selected choice.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.title, &self.boxed, &self.question) == (&other.title, &other.boxed, &other.question)
    }

    /// The key of the first choice with this prefix.
    pub(super) fn key(&self, word: &str) -> Option<u8> {
        let at = self.choices.iter().position(|choice| choice.starts_with(word))?;
        u8::try_from(at).ok().filter(|at| *at < 9).map(|at| b'1' + at)
    }

    /// Whether a denial can carry a reason.
    pub(super) fn takes_a_reason(&self) -> bool {
        self.choices.iter().any(|choice| choice.starts_with("No, and tell"))
    }
}

/// Placeholder for lines that scrolled off before they were read.
const CUT: &str = "[what came before has left the screen]";

/// The colour of the marker of a finished tool call.
const GREEN: Color = Color::Idx(2);

/// Removes the scroll bar, which appears at the right once something has scrolled off.
fn without_scrollbar(row: &Row) -> Row {
    let bare = row.text.strip_suffix('┃').unwrap_or(&row.text);
    Row { text: bare.trim_end().to_owned(), colour: row.colour }
}

/// The marker of an entry: a single character in the second column.
fn mark(row: &str) -> Option<char> {
    let mut letters = row.chars();
    let (before, mark, after) = (letters.next()?, letters.next()?, letters.next()?);
    let is_mark = "❯●○◉◎✗✓✔$!".contains(mark);
    (before == ' ' && is_mark && after == ' ').then_some(mark)
}

/// The column at which the text of a first row begins.
fn indent(row: &str) -> usize {
    row.char_indices().nth(3).map_or(row.len(), |(at, _)| at)
}

fn without_indent(row: &str) -> String {
    row.strip_prefix("   ").unwrap_or(row).trim_end().to_owned()
}

/// A row of output, without the vertical line at its left.
fn output_row(row: &str) -> String {
    let row = row.strip_prefix(" │").unwrap_or(row);
    row.strip_prefix(' ').unwrap_or(row).to_owned()
}

/// Whether a row is one of the two rules around the prompt line.
fn is_rule(row: &str) -> bool {
    row.chars().count() > 20 && row.chars().all(|letter| letter == '─')
}

/// The text between the sides of a box.
fn inside(row: &str) -> Option<&str> {
    let row = row.trim().strip_prefix('│')?;
    Some(row.strip_suffix('│').unwrap_or(row).trim())
}

/// The choice that a row offers.
fn choice(row: &str) -> Option<&str> {
    let row = row.strip_prefix('❯').unwrap_or(row).trim_start();
    let (number, choice) = row.split_once(". ")?;
    (number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(choice)
}

/// Joins lines that were wrapped: a line continues in the next one if that line's first word had no
/// room at its end.
fn unbroken(lines: &[String]) -> String {
    let room = usize::from(crate::driver::SIZE.columns) - 5;
    let length = |text: &str| text.chars().count();
    let mut text = String::new();
    let mut last: Option<&String> = None;
    for line in lines {
        let word = line.split(' ').next().unwrap_or_default();
        let broken = last.is_some_and(|last| {
            !word.is_empty() && length(last) > room / 2 && length(last) + 1 + length(word) > room
        });
        match last {
            None => {}
            Some(_) if broken => text.push(' '),
            Some(_) => text.push('\n'),
        }
        text.push_str(line);
        last = Some(line);
    }
    text.trim_end().to_owned()
}
