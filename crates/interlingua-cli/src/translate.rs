//! `interlingua translate`: bytes in, bytes out, as they come; and at the end what is to be said
//! of the translation.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use interlingua::dialect::{Dialect, EncodeOptions};
use interlingua::event::Outcome;
use interlingua::framing::Limits;
use interlingua::{Finished, Options, ReadOptions, Repairs, Source, Stopped, Translator};

use crate::arguments::TranslateArguments;
use crate::input::{self, Input};
use crate::report::{self, Progress};
use crate::{FOUND, WHOLE};

/// Runs the command; gives its exit code.
pub(crate) fn run(arguments: &TranslateArguments) -> Result<u8> {
    let mut input = Input::open(arguments.file.as_deref())?;
    let from = arguments.from.dialect().map_or(Source::Recognise, Source::from);
    let translator = Translator::new(from, arguments.to, options(arguments))?;
    let seen = Seen { longest_allowed: arguments.agent.max_line.0, ..Seen::default() };
    let mut run = Run { arguments, translator, seen };
    let read = run.translate(&mut input)?;
    let (report, stderr) = run.finish()?;
    // The input broke off, or the agent's last words cannot be had: what is known was written.
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

struct Run<'a> {
    arguments: &'a TranslateArguments,
    translator: Translator,
    seen: Seen,
}

impl<'a> Run<'a> {
    /// Translates all of the input. The outer error is one of writing, which ends it all; the inner
    /// one is of reading, after which the stream still has to be ended.
    fn translate(&mut self, input: &mut Input) -> Result<Result<()>> {
        let mut progress = Progress::of(input.size);
        let read = loop {
            let piece = match input.read() {
                Ok([]) => break Ok(()),
                Ok(piece) => piece,
                Err(error) => break Err(error),
            };
            self.seen.look(piece);
            let now = self.now();
            write(self.translator.push(piece, now))?;
            let reader = self.translator.reader();
            self.seen.compare(reader.dialect(), reader.repairs());
            if let Some(progress) = &mut progress {
                progress.advance(piece.len(), &mut io::stderr().lock());
            }
        };
        if let Some(progress) = &progress {
            progress.end(&mut io::stderr().lock());
        }
        Ok(read)
    }

    /// Ends the stream, whatever can still be learnt of the agent's own end.
    fn finish(mut self) -> Result<(Report<'a>, Result<()>)> {
        let mut exit = self.arguments.agent.exit();
        exit.stopped = self.arguments.interrupted.then(|| Stopped {
            outcome: Outcome::Cancelled,
            cause: "the user stopped the agent".to_owned(),
        });
        let mut learnt = Ok(());
        match self.arguments.stderr.as_deref().map(input::stderr_tail) {
            Some(Ok(tail)) => exit.stderr = Some(tail),
            Some(Err(error)) => learnt = Err(error),
            None => {}
        }
        let now = self.now();
        let finished = self.translator.finish(&exit, now);
        write(&finished.bytes)?;
        self.seen.end();
        self.seen.compare(finished.from, &finished.repairs);
        Ok((Report { arguments: self.arguments, seen: self.seen, finished }, learnt))
    }

    fn now(&self) -> Option<u64> {
        if !self.arguments.live {
            return None;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    }
}

/// What is to be said of the translation when it is done.
struct Report<'a> {
    arguments: &'a TranslateArguments,
    seen: Seen,
    finished: Finished,
}

impl Report<'_> {
    /// Says what is to be said of the translation; gives the exit code.
    fn judge(&self, name: &str) -> Result<u8> {
        let (losses, repairs) = (&self.finished.losses, &self.finished.repairs);
        let to = self.arguments.to.name;
        if self.arguments.loss_report {
            report::losses_and_repairs(name, to, losses, repairs);
        } else if !self.arguments.strict && self.seen.understood {
            report::unreadable_lines(name, repairs);
        }
        if let Some(explanation) = &self.finished.explanation {
            report::explanation(name, explanation);
        }
        if self.seen.is_blank() {
            report::warning(&format!("the input is empty ({name})"));
        } else if !self.seen.understood {
            bail!(self.nothing_understood(name));
        }
        if self.arguments.strict && !(losses.is_empty() && repairs.is_empty()) {
            if !self.arguments.loss_report {
                report::losses_and_repairs(name, to, losses, repairs);
            }
            report::say("interlingua: --strict: the translation is not whole (see above)");
            return Ok(FOUND);
        }
        Ok(WHOLE)
    }

    fn nothing_understood(&self, name: &str) -> String {
        let advice = "`interlingua dialects` lists them";
        if self.seen.too_long {
            return format!(
                "{name} has no line that is short enough to be read; raise the limit with --max-line"
            );
        }
        if self.seen.zero_bytes {
            return format!("{name} is a binary file, not the stream of an agent");
        }
        match self.finished.from {
            Some(dialect) => format!(
                "nothing in {name} could be read as `{}`; say what it is with --from NAME ({advice})",
                dialect.name
            ),
            None => {
                format!("no dialect looks like {name}; say what it is with --from NAME ({advice})")
            }
        }
    }
}

/// Writes what is known now, and does not keep it.
fn write(records: &[u8]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(records).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// What the input looks like, up to the first line of it that was understood.
#[derive(Debug, Default)]
struct Seen {
    understood: bool,
    /// Lines with something on them that are complete.
    lines: u64,
    zero_bytes: bool,
    too_long: bool,
    longest_allowed: usize,
    /// The length of the line at hand, and whether something is on it.
    length: usize,
    mid_line: bool,
}

impl Seen {
    fn look(&mut self, piece: &[u8]) {
        if self.understood {
            return;
        }
        self.zero_bytes |= piece.contains(&0);
        for (index, part) in piece.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                self.lines += u64::from(std::mem::take(&mut self.mid_line));
                self.length = 0;
            }
            self.length += part.len();
            self.mid_line |= !part.trim_ascii().is_empty();
            self.too_long |= self.length > self.longest_allowed;
        }
    }

    /// The last line needs no terminator.
    fn end(&mut self) {
        self.lines += u64::from(std::mem::take(&mut self.mid_line));
    }

    /// Compares the lines that came with those that could not be read: one more was understood.
    fn compare(&mut self, from: Option<&'static Dialect>, repairs: &Repairs) {
        let unreadable = report::unreadable(repairs);
        // A binary file may hold something like a record by chance.
        let by_chance = if self.zero_bytes { unreadable } else { 0 };
        self.understood |= from.is_some() && self.lines > unreadable + by_chance;
    }

    fn is_blank(&self) -> bool {
        !self.understood && self.lines == 0
    }
}
