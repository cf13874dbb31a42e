//! The records of `ag-ui`, as the limits write them.

use interlingua::json::write;

use super::put;

/// The state that a limit keeps between records.
#[derive(Default)]
pub(crate) struct Run {
    steps: u64,
    messages: u64,
    in_text: bool,
    in_step: bool,
    /// The next record belongs to another step.
    step_has_ended: bool,
}

impl Run {
    /// Ends the step.
    fn end_step(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_step) {
            self.step(out, "STEP_FINISHED");
        }
    }

    /// Notes that the next record belongs to another step.
    pub(crate) fn step_has_ended(&mut self) {
        self.step_has_ended = true;
    }

    /// Starts a step if none is open.
    fn begin_step(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.step_has_ended) {
            self.end_step(out);
        }
        if !std::mem::replace(&mut self.in_step, true) {
            self.steps += 1;
            self.step(out, "STEP_STARTED");
        }
    }

    fn step(&self, out: &mut Vec<u8>, kind: &str) {
        put!(out, "data: {\"type\":\"", kind, "\",\"stepName\":\"step-");
        put!(out, itoa::Buffer::new().format(self.steps), "\"}\n\n");
    }

    /// Starts a text.
    pub(crate) fn begin_text(&mut self, out: &mut Vec<u8>) {
        self.begin_step(out);
        self.in_text = true;
        self.messages += 1;
        self.part(out, "TEXT_MESSAGE_START", "\",\"role\":\"assistant\"}\n\n");
    }

    /// Writes the next text delta.
    pub(crate) fn delta(&mut self, out: &mut Vec<u8>, text: &str) {
        self.part(out, "TEXT_MESSAGE_CONTENT", "\",\"delta\":");
        put!(out, text, "}\n\n");
    }

    /// Ends the text that is open.
    pub(crate) fn end_text(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_text) {
            self.part(out, "TEXT_MESSAGE_END", "\"}\n\n");
        }
    }

    fn part(&self, out: &mut Vec<u8>, kind: &str, rest: &str) {
        put!(out, "data: {\"type\":\"", kind, "\",\"messageId\":\"m");
        put!(out, itoa::Buffer::new().format(self.messages), rest);
    }

    /// Writes the start of a call.
    pub(crate) fn call(&mut self, out: &mut Vec<u8>, id: &str, tool: &str) {
        self.begin_step(out);
        put!(out, "data: {\"type\":\"TOOL_CALL_START\",\"toolCallId\":", id);
        put!(out, ",\"toolCallName\":", tool, "}\n\n");
    }

    /// Writes the result of a call, which is a message and therefore needs an id.
    pub(crate) fn answer(&mut self, out: &mut Vec<u8>, id: &str, output: &str) {
        self.messages += 1;
        self.part(out, "TOOL_CALL_RESULT", "\",\"toolCallId\":");
        put!(out, id, ",\"content\":", output, ",\"role\":\"tool\",\"metadata\":{");
        put!(out, "\"status\":\"completed\"}}\n\n");
    }

    /// Writes the end of the run.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>, session: &str) {
        self.end_step(out);
        put!(out, "data: {\"type\":\"RUN_FINISHED\",\"threadId\":", session, ",\"runId\":\"r\"");
        put!(out, ",\"outcome\":{\"type\":\"success\"}}\n\n");
    }
}

/// Writes a delta of a call's input, given as a literal.
pub(crate) fn input_delta(out: &mut Vec<u8>, id: &str, text: &str) {
    put!(out, "data: {\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":", id);
    put!(out, ",\"delta\":", text, "}\n\n");
}

/// Writes the complete input of a call.
pub(crate) fn input(out: &mut Vec<u8>, id: &str, input: &str) {
    put!(out, "data: {\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":", id, ",\"delta\":");
    write::string(out, input);
    put!(out, "}\n\n");
}

/// Writes the end of a call's input.
pub(crate) fn input_end(out: &mut Vec<u8>, id: &str) {
    put!(out, "data: {\"type\":\"TOOL_CALL_END\",\"toolCallId\":", id, "}\n\n");
}

/// Writes the start of a run.
pub(crate) fn start(out: &mut Vec<u8>, session: &str) {
    put!(out, "data: {\"type\":\"RUN_STARTED\",\"threadId\":", session, ",\"runId\":\"r\"}\n\n");
    snapshot(out, session);
}

/// Writes the known facts on the session.
pub(crate) fn snapshot(out: &mut Vec<u8>, session: &str) {
    put!(out, "data: {\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"add\",\"path\":\"/session\",");
    put!(out, "\"value\":{\"id\":", session, "}}]}\n\n");
}
