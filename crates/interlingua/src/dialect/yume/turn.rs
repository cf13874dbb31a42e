//! What the end of a turn has to know of all that was said in it.

use super::LINE_LIMIT;
use super::pieces::{self, Piece};
use crate::dialect::content;
use crate::event::{Retry, Scope, TurnEnded, Usage, own_usage};
use crate::json::Text;
use crate::json::write::Bytes;

/// The turn at hand.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// How many characters were asked and said, to estimate tokens by where none were counted.
    asked: usize,
    said: usize,
    /// Blocks of text, other than that anything.
    texts: u64,
    others: u64,
    last_text: LastText,
    /// What the requests to the model used, as far as the agent has counted them one by one.
    requests: Option<Usage<'static>>,
    /// The errors that were told in records of their own.
    told: Vec<Text<'static>>,
    retries: Vec<Text<'static>>,
    interrupted: Interrupted,
}

/// Whether somebody stopped the turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Interrupted {
    #[default]
    No,
    /// And nothing was said since.
    Stopped,
    /// And the agent went on.
    WentOn,
}

/// The last text that the agent itself said, as long as it could be part of a line.
#[derive(Debug, Clone, Default)]
struct LastText {
    block: Option<u64>,
    /// The body of a string literal.
    body: Bytes,
    too_long: bool,
}

/// How many retries are kept for the end of the turn.
const RETRIES_KEPT: usize = 100;

impl Turn {
    /// Notes what the user said.
    pub(super) fn asked(&mut self, text: &Text<'_>) {
        self.asked += pieces::whole(text).characters();
    }

    /// Notes what the agent said to itself, or what a sub-agent said.
    #[inline]
    pub(super) fn said_aside(&mut self, text: &Text<'_>) {
        self.goes_on();
        self.others += 1;
        self.said += pieces::whole(text).characters();
    }

    /// Notes what the agent said.
    #[inline]
    pub(super) fn said(&mut self, block: u64, text: &Text<'_>) {
        self.goes_on();
        let piece = pieces::whole(text);
        self.said += piece.characters();
        let last = &mut self.last_text;
        if last.block != Some(block) {
            self.texts += 1;
            last.block = Some(block);
            last.too_long = false;
            last.body.clear();
        }
        last.too_long |= last.body.len() + piece.encoded_length() > LINE_LIMIT;
        if !last.too_long {
            piece.write_body(&mut last.body);
        }
    }

    /// Notes that a tool was called.
    pub(super) fn called(&mut self) {
        self.goes_on();
        self.others += 1;
    }

    /// Notes what a request to the model used.
    pub(super) fn used(&mut self, usage: &Usage<'_>) {
        if usage.scope == Scope::Request {
            let so_far = self.requests.take().unwrap_or_default();
            self.requests = Some(own_usage(so_far.plus(usage)));
        }
    }

    /// What the requests used that the agent has counted: all of them, or the last.
    pub(super) fn requests(&self) -> Option<&Usage<'static>> {
        self.requests.as_ref()
    }

    /// Notes that somebody stopped the turn; false where that was known.
    pub(super) fn interrupted(&mut self) -> bool {
        let news = self.interrupted == Interrupted::No;
        if news {
            self.interrupted = Interrupted::Stopped;
        }
        news
    }

    /// Whether the turn was stopped and nothing was said since.
    pub(super) fn was_stopped(&self) -> bool {
        self.interrupted == Interrupted::Stopped
    }

    fn goes_on(&mut self) {
        if self.interrupted == Interrupted::Stopped {
            self.interrupted = Interrupted::WentOn;
        }
    }

    /// Notes a retry, for which this dialect has no record; false where too many are kept already.
    pub(super) fn retried(&mut self, retry: &Retry<'_>) -> bool {
        if self.retries.len() >= RETRIES_KEPT {
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

    /// Whether an error is news; from now on it is none.
    pub(super) fn is_news(&mut self, message: &Text<'_>) -> bool {
        let news = !self.told.contains(message);
        if news {
            self.told.push(message.clone().into_owned());
        }
        news
    }

    /// Whether any error was told.
    pub(super) fn told_any(&self) -> bool {
        !self.told.is_empty()
    }

    /// Whether there was no response, other than the error itself, which some agents also say.
    pub(super) fn no_response_but(&self, message: &Text<'_>) -> bool {
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
        Piece::Escaped(std::str::from_utf8(&last.body).ok()?).write(&mut literal);
        serde_json::from_slice::<String>(&literal).ok().map(Text::from)
    }

    /// All that went wrong: what the end tells, the retries it leaves out, and the cause.
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

    /// The tokens that were read and written, estimated by the number of characters.
    pub(super) fn estimate(&self) -> (u64, u64) {
        let tokens = |characters: usize| characters.div_ceil(CHARACTERS_OF_A_TOKEN).max(1) as u64;
        (tokens(self.asked), tokens(self.said))
    }
}

/// How many characters a token has, more or less.
const CHARACTERS_OF_A_TOKEN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_is_that_of_the_last_block() {
        let mut turn = Turn::default();
        turn.said(0, &Text::plain("one"));
        turn.said(3, &Text::plain("t\"w"));
        turn.said(3, &Text::plain("o"));
        assert_eq!(turn.last_text(), Some(Text::plain("t\"wo")));
        assert_eq!(turn.estimate(), (1, 2));
    }

    #[test]
    fn an_estimate_counts_characters_and_not_bytes() {
        let mut turn = Turn::default();
        turn.asked(&Text::plain("éééé éééé"));
        turn.said(0, &Text::plain("日本語日本語日本"));
        assert_eq!(turn.estimate(), (3, 2));
    }

    #[test]
    fn a_text_that_fits_no_line_is_not_kept() {
        let mut turn = Turn::default();
        let long = "x".repeat(LINE_LIMIT - 10);
        turn.said(0, &Text::plain(&long));
        assert!(turn.last_text().is_some());
        turn.said(0, &Text::plain("more than fits"));
        assert_eq!(turn.last_text(), None);
    }

    #[test]
    fn an_error_that_is_also_said_is_no_response() {
        let mut turn = Turn::default();
        let error = Text::plain("Not logged in");
        assert!(turn.no_response_but(&error));
        turn.said(0, &error);
        assert!(turn.no_response_but(&error));
        assert!(!turn.no_response_but(&Text::plain("another error")));
        turn.called();
        assert!(!turn.no_response_but(&error));
    }

    #[test]
    fn a_retry_says_all_that_is_known_of_it() {
        let retry = Retry {
            attempt: Some(1),
            of: Some(2),
            delay_ms: Some(500),
            http_status: Some(429),
            ..Retry::default()
        };
        let words =
            "a request failed (unknown, HTTP status 429); attempt 1 of 2 follows after 500 ms";
        assert_eq!(content::retry_in_words(&retry), words);
    }

    #[test]
    fn retries_and_the_cause_are_told_once() {
        let mut turn = Turn::default();
        let message = Some(Text::plain("busy"));
        turn.retried(&Retry { message, ..Retry::default() });
        turn.retried(&Retry { http_status: Some(529), ..Retry::default() });
        let ended = TurnEnded {
            errors: vec![Text::plain("busy"), Text::plain("gone")],
            cause: Some(Text::plain("gone")),
            ..TurnEnded::default()
        };
        let errors: Vec<String> = turn.errors(&ended).iter().map(ToString::to_string).collect();
        let in_words = "a request failed (unknown, HTTP status 529); another attempt follows";
        assert_eq!(errors, [in_words, "busy", "gone"]);
    }
}
