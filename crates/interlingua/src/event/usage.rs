//! Tokens, costs and limits, each with its scope.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// Token counts. An unknown count is absent.
    pub struct Usage<'a> {
        /// The scope of the counts.
        pub scope: Scope,
        /// The model, if the counts are those of one model.
        pub model: Option<Text<'a>>,
        /// Input tokens that were neither read from a cache nor written to one.
        pub input: Option<u64>,
        /// Input tokens read from a cache.
        pub cache_read: Option<u64>,
        /// Input tokens written to a cache.
        pub cache_write: Option<u64>,
        /// Output tokens.
        pub output: Option<u64>,
        /// The output tokens that were reasoning, if the agent reports them.
        pub reasoning: Option<u64>,
        /// The total, if the agent reports it.
        pub total: Option<u64>,
        /// The counts are an estimate.
        pub estimated: bool,
    }
}

impl Usage<'_> {
    /// All input tokens, cached or not; `None` if none of the counts is known.
    pub fn input_total(&self) -> Option<u64> {
        add(add(self.input, self.cache_read), self.cache_write)
    }

    /// The sum of all counted tokens.
    pub fn all(&self) -> u64 {
        let counted = add(self.input_total(), self.output).unwrap_or(0);
        counted.max(self.total.unwrap_or(0))
    }

    /// The counts in a fixed order, for arithmetic on all of them.
    fn counts(&mut self) -> [&mut Option<u64>; 6] {
        [
            &mut self.input,
            &mut self.cache_read,
            &mut self.cache_write,
            &mut self.output,
            &mut self.reasoning,
            &mut self.total,
        ]
    }

    /// The difference to an earlier count. A count that fell was reset, and is taken as it is.
    #[must_use]
    pub fn since(mut self, earlier: &Usage<'_>) -> Self {
        let mut earlier = earlier.clone();
        for (now, before) in self.counts().into_iter().zip(earlier.counts()) {
            if let (Some(now), Some(before)) = (now, *before)
                && *now >= before
            {
                *now -= before;
            }
        }
        self
    }

    /// The sum of both counts.
    #[must_use]
    pub fn plus(mut self, other: &Usage<'_>) -> Self {
        let mut other = other.clone();
        for (one, two) in self.counts().into_iter().zip(other.counts()) {
            *one = add(*one, *two);
        }
        self.estimated |= other.estimated;
        self
    }
}

fn add(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.saturating_add(two)),
        (one, two) => one.or(two),
    }
}

payload! {
    /// A cost.
    pub struct Cost<'a> {
        /// The scope of the cost.
        pub scope: Scope,
        /// The amount in US dollars.
        pub usd: f64,
        /// The model, if the cost is that of one model.
        pub model: Option<Text<'a>>,
        /// The amount is an estimate.
        pub estimated: bool,
    }
}

payload! {
    /// A limit of the account.
    pub struct Limit<'a> {
        /// The limit's name, as the agent gives it.
        pub name: Option<Text<'a>>,
        /// The status, as the agent names it.
        pub status: Option<Text<'a>>,
        /// When the limit resets, as the agent wrote it.
        pub resets_at: Option<Json<'a>>,
        /// The agent's whole report.
        pub details: Option<Json<'a>>,
    }
}

open_enum! {
    /// The scope of a count.
    #[derive(Default)]
    pub enum Scope {
        /// One request to the model.
        Request = "request",
        /// One turn.
        #[default]
        Turn = "turn",
        /// The session so far.
        Session = "session",
    }
}

owned!(Scope);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_stays_unknown() {
        let now = Usage { input: Some(300), output: Some(50), ..Usage::default() };
        let before = Usage { input: Some(100), ..Usage::default() };
        let turn = now.since(&before);
        assert_eq!((turn.input, turn.output, turn.cache_read), (Some(200), Some(50), None));
    }

    #[test]
    fn a_count_that_fell_was_started_anew() {
        let now = Usage { input: Some(10), ..Usage::default() };
        let before = Usage { input: Some(100), ..Usage::default() };
        assert_eq!(now.since(&before).input, Some(10));
    }
}
