//! Records which entries of the timeline were emitted, so that the next reading emits only new
//! ones.

use interlingua::event::{
    Block, Error, ErrorClass, Interrupted, Retry, ToolEnded, ToolKind, ToolStarted, ToolStatus,
};
use interlingua::json::{Json, Text};
use serde_json::json;

use super::seen::{Dialog, Entry, Look, Seen, Tool};
use crate::driver::Step;

/// All entries seen so far, oldest first.
#[derive(Debug, Default)]
pub(super) struct Emitted {
    entries: Vec<Known>,
    blocks: u64,
}

#[derive(Debug)]
struct Known {
    entry: Entry,
    /// How many readings in a row found it unchanged.
    unchanged: u32,
    /// Its first event was emitted.
    started: bool,
    /// All of its events were emitted.
    complete: bool,
}

impl Known {
    fn new(entry: &Entry) -> Self {
        Self { entry: entry.clone(), unchanged: 0, started: false, complete: false }
    }

    fn is_seen_as(&mut self, entry: &Entry) {
        self.unchanged += 1;
        if self.entry != *entry {
            self.unchanged = 0;
            self.entry = entry.clone();
        }
    }
}

/// The state of an entry in the current reading.
struct View<'d> {
    /// It will not grow any more.
    whole: bool,
    /// Text follows it.
    followed: bool,
    /// Copilot is idle.
    idle: bool,
    dialog: Option<&'d Dialog>,
}

/// The number of unchanged readings after which an entry counts as complete.
const STABLE_READINGS: u32 = 4;

impl Emitted {
    /// Emits new entries in order. If the screen is calm, its contents are complete.
    pub(super) fn look(
        &mut self,
        seen: &Seen,
        dialog: Option<&Dialog>,
        calm: bool,
        steps: &mut Vec<Step>,
    ) {
        let at = self.place_of(seen);
        for (number, entry) in seen.timeline.iter().enumerate() {
            match self.entries.get_mut(at + number) {
                Some(known) => known.is_seen_as(entry),
                None => self.entries.push(Known::new(entry)),
            }
        }
        for (number, _) in seen.timeline.iter().enumerate() {
            let later = seen.timeline.get(number + 1..).unwrap_or_default();
            let view = View {
                whole: self.is_whole(at + number, later.is_empty(), calm, seen.working),
                // A shell looks the same while it runs; text after it means that it has finished.
                followed: later.iter().any(|entry| !matches!(entry, Entry::Tool(_))),
                idle: calm && seen.idle,
                dialog,
            };
            if !self.emit(at + number, &view, steps) {
                return;
            }
        }
    }

    /// Whether an entry has been unchanged for long enough. While Copilot is working, the last text
    /// may merely be paused.
    fn is_whole(&self, place: usize, is_last: bool, calm: bool, working: bool) -> bool {
        self.entries.get(place).is_some_and(|known| {
            let may_grow = is_last && matches!(known.entry, Entry::Text(_));
            if may_grow { calm && !working } else { calm || known.unchanged >= STABLE_READINGS }
        })
    }

    /// The index among known entries at which the timeline begins; its first entries may have
    /// scrolled off.
    fn place_of(&self, seen: &Seen) -> usize {
        if seen.prompt_visible {
            return 0;
        }
        let fits = |from: &usize| {
            let known = self.entries.iter().skip(*from);
            known.zip(&seen.timeline).all(|(known, entry)| known.entry.is_now(entry))
        };
        (0..self.entries.len()).find(fits).unwrap_or(self.entries.len())
    }

    /// Emits as much of an entry as possible. Returns whether the entries after it may be emitted
    /// too.
    fn emit(&mut self, place: usize, view: &View<'_>, steps: &mut Vec<Step>) -> bool {
        let Some(known) = self.entries.get_mut(place).filter(|known| !known.complete) else {
            return true;
        };
        match &known.entry {
            Entry::Tool(tool) => {
                // Its output may still be incomplete.
                if !view.whole {
                    return known.started;
                }
                if !std::mem::replace(&mut known.started, true) {
                    let asked = view.dialog.filter(|dialog| dialog.asks_for(tool));
                    steps.push(Step::emit(started(place, tool, asked)));
                }
                known.complete = tool.look != Look::Open || view.followed || view.idle;
                if known.complete {
                    steps.push(Step::emit(ended(place, tool)));
                }
            }
            Entry::Text(text) => {
                known.complete = view.whole;
                if !known.complete {
                    return false;
                }
                let (text, index) = (Text::from(text.clone()), self.blocks);
                self.blocks += 1;
                steps.push(Step::emit(Block { index, text, ..Block::default() }));
            }
            Entry::Retry(text) => {
                known.complete = true;
                let message = Some(Text::from(text.clone()));
                steps.push(Step::emit(Retry { message, ..Retry::default() }));
            }
            Entry::Stopped(text) => {
                known.complete = true;
                let text = Some(Text::from(text.clone()));
                steps.push(Step::emit(Interrupted { text }));
            }
            Entry::Error(text) => {
                known.complete = true;
                let class = if text.contains("Authentication") {
                    ErrorClass::Authentication
                } else {
                    ErrorClass::Unspecified
                };
                let message = Text::from(text.clone());
                steps.push(Step::emit(Error { class, message, fatal: true, ..Error::default() }));
            }
        }
        true
    }

    /// The call that a dialog is about: the one with its command, otherwise the last open one.
    pub(super) fn call_of(&self, dialog: &Dialog) -> Option<String> {
        let open = |known: &Known, fits: &dyn Fn(&Tool) -> bool| match &known.entry {
            Entry::Tool(tool) => !known.complete && fits(tool),
            _ => false,
        };
        let asked = |tool: &Tool| dialog.asks_for(tool);
        let place = self.entries.iter().position(|known| open(known, &asked));
        place.or_else(|| self.entries.iter().rposition(|known| open(known, &|_| true))).map(name)
    }

    /// The last entry.
    pub(super) fn last(&self) -> Option<&Entry> {
        self.entries.last().map(|known| &known.entry)
    }
}

impl Entry {
    /// Whether it is the same entry at a later time.
    fn is_now(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Tool(earlier), Self::Tool(later)) => later.is(earlier),
            (Self::Text(earlier), Self::Text(later)) => later.starts_with(earlier.as_str()),
            (earlier, later) => earlier == later,
        }
    }
}

fn name(place: usize) -> String {
    format!("screen-{}", place + 1)
}

fn started(place: usize, tool: &Tool, dialog: Option<&Dialog>) -> ToolStarted<'static> {
    let (name_of_tool, kind) = match tool.title.as_str() {
        "Shell" => ("Bash", ToolKind::Execute),
        "Create" => ("Write", ToolKind::Write),
        "Edit" => ("Edit", ToolKind::Edit),
        "Read" => ("Read", ToolKind::Read),
        other => (other, ToolKind::Unspecified),
    };
    // The timeline shows the command on one line; the dialog shows it unchanged.
    let command = dialog.map_or(tool.command.as_str(), |dialog| &dialog.boxed);
    let input = match kind {
        ToolKind::Execute => json!({"command": command}),
        _ => json!({"description": tool.head}),
    };
    ToolStarted {
        call: Text::from(name(place)),
        name: Text::from(name_of_tool.to_owned()),
        kind,
        input: Json::from_serialize(&input),
        ..ToolStarted::default()
    }
}

fn ended(place: usize, tool: &Tool) -> ToolEnded<'static> {
    let mut output = tool.output.clone();
    let last = output.last().map_or("", String::as_str);
    let exit_code = last.strip_prefix("Failed with exit code ").and_then(|code| code.parse().ok());
    let status = match tool.look {
        Look::Failed if last.starts_with("The user rejected") => ToolStatus::Denied,
        Look::Failed if last.starts_with("Operation aborted") => ToolStatus::Cancelled,
        Look::Failed => ToolStatus::Failed,
        Look::Open | Look::Done => ToolStatus::Completed,
    };
    if exit_code.is_some() {
        output.pop();
    }
    ToolEnded {
        call: Text::from(name(place)),
        status,
        output: Json::from_serialize(&output.join("\n")),
        exit_code,
        ..ToolEnded::default()
    }
}
