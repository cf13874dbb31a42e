//! Renders Markdown that is streamed.
//!
//! The stream is cut into blocks as it arrives: a paragraph, an item of a list, a line of fenced
//! code. A block that is closed is rendered once, and its lines are final. The block that is open
//! can be rendered as a preview. Where a block ends depends on the text alone, so any split of the
//! text into deltas gives the same lines; and a block that grows too long is cut, so the cost of a
//! delta does not depend on the length of the message.
//!
//! Fences, lists and headings are recognised here, line by line. `pulldown-cmark` parses what is in
//! a block: emphasis, links, tables, quotes.

mod blocks;
mod code;
mod plain;
mod render;
mod start;
mod table;

use super::clean::Cleaner;
use super::style::Line;
use blocks::Blocks;
use plain::Plain;

/// The length at which an open block or an open line is cut, in bytes.
const LONG: usize = 2048;

/// A text in Markdown that is being streamed.
#[derive(Debug)]
pub(crate) struct Markdown {
    cleaner: Cleaner,
    /// The beginning of the line that has not ended.
    partial: String,
    blocks: Blocks,
    /// The last preview, if more of the same text only changes its end.
    plain: Option<Plain>,
}

impl Markdown {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            cleaner: Cleaner::default(),
            partial: String::new(),
            blocks: Blocks::new(columns.max(20)),
            plain: None,
        }
    }

    /// The width of what follows.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.blocks.columns = columns.max(20);
        self.plain = None;
    }

    /// Takes the next piece of the text; returns the lines that are final now.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<Line> {
        let mut clean = String::with_capacity(piece.len());
        self.cleaner.push(piece, &mut clean);
        let mut pieces = clean.split('\n');
        if let Some(first) = pieces.next() {
            self.extend_line(first);
        }
        for piece in pieces {
            let line = std::mem::take(&mut self.partial);
            self.take_line(&line, true);
            self.extend_line(piece);
        }
        std::mem::take(&mut self.blocks.lines)
    }

    fn extend_line(&mut self, piece: &str) {
        // A long piece is taken in parts, so that a line is cut at the same places in any split.
        let mut rest = piece;
        while !rest.is_empty() {
            let room = (2 * LONG).saturating_sub(self.partial.len()).max(1);
            let (part, after) = rest.split_at_checked(boundary(rest, room)).unwrap_or((rest, ""));
            self.partial.push_str(part);
            rest = after;
            while let Some(end) = cut(&self.partial) {
                let rest = self.partial.split_off(end);
                let part = std::mem::replace(&mut self.partial, rest);
                self.take_line(&part, false);
            }
        }
    }

    fn take_line(&mut self, line: &str, ended: bool) {
        self.blocks.line(line, ended);
        self.plain = None;
    }

    /// The lines of the block that is still open, as they would be if the text ended here.
    pub(crate) fn preview(&self) -> Vec<Line> {
        let mut blocks = self.blocks.clone();
        if !is_only_marks(&self.partial) {
            blocks.line(&with_closed_marks(&self.partial), true);
        }
        blocks.finish();
        blocks.lines
    }

    /// The preview, as what differs from the one before: the number of lines that are the same, and
    /// those that follow them.
    pub(crate) fn preview_changes(&mut self) -> (usize, Vec<Line>) {
        if let Some(changes) = self.plain.as_mut().and_then(|plain| plain.extend(&self.partial)) {
            return changes;
        }
        let lines = self.preview();
        let columns = self.blocks.columns_of_text();
        self.plain = columns.and_then(|columns| Plain::of(&self.partial, &lines, columns));
        (0, lines)
    }

    /// The text has ended; returns the last lines.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        let line = std::mem::take(&mut self.partial);
        self.blocks.line(&line, true);
        self.blocks.finish();
        self.blocks.lines
    }
}

/// Where a line that is too long is cut: after a space, or anywhere if there is none for long.
fn cut(line: &str) -> Option<usize> {
    let from = boundary(line, LONG);
    let space = line.get(from..)?.find(' ').map(|at| from + at + 1);
    space.or_else(|| (line.len() >= 2 * LONG).then(|| boundary(line, 2 * LONG - 4)))
}

/// The first place at or behind `at`, in bytes, where the text can be cut.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Whether the beginning of a line consists of characters that may be marks of Markdown only. What
/// they mean is seen with the next one.
fn is_only_marks(partial: &str) -> bool {
    let mark = |letter: char| "`~#>*-+|=_. ".contains(letter) || letter.is_ascii_digit();
    partial.len() < 8 && partial.chars().all(mark)
}

/// The line, with the marks closed that are open: `**bold` is bold before its end has arrived.
fn with_closed_marks(partial: &str) -> String {
    let mut line = partial.to_owned();
    if line.matches('`').count() % 2 == 1 && !line.trim_start().starts_with("``") {
        line.push('`');
        return line;
    }
    let marks = line.trim_end_matches('*').len();
    if line.len() - marks < 3 {
        line.truncate(marks);
    }
    if line.matches("**").count() % 2 == 1 {
        line.truncate(line.trim_end().len());
        line.push_str("**");
    }
    line
}

#[cfg(test)]
mod tests;
