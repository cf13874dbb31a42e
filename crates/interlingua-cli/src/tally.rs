//! The tokens and the cost of a session so far.

use interlingua::event::{Data, Event};

/// What the turns have used.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    turns: u64,
    input: u64,
    cached: u64,
    output: u64,
    /// The cost in US dollars; `None` if no turn reported one.
    cost: Option<f64>,
    /// Turns of which the tokens are unknown.
    uncounted: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        let Data::TurnEnded(ended) = &event.data else { return };
        if ended.replay {
            return;
        }
        self.turns += 1;
        match &ended.usage {
            Some(usage) => {
                self.input += usage.input.unwrap_or(0)
                    + usage.cache_read.unwrap_or(0)
                    + usage.cache_write.unwrap_or(0);
                self.cached += usage.cache_read.unwrap_or(0);
                self.output += usage.output.unwrap_or(0);
            }
            None => self.uncounted += 1,
        }
        if let Some(cost) = &ended.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost.usd);
        }
    }

    /// The lines to show.
    pub(crate) fn lines(&self) -> Vec<String> {
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        let mut lines = vec![format!(
            "{} {turns}: {} tokens in ({} cached), {} out",
            self.turns, self.input, self.cached, self.output
        )];
        if self.uncounted > 0 {
            lines.push(format!("the agent did not count {} of them", self.uncounted));
        }
        match self.cost {
            Some(cost) => lines.push(format!("cost: ${cost:.4}")),
            None => lines.push("cost: the agent does not report it".to_owned()),
        }
        lines
    }
}
