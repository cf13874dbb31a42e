//! Requests for a summary of what is older, and what follows those that fail.

use interlingua::event::ErrorClass;

use super::{AgentLoop, LoopSettings, Next};
use crate::api::compaction::{LONGEST, SHORTEST, SYSTEM};
use crate::api::failure::Failure;
use crate::api::history::{Item, Part, Record};
use crate::api::model::RequestSettings;

/// What is added if the model takes no request for a summary either.
const NO_SUMMARY: &str =
    " (--compact could not summarise it: even a short excerpt exceeds the context window)";

/// How often a request for a summary is made of half as much.
const SHORTENINGS: u32 = (LONGEST / SHORTEST).ilog2() + 1;

/// A request for a summary that is sent again, and is made of less.
#[derive(Debug)]
pub(crate) struct Shortening {
    /// Why the summary is needed.
    pub(crate) overflow: Failure,
    /// Why the request for it failed.
    pub(crate) failure: Failure,
    /// How much of the conversation is left out, in bytes.
    pub(crate) left_out: usize,
    /// The number of the attempt, and of how many.
    pub(crate) attempt: u32,
    pub(crate) of: u32,
}

impl AgentLoop {
    /// The body of a request for a summary of what is older; `None` if there is nothing.
    pub(crate) fn summary_body(&self) -> Option<String> {
        let text = self.history.to_summarise(self.longest_excerpt())?.text;
        let LoopSettings { model, session, max_tokens, .. } = &self.settings;
        let messages = self.api.messages(&Item::User(vec![Part::Text(text)]), None, model);
        let settings = RequestSettings {
            model,
            system: SYSTEM,
            tools: &[],
            max_tokens: *max_tokens,
            effort: None,
            session,
            continuation: None,
            rejected: &self.rejected,
        };
        Some(self.api.body(&messages, &settings))
    }

    fn longest_excerpt(&self) -> usize {
        self.turn.longest_excerpt.unwrap_or(LONGEST)
    }

    pub(super) fn forget_shortenings(&mut self) {
        (self.turn.shortenings, self.turn.longest_excerpt) = (0, None);
    }

    /// How much of the conversation a summary leaves out, in bytes.
    pub(crate) fn left_out_of_summary(&self) -> usize {
        self.history.to_summarise(self.longest_excerpt()).map_or(0, |excerpt| excerpt.left_out)
    }

    /// Replaces what is older by a summary.
    pub(crate) fn compacted(&mut self, summary: &str) -> Next {
        self.turn.attempt = 1;
        self.forget_shortenings();
        self.history.record(Record::Compacted(summary.to_owned()));
        self.forget_messages();
        self.unless_limited(Next::Request)
    }

    /// The request for a summary failed, which an overflow had made necessary.
    pub(crate) fn summary_failed(
        &mut self,
        failure: &Failure,
        overflow: Failure,
        jitter: f64,
    ) -> Next {
        if failure.class == ErrorClass::ContextOverflow {
            let next = self.shorten(failure, overflow);
            return self.unless_limited(next);
        }
        match self.next_attempt(failure, jitter) {
            Some(retry) => self.unless_limited(Next::Retry(retry)),
            None => Next::Fail(overflow),
        }
    }

    /// The request for a summary exceeds the context window, too: the next one is made of half as much.
    fn shorten(&mut self, failure: &Failure, mut overflow: Failure) -> Next {
        let sent = self.history.to_summarise(self.longest_excerpt());
        let sent = sent.map_or(0, |excerpt| excerpt.text.len());
        if self.turn.shortenings == SHORTENINGS || sent <= SHORTEST {
            overflow.message.push_str(NO_SUMMARY);
            return Next::Fail(overflow);
        }
        self.turn.shortenings += 1;
        self.turn.longest_excerpt = Some(sent / 2);
        self.turn.attempt = 1;
        Next::Shorten(Box::new(Shortening {
            overflow,
            failure: failure.clone(),
            left_out: self.left_out_of_summary(),
            attempt: self.turn.shortenings + 1,
            of: SHORTENINGS + 1,
        }))
    }
}
