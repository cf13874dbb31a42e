//! Executes the steps that the driver requests.

use std::collections::VecDeque;
use std::time::Instant;

use super::client_calls::DriverMessage;
use super::{Live, now_ms};
use crate::driver::{Driver, Step};
use crate::permission::Mode;
use crate::process::Signal;
use crate::session::{Prompt, Stop};

impl Live {
    /// Calls the driver, if there is a process, and executes the steps that it returns.
    pub(super) fn call_driver(&mut self, ask: impl FnOnce(&mut dyn Driver, &mut Vec<Step>)) {
        let Some(epoch) = &mut self.epoch else { return };
        let mut steps = Vec::new();
        epoch.driver_called_at = Instant::now();
        ask(epoch.driver.as_mut(), &mut steps);
        self.execute(steps);
    }

    pub(super) fn execute(&mut self, steps: Vec<Step>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Send(record) => self.send(&record, &record),
                Step::SendSecret { record, redacted } => self.send(&record, &redacted),
                Step::Type(keys) => {
                    if let Some(recorder) = &mut self.record {
                        recorder.sent(&self.redactor.redact(&keys));
                    }
                    self.write(keys);
                }
                Step::CloseInput => self.close_input(),
                Step::Signal(signal) => self.send_signal(signal),
                Step::Terminate => self.terminate(),
                Step::GiveUp(why) => {
                    self.close_input();
                    self.prompts.clear();
                    let why = self.redactor.redact_text(&why).into_owned();
                    self.stop.get_or_insert(Stop::GaveUp(why));
                    self.clock.stopping(Instant::now());
                }
                Step::LeavePlanMode if self.policy.mode == Mode::Plan => {
                    // The agent has left its own mode already.
                    self.change_mode(Mode::Ask);
                }
                Step::LeavePlanMode => {}
                Step::Queue(prompt) if self.stop.is_none() => {
                    self.prompts.push_first(Prompt::new(prompt));
                }
                Step::ExpectTurn if self.stop.is_none() => {
                    self.in_turn = true;
                    self.reader.expect_turn(true);
                    self.clock.turn_started(Instant::now());
                }
                // The session ends.
                Step::Queue(_) | Step::ExpectTurn => {}
                Step::CallClient(call) => self.report_call(DriverMessage::Called(*call)),
                Step::WithdrawCall(number) => self.report_call(DriverMessage::Withdrawn(number)),
                Step::Pass(bytes) => {
                    self.read(|reader, outlets| reader.push(&bytes, Some(now_ms()), outlets));
                }
                Step::Emit(event) => {
                    let event = self.redact_notice(*event);
                    self.emit(event);
                }
                Step::Read(place) => {
                    let Some(epoch) = &mut self.epoch else { continue };
                    let news = epoch.sidecar.read_new(&place, &mut self.redactor);
                    let mut more = Vec::new();
                    epoch.driver.sidecar_read(&news, &mut more);
                    // The steps that result belong before the remaining ones.
                    more.into_iter().rev().for_each(|step| steps.push_front(step));
                }
            }
        }
    }

    /// What the agent calls is looked at when what it has printed before was observed.
    fn report_call(&mut self, message: DriverMessage) {
        if let Some(calls) = &mut self.client_calls {
            calls.report(message);
        }
    }

    /// Terminates an agent that does not exit by itself.
    fn terminate(&mut self) {
        let Some(epoch) = &mut self.epoch else { return };
        epoch.terminated = true;
        self.clock.terminating(Instant::now());
        self.send_signal(Signal::Terminate);
    }

    /// Sends a signal. If the system does not support it, the next one is due at once.
    pub(super) fn send_signal(&mut self, signal: Signal) {
        if !self.signal(signal) {
            self.clock.escalate_now(Instant::now());
        }
    }

    /// Sends a signal to all processes of the agent. Returns whether the system supports it.
    pub(super) fn signal(&mut self, signal: Signal) -> bool {
        self.epoch.as_mut().is_none_or(|epoch| epoch.process.signal(signal))
    }

    fn close_input(&mut self) {
        if let Some(epoch) = &mut self.epoch {
            epoch.process.close_input();
        }
    }

    fn write(&mut self, bytes: Vec<u8>) {
        if let Some(epoch) = &mut self.epoch {
            epoch.process.write(bytes);
        }
    }

    /// Sends a record to the agent. What is emitted and recorded of it is the form without its
    /// secrets, in which keys are redacted too.
    fn send(&mut self, record: &str, without_secrets: &str) {
        let redacted = self.redactor.redact_text(without_secrets);
        let Ok(_) = self.reader.push_sent(&redacted, Some(now_ms()), &mut self.outlets);
        if let Some(recorder) = &mut self.record {
            recorder.sent(redacted.as_bytes());
        }
        self.outlets.pass_on(self.record.as_mut(), &mut self.outbox);
        if let Some(epoch) = &mut self.epoch {
            let bytes = epoch.input_framing.frame(record);
            epoch.process.write(bytes);
        }
    }
}
