//! `interlingua check`: lists where a stream violates the rules of its dialect.

use std::io::{self, Write};

use anyhow::{Context, Result};
use interlingua::check::Checker;
use interlingua::framing::Limits;

use crate::arguments::CheckArguments;
use crate::input::Input;
use crate::report::{self, Progress};
use crate::{FINDINGS, SUCCESS};

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &CheckArguments) -> Result<u8> {
    let mut input = Input::open(arguments.file.as_deref())?;
    let limits = Limits { frame: arguments.agent.max_line.0 };
    let mut checker = Checker::new(arguments.dialect, limits);
    let mut progress = Progress::of(input.size);
    let mut empty = true;
    loop {
        let chunk = input.read()?;
        if chunk.is_empty() {
            break;
        }
        empty = false;
        checker.push(chunk);
        if let Some(progress) = &mut progress {
            progress.advance(chunk.len(), &mut io::stderr().lock());
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
        0 => "follows all rules of".to_owned(),
        1 => "has 1 finding as".to_owned(),
        // The checker stops listing findings at this number.
        count @ 1000.. => format!("has {count} findings or more as"),
        count => format!("has {count} findings as"),
    };
    report::print_line(&format!("{} {found} `{}`", input.name, arguments.dialect.name));
    Ok(if findings.is_empty() { SUCCESS } else { FINDINGS })
}
