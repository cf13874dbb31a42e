//! Checks whether a stream keeps the laws and the rules of its dialect.
//!
//! Every rule has a name, and every finding a line. The laws are checked by reading the stream:
//! what the [grammar](crate::grammar) has to repair is a finding. The rules of a dialect are in its
//! folder, and read records as plain JSON values, so that they share nothing with the encoder that
//! they check.

pub(crate) mod fields;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::entry::EntryRef;
use crate::framing::{Body, Frame, Framing, Limits};
use crate::grammar::{Exit, Repair, RepairKind, Repairs};
use crate::reader::{ReadOptions, Reader, Source};

/// The number of findings that are listed one by one; the rest are only counted.
const MAX_LISTED: usize = 1000;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that was broken.
    pub rule: &'static str,
    /// The line of the input; the last one if something is missing at the end.
    pub line: u64,
    /// What is wrong, for a person to read.
    pub message: String,
}

/// The rules of one dialect.
pub trait Rules: Send {
    /// Checks one record.
    fn record(&mut self, record: &Value, findings: &mut Findings);

    /// Checks the `[DONE]` with which some servers end a stream of events.
    fn done(&mut self, _findings: &mut Findings) {}

    /// Checks what is missing at the end.
    fn finish(&mut self, _findings: &mut Findings) {}
}

/// The findings so far.
#[derive(Debug, Default)]
pub struct Findings {
    listed: Vec<Finding>,
    count: u64,
    line: u64,
}

impl Findings {
    /// Adds a finding about the current record.
    pub fn add(&mut self, rule: &'static str, message: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Finding { rule, line: self.line, message: message.into() });
        }
    }

    /// Adds a finding unless a condition holds.
    pub fn require(&mut self, holds: bool, rule: &'static str, message: impl Into<String>) {
        if !holds {
            self.add(rule, message);
        }
    }
}

/// Checks a stream, in any split.
pub struct Checker {
    framing: Box<dyn Framing + Send>,
    /// Reads the stream, to find out what has to be repaired.
    laws: Option<Reader>,
    rules: Option<Box<dyn Rules>>,
    findings: Findings,
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Checker").field("findings", &self.findings).finish_non_exhaustive()
    }
}

impl Checker {
    /// A checker for a stream that should be in this dialect.
    pub fn new(dialect: &'static Dialect, limits: Limits) -> Self {
        let framing = dialect.framing.strict().at_start(limits);
        let framing_kind = Some(dialect.framing.strict());
        let options = ReadOptions { limits, framing: framing_kind, ..ReadOptions::default() };
        let laws = Reader::new(Source::Dialect(dialect), options).ok();
        let rules = dialect.rules.map(|make| make());
        Self { framing, laws, rules, findings: Findings::default() }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, chunk: &[u8]) {
        let Self { framing, laws, rules, findings } = self;
        if let Some(reader) = laws {
            let Ok(_) = reader.push(chunk, None, &mut |_: EntryRef<'_>| {});
        }
        framing.push(chunk, &mut |frame| check_frame(&frame, rules, findings));
    }

    /// Ends the input, and returns all findings in the order of their lines.
    pub fn finish(mut self, exit: &Exit) -> Vec<Finding> {
        let Self { framing, rules, findings, .. } = &mut self;
        framing.finish(&mut |frame| check_frame(&frame, rules, findings));
        if let Some(rules) = rules {
            rules.finish(findings);
        }
        if let Some(reader) = self.laws {
            let Ok(report) = reader.finish(exit, None, &mut |_: EntryRef<'_>| {});
            broken_laws(&report.repairs, &mut self.findings);
        }
        let mut findings = self.findings.listed;
        findings.sort_by_key(|finding| finding.line);
        findings
    }
}

fn check_frame(frame: &Frame<'_>, rules: &mut Option<Box<dyn Rules>>, findings: &mut Findings) {
    findings.line = frame.line;
    let text = match &frame.body {
        Body::Text(text) => text,
        Body::TooLong { length, limit } => {
            findings.add("line-length", format!("{length} bytes; the limit is {limit}"));
            return;
        }
        Body::Done => {
            if let Some(rules) = rules {
                rules.done(findings);
            }
            return;
        }
    };
    findings.require(text.noise.is_empty(), "only-records", "something stands before the record");
    findings.require(!text.replaced, "utf-8", "the line is not UTF-8");
    match serde_json::from_str::<Value>(text.text) {
        Ok(record) if record.is_object() => {
            if let Some(rules) = rules {
                rules.record(&record, findings);
            }
        }
        Ok(_) => findings.add("only-records", "this is JSON, but a record must be an object"),
        Err(error) => findings.add("only-records", format!("this is not one record: {error}")),
    }
}

/// Adds a finding for every repair, since each of them is due to a broken law. The exception is a
/// turn that begins within another: real agents begin a turn while another one waits.
fn broken_laws(repairs: &Repairs, findings: &mut Findings) {
    let breaks_a_law = |repair: &&Repair| repair.kind != RepairKind::TurnInTurn;
    for repair in repairs.listed().iter().filter(breaks_a_law) {
        findings.line = repair.line;
        findings.add(repair.kind.name(), repair.what.clone());
    }
}
