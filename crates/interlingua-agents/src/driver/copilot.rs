//! Copilot's stream, and the file to which it writes its token counts.
//!
//! The stream has no counts. On request, Copilot writes them to a file, just before the last line
//! of its stream. They are the counts of the session; for a resumed session, the share of this turn
//! is unknown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use interlingua::event::{Scope, Usage};
use interlingua::json::Text;
use serde::Deserialize;

use super::lines::RawLines;
use super::{Driver, SidecarFile, Step};

/// The driver of Copilot's stream.
#[derive(Debug)]
pub struct CopilotDriver {
    counts: PathBuf,
    resumed: bool,
    lines: RawLines,
    /// The last line, held back until the counts are read.
    last: Option<Vec<u8>>,
}

impl CopilotDriver {
    /// Creates a driver that reads the counts from this file.
    pub fn new(counts: PathBuf, resumed: bool) -> Self {
        Self { counts, resumed, lines: RawLines::default(), last: None }
    }
}

impl Driver for CopilotDriver {
    fn prompt(&mut self, _prompt: &str, _steps: &mut Vec<Step>) {}

    fn holds_back(&self) -> bool {
        true
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let Self { counts, lines, last, .. } = self;
        lines.each(chunk, |line| {
            if last.is_none() && is_result(&line) {
                *last = Some(line);
                steps.push(Step::Read(SidecarFile::File(counts.clone())));
            } else {
                Step::pass(line, steps);
            }
        });
    }

    fn sidecar_read(&mut self, bytes: &[u8], steps: &mut Vec<Step>) {
        let counts = serde_json::from_slice::<Counts>(bytes).unwrap_or_default();
        for (model, metrics) in counts.models {
            let usage = metrics.usage.into_usage(model, self.resumed);
            if usage.all() > 0 {
                steps.push(Step::emit(usage));
            }
        }
        steps.extend(self.last.take().map(Step::Pass));
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        steps.extend(self.last.take().map(Step::Pass));
        steps.extend(self.lines.rest().map(Step::Pass));
    }
}

/// Whether a line is the last one of a run.
fn is_result(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "type", borrow)]
        kind: &'a str,
    }
    // The substring search avoids parsing almost all lines.
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
    fn into_usage(self, model: String, resumed: bool) -> Usage<'static> {
        let cached = self.cache_read_tokens.unwrap_or(0) + self.cache_write_tokens.unwrap_or(0);
        Usage {
            scope: if resumed { Scope::Session } else { Scope::Turn },
            model: Some(Text::from(model)),
            // The input count includes the cached tokens.
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

    fn steps_for(resumed: bool, counts: &[u8]) -> Vec<Step> {
        let mut driver = CopilotDriver::new(PathBuf::from("counts"), resumed);
        let mut steps = Vec::new();
        driver.output(b"{\"type\":\"a\",\"b\":\"result\"}\n{\"type\":\"res", &mut steps);
        assert_eq!(steps.len(), 1, "the first line is passed on at once");
        driver.output(b"ult\"}\n", &mut steps);
        assert_eq!(steps.pop(), Some(Step::Read(SidecarFile::File(PathBuf::from("counts")))));
        driver.sidecar_read(counts, &mut steps);
        driver.ended(Some(0), &mut steps);
        steps.split_off(1)
    }

    #[test]
    fn the_counts_come_before_the_last_line() {
        let steps = steps_for(false, COUNTS.as_bytes());
        let [Step::Emit(event), Step::Pass(line)] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(line, b"{\"type\":\"result\"}\n");
        assert_eq!(event.synthetic, Some(interlingua::event::Reason::Elsewhere));
        let Data::Usage(usage) = &event.data else { panic!("{event:?}") };
        assert_eq!((usage.input, usage.cache_read, usage.output), (Some(220), Some(100), Some(70)));
        assert_eq!((&usage.scope, usage.reasoning), (&Scope::Turn, Some(8)));
    }

    #[test]
    fn the_counts_of_a_resumed_session_are_not_those_of_the_turn() {
        let steps = steps_for(true, COUNTS.as_bytes());
        let Some(Step::Emit(event)) = steps.first() else { panic!("{steps:?}") };
        assert!(matches!(&event.data, Data::Usage(usage) if usage.scope == Scope::Session));
    }

    #[test]
    fn without_counts_the_stream_continues() {
        for counts in [&b""[..], b"no json", b"{}"] {
            let steps = steps_for(false, counts);
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
