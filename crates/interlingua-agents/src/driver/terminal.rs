//! An off-screen terminal emulator: it keeps what a program has drawn, and answers terminal
//! queries.

use std::num::NonZeroU16;
use std::time::Duration;

use interlingua::dialect::{Decoder, Dialect, EventSink};
use interlingua::event::{Notice, SessionStarted, Severity, TurnStarted, UserMessage};
use interlingua::framing::FrameText;
use interlingua::json::Text;
use vt100::capture::{BasicFormattedCaptureState, RowContents};
use vt100::{Callbacks, Color, Parser, Screen};

use super::Step;
use crate::process::Size;

/// The size of the terminal. A high screen scrolls less and a wide screen wraps less, so less is
/// lost.
pub(crate) const SIZE: Size = Size { rows: 300, columns: 200 };

/// The period without drawing after which the screen is read, because it is drawn in pieces.
pub(super) const SETTLED: Duration = Duration::from_millis(40);

/// The dialect of an agent that has only a screen. It has no records; its driver emits all events.
pub(crate) static SCREEN: Dialect = Dialect {
    name: "screen",
    about: "what is read from the screen of a program",
    decoder: Some(|| Box::new(NoRecords)),
    ..Dialect::BLANK
};

struct NoRecords;

impl Decoder for NoRecords {
    fn decode(&mut self, _frame: &FrameText<'_>, _sink: &mut dyn EventSink) {}
}

/// The events that begin a turn read from a screen, including the notice that it is a guess.
pub(super) fn begin(agent: &str, prompt: &str, guess: &'static str) -> [Step; 4] {
    let (agent, text) = (Some(Text::from(agent.to_owned())), Text::from(prompt.to_owned()));
    [
        Step::emit(SessionStarted { agent, ..SessionStarted::default() }),
        Step::emit(TurnStarted::default()),
        Step::emit(UserMessage { text, ..UserMessage::default() }),
        Step::emit(Notice { severity: Severity::Warning, text: Text::plain(guess) }),
    ]
}

/// A row of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) text: String,
    /// The colour of its second column, in which programs place markers.
    pub(super) colour: Color,
}

/// The screen that a program draws on.
pub(super) struct Terminal {
    parser: Parser<Replies>,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Terminal").finish_non_exhaustive()
    }
}

impl Default for Terminal {
    fn default() -> Self {
        let size = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
        let (rows, columns) = (size(SIZE.rows), size(SIZE.columns));
        Self { parser: Parser::new_with_callbacks(rows, columns, 0, Replies::default()) }
    }
}

impl Terminal {
    /// Draws a program's output; returns the terminal's replies.
    pub(super) fn draw(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    /// The visible rows, without trailing spaces and trailing empty rows.
    pub(super) fn rows(&self) -> Vec<Row> {
        let screen = self.parser.screen();
        let rows = screen.rows(0, SIZE.columns).zip(0..);
        let mut rows: Vec<_> = rows
            .map(|(text, at)| Row {
                text: text.trim_end().to_owned(),
                colour: screen.cell(at, 1).map(vt100::Cell::fgcolor).unwrap_or_default(),
            })
            .collect();
        while rows.pop_if(|row| row.text.is_empty()).is_some() {}
        rows
    }

    /// The rows that have scrolled off at the top since the last call.
    pub(super) fn scrolled_off(&mut self) -> Vec<String> {
        std::mem::take(&mut self.parser.callbacks_mut().scrolled_off)
    }

    /// Whether the alternate screen is active.
    pub(super) fn is_full_screen(&self) -> bool {
        self.parser.screen().alternate_screen()
    }
}

/// The terminal's pending replies, and the rows that have scrolled off.
#[derive(Default)]
struct Replies {
    answers: Vec<u8>,
    scrolled_off: Vec<String>,
}

impl Callbacks for Replies {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        letter: char,
    ) {
        let parameter = parameters.first().and_then(|it| it.first()).copied().unwrap_or(0);
        match (first, parameter, letter) {
            // Primary device attributes: a VT220 with ANSI colours.
            (None, 0, 'c') => self.answers.extend_from_slice(b"\x1b[?62;22c"),
            (Some(b'>'), 0, 'c') => self.answers.extend_from_slice(b"\x1b[>1;10;0c"),
            // Device status report.
            (None, 5, 'n') => self.answers.extend_from_slice(b"\x1b[0n"),
            // Cursor position report.
            (None, 6, 'n') => {
                let (row, column) = screen.cursor_position();
                let place = format!("\x1b[{};{}R", row + 1, column + 1);
                self.answers.extend_from_slice(place.as_bytes());
            }
            _ => {}
        }
    }

    fn on_scroll(&mut self, contents: RowContents<'_>, alternate_screen: bool) {
        if alternate_screen {
            return;
        }
        let (mut row, mut state) = (String::new(), BasicFormattedCaptureState::new());
        // Writing to a string cannot fail.
        let _ = contents.write_formatted_basic(&mut row, &mut state);
        let plain: String = vt100::capture::basic_formatted_to_plain(&row).collect();
        self.scrolled_off.push(plain.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwritten_rows_are_dropped_and_scrolled_rows_are_kept() {
        let mut terminal = Terminal::default();
        terminal.draw(b"wait...\rready  \x1b[K\r\n\x1b[31mred\x1b[0m");
        let rows = terminal.rows();
        let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["ready", "red"]);
        assert_eq!((rows[0].colour, rows[1].colour), (Color::Default, Color::Idx(1)));
        for number in 0..SIZE.rows {
            terminal.draw(format!("\r\nline {number}").as_bytes());
        }
        assert_eq!(terminal.scrolled_off(), ["ready", "red"]);
        assert!(terminal.scrolled_off().is_empty());
    }

    #[test]
    fn a_terminal_query_is_answered() {
        let mut terminal = Terminal::default();
        assert_eq!(terminal.draw(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(terminal.draw(b"\x1b[c"), b"\x1b[?62;22c");
        assert_eq!(terminal.draw(b"\x1b[5n\x1b[?1049h"), b"\x1b[0n");
        assert!(terminal.is_full_screen());
    }
}
