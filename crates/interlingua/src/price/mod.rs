//! What requests to models cost.
//!
//! [`Prices`] is a table of prices per million tokens. [`Prices::builtin`] has the public list
//! prices of the widely used models, each with its source, the date of the source and its period
//! of validity; a user can [override](Prices::overridden_by) entries and add others. It knows no
//! clock: the time of a request is an argument.
//!
//! ```
//! use interlingua::event::Usage;
//! use interlingua::price::Prices;
//!
//! let prices = Prices::builtin();
//! let usage = Usage {
//!     input: Some(2_000),
//!     cache_read: Some(50_000),
//!     output: Some(1_000),
//!     ..Usage::default()
//! };
//! let november_17 = 1_794_873_600_000; // milliseconds since 1970
//! let cost = prices.cost("claude-haiku-4-5-20251001", &usage, november_17);
//! assert_eq!(cost, Some(0.012));
//! // The price of an unknown model is not 0.
//! assert_eq!(prices.cost("a-model-of-tomorrow", &usage, november_17), None);
//! ```
//!
//! # What the cost is
//!
//! - The price is the one of the day of the request, and of its hour where a provider has peak
//!   hours.
//! - Some prices depend on the size of the prompt. The whole prompt counts, cached or not, and the
//!   whole request then has that price.
//! - Input that was read from a cache or written to one has its own price, and only that one.
//!   Where a provider charges by the lifetime of the cache, the price of the shortest is taken,
//!   since counts do not tell them apart. Without a price of its own, such input costs what any
//!   input costs.
//! - Reasoning is output, and costs what output costs.
//! - Batches, faster or slower service, and calls of a provider's own tools have other prices, which
//!   the table does not contain.
//!
//! # The table
//!
//! A table is JSON. `{date}` at the end of a name stands for a day, as in
//! `claude-haiku-4-5-20251001` or `gpt-5.4-2026-03-05`; any other name has to be equal. So
//! `anthropic/claude-haiku-4-5`, as a reseller may name it, is another model, with a price that is
//! not known. Both days of a period are included, and `null` means that the source states none.
//!
//! A price without a stated end may change on any day. `stale_after` is the last day on which it
//! counts as current; in the built-in table, every such price has one, 90 days after the date of its
//! source. A stale price is still used, as the best estimate there is, and [`Prices::stale`] reports
//! it. A price whose stated end has passed is not used.
//!
//! ```
//! # use interlingua::price::Prices;
//! # let prices = Prices::read(r#"
//! {
//!   "models": [
//!     {
//!       "names": ["example-1", "example-1-{date}"],
//!       "context_window": 400000,
//!       "largest_output": 128000,
//!       "periods": [
//!         {
//!           "from": null, "until": "2026-11-30",
//!           "source": "https://example.com/prices", "source_date": "2026-11-01",
//!           "rates": {"input": 1, "output": 5, "cache_read": 0.1, "cache_write": 1.25},
//!           "above": [{"tokens": 200000, "rates": {"input": 2, "output": 10}}]
//!         },
//!         {
//!           "from": "2026-12-01", "until": null, "stale_after": "2027-01-30",
//!           "source": "https://example.com/prices", "source_date": "2026-11-01",
//!           "rates": {"input": 3, "output": 15},
//!           "peak": {"hours_utc": [[1, 4]], "rates": {"input": 6, "output": 30}}
//!         }
//!       ]
//!     }
//!   ]
//! }
//! # "#)?;
//! # assert_eq!(prices.window("example-1").unwrap().largest_output, Some(128000));
//! # Ok::<(), interlingua::Error>(())
//! ```

mod date;
mod table;

use crate::error::Error;
use crate::event::Usage;
use table::{Model, Table};

/// The table of the widely used models. Prices and periods are those of the Python package
/// `genai-prices`, which names the page of the provider for each; the sizes of windows and outputs
/// are also those of `litellm` 1.108.4 of 2026-11-09.
const BUILTIN: &str = include_str!("prices.json");

/// Prices of models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// The first one with a name has the price.
    models: Vec<Model>,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rates {
    /// Input that is not cached.
    pub input: f64,
    /// Output, with reasoning.
    pub output: f64,
    /// Input that is read from a cache.
    pub cache_read: Option<f64>,
    /// Input that is written to a cache, for the shortest lifetime.
    pub cache_write: Option<f64>,
    /// Input that is written to a cache for an hour.
    pub cache_write_1h: Option<f64>,
}

/// A price that is used, although its source was not read for long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StalePrice {
    /// The day on which the source had the price, as in `2026-11-30`.
    pub source_date: Option<String>,
    /// The last day on which the price counted as current.
    pub stale_after: String,
}

/// How many tokens a model takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// The largest prompt, with the answer.
    pub context: Option<u64>,
    /// The largest answer.
    pub largest_output: Option<u64>,
}

impl Prices {
    /// The list prices of widely used models.
    pub fn builtin() -> Self {
        // A test reads it.
        Self::read(BUILTIN).unwrap_or_default()
    }

    /// Reads a table.
    pub fn read(json: &str) -> Result<Self, Error> {
        let invalid = |problem| Error::InvalidPrices { problem };
        let table: Table = serde_json::from_str(json).map_err(|it| invalid(it.to_string()))?;
        table.check().map_err(invalid)?;
        Ok(Self { models: table.models })
    }

    /// These prices, with those of a user before them. An entry of the user takes the place of all
    /// prices of the models that it names.
    #[must_use]
    pub fn overridden_by(self, user: Self) -> Self {
        let mut models = user.models;
        models.extend(self.models);
        Self { models }
    }

    /// The cost of a request in US dollars, at a time in milliseconds since 1970. `None` if the
    /// price of the model is not known for that time, or if counts are missing.
    ///
    /// The counts have to be those of one request, since prices depend on the size of its prompt.
    pub fn cost(&self, model: &str, usage: &Usage<'_>, at: u64) -> Option<f64> {
        let prompt = usage.input_total()?;
        let output = usage.output?;
        let rates = self.rates(model, prompt, at)?;
        let of = |tokens: Option<u64>, rate: f64| tokens.unwrap_or(0) as f64 * rate;
        let millionths = of(usage.input, rates.input)
            + of(usage.cache_read, rates.cache_read.unwrap_or(rates.input))
            + of(usage.cache_write, rates.cache_write.unwrap_or(rates.input))
            + of(Some(output), rates.output);
        Some(millionths / 1_000_000.0)
    }

    /// The prices of a request whose whole prompt has this many tokens, at a time in milliseconds
    /// since 1970.
    pub fn rates(&self, model: &str, prompt: u64, at: u64) -> Option<Rates> {
        self.models.iter().find(|it| it.is_named(model))?.rates(prompt, at)
    }

    /// Why the price of a model may be outdated at a time in milliseconds since 1970; `None` if it
    /// counts as current, or is not known.
    pub fn stale(&self, model: &str, at: u64) -> Option<StalePrice> {
        self.models.iter().find(|it| it.is_named(model))?.stale(at)
    }

    /// How many tokens a model takes, if it is known.
    pub fn window(&self, model: &str) -> Option<Window> {
        // A price that a user overrides does not change the window.
        let named = self.models.iter().filter(|it| it.is_named(model));
        named.map(Model::window).find(|window| *window != Window::default())
    }
}

#[cfg(test)]
mod tests;
