//! Real screens of Copilot CLI 1.0.102. Each row is preceded by the colour of its second column.

use interlingua::event::{Data, Event, ToolStatus};

use super::*;

/// The bytes that draw a screen.
fn draw(screen: &str) -> Vec<u8> {
    let mut bytes = "\x1b[0m\x1b[2J".to_owned();
    for (number, row) in screen.lines().enumerate() {
        let (colour, text) = row.split_once('|').unwrap_or((".", row));
        let colour = match colour {
            "b" => 34,
            "g" => 32,
            "r" => 31,
            "y" => 33,
            _ => 39,
        };
        let mut letters = text.chars();
        let first = letters.next().map(String::from).unwrap_or_default();
        let second = letters.next().map(String::from).unwrap_or_default();
        let rest: String = letters.collect();
        bytes += &format!("\x1b[{};1H{first}\x1b[{colour}m{second}\x1b[39m{rest}", number + 1);
    }
    bytes.into_bytes()
}

const TRUST: &str = include_str!("screens/trust.txt");
const ASKS_TO_CREATE: &str = include_str!("screens/asks-to-create.txt");
const ASKS_TO_RUN: &str = include_str!("screens/asks-to-run.txt");
const RUNS: &str = include_str!("screens/runs.txt");
const DONE: &str = include_str!("screens/done.txt");
const NOT_SIGNED_IN: &str = include_str!("screens/not-signed-in.txt");
const SEVERAL: &str = include_str!("screens/several.txt");
const ASKS_AGAIN: &str = include_str!("screens/asks-again.txt");
const INTERRUPTED: &str = include_str!("screens/interrupted.txt");

/// A driver, with the events that it emitted and the keys that it typed.
struct Watched {
    driver: CopilotScreenDriver,
    emitted: Vec<Event<'static>>,
    typed: Vec<u8>,
    gave_up: Option<String>,
}

impl Watched {
    fn new() -> Self {
        let driver = CopilotScreenDriver::default();
        Self { driver, emitted: Vec::new(), typed: Vec::new(), gave_up: None }
    }

    fn take(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Emit(event) => self.emitted.push(*event),
                Step::Type(keys) => self.typed.extend(keys),
                Step::GiveUp(why) => self.gave_up = Some(why),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Shows a screen until the driver has nothing left to do.
    fn stays(&mut self, screen: &str) {
        self.drawn(screen);
        while self.driver.wake_after().is_some() {
            self.wake();
        }
    }

    /// Shows a screen for a single reading.
    fn drawn(&mut self, screen: &str) {
        let mut steps = Vec::new();
        self.driver.output(&draw(screen), &mut steps);
        self.driver.woken(&mut steps);
        self.take(steps);
    }

    fn wake(&mut self) {
        let mut steps = Vec::new();
        self.driver.woken(&mut steps);
        self.take(steps);
    }

    fn kinds(&self) -> Vec<&str> {
        self.emitted.iter().map(|event| event.data.kind()).collect()
    }

    fn texts(&self) -> Vec<String> {
        let texts = self.emitted.iter().filter_map(|event| match &event.data {
            Data::Block(block) => Some(block.text.to_string()),
            _ => None,
        });
        texts.collect()
    }

    fn outcome(&self) -> Option<Outcome> {
        self.emitted.iter().find_map(|event| match &event.data {
            Data::TurnEnded(ended) => Some(ended.outcome.clone()),
            _ => None,
        })
    }
}

#[test]
fn a_folder_is_trusted_for_the_session_and_the_greeting_is_not_emitted() {
    let mut watched = Watched::new();
    watched.stays(TRUST);
    assert_eq!((watched.typed.as_slice(), watched.emitted.len()), (&b"\r"[..], 0));
}

#[test]
fn a_suggested_command_is_a_call_that_waits_for_a_permission() {
    let mut watched = Watched::new();
    watched.stays(ASKS_TO_RUN);
    let kinds = ["block", "tool_started", "tool_ended", "tool_started", "permission_requested"];
    assert_eq!(watched.kinds(), kinds);
    let Data::ToolStarted(started) = &watched.emitted[3].data else { panic!() };
    assert_eq!(started.name, "Bash");
    let input = started.input.as_ref().unwrap().get();
    assert!(input.contains("for i in 1 2 3") && input.ends_with("sleep 4; echo end\"}"), "{input}");
    let Data::PermissionRequested(asked) = &watched.emitted[4].data else { panic!() };
    assert_eq!(asked.call.as_ref(), Some(&started.call));
    // Only the key that expands tool output was typed; the request is still pending.
    assert_eq!(watched.typed, EXPAND_OUTPUT);
    let request = asked.request.to_string();
    let mut steps = Vec::new();
    watched.driver.decide(&request, &Decision::Allow, &mut steps);
    watched.take(steps);
    while watched.driver.wake_after().is_some() {
        watched.wake();
    }
    assert_eq!(watched.typed, [EXPAND_OUTPUT, b"1\r"].concat());
    assert_eq!(watched.kinds().last(), Some(&"permission_resolved"));
}

#[test]
fn a_denial_carries_its_reason_and_the_turn_continues() {
    let mut watched = Watched::new();
    watched.stays(ASKS_TO_CREATE);
    let mut steps = Vec::new();
    watched.driver.decide("screen-1", &Decision::Deny("not\nthis".to_owned()), &mut steps);
    watched.take(steps);
    while watched.driver.wake_after().is_some() {
        watched.wake();
    }
    assert_eq!(watched.typed, [EXPAND_OUTPUT, b"3notthis\r"].concat());
    // The driver does not ask twice while the same dialog is being answered.
    watched.stays(ASKS_TO_CREATE);
    let asked = watched.kinds().iter().filter(|kind| **kind == "permission_requested").count();
    assert_eq!(asked, 1);
}

#[test]
fn a_turn_is_emitted_in_order_and_each_event_once() {
    let mut watched = Watched::new();
    for _ in 0..9 {
        watched.drawn(RUNS);
    }
    let so_far = ["block", "tool_started", "tool_ended", "tool_started"];
    assert_eq!(watched.kinds(), so_far, "a running shell has started");
    watched.stays(DONE);
    let end = ["tool_ended", "block", "turn_ended"];
    assert_eq!(watched.kinds(), [&so_far[..], &end[..]].concat());
    assert_eq!(watched.texts(), ["I will write.", "All done now."]);
    let Data::ToolEnded(ended) = &watched.emitted[4].data else { panic!() };
    let output = ended.output.as_ref().unwrap().get();
    assert!(output.starts_with("\"line 1\\nline 2") && output.ends_with("\\nend\""), "{output}");
    assert_eq!(watched.outcome(), Some(Outcome::Completed));
    assert!(watched.typed.ends_with(EXIT));
}

#[test]
fn wrapped_lines_are_joined_and_the_exit_code_is_read() {
    let mut watched = Watched::new();
    watched.stays(SEVERAL);
    let texts = watched.texts();
    assert!(
        texts[0].contains("how it looks when it is broken into lines here.\n\n1. first\n2."),
        "{texts:?}"
    );
    let ended: Vec<_> = watched
        .emitted
        .iter()
        .filter_map(|event| match &event.data {
            Data::ToolEnded(ended) => Some((ended.status.clone(), ended.exit_code)),
            _ => None,
        })
        .collect();
    let went_well = (ToolStatus::Completed, None);
    assert_eq!(ended, [(ToolStatus::Failed, Some(1)), went_well.clone(), went_well]);
}

#[test]
fn an_incomplete_text_is_not_emitted() {
    let mut watched = Watched::new();
    let screen = RUNS.replace("$ Shell", "● A text that").replace("y|", "b|");
    for _ in 0..9 {
        watched.drawn(&screen);
    }
    watched.stays(&screen);
    assert_eq!(watched.texts(), ["I will write."], "not even after a pause");
}

/// Copilot omits colours when it assumes that no user is watching, for example in CI.
#[test]
fn without_colours_the_models_words_are_text() {
    let mut watched = Watched::new();
    let rows = SEVERAL.lines().map(|row| row.replacen(['b', 'g', 'r', 'y'], ".", 1));
    watched.stays(&rows.collect::<Vec<_>>().join("\n"));
    assert_eq!(watched.texts().last().map(String::as_str), Some("Done."));
    assert_eq!(watched.outcome(), Some(Outcome::Completed));
}

/// A running shell is emitted even if nothing moves on the screen.
#[test]
fn a_still_screen_is_emitted() {
    let mut watched = Watched::new();
    watched.stays(RUNS);
    assert_eq!(watched.kinds().last(), Some(&"tool_started"));
}

#[test]
fn a_failure_is_the_end_of_the_turn() {
    let mut watched = Watched::new();
    watched.stays(NOT_SIGNED_IN);
    assert_eq!(watched.kinds(), ["retry", "retry", "error", "turn_ended"]);
    assert_eq!(watched.outcome(), Some(Outcome::Failed));
}

#[test]
fn an_interrupt_is_confirmed() {
    let mut watched = Watched::new();
    watched.drawn(RUNS);
    watched.typed.clear();
    assert!(watched.driver.interrupt(&mut Vec::new()));
    watched.wake();
    assert_eq!(watched.typed, ESCAPE);
    watched.drawn(ASKS_AGAIN);
    watched.drawn(ASKS_AGAIN);
    assert_eq!(watched.typed, [ESCAPE, ESCAPE].concat(), "typed again to confirm");
    let mut interrupted = Watched::new();
    interrupted.stays(INTERRUPTED);
    assert_eq!(interrupted.outcome(), Some(Outcome::Cancelled));
}

#[test]
fn without_a_sign_in_the_driver_gives_up() {
    let mut watched = Watched::new();
    let screen = NOT_SIGNED_IN.replace(".| ❯ do it now", ".|Please use /login to sign in");
    watched.stays(&screen);
    assert!(watched.gave_up.unwrap().starts_with("Please use /login"));
}

#[test]
fn scrolled_rows_are_missing_and_the_rest_is_emitted_once() {
    let mut watched = Watched::new();
    for _ in 0..9 {
        watched.drawn(RUNS);
    }
    // Everything before the shell's output has scrolled off.
    let rows: Vec<_> = DONE.lines().collect();
    let from = rows.iter().position(|row| row.contains("line 7")).unwrap();
    watched.stays(&rows[from..].join("\n"));
    let end = ["tool_started", "tool_ended", "block", "turn_ended"];
    assert_eq!(watched.kinds()[3..], end);
    let Data::ToolEnded(ended) = &watched.emitted[4].data else { panic!() };
    assert!(ended.output.as_ref().unwrap().get().contains("has left the screen]\\nline 7\\n"));
}

/// Arbitrary drawing, in arbitrary chunks, and arbitrary cuts of a real screen.
#[test]
fn no_drawing_causes_a_panic() {
    let pieces: Vec<Vec<u8>> = [ASKS_TO_RUN, SEVERAL, INTERRUPTED].map(draw).to_vec();
    let odd: [&[u8]; 8] = [
        b"\x1b[",
        b"\x1b[999;999H",
        b"\x1b[?1049h",
        b"\x1b[2;1r",
        b"\x1b[9999S",
        b"\xff\xe2\x94",
        b"\x1b]0;",
        "╭│❯●".as_bytes(),
    ];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let more = std::env::var("MORE_CASES").ok().and_then(|more| more.parse().ok());
    for _ in 0..40 * more.unwrap_or(1) {
        let mut watched = Watched::new();
        for _ in 0..12 {
            let screen = &pieces[next(pieces.len())];
            let (from, to) = (next(screen.len()), next(screen.len()));
            let (from, to) = (from.min(to), from.max(to));
            let mut bytes = screen[from..to].to_vec();
            bytes.extend_from_slice(odd[next(odd.len())]);
            let mut steps = Vec::new();
            watched.driver.output(&bytes, &mut steps);
            watched.driver.woken(&mut steps);
            watched.driver.woken(&mut steps);
        }
    }
}
