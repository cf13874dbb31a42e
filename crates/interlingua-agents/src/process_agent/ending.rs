//! The end of an epoch and of the session: all processes are ended, all output is read, and the
//! outcome is determined.

use std::process::ExitStatus;
use std::time::Instant;

use interlingua::event::{Error, Event, Outcome};
use interlingua::json::Text;
use interlingua::{Exit, Stopped, StreamEnd};

use super::client_calls::ClientCalls;
use super::{Live, now_ms};
use crate::process::Signal;
use crate::record::Recorder;
use crate::session::{Command, ConsumerChange, Ended, Sent, Stop, stopped_again};
use crate::watch::Observation;

impl Live {
    /// After the process has exited: kills the processes that it left behind, reads the remaining
    /// output, and ends the turn that is open.
    pub(super) async fn epoch_ended(&mut self, status: Option<ExitStatus>) {
        let Some(epoch) = &mut self.epoch else { return };
        self.orphans += epoch.process.sweep().await;
        let was_exiting = epoch.exiting;
        self.read_rest().await;
        self.read_held_back().await;
        let exit = self.exit(status);
        self.call_driver(|driver, steps| driver.ended(exit.code, steps));
        self.handle_observations().await;
        self.emit_contradiction(&exit);
        self.emit_lost_output(&exit);
        let end = StreamEnd::Exit(&exit);
        self.read(|reader, outlets| reader.end_stream(end, Some(now_ms()), outlets));
        self.handle_observations().await;
        self.report_redactions();
        self.silent &= self.epoch.as_ref().is_none_or(|epoch| epoch.spool.is_empty());
        self.epoch = None;
        self.pending.clear();
        self.client_calls.iter_mut().for_each(ClientCalls::end_epoch);
        self.in_turn = false;
        self.clock.process_ended();
        if !was_exiting && self.stop.is_none() && !self.finishing && self.relaunch.is_some() {
            let how = describe(&exit);
            self.warn(&format!("the agent {how}; the next prompt starts it again"));
        }
        self.exit = exit;
    }

    /// Ends the agent, whose session is continued later: in its own way, if it can leave the turn so that the
    /// call which waits for the client gets its result later. Else it is killed, so that it does not record
    /// that it was interrupted.
    pub(super) fn suspend_turn(&mut self) {
        let mut defers = false;
        // A suspended process would not notice.
        if self.in_turn && !self.clock.is_suspended() {
            self.call_driver(|driver, steps| defers = driver.defer(steps));
        }
        if defers {
            self.clock.signalled(Signal::Terminate, Instant::now());
        } else {
            self.signal(Signal::Kill);
        }
    }

    /// Reads what the agent printed before it exited.
    async fn read_rest(&mut self) {
        loop {
            let unread = self.epoch.as_ref().map_or(0, |epoch| epoch.unread());
            self.read_some().await;
            // A read error would occur again.
            let read = self.epoch.as_ref().is_some_and(|epoch| epoch.unread() < unread);
            if !read || !self.wait_for_room().await {
                return;
            }
        }
    }

    /// Ends the session.
    pub(super) async fn end(mut self) {
        let exit_overdue = self.clock.exit_was_overdue();
        let goes_on = self.continues && self.stop != Some(Stop::Closed);
        let Self { reader, mut outlets, mut outbox, mut record, mut commands, exit, .. } = self;
        if !goes_on {
            let Ok(_) = reader.finish(&exit, Some(now_ms()), &mut outlets);
        }
        let mut watch = outlets.finish(record.as_mut(), &mut outbox);
        for observation in watch.take_observations() {
            if let Observation::TurnEnded(ended) = observation {
                self.outcome = Some(ended);
            }
        }
        tokio::select! {
            () = outbox.flush() => {}
            () = stopped_again(&mut commands) => {}
        }
        commands.close();
        outbox.end(Ended {
            outcome: self.outcome,
            exit,
            stop: self.stop,
            exit_overdue,
            silent: self.silent,
            truncated: self.truncated,
            orphans: self.orphans,
            redacted: self.redactor.redacted(),
            recording: record.and_then(Recorder::finish),
        });
    }

    /// Waits for capacity at the consumer, and executes commands meanwhile: the consumer may be the
    /// caller who waits for their answers. Returns `false` if waiting is pointless: the consumer has
    /// gone, or the session is stopped once more.
    async fn wait_for_room(&mut self) -> bool {
        while !self.outbox.has_room() {
            let Self { outbox, commands, has_caller, .. } = self;
            let sent = tokio::select! {
                change = outbox.changed() => match change {
                    ConsumerChange::Ready => return true,
                    ConsumerChange::Closed => {
                        self.stop.get_or_insert(Stop::ConsumerGone);
                        return false;
                    }
                },
                sent = commands.next(), if *has_caller => sent,
            };
            let gives_up = self.stop.is_some() && is_stop(sent.as_ref());
            match sent {
                Some(sent) => self.command(sent).await,
                None => (self.has_caller, self.finishing) = (false, true),
            }
            if gives_up {
                return false;
            }
        }
        true
    }

    fn exit(&mut self, status: Option<ExitStatus>) -> Exit {
        let interrupted = self.interrupted.then(|| Stopped {
            outcome: Outcome::Cancelled,
            cause: "the turn was interrupted".to_owned(),
        });
        // The client can still answer, and the next process continues the turn.
        let waits = self.in_turn && self.client_calls.as_ref().is_some_and(ClientCalls::has_open);
        let waits = waits.then(|| Stopped {
            outcome: Outcome::WaitingForClient,
            cause: "the agent ended while it waited for the client".to_owned(),
        });
        // A signal is no result of an agent that ends by no other means.
        let is_terminated = self.epoch.as_ref().is_some_and(|epoch| epoch.terminated);
        let status = status.filter(|status| !is_terminated || !was_terminated(*status));
        let stderr = self.epoch.as_ref().and_then(|epoch| epoch.process.stderr_tail());
        Exit {
            code: status.and_then(|status| status.code()).map(i64::from),
            signal: status.and_then(signal),
            stderr: stderr.map(|tail| self.redactor.redact_text(&tail).into_owned()),
            stopped: self.stop.as_ref().map(Stop::to_stopped).or(interrupted).or(waits),
        }
    }

    /// Emits an error if the stream reports success but the process failed.
    fn emit_contradiction(&mut self, exit: &Exit) {
        let failed = exit.code.is_some_and(|code| code != 0) || exit.signal.is_some();
        if self.stop.is_some()
            || self.clock.exit_was_overdue()
            || !failed
            || self.in_turn
            || self.outcome != Some(Outcome::Completed)
        {
            return;
        }
        let how = describe(exit);
        let mut message = format!("the agent reported a completed turn, but {how}");
        if let Some(last) = exit.stderr.as_deref().and_then(|tail| tail.trim_end().lines().last()) {
            message = format!("{message}; last line of standard error: {last}");
        }
        self.emit_error(&message);
    }

    /// Emits an error if the spool may not have everything that the agent printed.
    fn emit_lost_output(&mut self, exit: &Exit) {
        let Some(epoch) = &self.epoch else { return };
        let failed = exit.code != Some(0) || self.outcome != Some(Outcome::Completed);
        let why = if epoch.spool.was_truncated() {
            "the agent truncated its standard output".to_owned()
        } else if failed && self.stop.is_none() && epoch.spool.is_disk_full() {
            format!("the temporary folder {} is full", std::env::temp_dir().display())
        } else {
            return;
        };
        self.truncated = true;
        self.emit_error(&format!("{why}; some of the agent's output may be missing"));
    }

    fn emit_error(&mut self, message: &str) {
        let error = Error { message: Text::from(message.to_owned()), ..Error::default() };
        self.emit(Event::new(error));
    }
}

/// How a process ended, for the user.
fn describe(exit: &Exit) -> String {
    match (exit.signal, exit.code) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "exited".to_owned(),
    }
}

/// The signal that ended a process.
#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i64> {
    std::os::unix::process::ExitStatusExt::signal(&status).map(i64::from)
}

/// Whether a process was ended by a signal that terminates it.
#[cfg(unix)]
fn was_terminated(status: ExitStatus) -> bool {
    use rustix::process::Signal as Number;
    let number = std::os::unix::process::ExitStatusExt::signal(&status);
    [Number::TERM, Number::KILL].iter().any(|signal| number == Some(signal.as_raw()))
}

/// Elsewhere, a terminated process has the exit code that the system chooses.
#[cfg(not(unix))]
fn was_terminated(_status: ExitStatus) -> bool {
    true
}

/// Other systems have no signals.
#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i64> {
    None
}

fn is_stop(sent: Option<&Sent>) -> bool {
    sent.is_some_and(|sent| matches!(sent.command, Command::Stop(_)))
}
