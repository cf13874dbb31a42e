//! The line of a session, and the line of a turn's end.

use std::time::Duration;

use interlingua::dialect::text::{duration, tokens};
use interlingua::event::{Outcome, SessionStarted, SessionUpdated, TurnEnded};
use interlingua::json::Text;

use super::clean;
use super::style::{Line, Span, Style};
use super::wrap::wrap;

/// The maximum number of lines of a cause.
const CAUSE: usize = 6;
/// The characters that are shown of an id.
const ID: usize = 8;

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Session {
    agent: String,
    version: String,
    pub(crate) model: String,
    pub(crate) folder: String,
    mode: String,
    id: String,
}

impl Session {
    pub(crate) fn start(&mut self, started: &SessionStarted<'_>) {
        let SessionStarted { agent, version, model, cwd, permission_mode, id, .. } = started;
        self.take([agent, version, model, cwd, permission_mode, id]);
    }

    pub(crate) fn update(&mut self, update: &SessionUpdated<'_>) {
        let SessionUpdated { agent, version, model, cwd, permission_mode, id, .. } = update;
        self.take([agent, version, model, cwd, permission_mode, id]);
    }

    fn take(&mut self, facts: [&Option<Text<'_>>; 6]) {
        let fields = [
            &mut self.agent,
            &mut self.version,
            &mut self.model,
            &mut self.folder,
            &mut self.mode,
            &mut self.id,
        ];
        for (field, fact) in fields.into_iter().zip(facts) {
            if let Some(fact) = fact.as_ref().filter(|fact| !fact.is_empty()) {
                *field = clean::one_line(&fact.to_plain(), 400);
            }
        }
    }

    /// Whether this is the same conversation with the same agent, as far as is known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = |one: &str, two: &str| one.is_empty() || two.is_empty() || one == two;
        same(&self.agent, &other.agent) && same(&self.id, &other.id)
    }

    /// The line of the session. If there is no room for everything, the most important facts stay.
    pub(crate) fn line(
        &self,
        home: Option<&str>,
        everything: bool,
        columns: usize,
    ) -> Option<Line> {
        if [&self.agent, &self.model, &self.folder, &self.id].into_iter().all(String::is_empty) {
            return None;
        }
        let folder = self.folder_from(home);
        let last = folder.rsplit('/').next().filter(|last| last.len() + 2 < folder.len());
        let short = last.map_or_else(|| folder.clone(), |last| format!("…/{last}"));
        let id = if everything { self.id.clone() } else { self.short_id() };
        let forms: [&[&str]; 5] = [
            &[&self.model, &folder, &self.mode, &id],
            &[&self.model, &short, &self.mode, &id],
            &[&self.model, &short, &id],
            &[&self.model, &id],
            &[&id],
        ];
        let mut lines = forms.iter().map(|facts| self.line_with(facts));
        let fits = |line: &Line| everything || line.width() <= columns;
        lines.find(fits).or_else(|| Some(Line::new("●", Style::CYAN)))
    }

    fn line_with(&self, facts: &[&str]) -> Line {
        let agent = if self.agent.is_empty() { "agent" } else { &self.agent };
        let mut line = Line::new("● ", Style::CYAN).with(agent, Style::BOLD);
        if !self.version.is_empty() {
            line.push(format!(" {}", self.version), Style::DIM);
        }
        let facts = facts.iter().filter(|fact| !fact.is_empty());
        facts.for_each(|fact| line.push(format!(" · {fact}"), Style::DIM));
        line
    }

    fn folder_from(&self, home: Option<&str>) -> String {
        match home.and_then(|home| self.folder.strip_prefix(home)) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
            _ => self.folder.clone(),
        }
    }

    /// The beginning of the id. A prefix that all ids of an agent have does not count.
    fn short_id(&self) -> String {
        let prefix = self.id.find('_').map_or(0, |at| at + 1);
        self.id.chars().take(prefix.min(ID) + ID).collect()
    }
}

/// The lines of a turn's end. `cause_is_shown`: the lines above contain the cause.
pub(crate) fn turn_ended(
    ended: &TurnEnded<'_>,
    cause_is_shown: bool,
    measured: Option<Duration>,
    columns: usize,
) -> Vec<Line> {
    let facts = facts(ended, measured);
    if ended.outcome == Outcome::Completed {
        let text = if facts.is_empty() { "done".to_owned() } else { facts.join(" · ") };
        return wrap(&[Span::new(format!("— {text}"), Style::DIM)], columns);
    }
    let (mark, word, style) = outcome(&ended.outcome);
    let style = Style { bold: true, ..style };
    let cause = ended.cause.as_ref().map(|it| clean::text(&it.to_plain())).unwrap_or_default();
    let cause = cause.trim().replace('\t', " ");
    let mut first = vec![Span::new(format!("{mark} {word}"), style)];
    let with_cause = !cause_is_shown && !cause.is_empty();
    if with_cause {
        first.push(Span::new(format!(": {cause}"), Style::PLAIN));
    } else {
        facts.iter().for_each(|fact| first.push(Span::new(format!(" · {fact}"), Style::DIM)));
    }
    let mut lines: Vec<Line> = wrap(&first, columns).into_iter().take(CAUSE).collect();
    if with_cause && !facts.is_empty() {
        let facts = format!("— {}", facts.join(" · "));
        lines.extend(wrap(&[Span::new(facts, Style::DIM)], columns));
    }
    lines
}

fn facts(ended: &TurnEnded<'_>, measured: Option<Duration>) -> Vec<String> {
    let mut facts = Vec::new();
    let measured = measured.filter(|it| *it >= Duration::from_secs(1));
    let measured = measured.and_then(|it| u64::try_from(it.as_millis()).ok());
    facts.extend(ended.duration_ms.or(measured).map(duration));
    facts.extend(ended.usage.as_ref().filter(|usage| usage.all() > 0).and_then(tokens));
    if let Some(cost) = ended.cost.as_ref().filter(|cost| cost.usd > 0.0) {
        let about = if cost.estimated { "about " } else { "" };
        facts.push(format!("{about}${:.4}", cost.usd));
    }
    facts
}

fn outcome(outcome: &Outcome) -> (&'static str, String, Style) {
    let word = clean::one_line(&outcome.as_str().replace('_', " "), 40);
    let mut letters = word.chars();
    let word = letters.next().map(|first| first.to_uppercase().collect::<String>());
    let word = word.unwrap_or_default() + letters.as_str();
    match outcome {
        Outcome::Cancelled | Outcome::WaitingForClient | Outcome::LimitReached => {
            ("■", word, Style::YELLOW)
        }
        _ => ("✗", word, Style::RED),
    }
}
