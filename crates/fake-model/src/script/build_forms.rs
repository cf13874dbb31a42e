//! Builds what only an API agent of our own is tested with: failures, odd forms, signatures.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Call, ChatForm, Ending, Failure, FailureClass, GeminiForm, MessagesForm, Part, RawAnswer,
    Reply, ResponsesForm, Script, Sending,
};

impl Script {
    /// Also finds what only a strict reading of the APIs refuses; the README lists it.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Lets every request take a reply, also those without tools.
    #[must_use]
    pub fn without_side_requests(mut self) -> Self {
        self.side_requests = false;
        self
    }
}

impl Failure {
    /// An error of a class, with the status, the body and the headers of each API.
    #[must_use]
    pub fn new(class: FailureClass) -> Self {
        Self { class, message: None, retry_after: None, retry_after_ms: None, should_retry: None }
    }
}

impl Reply {
    /// A reply whose text is a JSON value, for structured output.
    #[must_use]
    pub fn json(value: Value) -> Self {
        let mut reply = Self::new();
        reply.parts.push(Part::Json(value));
        reply
    }

    /// An HTTP error of a class.
    #[must_use]
    pub fn failure(class: FailureClass) -> Self {
        Self { failure: Some(Failure::new(class)), ..Self::default() }
    }

    /// Any status, headers and body.
    #[must_use]
    pub fn raw(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let headers: BTreeMap<String, String> = headers.collect();
        let raw = RawAnswer { status, headers, body: body.to_owned() };
        Self { raw: Some(raw), ..Self::default() }
    }

    /// A page of HTML with the status 200, as a proxy sends it.
    #[must_use]
    pub fn html() -> Self {
        let page = "<!DOCTYPE html>\n<html><body><h1>Sign in</h1></body></html>\n";
        Self::raw(200, &[("content-type", "text/html; charset=utf-8")], page)
    }

    /// A stream with the status 200 and no events.
    #[must_use]
    pub fn empty_body() -> Self {
        Self::raw(200, &[("content-type", "text/event-stream; charset=utf-8")], "")
    }

    /// An empty `STOP` of Gemini: no content at all. The other protocols send an empty answer.
    #[must_use]
    pub fn empty_stop() -> Self {
        Self::new().gemini(GeminiForm { without_last_content: true, ..GeminiForm::default() })
    }

    /// The `finishReason` `MALFORMED_FUNCTION_CALL` of Gemini. The other protocols send an empty
    /// answer.
    #[must_use]
    pub fn malformed_call(message: &str) -> Self {
        Self::new().gemini(GeminiForm {
            finish_reason: Some("MALFORMED_FUNCTION_CALL".to_owned()),
            finish_message: Some(message.to_owned()),
            without_last_content: true,
            ..GeminiForm::default()
        })
    }

    /// Adds a block of reasoning whose text is hidden.
    #[must_use]
    pub fn then_redacted_reasoning(mut self) -> Self {
        self.parts.push(Part::RedactedReasoning);
        self
    }

    /// Adds a delta of the text with which the model refuses.
    #[must_use]
    pub fn then_refusal(mut self, text: &str) -> Self {
        self.parts.push(Part::Refusal(text.to_owned()));
        self
    }

    /// Adds a checkpoint: Gemini sends a `continuationToken`.
    #[must_use]
    pub fn then_checkpoint(mut self) -> Self {
        self.parts.push(Part::Checkpoint);
        self
    }

    /// Splits the input of the call that was added last at these byte positions.
    #[must_use]
    pub fn split_arguments(self, positions: &[usize]) -> Self {
        self.sending(|sending| sending.split_arguments = Some(positions.to_vec()))
    }

    /// Sends only half of the input of the call that was added last; combine it with
    /// [`Stop::Length`](super::Stop::Length).
    #[must_use]
    pub fn truncated_call(self) -> Self {
        self.sending(|sending| sending.truncated = true)
    }

    /// Sends this text as the input of the call that was added last.
    #[must_use]
    pub fn raw_arguments(self, text: &str) -> Self {
        self.sending(|sending| sending.raw_arguments = Some(text.to_owned()))
    }

    fn sending(mut self, change: impl FnOnce(&mut Sending)) -> Self {
        if let Some(Part::Call(Call::Raw { sending, .. } | Call::Action { sending, .. })) =
            self.parts.iter_mut().rev().find(|part| matches!(part, Part::Call(_)))
        {
            change(sending);
        }
        self
    }

    /// Reports that this many of the input tokens were written to the cache.
    #[must_use]
    pub fn cache_write(mut self, tokens: u64) -> Self {
        self.usage.cache_write = tokens;
        self
    }

    /// Reports no counts at all.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.without_usage = true;
        self
    }

    /// Answers with one JSON value although a stream was requested.
    #[must_use]
    pub fn whole_json(mut self) -> Self {
        self.whole_json = true;
        self
    }

    /// Holds the answer back, head included, until the test opens the gate.
    #[must_use]
    pub fn hold(mut self, gate: &str) -> Self {
        self.hold = Some(gate.to_owned());
        self
    }

    /// Ends the stream with an error event of a class in place of its last event.
    #[must_use]
    pub fn failure_in_stream(mut self, class: FailureClass) -> Self {
        self.ending = Ending::Failure(Failure::new(class));
        self
    }

    /// Ends at the last checkpoint with the `finishReason` `CONTINUATION` of Gemini.
    #[must_use]
    pub fn continued(mut self) -> Self {
        self.ending = Ending::Continuation;
        self
    }

    /// Answers the first request that continues the reply with an HTTP error of a class.
    #[must_use]
    pub fn continuation_failure(mut self, class: FailureClass) -> Self {
        self.continuation_failure = Some(Failure::new(class));
        self
    }

    /// Sets the header `retry-after-ms` of the failure.
    #[must_use]
    pub fn retry_after_ms(mut self, milliseconds: u64) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.retry_after_ms = Some(milliseconds);
        }
        self
    }

    /// Sets the header `x-should-retry` of the failure.
    #[must_use]
    pub fn should_retry(mut self, retry: bool) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.should_retry = Some(retry);
        }
        self
    }

    /// Sets the variants of Anthropic Messages.
    #[must_use]
    pub fn messages(mut self, form: MessagesForm) -> Self {
        self.messages = form;
        self
    }

    /// Sets the variants of OpenAI Responses.
    #[must_use]
    pub fn responses(mut self, form: ResponsesForm) -> Self {
        self.responses = form;
        self
    }

    /// Sets the variants of Chat Completions.
    #[must_use]
    pub fn chat(mut self, form: ChatForm) -> Self {
        self.chat = form;
        self
    }

    /// Sets the variants of Gemini.
    #[must_use]
    pub fn gemini(mut self, form: GeminiForm) -> Self {
        self.gemini = form;
        self
    }
}
