//! `interlingua translate`: translates bytes as they arrive, and reports on the translation at the
//! end.

use std::io::{self, IsTerminal, Write};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use interlingua::dialect::{Dialect, EncodeOptions, Losses};
use interlingua::event::Outcome;
use interlingua::explain::Explanation;
use interlingua::framing::Limits;
use interlingua::{
    EntryRef, Exit, Options, ReadOptions, Reader, Repairs, Source, Stopped, Translator,
};

use crate::arguments::TranslateArguments;
use crate::input::{self, Input};
use crate::report::{self, Progress};
use crate::view::{self, Terminal, View};
use crate::{FINDINGS, SUCCESS};

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &TranslateArguments) -> Result<u8> {
    let mut input = Input::open(arguments.file.as_deref())?;
    let from = arguments.from.dialect().map_or(Source::Recognise, Source::from);
    let target = Target::new(from, arguments)?;
    let seen = Seen { max_line: arguments.agent.max_line.0, ..Seen::default() };
    let mut run = Run { arguments, target, seen };
    let read = run.translate(&mut input)?;
    let (report, stderr) = run.finish()?;
    // An error in the input or in the standard error file is returned only after everything was
    // written.
    read?;
    stderr?;
    report.judge(&input.name)
}

fn options(arguments: &TranslateArguments) -> Options {
    let read = ReadOptions {
        limits: Limits { frame: arguments.agent.max_line.0 },
        framing: arguments.framing.map(Into::into),
        explain_unknown: arguments.explain_unknown,
        id_seed: arguments.id_seed,
        ..ReadOptions::default()
    };
    let team = arguments.team.team();
    let encode = EncodeOptions { partial: arguments.partial, team, ..EncodeOptions::default() };
    Options { read, encode }
}

/// Where the events go.
enum Target {
    /// To a dialect.
    Dialect(Box<Translator>),
    /// To a person at a terminal, who sees more than the dialect `text` can express.
    Terminal { reader: Box<Reader>, view: Box<View>, size: (u16, u16), bytes: Vec<u8> },
}

impl Target {
    fn new(from: Source, arguments: &TranslateArguments) -> Result<Self> {
        let options = options(arguments);
        // What a dialect cannot express is counted only when it is written.
        let counts_losses = arguments.loss_report || arguments.strict;
        if arguments.to.name == "text" && io::stdout().is_terminal() && !counts_losses {
            let reader = Box::new(Reader::new(from, options.read)?);
            let terminal = Terminal::of_stdout(arguments.verbose);
            let (size, view) = ((terminal.width, terminal.height), View::new(terminal));
            return Ok(Self::Terminal { reader, view: Box::new(view), size, bytes: Vec::new() });
        }
        Ok(Self::Dialect(Box::new(Translator::new(from, arguments.to, options)?)))
    }

    fn reader(&self) -> &Reader {
        match self {
            Self::Dialect(translator) => translator.reader(),
            Self::Terminal { reader, .. } => reader,
        }
    }

    fn push(&mut self, chunk: &[u8], now: Option<u64>) -> &[u8] {
        match self {
            Self::Dialect(translator) => translator.push(chunk, now),
            Self::Terminal { reader, view, size, bytes } => {
                bytes.clear();
                // An agent may be at work while the window changes.
                let (width, height) = view::size();
                if std::mem::replace(size, (width, height)) != (width, height) {
                    view.resize(width, height);
                }
                let mut sink = |entry: EntryRef<'_>| view.take(entry, Instant::now());
                let Ok(_) = reader.push(chunk, now, &mut sink);
                view.tick(Instant::now(), bytes);
                bytes
            }
        }
    }

    fn finish(self, exit: &Exit, now: Option<u64>) -> (Vec<u8>, Finished) {
        match self {
            Self::Dialect(translator) => {
                let interlingua::Finished { bytes, from, losses, repairs, explanation, .. } =
                    translator.finish(exit, now);
                (bytes, Finished { from, losses, repairs, explanation })
            }
            Self::Terminal { reader, mut view, mut bytes, .. } => {
                bytes.clear();
                let mut sink = |entry: EntryRef<'_>| view.take(entry, Instant::now());
                let Ok(report) = reader.finish(exit, now, &mut sink);
                view.finish(&mut bytes);
                let (from, losses) = (report.dialect, Losses::default());
                let (repairs, explanation) = (report.repairs, report.explanation);
                (bytes, Finished { from, losses, repairs, explanation })
            }
        }
    }
}

/// What is known at the end of the input.
struct Finished {
    from: Option<&'static Dialect>,
    losses: Losses,
    repairs: Repairs,
    explanation: Option<Explanation>,
}

struct Run<'a> {
    arguments: &'a TranslateArguments,
    target: Target,
    seen: Seen,
}

impl<'a> Run<'a> {
    /// Translates the complete input. The outer error is a write error, which ends the command; the
    /// inner one is a read error, after which the stream still has to be finished.
    fn translate(&mut self, input: &mut Input) -> Result<Result<()>> {
        let mut progress = Progress::of(input.size);
        let read = loop {
            let chunk = match input.read() {
                Ok([]) => break Ok(()),
                Ok(chunk) => chunk,
                Err(error) => break Err(error),
            };
            self.seen.look(chunk);
            let now = self.now();
            write(self.target.push(chunk, now))?;
            let reader = self.target.reader();
            self.seen.compare(reader.dialect(), reader.repairs());
            if let Some(progress) = &mut progress {
                progress.advance(chunk.len(), &mut io::stderr().lock());
            }
        };
        if let Some(progress) = &progress {
            progress.end(&mut io::stderr().lock());
        }
        Ok(read)
    }

    /// Finishes the stream, even if the agent's standard error cannot be read.
    fn finish(mut self) -> Result<(Report<'a>, Result<()>)> {
        let mut exit = self.arguments.agent.exit();
        exit.stopped = self.arguments.interrupted.then(|| Stopped {
            outcome: Outcome::Cancelled,
            cause: "the user stopped the agent".to_owned(),
        });
        let mut stderr_read = Ok(());
        match self.arguments.stderr.as_deref().map(input::stderr_tail) {
            Some(Ok(tail)) => exit.stderr = Some(tail),
            Some(Err(error)) => stderr_read = Err(error),
            None => {}
        }
        let now = self.now();
        let (bytes, finished) = self.target.finish(&exit, now);
        write(&bytes)?;
        self.seen.end();
        self.seen.compare(finished.from, &finished.repairs);
        Ok((Report { arguments: self.arguments, seen: self.seen, finished }, stderr_read))
    }

    fn now(&self) -> Option<u64> {
        if !self.arguments.live {
            return None;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    }
}

/// What is reported when the translation is done.
struct Report<'a> {
    arguments: &'a TranslateArguments,
    seen: Seen,
    finished: Finished,
}

impl Report<'_> {
    /// Reports on the translation; returns the exit code.
    fn judge(&self, name: &str) -> Result<u8> {
        let (losses, repairs) = (&self.finished.losses, &self.finished.repairs);
        let to = self.arguments.to.name;
        if self.arguments.loss_report {
            report::losses_and_repairs(name, to, losses, repairs);
        } else if !self.arguments.strict && self.seen.readable {
            report::unreadable_lines(name, repairs);
        }
        if let Some(explanation) = &self.finished.explanation {
            report::explanation(name, explanation);
        }
        if self.seen.is_blank() {
            report::warning(&format!("the input is empty ({name})"));
        } else if !self.seen.readable {
            bail!(self.nothing_readable(name));
        }
        if self.arguments.strict && !(losses.is_empty() && repairs.is_empty()) {
            if !self.arguments.loss_report {
                report::losses_and_repairs(name, to, losses, repairs);
            }
            report::print_line("interlingua: --strict: the translation is incomplete (see above)");
            return Ok(FINDINGS);
        }
        Ok(SUCCESS)
    }

    fn nothing_readable(&self, name: &str) -> String {
        let advice = "`interlingua dialects` lists them";
        if self.seen.too_long {
            return format!(
                "all lines of {name} exceed the length limit; raise it with --max-line"
            );
        }
        if self.seen.zero_bytes {
            return format!("{name} is a binary file, not the stream of an agent");
        }
        match self.finished.from {
            Some(dialect) => format!(
                "nothing in {name} could be read as `{}`; name its dialect with --from NAME ({advice})",
                dialect.name
            ),
            None => {
                format!(
                    "the dialect of {name} was not recognised; name it with --from NAME ({advice})"
                )
            }
        }
    }
}

/// Writes records and flushes them at once.
fn write(records: &[u8]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(records).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// What the input looks like, up to its first readable line.
#[derive(Debug, Default)]
struct Seen {
    readable: bool,
    /// The number of complete lines that are not blank.
    lines: u64,
    zero_bytes: bool,
    too_long: bool,
    max_line: usize,
    /// The length of the current line, and whether it is not blank.
    length: usize,
    mid_line: bool,
}

impl Seen {
    fn look(&mut self, chunk: &[u8]) {
        if self.readable {
            return;
        }
        self.zero_bytes |= chunk.contains(&0);
        for (index, part) in chunk.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                self.lines += u64::from(std::mem::take(&mut self.mid_line));
                self.length = 0;
            }
            self.length += part.len();
            self.mid_line |= !part.trim_ascii().is_empty();
            self.too_long |= self.length > self.max_line;
        }
    }

    /// The last line needs no line ending.
    fn end(&mut self) {
        self.lines += u64::from(std::mem::take(&mut self.mid_line));
    }

    /// Compares the number of lines with the number of unreadable ones: if it is higher, one was
    /// readable.
    fn compare(&mut self, from: Option<&'static Dialect>, repairs: &Repairs) {
        let unreadable = report::unreadable(repairs);
        // A binary file may contain something that looks like a record.
        let coincidental = if self.zero_bytes { unreadable } else { 0 };
        self.readable |= from.is_some() && self.lines > unreadable + coincidental;
    }

    fn is_blank(&self) -> bool {
        !self.readable && self.lines == 0
    }
}
