//! The end of a run: all processes are ended, all output is read, and the outcome is determined.

use std::process::ExitStatus;

use interlingua::Exit;
use interlingua::event::{Error, Event, Outcome};
use interlingua::json::Text;
use tokio::sync::mpsc;

use super::outbox::ConsumerChange;
use super::{Control, Ended, Recorder, Run, Stop, now_ms};
use crate::watch::Observation;

impl Run {
    /// After the process has exited: kills the processes that it left behind, reads the remaining
    /// output, and reports the outcome.
    pub(super) async fn end(
        mut self,
        status: Option<ExitStatus>,
        controls: &mut mpsc::Receiver<Control>,
    ) -> Ended {
        let orphans = self.process.sweep().await;
        self.clock.closed();
        loop {
            let unread = self.spool.unread();
            self.read_some().await;
            // A read error would occur again.
            let read = self.spool.unread() < unread;
            if !read || !self.wait_for_room(controls).await {
                break;
            }
        }
        let exit = self.exit(status);
        self.call_driver(|driver, steps| driver.ended(exit.code, steps));
        self.handle_observations().await;
        self.emit_contradiction(&exit);
        let truncated = self.emit_lost_output(&exit);
        let (exit_overdue, silent) = (self.clock.exit_was_overdue(), self.spool.is_empty());
        let Self { mut outbox, mut stop, mut outcome, reader, mut outlets, mut record, .. } = self;
        let Ok(_) = reader.finish(&exit, Some(now_ms()), &mut outlets);
        let mut watch = outlets.finish(record.as_mut(), |bytes| outbox.put(bytes));
        for observation in watch.take_observations() {
            if let Observation::TurnEnded(ended) = observation {
                outcome = ended;
            }
        }
        tokio::select! {
            () = outbox.drained() => {}
            () = stopped_again(controls) => {}
        }
        if let Some(why) = outbox.failure() {
            stop.get_or_insert(Stop::OutputFailed(why));
        }
        let recording = record.and_then(Recorder::finish);
        Ended { outcome, exit, stop, exit_overdue, silent, truncated, orphans, recording }
    }

    /// Waits for capacity at the consumer. Returns `false` if waiting is pointless.
    async fn wait_for_room(&mut self, controls: &mut mpsc::Receiver<Control>) -> bool {
        if self.outbox.has_room() {
            return true;
        }
        tokio::select! {
            change = self.outbox.changed() => {
                if change == ConsumerChange::Closed {
                    let stop = self.consumer_closed();
                    self.stop.get_or_insert(stop);
                }
                change == ConsumerChange::Ready
            }
            () = stopped_again(controls) => {
                self.stop.get_or_insert(Stop::Interrupted);
                false
            }
        }
    }

    fn exit(&mut self, status: Option<ExitStatus>) -> Exit {
        Exit {
            code: status.and_then(|status| status.code()).map(i64::from),
            signal: status.and_then(signal),
            stderr: self.process.stderr_tail(),
            stopped: self.stop.as_ref().map(Stop::to_stopped),
        }
    }

    /// Emits an error if the stream reports success but the process failed.
    fn emit_contradiction(&mut self, exit: &Exit) {
        let failed = exit.code.is_some_and(|code| code != 0) || exit.signal.is_some();
        if self.stop.is_some()
            || self.clock.exit_was_overdue()
            || !failed
            || self.outcome != Outcome::Completed
        {
            return;
        }
        let how = match (exit.signal, exit.code) {
            (Some(signal), _) => format!("was ended by signal {signal}"),
            (None, code) => format!("exited with code {}", code.unwrap_or_default()),
        };
        let mut message = format!("the agent reported a completed turn, but {how}");
        if let Some(last) = exit.stderr.as_deref().and_then(|tail| tail.trim_end().lines().last()) {
            message = format!("{message}; last line of standard error: {last}");
        }
        self.emit_error(&message);
    }

    /// Emits an error if the spool may not have everything that the agent printed. Returns whether
    /// that is so.
    fn emit_lost_output(&mut self, exit: &Exit) -> bool {
        let failed = exit.code != Some(0) || self.outcome != Outcome::Completed;
        let why = if self.spool.was_truncated() {
            "the agent truncated its standard output".to_owned()
        } else if failed && self.stop.is_none() && self.spool.is_disk_full() {
            format!("the temporary folder {} is full", std::env::temp_dir().display())
        } else {
            return false;
        };
        self.emit_error(&format!("{why}; some of the agent's output may be missing"));
        true
    }

    fn emit_error(&mut self, message: &str) {
        let error = Error { message: Text::from(message.to_owned()), ..Error::default() };
        let event = Event::new(error);
        self.read(|reader, outlets| reader.emit(event, Some(now_ms()), outlets));
    }
}

/// The signal that ended a process.
#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i64> {
    std::os::unix::process::ExitStatusExt::signal(&status).map(i64::from)
}

/// Other systems have no signals.
#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i64> {
    None
}

/// Waits for a command to stop at once.
async fn stopped_again(controls: &mut mpsc::Receiver<Control>) {
    loop {
        match controls.recv().await {
            Some(Control::Stop(_)) => return,
            Some(Control::Decide { .. } | Control::Suspend(_) | Control::Resume) => {}
            None => std::future::pending().await,
        }
    }
}
