//! The end of a turn: `usage`, `result` and `message_stop`.

use super::pieces::{self, Piece};
use super::turn::Turn;
use super::{LINE_LIMIT, NAME_LIMIT};
use crate::dialect::Output;
use crate::dialect::claude::result as claude;
use crate::event::{Outcome, TurnEnded, Usage};
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text};

/// How much of a `result` its errors may take.
const ERRORS_LIMIT: usize = 40_000;
/// How much one error may take.
const ERROR_LIMIT: usize = 8_000;
/// How much an answer in a shape that was asked for may take.
const STRUCTURED_LIMIT: usize = 20_000;
/// How much the counts of all models may take.
const MODELS_LIMIT: usize = 10_000;
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
    /// What is known of a turn's tokens: what the agent states of the turn, of its models, or of the
    /// requests in it. A count that is not stated anywhere is estimated and marked, for a turn that
    /// completed or that the user stopped.
    pub(super) fn of(ended: &TurnEnded<'_>, turn: &Turn) -> Option<Self> {
        let of_models = || ended.by_model.iter().cloned().reduce(|sum, usage| sum.plus(&usage));
        let counted = |usage: &Usage<'_>| usage.all() > 0;
        let stated = ended.usage.clone().filter(counted);
        let stated = stated.or_else(|| of_models().filter(counted));
        let stated = stated.or_else(|| {
            let requests = turn.requests().cloned().filter(counted)?;
            // The last request of a turn that did not complete may not have been counted to its end.
            let estimated = requests.estimated || ended.outcome != Outcome::Completed;
            Some(Usage { estimated, ..requests })
        });
        let stated = stated.unwrap_or_default();
        let input = stated.input;
        // Yume takes a turn without tokens for a conversation that was made shorter.
        let output = stated.output.filter(|output| *output > 0 || input != Some(0));
        let always = matches!(ended.outcome, Outcome::Completed | Outcome::Cancelled);
        if input.or(output).is_none() && !always {
            return None;
        }
        let (read, written) = turn.estimate();
        Some(Self {
            input: input.unwrap_or(read),
            output: output.unwrap_or(written),
            cache_write: stated.cache_write,
            cache_read: stated.cache_read,
            estimated: stated.estimated || input.is_none() || output.is_none(),
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
        let errors = errors_json(&self.turn.errors(ended), out);
        let models = models_json(ended, out);
        let (structured, denials) = (structured(ended, out), denials(ended, out));
        let length = |json: Option<&Json<'_>>| json.map_or(0, |json| json.get().len());
        let taken =
            SHORT_FIELDS + errors.len() + models.len() + length(structured) + length(denials);
        let text = self.text(ended, LINE_LIMIT - taken, out);
        if ended.usage.as_ref().and_then(|usage| usage.reasoning).is_some_and(|count| count > 0) {
            out.lost("reasoning tokens");
        }
        let mut record = out.record("result");
        record.string("subtype", self.subtype(ended));
        record.flag("is_error", is_error(&ended.outcome));
        record.number_if("duration_ms", ended.duration_ms);
        record.number_if("duration_api_ms", ended.api_duration_ms);
        record.number_if("num_turns", ended.steps);
        record.text_if("result", text.as_ref());
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
        if !models.is_empty() {
            record.raw_bytes("modelUsage", &models);
        }
        if !errors.is_empty() {
            record.raw_bytes("errors", &errors);
        }
        record.json_if("structured_output", structured);
        record.json_if("permission_denials", denials);
        record.raw("uuid", self.uuid);
        record.end();
    }

    /// The last text of the turn, where there is room for it. What went wrong is told by the errors.
    fn text<'e>(
        &'e self,
        ended: &'e TurnEnded<'_>,
        room: usize,
        out: &mut Output,
    ) -> Option<Text<'e>> {
        let last = || self.turn.last_text();
        let text = ended.final_text.as_ref().map(Text::borrowed).or_else(last);
        let Some(text) = text else {
            if self.turn.last_text_is_too_long() {
                out.lost("text of a result over the line limit");
            }
            return None;
        };
        if ended.cause.as_ref() == Some(&text) {
            return None;
        }
        if pieces::whole(&text).encoded_length() >= room {
            out.lost("text of a result over the line limit");
            return None;
        }
        Some(text)
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

/// The answer in a shape that was asked for, where there is room for it.
fn structured<'e>(ended: &'e TurnEnded<'_>, out: &mut Output) -> Option<&'e Json<'e>> {
    let structured = ended.structured.as_ref()?;
    if structured.get().len() > STRUCTURED_LIMIT {
        out.lost("structured answer over the line limit");
        return None;
    }
    Some(structured)
}

/// The tool calls that were refused, if there were any and there is room for them.
fn denials<'e>(ended: &'e TurnEnded<'_>, out: &mut Output) -> Option<&'e Json<'e>> {
    let list = ended.denials.as_ref();
    let list = list.filter(|list| list.is_array() && list.get() != "[]")?;
    if list.get().len() > DENIALS_LIMIT {
        out.lost("list of refused tool calls over the line limit");
        return None;
    }
    Some(list)
}

/// The errors as an array of strings, as far as there is room; nothing where there are none.
fn errors_json(errors: &[&Text<'_>], out: &mut Output) -> Bytes {
    let mut json = Bytes::new();
    for error in errors {
        let (piece, left_out) = pieces::start(error, ERROR_LIMIT);
        if json.len() + piece.encoded_length() > ERRORS_LIMIT {
            out.lost("error of a result over the line limit");
            continue;
        }
        if left_out > 0 {
            out.lost("end of a long error message");
        }
        json.push(if json.is_empty() { b'[' } else { b',' });
        piece.write(&mut json);
    }
    if !json.is_empty() {
        json.push(b']');
    }
    json
}

/// What each model used in the turn, under the names that Claude gives the counts, as far as there is
/// room; nothing where the agent does not tell models apart.
fn models_json(ended: &TurnEnded<'_>, out: &mut Output) -> Bytes {
    let mut json = Bytes::new();
    let known = ended.by_model.iter().filter(|usage| usage.model.is_some());
    // The cost of the turn is that of its only model.
    let cost = ended.cost.as_ref().filter(|_| ended.by_model.len() == 1).map(|cost| cost.usd);
    for usage in known {
        let name = usage.model.as_ref().map(Text::to_plain).unwrap_or_default();
        let mut counts = Bytes::new();
        let mut fields = Object::open(&mut counts);
        claude::write_model(&mut fields, usage, None);
        fields.number_if("thinkingTokens", usage.reasoning);
        if let Some(cost) = cost {
            fields.raw("costUSD", &claude::dollars(cost));
        }
        if usage.estimated {
            fields.flag("estimated", true);
        }
        fields.close();
        let name = Piece::Plain(&name);
        if json.len() + name.encoded_length() + counts.len() + 5 > MODELS_LIMIT {
            out.lost("counts of a model over the line limit");
            continue;
        }
        json.push(if json.is_empty() { b'{' } else { b',' });
        name.write(&mut json);
        json.push(b':');
        json.extend_from_slice(&counts);
    }
    if !json.is_empty() {
        json.push(b'}');
    }
    json
}
