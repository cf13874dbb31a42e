//! Writes the end of a turn: `usage`, `result` and `message_stop`. It knows the room that each
//! field may take in a line, and no other record.

use super::chunks::{self, Chunk};
use super::turn::Turn;
use super::{LINE_LIMIT, NAME_LIMIT};
use crate::dialect::Output;
use crate::dialect::claude::result as claude;
use crate::event::{Outcome, TurnEnded, Usage};
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text};

/// The room for all errors in a `result`.
const ERRORS_LIMIT: usize = 40_000;
/// The room for one error.
const ERROR_LIMIT: usize = 8_000;
/// The room for a structured answer.
const STRUCTURED_LIMIT: usize = 20_000;
/// The room for the counts of all models.
const MODELS_LIMIT: usize = 10_000;
/// The room for the list of denied tool calls.
const DENIALS_LIMIT: usize = 10_000;
/// The room for all short fields of a `result`.
const SHORT_FIELDS: usize = 4_000 + NAME_LIMIT * 6;

/// The tokens of a turn, in the fields of the contract.
pub(super) struct Counts {
    input: u64,
    output: u64,
    cache_write: Option<u64>,
    cache_read: Option<u64>,
    estimated: bool,
}

impl Counts {
    /// The tokens of a turn: those that the agent states for the turn, or for its models, or for
    /// its requests. A count that is not stated is estimated and marked, if the turn completed or
    /// was cancelled.
    pub(super) fn of(ended: &TurnEnded<'_>, turn: &Turn) -> Option<Self> {
        let of_models = || ended.by_model.iter().cloned().reduce(|sum, usage| sum.plus(&usage));
        let counted = |usage: &Usage<'_>| usage.all() > 0;
        let stated = ended.usage.clone().filter(counted);
        let stated = stated.or_else(|| of_models().filter(counted));
        let stated = stated.or_else(|| {
            let requests = turn.requests().cloned().filter(counted)?;
            // The last request of a turn that did not complete may be counted only in part.
            let estimated = requests.estimated || ended.outcome != Outcome::Completed;
            Some(Usage { estimated, ..requests })
        });
        let stated = stated.unwrap_or_default();
        let input = stated.input;
        // Yume interprets a turn without tokens as a compaction.
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

/// Writes the last records of a turn, which contain more than its [`TurnEnded`].
pub(super) struct ResultWriter<'c> {
    pub(super) turn: &'c Turn,
    pub(super) session: &'c Text<'c>,
    /// The id of the `result`, as JSON.
    pub(super) uuid: &'c str,
}

impl ResultWriter<'_> {
    /// Writes the last records of a turn.
    pub(super) fn write(&self, ended: &TurnEnded<'_>, out: &mut Output) {
        let counts = Counts::of(ended, self.turn);
        if let Some(counts) = &counts {
            let mut record = out.record("usage");
            counts.write(&mut record);
            record.end();
        }
        self.write_result(ended, counts.as_ref(), out);
        out.record("message_stop").end();
    }

    fn write_result(&self, ended: &TurnEnded<'_>, counts: Option<&Counts>, out: &mut Output) {
        let errors = errors_json(&self.turn.errors(ended), out);
        let models = models_json(ended, out);
        let (structured, denials) = (structured_answer(ended, out), denials(ended, out));
        let length = |json: Option<&Json<'_>>| json.map_or(0, |json| json.get().len());
        let taken =
            SHORT_FIELDS + errors.len() + models.len() + length(structured) + length(denials);
        let text = self.result_text(ended, LINE_LIMIT - taken, out);
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
            // An empty sum of floats is a negative zero.
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

    /// The last text of the turn, if there is room for it and it is not the cause of the failure,
    /// which is among the errors.
    fn result_text<'e>(
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
        if chunks::as_chunk(&text).encoded_length() >= room {
            out.lost("text of a result over the line limit");
            return None;
        }
        Some(text)
    }

    /// The contract's subtype for the end of a turn.
    fn subtype(&self, ended: &TurnEnded<'_>) -> &'static str {
        match ended.outcome {
            // Directly after `interrupt`, a turn is never a success.
            Outcome::Completed if self.turn.is_interrupted() => "cancelled",
            Outcome::Completed => "success",
            Outcome::Cancelled => "cancelled",
            Outcome::LimitReached => limit_subtype(ended),
            Outcome::WaitingForClient => super::WAITING_FOR_CLIENT,
            _ => "error_during_execution",
        }
    }
}

/// Whether the turn is an error for Yume, which then discards the session. The session of a
/// cancelled turn can be resumed, so that turn is not an error.
fn is_error(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Completed | Outcome::WaitingForClient | Outcome::Cancelled)
}

/// The subtype for the limit that ended the turn, from the agent's reason.
fn limit_subtype(ended: &TurnEnded<'_>) -> &'static str {
    let reasons = [&ended.reason, &ended.stop_reason].into_iter().flatten();
    let reasons: Vec<String> =
        reasons.map(|reason| reason.to_plain().to_ascii_lowercase()).collect();
    let mentions = |part: &str| reasons.iter().any(|reason| reason.contains(part));
    if mentions("budget") {
        "error_max_budget_usd"
    } else if mentions("turn") {
        "error_max_turns"
    } else {
        super::LIMIT_REACHED
    }
}

/// The structured answer, if there is room for it.
fn structured_answer<'e>(ended: &'e TurnEnded<'_>, out: &mut Output) -> Option<&'e Json<'e>> {
    let structured = ended.structured.as_ref()?;
    if structured.get().len() > STRUCTURED_LIMIT {
        out.lost("structured answer over the line limit");
        return None;
    }
    Some(structured)
}

/// The denied tool calls, if there are any and there is room for them.
fn denials<'e>(ended: &'e TurnEnded<'_>, out: &mut Output) -> Option<&'e Json<'e>> {
    let list = ended.denials.as_ref();
    let list = list.filter(|list| list.is_array() && list.get() != "[]")?;
    if list.get().len() > DENIALS_LIMIT {
        out.lost("list of denied tool calls over the line limit");
        return None;
    }
    Some(list)
}

/// The errors as an array of strings, as far as there is room; empty if there are none.
fn errors_json(errors: &[&Text<'_>], out: &mut Output) -> Bytes {
    let mut json = Bytes::new();
    for error in errors {
        let (chunk, left_out) = chunks::start(error, ERROR_LIMIT);
        if json.len() + chunk.encoded_length() > ERRORS_LIMIT {
            out.lost("error of a result over the line limit");
            continue;
        }
        if left_out > 0 {
            out.lost("end of a long error message");
        }
        json.push(if json.is_empty() { b'[' } else { b',' });
        chunk.write(&mut json);
    }
    if !json.is_empty() {
        json.push(b']');
    }
    json
}

/// The usage of each model in the turn, with Claude's field names, as far as there is room; empty
/// if the agent does not count by model.
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
        let name = Chunk::Plain(&name);
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
