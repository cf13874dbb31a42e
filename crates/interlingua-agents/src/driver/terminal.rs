//! A terminal without glass: what a program has drawn, and answers to what it asks a terminal.

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

/// How large the terminal is. A screen that is high need not be scrolled, and one that is wide need
/// not break lines: both lose less.
pub(crate) const SIZE: Size = Size { rows: 300, columns: 200 };

/// How long nothing may be drawn until the screen is looked at: it is drawn in pieces.
pub(super) const SETTLED: Duration = Duration::from_millis(40);

/// What an agent that has only a screen answers in: it has no records, and all that is known of it is
/// what its driver tells.
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

/// How a turn begins that is read from a screen: it says that it is a guess.
pub(super) fn begin(agent: &str, prompt: &str, guess: &'static str) -> [Step; 4] {
    let (agent, text) = (Some(Text::from(agent.to_owned())), Text::from(prompt.to_owned()));
    [
        Step::tell(SessionStarted { agent, ..SessionStarted::default() }),
        Step::tell(TurnStarted::default()),
        Step::tell(UserMessage { text, ..UserMessage::default() }),
        Step::tell(Notice { severity: Severity::Warning, text: Text::plain(guess) }),
    ]
}

/// A row of a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) text: String,
    /// The colour of its second column, in which programs put marks.
    pub(super) colour: Color,
}

/// What a program draws on.
pub(super) struct Terminal {
    parser: Parser<Asked>,
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
        Self { parser: Parser::new_with_callbacks(rows, columns, 0, Asked::default()) }
    }
}

impl Terminal {
    /// Draws what a program wrote; gives what the terminal answers.
    pub(super) fn draw(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    /// The rows that can be seen, without the space at their ends, and without empty ones at the end.
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

    /// The rows that left the screen at its top since this was asked last.
    pub(super) fn gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.parser.callbacks_mut().gone)
    }

    /// Whether a program has the whole screen for itself.
    pub(super) fn is_full_screen(&self) -> bool {
        self.parser.screen().alternate_screen()
    }
}

/// What a terminal was asked, and what it has to hand over.
#[derive(Default)]
struct Asked {
    answers: Vec<u8>,
    gone: Vec<String>,
}

impl Callbacks for Asked {
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
            // What are you? One that knows colours.
            (None, 0, 'c') => self.answers.extend_from_slice(b"\x1b[?62;22c"),
            (Some(b'>'), 0, 'c') => self.answers.extend_from_slice(b"\x1b[>1;10;0c"),
            // Are you there?
            (None, 5, 'n') => self.answers.extend_from_slice(b"\x1b[0n"),
            // Where is the cursor?
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
        // Writing to a string does not fail.
        let _ = contents.write_formatted_basic(&mut row, &mut state);
        let plain: String = vt100::capture::basic_formatted_to_plain(&row).collect();
        self.gone.push(plain.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_over_is_gone_and_what_left_the_screen_is_kept() {
        let mut terminal = Terminal::default();
        terminal.draw(b"wait...\rready  \x1b[K\r\n\x1b[31mred\x1b[0m");
        let rows = terminal.rows();
        let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(texts, ["ready", "red"]);
        assert_eq!((rows[0].colour, rows[1].colour), (Color::Default, Color::Idx(1)));
        for number in 0..SIZE.rows {
            terminal.draw(format!("\r\nline {number}").as_bytes());
        }
        assert_eq!(terminal.gone(), ["ready", "red"]);
        assert!(terminal.gone().is_empty());
    }

    #[test]
    fn a_program_that_asks_gets_an_answer() {
        let mut terminal = Terminal::default();
        assert_eq!(terminal.draw(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(terminal.draw(b"\x1b[c"), b"\x1b[?62;22c");
        assert_eq!(terminal.draw(b"\x1b[5n\x1b[?1049h"), b"\x1b[0n");
        assert!(terminal.is_full_screen());
    }
}
