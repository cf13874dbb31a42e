//! Tokens, money and limits, each with what it counts.

use super::open::open_enum;
use super::payload::{owned, payload};
use crate::json::{Json, Text};

payload! {
    /// Tokens. A count that is not known is absent.
    pub struct Usage<'a> {
        /// What the counts are counts of.
        pub scope: Scope,
        /// The model, where the counts are of one.
        pub model: Option<Text<'a>>,
        /// Tokens read that came from no cache and went to none.
        pub input: Option<u64>,
        /// Tokens read from a cache.
        pub cache_read: Option<u64>,
        /// Tokens read and put into a cache.
        pub cache_write: Option<u64>,
        /// Tokens written.
        pub output: Option<u64>,
        /// Those of them that were reasoning, where the agent says so.
        pub reasoning: Option<u64>,
        /// All tokens, where the agent says so.
        pub total: Option<u64>,
        /// The counts are an estimate.
        pub estimated: bool,
    }
}

impl Usage<'_> {
    /// All tokens read, cached or not; `None` where none of them is known.
    pub fn input_total(&self) -> Option<u64> {
        add(add(self.input, self.cache_read), self.cache_write)
    }

    /// All tokens that were counted, whatever they were.
    pub fn all(&self) -> u64 {
        let counted = add(self.input_total(), self.output).unwrap_or(0);
        counted.max(self.total.unwrap_or(0))
    }

    /// The counts as numbers, in one order: for arithmetic on all of them.
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

    /// What was added since an earlier count; a count that fell was started anew.
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

    /// Both counts together.
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
    /// Money.
    pub struct Cost<'a> {
        /// What the amount is the price of.
        pub scope: Scope,
        /// How much, in US dollars.
        pub usd: f64,
        /// The model, where the price is of one.
        pub model: Option<Text<'a>>,
        /// The amount is an estimate.
        pub estimated: bool,
    }
}

payload! {
    /// A limit of the account.
    pub struct Limit<'a> {
        /// Its name, in the agent's word.
        pub name: Option<Text<'a>>,
        /// How it stands, in the agent's word.
        pub status: Option<Text<'a>>,
        /// When it is lifted, as the agent wrote it.
        pub resets_at: Option<Json<'a>>,
        /// All that the agent says of it.
        pub details: Option<Json<'a>>,
    }
}

open_enum! {
    /// What a count counts.
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
