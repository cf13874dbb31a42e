//! The records of `ui-message`, as the limits write them.

use memchr::memmem::Finder;

use super::put;

/// What finds the values that readers of the protocol reject: those that name a prototype, openly or
/// behind an escape.
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

/// What a limit has to know from one record to the next.
#[derive(Default)]
pub(crate) struct Steps {
    blocks: u64,
    in_step: bool,
    in_text: bool,
    /// A call was answered, so that what comes next is of another step.
    answered: bool,
}

impl Steps {
    /// Begins a step with the first thing that is said in it.
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

    /// The next piece of a text, which it begins where there is none.
    pub(crate) fn piece(&mut self, out: &mut Vec<u8>, text: &str) {
        self.begin_text(out);
        put!(out, "data: {\"type\":\"text-delta\",\"id\":\"b");
        put!(out, itoa::Buffer::new().format(self.blocks), "\",\"delta\":", text, "}\n\n");
    }

    /// Begins a text where there is none.
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

    /// The start of a call, up to its input.
    pub(crate) fn call(&mut self, out: &mut Vec<u8>, id: &str, tool: &str) {
        self.begin(out);
        self.end_text(out);
        put!(out, "data: {\"type\":\"tool-input-available\",\"toolCallId\":", id);
        put!(out, ",\"toolName\":", tool, ",\"input\":");
    }

    /// What a call gave back.
    pub(crate) fn answer(&mut self, out: &mut Vec<u8>, id: &str, output: &str) {
        self.answered = true;
        put!(out, "data: {\"type\":\"tool-output-available\",\"toolCallId\":", id);
        put!(out, ",\"output\":", output, BY_THE_AGENT);
    }
}

/// What ends a call and its answer.
pub(crate) const BY_THE_AGENT: &str = ",\"providerExecuted\":true,\"dynamic\":true}\n\n";

/// The end of the stream.
pub(crate) fn finish(out: &mut Vec<u8>, input: &str, output: &str, total: &str) {
    put!(out, "data: {\"type\":\"finish\",\"finishReason\":\"stop\",\"messageMetadata\":{");
    put!(out, "\"usage\":{\"inputTokens\":", input, ",\"outputTokens\":", output);
    put!(out, ",\"totalTokens\":", total, "}}}\n\ndata: [DONE]\n\n");
}
