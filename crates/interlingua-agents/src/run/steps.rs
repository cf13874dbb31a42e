//! Executes the steps that the driver requests.

use std::collections::VecDeque;
use std::time::Instant;

use super::{Run, Stop, now_ms};
use crate::driver::{Driver, Step};
use crate::process::Signal;

impl Run {
    /// Calls the driver, and executes the steps that it returns.
    pub(super) fn call_driver(&mut self, ask: impl FnOnce(&mut dyn Driver, &mut Vec<Step>)) {
        let mut steps = Vec::new();
        ask(self.driver.as_mut(), &mut steps);
        self.execute(steps);
    }

    pub(super) fn execute(&mut self, steps: Vec<Step>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Send(record) => self.send(record),
                Step::Type(keys) => {
                    if let Some(recorder) = &mut self.record {
                        recorder.sent(&keys);
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
                    let (news, mut more) = (self.sidecar.read_new(&place), Vec::new());
                    self.driver.sidecar_read(&news, &mut more);
                    // The steps that result belong before the remaining ones.
                    more.into_iter().rev().for_each(|step| steps.push_front(step));
                }
            }
        }
    }

    /// Sends a signal. If the system does not support it, the next one is due at once.
    pub(super) fn send_signal(&mut self, signal: Signal) {
        if !self.process.signal(signal) {
            self.clock.escalate_now(Instant::now());
        }
    }

    fn send(&mut self, mut record: String) {
        self.read(|reader, outlets| reader.push_sent(&record, Some(now_ms()), outlets));
        record.push('\n');
        if let Some(recorder) = &mut self.record {
            recorder.sent(record.as_bytes());
        }
        self.process.write(record.into_bytes());
    }
}
