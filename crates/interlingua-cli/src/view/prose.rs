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
    preview: Option<Vec<Line>>,
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
        Self { block, parent, markdown, style, limit, shown: 0, hidden: 0, preview: None }
    }

    pub(crate) fn set_columns(&mut self, columns: usize) {
        let indent = if self.parent.is_some() { NESTED } else { 0 };
        self.markdown.set_columns(columns.saturating_sub(indent));
        self.preview = None;
    }

    /// Takes the next piece; returns the lines that are final now.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<Line> {
        self.preview = None;
        let lines = self.markdown.push(piece);
        self.look(lines)
    }

    /// Whether some of its lines are final.
    pub(crate) fn has_lines(&self) -> bool {
        self.shown > 0
    }

    /// The lines that are not final yet.
    pub(crate) fn preview(&mut self) -> &[Line] {
        let full = self.limit.is_some_and(|limit| self.shown >= limit);
        if self.preview.is_none() {
            let mut lines = if full { Vec::new() } else { self.dense(self.markdown.preview()) };
            let room = self.limit.map_or(usize::MAX, |limit| limit - self.shown.min(limit));
            lines.truncate(room);
            self.preview = Some(self.styled(lines));
        }
        self.preview.as_deref().unwrap_or_default()
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
        let indent = if self.parent.is_some() { NESTED } else { 0 };
        let indent = Line::new(" ".repeat(indent), Style::PLAIN);
        lines.into_iter().map(|line| line.styled(self.style).after(&indent)).collect()
    }
}
