//! `interlingua dialects`.

use anyhow::Result;
use interlingua::dialect::{self, Dialect, Ending, FramingKind};

use crate::arguments::DialectsArguments;
use crate::{SUCCESS, report};

/// Lists the dialects, or shows one in detail.
pub(crate) fn run(arguments: &DialectsArguments) -> Result<u8> {
    let text = match arguments.name {
        Some(dialect) => details(dialect),
        None => table(dialect::ALL),
    };
    report::print_output(text.as_bytes())?;
    Ok(SUCCESS)
}

/// The width of a terminal that the list must fit.
const WIDTH: usize = 80;

fn table(dialects: &[&Dialect]) -> String {
    let heading = ["NAME", "READ", "WRITTEN", "ABOUT"].map(str::to_owned);
    let names = dialects.iter().map(|dialect| dialect.name.len()).max().unwrap_or_default();
    let before_about = names + "  READ  WRITTEN  ".len();
    let rows = dialects.iter().flat_map(|dialect| {
        let mut about = wrapped(dialect.about, WIDTH - before_about).into_iter();
        let first = [
            dialect.name.to_owned(),
            yes(dialect.decoder.is_some()).to_owned(),
            yes(dialect.encoder.is_some()).to_owned(),
            about.next().unwrap_or_default(),
        ];
        let rest = about.map(|line| ["", "", "", &line].map(str::to_owned));
        std::iter::once(first).chain(rest).collect::<Vec<_>>()
    });
    let list = aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>());
    format!(
        "{list}\n`interlingua dialects NAME` shows what a dialect cannot express, and its guide.\n"
    )
}

/// Wraps a text at words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn details(dialect: &Dialect) -> String {
    let framing = match dialect.framing {
        FramingKind::Lines => "lines: one record per line",
        FramingKind::Joined => {
            "lines: one record per line, or one that is printed on several lines"
        }
        FramingKind::Sse => "sse: server-sent events",
        FramingKind::LinesOrSse => "lines, or server-sent events with the same records",
        FramingKind::Objects => "objects: records anywhere in the text",
        FramingKind::SseOrObjects => "server-sent events, or objects: whole responses and arrays",
        FramingKind::ContentLength => "content-length: records that are preceded by their length",
    };
    let ending = match dialect.ending {
        Ending::Explicit => {
            "a record reports how a turn ended; without it, the turn did not complete"
        }
        Ending::Implied => "the end of the stream is the end of the turn",
    };
    let aliases = dialect.aliases.join(", ");
    let rows = [
        ("name", dialect.name.to_owned()),
        ("about", dialect.about.to_owned()),
        ("also called", if aliases.is_empty() { "-".to_owned() } else { aliases }),
        ("read", yes(dialect.decoder.is_some()).to_owned()),
        ("written", yes(dialect.encoder.is_some()).to_owned()),
        ("own rules", yes(dialect.rules.is_some()).to_owned()),
        ("framing", framing.to_owned()),
        ("ending", ending.to_owned()),
        ("cannot express", cannot_express(dialect)),
    ];
    let facts = aligned(&rows.map(|(what, value)| [what.to_owned(), value]));
    // The guide starts with the name, which the facts contain already.
    let guide = dialect.guide.split_once("\n\n").map_or("", |(_, guide)| guide);
    format!("{facts}\n{guide}")
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "-" }
}

/// What the encoder cannot express; `-` if there is nothing, or no encoder.
fn cannot_express(dialect: &Dialect) -> String {
    match dialect.cannot_express {
        [] => "-".to_owned(),
        kinds => kinds.join(", "),
    }
}

/// Aligns columns, two spaces apart.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut lines = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    lines
}
