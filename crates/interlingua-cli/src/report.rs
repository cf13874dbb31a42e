//! What people are told on standard error: errors, warnings, progress, and the loss report.

use std::io::{self, IsTerminal, Write};

use interlingua::dialect::Losses;
use interlingua::explain::{Explanation, Seen};
use interlingua::{RepairKind, Repairs};

/// Smaller inputs are done before anybody wonders.
const PROGRESS_FROM: u64 = 32_000_000;

/// How many unreadable lines a warning names.
const NAMED: usize = 3;

/// Says why nothing could be done.
pub(crate) fn error(error: &anyhow::Error) {
    say(&format!("interlingua: {error:#}"));
}

/// Says something that a person should know.
pub(crate) fn warning(text: &str) {
    say(&format!("interlingua: warning: {text}"));
}

/// Writes a line to standard error; whoever closed it does not want to know.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", on_one_line(text));
}

/// Asks a person at the terminal; the answer goes on the same line.
pub(crate) fn ask(question: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{} ", on_one_line(question)).and_then(|()| stderr.flush());
}

/// Text without what would steer a terminal, since it may repeat what an agent wrote.
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

/// Steps over the rest of what steers a terminal: colours and places (`[`), or titles and links (`]`).
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

/// Whether the reader of our output went away, as `head` does.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// How many lines could not be read.
pub(crate) fn unreadable(repairs: &Repairs) -> u64 {
    repairs.counts().filter(|(kind, _)| is_unreadable(*kind)).map(|it| it.1).sum()
}

fn is_unreadable(kind: RepairKind) -> bool {
    matches!(kind, RepairKind::Unreadable | RepairKind::TooLong)
}

/// Says which lines could not be read.
pub(crate) fn unreadable_lines(name: &str, repairs: &Repairs) {
    let lines = repairs.told().iter().filter(|repair| is_unreadable(repair.kind));
    for repair in lines.take(NAMED) {
        let too_long = repair.kind == RepairKind::TooLong;
        let advice = if too_long { "; raise it with --max-line" } else { "" };
        warning(&format!("{name}:{}: {}{advice}", repair.line, repair.what));
    }
    let more = unreadable(repairs).saturating_sub(NAMED as u64);
    if more > 0 {
        warning(&format!(
            "{name}: {more} more lines could not be read; --loss-report tells of them"
        ));
    }
}

/// Tells what the target could not say, and what of the input was repaired.
pub(crate) fn losses_and_repairs(name: &str, to: &str, losses: &Losses, repairs: &Repairs) {
    let mut report = String::new();
    if losses.is_empty() {
        report.push_str(&format!("nothing was lost: `{to}` could say it all\n"));
    } else {
        let lost: Vec<_> = losses.iter().map(|(what, count)| (count, what.to_owned())).collect();
        report.push_str(&format!("`{to}` could not say:\n{}", table(&lost)));
    }
    if repairs.is_empty() {
        report.push_str("nothing had to be repaired\n");
    } else {
        let repaired: Vec<_> =
            repairs.counts().map(|(kind, count)| (count, kind.name().to_owned())).collect();
        report.push_str(&format!("repaired in {name}:\n{}", table(&repaired)));
        for repair in repairs.told() {
            let what = on_one_line(&repair.what);
            report.push_str(&format!("  {name}:{}: {}: {what}\n", repair.line, repair.kind));
        }
        let all: u64 = repairs.counts().map(|it| it.1).sum();
        let more = all.saturating_sub(repairs.told().len() as u64);
        if more > 0 {
            report.push_str(&format!("  and {more} more\n"));
        }
    }
    let _ = io::stderr().lock().write_all(report.as_bytes());
}

/// Tells which record types and fields nobody knows.
pub(crate) fn explanation(name: &str, explanation: &Explanation) {
    let mut report = String::new();
    if explanation.is_empty() {
        report.push_str(&format!("all record types and fields of {name} are known\n"));
    }
    let mut list = |what: &str, seen: Vec<(&str, &Seen)>| {
        if seen.is_empty() {
            return;
        }
        report.push_str(&format!("{what} of {name} that are not known:\n"));
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

/// How far a large file is, for a person who waits.
#[derive(Debug)]
pub(crate) struct Progress {
    size: u64,
    done: u64,
    told: Option<u64>,
}

impl Progress {
    /// Progress worth telling: of a large file, to a terminal that is not busy with the output.
    pub(crate) fn of(size: Option<u64>) -> Option<Self> {
        let size = size.filter(|size| *size > PROGRESS_FROM)?;
        let seen = io::stderr().is_terminal() && !io::stdout().is_terminal();
        seen.then_some(Self { size, done: 0, told: None })
    }

    /// Says that so many more bytes are done.
    pub(crate) fn advance(&mut self, bytes: usize, out: &mut impl Write) {
        self.done += bytes as u64;
        let percent = self.done.saturating_mul(100) / self.size;
        if self.told != Some(percent) {
            self.told = Some(percent);
            let _ = write!(out, "\r{percent:3} %");
            let _ = out.flush();
        }
    }

    /// Clears the line for what comes after it.
    pub(crate) fn end(&self, out: &mut impl Write) {
        let _ = write!(out, "\r      \r");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_once_a_percent() {
        let mut progress = Progress { size: 1000, done: 0, told: None };
        let mut out = Vec::new();
        for _ in 0..4 {
            progress.advance(5, &mut out);
        }
        progress.end(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\r  0 %\r  1 %\r  2 %\r      \r");
    }

    #[test]
    fn a_report_cannot_steer_the_terminal() {
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
