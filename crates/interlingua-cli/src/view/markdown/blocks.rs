//! Cuts Markdown into blocks, line by line, and renders each when it is closed.

use super::super::clean::expand_tabs;
use super::super::style::{Line, Span, Style};
use super::super::wrap::chop;
use super::LONG;
use super::code::Highlighter;
use super::render::{Rendered, render};
use super::start::Start;

/// The columns by which code and lists are indented.
const INDENT: usize = 2;
/// The width of prose. Longer lines are hard to read, however wide the terminal is.
const PROSE: usize = 100;
/// The deepest list that is indented further.
const DEEPEST: usize = 8;

/// The blocks of a text that is being read.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    pub(super) columns: usize,
    /// The lines that are final.
    pub(super) lines: Vec<Line>,
    /// The source of the open block, without the indentation of the list around it.
    open: String,
    /// The beginning of the line that the open block continues.
    lead: Vec<Span>,
    /// The head of the table that the open block continues.
    table_head: Option<String>,
    /// The list items around the open block.
    items: Vec<Item>,
    /// The mark of an item that has no line yet.
    mark: Option<Mark>,
    fence: Option<Fence>,
    /// A part of the current line was taken already.
    mid_line: bool,
    /// An empty line precedes.
    blank: bool,
    /// The next lines belong to the block before, which was cut.
    continues: bool,
    last: Kind,
}

/// A list item.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// The column of the source in which its text begins.
    source: usize,
    /// The column of the terminal in which its text begins.
    margin: usize,
}

/// The mark of an item, and its column.
#[derive(Debug, Clone)]
struct Mark {
    text: String,
    margin: usize,
}

/// A block of fenced code.
#[derive(Debug, Clone)]
struct Fence {
    mark: char,
    length: usize,
    /// The indentation of its lines in the source.
    source: usize,
    highlighter: Highlighter,
}

/// A kind of block, as far as the space around it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Text,
    Item,
    Code,
}

impl Blocks {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns,
            lines: Vec::new(),
            open: String::new(),
            lead: Vec::new(),
            table_head: None,
            items: Vec::new(),
            mark: None,
            fence: None,
            mid_line: false,
            blank: false,
            continues: false,
            last: Kind::Nothing,
        }
    }

    /// Takes a line, or a part of a line that is too long to be kept.
    pub(super) fn line(&mut self, text: &str, ended: bool) {
        let continued = std::mem::replace(&mut self.mid_line, !ended);
        if self.fence.is_some() {
            self.code_line(text, continued || !ended);
        } else if continued {
            self.extend(text, ended);
        } else if text.trim().is_empty() {
            self.close();
            self.blank = true;
        } else {
            self.text_line(text, ended);
        }
        if !ended && self.fence.is_none() {
            self.cut_line();
        }
    }

    /// The width of the text that follows, if it begins a paragraph of its own, or continues one that
    /// was cut.
    pub(super) fn columns_of_text(&self) -> Option<usize> {
        let is_alone = self.open.is_empty() && self.items.is_empty() && self.fence.is_none();
        is_alone.then(|| self.columns.clamp(10, PROSE))
    }

    /// The text has ended.
    pub(super) fn finish(&mut self) {
        self.close();
        self.show_mark();
    }

    fn text_line(&mut self, text: &str, ended: bool) {
        let trimmed = text.trim_start();
        let start = Start::of(trimmed);
        if self.continues_open(trimmed, &start) {
            self.extend(trimmed, ended);
            return;
        }
        self.close();
        let text = expand_tabs(text);
        let indent = text.len() - text.trim_start().len();
        while self.items.last().is_some_and(|item| indent < item.source) {
            // The mark of an item without text does not belong to what follows it.
            self.show_mark();
            self.items.pop();
        }
        let source = self.items.last().map_or(0, |item| item.source);
        match text.get(source..) {
            Some(inner) if indent >= source + 4 && self.items.is_empty() => {
                // Indented code.
                self.extend(inner, ended);
            }
            _ => self.begin(text.trim_start(), indent, ended),
        }
    }

    /// Whether a line belongs to the open block.
    fn continues_open(&self, line: &str, start: &Start<'_>) -> bool {
        if self.open.is_empty() {
            return false;
        }
        let quote = self.open.starts_with('>');
        match start {
            Start::Text => true,
            Start::Quote => quote,
            // A line of dashes makes a heading of the text above it.
            Start::Rule => !quote && line.bytes().all(|byte| byte == b'-'),
            // Only a list that begins with 1 interrupts a paragraph.
            Start::Item { number: Some(number), .. } => self.items.is_empty() && *number != "1",
            _ => false,
        }
    }

    /// Begins a block in the current list item.
    fn begin(&mut self, line: &str, indent: usize, ended: bool) {
        match Start::of(line) {
            Start::Fence { mark, length, info } => {
                let highlighter = Highlighter::of(info);
                self.fence = Some(Fence { mark, length, source: indent, highlighter });
            }
            Start::Heading | Start::Rule => {
                self.blank |= self.items.is_empty();
                self.extend(line, ended);
                if ended {
                    self.close();
                    self.blank = true;
                }
            }
            Start::Item { number, mark_length, text } => {
                self.begin_item(number, indent + mark_length);
                if !text.is_empty() {
                    self.begin(text, indent + mark_length, ended);
                }
            }
            Start::Quote | Start::Text => self.extend(line, ended),
        }
    }

    fn begin_item(&mut self, number: Option<&str>, source: usize) {
        self.show_mark();
        let depth = self.items.len();
        let margin = self.margin() + if depth == 0 { INDENT } else { 0 };
        let text = match number {
            Some(number) => format!("{number}. "),
            None => ["• ", "◦ ", "▪ "].into_iter().cycle().nth(depth % 3).unwrap_or("• ").into(),
        };
        let inner = margin + text.chars().count();
        let fits = depth < DEEPEST && inner + 20 <= self.columns;
        self.items.push(Item { source, margin: if fits { inner } else { self.margin() } });
        self.mark = Some(Mark { text, margin });
    }

    /// The column in which the current item's text begins.
    fn margin(&self) -> usize {
        self.items.last().map_or(0, |item| item.margin)
    }

    /// Appends to the open block.
    fn extend(&mut self, text: &str, ended: bool) {
        if self.open.is_empty() && self.mark.is_some() {
            let (done, rest) = task(text);
            if let (Some(done), Some(mark)) = (done, &mut self.mark) {
                mark.text = if done { "☑ ".to_owned() } else { "☐ ".to_owned() };
            }
            self.open.push_str(rest);
        } else {
            self.open.push_str(text);
        }
        if ended {
            self.open.push('\n');
            if self.open.len() >= LONG {
                self.cut_lines();
            }
        }
    }

    /// Closes the open block, of which more follows on the next line.
    fn cut_lines(&mut self) {
        let mut head = self.open.split_inclusive('\n').take(2);
        let head: String = head.by_ref().collect();
        let is_table = head.lines().nth(1).is_some_and(is_table_rule);
        self.close();
        self.continues = true;
        if is_table {
            self.open.push_str(&head);
            self.table_head = Some(head);
        }
    }

    /// Closes the open block in the middle of a line. What is on its last line is shown with the
    /// rest.
    fn cut_line(&mut self) {
        let space = self.open.ends_with(' ');
        let continued = self.table_head.take().is_some();
        let mut rendered = self.rendered(continued);
        if rendered.ends_in_paragraph
            && let Some(last) = rendered.lines.pop()
        {
            self.lead = last.spans;
            if space {
                self.lead.push(Span::new(" ", Style::PLAIN));
            }
        }
        self.emit(Kind::Text, rendered.lines);
        self.continues = true;
    }

    fn close(&mut self) {
        let head = self.table_head.take();
        let continued = head.is_some();
        if head.is_some_and(|head| self.open == head) {
            // A table was cut behind its last row.
            self.open.clear();
            return;
        }
        if self.open.is_empty() && self.lead.is_empty() {
            return;
        }
        let lines = self.rendered(continued).lines;
        let kind = if self.items.is_empty() { Kind::Text } else { Kind::Item };
        self.emit(kind, lines);
    }

    fn rendered(&mut self, continued: bool) -> Rendered {
        let source = std::mem::take(&mut self.open);
        let lead = std::mem::take(&mut self.lead);
        let columns = self.columns.saturating_sub(self.margin()).max(10);
        let wide = source.starts_with('|') || source.starts_with("    ");
        let columns = if wide { columns } else { columns.min(PROSE) };
        if source.is_empty() {
            let lines = super::super::wrap::wrap(&lead, columns);
            return Rendered { lines, ends_in_paragraph: true };
        }
        render(&source, &lead, columns, continued)
    }

    /// Takes a line of code. Of a long line, it is a part.
    fn code_line(&mut self, text: &str, part: bool) {
        let Some(fence) = &mut self.fence else { return };
        let trimmed = text.trim();
        let closes = trimmed.len() >= fence.length && trimmed.chars().all(|it| it == fence.mark);
        if closes && !part {
            self.fence = None;
            self.blank |= self.items.is_empty();
            return;
        }
        let text = expand_tabs(text);
        let indent = (text.len() - text.trim_start().len()).min(fence.source);
        let line = fence.highlighter.line(text.get(indent..).unwrap_or_default());
        let columns = self.columns.saturating_sub(self.margin() + INDENT).max(10);
        let indent = Line::new(" ".repeat(INDENT), Style::PLAIN);
        let lines = chop(&line, columns).into_iter().map(|line| line.after(&indent)).collect();
        self.emit(Kind::Code, lines);
    }

    /// Shows the mark of an item without text.
    fn show_mark(&mut self) {
        if self.mark.is_some() {
            self.emit(Kind::Item, vec![Line::default()]);
        }
    }

    /// Makes lines final, with an empty line before them where blocks are apart.
    fn emit(&mut self, kind: Kind, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        let close = matches!(
            (self.last, kind),
            (Kind::Nothing, _) | (Kind::Code, Kind::Code) | (Kind::Text | Kind::Item, Kind::Item)
        );
        let same_code = self.last == Kind::Code && kind == Kind::Code && !self.blank;
        let apart = match self.last {
            Kind::Nothing => false,
            _ if std::mem::take(&mut self.continues) => false,
            _ => self.blank || (!close && self.items.is_empty() && !same_code),
        };
        if apart {
            self.lines.push(Line::default());
        }
        self.blank = false;
        self.continues = false;
        self.last = kind;
        let margin = self.margin();
        for line in lines {
            let prefix = match self.mark.take() {
                Some(Mark { text, margin: column }) => {
                    Line::new(" ".repeat(column), Style::PLAIN).with(text, Style::DIM)
                }
                None if margin == 0 => {
                    self.lines.push(line);
                    continue;
                }
                None => Line::new(" ".repeat(margin), Style::PLAIN),
            };
            self.lines.push(line.after(&prefix));
        }
    }
}

/// Whether an item is a task that is done or not, and its text.
fn task(text: &str) -> (Option<bool>, &str) {
    let done = [("[ ] ", false), ("[x] ", true), ("[X] ", true)];
    let found = done.iter().find_map(|(mark, done)| Some((*done, text.strip_prefix(mark)?)));
    found.map_or((None, text), |(done, rest)| (Some(done), rest))
}

/// Whether a line separates the head of a table from its rows.
fn is_table_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('-')
        && line.contains('|')
        && line.chars().all(|letter| matches!(letter, '|' | '-' | ':' | ' '))
}
