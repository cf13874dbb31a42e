//! Tokens. The agent counts those of a whole thread; a turn is told its own.
//!
//! A thread that is resumed tells first what it had used before. These counts, and those that say
//! nothing new, are where the next turn counts from, and are never counted again.

use super::wire::{Counts, TokenUsage};
use crate::event::{Scope, Usage, own_usage};

/// What a thread has used.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// Up to the turn at hand; `None` where the thread is older than the stream and did not say it.
    before: Option<Usage<'static>>,
    /// Up to now, if the turn at hand has used something.
    now: Option<Usage<'static>>,
    /// The requests of the turn at hand.
    requests: u64,
}

impl Counter {
    /// Counts for a thread that has used nothing yet.
    pub(super) fn fresh() -> Self {
        Self { before: Some(Usage::default()), ..Self::default() }
    }

    /// Takes the counts of the past.
    pub(super) fn take_past(&mut self, usage: &TokenUsage<'_>) {
        if let Some(total) = usage.total.as_ref().and_then(|total| counts(total, Scope::Session)) {
            self.before = Some(own_usage(total));
        }
    }

    /// Takes the counts of a turn that is going on; gives those of the last request, if there was one.
    pub(super) fn take(&mut self, usage: &TokenUsage<'_>) -> Option<Usage<'static>> {
        let total = own_usage(counts(usage.total.as_ref()?, Scope::Session)?);
        if self.now.as_ref().or(self.before.as_ref()) == Some(&total) {
            return None;
        }
        self.now = Some(total);
        self.requests += 1;
        last_request(usage)
    }

    /// Counts a request that was cut off, of which the agent tells no tokens.
    pub(super) fn cut_off(&mut self) {
        self.requests += 1;
    }

    /// Ends a turn; gives what it has used, and in how many requests.
    pub(super) fn end_turn(&mut self) -> (Option<Usage<'static>>, u64) {
        let used = self.now.take().map(|now| match self.before.replace(now.clone()) {
            Some(before) => Usage { scope: Scope::Turn, ..now.since(&before) },
            // The caller may know what came before.
            None => now,
        });
        (used, std::mem::take(&mut self.requests))
    }
}

/// What the last request used.
pub(super) fn last_request(usage: &TokenUsage<'_>) -> Option<Usage<'static>> {
    usage.last.as_ref().and_then(|last| counts(last, Scope::Request)).map(own_usage)
}

/// Tokens. Where the conversation is too long for the model, all counts but the total are zero, and
/// the total is the length that the model allows: these are no counts.
fn counts<'a>(counts: &Counts<'a>, scope: Scope) -> Option<Usage<'a>> {
    let cached = counts.cached.unwrap_or(0).saturating_add(counts.cache_write.unwrap_or(0));
    let usage = Usage {
        scope,
        input: counts.input.map(|input| input.saturating_sub(cached)),
        cache_read: counts.cached,
        cache_write: counts.cache_write,
        output: counts.output,
        reasoning: counts.reasoning,
        ..Usage::default()
    };
    Some(usage).filter(|usage| usage.all() > 0)
}
