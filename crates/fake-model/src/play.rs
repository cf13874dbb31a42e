//! Turns the events of a complete answer into what is sent: pauses, gates, cuts.
//!
//! It knows only the purpose of an event, not the protocols, and does no I/O: the result is a list
//! of steps that a test can inspect.

use std::time::Duration;

use crate::script::{Cut, Ending, Reply};

/// The purpose of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It opens or closes something.
    Frame,
    /// It carries a text delta.
    Text,
    /// It carries a delta of reasoning.
    Delta,
    /// It carries a delta of a call.
    Call,
    /// It closes a call.
    CallEnd,
    /// It carries a token with which the answer can be continued from here.
    Checkpoint,
    /// It states why the model stopped, or follows that event.
    End,
}

/// A part of a complete answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// An event, as bytes.
    Event(Mark, String),
    /// A gate.
    Gate(String),
}

/// A step of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sends these bytes.
    Send(String),
    /// Waits.
    Pause(Duration),
    /// Waits until the gate of this name is open.
    Gate(String),
    /// Closes the connection without ending the answer.
    Cut,
}

/// The steps that play an answer as the reply defines it. `error` is the event that replaces the
/// end if the reply ends with an error.
pub(crate) fn steps(beats: Vec<Beat>, reply: &Reply, error: Option<String>) -> Vec<Step> {
    let end = beats
        .iter()
        .position(|beat| matches!(beat, Beat::Event(Mark::End, _)))
        .unwrap_or(beats.len());
    match &reply.ending {
        Ending::Complete | Ending::Continuation => paced(beats, reply.delay_ms),
        Ending::Error(_) | Ending::Failure(_) => {
            let mut steps = paced(before(beats, end), reply.delay_ms);
            steps.extend(error.map(Step::Send));
            steps
        }
        Ending::Cut(cut) => cut_at(*cut, beats, end, reply.delay_ms),
    }
}

fn cut_at(cut: Cut, beats: Vec<Beat>, end: usize, delay_ms: u64) -> Vec<Step> {
    let after = |marks: &[Mark]| last(&beats, marks).map_or(end, |place| place + 1);
    let text: &[&[Mark]] = &[&[Mark::Text], &[Mark::Delta, Mark::Call]];
    let end = match cut {
        Cut::BeforeFirstByte => return vec![Step::Cut],
        Cut::QuietBeforeLastEvent => return paced(before(beats, end), delay_ms),
        Cut::InText => return cut_inside(beats, text, delay_ms),
        Cut::InCall => return cut_inside(beats, &[&[Mark::Call], &[Mark::Text]], delay_ms),
        Cut::AfterCalls => after(&[Mark::Call, Mark::CallEnd]),
        Cut::AfterCheckpoint => after(&[Mark::Checkpoint]),
        Cut::BeforeLastEvent => end,
    };
    let mut steps = paced(before(beats, end), delay_ms);
    steps.push(Step::Cut);
    steps
}

/// The place of the last event with one of these marks.
fn last(beats: &[Beat], marks: &[Mark]) -> Option<usize> {
    beats.iter().rposition(|beat| matches!(beat, Beat::Event(found, _) if marks.contains(found)))
}

/// The first half of a text, cut between two characters.
pub(crate) fn first_half(text: &str) -> &str {
    text.get(..text.floor_char_boundary(text.len() / 2)).unwrap_or_default()
}

fn before(mut beats: Vec<Beat>, end: usize) -> Vec<Beat> {
    beats.truncate(end);
    beats
}

/// Cuts the last event with one of the first marks, or else of the next ones.
fn cut_inside(mut beats: Vec<Beat>, choices: &[&[Mark]], delay_ms: u64) -> Vec<Step> {
    let place = choices.iter().find_map(|marks| last(&beats, marks)).unwrap_or(0);
    let half = match beats.get(place) {
        Some(Beat::Event(_, text)) => first_half(text).to_owned(),
        _ => String::new(),
    };
    beats.truncate(place);
    let mut steps = paced(beats, delay_ms);
    steps.push(Step::Send(half));
    steps.push(Step::Cut);
    steps
}

fn paced(beats: Vec<Beat>, delay_ms: u64) -> Vec<Step> {
    let mut steps = Vec::with_capacity(beats.len());
    for beat in beats {
        match beat {
            Beat::Gate(name) => steps.push(Step::Gate(name)),
            Beat::Event(mark, text) => {
                if delay_ms > 0 && matches!(mark, Mark::Text | Mark::Delta | Mark::Call) {
                    steps.push(Step::Pause(Duration::from_millis(delay_ms)));
                }
                steps.push(Step::Send(text));
            }
        }
    }
    steps
}
