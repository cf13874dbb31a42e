//! The line at the bottom that shows that the agent works: what it does, for how long, and the
//! tokens so far.

use std::time::{Duration, Instant};

use interlingua::event::{BlockKind, Data, Scope, Usage};

use super::style::{Line, Style};

/// The time between two frames.
const FRAME: Duration = Duration::from_millis(120);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What the agent does at the moment.
#[derive(Debug)]
pub(crate) struct Activity {
    /// When the turn started, if one is running.
    since: Option<Instant>,
    doing: &'static str,
    /// The tokens of the requests that were reported one by one, and with their messages.
    requests: u64,
    messages: u64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { since: None, doing: "Waiting", requests: 0, messages: 0 }
    }
}

impl Activity {
    pub(crate) fn begin(&mut self, now: Instant) {
        *self = Self { since: Some(now), ..Self::default() };
    }

    /// The time since the turn started, if one is running.
    pub(crate) fn elapsed(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| now.saturating_duration_since(since))
    }

    pub(crate) fn end(&mut self) {
        self.since = None;
    }

    /// Takes from an event what the agent does.
    pub(crate) fn observe(&mut self, data: &Data<'_>) {
        match data {
            Data::BlockStarted(block) => self.doing = doing(&block.kind),
            Data::BlockDelta(block) => self.doing = doing(&block.kind),
            Data::BlockEnded(_) | Data::Block(_) | Data::ToolEnded(_) => self.doing = "Working",
            Data::ToolStarted(_) | Data::ToolInputDelta(_) => self.doing = "Preparing a call",
            Data::PermissionRequested(_) | Data::QuestionAsked(_) => self.doing = "Waiting for you",
            Data::PermissionResolved(_) | Data::QuestionAnswered(_) => self.doing = "Working",
            Data::Retry(_) => self.doing = "Retrying",
            Data::Usage(usage) if usage.scope == Scope::Request => self.requests += usage.all(),
            Data::MessageEnded(ended) => {
                self.messages += ended.usage.as_ref().map_or(0, Usage::all);
            }
            _ => {}
        }
    }

    /// The line, if a turn is running. `running` is what the calls do, if there are any.
    pub(crate) fn line(&self, running: Option<&str>, now: Instant) -> Option<Line> {
        let elapsed = self.elapsed(now)?;
        let mut line = Line::new(format!("{} ", spinner(elapsed)), Style::CYAN);
        line.push(running.unwrap_or(self.doing), Style::PLAIN);
        let mut facts = String::new();
        if elapsed >= Duration::from_secs(1) {
            facts.push_str(&format!(" · {}", seconds(elapsed)));
        }
        let tokens = self.requests.max(self.messages);
        if tokens > 0 {
            facts.push_str(&format!(" · {} tokens", rounded(tokens)));
        }
        line.push(facts, Style::DIM);
        Some(line)
    }

    /// When the line looks different.
    pub(crate) fn next_frame(&self, now: Instant) -> Option<Instant> {
        let elapsed = self.elapsed(now)?;
        let frames = elapsed.as_millis() / FRAME.as_millis() + 1;
        let next = FRAME.saturating_mul(u32::try_from(frames).unwrap_or(u32::MAX));
        now.checked_add(next.saturating_sub(elapsed))
    }
}

fn doing(kind: &BlockKind) -> &'static str {
    match kind {
        BlockKind::Reasoning | BlockKind::HiddenReasoning => "Thinking",
        _ => "Writing",
    }
}

/// The frame of the spinner at a time.
pub(crate) fn spinner(elapsed: Duration) -> &'static str {
    let frame = elapsed.as_millis() / FRAME.as_millis() % FRAMES.len() as u128;
    usize::try_from(frame).ok().and_then(|frame| FRAMES.get(frame)).copied().unwrap_or("⠋")
}

/// A duration in whole seconds.
pub(crate) fn seconds(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn rounded(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::style::Palette;

    #[test]
    fn the_line_shows_what_happens_for_how_long_and_the_tokens() {
        let start = Instant::now();
        let mut activity = Activity::default();
        assert_eq!(activity.line(None, start), None);
        activity.begin(start);
        let line = |activity: &Activity, ms| {
            let line = activity.line(None, start + Duration::from_millis(ms));
            line.unwrap().to_terminal(Palette::None)
        };
        assert_eq!(line(&activity, 0), "⠋ Waiting");
        let usage = Usage { scope: Scope::Request, output: Some(1_540), ..Usage::default() };
        activity.observe(&usage.into());
        assert_eq!(line(&activity, 75_130), "⠦ Waiting · 1 min 15 s · 1.5k tokens");
        let next = activity.next_frame(start + Duration::from_millis(130)).unwrap();
        assert_eq!(next, start + FRAME * 2);
    }
}
