//! Copilot's stream, and the file in which it counts tokens.
//!
//! The stream has no counts. Where it is told to, Copilot writes them into a file, just before the last
//! line of its stream. They are those of the session: of one that was resumed, what this turn used of
//! them is not known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use interlingua::event::{Scope, Usage};
use interlingua::json::Text;
use serde::Deserialize;

use super::lines::RawLines;
use super::{Beside, Driver, Step};

/// The driver of Copilot's stream.
#[derive(Debug)]
pub struct CopilotDriver {
    counts: PathBuf,
    resumed: bool,
    lines: RawLines,
    /// The last line, until the counts were read.
    last: Option<Vec<u8>>,
}

impl CopilotDriver {
    /// A driver that finds the counts in a file.
    pub fn new(counts: PathBuf, resumed: bool) -> Self {
        Self { counts, resumed, lines: RawLines::default(), last: None }
    }
}

impl Driver for CopilotDriver {
    fn holds_back(&self) -> bool {
        true
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let Self { counts, lines, last, .. } = self;
        lines.each(chunk, |line| {
            if last.is_none() && is_result(&line) {
                *last = Some(line);
                steps.push(Step::Read(Beside::File(counts.clone())));
            } else {
                Step::pass(line, steps);
            }
        });
    }

    fn beside(&mut self, bytes: &[u8], steps: &mut Vec<Step>) {
        let counts = serde_json::from_slice::<Counts>(bytes).unwrap_or_default();
        for (model, metrics) in counts.models {
            let usage = metrics.usage.told(model, self.resumed);
            if usage.all() > 0 {
                steps.push(Step::tell(usage));
            }
        }
        steps.extend(self.last.take().map(Step::Pass));
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        steps.extend(self.last.take().map(Step::Pass));
        steps.extend(self.lines.rest().map(Step::Pass));
    }
}

/// Whether a line is the last of a run.
fn is_result(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "type", borrow)]
        kind: &'a str,
    }
    // Next to no line is: most are not read.
    memchr::memmem::find(line, b"\"result\"").is_some()
        && serde_json::from_slice::<Head<'_>>(line).is_ok_and(|head| head.kind == "result")
}

#[derive(Debug, Default, Deserialize)]
struct Counts {
    #[serde(rename = "modelMetrics", default)]
    models: BTreeMap<String, Metrics>,
}

#[derive(Debug, Default, Deserialize)]
struct Metrics {
    #[serde(default)]
    usage: Tokens,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

impl Tokens {
    fn told(self, model: String, resumed: bool) -> Usage<'static> {
        let cached = self.cache_read_tokens.unwrap_or(0) + self.cache_write_tokens.unwrap_or(0);
        Usage {
            scope: if resumed { Scope::Session } else { Scope::Turn },
            model: Some(Text::from(model)),
            // Those of the cache are among them.
            input: self.input_tokens.map(|all| all.saturating_sub(cached)),
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
            output: self.output_tokens,
            reasoning: self.reasoning_tokens,
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use interlingua::event::Data;

    use super::*;

    const COUNTS: &str = r#"{"modelMetrics":{"m":{"requests":{"count":3},"usage":{"inputTokens":320,
        "outputTokens":70,"cacheReadTokens":100,"cacheWriteTokens":0,"reasoningTokens":8}}}}"#;

    fn told(resumed: bool, counts: &[u8]) -> Vec<Step> {
        let mut driver = CopilotDriver::new(PathBuf::from("counts"), resumed);
        let mut steps = Vec::new();
        driver.output(b"{\"type\":\"a\",\"b\":\"result\"}\n{\"type\":\"res", &mut steps);
        assert_eq!(steps.len(), 1, "the first line is passed on at once");
        driver.output(b"ult\"}\n", &mut steps);
        assert_eq!(steps.pop(), Some(Step::Read(Beside::File(PathBuf::from("counts")))));
        driver.beside(counts, &mut steps);
        driver.ended(Some(0), &mut steps);
        steps.split_off(1)
    }

    #[test]
    fn the_counts_come_before_the_last_line() {
        let steps = told(false, COUNTS.as_bytes());
        let [Step::Tell(event), Step::Pass(line)] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(line, b"{\"type\":\"result\"}\n");
        assert_eq!(event.synthetic, Some(interlingua::event::Reason::Elsewhere));
        let Data::Usage(usage) = &event.data else { panic!("{event:?}") };
        assert_eq!((usage.input, usage.cache_read, usage.output), (Some(220), Some(100), Some(70)));
        assert_eq!((&usage.scope, usage.reasoning), (&Scope::Turn, Some(8)));
    }

    #[test]
    fn what_a_resumed_session_used_is_not_that_of_the_turn() {
        let steps = told(true, COUNTS.as_bytes());
        let Some(Step::Tell(event)) = steps.first() else { panic!("{steps:?}") };
        assert!(matches!(&event.data, Data::Usage(usage) if usage.scope == Scope::Session));
    }

    #[test]
    fn without_counts_the_stream_goes_on() {
        for counts in [&b""[..], b"no json", b"{}"] {
            let steps = told(false, counts);
            assert!(matches!(steps.as_slice(), [Step::Pass(_)]), "{steps:?}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_passed_on_at_the_end() {
        let mut driver = CopilotDriver::new(PathBuf::new(), false);
        let mut steps = Vec::new();
        driver.output(b"{\"type\":\"cut", &mut steps);
        assert!(steps.is_empty());
        driver.ended(Some(0), &mut steps);
        assert_eq!(steps, [Step::Pass(b"{\"type\":\"cut".to_vec())]);
    }
}
