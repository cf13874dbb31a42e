//! Copilot's screen, for where neither its stream nor ACP can be had.
//!
//! Everything here is a guess: nothing on a screen says what it is, and the next version may draw it in
//! another way. A suggested command becomes a call of `Bash`, the dialog that asks for it a permission,
//! the lines below it its output, and what Copilot says is text, once it is whole. Nothing is known of
//! tokens, of the session, or of what was scrolled away before it was seen.

mod seen;
#[cfg(test)]
mod tests;
mod told;

use std::collections::VecDeque;
use std::time::Duration;

use interlingua::event::{self, Outcome, PermissionRequested, PermissionResolved, TurnEnded};
use interlingua::json::{Json, Text};

use super::terminal::{SETTLED, Terminal, begin};
use super::{Driver, Step};
use crate::permission::Decision;
use seen::{Dialog, Entry, Seen};
use told::Told;

/// How long nothing may be drawn until what is there is taken to be whole: texts are drawn word by word,
/// and a dialog may be there before the text above it.
const CALM: Duration = Duration::from_millis(400);

/// How much longer Copilot must be idle until its turn is taken to be over.
const IDLE: Duration = Duration::from_millis(800);

const SAY_THAT_IT_IS_A_GUESS: &str = "read from Copilot's screen: a guess, without tokens";

/// Shows all of what tools gave back; shown in full, it stays so.
const UNFOLD: &[u8] = b"\x0f";
const ENTER: &[u8] = b"\r";
const ESCAPE: &[u8] = b"\x1b";
const LEAVE: &[u8] = b"\x04";

/// The driver of Copilot's screen.
#[derive(Debug)]
pub struct CopilotScreenDriver {
    prompt: String,
    terminal: Terminal,
    told: Told,
    /// What is still to be typed, a piece whenever the screen has settled.
    keys: VecDeque<Vec<u8>>,
    course: Course,
    screen: Screen,
    prompt_seen: bool,
    /// It was told to stop, and will ask whether this is meant.
    interrupting: bool,
    /// The dialog that was answered, or waits for an answer.
    dialog: Option<Dialog>,
    /// There is a dialog, of which perhaps not all was drawn.
    dialog_waits: bool,
    /// The request that waits for a decision.
    asked: Option<String>,
    requests: u64,
}

/// How long nothing was drawn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// Something was drawn since the screen was looked at.
    Drawn,
    #[default]
    Settled,
    Calm,
}

/// How far the turn is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// Nothing was seen of it.
    #[default]
    Waiting,
    Working,
    /// Copilot looks idle.
    Resting,
    Over,
}

impl CopilotScreenDriver {
    /// A driver for a prompt that Copilot is started with.
    pub fn new(prompt: String) -> Self {
        Self {
            prompt,
            terminal: Terminal::default(),
            told: Told::default(),
            keys: VecDeque::new(),
            course: Course::default(),
            screen: Screen::default(),
            prompt_seen: false,
            interrupting: false,
            dialog: None,
            dialog_waits: false,
            asked: None,
            requests: 0,
        }
    }

    /// Looks at the screen; where it is calm, what is there is whole.
    fn look(&mut self, calm: bool, steps: &mut Vec<Step>) {
        let mut seen = Seen::on(&self.terminal.rows());
        if let Some(says) = seen.sign_in.take().filter(|_| seen.idle) {
            self.course = Course::Over;
            steps.push(Step::GiveUp(says));
            return;
        }
        if seen.from_the_prompt && !std::mem::replace(&mut self.prompt_seen, true) {
            self.keys.push_back(UNFOLD.to_vec());
        }
        if seen.asks_again && std::mem::replace(&mut self.interrupting, false) {
            self.keys.push_back(ESCAPE.to_vec());
        }
        if !self.prompt_seen {
            // What stands there is Copilot's greeting.
            seen.timeline.clear();
        }
        let dialog = seen.dialog.take();
        self.told.look(&seen, dialog.as_ref(), calm, steps);
        self.take_dialog(dialog, calm, steps);
        self.course = match self.course {
            Course::Over => Course::Over,
            _ if seen.working => Course::Working,
            Course::Waiting if self.told.last().is_none() => Course::Waiting,
            _ if seen.idle => Course::Resting,
            _ => Course::Working,
        };
    }

    /// Answers a dialog, or asks whoever may.
    fn take_dialog(&mut self, dialog: Option<Dialog>, calm: bool, steps: &mut Vec<Step>) {
        self.dialog_waits = dialog.is_some();
        let Some(new) = dialog else {
            // Somebody answered it, or it was taken back.
            self.withdraw(steps);
            self.dialog = None;
            return;
        };
        if !calm || self.dialog.as_ref().is_some_and(|old| old.is(&new)) {
            return;
        }
        let dialog = self.dialog.insert(new);
        if dialog.is_about_trust() {
            // The user wants Copilot to work in this folder: for this session it may.
            self.keys.push_back(ENTER.to_vec());
            return;
        }
        self.requests += 1;
        let request = format!("screen-{}", self.requests);
        steps.push(Step::tell(PermissionRequested {
            request: Text::from(request.clone()),
            call: self.told.call_of(dialog).map(Text::from),
            description: Some(Text::from(dialog.question.clone())),
            options: Json::from_serialize(&dialog.choices),
            ..PermissionRequested::default()
        }));
        self.asked = Some(request);
    }

    fn withdraw(&mut self, steps: &mut Vec<Step>) {
        if let Some(request) = self.asked.take() {
            let decision = event::Decision::Withdrawn;
            steps.push(resolved(request, decision, None));
        }
    }

    fn end_turn(&mut self, steps: &mut Vec<Step>) {
        self.course = Course::Over;
        let outcome = match self.told.last() {
            Some(Entry::Error(_)) => Outcome::Failed,
            Some(Entry::Stopped(_)) => Outcome::Cancelled,
            _ => Outcome::Completed,
        };
        steps.push(Step::tell(TurnEnded { outcome, ..TurnEnded::default() }));
        self.keys.push_back(LEAVE.to_vec());
    }
}

impl Driver for CopilotScreenDriver {
    fn holds_back(&self) -> bool {
        true
    }

    fn start(&mut self, steps: &mut Vec<Step>) {
        steps.extend(begin("copilot-screen", &self.prompt, SAY_THAT_IT_IS_A_GUESS));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let answer = self.terminal.draw(chunk);
        if !answer.is_empty() {
            steps.push(Step::Type(answer));
        }
        self.screen = Screen::Drawn;
    }

    fn patience(&self) -> Option<Duration> {
        let rests = self.course == Course::Resting;
        match self.screen {
            _ if !self.keys.is_empty() => Some(SETTLED),
            _ if self.course == Course::Over => None,
            Screen::Drawn => Some(SETTLED),
            Screen::Settled => Some(CALM),
            Screen::Calm => rests.then_some(IDLE),
        }
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        let screen = match self.screen {
            _ if self.course == Course::Over => self.screen,
            Screen::Drawn => {
                self.look(false, steps);
                Screen::Settled
            }
            // What is typed changes what is there.
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
        if self.asked.as_deref() != Some(request) {
            return;
        }
        self.asked = None;
        let Some(dialog) = &self.dialog else { return };
        let (told, why) = match decision {
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
        steps.push(resolved(request.to_owned(), told, why));
    }

    fn interrupt(&mut self, _steps: &mut Vec<Step>) -> bool {
        self.keys.push_back(ESCAPE.to_vec());
        self.interrupting = true;
        true
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        if self.course != Course::Over {
            self.look(true, steps);
        }
        self.withdraw(steps);
    }
}

fn resolved(request: String, decision: event::Decision, why: Option<String>) -> Step {
    Step::tell(PermissionResolved {
        request: Some(Text::from(request)),
        decision,
        reason: why.map(Text::from),
        ..PermissionResolved::default()
    })
}
