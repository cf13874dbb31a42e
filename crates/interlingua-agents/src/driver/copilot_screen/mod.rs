//! Copilot's screen, for cases in which neither its stream nor ACP is available.
//!
//! Everything here is a guess: a screen carries no types, and the next version may draw it
//! differently. A suggested command becomes a call of `Bash`, the dialog about it a permission
//! request, the lines below it its output, and Copilot's own words become text once they are
//! complete. Tokens, the session, and everything that scrolled off before it was read are unknown.

mod emitted;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use interlingua::event::{self, Outcome, PermissionRequested, PermissionResolved, TurnEnded};
use interlingua::json::{Json, Text};

use super::terminal::{SETTLED, Terminal, begin};
use super::{Driver, Step};
use crate::permission::Decision;
use emitted::Emitted;
use seen::{Dialog, Entry, Seen};

/// The period without drawing after which the contents count as complete. Text is drawn word by
/// word, and a dialog may be drawn before the text above it.
const CALM: Duration = Duration::from_millis(400);

/// The additional idle period after which the turn counts as ended.
const IDLE: Duration = Duration::from_millis(800);

const GUESS_NOTICE: &str = "read from Copilot's screen: a guess, without tokens";

/// Ctrl-O expands the output of all tools; they stay expanded.
const EXPAND_OUTPUT: &[u8] = b"\x0f";
const ENTER: &[u8] = b"\r";
const ESCAPE: &[u8] = b"\x1b";
const EXIT: &[u8] = b"\x04";

/// The driver of Copilot's screen.
#[derive(Debug, Default)]
pub struct CopilotScreenDriver {
    terminal: Terminal,
    emitted: Emitted,
    /// The keys to type, one piece each time the screen has settled.
    keys: VecDeque<Vec<u8>>,
    phase: Phase,
    screen: Screen,
    prompt_seen: bool,
    /// The interrupt key was typed, and Copilot will ask for confirmation.
    interrupting: bool,
    /// The dialog that was answered, or that waits for an answer.
    dialog: Option<Dialog>,
    /// A dialog is visible, but may not be completely drawn.
    dialog_waits: bool,
    /// The pending permission request.
    pending: Option<String>,
    requests: u64,
}

/// How long nothing has been drawn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// Something was drawn since the screen was last read.
    Drawn,
    #[default]
    Settled,
    Calm,
}

/// The phase of the turn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing of the turn has been seen.
    #[default]
    Waiting,
    Working,
    /// Copilot looks idle.
    Resting,
    Closed,
}

impl CopilotScreenDriver {
    /// Reads the screen. If it is calm, its contents are complete.
    fn look(&mut self, calm: bool, steps: &mut Vec<Step>) {
        let mut seen = Seen::on(&self.terminal.rows());
        if let Some(reason) = seen.sign_in.take().filter(|_| seen.idle) {
            self.phase = Phase::Closed;
            steps.push(Step::GiveUp(reason));
            return;
        }
        if seen.prompt_visible && !std::mem::replace(&mut self.prompt_seen, true) {
            self.keys.push_back(EXPAND_OUTPUT.to_vec());
        }
        if seen.confirms_interrupt && std::mem::replace(&mut self.interrupting, false) {
            self.keys.push_back(ESCAPE.to_vec());
        }
        if !self.prompt_seen {
            // Before the prompt is visible, the timeline contains only Copilot's greeting.
            seen.timeline.clear();
        }
        let dialog = seen.dialog.take();
        self.emitted.look(&seen, dialog.as_ref(), calm, steps);
        self.take_dialog(dialog, calm, steps);
        self.phase = match self.phase {
            Phase::Closed => Phase::Closed,
            _ if seen.working => Phase::Working,
            Phase::Waiting if self.emitted.last().is_none() => Phase::Waiting,
            _ if seen.idle => Phase::Resting,
            _ => Phase::Working,
        };
    }

    /// Answers a dialog, or emits a permission request for it.
    fn take_dialog(&mut self, dialog: Option<Dialog>, calm: bool, steps: &mut Vec<Step>) {
        self.dialog_waits = dialog.is_some();
        let Some(new) = dialog else {
            // The dialog was answered by someone else, or withdrawn.
            self.withdraw(steps);
            self.dialog = None;
            return;
        };
        if !calm || self.dialog.as_ref().is_some_and(|old| old.is(&new)) {
            return;
        }
        let dialog = self.dialog.insert(new);
        if dialog.is_trust_question() {
            // Running Copilot in this folder implies trusting it for this session.
            self.keys.push_back(ENTER.to_vec());
            return;
        }
        self.requests += 1;
        let request = format!("screen-{}", self.requests);
        steps.push(Step::emit(PermissionRequested {
            request: Text::from(request.clone()),
            call: self.emitted.call_of(dialog).map(Text::from),
            description: Some(Text::from(dialog.question.clone())),
            options: Json::from_serialize(&dialog.choices),
            ..PermissionRequested::default()
        }));
        self.pending = Some(request);
    }

    fn withdraw(&mut self, steps: &mut Vec<Step>) {
        if let Some(request) = self.pending.take() {
            let decision = event::Decision::Withdrawn;
            steps.push(resolved(request, decision, None));
        }
    }

    fn end_turn(&mut self, steps: &mut Vec<Step>) {
        self.phase = Phase::Closed;
        let outcome = match self.emitted.last() {
            Some(Entry::Error(_)) => Outcome::Failed,
            Some(Entry::Stopped(_)) => Outcome::Cancelled,
            _ => Outcome::Completed,
        };
        steps.push(Step::emit(TurnEnded { outcome, ..TurnEnded::default() }));
        self.keys.push_back(EXIT.to_vec());
    }
}

impl Driver for CopilotScreenDriver {
    fn holds_back(&self) -> bool {
        true
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        steps.extend(begin("copilot-screen", prompt, GUESS_NOTICE));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let answer = self.terminal.draw(chunk);
        if !answer.is_empty() {
            steps.push(Step::Type(answer));
        }
        self.screen = Screen::Drawn;
    }

    fn wake_after(&self) -> Option<Duration> {
        let rests = self.phase == Phase::Resting;
        match self.screen {
            _ if !self.keys.is_empty() => Some(SETTLED),
            _ if self.phase == Phase::Closed => None,
            Screen::Drawn => Some(SETTLED),
            Screen::Settled => Some(CALM),
            Screen::Calm => rests.then_some(IDLE),
        }
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        let screen = match self.screen {
            _ if self.phase == Phase::Closed => self.screen,
            Screen::Drawn => {
                self.look(false, steps);
                Screen::Settled
            }
            // Typing changes the screen, so it is read again afterwards.
            _ if !self.keys.is_empty() => self.screen,
            Screen::Settled => {
                self.look(true, steps);
                Screen::Calm
            }
            Screen::Calm => {
                self.end_turn(steps);
                Screen::Calm
            }
        };
        self.screen = screen;
        steps.extend(self.keys.pop_front().map(Step::Type));
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        if self.pending.as_deref() != Some(request) {
            return;
        }
        self.pending = None;
        let Some(dialog) = &self.dialog else { return };
        let (outcome, why) = match decision {
            Decision::Allow => {
                self.keys.extend(dialog.key("Yes").map(|key| vec![key]));
                (event::Decision::Allowed, None)
            }
            Decision::Deny(why) => {
                self.keys.extend(dialog.key("No").map(|key| vec![key]));
                if dialog.takes_a_reason() {
                    let line: String = why.chars().filter(|it| !it.is_control()).collect();
                    self.keys.push_back(line.into_bytes());
                }
                (event::Decision::Denied, Some(why.clone()))
            }
        };
        self.keys.push_back(ENTER.to_vec());
        steps.push(resolved(request.to_owned(), outcome, why));
    }

    fn interrupt(&mut self, _steps: &mut Vec<Step>) -> bool {
        self.keys.push_back(ESCAPE.to_vec());
        self.interrupting = true;
        true
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        if self.phase != Phase::Closed {
            self.look(true, steps);
        }
        self.withdraw(steps);
    }
}

fn resolved(request: String, decision: event::Decision, why: Option<String>) -> Step {
    Step::emit(PermissionResolved {
        request: Some(Text::from(request)),
        decision,
        reason: why.map(Text::from),
        ..PermissionResolved::default()
    })
}
