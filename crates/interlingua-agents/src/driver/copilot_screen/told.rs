//! What was told of a timeline, so that the next look at it tells only what is new.

use interlingua::event::{
    Block, Error, ErrorClass, Interrupted, Retry, ToolEnded, ToolKind, ToolStarted, ToolStatus,
};
use interlingua::json::{Json, Text};
use serde_json::json;

use super::seen::{Dialog, Entry, Look, Seen, Tool};
use crate::driver::Step;

/// The entries that were seen, oldest first.
#[derive(Debug, Default)]
pub(super) struct Told {
    entries: Vec<Known>,
    blocks: u64,
}

#[derive(Debug)]
struct Known {
    entry: Entry,
    /// How often it was looked at and had not changed.
    looks: u32,
    /// It began to be told.
    begun: bool,
    /// All of it was told.
    over: bool,
}

impl Known {
    fn new(entry: &Entry) -> Self {
        Self { entry: entry.clone(), looks: 0, begun: false, over: false }
    }

    fn is_seen_as(&mut self, entry: &Entry) {
        self.looks += 1;
        if self.entry != *entry {
            self.looks = 0;
            self.entry = entry.clone();
        }
    }
}

/// How an entry stands on the screen.
struct View<'d> {
    /// It will not grow any more.
    whole: bool,
    /// Something was said after it.
    followed: bool,
    /// Copilot is idle.
    at_rest: bool,
    dialog: Option<&'d Dialog>,
}

/// How often an entry is looked at before it is taken to be whole.
const STEADY: u32 = 4;

impl Told {
    /// Tells what is new, in its order. Where the screen is calm, what is there is whole.
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
                // A shell looks the same while it runs: what is said after it tells that it is done.
                followed: later.iter().any(|entry| !matches!(entry, Entry::Tool(_))),
                at_rest: calm && seen.idle,
                dialog,
            };
            if !self.tell(at + number, &view, steps) {
                return;
            }
        }
    }

    /// Whether an entry has not changed for long enough. While Copilot is at work, the last text may only
    /// have paused.
    fn is_whole(&self, place: usize, is_last: bool, calm: bool, working: bool) -> bool {
        self.entries.get(place).is_some_and(|known| {
            let may_grow = is_last && matches!(known.entry, Entry::Text(_));
            if may_grow { calm && !working } else { calm || known.looks >= STEADY }
        })
    }

    /// Where in what was seen before the timeline begins, which may have lost its first entries.
    fn place_of(&self, seen: &Seen) -> usize {
        if seen.from_the_prompt {
            return 0;
        }
        let fits = |from: &usize| {
            let known = self.entries.iter().skip(*from);
            known.zip(&seen.timeline).all(|(known, entry)| known.entry.is_now(entry))
        };
        (0..self.entries.len()).find(fits).unwrap_or(self.entries.len())
    }

    /// Tells an entry as far as it can be told; gives whether what comes after it may be told too.
    fn tell(&mut self, place: usize, view: &View<'_>, steps: &mut Vec<Step>) -> bool {
        let Some(known) = self.entries.get_mut(place).filter(|known| !known.over) else {
            return true;
        };
        match &known.entry {
            Entry::Tool(tool) => {
                // What it gave back may still be drawn.
                if !view.whole {
                    return known.begun;
                }
                if !std::mem::replace(&mut known.begun, true) {
                    let asked = view.dialog.filter(|dialog| dialog.asks_for(tool));
                    steps.push(Step::tell(started(place, tool, asked)));
                }
                known.over = tool.look != Look::Open || view.followed || view.at_rest;
                if known.over {
                    steps.push(Step::tell(ended(place, tool)));
                }
            }
            Entry::Text(text) => {
                known.over = view.whole;
                if !known.over {
                    return false;
                }
                let (text, index) = (Text::from(text.clone()), self.blocks);
                self.blocks += 1;
                steps.push(Step::tell(Block { index, text, ..Block::default() }));
            }
            Entry::Retry(text) => {
                known.over = true;
                let message = Some(Text::from(text.clone()));
                steps.push(Step::tell(Retry { message, ..Retry::default() }));
            }
            Entry::Stopped(text) => {
                known.over = true;
                let text = Some(Text::from(text.clone()));
                steps.push(Step::tell(Interrupted { text }));
            }
            Entry::Error(text) => {
                known.over = true;
                let class = if text.contains("Authentication") {
                    ErrorClass::Authentication
                } else {
                    ErrorClass::Unspecified
                };
                let message = Text::from(text.clone());
                steps.push(Step::tell(Error { class, message, fatal: true, ..Error::default() }));
            }
        }
        true
    }

    /// The call that a dialog asks for: the one with its command, or else the last one that is open.
    pub(super) fn call_of(&self, dialog: &Dialog) -> Option<String> {
        let open = |known: &Known, fits: &dyn Fn(&Tool) -> bool| match &known.entry {
            Entry::Tool(tool) => !known.over && fits(tool),
            _ => false,
        };
        let asked = |tool: &Tool| dialog.asks_for(tool);
        let place = self.entries.iter().position(|known| open(known, &asked));
        place.or_else(|| self.entries.iter().rposition(|known| open(known, &|_| true))).map(name)
    }

    /// The last thing that was seen.
    pub(super) fn last(&self) -> Option<&Entry> {
        self.entries.last().map(|known| &known.entry)
    }
}

impl Entry {
    /// Whether it is the same entry at another time.
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
    // The timeline has it in one line, the dialog as it is.
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
