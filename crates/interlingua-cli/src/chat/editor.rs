//! The line editor: history, several lines, and pasted text.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::Result;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ConditionalEventHandler, Config, Context, Event, EventContext, EventHandler, Helper,
    KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};

use super::slash;
use crate::recent::state_folder;
use crate::report;
use crate::terminal_input::{self, TerminalState};

const PROMPT: &str = "› ";

/// Ends the mode in which the terminal marks pasted text.
const NO_BRACKETED_PASTE: &str = "\x1b[?2004l";

/// The number of lines of the history that are kept.
const HISTORY: usize = 1000;

/// What the user typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Line(String),
    Nothing,
    Quit,
    /// The terminal is gone, or a signal asks this process to end.
    Hangup,
}

type Lines = rustyline::Editor<Assistant, FileHistory>;

/// Reads prompts from the terminal.
pub(super) struct Editor {
    /// Absent only while a line is being read.
    lines: Option<Lines>,
    history: Option<PathBuf>,
    /// The state of the terminal before a line was read.
    before: Option<TerminalState>,
}

impl Editor {
    pub(super) fn new() -> Result<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .build();
        let mut lines = Lines::with_config(config)?;
        lines.set_helper(Some(Assistant));
        let newline = || EventHandler::Simple(Cmd::Newline);
        lines.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), newline());
        lines.bind_sequence(KeyEvent::ctrl('J'), newline());
        let interrupt = EventHandler::Conditional(Box::new(ClearOrQuit));
        lines.bind_sequence(KeyEvent::ctrl('C'), interrupt);
        let history = state_folder().map(|folder| folder.join("chat-history"));
        if let Some(path) = &history {
            // There may be no history yet.
            let _ = lines.load_history(path);
        }
        Ok(Self { lines: Some(lines), history, before: None })
    }

    /// Reads the next prompt.
    pub(super) async fn read(&mut self) -> Result<Typed> {
        let Some(mut lines) = self.lines.take() else { return Ok(Typed::Quit) };
        self.before = terminal_input::state();
        let reading = tokio::task::spawn_blocking(move || {
            let line = lines.readline(PROMPT);
            (lines, line)
        });
        let (mut lines, line) = reading.await?;
        let typed = match line {
            Ok(line) if line.trim().is_empty() => Typed::Nothing,
            Ok(line) => {
                lines.add_history_entry(&line)?;
                self.save(&mut lines);
                Typed::Line(line)
            }
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Typed::Quit,
            Err(ReadlineError::Io(_)) => Typed::Hangup,
            #[cfg(unix)]
            Err(ReadlineError::Errno(_)) => Typed::Hangup,
            Err(other) => return Err(other.into()),
        };
        self.lines = Some(lines);
        Ok(typed)
    }

    /// Gives up the line that is being read, because the process ends, and restores the terminal. The
    /// thread that waits for input ends with the process.
    pub(super) fn abandon(&mut self) {
        if let Some(before) = self.before.take() {
            terminal_input::restore(&before);
            report::print_shown(NO_BRACKETED_PASTE);
        }
    }

    /// Appends to the history, which only its owner can read.
    fn save(&self, lines: &mut Lines) {
        let Some(path) = &self.history else { return };
        let saved = crate::recent::private_file(path)
            .and_then(|_| lines.append_history(path).map_err(std::io::Error::other));
        // A history that cannot be written is not worth an interruption.
        drop(saved);
    }
}

/// Ctrl-C clears a line that is not empty, and quits at an empty one.
struct ClearOrQuit;

impl ConditionalEventHandler for ClearOrQuit {
    fn handle(
        &self,
        _event: &Event,
        _count: RepeatCount,
        _positive: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        Some(if context.line().is_empty() {
            Cmd::Interrupt
        } else {
            Cmd::Kill(Movement::WholeBuffer)
        })
    }
}

/// Completes commands, and continues a line that ends with a backslash.
struct Assistant;

impl Helper for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _default: bool,
    ) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if context.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let start = line.get(..position).unwrap_or_default();
        let pair =
            |word: &&str| Pair { display: (*word).to_owned(), replacement: (*word).to_owned() };
        let candidates = slash::completions(start);
        Ok((0, candidates.iter().map(pair).collect()))
    }
}
