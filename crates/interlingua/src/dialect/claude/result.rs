//! Writes the `result` that ends a turn, and the content of tool results. It knows no order of
//! records: the encoder passes what it observed of the turn.

use super::ended::DEFERRED;
use crate::event::{ErrorClass, Outcome, TurnEnded, Usage};
use crate::json::read;
use crate::json::write::Object;
use crate::json::{Json, Text, record};

/// The fields of a `result` that state how the turn ended.
#[derive(Debug, Clone)]
pub(super) struct Verdict<'e> {
    pub(super) subtype: &'static str,
    pub(super) is_error: bool,
    /// Why the program ended the turn; absent if unknown.
    terminal_reason: Option<&'e str>,
    /// Why the model stopped.
    stop_reason: Option<Text<'e>>,
    /// The failure, which is a message in place of the model's and also the text of the `result`.
    pub(super) failure: Option<&'e Text<'e>>,
}

/// The terminal reasons of Claude Code, except that of a completed turn.
const TERMINAL_REASONS: &[&str] = &[
    "api_error",
    "prompt_too_long",
    "image_error",
    "aborted_streaming",
    "aborted_tools",
    "max_turns",
    "budget_exhausted",
    DEFERRED,
];

/// The stop reasons of Claude; consumers do not know those of other models.
const STOP_REASONS: &[&str] = &[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
];

impl<'e> Verdict<'e> {
    /// The verdict on a turn; `added` if the grammar, not the agent, ended it.
    pub(super) fn of(ended: &'e TurnEnded<'_>, added: bool, stopped_in_call: bool) -> Self {
        let stated = ended.stop_reason.as_ref().map(Text::borrowed);
        let stated = stated.filter(|stated| STOP_REASONS.contains(&stated.body()));
        let failed = |terminal_reason, stop_reason| Self {
            subtype: "error_during_execution",
            is_error: true,
            terminal_reason,
            stop_reason,
            failure: None,
        };
        let success = |stop_reason| Self {
            subtype: "success",
            is_error: false,
            terminal_reason: Some("completed"),
            stop_reason: Some(stop_reason),
            failure: None,
        };
        let plain = Text::plain;
        let own = ended.reason.as_ref().map(Text::body);
        let own = own.filter(|own| TERMINAL_REASONS.contains(own));
        match ended.outcome {
            Outcome::Completed => success(stated.unwrap_or(plain("end_turn"))),
            Outcome::WaitingForClient => Self {
                terminal_reason: own.filter(|own| *own == DEFERRED).or(Some("completed")),
                ..success(plain("tool_use"))
            },
            Outcome::Refused => Self { is_error: true, ..success(plain("refusal")) },
            Outcome::Cancelled if stopped_in_call => failed(own.or(Some("aborted_tools")), stated),
            Outcome::Cancelled => failed(own.or(Some("aborted_streaming")), stated),
            Outcome::LimitReached => match limit(ended) {
                Limit::Turns => {
                    Self { subtype: "error_max_turns", ..failed(Some("max_turns"), stated) }
                }
                Limit::Money => Self {
                    subtype: "error_max_budget_usd",
                    ..failed(Some("budget_exhausted"), stated)
                },
                Limit::Tokens => failed(None, Some(plain("max_tokens"))),
                Limit::Unknown => failed(None, stated),
            },
            Outcome::Failed if !added => {
                let too_long = ended.class == Some(ErrorClass::ContextOverflow);
                let reason = if too_long { "prompt_too_long" } else { "api_error" };
                let reason = own.or(Some(reason));
                match &ended.cause {
                    Some(cause) => Self {
                        subtype: "success",
                        failure: Some(cause),
                        ..failed(reason, stated.or(Some(plain("stop_sequence"))))
                    },
                    None => failed(reason, stated),
                }
            }
            _ => failed(None, stated),
        }
    }

    /// The stop reason of the last message of the turn, if known: a message that was cut off has
    /// none.
    pub(super) fn message_stop_reason(&self) -> Option<&Text<'e>> {
        let known = |reason: &&Text<'_>| {
            !self.is_error || **reason == "max_tokens" || **reason == "refusal"
        };
        self.stop_reason.as_ref().filter(known)
    }
}

/// The limit that a turn reached.
enum Limit {
    Turns,
    Money,
    Tokens,
    Unknown,
}

fn limit(ended: &TurnEnded<'_>) -> Limit {
    let reasons = [&ended.reason, &ended.stop_reason];
    let mentions = |parts: &[&str]| {
        reasons.into_iter().flatten().any(|reason| {
            let reason = reason.body().to_ascii_lowercase();
            reason != "end_turn" && parts.iter().any(|part| reason.contains(part))
        })
    };
    if mentions(&["budget", "cost"]) {
        Limit::Money
    } else if mentions(&["turn"]) {
        Limit::Turns
    } else if mentions(&["token", "length"]) {
        Limit::Tokens
    } else {
        Limit::Unknown
    }
}

/// Claude Code's error code for a request that failed finally.
pub(super) fn error_code(class: Option<&ErrorClass>) -> &'static str {
    match class {
        Some(ErrorClass::Authentication | ErrorClass::Permission) => "authentication_failed",
        Some(ErrorClass::Quota) => "billing_error",
        Some(ErrorClass::RateLimit) => "rate_limit",
        Some(ErrorClass::NotFound) => "model_not_found",
        Some(ErrorClass::BadRequest | ErrorClass::ContextOverflow) => "invalid_request",
        Some(
            ErrorClass::Overloaded
            | ErrorClass::Internal
            | ErrorClass::Network
            | ErrorClass::TimedOut,
        ) => "server_error",
        _ => "unknown",
    }
}

/// Claude Code's error code for a request that failed and is retried.
pub(super) fn retry_code(class: &ErrorClass) -> &'static str {
    match class {
        ErrorClass::Overloaded => "overloaded",
        class => error_code(Some(class)),
    }
}

/// What the encoder observed of a turn.
#[derive(Debug, Clone)]
pub(super) struct Observed<'s> {
    /// The last text as a JSON literal; empty if there was none.
    pub(super) last_text: &'s [u8],
    pub(super) duration_ms: Option<u64>,
    pub(super) requests: u64,
    /// The denied calls, as a JSON array.
    pub(super) denials: &'s [u8],
    /// The errors that no other record contains.
    pub(super) errors: &'s [&'s Text<'s>],
}

/// Writes the fields of a `result`, except those of its session.
///
/// Claude Code always writes counts, cost and durations, and consumers require them. Unknown ones
/// are therefore zero, as in Claude Code's own results of turns that it did not count, and listed
/// in `unknown_fields`, so that a consumer can distinguish them from real zeros.
pub(super) fn write_result(
    record: &mut Object<'_>,
    ended: &TurnEnded<'_>,
    verdict: &Verdict<'_>,
    observed: &Observed<'_>,
    totals: &Totals,
) {
    record.string("subtype", verdict.subtype).flag("is_error", verdict.is_error);
    record.number("duration_ms", observed.duration_ms.unwrap_or(0));
    record.number("duration_api_ms", ended.api_duration_ms.unwrap_or(0));
    record.number("num_turns", ended.steps.unwrap_or(observed.requests));
    if verdict.subtype == "success" {
        let refused = ended.cause.as_ref().filter(|_| verdict.is_error);
        match verdict.failure.or(ended.final_text.as_ref()).or(refused) {
            Some(text) => record.text("result", text),
            None if observed.last_text.is_empty() => record.raw("result", "\"\""),
            None => record.raw_bytes("result", observed.last_text),
        };
    }
    match &verdict.stop_reason {
        Some(reason) => record.text("stop_reason", reason),
        None => record.raw("stop_reason", "null"),
    };
    record.raw("total_cost_usd", &dollars(totals.usd));
    record.object("usage", |usage| write_usage(usage, ended.usage.as_ref()));
    totals.write_models(record);
    record.raw_bytes("permission_denials", observed.denials);
    if let Some(reason) = verdict.terminal_reason {
        record.string("terminal_reason", reason);
    }
    record.number_if("api_error_status", ended.http_status);
    record.json_if("structured_output", ended.structured.as_ref());
    if verdict.subtype != "success" {
        write_errors(record, observed.errors);
    }
    write_unknown_fields(record, ended, observed);
}

fn write_unknown_fields(record: &mut Object<'_>, ended: &TurnEnded<'_>, observed: &Observed<'_>) {
    let usage = ended.usage.as_ref();
    let models = ended.by_model.len();
    let unknown = [
        ("usage", usage.is_none()),
        ("usage.input_tokens", usage.is_some_and(|usage| usage.input.is_none())),
        ("usage.output_tokens", usage.is_some_and(|usage| usage.output.is_none())),
        ("modelUsage", models == 0),
        ("modelUsage.costUSD", models > 1 || (models == 1 && ended.cost.is_none())),
        ("modelUsage.contextWindow", models > 0),
        ("total_cost_usd", ended.cost.is_none()),
        ("duration_ms", observed.duration_ms.is_none()),
        ("duration_api_ms", ended.api_duration_ms.is_none()),
        ("num_turns", ended.steps.is_none()),
    ];
    write_names(record, "unknown_fields", &unknown);
}

/// Writes a list of the marked names, if there are any.
pub(super) fn write_names(record: &mut Object<'_>, field: &str, names: &[(&str, bool)]) {
    let mut names = names.iter().filter(|(_, marked)| *marked).map(|(name, _)| name);
    let Some(first) = names.next() else { return };
    let out = record.name(field);
    out.push(b'[');
    crate::json::write::string(out, first);
    for name in names {
        out.push(b',');
        crate::json::write::string(out, name);
    }
    out.push(b']');
}

fn write_errors(record: &mut Object<'_>, errors: &[&Text<'_>]) {
    let out = record.name("errors");
    out.push(b'[');
    for (at, error) in errors.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        crate::json::write::text(out, error);
    }
    out.push(b']');
}

fn write_usage(fields: &mut Object<'_>, counts: Option<&Usage<'_>>) {
    let count = |of: fn(&Usage<'_>) -> Option<u64>| counts.and_then(of);
    fields.number("input_tokens", count(|usage| usage.input).unwrap_or(0));
    fields.number("cache_creation_input_tokens", count(|usage| usage.cache_write).unwrap_or(0));
    fields.number("cache_read_input_tokens", count(|usage| usage.cache_read).unwrap_or(0));
    fields.number("output_tokens", count(|usage| usage.output).unwrap_or(0));
    if let Some(reasoning) = count(|usage| usage.reasoning) {
        fields.object("output_tokens_details", |details| {
            details.number("thinking_tokens", reasoning);
        });
    }
    if counts.is_some_and(|usage| usage.estimated) {
        fields.flag("estimated", true);
    }
}

/// The totals of the session: Claude Code states the cost and the counts of each model as totals.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    usd: f64,
    models: Vec<ModelTotals>,
}

#[derive(Debug, Clone)]
struct ModelTotals {
    model: String,
    usage: Usage<'static>,
    usd: f64,
}

impl Totals {
    /// Adds a turn. Counts without a model are those of the session's model.
    pub(super) fn add(&mut self, ended: &TurnEnded<'_>, model: &Text<'_>) {
        let usd = ended.cost.as_ref().map_or(0.0, |cost| cost.usd);
        self.usd += usd;
        let single = ended.by_model.len() < 2;
        let of_turn = ended.usage.as_ref().filter(|_| ended.by_model.is_empty());
        for usage in ended.by_model.iter().chain(of_turn) {
            let model = usage.model.as_ref().unwrap_or(model).to_plain();
            let at = self.models.iter().position(|totals| totals.model == *model);
            let before = at.map(|at| self.models.remove(at));
            let (counted, paid) =
                before.map(|before| (before.usage, before.usd)).unwrap_or_default();
            self.models.push(ModelTotals {
                model: model.into_owned(),
                usage: counted.plus(usage),
                usd: if single { paid + usd } else { paid },
            });
        }
    }

    fn write_models(&self, record: &mut Object<'_>) {
        record.object("modelUsage", |models| {
            for ModelTotals { model, usage, usd } in &self.models {
                let mut fields = Object::open(models.escaped_name(model));
                write_model(&mut fields, usage, Some(0));
                fields.number("webSearchRequests", 0).raw("costUSD", &dollars(*usd));
                fields.number("contextWindow", 0).number_if("thinkingTokens", usage.reasoning);
                fields.close();
            }
        });
    }
}

/// Writes the counts of one model; `unknown` is written for an unknown count.
pub(in crate::dialect) fn write_model(
    fields: &mut Object<'_>,
    usage: &Usage<'_>,
    unknown: Option<u64>,
) {
    fields.number_if("inputTokens", usage.input.or(unknown));
    fields.number_if("outputTokens", usage.output.or(unknown));
    fields.number_if("cacheReadInputTokens", usage.cache_read.or(unknown));
    fields.number_if("cacheCreationInputTokens", usage.cache_write.or(unknown));
}

/// An amount of dollars, rounded to a millionth of a cent.
pub(in crate::dialect) fn dollars(amount: f64) -> String {
    serde_json::Number::from_f64((amount * 1e8).round() / 1e8)
        .map_or_else(|| "0".to_owned(), |number| number.to_string())
}

record! {
    /// A content block of an MCP server; Claude's own blocks have no `data` here.
    struct McpBlock<'a> {
        kind: text "type",
        data: text "data",
        media_type: text "mimeType",
    }
}

/// Writes the content of a tool result; images of an MCP server get the form that Claude writes.
pub(super) fn write_blocks(block: &mut Object<'_>, blocks: &Json<'_>) {
    let items: Option<Vec<Json<'_>>> = blocks.read();
    let Some(items) = items.filter(|items| items.iter().all(Json::is_object)) else {
        block.string("content", blocks.get());
        return;
    };
    let out = block.name("content");
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mcp = read::record_of::<McpBlock<'_>>(item).unwrap_or_default();
        let is_image = mcp.kind.as_ref().is_some_and(|kind| *kind == "image");
        match (mcp.data, is_image) {
            (Some(data), true) => {
                let mut image = Object::open(out);
                image.raw("type", "\"image\"").object("source", |source| {
                    source.raw("type", "\"base64\"");
                    source.text_if("media_type", mcp.media_type.as_ref()).text("data", &data);
                });
                image.close();
            }
            _ => out.extend_from_slice(item.get().as_bytes()),
        }
    }
    out.push(b']');
}
