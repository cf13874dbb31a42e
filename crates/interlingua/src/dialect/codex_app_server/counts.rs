//! Counts tokens: the agent reports sums for the thread, and every turn gets its own part.
//!
//! A resumed thread first reports its earlier usage. The next turn counts from there. Repeated
//! counts are ignored.

use super::wire::{Counts, TokenUsage};
use crate::event::{Scope, Usage, own_usage};

/// The usage of a thread.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// The usage before the current turn; `None` if the thread is older than the stream and did not
    /// report it.
    before: Option<Usage<'static>>,
    /// The usage so far, if the current turn has used anything.
    now: Option<Usage<'static>>,
    /// The number of requests in the current turn.
    requests: u64,
}

impl Counter {
    /// The counter of a thread that has used nothing yet.
    pub(super) fn of_new_thread() -> Self {
        Self { before: Some(Usage::default()), ..Self::default() }
    }

    /// Sets the usage before the current turn.
    pub(super) fn set_history(&mut self, usage: &TokenUsage<'_>) {
        if let Some(total) = usage.total.as_ref().and_then(|total| usage_of(total, Scope::Session))
        {
            self.before = Some(own_usage(total));
        }
    }

    /// Records the usage in the current turn; returns that of the last request, unless the counts
    /// are repeated.
    pub(super) fn record(&mut self, usage: &TokenUsage<'_>) -> Option<Usage<'static>> {
        let total = own_usage(usage_of(usage.total.as_ref()?, Scope::Session)?);
        if self.now.as_ref().or(self.before.as_ref()) == Some(&total) {
            return None;
        }
        self.now = Some(total);
        self.requests += 1;
        last_request(usage)
    }

    /// Records a request that was interrupted, for which the agent reports no tokens.
    pub(super) fn record_interrupted_request(&mut self) {
        self.requests += 1;
    }

    /// Ends a turn; returns its usage and the number of its requests.
    pub(super) fn end_turn(&mut self) -> (Option<Usage<'static>>, u64) {
        let used = self.now.take().map(|now| match self.before.replace(now.clone()) {
            Some(before) => Usage { scope: Scope::Turn, ..now.since(&before) },
            // The caller may know the usage before the stream.
            None => now,
        });
        (used, std::mem::take(&mut self.requests))
    }
}

/// The usage of the last request.
pub(super) fn last_request(usage: &TokenUsage<'_>) -> Option<Usage<'static>> {
    usage.last.as_ref().and_then(|last| usage_of(last, Scope::Request)).map(own_usage)
}

/// Converts counts of tokens. If the conversation is too long for the model, all counts but the
/// total are zero, and the total is the limit of the model: nothing was counted.
fn usage_of<'a>(counts: &Counts<'a>, scope: Scope) -> Option<Usage<'a>> {
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
