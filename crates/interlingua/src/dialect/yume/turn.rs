//! What the records at the end of a turn need to know about the turn. It knows no record.

use super::LINE_LIMIT;
use super::chunks::{self, Chunk};
use crate::dialect::content;
use crate::event::{Retry, Scope, TurnEnded, Usage, own_usage};
use crate::json::Text;
use crate::json::write::Bytes;

/// The current turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// The characters of the prompt and of the output, from which uncounted tokens are estimated.
    prompt_characters: usize,
    output_characters: usize,
    /// The number of blocks of text, and of everything else in the response.
    texts: u64,
    others: u64,
    last_text: LastText,
    /// The usage of the requests, if the agent counts each of them.
    requests: Option<Usage<'static>>,
    /// The errors that were written as records.
    reported: Vec<Text<'static>>,
    retries: Vec<Text<'static>>,
    interrupted: Interrupted,
}

/// Whether the turn was interrupted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Interrupted {
    #[default]
    No,
    /// It was interrupted, and no output followed.
    Yes,
    /// It was interrupted, and the agent continued.
    Continued,
}

/// The last text of the main agent, if it fits a line.
#[derive(Debug, Clone, Default)]
struct LastText {
    block: Option<u64>,
    /// The body of a string literal.
    body: Bytes,
    too_long: bool,
}

/// The number of retries that are kept for the end of the turn.
const MAX_RETRIES: usize = 100;

impl Turn {
    /// Notes a message of the user.
    pub(super) fn note_prompt(&mut self, text: &Text<'_>) {
        self.prompt_characters += chunks::as_chunk(text).characters();
    }

    /// Notes reasoning, or text of a sub-agent.
    #[inline]
    pub(super) fn note_other_text(&mut self, text: &Text<'_>) {
        self.note_activity();
        self.others += 1;
        self.output_characters += chunks::as_chunk(text).characters();
    }

    /// Notes text of the main agent.
    #[inline]
    pub(super) fn note_text(&mut self, block: u64, text: &Text<'_>) {
        self.note_activity();
        let chunk = chunks::as_chunk(text);
        self.output_characters += chunk.characters();
        let last = &mut self.last_text;
        if last.block != Some(block) {
            self.texts += 1;
            last.block = Some(block);
            last.too_long = false;
            last.body.clear();
        }
        last.too_long |= last.body.len() + chunk.encoded_length() > LINE_LIMIT;
        if !last.too_long {
            chunk.write_body(&mut last.body);
        }
    }

    /// Notes a tool call.
    pub(super) fn note_call(&mut self) {
        self.note_activity();
        self.others += 1;
    }

    /// Notes the usage of a request.
    pub(super) fn note_usage(&mut self, usage: &Usage<'_>) {
        if usage.scope == Scope::Request {
            let so_far = self.requests.take().unwrap_or_default();
            self.requests = Some(own_usage(so_far.plus(usage)));
        }
    }

    /// The sum of the usage that the agent stated for single requests.
    pub(super) fn requests(&self) -> Option<&Usage<'static>> {
        self.requests.as_ref()
    }

    /// Notes that the turn was interrupted; returns `false` if that was known.
    pub(super) fn note_interrupt(&mut self) -> bool {
        let is_new = self.interrupted == Interrupted::No;
        if is_new {
            self.interrupted = Interrupted::Yes;
        }
        is_new
    }

    /// Whether the turn was interrupted and no output followed.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted == Interrupted::Yes
    }

    fn note_activity(&mut self) {
        if self.interrupted == Interrupted::Yes {
            self.interrupted = Interrupted::Continued;
        }
    }

    /// Notes a retry, for which this dialect has no record; returns `false` if too many are kept.
    pub(super) fn note_retry(&mut self, retry: &Retry<'_>) -> bool {
        if self.retries.len() >= MAX_RETRIES {
            return false;
        }
        let text = match &retry.message {
            Some(message) => message.clone().into_owned(),
            None => Text::from(content::retry_in_words(retry)),
        };
        if self.retries.last() != Some(&text) {
            self.retries.push(text);
        }
        true
    }

    /// Notes an error; returns whether it is a new one.
    pub(super) fn note_error(&mut self, message: &Text<'_>) -> bool {
        let is_new = !self.reported.contains(message);
        if is_new {
            self.reported.push(message.clone().into_owned());
        }
        is_new
    }

    /// Whether any error was written.
    pub(super) fn has_errors(&self) -> bool {
        !self.reported.is_empty()
    }

    /// Whether there was no response except the error itself, which some agents also write as text.
    pub(super) fn has_no_response_except(&self, message: &Text<'_>) -> bool {
        self.others == 0
            && (self.texts == 0 || (self.texts == 1 && self.last_text() == Some(message.clone())))
    }

    /// Whether the last text was too long to keep.
    pub(super) fn last_text_is_too_long(&self) -> bool {
        self.last_text.too_long
    }

    /// The last text, unless it was too long to keep.
    pub(super) fn last_text(&self) -> Option<Text<'_>> {
        let last = &self.last_text;
        if last.block.is_none() || last.too_long {
            return None;
        }
        let mut literal = Bytes::with_capacity(last.body.len() + 2);
        Chunk::Escaped(std::str::from_utf8(&last.body).ok()?).write(&mut literal);
        serde_json::from_slice::<String>(&literal).ok().map(Text::from)
    }

    /// All errors of the turn: the retries, the errors that its end states, and the cause.
    pub(super) fn errors<'t>(&'t self, ended: &'t TurnEnded<'_>) -> Vec<&'t Text<'t>> {
        let mut errors: Vec<&Text<'t>> =
            self.retries.iter().filter(|retry| !ended.errors.contains(retry)).collect();
        for error in ended.errors.iter().chain(&ended.cause) {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
        errors
    }

    /// The input and output tokens, estimated from the number of characters.
    pub(super) fn estimate(&self) -> (u64, u64) {
        let tokens = |characters: usize| characters.div_ceil(CHARACTERS_PER_TOKEN).max(1) as u64;
        (tokens(self.prompt_characters), tokens(self.output_characters))
    }
}

/// The approximate number of characters in a token.
const CHARACTERS_PER_TOKEN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_is_that_of_the_last_block() {
        let mut turn = Turn::default();
        turn.note_text(0, &Text::plain("one"));
        turn.note_text(3, &Text::plain("t\"w"));
        turn.note_text(3, &Text::plain("o"));
        assert_eq!(turn.last_text(), Some(Text::plain("t\"wo")));
        assert_eq!(turn.estimate(), (1, 2));
    }

    #[test]
    fn an_estimate_counts_characters_and_not_bytes() {
        let mut turn = Turn::default();
        turn.note_prompt(&Text::plain("éééé éééé"));
        turn.note_text(0, &Text::plain("日本語日本語日本"));
        assert_eq!(turn.estimate(), (3, 2));
    }

    #[test]
    fn a_text_that_does_not_fit_a_line_is_not_kept() {
        let mut turn = Turn::default();
        let long = "x".repeat(LINE_LIMIT - 10);
        turn.note_text(0, &Text::plain(&long));
        assert!(turn.last_text().is_some());
        turn.note_text(0, &Text::plain("more than fits"));
        assert_eq!(turn.last_text(), None);
    }

    #[test]
    fn an_error_that_is_also_text_is_not_a_response() {
        let mut turn = Turn::default();
        let error = Text::plain("Not logged in");
        assert!(turn.has_no_response_except(&error));
        turn.note_text(0, &error);
        assert!(turn.has_no_response_except(&error));
        assert!(!turn.has_no_response_except(&Text::plain("another error")));
        turn.note_call();
        assert!(!turn.has_no_response_except(&error));
    }

    #[test]
    fn a_retry_without_a_message_is_described_in_full() {
        let retry = Retry {
            attempt: Some(1),
            of: Some(2),
            delay_ms: Some(500),
            http_status: Some(429),
            ..Retry::default()
        };
        let message =
            "a request failed (unknown, HTTP status 429); attempt 1 of 2 follows after 500 ms";
        assert_eq!(content::retry_in_words(&retry), message);
    }

    #[test]
    fn retries_and_the_cause_are_listed_once() {
        let mut turn = Turn::default();
        let message = Some(Text::plain("busy"));
        turn.note_retry(&Retry { message, ..Retry::default() });
        turn.note_retry(&Retry { http_status: Some(529), ..Retry::default() });
        let ended = TurnEnded {
            errors: vec![Text::plain("busy"), Text::plain("gone")],
            cause: Some(Text::plain("gone")),
            ..TurnEnded::default()
        };
        let errors: Vec<String> = turn.errors(&ended).iter().map(ToString::to_string).collect();
        let message = "a request failed (unknown, HTTP status 529); another attempt follows";
        assert_eq!(errors, [message, "busy", "gone"]);
    }
}
