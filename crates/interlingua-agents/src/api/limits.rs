//! What a turn may use, and what it has used.

use interlingua::event::{Cost, Scope, TurnEnded, Usage};
use interlingua::json::Text;

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

impl Limits {
    /// The limit that does not allow another request, for the user.
    pub(crate) fn exceeded(&self, requests: u64, spent: &Spent) -> Option<String> {
        if let Some(limit) = self.requests.filter(|limit| requests >= *limit) {
            return Some(format!("the turn needs more than {limit} requests to the model"));
        }
        let tokens = spent.tokens();
        if let Some(limit) = self.tokens.filter(|limit| tokens >= *limit) {
            return Some(format!("the turn has used {tokens} tokens, and the limit is {limit}"));
        }
        let cost = spent.cost.unwrap_or(0.0);
        if let Some(limit) = self.cost_usd.filter(|limit| cost >= *limit) {
            return Some(format!("the turn has cost ${cost:.4}, and the limit is ${limit}"));
        }
        None
    }
}

/// What a turn has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spent {
    by_model: Vec<Usage<'static>>,
    /// The cost, as long as the price of every request is known.
    cost: Option<f64>,
    unknown_cost: bool,
}

impl Spent {
    /// Adds what a request has used, and what it has cost; `None` if that is not known.
    pub(crate) fn add(&mut self, model: &str, usage: &Usage<'_>, usd: Option<f64>) {
        self.add_cost(usd);
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

    fn add_cost(&mut self, usd: Option<f64>) {
        match usd {
            Some(usd) => self.cost = Some(self.cost.unwrap_or(0.0) + usd),
            None => self.unknown_cost = true,
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
        ended.cost = self.cost.filter(|_| !self.unknown_cost).map(|usd| Cost {
            scope: Scope::Turn,
            usd,
            estimated: true,
            ..Cost::default()
        });
    }
}
