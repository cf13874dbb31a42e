//! The form of a table of prices, and what a valid one has to keep.

use serde::Deserialize;

use super::date::{Date, hour_of, is_date};
use super::{Rates, StalePrice, Window};

/// What stands for a day at the end of a name.
const DATE: &str = "{date}";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) models: Vec<Model>,
}

/// The prices of the models with some names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) names: Vec<String>,
    context_window: Option<u64>,
    largest_output: Option<u64>,
    pub(super) periods: Vec<Period>,
}

/// The prices of a period.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Period {
    /// The first day; the earliest period need not have one.
    pub(super) from: Option<Date>,
    /// The last day; the latest period need not have one.
    pub(super) until: Option<Date>,
    /// Where the prices are from.
    pub(super) source: Option<String>,
    /// The day on which the source had them.
    pub(super) source_date: Option<Date>,
    /// The last day on which they count as current.
    pub(super) stale_after: Option<Date>,
    rates: Rates,
    /// The prices of larger prompts, the smallest first.
    #[serde(default)]
    above: Vec<Above>,
    peak: Option<Peak>,
}

/// The prices of a request whose prompt has more tokens than this.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Above {
    tokens: u64,
    rates: Rates,
}

/// The prices in some hours of each day.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Peak {
    /// From the beginning of an hour to the beginning of another.
    hours_utc: Vec<(u64, u64)>,
    rates: Rates,
}

impl Table {
    /// Checks the table; the problem names the entry.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut names: Vec<&str> = Vec::new();
        for (at, model) in self.models.iter().enumerate() {
            let entry = match model.names.first() {
                Some(name) => format!("the entry of {name}"),
                None => return Err(format!("entry {} has no names", at + 1)),
            };
            model.check().map_err(|problem| format!("{entry}: {problem}"))?;
            for name in &model.names {
                if names.contains(&&**name) {
                    return Err(format!("{entry}: the name {name} is listed twice"));
                }
                names.push(name);
            }
        }
        Ok(())
    }
}

impl Model {
    pub(super) fn is_named(&self, model: &str) -> bool {
        self.names.iter().any(|name| match name.strip_suffix(DATE) {
            Some(start) => model.strip_prefix(start).is_some_and(is_date),
            None => name == model,
        })
    }

    pub(super) fn rates(&self, prompt: u64, at: u64) -> Option<Rates> {
        Some(self.period(Date::of_time(at))?.rates(prompt, at))
    }

    pub(super) fn stale(&self, at: u64) -> Option<StalePrice> {
        let day = Date::of_time(at);
        let period = self.period(day)?;
        let stale_after = period.stale_after.filter(|last| *last < day)?;
        Some(StalePrice {
            source_date: period.source_date.map(|date| date.to_string()),
            stale_after: stale_after.to_string(),
        })
    }

    fn period(&self, day: Date) -> Option<&Period> {
        self.periods.iter().find(|period| period.contains(day))
    }

    pub(super) fn window(&self) -> Window {
        Window { context: self.context_window, largest_output: self.largest_output }
    }

    fn check(&self) -> Result<(), String> {
        for name in &self.names {
            let start = name.strip_suffix(DATE).unwrap_or(name);
            if start.is_empty() || start.contains(['{', '}']) {
                return Err(format!("{name:?} is not a name; {DATE} is possible at its end only"));
            }
        }
        if self.periods.is_empty() {
            return Err("it has no periods".to_owned());
        }
        for period in &self.periods {
            period.check()?;
        }
        for pair in self.periods.windows(2) {
            let [one, next] = pair else { continue };
            let is_ordered = one.until.zip(next.from).is_some_and(|(until, from)| until < from);
            if !is_ordered {
                return Err(format!(
                    "the period {} has to end before the period {} begins",
                    one.shown(),
                    next.shown()
                ));
            }
        }
        Ok(())
    }
}

impl Period {
    fn contains(&self, day: Date) -> bool {
        self.from.is_none_or(|from| from <= day) && self.until.is_none_or(|until| day <= until)
    }

    fn rates(&self, prompt: u64, at: u64) -> Rates {
        let hour = hour_of(at);
        let is_peak =
            |peak: &&Peak| peak.hours_utc.iter().any(|(from, to)| (*from..*to).contains(&hour));
        if let Some(peak) = self.peak.as_ref().filter(is_peak) {
            return peak.rates;
        }
        let above = self.above.iter().rev().find(|above| prompt > above.tokens);
        above.map_or(self.rates, |above| above.rates)
    }

    fn check(&self) -> Result<(), String> {
        let shown = self.shown();
        if self.from.zip(self.until).is_some_and(|(from, until)| until < from) {
            return Err(format!("the period {shown} ends before it begins"));
        }
        if self.source_date.zip(self.stale_after).is_some_and(|(date, last)| last < date) {
            return Err(format!("the period {shown} is stale before the date of its source"));
        }
        let above = self.above.iter().map(|above| &above.rates);
        let peak = self.peak.iter().map(|peak| &peak.rates);
        if !std::iter::once(&self.rates).chain(above).chain(peak).all(Rates::are_valid) {
            return Err(format!("the period {shown} has a price below 0"));
        }
        let is_larger = |pair: &[Above]| match pair {
            [one, next] => one.tokens < next.tokens,
            _ => true,
        };
        if !self.above.windows(2).all(is_larger) {
            return Err(format!("in the period {shown}, `above` has to list the smallest first"));
        }
        let Some(peak) = &self.peak else { return Ok(()) };
        if !peak.hours_utc.iter().all(|(from, to)| from < to && *to <= 24) {
            return Err(format!(
                "in the period {shown}, `hours_utc` has to be pairs of hours from 0 to 24"
            ));
        }
        if !self.above.is_empty() {
            return Err(format!("the period {shown} cannot have both `above` and `peak`"));
        }
        Ok(())
    }

    fn shown(&self) -> String {
        let shown = |day: Option<Date>| day.map_or_else(|| "…".to_owned(), |day| day.to_string());
        format!("{} to {}", shown(self.from), shown(self.until))
    }
}

impl Rates {
    fn are_valid(&self) -> bool {
        let Self { input, output, cache_read, cache_write, cache_write_1h } = self;
        let cached = [cache_read, cache_write, cache_write_1h].into_iter().flatten();
        [input, output].into_iter().chain(cached).all(|rate| rate.is_finite() && *rate >= 0.0)
    }
}
