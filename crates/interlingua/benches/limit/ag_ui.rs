//! The records of `ag-ui`, as the limits write them.

use interlingua::json::write;

use super::put;

/// What a limit has to know from one record to the next.
#[derive(Default)]
pub(crate) struct Run {
    steps: u64,
    messages: u64,
    in_text: bool,
    in_step: bool,
    /// What comes next is of another step.
    step_is_over: bool,
}

impl Run {
    /// Ends the step.
    fn end_step(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_step) {
            self.step(out, "STEP_FINISHED");
        }
    }

    /// Notes that what comes next is of another step.
    pub(crate) fn step_is_over(&mut self) {
        self.step_is_over = true;
    }

    /// Begins a step with the first thing that is said in it.
    fn begin_step(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.step_is_over) {
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

    /// Begins a text.
    pub(crate) fn begin_text(&mut self, out: &mut Vec<u8>) {
        self.begin_step(out);
        self.in_text = true;
        self.messages += 1;
        self.part(out, "TEXT_MESSAGE_START", "\",\"role\":\"assistant\"}\n\n");
    }

    /// The next piece of a text.
    pub(crate) fn piece(&mut self, out: &mut Vec<u8>, text: &str) {
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

    /// Begins a call.
    pub(crate) fn call(&mut self, out: &mut Vec<u8>, id: &str, tool: &str) {
        self.begin_step(out);
        put!(out, "data: {\"type\":\"TOOL_CALL_START\",\"toolCallId\":", id);
        put!(out, ",\"toolCallName\":", tool, "}\n\n");
    }

    /// What a call gave back: a message of its own, which the protocol wants an id for.
    pub(crate) fn answer(&mut self, out: &mut Vec<u8>, id: &str, output: &str) {
        self.messages += 1;
        self.part(out, "TOOL_CALL_RESULT", "\",\"toolCallId\":");
        put!(out, id, ",\"content\":", output, ",\"role\":\"tool\",\"metadata\":{");
        put!(out, "\"status\":\"completed\"}}\n\n");
    }

    /// The end of the run.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>, session: &str) {
        self.end_step(out);
        put!(out, "data: {\"type\":\"RUN_FINISHED\",\"threadId\":", session, ",\"runId\":\"r\"");
        put!(out, ",\"outcome\":{\"type\":\"success\"}}\n\n");
    }
}

/// A piece of a call's input, as a literal.
pub(crate) fn input_piece(out: &mut Vec<u8>, id: &str, text: &str) {
    put!(out, "data: {\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":", id);
    put!(out, ",\"delta\":", text, "}\n\n");
}

/// All of a call's input.
pub(crate) fn input(out: &mut Vec<u8>, id: &str, input: &str) {
    put!(out, "data: {\"type\":\"TOOL_CALL_ARGS\",\"toolCallId\":", id, ",\"delta\":");
    write::string(out, input);
    put!(out, "}\n\n");
}

/// That a call's input is over.
pub(crate) fn input_end(out: &mut Vec<u8>, id: &str) {
    put!(out, "data: {\"type\":\"TOOL_CALL_END\",\"toolCallId\":", id, "}\n\n");
}

/// The start of a run.
pub(crate) fn start(out: &mut Vec<u8>, session: &str) {
    put!(out, "data: {\"type\":\"RUN_STARTED\",\"threadId\":", session, ",\"runId\":\"r\"}\n\n");
    snapshot(out, session);
}

/// What is known of the session.
pub(crate) fn snapshot(out: &mut Vec<u8>, session: &str) {
    put!(out, "data: {\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"add\",\"path\":\"/session\",");
    put!(out, "\"value\":{\"id\":", session, "}}]}\n\n");
}
