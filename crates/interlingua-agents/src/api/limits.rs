//! What a turn may use, and what it has used.

use interlingua::event::{Cost, Scope, TurnEnded, Usage};
use interlingua::json::Text;
use interlingua::price::Prices;

/// The limits of a turn.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// The number of requests to the model.
    pub requests: Option<u64>,
    /// The number of tokens, of all requests together.
    pub tokens: Option<u64>,
    /// The cost in US dollars.
    pub cost_usd: Option<f64>,
}

/// A limit that does not allow another request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// Its name in the end of the turn, which Claude's consumers know.
    pub(crate) reason: &'static str,
    /// What happened, for the user.
    pub(crate) cause: String,
}

impl Limits {
    /// The limit that does not allow another request. `requests` is the number of those that have
    /// been answered.
    pub(crate) fn exceeded(&self, requests: u64, spent: &Spent) -> Option<Exceeded> {
        if let Some(limit) = self.requests.filter(|limit| requests >= *limit) {
            let cause = format!("the turn needs more than {limit} requests to the model");
            return Some(Exceeded { reason: "max_turns", cause });
        }
        let tokens = spent.tokens();
        if let Some(limit) = self.tokens.filter(|limit| tokens >= *limit) {
            let cause = format!("the turn has used {tokens} tokens, and the limit is {limit}");
            return Some(Exceeded { reason: "max_tokens", cause });
        }
        let cost = spent.usd;
        if let Some(limit) = self.cost_usd.filter(|limit| cost >= *limit) {
            let cause = format!("the turn has cost ${cost:.4}, and the limit is ${limit}");
            return Some(Exceeded { reason: "budget_exhausted", cause });
        }
        None
    }

    /// What the user has to know of the cost of a model, at a time in milliseconds since 1970: that
    /// its limit has no effect, or that its price may have changed.
    pub(crate) fn cost_notice(&self, prices: &Prices, model: &str, at: u64) -> Option<String> {
        if prices.rates(model, 0, at).is_none() {
            let limit = self.cost_usd?;
            return Some(format!(
                "the limit of ${limit} cannot be enforced, because the price of {model} is not known: add it to the prices"
            ));
        }
        let stale = prices.stale(model, at)?;
        let source = stale.source_date.map(|date| format!(" (its source is of {date})"));
        Some(format!(
            "the price of {model} was current until {}{}, so its cost is an estimate from an outdated table: use a \
             newer version, or state the price with --prices",
            stale.stale_after,
            source.unwrap_or_default()
        ))
    }
}

/// What a request has cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestCost {
    pub(crate) usd: f64,
    /// It comes from the price table, not from the provider.
    pub(crate) estimated: bool,
}

/// What a turn has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spent {
    by_model: Vec<Usage<'static>>,
    /// The sum of the known costs.
    usd: f64,
    /// The cost of some request is estimated.
    estimated: bool,
    /// The cost of some request is not known.
    unknown: bool,
}

impl Spent {
    /// Adds what a request has used, and what it has cost; `None` if that is not known.
    pub(crate) fn add(&mut self, model: &str, usage: &Usage<'_>, cost: Option<RequestCost>) {
        match cost {
            Some(RequestCost { usd, estimated }) => {
                self.usd += usd;
                self.estimated |= estimated;
            }
            None => self.unknown = true,
        }
        let counts = Usage {
            scope: Scope::Turn,
            model: Some(Text::from(model.to_owned())),
            input: usage.input,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            output: usage.output,
            reasoning: usage.reasoning,
            total: usage.total,
            estimated: usage.estimated,
        };
        match self.by_model.iter_mut().find(|known| known.model == counts.model) {
            Some(known) => *known = std::mem::take(known).plus(&counts),
            None => self.by_model.push(counts),
        }
    }

    fn tokens(&self) -> u64 {
        self.by_model.iter().map(Usage::all).sum()
    }

    /// Adds the counts to the end of the turn.
    pub(crate) fn complete(&self, ended: &mut TurnEnded<'static>) {
        let total = self.by_model.iter().cloned().reduce(|sum, usage| sum.plus(&usage));
        ended.usage = total.map(|usage| Usage { model: None, ..usage });
        ended.by_model = self.by_model.clone();
        // A sum that leaves out a request would be too low.
        let is_known = !self.by_model.is_empty() && !self.unknown;
        ended.cost = is_known.then(|| Cost {
            scope: Scope::Turn,
            usd: self.usd,
            estimated: self.estimated,
            ..Cost::default()
        });
    }
}
