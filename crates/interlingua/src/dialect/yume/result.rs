//! The end of a turn: `usage`, `result` and `message_stop`.

use super::pieces;
use super::turn::Turn;
use super::{LINE_LIMIT, NAME_LIMIT};
use crate::dialect::Output;
use crate::event::{Outcome, TurnEnded};
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text};

/// How much of a `result` its errors may take.
const ERRORS_LIMIT: usize = 40_000;
/// How much one error may take.
const ERROR_LIMIT: usize = 8_000;
/// How much an answer in a shape that was asked for may take.
const STRUCTURED_LIMIT: usize = 20_000;
/// How much the list of refused tool calls may take.
const DENIALS_LIMIT: usize = 10_000;
/// What is left for all fields of a `result` that are short.
const SHORT_FIELDS: usize = 4_000 + NAME_LIMIT * 6;

/// The tokens of a turn, as the contract wants them told.
pub(super) struct Counts {
    input: u64,
    output: u64,
    cache_write: Option<u64>,
    cache_read: Option<u64>,
    estimated: bool,
}

impl Counts {
    /// What is known of a turn's tokens; estimated where the turn completed and nobody counted.
    pub(super) fn of(ended: &TurnEnded<'_>, turn: &Turn) -> Option<Self> {
        let told = ended.usage.clone().unwrap_or_default();
        // Yume takes a turn without tokens for a conversation that was made shorter.
        let none = told.input == Some(0) && told.output == Some(0);
        let known = told.input.is_some() && told.output.is_some() && !none;
        if !known && ended.outcome != Outcome::Completed {
            return None;
        }
        let (input, output) = turn.estimate();
        Some(Self {
            input: told.input.filter(|_| !none).unwrap_or(input),
            output: told.output.filter(|_| !none).unwrap_or(output),
            cache_write: told.cache_write,
            cache_read: told.cache_read,
            estimated: told.estimated || !known,
        })
    }

    fn write(&self, fields: &mut Object<'_>) {
        fields.number("input_tokens", self.input);
        fields.number("output_tokens", self.output);
        fields.number_if("cache_creation_input_tokens", self.cache_write);
        fields.number_if("cache_read_input_tokens", self.cache_read);
        if self.estimated {
            fields.flag("estimated", true);
        }
    }
}

/// What a `result` says beside what the end of the turn says.
pub(super) struct Closing<'c> {
    pub(super) turn: &'c Turn,
    pub(super) session: &'c Text<'c>,
    /// The record's own id, as JSON.
    pub(super) uuid: &'c str,
}

impl Closing<'_> {
    /// Writes the last records of a turn.
    pub(super) fn write(&self, ended: &TurnEnded<'_>, out: &mut Output) {
        count_losses(ended, out);
        let counts = Counts::of(ended, self.turn);
        if let Some(counts) = &counts {
            let mut record = out.record("usage");
            counts.write(&mut record);
            record.end();
        }
        self.result(ended, counts.as_ref(), out);
        out.record("message_stop").end();
    }

    fn result(&self, ended: &TurnEnded<'_>, counts: Option<&Counts>, out: &mut Output) {
        let errors = errors_json(&self.turn.errors(ended));
        let structured = ended.structured.as_ref();
        let structured = structured.filter(|json| json.get().len() <= STRUCTURED_LIMIT);
        let denials = denials(ended).filter(|json| json.get().len() <= DENIALS_LIMIT);
        let length = |json: Option<&Json<'_>>| json.map_or(0, |json| json.get().len());
        let taken = SHORT_FIELDS + errors.len() + length(structured) + length(denials);
        let mut record = out.record("result");
        record.string("subtype", self.subtype(ended));
        record.flag("is_error", is_error(&ended.outcome));
        record.number_if("duration_ms", ended.duration_ms);
        record.number_if("duration_api_ms", ended.api_duration_ms);
        record.number_if("num_turns", ended.steps);
        let last = || self.turn.last_text();
        // What went wrong is told by the errors.
        let is_cause = |text: &Text<'_>| ended.cause.as_ref() == Some(text);
        if let Some(text) = ended.final_text.as_ref().map(Text::borrowed).or_else(last)
            && !is_cause(&text)
            && pieces::whole(&text).encoded_length() + taken < LINE_LIMIT
        {
            record.text("result", &text);
        }
        record.text("session_id", self.session);
        if let Some(cost) = ended.cost.as_ref().filter(|cost| cost.usd.is_finite()) {
            // A sum of nothing is minus zero.
            record.raw("total_cost_usd", &(cost.usd + 0.0).to_string());
        }
        if let Some(counts) = counts {
            record.object("usage", |fields| counts.write(fields));
            if counts.estimated {
                record.flag("usage_estimated", true);
            }
        }
        if !errors.is_empty() {
            record.raw("errors", &errors);
        }
        record.json_if("structured_output", structured);
        record.json_if("permission_denials", denials);
        record.raw("uuid", self.uuid);
        record.end();
    }

    /// What the contract calls the end of a turn.
    fn subtype(&self, ended: &TurnEnded<'_>) -> &'static str {
        match ended.outcome {
            // Right after `interrupt`, no turn is a success.
            Outcome::Completed if self.turn.was_stopped() => "cancelled",
            Outcome::Completed => "success",
            Outcome::Cancelled => "cancelled",
            Outcome::LimitReached => limit(ended),
            Outcome::WaitingForClient => super::WAITING_FOR_CLIENT,
            _ => "error_during_execution",
        }
    }
}

/// Whether Yume shall take the turn for a failed one, and forget the session: one that the user stopped
/// is to be resumed.
fn is_error(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Completed | Outcome::WaitingForClient | Outcome::Cancelled)
}

/// Which limit ended the turn, by the agent's own word for it.
fn limit(ended: &TurnEnded<'_>) -> &'static str {
    let words = [&ended.reason, &ended.stop_reason].into_iter().flatten();
    let words: Vec<String> = words.map(|word| word.to_plain().to_ascii_lowercase()).collect();
    let says = |part: &str| words.iter().any(|word| word.contains(part));
    if says("budget") {
        "error_max_budget_usd"
    } else if says("turn") {
        "error_max_turns"
    } else {
        super::LIMIT_REACHED
    }
}

/// The tool calls that were refused, if there were any.
fn denials<'e>(ended: &'e TurnEnded<'_>) -> Option<&'e Json<'e>> {
    ended.denials.as_ref().filter(|list| list.is_array() && list.get() != "[]")
}

/// The errors as an array of strings, as far as there is room; nothing where there are none.
fn errors_json(errors: &[&Text<'_>]) -> String {
    if errors.is_empty() {
        return String::new();
    }
    let mut json = Bytes::from(b"[");
    for error in errors {
        let (piece, _) = pieces::start(error, ERROR_LIMIT);
        if json.len() + piece.encoded_length() > ERRORS_LIMIT {
            break;
        }
        if json.len() > 1 {
            json.push(b',');
        }
        piece.write(&mut json);
    }
    json.push(b']');
    String::from_utf8(json).unwrap_or_default()
}

/// What of the end of a turn cannot be said.
fn count_losses(ended: &TurnEnded<'_>, out: &mut Output) {
    if ended.structured.as_ref().is_some_and(|json| json.get().len() > STRUCTURED_LIMIT) {
        out.lost("structured answer over the line limit");
    }
    if denials(ended).is_some_and(|list| list.get().len() > DENIALS_LIMIT) {
        out.lost("list of refused tool calls over the line limit");
    }
    if ended.usage.as_ref().and_then(|usage| usage.reasoning).is_some_and(|count| count > 0) {
        out.lost("reasoning tokens");
    }
}
