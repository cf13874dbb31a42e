//! The records of `ai-sdk` and `ai-sdk-v4`, as the limits write them.

use interlingua::json::write;

use super::put;

/// Writes the first two records of a stream.
pub(crate) fn start(out: &mut Vec<u8>, session: &str, model: &str) {
    put!(out, "{\"type\":\"stream-start\",\"warnings\":[]}\n");
    put!(out, "{\"type\":\"response-metadata\",\"id\":", session, ",\"modelId\":", model, "}\n");
}

/// Writes the start of a block's part, and the rest after its id.
pub(crate) fn part(out: &mut Vec<u8>, kind: &str, block: u64, rest: &str) {
    put!(out, "{\"type\":\"", kind, "\",\"id\":\"b", itoa::Buffer::new().format(block), "\"", rest);
}

/// Writes the next text delta.
pub(crate) fn delta(out: &mut Vec<u8>, block: u64, text: &str) {
    part(out, "text-delta", block, ",\"delta\":");
    put!(out, text, "}\n");
}

/// Writes a complete text.
pub(crate) fn text(out: &mut Vec<u8>, block: u64, text: &str) {
    part(out, "text-start", block, "}\n");
    delta(out, block, text);
    part(out, "text-end", block, "}\n");
}

/// Writes the start of a call's input.
pub(crate) fn input_start(out: &mut Vec<u8>, id: &str, tool: &str) {
    put!(out, "{\"type\":\"tool-input-start\",\"id\":", id, ",\"toolName\":", tool);
    put!(out, ",\"providerExecuted\":true,\"dynamic\":true}\n");
}

/// Writes the end of a call's input.
pub(crate) fn input_end(out: &mut Vec<u8>, id: &str) {
    put!(out, "{\"type\":\"tool-input-end\",\"id\":", id, "}\n");
}

/// Writes a call with its input.
pub(crate) fn call(out: &mut Vec<u8>, id: &str, tool: &str, input: &str) {
    put!(out, "{\"type\":\"tool-call\",\"toolCallId\":", id, ",\"toolName\":", tool, ",\"input\":");
    write::string(out, input);
    put!(out, ",\"providerExecuted\":true,\"dynamic\":true}\n");
}

/// Writes the result of a call.
pub(crate) fn answer(out: &mut Vec<u8>, id: &str, tool: &str, result: &str) {
    put!(out, "{\"type\":\"tool-result\",\"toolCallId\":", id, ",\"toolName\":", tool);
    put!(out, ",\"result\":", result, ",\"dynamic\":true}\n");
}
