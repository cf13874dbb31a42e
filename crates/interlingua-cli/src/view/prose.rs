//! A block of text that the model streams: its answer, or its reasoning.

use interlingua::event::BlockKind;

use super::calls::folded;
use super::markdown::Markdown;
use super::style::{Line, Style};

/// The columns by which what a sub-agent does is indented.
pub(crate) const NESTED: usize = 4;
/// The lines of reasoning that are shown.
const REASONING: usize = 3;
/// The lines of a sub-agent's text, and of an earlier one, that are shown.
const COMPACT: usize = 2;

/// A block that has not ended.
#[derive(Debug)]
pub(crate) struct Prose {
    pub(crate) block: u64,
    /// The call whose sub-agent writes it.
    pub(crate) parent: Option<String>,
    markdown: Markdown,
    style: Style,
    /// The number of lines that are shown, if the rest is hidden.
    limit: Option<usize>,
    shown: usize,
    hidden: usize,
    /// The lines that are not final, as they were shown last.
    preview: Vec<Line>,
    /// Text has arrived since then.
    is_stale: bool,
}

/// How a block is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) columns: usize,
    /// Nothing is hidden.
    pub(crate) everything: bool,
    /// The block belongs to an earlier turn that is replayed.
    pub(crate) replay: bool,
}

impl Prose {
    pub(crate) fn new(block: u64, kind: &BlockKind, parent: Option<String>, look: Look) -> Self {
        let reasoning = *kind == BlockKind::Reasoning;
        let limit = match reasoning {
            _ if look.everything => None,
            _ if parent.is_some() || look.replay => Some(COMPACT),
            true => Some(REASONING),
            false => None,
        };
        let style = match reasoning {
            true => Style { dim: true, italic: true, ..Style::PLAIN },
            false if look.replay || parent.is_some() => Style::DIM,
            false => Style::PLAIN,
        };
        let indent = if parent.is_some() { NESTED } else { 0 };
        let markdown = Markdown::new(look.columns.saturating_sub(indent));
        Self {
            block,
            parent,
            markdown,
            style,
            limit,
            shown: 0,
            hidden: 0,
            preview: Vec::new(),
            is_stale: true,
        }
    }

    pub(crate) fn set_columns(&mut self, columns: usize) {
        let indent = if self.parent.is_some() { NESTED } else { 0 };
        self.markdown.set_columns(columns.saturating_sub(indent));
        self.is_stale = true;
    }

    /// Takes the next piece; returns the lines that are final now.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<Line> {
        self.is_stale = true;
        let lines = self.markdown.push(piece);
        self.look(lines)
    }

    /// Whether some of its lines are final.
    pub(crate) fn has_lines(&self) -> bool {
        self.shown > 0
    }

    /// The lines that are not final yet.
    pub(crate) fn preview(&mut self) -> &[Line] {
        if std::mem::take(&mut self.is_stale) {
            let room = self.limit.map(|limit| limit.saturating_sub(self.shown));
            let (same, lines) = match room {
                Some(0) => (0, Vec::new()),
                // What is folded has fewer lines than its text, and is short.
                Some(_) => (0, self.dense(self.markdown.preview())),
                None => self.markdown.preview_changes(),
            };
            self.preview.truncate(same);
            let lines = self.styled(lines);
            self.preview.extend(lines);
            self.preview.truncate(room.unwrap_or(usize::MAX));
        }
        &self.preview
    }

    /// The block has ended; returns its last lines.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        let markdown = std::mem::replace(&mut self.markdown, Markdown::new(0));
        let lines = markdown.finish();
        let mut lines = self.look(lines);
        if self.hidden > 0 {
            let note = vec![folded(self.hidden)];
            lines.extend(self.styled(note));
        }
        lines
    }

    fn look(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let mut lines = self.dense(lines);
        if let Some(limit) = self.limit {
            let room = limit.saturating_sub(self.shown);
            self.hidden += lines.len().saturating_sub(room);
            lines.truncate(room);
        }
        self.shown += lines.len();
        self.styled(lines)
    }

    /// What is folded has no empty lines.
    fn dense(&self, mut lines: Vec<Line>) -> Vec<Line> {
        if self.limit.is_some() {
            lines.retain(|line| !line.is_empty());
        }
        lines
    }

    fn styled(&self, lines: Vec<Line>) -> Vec<Line> {
        if self.parent.is_none() && self.style == Style::PLAIN {
            return lines;
        }
        let indent = if self.parent.is_some() { NESTED } else { 0 };
        let indent = Line::new(" ".repeat(indent), Style::PLAIN);
        lines.into_iter().map(|line| line.styled(self.style).after(&indent)).collect()
    }
}
