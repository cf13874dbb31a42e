//! The screen of an unknown program, whose lines are read as text.
//!
//! Whatever such a program shows and does not overwrite counts as its text. A line is emitted when
//! it has scrolled off the screen, and the remaining lines when the program has ended. The result
//! is a guess, and a notice states that.

use std::time::Duration;

use interlingua::event::{Block, Outcome, TurnEnded};
use interlingua::json::Text;

use super::terminal::{SETTLED, Terminal, begin};
use super::{Driver, Step};

/// The escape sequence that leaves the alternate screen.
const LEAVE_ALTERNATE_SCREEN: &[u8] = b"\x1b[?1049l";

const GUESS_NOTICE: &str = "read from the program's screen: a guess";

/// The driver of an unknown program that has only a screen.
#[derive(Debug)]
pub struct PlainScreenDriver {
    agent: String,
    types_prompt: bool,
    terminal: Terminal,
    blocks: u64,
    drawn: bool,
    /// The last known contents of the alternate screen.
    full_screen: Vec<String>,
    /// The run asked the program to stop.
    stopped: bool,
}

impl PlainScreenDriver {
    /// Creates a driver. The program receives the prompt in its arguments, or, with `types_prompt`,
    /// at its terminal.
    pub fn new(agent: String, types_prompt: bool) -> Self {
        Self {
            agent,
            types_prompt,
            terminal: Terminal::default(),
            blocks: 0,
            drawn: false,
            full_screen: Vec::new(),
            stopped: false,
        }
    }

    fn draw(&mut self, bytes: &[u8], steps: &mut Vec<Step>) {
        let answer = self.terminal.draw(bytes);
        if !answer.is_empty() {
            steps.push(Step::Type(answer));
        }
        let scrolled_off = self.terminal.scrolled_off();
        self.emit(scrolled_off, steps);
        self.drawn = true;
    }

    fn rows(&self) -> Vec<String> {
        self.terminal.rows().into_iter().map(|row| row.text).collect()
    }

    fn emit(&mut self, lines: Vec<String>, steps: &mut Vec<Step>) {
        let text = lines.join("\n");
        if text.trim().is_empty() {
            return;
        }
        let (text, index) = (Text::from(text + "\n"), self.blocks);
        self.blocks += 1;
        steps.push(Step::emit(Block { index, text, ..Block::default() }));
    }
}

impl Driver for PlainScreenDriver {
    fn holds_back(&self) -> bool {
        true
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        steps.extend(begin(&self.agent, prompt, GUESS_NOTICE));
        if self.types_prompt {
            steps.push(Step::Type(format!("{prompt}\r").into_bytes()));
        }
    }

    fn output(&mut self, mut chunk: &[u8], steps: &mut Vec<Step>) {
        while let Some(leaves) = memchr::memmem::find(chunk, LEAVE_ALTERNATE_SCREEN) {
            let (before, after) = chunk.split_at(leaves);
            self.draw(before, steps);
            if self.terminal.is_full_screen() {
                self.full_screen = self.rows();
            }
            let (leaving, rest) = after.split_at(LEAVE_ALTERNATE_SCREEN.len());
            self.draw(leaving, steps);
            chunk = rest;
        }
        self.draw(chunk, steps);
    }

    fn interrupt(&mut self, _steps: &mut Vec<Step>) -> bool {
        // The run sends a signal. Whatever the exit code is then, the turn was not completed.
        self.stopped = true;
        false
    }

    fn wake_after(&self) -> Option<Duration> {
        self.drawn.then_some(SETTLED)
    }

    fn woken(&mut self, _steps: &mut Vec<Step>) {
        self.drawn = false;
        if self.terminal.is_full_screen() {
            self.full_screen = self.rows();
        }
    }

    fn ended(&mut self, code: Option<i64>, steps: &mut Vec<Step>) {
        // Leaving the alternate screen erases what it showed.
        let full_screen = std::mem::take(&mut self.full_screen);
        self.emit(full_screen, steps);
        let rows = self.rows();
        self.emit(rows, steps);
        // The exit code is the only information about the outcome of the turn.
        if code == Some(0) && !self.stopped {
            let outcome = Outcome::Completed;
            steps.push(Step::emit(TurnEnded { outcome, ..TurnEnded::default() }));
        }
    }
}
