//! The records of `ai-sdk` and `ai-sdk-v4`, as the limits write them.

use interlingua::json::write;

use super::put;

/// The first two records of a stream.
pub(crate) fn start(out: &mut Vec<u8>, session: &str, model: &str) {
    put!(out, "{\"type\":\"stream-start\",\"warnings\":[]}\n");
    put!(out, "{\"type\":\"response-metadata\",\"id\":", session, ",\"modelId\":", model, "}\n");
}

/// The start of a part of a block, and what follows its id.
pub(crate) fn part(out: &mut Vec<u8>, kind: &str, block: u64, rest: &str) {
    put!(out, "{\"type\":\"", kind, "\",\"id\":\"b", itoa::Buffer::new().format(block), "\"", rest);
}

/// The next piece of a text.
pub(crate) fn piece(out: &mut Vec<u8>, block: u64, text: &str) {
    part(out, "text-delta", block, ",\"delta\":");
    put!(out, text, "}\n");
}

/// A text that comes at once.
pub(crate) fn text(out: &mut Vec<u8>, block: u64, text: &str) {
    part(out, "text-start", block, "}\n");
    piece(out, block, text);
    part(out, "text-end", block, "}\n");
}

/// That the input of a call begins.
pub(crate) fn input_start(out: &mut Vec<u8>, id: &str, tool: &str) {
    put!(out, "{\"type\":\"tool-input-start\",\"id\":", id, ",\"toolName\":", tool);
    put!(out, ",\"providerExecuted\":true,\"dynamic\":true}\n");
}

/// That the input of a call is over.
pub(crate) fn input_end(out: &mut Vec<u8>, id: &str) {
    put!(out, "{\"type\":\"tool-input-end\",\"id\":", id, "}\n");
}

/// A call with its input.
pub(crate) fn call(out: &mut Vec<u8>, id: &str, tool: &str, input: &str) {
    put!(out, "{\"type\":\"tool-call\",\"toolCallId\":", id, ",\"toolName\":", tool, ",\"input\":");
    write::string(out, input);
    put!(out, ",\"providerExecuted\":true,\"dynamic\":true}\n");
}

/// What a call gave back.
pub(crate) fn answer(out: &mut Vec<u8>, id: &str, tool: &str, result: &str) {
    put!(out, "{\"type\":\"tool-result\",\"toolCallId\":", id, ",\"toolName\":", tool);
    put!(out, ",\"result\":", result, ",\"dynamic\":true}\n");
}
