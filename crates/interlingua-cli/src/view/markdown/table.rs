//! Lays out a table: columns as wide as their content, narrower if the table would not fit.

use super::super::style::{Line, Span, Style};
use super::super::width;
use super::super::wrap::wrap;
use pulldown_cmark::Alignment;

/// The minimum width of a column that has to become narrower.
const NARROWEST: usize = 6;
/// The columns between two cells: a space, a line, a space.
const BETWEEN: usize = 3;

/// A cell: its text, not wrapped yet.
pub(super) type Cell = Vec<Span>;

/// A table. The first row is its head.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The head was shown before.
    pub(super) continued: bool,
}

impl Table {
    pub(super) fn lines(&self, columns: usize) -> Vec<Line> {
        let widths = self.widths(columns);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            if index == 0 && self.continued {
                continue;
            }
            lines.extend(self.row(row, &widths, index == 0));
            if index == 0 {
                let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::new(rule.join("─┼─"), Style::DIM));
            }
        }
        lines
    }

    fn widths(&self, columns: usize) -> Vec<usize> {
        let count = self.alignments.len();
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.iter().map(|it| width::of(&it.text)).sum());
            }
        }
        let room = columns.saturating_sub(BETWEEN * count.saturating_sub(1));
        // The widest column becomes narrower until the table fits.
        let narrowest = NARROWEST.min(room / count.max(1)).max(1);
        while widths.iter().sum::<usize>() > room {
            let excess = widths.iter().sum::<usize>() - room;
            let mut sorted = widths.clone();
            sorted.sort_unstable_by(|one, two| two.cmp(one));
            let widest = sorted.first().copied().unwrap_or_default();
            let next = sorted.iter().copied().find(|it| *it < widest).unwrap_or(narrowest);
            let many = sorted.iter().filter(|it| **it == widest).count();
            let step = excess.div_ceil(many).min(widest.saturating_sub(next.max(narrowest)));
            if step == 0 {
                break;
            }
            widths.iter_mut().filter(|it| **it == widest).for_each(|it| *it -= step);
        }
        widths
    }

    fn row(&self, row: &[Cell], widths: &[usize], head: bool) -> Vec<Line> {
        let empty = Vec::new();
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(index, width)| wrap(row.get(index).unwrap_or(&empty), *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let mut lines = vec![Line::default(); height];
        for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let alignment = self.alignments.get(index).copied().unwrap_or(Alignment::None);
            for (at, line) in lines.iter_mut().enumerate() {
                if index > 0 {
                    line.push(" │ ", Style::DIM);
                }
                let text = cell.get(at).cloned().unwrap_or_default();
                let space = width.saturating_sub(text.width());
                let before = match alignment {
                    Alignment::Right => space,
                    Alignment::Center => space / 2,
                    Alignment::Left | Alignment::None => 0,
                };
                line.push(" ".repeat(before), Style::PLAIN);
                let text = if head { text.styled(Style::BOLD) } else { text };
                text.spans.into_iter().for_each(|span| line.push(span.text, span.style));
                line.push(" ".repeat(space - before), Style::PLAIN);
            }
        }
        lines
    }
}
