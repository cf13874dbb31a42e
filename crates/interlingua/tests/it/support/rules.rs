//! The rules of a dialect that a stream breaks.

use interlingua::Exit;
use interlingua::check::Checker;
use interlingua::framing::Limits;

/// The names of the rules that some lines break, in order and without repetition.
pub fn broken_by_lines<L: ToString>(
    dialect: &str,
    lines: impl IntoIterator<Item = L>,
) -> Vec<&'static str> {
    broken_by(dialect, lines.into_iter().map(|line| line.to_string() + "\n").collect())
}

/// The same for server-sent events.
pub fn broken_by_server_events<'e>(
    dialect: &str,
    events: impl IntoIterator<Item = &'e str>,
) -> Vec<&'static str> {
    broken_by(dialect, events.into_iter().map(|event| format!("data: {event}\n\n")).collect())
}

fn broken_by(dialect: &str, stream: String) -> Vec<&'static str> {
    let mut rules = violations(dialect, &stream);
    rules.dedup();
    rules
}

/// The name of the broken rule for every violation in a stream, in order.
pub fn violations(dialect: &str, stream: &str) -> Vec<&'static str> {
    let mut checker = Checker::new(super::dialect(dialect), Limits::default());
    checker.push(stream.as_bytes());
    let findings = checker.finish(&Exit::default());
    findings.into_iter().map(|finding| finding.rule).collect()
}
