//! What a resumed program prints before its first turn.
//!
//! If it has deferred a call, it asks the hook again before anything else. With the result, it goes on with
//! the turn, and reports the result, which the session has emitted already. If there is no result for it,
//! because the user has cancelled the call, the program is interrupted: it ends the old turn, of which
//! nothing is left, and begins that of the prompt. Neither is passed on.

use serde_json::Value;

use super::super::Step;
use super::super::lines::RawLines;

/// The output of a resumed program before its first turn.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    phase: Phase,
    lines: RawLines,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// The program was not resumed, or works on a turn.
    #[default]
    Begun,
    /// It may ask for a call that it has deferred.
    Open,
    /// It was given the result of such a call.
    Given,
    /// It was interrupted, so that it forgets such a call.
    Dropped,
}

/// What a line is, as far as it concerns the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// The first record of a turn.
    Init,
    /// The end of a turn.
    Result,
    /// The end of a turn whose deferred call cannot be made, because its tool is gone.
    Unavailable,
    /// A question about a call, its result, or a note about it.
    OfCall,
    Other,
}

impl LineKind {
    /// What a line is. Only lines of a beginning are looked at, of which there are few.
    fn of(line: &str) -> Self {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            return Self::Other;
        };
        let field = |name: &str| record.get(name).and_then(Value::as_str);
        match (field("type"), field("subtype"), field("terminal_reason")) {
            (Some("system"), Some("init"), _) => Self::Init,
            (Some("result"), _, Some("tool_deferred_unavailable")) => Self::Unavailable,
            (Some("result"), ..) => Self::Result,
            (Some("attachment"), ..) => Self::OfCall,
            (Some("control_request"), ..) if asks_hook(&record) => Self::OfCall,
            (Some("user"), ..) if has_result(&record) => Self::OfCall,
            _ => Self::Other,
        }
    }
}

/// Whether a record asks a hook.
fn asks_hook(record: &Value) -> bool {
    let subtype = record.get("request").and_then(|request| request.get("subtype"));
    subtype.and_then(Value::as_str) == Some("hook_callback")
}

/// Whether a record has the result of a call.
fn has_result(record: &Value) -> bool {
    let content = record.get("message").and_then(|message| message.get("content"));
    let mut blocks = content.and_then(Value::as_array).into_iter().flatten();
    blocks.any(|block| block.get("tool_use_id").is_some())
}

impl Beginning {
    /// The beginning of a program that was resumed.
    pub(super) fn resumed() -> Self {
        Self { phase: Phase::Open, ..Self::default() }
    }

    /// Whether the program works on its first turn, or on a later one.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Begun
    }

    /// Whether the program may ask for a call that it has deferred.
    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// The program was given the result of the call that it had deferred.
    pub(super) fn give(&mut self) {
        self.phase = Phase::Given;
    }

    /// The program was interrupted, so that it forgets the call that it had deferred.
    pub(super) fn drop_turn(&mut self) {
        self.phase = Phase::Dropped;
    }

    /// The lines of a chunk.
    pub(super) fn lines(&mut self, chunk: &[u8]) -> Vec<(Vec<u8>, LineKind)> {
        let mut lines = Vec::new();
        self.lines.each(chunk, |line| {
            let kind = str::from_utf8(&line).map_or(LineKind::Other, LineKind::of);
            lines.push((line, kind));
        });
        lines
    }

    /// Passes a line on, unless it belongs to what is left out.
    pub(super) fn pass(&mut self, line: Vec<u8>, kind: LineKind, steps: &mut Vec<Step>) {
        let (next, passes) = match (self.phase, kind) {
            (Phase::Begun, _) | (Phase::Open | Phase::Given, LineKind::Init) => {
                (Phase::Begun, true)
            }
            (Phase::Dropped, LineKind::Result | LineKind::Unavailable) => (Phase::Open, false),
            (Phase::Dropped, _) => (Phase::Dropped, false),
            (phase, LineKind::OfCall | LineKind::Unavailable) => (phase, false),
            (phase, _) => (phase, true),
        };
        self.phase = next;
        if passes {
            Step::pass(line, steps);
        }
    }

    /// The last line, if it has no line ending.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        self.lines.rest()
    }
}
