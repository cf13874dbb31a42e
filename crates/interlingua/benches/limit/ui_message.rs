//! The records of `ui-message`, as the limits write them.

use memchr::memmem::Finder;

use super::put;

/// Finds values that readers of the protocol reject: those that name a prototype, directly or with
/// escapes.
pub(crate) struct Harmless {
    named: Finder<'static>,
    escaped: Finder<'static>,
}

impl Default for Harmless {
    fn default() -> Self {
        Self { named: Finder::new("proto"), escaped: Finder::new("\\u00") }
    }
}

impl Harmless {
    /// Whether a value is certain to be accepted.
    pub(crate) fn accepts(&self, value: &str) -> bool {
        let value = value.as_bytes();
        self.named.find(value).is_none() && self.escaped.find(value).is_none()
    }
}

/// The state that a limit keeps between records.
#[derive(Default)]
pub(crate) struct Steps {
    blocks: u64,
    in_step: bool,
    in_text: bool,
    /// A call was answered, so the next record belongs to another step.
    answered: bool,
}

impl Steps {
    /// Starts a step if none is open.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.answered) {
            self.end(out);
        }
        if !std::mem::replace(&mut self.in_step, true) {
            put!(out, "data: {\"type\":\"start-step\"}\n\n");
        }
    }

    /// Ends the step, and the text that is open in it.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        self.end_text(out);
        if std::mem::take(&mut self.in_step) {
            put!(out, "data: {\"type\":\"finish-step\"}\n\n");
        }
    }

    /// Writes the next text delta, and starts a text if none is open.
    pub(crate) fn delta(&mut self, out: &mut Vec<u8>, text: &str) {
        self.begin_text(out);
        put!(out, "data: {\"type\":\"text-delta\",\"id\":\"b");
        put!(out, itoa::Buffer::new().format(self.blocks), "\",\"delta\":", text, "}\n\n");
    }

    /// Starts a text if none is open.
    pub(crate) fn begin_text(&mut self, out: &mut Vec<u8>) {
        if !self.in_text {
            self.begin(out);
            self.in_text = true;
            self.blocks += 1;
            put!(out, "data: {\"type\":\"text-start\",\"id\":\"b");
            put!(out, itoa::Buffer::new().format(self.blocks), "\"}\n\n");
        }
    }

    /// Ends the text that is open.
    pub(crate) fn end_text(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_text) {
            put!(out, "data: {\"type\":\"text-end\",\"id\":\"b");
            put!(out, itoa::Buffer::new().format(self.blocks), "\"}\n\n");
        }
    }

    /// Writes the start of a call, up to its input.
    pub(crate) fn call(&mut self, out: &mut Vec<u8>, id: &str, tool: &str) {
        self.begin(out);
        self.end_text(out);
        put!(out, "data: {\"type\":\"tool-input-available\",\"toolCallId\":", id);
        put!(out, ",\"toolName\":", tool, ",\"input\":");
    }

    /// Writes the result of a call.
    pub(crate) fn answer(&mut self, out: &mut Vec<u8>, id: &str, output: &str) {
        self.answered = true;
        put!(out, "data: {\"type\":\"tool-output-available\",\"toolCallId\":", id);
        put!(out, ",\"output\":", output, BY_THE_AGENT);
    }
}

/// The end of the records of a call and its result.
pub(crate) const BY_THE_AGENT: &str = ",\"providerExecuted\":true,\"dynamic\":true}\n\n";

/// Writes the end of the stream.
pub(crate) fn finish(out: &mut Vec<u8>, input: &str, output: &str, total: &str) {
    put!(out, "data: {\"type\":\"finish\",\"finishReason\":\"stop\",\"messageMetadata\":{");
    put!(out, "\"usage\":{\"inputTokens\":", input, ",\"outputTokens\":", output);
    put!(out, ",\"totalTokens\":", total, "}}}\n\ndata: [DONE]\n\n");
}
