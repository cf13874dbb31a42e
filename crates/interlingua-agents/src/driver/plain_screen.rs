//! The screen of a program of which nothing is known: its lines are text.
//!
//! What such a program shows and does not draw over is what it said. A line is told when it has left the
//! screen, and the rest when the program has ended. That is a guess, and says so.

use std::time::Duration;

use interlingua::event::{Block, Outcome, TurnEnded};
use interlingua::json::Text;

use super::terminal::{SETTLED, Terminal, begin};
use super::{Driver, Step};

/// How a program gives the screen back that it had for itself.
const LEAVES: &[u8] = b"\x1b[?1049l";

const SAY_THAT_IT_IS_A_GUESS: &str = "read from the program's screen: a guess";

/// The driver of a screen of which nothing is known.
#[derive(Debug)]
pub struct PlainScreenDriver {
    agent: String,
    prompt: String,
    types_prompt: bool,
    terminal: Terminal,
    blocks: u64,
    drawn: bool,
    /// What was last seen of a screen that a program has for itself.
    full_screen: Vec<String>,
    /// It was told to stop.
    stopped: bool,
}

impl PlainScreenDriver {
    /// A driver for a program, which is told the prompt by its arguments or at its terminal.
    pub fn new(agent: String, prompt: String, types_prompt: bool) -> Self {
        Self {
            agent,
            prompt,
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
        let gone = self.terminal.gone();
        self.tell(gone, steps);
        self.drawn = true;
    }

    fn rows(&self) -> Vec<String> {
        self.terminal.rows().into_iter().map(|row| row.text).collect()
    }

    fn tell(&mut self, lines: Vec<String>, steps: &mut Vec<Step>) {
        let text = lines.join("\n");
        if text.trim().is_empty() {
            return;
        }
        let (text, index) = (Text::from(text + "\n"), self.blocks);
        self.blocks += 1;
        steps.push(Step::tell(Block { index, text, ..Block::default() }));
    }
}

impl Driver for PlainScreenDriver {
    fn holds_back(&self) -> bool {
        true
    }

    fn start(&mut self, steps: &mut Vec<Step>) {
        steps.extend(begin(&self.agent, &self.prompt, SAY_THAT_IT_IS_A_GUESS));
        if self.types_prompt {
            steps.push(Step::Type(format!("{}\r", self.prompt).into_bytes()));
        }
    }

    fn output(&mut self, mut chunk: &[u8], steps: &mut Vec<Step>) {
        while let Some(leaves) = memchr::memmem::find(chunk, LEAVES) {
            let (before, after) = chunk.split_at(leaves);
            self.draw(before, steps);
            if self.terminal.is_full_screen() {
                self.full_screen = self.rows();
            }
            let (leaving, rest) = after.split_at(LEAVES.len());
            self.draw(leaving, steps);
            chunk = rest;
        }
        self.draw(chunk, steps);
    }

    fn interrupt(&mut self, _steps: &mut Vec<Step>) -> bool {
        // A signal says it; however the program then exits, its turn was not completed.
        self.stopped = true;
        false
    }

    fn patience(&self) -> Option<Duration> {
        self.drawn.then_some(SETTLED)
    }

    fn woken(&mut self, _steps: &mut Vec<Step>) {
        self.drawn = false;
        if self.terminal.is_full_screen() {
            self.full_screen = self.rows();
        }
    }

    fn ended(&mut self, code: Option<i64>, steps: &mut Vec<Step>) {
        // A program that had the screen for itself takes what it showed with it.
        let full_screen = std::mem::take(&mut self.full_screen);
        self.tell(full_screen, steps);
        let rows = self.rows();
        self.tell(rows, steps);
        // All that such a program says of its turn is its exit code.
        if code == Some(0) && !self.stopped {
            let outcome = Outcome::Completed;
            steps.push(Step::tell(TurnEnded { outcome, ..TurnEnded::default() }));
        }
    }
}
