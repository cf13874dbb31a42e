//! `interlingua check`: what a stream breaks of the rules of its protocol, line by line.

use std::io::{self, Write};

use anyhow::{Context, Result};
use interlingua::check::Checker;
use interlingua::framing::Limits;

use crate::arguments::CheckArguments;
use crate::input::Input;
use crate::report::{self, Progress};
use crate::{FOUND, WHOLE};

/// Runs the command; gives its exit code.
pub(crate) fn run(arguments: &CheckArguments) -> Result<u8> {
    let mut input = Input::open(arguments.file.as_deref())?;
    let limits = Limits { frame: arguments.agent.max_line.0 };
    let mut checker = Checker::new(arguments.dialect, limits);
    let mut progress = Progress::of(input.size);
    let mut empty = true;
    loop {
        let piece = input.read()?;
        if piece.is_empty() {
            break;
        }
        empty = false;
        checker.push(piece);
        if let Some(progress) = &mut progress {
            progress.advance(piece.len(), &mut io::stderr().lock());
        }
    }
    if let Some(progress) = &progress {
        progress.end(&mut io::stderr().lock());
    }
    let findings = checker.finish(&arguments.agent.exit());
    if empty {
        report::warning(&format!("the input is empty ({})", input.name));
    }

    let mut lines = String::new();
    for finding in &findings {
        let message = report::on_one_line(&finding.message);
        lines.push_str(&format!("{}:{}: {}: {message}\n", input.name, finding.line, finding.rule));
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write to standard output")?;
    let found = match findings.len() {
        0 => "keeps all rules of".to_owned(),
        1 => "has 1 finding as".to_owned(),
        // The checker does not tell more of them one by one.
        count @ 1000.. => format!("has {count} findings or more as"),
        count => format!("has {count} findings as"),
    };
    report::say(&format!("{} {found} `{}`", input.name, arguments.dialect.name));
    Ok(if findings.is_empty() { WHOLE } else { FOUND })
}
