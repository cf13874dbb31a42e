//! Messages on standard error: errors, warnings, progress, and the loss report; and the output of
//! commands that print a text.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use interlingua::dialect::Losses;
use interlingua::explain::{Explanation, Seen};
use interlingua::{RepairKind, Repairs};

/// Inputs below this size are processed too fast for progress to matter.
const PROGRESS_THRESHOLD: u64 = 32_000_000;

/// The number of unreadable lines that are reported one by one.
const LISTED: usize = 3;

/// Reports an error that ended the command. It may have several lines, as an excerpt of a file has.
pub(crate) fn error(error: &anyhow::Error) {
    format!("interlingua: {error:#}").lines().for_each(print_line);
}

/// Reports a warning.
pub(crate) fn warning(text: &str) {
    print_line(&format!("interlingua: warning: {text}"));
}

/// Writes a line to standard error. If it is closed, the line is dropped.
pub(crate) fn print_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", on_one_line(text));
}

/// Writes the whole output of a command to standard output.
pub(crate) fn print_output(text: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Writes a line to standard error whose hidden characters are visible already.
pub(crate) fn print_shown(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Asks the user at the terminal, who answers on the same line.
pub(crate) fn ask(question: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{} ", on_one_line(question)).and_then(|()| stderr.flush());
}

/// Removes control characters and escape sequences, since the text may quote an agent.
pub(crate) fn on_one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\n' | '\t' => shown.push(' '),
            _ if letter.is_control() => {}
            _ => shown.push(letter),
        }
    }
    shown
}

/// Skips the rest of an escape sequence: CSI (`[`) or OSC (`]`).
fn skip_sequence(letters: &mut std::str::Chars<'_>) {
    match letters.clone().next() {
        Some('[') => {
            letters.next();
            letters.find(|letter| ('@'..='~').contains(letter));
        }
        Some(']') => {
            letters.find(|letter| matches!(letter, '\u{7}' | '\u{1b}'));
        }
        _ => {}
    }
}

/// Whether the reader of our output has closed it, as `head` does.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The number of lines that could not be read.
pub(crate) fn unreadable(repairs: &Repairs) -> u64 {
    repairs.counts().filter(|(kind, _)| is_unreadable(*kind)).map(|it| it.1).sum()
}

fn is_unreadable(kind: RepairKind) -> bool {
    matches!(kind, RepairKind::Unreadable | RepairKind::TooLong)
}

/// Reports the lines that could not be read.
pub(crate) fn unreadable_lines(name: &str, repairs: &Repairs) {
    let lines = repairs.listed().iter().filter(|repair| is_unreadable(repair.kind));
    for repair in lines.take(LISTED) {
        let too_long = repair.kind == RepairKind::TooLong;
        let advice = if too_long { "; raise it with --max-line" } else { "" };
        warning(&format!("{name}:{}: {}{advice}", repair.line, repair.what));
    }
    let more = unreadable(repairs).saturating_sub(LISTED as u64);
    if more > 0 {
        warning(&format!("{name}: {more} more lines could not be read; --loss-report lists them"));
    }
}

/// Reports what the target could not express, and which repairs the input needed.
pub(crate) fn losses_and_repairs(name: &str, to: &str, losses: &Losses, repairs: &Repairs) {
    let mut report = String::new();
    if losses.is_empty() {
        report.push_str(&format!("nothing was lost: `{to}` could express everything\n"));
    } else {
        let lost: Vec<_> = losses.iter().map(|(what, count)| (count, what.to_owned())).collect();
        report.push_str(&format!("`{to}` could not express:\n{}", table(&lost)));
    }
    if repairs.is_empty() {
        report.push_str("no repairs were needed\n");
    } else {
        let repaired: Vec<_> =
            repairs.counts().map(|(kind, count)| (count, kind.name().to_owned())).collect();
        report.push_str(&format!("repaired in {name}:\n{}", table(&repaired)));
        for repair in repairs.listed() {
            let what = on_one_line(&repair.what);
            report.push_str(&format!("  {name}:{}: {}: {what}\n", repair.line, repair.kind));
        }
        let all: u64 = repairs.counts().map(|it| it.1).sum();
        let more = all.saturating_sub(repairs.listed().len() as u64);
        if more > 0 {
            report.push_str(&format!("  and {more} more\n"));
        }
    }
    let _ = io::stderr().lock().write_all(report.as_bytes());
}

/// Lists the unknown record types and fields.
pub(crate) fn explanation(name: &str, explanation: &Explanation) {
    let mut report = String::new();
    if explanation.is_empty() {
        report.push_str(&format!("all record types and fields of {name} are known\n"));
    }
    let mut list = |what: &str, seen: Vec<(&str, &Seen)>| {
        if seen.is_empty() {
            return;
        }
        report.push_str(&format!("unknown {what} of {name}:\n"));
        let width = seen.iter().map(|(_, seen)| seen.count.to_string().len()).max().unwrap_or(0);
        for (which, Seen { count, line, example }) in seen {
            let (which, example) = (on_one_line(which), on_one_line(example));
            report.push_str(&format!("  {count:>width$}  {which}\n"));
            report.push_str(&format!("  {:>width$}    line {line}: {example}\n", ""));
        }
    };
    list("record types", explanation.types().collect());
    list("fields", explanation.fields().collect());
    if explanation.further() > 0 {
        report.push_str(&format!("and {} more\n", explanation.further()));
    }
    let _ = io::stderr().lock().write_all(report.as_bytes());
}

fn table(rows: &[(u64, String)]) -> String {
    let width = rows.iter().map(|(count, _)| count.to_string().len()).max().unwrap_or(0);
    rows.iter().map(|(count, what)| format!("  {count:>width$}  {}\n", on_one_line(what))).collect()
}

/// The progress through a large file.
#[derive(Debug)]
pub(crate) struct Progress {
    size: u64,
    done: u64,
    shown: Option<u64>,
}

impl Progress {
    /// Shows progress only for a large file, and only if the terminal does not also show the
    /// output.
    pub(crate) fn of(size: Option<u64>) -> Option<Self> {
        let size = size.filter(|size| *size > PROGRESS_THRESHOLD)?;
        let seen = io::stderr().is_terminal() && !io::stdout().is_terminal();
        seen.then_some(Self { size, done: 0, shown: None })
    }

    /// Adds a number of processed bytes.
    pub(crate) fn advance(&mut self, bytes: usize, out: &mut impl Write) {
        self.done += bytes as u64;
        let percent = self.done.saturating_mul(100) / self.size;
        if self.shown != Some(percent) {
            self.shown = Some(percent);
            let _ = write!(out, "\r{percent:3} %");
            let _ = out.flush();
        }
    }

    /// Clears the progress line.
    pub(crate) fn end(&self, out: &mut impl Write) {
        let _ = write!(out, "\r      \r");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_once_per_percent() {
        let mut progress = Progress { size: 1000, done: 0, shown: None };
        let mut out = Vec::new();
        for _ in 0..4 {
            progress.advance(5, &mut out);
        }
        progress.end(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\r  0 %\r  1 %\r  2 %\r      \r");
    }

    #[test]
    fn a_report_contains_no_escape_sequences() {
        assert_eq!(on_one_line("a\u{1b}[2J\nb\rc"), "a bc");
        assert_eq!(on_one_line("\u{1b}[91mred\u{1b}[0m \u{1b}]0;title\u{7}b\u{1b}"), "red b");
        assert_eq!(on_one_line("cut \u{1b}[38;5"), "cut ");
    }

    #[test]
    fn numbers_are_aligned() {
        let rows = [(7, "a".to_owned()), (1000, "b".to_owned())];
        assert_eq!(table(&rows), "     7  a\n  1000  b\n");
    }
}
