//! The `result` that ends a turn, and the content of tool results.

use crate::event::{Cost, Outcome, TurnEnded, Usage};
use crate::json::read;
use crate::json::write::Object;
use crate::json::{Json, Text, record};

/// Writes all of a `result` but whose it is.
///
/// Claude Code always prints counts, cost and durations, and the programs that read them do not ask
/// whether they are there. So they are there: zero where they are unknown, as Claude Code has it for
/// a turn that it did not count, and named in `unknown_fields`, so that nobody need add them up.
pub(super) fn write_result(
    record: &mut Object<'_>,
    ended: &TurnEnded<'_>,
    last_text: &[u8],
    duration_ms: Option<u64>,
    messages: u64,
    spent_usd: f64,
) {
    let (subtype, is_error, terminal) = verdict(&ended.outcome);
    record.string("subtype", subtype).flag("is_error", is_error);
    record.number("duration_ms", duration_ms.unwrap_or(0));
    record.number("duration_api_ms", ended.api_duration_ms.unwrap_or(0));
    record.number("num_turns", ended.requests.unwrap_or(messages));
    if subtype == "success" {
        write_last_word(record, ended, last_text);
    }
    let usual = match ended.outcome {
        Outcome::Completed => Some("end_turn"),
        Outcome::WaitingForClient => Some("tool_use"),
        _ => None,
    };
    match (&ended.stop_reason, usual) {
        (Some(reason), _) => record.text("stop_reason", reason),
        (None, Some(reason)) => record.string("stop_reason", reason),
        (None, None) => record.raw("stop_reason", "null"),
    };
    record.raw("total_cost_usd", &dollars(spent_usd));
    record.object("usage", |usage| write_usage(usage, ended.usage.as_ref()));
    match &ended.denials {
        Some(denials) => record.json("permission_denials", denials),
        None => record.raw("permission_denials", "[]"),
    };
    record.string("terminal_reason", terminal);
    if let Some(status) = ended.http_status {
        record.number("api_error_status", status);
    }
    record.json_if("structured_output", ended.structured.as_ref());
    write_errors(record, ended, subtype == "success");
    write_unknown_fields(record, ended, duration_ms);
}

fn write_unknown_fields(record: &mut Object<'_>, ended: &TurnEnded<'_>, duration_ms: Option<u64>) {
    let usage = ended.usage.as_ref();
    let unknown = [
        ("usage", usage.is_none()),
        ("usage.input_tokens", usage.is_some_and(|usage| usage.input.is_none())),
        ("usage.output_tokens", usage.is_some_and(|usage| usage.output.is_none())),
        ("total_cost_usd", ended.cost.is_none()),
        ("duration_ms", duration_ms.is_none()),
        ("duration_api_ms", ended.api_duration_ms.is_none()),
    ];
    let mut names = unknown.into_iter().filter(|(_, unknown)| *unknown).map(|(name, _)| name);
    let Some(first) = names.next() else { return };
    let out = record.name("unknown_fields");
    out.push(b'[');
    crate::json::write::string(out, first);
    for name in names {
        out.push(b',');
        crate::json::write::string(out, name);
    }
    out.push(b']');
}

fn verdict(outcome: &Outcome) -> (&'static str, bool, &'static str) {
    match outcome {
        Outcome::Completed | Outcome::WaitingForClient => ("success", false, "completed"),
        Outcome::Refused => ("success", true, "completed"),
        Outcome::Cancelled => ("error_during_execution", true, "aborted_streaming"),
        Outcome::LimitReached => ("error_max_turns", true, "max_turns"),
        _ => ("error_during_execution", true, "api_error"),
    }
}

fn write_last_word(record: &mut Object<'_>, ended: &TurnEnded<'_>, last_text: &[u8]) {
    match &ended.final_text {
        Some(text) => record.text("result", text),
        None if last_text.is_empty() => record.raw("result", "\"\""),
        None => record.raw_bytes("result", last_text),
    };
}

fn write_errors(record: &mut Object<'_>, ended: &TurnEnded<'_>, success: bool) {
    let untold = ended.cause.as_ref().filter(|cause| !ended.errors.contains(cause));
    if success && ended.errors.is_empty() && untold.is_none() {
        return;
    }
    let out = record.name("errors");
    out.push(b'[');
    for (at, error) in ended.errors.iter().chain(untold).enumerate() {
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

/// Writes the counts once more, under the name of the model.
pub(super) fn write_model_usage(
    record: &mut Object<'_>,
    model: &Text<'_>,
    counts: &Usage<'_>,
    cost: Option<&Cost<'_>>,
) {
    record.object("modelUsage", |models| {
        let mut fields = Object::open(models.escaped_name(&model.to_plain()));
        fields.number_if("inputTokens", counts.input);
        fields.number_if("outputTokens", counts.output);
        fields.number_if("cacheReadInputTokens", counts.cache_read);
        fields.number_if("cacheCreationInputTokens", counts.cache_write);
        if let Some(cost) = cost {
            fields.raw("costUSD", &dollars(cost.usd));
        }
        fields.close();
    });
}

fn dollars(amount: f64) -> String {
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

/// Writes the content of a tool result; pictures of an MCP server get the form that Claude prints.
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
        let picture = mcp.kind.as_ref().is_some_and(|kind| *kind == "image");
        match (mcp.data, picture) {
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
