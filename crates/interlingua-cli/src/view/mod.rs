//! What a person sees at a terminal while an agent works.
//!
//! A view takes entries and writes what the terminal has to show. What is final is written once and
//! scrolls away. Below it are rows that are redrawn in place: the block that is being streamed, the
//! running calls, and a line that shows that the agent works. On a terminal that cannot move its
//! cursor, there are only final rows.
//!
//! The view does no I/O and has no clock. It shows no questions: the code that asks the
//! user [pauses](View::pause) it meanwhile.

mod activity;
mod calls;
mod canvas;
mod clean;
mod diff;
mod entries;
mod markdown;
mod notes;
mod plan;
mod prose;
mod session;
mod style;
#[cfg(test)]
mod tests;
pub(crate) mod width;
mod wrap;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[cfg(test)]
use interlingua::EntryRef;

use activity::Activity;
use calls::{Call, Detail};
use canvas::Canvas;
use prose::{Look, Prose};
use session::Session;
use style::{Line, Palette, Style};

/// The running calls that are listed.
const LISTED_CALLS: usize = 6;

/// Nothing is transient.
const NO_LINES: &[Line] = &[];

/// What is known of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// Colours may be used (`NO_COLOR` is not set).
    pub(crate) color: bool,
    /// The cursor can be moved: the terminal is not dumb.
    pub(crate) live: bool,
    /// Everything is shown.
    pub(crate) verbose: bool,
}

impl Terminal {
    /// The terminal that standard output is connected to.
    pub(crate) fn of_stdout(verbose: bool) -> Self {
        let (width, height) = size();
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        // Windows has no such variable, and its terminals move the cursor.
        let live = !dumb || (cfg!(windows) && std::env::var_os("TERM").is_none());
        Self { width, height, color: !set("NO_COLOR"), live, verbose }
    }
}

/// The columns and rows of the terminal; zero if they are not known.
pub(crate) fn size() -> (u16, u16) {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout()) {
        return (size.ws_col, size.ws_row);
    }
    (0, 0)
}

/// A part of what is shown. Parts of some kinds have an empty line between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Nothing,
    Session,
    Prompt,
    /// The block with this number.
    Prose(u64),
    Call,
    Plan,
    Note,
    TurnEnd,
    Activity,
}

impl Part {
    /// Whether an empty line separates it from the part before.
    fn is_apart_from(self, before: Self) -> bool {
        match (before, self) {
            (Self::Nothing, _) => false,
            (Self::Call | Self::Note, Self::Call | Self::Note) => false,
            (before, this) => before != this,
        }
    }
}

/// The last part, which may still change.
#[derive(Debug)]
struct Tail {
    part: Part,
    lines: Vec<Line>,
}

/// The view of a session.
#[derive(Debug)]
pub(crate) struct View {
    canvas: Canvas,
    verbose: bool,
    home: Option<String>,
    /// Lines that are final and not written yet.
    committed: Vec<Line>,
    /// The last part that is final.
    last: Part,
    tail: Option<Tail>,
    paused: bool,
    activity: Activity,
    session: Session,
    /// The session whose line was shown.
    shown_session: Option<Session>,
    proses: Vec<Prose>,
    calls: Vec<Call>,
    /// The call whose sub-agent was shown last.
    nested_in: Option<String>,
    turn: Turn,
    plan: Vec<Line>,
    /// The last lines that the agent printed beside its protocol.
    log: VecDeque<String>,
    /// Prompts are shown.
    shows_prompts: bool,
    /// The last turn did not complete.
    failed: bool,
    /// The notices that were shown last.
    notices: VecDeque<Vec<Line>>,
}

/// The turn that is being shown.
#[derive(Debug, Default)]
struct Turn {
    /// It is replayed history.
    replay: bool,
    /// The messages of errors that were shown.
    errors: Vec<String>,
    /// A text of the model was shown.
    has_text: bool,
    /// The cause in its last line.
    cause: String,
}

impl View {
    pub(crate) fn new(terminal: Terminal) -> Self {
        let Terminal { width, height, color, live, verbose } = terminal;
        let palette = match (live, color) {
            (false, _) => Palette::None,
            (true, false) => Palette::Attributes,
            (true, true) => Palette::Colors,
        };
        let home = std::env::home_dir().and_then(|home| home.to_str().map(str::to_owned));
        Self {
            canvas: Canvas::new(width, height, palette, live),
            verbose,
            home: home.filter(|home| home.len() > 1),
            committed: Vec::new(),
            last: Part::Nothing,
            tail: None,
            paused: false,
            activity: Activity::default(),
            session: Session::default(),
            shown_session: None,
            proses: Vec::new(),
            calls: Vec::new(),
            nested_in: None,
            turn: Turn::default(),
            plan: Vec::new(),
            log: VecDeque::new(),
            shows_prompts: true,
            failed: false,
            notices: VecDeque::new(),
        }
    }

    /// Leaves live prompts out, because the terminal shows them as they are typed.
    pub(crate) fn hide_prompts(&mut self) {
        self.shows_prompts = false;
    }

    /// The terminal has another size. What is final stays as it is.
    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.canvas.resize(width, height);
        let columns = self.columns();
        self.proses.iter_mut().for_each(|prose| prose.set_columns(columns));
    }

    /// Takes the next entry and draws it at once.
    #[cfg(test)]
    fn entry(&mut self, entry: EntryRef<'_>, now: Instant, out: &mut Vec<u8>) {
        self.take(entry, now);
        self.draw(now, out);
    }

    /// Shows what the user can do, as a note after what was shown last.
    pub(crate) fn advise(&mut self, advice: &str, now: Instant, out: &mut Vec<u8>) {
        let lines = notes::note("!", advice, Style::YELLOW, self.columns());
        self.commit(Part::Note, lines);
        self.draw(now, out);
    }

    /// Draws what is new and what moves; returns when the latter is due next (`None`: nothing moves).
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Instant> {
        self.draw(now, out);
        if self.paused || !self.canvas.is_live() {
            return None;
        }
        self.activity.next_frame(now)
    }

    /// Removes everything transient, because something else is about to be written. Drawing resumes
    /// with the next entry or tick after [`resume`](Self::resume).
    pub(crate) fn pause(&mut self, out: &mut Vec<u8>) {
        self.commit_tail();
        self.canvas.draw(&std::mem::take(&mut self.committed), NO_LINES, out);
        self.paused = true;
        // Something else is on the terminal now.
        self.last = if self.last == Part::Nothing { Part::Nothing } else { Part::Note };
    }

    /// What was written instead is complete, and ends with a line end.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
    }

    /// Writes what is left. The cursor is at the beginning of a line then.
    pub(crate) fn finish(mut self, out: &mut Vec<u8>) {
        self.commit_tail();
        for prose in std::mem::take(&mut self.proses) {
            self.end_prose(prose);
        }
        self.canvas.draw(&std::mem::take(&mut self.committed), NO_LINES, out);
    }

    fn columns(&self) -> usize {
        // A row that is full to its last column leaves the cursor in a state in which terminals
        // differ.
        self.canvas.width - 1
    }

    fn detail(&self) -> Detail<'_> {
        Detail {
            columns: self.columns(),
            everything: self.verbose,
            compact: self.turn.replay,
            folder: &self.session.folder,
        }
    }

    fn look(&self) -> Look {
        Look { columns: self.columns(), everything: self.verbose, replay: self.turn.replay }
    }

    /// Makes lines final.
    fn commit(&mut self, part: Part, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        self.commit_tail();
        self.append(part, lines);
    }

    fn append(&mut self, part: Part, lines: Vec<Line>) {
        if part.is_apart_from(self.last) {
            self.committed.push(Line::default());
        }
        self.last = part;
        self.committed.extend(lines);
    }

    /// Makes the last part final.
    fn commit_tail(&mut self) {
        if let Some(Tail { part, lines }) = self.tail.take() {
            self.append(part, lines);
        }
    }

    /// Shows lines that may still change, until something else follows them.
    fn set_tail(&mut self, part: Part, lines: Vec<Line>) {
        if self.tail.as_ref().is_some_and(|tail| tail.part != part) {
            self.commit_tail();
        }
        self.tail = Some(Tail { part, lines });
    }

    fn draw(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.paused {
            return;
        }
        let columns = self.columns();
        let Self { canvas, committed, last, tail, proses, calls, activity, .. } = self;
        let mut rows = Rows { last: *last, lines: Vec::new() };
        if canvas.is_live() {
            if let Some(tail) = tail {
                rows.add(tail.part, &tail.lines);
            }
            for prose in proses.iter_mut().filter(|prose| prose.parent.is_none()) {
                let part = Part::Prose(prose.block);
                rows.add(part, prose.preview());
            }
            rows.add_calls(calls, now, columns);
            let doing = match calls.len() {
                0 => None,
                1 => Some("Running".to_owned()),
                many => Some(format!("Running {many} calls")),
            };
            if let Some(line) = activity.line(doing.as_deref(), now) {
                rows.add_line(Part::Activity, line);
            }
        }
        canvas.draw(committed, &rows.lines, out);
        committed.clear();
    }

    /// The time since the turn started.
    fn elapsed(&self, now: Instant) -> Option<Duration> {
        self.activity.elapsed(now)
    }
}

/// The rows below the final ones, while they are being put together.
struct Rows<'a> {
    last: Part,
    lines: Vec<Cow<'a, Line>>,
}

impl<'a> Rows<'a> {
    fn add(&mut self, part: Part, lines: &'a [Line]) {
        if !lines.is_empty() {
            self.begin(part);
            self.lines.extend(lines.iter().map(Cow::Borrowed));
        }
    }

    fn add_line(&mut self, part: Part, line: Line) {
        self.begin(part);
        self.lines.push(Cow::Owned(line));
    }

    fn add_calls(&mut self, running: &[Call], now: Instant, columns: usize) {
        for call in running.iter().take(LISTED_CALLS) {
            let indent = if call.parent.is_some() { prose::NESTED } else { 0 };
            let line = call.running(now, columns.saturating_sub(indent));
            self.add_line(Part::Call, nested(line, indent));
        }
        if running.len() > LISTED_CALLS {
            let more = format!("  … +{} calls", running.len() - LISTED_CALLS);
            self.add_line(Part::Call, Line::new(more, Style::DIM));
        }
    }

    fn begin(&mut self, part: Part) {
        if part.is_apart_from(self.last) {
            self.lines.push(Cow::Owned(Line::default()));
        }
        self.last = part;
    }
}

/// The line, indented.
fn nested(line: Line, indent: usize) -> Line {
    line.after(&Line::new(" ".repeat(indent), Style::PLAIN))
}
