//! The bottom of the terminal: rows that are still redrawn, below rows that are not touched again.
//!
//! Everything is written as whole rows. Committed rows scroll away and are never written a second
//! time. Transient rows are on the screen, so their number is limited by its height; each frame
//! rewrites them from the first one that changed. A row that was transient and is committed
//! unchanged is not rewritten at all.

use std::borrow::Borrow;

use super::style::{Line, Palette, Style};

/// What the view has drawn on the terminal.
#[derive(Debug)]
pub(crate) struct Canvas {
    pub(crate) width: usize,
    height: usize,
    palette: Palette,
    live: bool,
    /// The transient rows. If there are any, the cursor is in the last one, else it is at the
    /// beginning of an empty row.
    drawn: Vec<Row>,
}

#[derive(Debug, Clone)]
struct Row {
    line: Line,
    /// The line, as it is written.
    bytes: String,
}

impl Canvas {
    pub(crate) fn new(width: u16, height: u16, palette: Palette, live: bool) -> Self {
        let mut canvas = Self { width: 0, height: 0, palette, live, drawn: Vec::new() };
        canvas.set_size(width, height);
        canvas
    }

    fn set_size(&mut self, width: u16, height: u16) {
        // A terminal of no size is one that does not know its size.
        self.width = if width == 0 { 80 } else { usize::from(width).max(10) };
        self.height = if height == 0 { 24 } else { usize::from(height).max(2) };
    }

    /// Whether there are transient rows.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// The maximum number of transient rows.
    fn room(&self) -> usize {
        self.height - 1
    }

    /// The terminal has another size. Terminals wrap the rows that are too long now, so there are
    /// more of them above the cursor.
    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.set_size(width, height);
        let columns = self.width;
        let rows = self.drawn.iter().map(|row| row.line.width().div_ceil(columns).max(1));
        let rows = rows.sum::<usize>();
        let rows = rows.min(self.room());
        // The rows are rewritten, since no row is like this one.
        let unlike = Row { line: Line::new("\n", Style::PLAIN), bytes: "\n".to_owned() };
        self.drawn = vec![unlike; rows];
    }

    /// Commits lines, and shows transient ones below them.
    pub(crate) fn draw(
        &mut self,
        committed: &[Line],
        transient: &[impl Borrow<Line>],
        out: &mut Vec<u8>,
    ) {
        if !self.live {
            for line in committed {
                out.extend_from_slice(line.to_terminal(self.palette).as_bytes());
                out.push(b'\n');
            }
            return;
        }
        let hidden = transient.len().saturating_sub(self.room());
        let transient = transient.iter().skip(hidden).map(Borrow::borrow);
        let (mut old, mut same) = (std::mem::take(&mut self.drawn).into_iter(), 0);
        let before = old.len();
        let mut rows: Vec<Row> = Vec::with_capacity(committed.len() + before + 1);
        for line in committed.iter().chain(transient) {
            // Most rows are as they were, and need not be put together again.
            rows.push(match old.next() {
                Some(row) if same == rows.len() && row.line == *line => {
                    same += 1;
                    row
                }
                _ => self.row(line),
            });
        }
        rewrite(before, &rows, same, out);
        self.drawn = rows.split_off(committed.len());
        if self.drawn.is_empty() && !committed.is_empty() {
            // The rewritten rows were committed, and the cursor is in the last one.
            out.extend_from_slice(b"\r\n");
        }
    }

    fn row(&self, line: &Line) -> Row {
        Row { line: line.clone(), bytes: line.to_terminal(self.palette) }
    }
}

/// Rewrites the transient rows, of which there were `old`, after the first `same` ones.
fn rewrite(old: usize, rows: &[Row], same: usize, out: &mut Vec<u8>) {
    if same < old {
        let up = old - 1 - same;
        if up > 0 {
            out.extend_from_slice(format!("\u{1b}[{up}A").as_bytes());
        }
        out.extend_from_slice(b"\r\x1b[J");
        if same == rows.len() && same > 0 {
            // The last row is the one above.
            out.extend_from_slice(b"\x1b[A");
        }
    } else if same < rows.len() && old > 0 {
        out.extend_from_slice(b"\r\n");
    }
    for (index, row) in rows.iter().enumerate().skip(same) {
        if index > same {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(row.bytes.as_bytes());
    }
}
