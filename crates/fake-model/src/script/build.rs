//! Builds a script in Rust, and parses one from JSON.

use serde_json::Value;

use super::{
    Action, ApiError, AtEnd, Call, Cut, Ending, Part, Reply, Script, Sending, Stop, Usage,
};

impl Script {
    /// A script without replies, for the key `dummy`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a script from JSON in the form that the README of the crate describes.
    ///
    /// # Errors
    /// Describes the error in the JSON and its position.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Adds a reply.
    #[must_use]
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    /// The last reply answers all further requests.
    #[must_use]
    pub fn repeat_last(mut self) -> Self {
        self.at_end = AtEnd::RepeatLast;
        self
    }

    /// The key that the agent was given, if it is not `dummy`.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// Accepts requests with and without a stream; some agents fall back to the latter.
    #[must_use]
    pub fn any_stream(mut self) -> Self {
        self.expect_stream = None;
        self
    }
}

impl Reply {
    /// An empty reply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reply that starts with a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::new().then_text(text)
    }

    /// A reply that starts with a shell command, run by the tool that the agent offers for it.
    #[must_use]
    pub fn shell(command: &str) -> Self {
        Self::new().then_action(Action::Shell { command: command.to_owned() })
    }

    /// A reply that starts with an action.
    #[must_use]
    pub fn action(action: Action) -> Self {
        Self::new().then_action(action)
    }

    /// A reply that starts with a call of the tool `name`, whether it is offered or not.
    #[must_use]
    pub fn call(name: &str, input: Value) -> Self {
        Self::new().then_call(name, input)
    }

    /// An HTTP error.
    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        let error = ApiError { status, message: message.to_owned(), retry_after: None };
        Self { error: Some(error), ..Self::default() }
    }

    /// Reserves the reply for the conversation whose prompt contains this text.
    #[must_use]
    pub fn only_for(mut self, words: &str) -> Self {
        self.only_for = Some(words.to_owned());
        self
    }

    /// Answers all requests with this reply until the test opens the gate.
    #[must_use]
    pub fn until(mut self, gate: &str) -> Self {
        self.until = Some(gate.to_owned());
        self
    }

    /// Adds a delta of reasoning. Adjacent deltas are one block.
    #[must_use]
    pub fn then_reasoning(mut self, text: &str) -> Self {
        self.parts.push(Part::Reasoning(text.to_owned()));
        self
    }

    /// Adds a text delta. Adjacent deltas are one block, even with a gate between them.
    #[must_use]
    pub fn then_text(mut self, text: &str) -> Self {
        self.parts.push(Part::Text(text.to_owned()));
        self
    }

    /// Adds a tool call. Several calls of one reply run in parallel.
    #[must_use]
    pub fn then_call(mut self, name: &str, input: Value) -> Self {
        let sending = Sending::default();
        let call = Call::Raw { name: name.to_owned(), input, gate_inside: None, sending };
        self.parts.push(Part::Call(call));
        self
    }

    /// Adds an action. Several actions of one reply run in parallel.
    #[must_use]
    pub fn then_action(mut self, action: Action) -> Self {
        let sending = Sending::default();
        self.parts.push(Part::Call(Call::Action { action, gate_inside: None, sending }));
        self
    }

    /// Waits here until the test opens the gate.
    #[must_use]
    pub fn then_gate(mut self, name: &str) -> Self {
        self.parts.push(Part::Gate(name.to_owned()));
        self
    }

    /// Waits in the middle of the input of the call that was added last.
    #[must_use]
    pub fn gate_inside_call(mut self, gate: &str) -> Self {
        if let Some(Part::Call(Call::Raw { gate_inside, .. } | Call::Action { gate_inside, .. })) =
            self.parts.iter_mut().rev().find(|part| matches!(part, Part::Call(_)))
        {
            *gate_inside = Some(gate.to_owned());
        }
        self
    }

    /// Reports these counts.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Usage { input, output, ..self.usage };
        self
    }

    /// Reports that this many of the input tokens were cached.
    #[must_use]
    pub fn cached(mut self, cached: u64) -> Self {
        self.usage.cached = cached;
        self
    }

    /// Reports that this many of the output tokens were reasoning.
    #[must_use]
    pub fn reasoning_tokens(mut self, reasoning: u64) -> Self {
        self.usage.reasoning = reasoning;
        self
    }

    /// Pauses between two deltas.
    #[must_use]
    pub fn delay_ms(mut self, milliseconds: u64) -> Self {
        self.delay_ms = milliseconds;
        self
    }

    /// Sets the reason why the model stopped.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Cuts the connection.
    #[must_use]
    pub fn cut(mut self, cut: Cut) -> Self {
        self.ending = Ending::Cut(cut);
        self
    }

    /// Ends the stream with an error event in place of its last event.
    #[must_use]
    pub fn error_in_stream(mut self, status: u16, message: &str) -> Self {
        self.ending =
            Ending::Error(ApiError { status, message: message.to_owned(), retry_after: None });
        self
    }

    /// Asks the agent to wait this many seconds after the HTTP error.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.retry_after = Some(seconds);
        }
        if let Some(error) = &mut self.error {
            error.retry_after = Some(seconds);
        }
        self
    }
}
