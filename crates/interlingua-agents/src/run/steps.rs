//! Does what the driver wants done.

use std::collections::VecDeque;
use std::time::Instant;

use super::{Run, Stop, now_ms};
use crate::driver::{Driver, Step};
use crate::process::Signal;

impl Run {
    /// Asks the driver what to say, and says it.
    pub(super) fn say(&mut self, ask: impl FnOnce(&mut dyn Driver, &mut Vec<Step>)) {
        let mut steps = Vec::new();
        ask(self.driver.as_mut(), &mut steps);
        self.take_steps(steps);
    }

    pub(super) fn take_steps(&mut self, steps: Vec<Step>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Send(record) => self.send(record),
                Step::Type(keys) => {
                    if let Some(keeper) = &mut self.record {
                        keeper.sent(&keys);
                    }
                    self.process.write(keys);
                }
                Step::CloseInput => self.process.close_input(),
                Step::Signal(signal) => self.send_signal(signal),
                Step::GiveUp(why) => {
                    self.process.close_input();
                    self.stop.get_or_insert(Stop::GaveUp(why));
                    self.clock.stopping(Instant::now());
                }
                Step::Pass(bytes) => {
                    self.read(|reader, outlets| reader.push(&bytes, Some(now_ms()), outlets));
                }
                Step::Emit(event) => {
                    self.read(|reader, outlets| reader.emit(*event, Some(now_ms()), outlets));
                }
                Step::Read(place) => {
                    let (news, mut more) = (self.beside.news(&place), Vec::new());
                    self.driver.sidecar_read(&news, &mut more);
                    // What comes of it belongs before what was to come next.
                    more.into_iter().rev().for_each(|step| steps.push_front(step));
                }
            }
        }
    }

    /// Sends a signal; where that cannot be, the next one that can is due.
    pub(super) fn send_signal(&mut self, signal: Signal) {
        if !self.process.signal(signal) {
            self.clock.hurry(Instant::now());
        }
    }

    fn send(&mut self, mut record: String) {
        self.read(|reader, outlets| reader.push_sent(&record, Some(now_ms()), outlets));
        record.push('\n');
        if let Some(keeper) = &mut self.record {
            keeper.sent(record.as_bytes());
        }
        self.process.write(record.into_bytes());
    }
}
